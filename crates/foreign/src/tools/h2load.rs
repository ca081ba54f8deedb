//! h2load, of nghttp2. It prints minimum, maximum, mean and deviation of times. Later versions also print
//! median, p95 and p99.

use super::{Beginning, Meaning, Tool, ToolRow, between, named_counts, starts, usual};
use crate::draft::{LineTaken, RunDraft, add, keep};
use crate::number::{self, Lone};
use crate::run::ToolRun;

/// h2load's output and flags.
pub static H2LOAD: ToolRow = ToolRow {
    flags: &[
        (&["c", "clients"], Meaning::Connections),
        (&["n", "requests"], Meaning::Requests),
        (&["t", "threads"], Meaning::Threads),
        (&["D", "duration"], Meaning::Duration),
        (&["m", "max-concurrent-streams"], Meaning::Pipelining),
        (&["rps"], Meaning::RateEach),
        (&["H", "header"], Meaning::Header),
    ],
    ..usual(Tool::H2load, "h2load", begins, take)
};

fn begins(text: &str) -> Option<Beginning> {
    match text {
        "starting benchmark..." => Beginning::FIRST,
        _ if text.starts_with("finished in ") && text.contains("req/s") => Beginning::LATER,
        _ => None,
    }
}

fn take(text: &str, draft: &mut RunDraft) -> LineTaken {
    if let Some(rest) = text.strip_prefix("finished in ") {
        return finished(rest, draft);
    }
    let Some((name, value)) = text.split_once(':') else {
        return plain(text, draft);
    };
    let words: Vec<&str> = value.split_whitespace().collect();
    let us = |at: usize| number::us(words.get(at)?);
    match name.trim_end() {
        "requests" => {
            requests(value, draft);
            if draft.run.requests.is_none() {
                draft.not_understood();
            }
        }
        "status codes" => draft.whole = true,
        "traffic" => {
            // `traffic: 1.15MB (1202030) total, …`: the exact count is in brackets.
            let exact =
                between(value, "(", ")").and_then(|count| number::figure(count, Lone::Thousands));
            let rounded = || words.first().and_then(|size| number::bytes(size, 1024.0));
            draft.run.bytes = exact.or_else(rounded);
        }
        // min, max, mean, sd
        "time for request" => draft.moments(us(2), us(3), us(1)),
        // Later versions: min, max, median, p95, p99, mean, sd
        "request" => {
            draft.moments(us(5), us(6), us(1));
            for (percent, at) in [(50.0, 2), (95.0, 3), (99.0, 4)] {
                draft.quantile(Some(percent), us(at));
            }
        }
        "connect" | "TTFB" => {}
        "Application protocol" => value.trim().clone_into(&mut draft.run.near),
        "req/s" => draft.whole = true,
        _ => return plain(text, draft),
    }
    LineTaken::Ours
}

fn plain(text: &str, draft: &mut RunDraft) -> LineTaken {
    // `spawning thread #0: 16 total client(s). 1000 total requests`, one line per thread.
    if text.starts_with("spawning thread") {
        add(&mut draft.run.load.threads, 1);
        if let Some(clients) = between(text, ": ", " total client(s)").and_then(number::whole) {
            add(&mut draft.run.load.connections, clients);
        }
        return LineTaken::Ours;
    }
    let known = "starting benchmark|Warm-up |Main benchmark|Stopped all clients|min max mean|min  |Stopping all|time for connect:|time to 1st byte:|progress:|\
                 TLS Protocol:|Cipher:|Server Temp Key:|UDP datagram:|Process Request Failure:|\
                 client could not connect";
    if starts(text, known) {
        LineTaken::Ours
    } else {
        LineTaken::Foreign
    }
}

/// `finished in 1.00s, 1234.50 req/s, 5.00MB/s`
fn finished(rest: &str, draft: &mut RunDraft) -> LineTaken {
    let mut parts = rest.split(", ");
    let seconds = parts.next().and_then(number::seconds);
    let taken = keep(&mut draft.run.duration_s, seconds);
    if taken == LineTaken::Ours
        && let Some(rate) = parts.next().and_then(|part| part.strip_suffix(" req/s"))
    {
        return draft.rate(rate, Lone::Decimal);
    }
    taken
}

/// `100 total, 100 started, 96 done, 90 succeeded, 10 failed, 8 errored, 3 timeout`
fn requests(value: &str, draft: &mut RunDraft) {
    let count = |wanted: &str| {
        named_counts(value, true)
            .find(|(name, _)| *name == wanted)?
            .1
    };
    let (errored, timeouts) = (count("errored"), count("timeout"));
    // Failed are statuses and errors together. Errors are streams that were reset, which are included in
    // those done, and those abandoned with their connection, which are not. Timeouts are included in the
    // latter.
    let bad = count("failed")
        .zip(errored)
        .map(|(failed, errored)| failed.saturating_sub(errored));
    let responses = count("succeeded")
        .zip(bad)
        .map(|(good, bad)| good.saturating_add(bad));
    let ToolRun {
        requests, failures, ..
    } = &mut draft.run;
    *requests = responses.or(count("done"));
    failures.status = bad;
    failures.timeouts = timeouts;
    failures.other = errored.map(|all| all.saturating_sub(timeouts.unwrap_or(0)));
}
