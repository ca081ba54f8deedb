//! autocannon, tables and JSON. Its text has only rounded counts, of the requests that it sent. Its rates are
//! means of samples, one per second.

use serde_json::Value;

use super::{
    Beginning, Meaning, RateOf, Tool, ToolRow, at, between, count_at, ended, is_start, is_total,
    take_total, total_parts, usual,
};
use crate::draft::{LineTaken, RunDraft, keep};
use crate::number::{self, Lone};
use crate::run::ToolRun;

/// autocannon's output and flags.
pub static AUTOCANNON: ToolRow = ToolRow {
    flags: &[
        (&["c", "connections"], Meaning::Connections),
        (&["d", "duration"], Meaning::Duration),
        (&["a", "amount"], Meaning::Requests),
        (&["w", "workers"], Meaning::Threads),
        (&["p", "pipelining"], Meaning::Pipelining),
        (&["R", "overallRate"], Meaning::Rate),
        (&["r", "connectionRate"], Meaning::RateEach),
        (&["H", "headers"], Meaning::Header),
        (&["t", "timeout"], Meaning::Timeout),
    ],
    failures_within: true,
    limit_s: Some(10.0),
    connections: 10,
    rate_of: RateOf::Samples,
    json: Some((from_json, &["\"p97_5\"", "\"latency\""])),
    ..usual(Tool::Autocannon, "autocannon", begins, take)
};

fn begins(text: &str) -> Option<Beginning> {
    match text {
        // It prints no figures of a warm-up, which is not a truncated run.
        _ if text.starts_with("Running ") && text.contains(" warmup @ ") => {
            Beginning::FIRST_OF_SEVERAL
        }
        // For `Running 10s test @ …`, the line after it shows whether it is wrk's.
        _ if text.starts_with("Running ") && text.contains(" @ ") && !text.contains(" test @ ") => {
            Beginning::FIRST
        }
        // Tables in Markdown are autocannon's only below its first line.
        _ if is_table(text) && !text.contains('|')
            || is_total(text, true)
            || text.ends_with(" non 2xx responses") =>
        {
            Beginning::LATER
        }
        _ => None,
    }
}

/// A row of its tables.
fn is_table(text: &str) -> bool {
    let cells = cells(text);
    matches!(
        cells.first(),
        Some(&("Stat" | "Latency" | "Latency (ms)" | "Req/Sec" | "Bytes/Sec"))
    ) && cells.len() >= 4
        || columns(text).is_some()
}

/// The columns of a table without lines, which version 2 prints: `Stat         Avg     Stdev   Max`.
fn columns(text: &str) -> Option<Vec<String>> {
    let mut words = text.split_whitespace();
    let is_column =
        |word: &&str| matches!(*word, "Avg" | "Stdev" | "Max" | "Min") || word.ends_with('%');
    if words.next() != Some("Stat") {
        return None;
    }
    let columns: Vec<&str> = words.collect();
    (columns.len() >= 3 && columns.iter().all(is_column))
        .then(|| columns.into_iter().map(str::to_owned).collect())
}

/// A row of such a table: `Latency (ms) 4.15    11.56   218.03`.
fn plain_row(words: &[&str], draft: &mut RunDraft) -> Option<LineTaken> {
    if draft.columns.is_empty() {
        return None;
    }
    match words {
        ["Latency", "(ms)", values @ ..] if values.len() == draft.columns.len() => {
            Some(row(&[&["Latency (ms)"], values].concat(), draft))
        }
        ["Req/Sec", values @ ..] if values.len() == draft.columns.len() => Some(row(words, draft)),
        ["Bytes/Sec", ..] => Some(LineTaken::Ours),
        _ => None,
    }
}

/// Both begin with `Running 10s test @ …`. The line after it distinguishes them.
pub fn instead_of_wrk(text: &str, draft: &mut RunDraft) -> Option<LineTaken> {
    if draft.run.load.threads.is_some() || draft.run.has_figures() || !draft.columns.is_empty() {
        return None;
    }
    let counted = text
        .split_once(" connection")
        .is_some_and(|(count, _)| number::whole(count).is_some());
    if !counted && !is_table(text) {
        return None;
    }
    draft.run.tool = Tool::Autocannon;
    Some(take(text, draft))
}

fn take(text: &str, draft: &mut RunDraft) -> LineTaken {
    if is_frame(text) || is_start(text, draft) || is_load(text, draft) {
        return LineTaken::Ours;
    }
    if text.contains('│') || is_table(text) && text.contains('|') {
        return row(&cells(text), draft);
    }
    if let Some(columns) = columns(text) {
        draft.columns = columns;
        return LineTaken::Ours;
    }
    if is_total(text, true) {
        return total(text, draft);
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    if let Some(taken) = plain_row(&words, draft) {
        return taken;
    }
    match words.as_slice() {
        // These counts are exact, and printed only if there are failures.
        [_, "2xx", "responses,", ..] if draft.run.duration_s.is_some() => return LineTaken::Again,
        [
            good,
            "2xx",
            "responses,",
            bad,
            "non",
            "2xx",
            "responses",
            ..,
        ] => {
            let failures = &mut draft.run.failures;
            failures.status = number::whole(bad);
            if failures.status.is_none() {
                draft.not_understood();
                return LineTaken::Ours;
            }
            let both = number::whole(good)
                .zip(failures.status)
                .map(|(good, bad)| good.saturating_add(bad));
            return keep(&mut draft.run.requests, both);
        }
        [all, "errors", timeouts, "timeouts)", ..] => errors(all, timeouts, draft),
        [_, "errors", ..] => draft.not_understood(),
        ["#", "of", "samples:", ..] | ["Req/Bytes", ..] => {}
        _ => return LineTaken::Foreign,
    }
    LineTaken::Ours
}

/// `166k errors (0 timeouts)`. Requests include them, unless these were the exact count of responses.
fn errors(all: &str, timeouts: &str, draft: &mut RunDraft) {
    let count = |word: &str| number::count(word.trim_matches(['(', ')']));
    let (Some((all, rounded)), Some((timeouts, _))) = (count(all), count(timeouts)) else {
        return draft.not_understood();
    };
    let run = &mut draft.run;
    run.failures.timeouts = Some(timeouts);
    run.failures.other = Some(all.saturating_sub(timeouts));
    if run.failures.status.is_some() {
        run.requests = run.requests.map(|responses| responses.saturating_add(all));
        run.rounded |= rounded;
    }
}

fn is_load(text: &str, draft: &mut RunDraft) -> bool {
    let Some((count, rest)) = text.split_once(' ') else {
        return false;
    };
    let Some(count) = number::whole(count) else {
        return false;
    };
    if rest.starts_with("connection") {
        draft.run.load.connections = Some(count);
        draft.run.load.pipelining = between(rest, "with ", " pipelining").and_then(number::whole);
    } else if rest == "workers" {
        draft.run.load.threads = Some(count);
    } else {
        return false;
    }
    true
}

fn is_frame(text: &str) -> bool {
    let ruled =
        |text: &str| text.len() > 3 && text.chars().all(|c| matches!(c, '-' | '|' | ':' | ' '));
    text.starts_with(['┌', '├', '└'])
        || (text.contains("--|") && ruled(text))
        || (!text.is_empty() && text.chars().all(|c| "─┬┼┴┐┤┘".contains(c)))
}

fn cells(text: &str) -> Vec<&str> {
    let lines = ['│', '|'];
    text.trim_matches(lines)
        .split(lines)
        .map(str::trim)
        .collect()
}

/// Reads cells by the names of their columns, because versions have different ones.
fn row(cells: &[&str], draft: &mut RunDraft) -> LineTaken {
    let Some((name, values)) = cells.split_first() else {
        return LineTaken::Foreign;
    };
    match *name {
        "Stat" => draft.columns = values.iter().map(|cell| (*cell).to_owned()).collect(),
        "Latency" | "Latency (ms)" => {
            let columns = draft.columns.clone();
            let us = |wanted: &str| {
                let at = columns.iter().position(|column| column == wanted)?;
                let unit = if name.ends_with("(ms)") { "ms" } else { "" };
                let value = values.get(at)?.replace(' ', "") + unit;
                number::micros(&value, Lone::Thousands)
            };
            if us("Avg").is_none() {
                draft.not_understood();
            }
            draft.moments(us("Avg"), us("Stdev"), us("Max"));
            for column in columns.iter().filter(|column| column.ends_with('%')) {
                draft.quantile(super::percent(column), us(column));
            }
        }
        "Req/Sec" => {
            let at = draft.columns.iter().position(|column| column == "Avg");
            let rate = at
                .and_then(|at| values.get(at))
                .copied()
                .unwrap_or_default();
            return draft.rate(rate, Lone::Thousands);
        }
        _ => {}
    }
    LineTaken::Ours
}

fn total(text: &str, draft: &mut RunDraft) -> LineTaken {
    let exact = draft.run.requests.is_some() && draft.run.duration_s.is_none();
    let sent = total_parts(text).and_then(|(count, _, _)| number::count(count));
    draft.run.sent = sent.map(|(count, _)| count);
    let taken = if exact {
        LineTaken::Ours
    } else {
        draft.requests(text.split_whitespace().next().unwrap_or_default())
    };
    if taken == LineTaken::Ours {
        take_total(text, draft, Lone::Decimal, 1000.0);
        draft.whole = true;
    }
    taken
}

fn from_json(value: &Value) -> Option<ToolRun> {
    at(value, &["latency", "p97_5"]).or_else(|| at(value, &["latency", "average"]))?;
    at(value, &["requests", "average"])?;
    let mut draft = RunDraft::new(Tool::Autocannon);
    let run = &mut draft.run;
    run.url = value.get("url").and_then(Value::as_str).map(str::to_owned);
    run.load.connections = count_at(value, &["connections"]);
    run.load.pipelining = count_at(value, &["pipelining"]);
    run.load.threads = count_at(value, &["workers"]).filter(|workers| *workers > 0);
    run.duration_s = at(value, &["duration"]);
    // Older versions have neither the total nor the classes of statuses.
    let responses = count_at(value, &["requests", "total"]);
    run.sent = count_at(value, &["requests", "sent"]);
    run.requests_per_s = at(value, &["requests", "average"]);
    run.bytes = at(value, &["throughput", "total"]);
    run.failures.timeouts = count_at(value, &["timeouts"]);
    let errors = count_at(value, &["errors"]);
    run.requests = responses.map(|responses| responses.saturating_add(errors.unwrap_or(0)));
    run.failures.other = errors.map(|all| all.saturating_sub(run.failures.timeouts.unwrap_or(0)));
    run.failures.status = count_at(value, &["non2xx"]);
    let us = |key: &str| at(value, &["latency", key]).map(|ms| ms * 1e3);
    draft.moments(
        us("average").or_else(|| us("mean")),
        us("stddev"),
        us("max"),
    );
    ended(draft, &value["latency"], 1e3, |key| key.strip_prefix('p'))
}
