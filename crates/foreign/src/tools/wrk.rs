//! wrk 3 and 4, and wrk2, which prints the same and more. wrk counts a response that took longer than its limit as a
//! timeout *and* as a request.

use super::{between, percent};
use crate::draft::{Draft, Part, Taken, keep};
use crate::number::{self, Kilo, Lone};
use crate::run::Tool;

/// `1234 requests in 10.01s, 5.00MB read`
pub fn is_total(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.contains(" requests in ")
        && text.ends_with(" read")
}

pub fn take(text: &str, draft: &mut Draft) -> Taken {
    if is_first(text, draft) || is_corrected(text, draft) {
        return Taken::Ours;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        [threads, "threads" | "thread", "and", connections, "connections" | "connection"] => {
            draft.run.load.threads = number::whole(threads);
            draft.run.load.connections = number::whole(connections);
        }
        ["Thread", "Stats", ..] => {}
        ["Latency", "Distribution", ..] => draft.part = Part::Quantiles,
        ["Latency", mean, sd, max, ..] => {
            let us = |word: &str| number::micros(word, Lone::Thousands);
            draft.moments(us(mean), us(sd), us(max));
        }
        ["Req/Sec", ..] => draft.part = Part::Summary,
        ["Socket", "errors:", ..] => sockets(text, draft),
        ["Non-2xx", "or", "3xx", "responses:", count, ..] => draft.run.failures.status = number::whole(count),
        ["Requests/sec:", rate, ..] => return draft.rate(rate, Lone::Thousands),
        ["Transfer/sec:", ..] => ended(draft),
        [share, time] if draft.part == Part::Quantiles && share.ends_with('%') => {
            draft.quantile(percent(share), number::micros(time, Lone::Thousands));
        }
        _ if is_total(text) => return total(text, draft),
        _ => return Taken::Foreign,
    }
    Taken::Ours
}

/// The last line. Lines about failures come before it, and only where there are any.
fn ended(draft: &mut Draft) {
    draft.whole = true;
    if draft.run.requests.is_some() {
        draft.run.failures.status.get_or_insert(0);
        draft.run.failures.timeouts.get_or_insert(0);
    }
}

fn is_first(text: &str, draft: &mut Draft) -> bool {
    let Some(rest) = text.strip_prefix("Running ") else { return false };
    let Some((duration, url)) = rest.split_once(" test @ ") else { return false };
    draft.run.load.duration_s = number::micros(duration, Lone::Decimal).map(|us| us / 1e6);
    draft.run.url = url.split_whitespace().next().map(str::to_owned);
    true
}

/// What only wrk2 prints.
fn is_corrected(text: &str, draft: &mut Draft) -> bool {
    if text.starts_with("Thread calibration:") || text.contains("(HdrHistogram - ") {
        draft.run.tool = Tool::Wrk2;
        // The second distribution is the one that leaves out waiting.
        draft.part = if text.contains("- Recorded") { Part::Quantiles } else { Part::Skipped };
        return true;
    }
    if text.starts_with("Detailed Percentile spectrum") {
        draft.part = Part::Skipped;
        return true;
    }
    let spectrum =
        |text: &str| text.split_whitespace().count() == 4 && text.starts_with(|c: char| c.is_ascii_digit());
    let rest = text.starts_with("#[") || text.starts_with("Value ") || text.starts_with("-----");
    draft.part == Part::Skipped && (rest || spectrum(text) || text.ends_with('s') && text.contains('%'))
}

fn total(text: &str, draft: &mut Draft) -> Taken {
    let count = text.split_whitespace().next().unwrap_or_default();
    let taken = draft.requests(count);
    if taken == Taken::Ours {
        let seconds =
            between(text, " requests in ", ", ").and_then(|time| number::micros(time, Lone::Thousands));
        keep(&mut draft.run.duration_s, seconds.map(|us| us / 1e6));
        let size = text.rsplit_once(", ").and_then(|(_, size)| size.strip_suffix(" read"));
        draft.run.bytes = size.and_then(|size| number::bytes(size, Kilo::Binary));
    }
    taken
}

fn sockets(text: &str, draft: &mut Draft) {
    let failures = &mut draft.run.failures;
    for part in text.split([':', ',']) {
        if let Some((name, count)) = part.trim().split_once(' ') {
            let count = number::whole(count);
            match name {
                "connect" => failures.connect = count,
                "read" => failures.read = count,
                "write" => failures.write = count,
                "timeout" => failures.timeouts = count,
                _ => {}
            }
        }
    }
}
