//! hey. It prints neither address nor connections, and its requests per second are of responses with any status.

use super::{Beginning, Divides, Facts, Meaning, Reader, oha, percent};
use crate::draft::{Draft, Part, Taken, add, keep};
use crate::number::{self, Lone};
use crate::tools;

/// Reads what hey prints.
pub struct Hey;

static FACTS: Facts = Facts {
    flags: &[
        ("c", Meaning::Connections),
        ("n", Meaning::Requests),
        ("z", Meaning::Duration),
        ("q", Meaning::RateEach),
        ("H", Meaning::Header),
        ("disable-keepalive", Meaning::Close),
        ("disable-compression", Meaning::NoCompression),
    ],
    long_behind_one_dash: true,
    sends_accept_encoding: true,
    divides: Divides::RequestsByConnections,
    ..Facts::USUAL
};

impl Reader for Hey {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn begins(&self, text: &str) -> Option<Beginning> {
        if text == "Summary:" { Beginning::FIRST_OF_SEVERAL } else { None }
    }

    fn take(&self, text: &str, draft: &mut Draft) -> Taken {
        if oha::instead_of_hey(text, draft) { tools::take(text, draft) } else { take(text, draft) }
    }
}

fn take(text: &str, draft: &mut Draft) -> Taken {
    match text {
        "Summary:" => return if draft.run.requests_per_s.is_some() { Taken::Again } else { Taken::Ours },
        "Response time histogram:" | "Details (average, fastest, slowest):" => draft.part = Part::Skipped,
        "Latency distribution:" => draft.part = Part::Quantiles,
        "Status code distribution:" => draft.part = Part::Statuses,
        "Error distribution:" => draft.part = Part::Errors,
        _ => return figure(text, draft),
    }
    Taken::Ours
}

fn figure(text: &str, draft: &mut Draft) -> Taken {
    if draft.part != Part::Summary {
        return listed(text, draft);
    }
    let Some((name, value)) = text.split_once(':') else {
        return if text.is_empty() { Taken::Ours } else { Taken::Foreign };
    };
    let first = value.split_whitespace().next().unwrap_or_default();
    let seconds = number::figure(first, Lone::Decimal);
    let run = &mut draft.run;
    match name {
        "Total" => return keep(&mut run.duration_s, seconds),
        "Slowest" => run.latency.max_us = seconds.map(|s| s * 1e6),
        "Fastest" => {}
        "Average" => {
            let max = run.latency.max_us;
            draft.moments(seconds.map(|s| s * 1e6), None, max);
        }
        "Requests/sec" => return draft.rate(first, Lone::Decimal),
        "Total data" => run.bytes = number::figure(first, Lone::Thousands),
        "Size/request" => {}
        _ => return Taken::Foreign,
    }
    Taken::Ours
}

fn listed(text: &str, draft: &mut Draft) -> Taken {
    let count = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match (draft.part, count) {
        (Part::Statuses, Some((status, rest))) => {
            let responses = rest.split_whitespace().next().and_then(number::whole).unwrap_or(0);
            add(&mut draft.run.requests, responses);
            // Redirects are followed, so what is left of 3xx is an answer like another.
            let good = status.starts_with(['2', '3']);
            add(&mut draft.run.failures.status, if good { 0 } else { responses });
            draft.whole = true;
        }
        (Part::Errors, Some((count, cause))) => {
            error(number::whole(count).unwrap_or(0), cause, draft);
            draft.whole = true;
        }
        (Part::Quantiles, None) => {
            let words: Vec<&str> = text.split_whitespace().collect();
            let [share, "in", time, "secs" | "sec", ..] = words.as_slice() else { return Taken::Foreign };
            draft.quantile(percent(share), number::figure(time, Lone::Decimal).map(|s| s * 1e6));
        }
        (Part::Skipped, _) if text.ends_with(" secs") || text.contains('[') || text.contains('|') => {}
        _ => return Taken::Foreign,
    }
    Taken::Ours
}

/// A failure by its cause, in the words of Go's HTTP client or of oha's.
pub fn error(count: u64, cause: &str, draft: &mut Draft) {
    let failures = &mut draft.run.failures;
    let says = |words: &[&str]| words.iter().any(|word| cause.contains(word));
    match () {
        () if says(&["Timeout", "timeout", "deadline exceeded", "timed out"]) => {
            add(&mut failures.timeouts, count)
        }
        () if says(&["dial ", "refused", "Connection closed before", "connect"]) => {
            add(&mut failures.connect, count)
        }
        () if says(&["reset", "read ", "EOF"]) => add(&mut failures.read, count),
        () if says(&["write ", "broken pipe"]) => add(&mut failures.write, count),
        () => add(&mut failures.other, count),
    }
}
