//! The table of runs, and above it what they were asked to do.

use comfy_table::{Cell, CellAlignment, Table, TableStyle};
use foreign::{Audit, Run, figure};
use unicode_width::UnicodeWidthStr;

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
    if audit.runs.len() > ROWS_MAX {
        out +=
            &format!("{FAINT}and {} more runs (--json lists them){FAINT:#}\n", audit.runs.len() - ROWS_MAX);
    }
    for file in audit.files.iter().filter(|file| file.too_many_runs) {
        let text = format!(
            "{}: more than {} runs, the rest was not read",
            file.file,
            figure::count(foreign::RUNS_MAX as u64)
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

type Row = [String; 8];
/// What stands where the output tells nothing.
const NOTHING: &str = "–";
/// The place of the label among the columns.
const LABEL: usize = 1;
/// The place of the bytes, which findings tell where they matter.
const BYTES: usize = 7;
const COLUMNS: [&str; 8] = ["#", "label", "req/s", "requests", "failed", "mean", "p99", "bytes"];

fn runs(audit: &Audit, width: usize) -> String {
    let rows: Vec<Row> = audit.runs.iter().take(ROWS_MAX).map(|run| row(run, audit)).collect();
    // Columns in which nothing is known are left out.
    let known = |at: usize| at <= LABEL || rows.iter().any(|row| row[at] != NOTHING);
    let mut kept: Vec<usize> = (0..COLUMNS.len()).filter(|at| known(*at)).collect();
    let widest = |at: usize| rows.iter().map(|row| row[at].width()).fold(COLUMNS[at].width(), usize::max);
    // The gap behind the last column is cut off.
    let room = |kept: &[usize]| {
        let others = kept.iter().filter(|at| **at != LABEL).map(|at| widest(*at) + PADDING).sum::<usize>();
        width.saturating_sub(others + 1)
    };
    let words = rows
        .iter()
        .flat_map(|row| row[LABEL].split_whitespace())
        .map(UnicodeWidthStr::width)
        .max()
        .unwrap_or(0);
    // Rather a column less than a label in pieces.
    if room(&kept) < words.min(width / 2) {
        kept.retain(|at| *at != BYTES);
    }
    let room = room(&kept).max(LABEL_MIN);
    let rows = if widest(LABEL) > room { as_tree(rows) } else { rows };
    let mut table = Table::new();
    let header = kept.iter().map(|at| COLUMNS[*at]);
    table.load_style(TableStyle::new().header_separator(RULE)).set_header(header);
    for mut row in rows {
        row[LABEL] = fitted(&row[LABEL], room);
        table.add_row(kept.iter().map(|at| Cell::new(&row[*at])));
    }
    for (place, column) in table.column_iter_mut().enumerate() {
        if place != LABEL {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let text = table.to_string();
    // The rule reaches below the gap that is cut off.
    text.lines().map(|line| line.trim_end().chars().take(width).collect::<String>() + "\n").collect()
}

/// Headings that several labels share stand in rows of their own above them.
fn as_tree(rows: Vec<Row>) -> Vec<Row> {
    let mut out = Vec::with_capacity(rows.len());
    let mut above: Vec<String> = Vec::new();
    for mut row in rows {
        if !row[0].is_empty() {
            let parts: Vec<String> = row[LABEL].split(" · ").map(str::to_owned).collect();
            let inner = parts.len() - 1;
            let shared = parts.iter().take(inner).zip(&above).take_while(|(one, other)| one == other).count();
            for (depth, part) in parts.iter().enumerate().take(inner).skip(shared) {
                let mut heading = Row::default();
                heading[LABEL] = "  ".repeat(depth) + part;
                out.push(heading);
            }
            row[LABEL] = "  ".repeat(inner) + &parts[inner];
            above = parts;
        }
        out.push(row);
    }
    out
}

/// A label in lines of its column, the first one's indent kept.
fn fitted(label: &str, room: usize) -> String {
    let indent = " ".repeat(label.chars().take_while(|c| *c == ' ').count());
    let options = textwrap::Options::new(room).initial_indent(&indent).subsequent_indent(&indent);
    textwrap::fill(label.trim_start(), options)
}

fn row(run: &Run, audit: &Audit) -> Row {
    let nothing = || NOTHING.to_owned();
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
