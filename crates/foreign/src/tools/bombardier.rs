//! bombardier. Its rate is the mean of samples, and its text has no duration except the requested one.

use super::{Beginning, Meaning, RateOf, Tool, ToolRow, named_counts, percent, usual};
use crate::draft::{LineTaken, Part, RunDraft, add};
use crate::number::{self, Lone};

/// bombardier's output and flags.
pub static BOMBARDIER: ToolRow = ToolRow {
    flags: &[
        (&["c", "connections"], Meaning::Connections),
        (&["n", "requests"], Meaning::Requests),
        (&["d", "duration"], Meaning::Duration),
        (&["r", "rate"], Meaning::Rate),
        (&["t", "timeout"], Meaning::Timeout),
        (&["H", "header"], Meaning::Header),
    ],
    connections: 125,
    failures_within: true,
    limit_s: Some(2.0),
    rate_of: RateOf::Samples,
    ..usual(Tool::Bombardier, "bombardier", begins, take)
};

fn begins(text: &str) -> Option<Beginning> {
    match text {
        _ if text.starts_with("Bombarding ") => Beginning::FIRST,
        _ if text
            .split_whitespace()
            .eq(["Statistics", "Avg", "Stdev", "Max"]) =>
        {
            Beginning::LATER
        }
        _ if text.starts_with("Reqs/sec ") => Beginning::LATER,
        _ => None,
    }
}

fn take(text: &str, draft: &mut RunDraft) -> LineTaken {
    if let Some(rest) = text.strip_prefix("Bombarding ") {
        started(rest, draft);
        return LineTaken::Ours;
    }
    let us = |text: &str| number::micros(text, Lone::Thousands);
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        ["Statistics", "Avg", "Stdev", "Max"] if draft.run.requests_per_s.is_some() => {
            return LineTaken::Again;
        }
        ["Statistics", ..] => {}
        ["Reqs/sec", mean, ..] => return draft.rate(mean, Lone::Thousands),
        // Of the responses with one status only.
        ["Latency", "Distribution", of, ..] if *of != "(Total)" => draft.part = Part::Skipped,
        ["Latency", "Distribution", ..] => draft.part = Part::Quantiles,
        ["Latency", mean, sd, max] => draft.moments(us(mean), us(sd), us(max)),
        ["HTTP", "codes:"] => draft.part = Part::Statuses,
        ["Errors:"] => draft.part = Part::Errors,
        ["Throughput:", ..] => draft.whole = true,
        [share, _] if draft.part == Part::Skipped && percent(share).is_some() => {}
        [share, time] if draft.part == Part::Quantiles => {
            draft.quantile(percent(share), us(time));
        }
        [_, "-", ..] if draft.part == Part::Statuses => statuses(text, draft),
        [.., "-", count] if draft.part == Part::Errors => error(text, count, draft),
        _ if text.contains("[=") || text == "Done!" => {}
        _ => return LineTaken::Foreign,
    }
    LineTaken::Ours
}

/// `http://localhost:8080 for 10s using 125 connection(s)`, or `with 10000 request(s) using …`.
fn started(text: &str, draft: &mut RunDraft) {
    let load = &mut draft.run.load;
    let words: Vec<&str> = text.split_whitespace().collect();
    draft.run.url = words.first().map(|url| (*url).to_owned());
    for pair in words.windows(2) {
        match pair {
            ["for", time] => load.duration_s = number::seconds(time),
            ["with", count] => load.requests = number::whole(count),
            ["using", count] => load.connections = number::whole(count),
            _ => {}
        }
    }
}

/// `1xx - 0, 2xx - 748547, 3xx - 0, 4xx - 0, 5xx - 0` and `others - 0`, which are requests without a response.
fn statuses(text: &str, draft: &mut RunDraft) {
    for (name, count) in named_counts(&text.replace(" - ", " "), false) {
        let Some(count) = count else {
            return draft.not_understood();
        };
        let failures = &mut draft.run.failures;
        match name {
            "4xx" | "5xx" => add(&mut failures.status, count),
            "others" => add(&mut failures.other, count),
            _ => {}
        }
        add(&mut draft.run.requests, count);
    }
}

/// `dial tcp 127.0.0.1:8080: connect: connection refused - 100`. The count is part of `others`.
fn error(text: &str, count: &str, draft: &mut RunDraft) {
    let Some(count) = number::whole(count) else {
        return draft.not_understood();
    };
    if text.contains("timeout") || text.contains("timed out") {
        let failures = &mut draft.run.failures;
        failures.other = failures.other.map(|other| other.saturating_sub(count));
        add(&mut failures.timeouts, count);
    }
}
