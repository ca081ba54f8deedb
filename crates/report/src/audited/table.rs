//! The table of runs, and above it what they were asked to do.

use comfy_table::{Cell, CellAlignment, Table, TableStyle};
use transcript::{Audit, Run, figure};

use crate::drawing::{FAINT, RULE, wrapped};

/// Runs in the table; a table that nobody reads to its end is no table.
const ROWS_MAX: usize = 60;
/// Ways of asking that are told.
const ASKED_MAX: usize = 4;
const LABEL_MIN: usize = 16;
/// What a column takes beside its text, the gap to the next included.
const PADDING: usize = 3;

/// Both, in lines of at most `width` columns.
pub(super) fn text(audit: &Audit, width: usize) -> String {
    let mut out = asked(audit, width);
    out += &runs(audit, width);
    out.push('\n');
    if audit.runs.len() > ROWS_MAX {
        out +=
            &format!("{FAINT}and {} more runs (--json lists them){FAINT:#}\n", audit.runs.len() - ROWS_MAX);
    }
    for file in audit.files.iter().filter(|file| file.too_many_runs) {
        let text = format!(
            "{}: more than {} runs, the rest was not read",
            file.file,
            figure::count(transcript::RUNS_MAX as u64)
        );
        out += &wrapped(&text, "", "  ", width);
    }
    out
}

/// What the tools were asked to do, each way once.
fn asked(audit: &Audit, width: usize) -> String {
    let url = shared_url(audit);
    let mut ways: Vec<String> = Vec::new();
    for run in &audit.runs {
        let way = way(run, url.as_deref());
        if !ways.contains(&way) {
            ways.push(way);
            if ways.len() > ASKED_MAX {
                ways[ASKED_MAX] = "and otherwise".to_owned();
                break;
            }
        }
    }
    ways.iter().map(|way| format!("{FAINT}{}{FAINT:#}", wrapped(way, "", "  ", width))).collect()
}

/// The address that all runs have, as far as they have it in common.
fn shared_url(audit: &Audit) -> Option<String> {
    let mut urls = audit.runs.iter().map(|run| run.url.as_deref());
    let first = urls.next()??;
    let host = |url: &str| {
        url.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or_default().to_owned())
    };
    let mut same = true;
    for url in urls {
        let url = url?;
        same &= url == first;
        if host(url) != host(first) {
            return None;
        }
    }
    if same { Some(first.to_owned()) } else { host(first) }
}

fn way(run: &Run, url: Option<&str>) -> String {
    let many = |value: Option<u64>, noun: &str| value.map(|value| figure::many(value, noun));
    let parts = [
        Some(run.tool.name().to_owned()),
        many(run.load.threads, "thread"),
        many(run.load.connections, "connection"),
        run.load.requests.map(|requests| figure::many(requests, "request")),
        run.load.duration_s.map(figure::seconds),
        run.load.rate_per_s.map(|rate| format!("at {}/s", figure::digits(rate))),
        url.map(str::to_owned),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

const COLUMNS: [&str; 8] = ["#", "label", "requests/s", "requests", "failed", "mean", "p99", "bytes each"];

fn runs(audit: &Audit, width: usize) -> String {
    let mut rows: Vec<[String; 8]> = audit.runs.iter().take(ROWS_MAX).map(|run| row(run, audit)).collect();
    // Columns in which nothing is known are left out.
    let kept: Vec<usize> =
        (0..COLUMNS.len()).filter(|at| *at < 2 || rows.iter().any(|row| row[*at] != "–")).collect();
    let mut widths = kept.iter().map(|at| {
        rows.iter().map(|row| row[*at].chars().count()).max().unwrap_or(0).max(COLUMNS[*at].chars().count())
    });
    let others: usize =
        widths.by_ref().enumerate().filter(|(place, _)| *place != 1).map(|(_, width)| width + PADDING).sum();
    let room = width.saturating_sub(others + PADDING).max(LABEL_MIN);
    for row in &mut rows {
        row[1] = textwrap::wrap(&row[1], room).join("\n");
    }
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(RULE)).set_header(kept.iter().map(|at| COLUMNS[*at]));
    for row in &rows {
        table.add_row(kept.iter().map(|at| Cell::new(&row[*at])));
    }
    for (place, column) in table.column_iter_mut().enumerate() {
        if place != 1 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let text = table.to_string();
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn row(run: &Run, audit: &Audit) -> [String; 8] {
    let nothing = || "–".to_owned();
    let group = audit.groups.iter().position(|group| group.label == run.label).unwrap_or(0);
    let first = audit.groups.get(group).and_then(|group| group.runs.first());
    let is_first = first.and_then(|at| audit.runs.get(*at)).is_some_and(|one| std::ptr::eq(one, run));
    let failed = run.failures.total();
    let told = [run.failures.timeouts, run.failures.status, run.failures.other].iter().any(Option::is_some);
    let us = |value: Option<f64>| value.map_or_else(nothing, figure::micros);
    let requests = run.requests.map(figure::count);
    [
        if is_first { (group + 1).to_string() } else { String::new() },
        if is_first { run.label.clone() } else { "  again".to_owned() },
        run.rate().map_or_else(nothing, figure::digits),
        requests.map_or_else(nothing, |count| if run.rounded { format!("≈ {count}") } else { count }),
        if failed > 0 || told { figure::count(failed) } else { nothing() },
        us(run.latency.mean_us),
        us(run.latency.quantile(99.0)),
        run.bytes_per_response().map_or_else(nothing, figure::bytes),
    ]
}
