//! rewrk. Its table of percentiles has means of the slowest requests, which are no quantiles, and is not read.

use super::{Beginning, Meaning, Tool, ToolRow, between, usual};
use crate::draft::{LineTaken, Part, RunDraft, add};
use crate::number::{self, Lone};

/// rewrk's output and flags.
pub static REWRK: ToolRow = ToolRow {
    flags: &[
        (&["c", "connections"], Meaning::Connections),
        (&["t", "threads"], Meaning::Threads),
        (&["d", "duration"], Meaning::Duration),
    ],
    ..usual(Tool::Rewrk, "rewrk", begins, take)
};

fn begins(text: &str) -> Option<Beginning> {
    Beginning::FIRST
        .filter(|_| text.starts_with("Benchmarking ") && text.contains(" connections @ "))
}

fn take(text: &str, draft: &mut RunDraft) -> LineTaken {
    if text.starts_with("Benchmarking ") {
        let run = &mut draft.run;
        run.load.connections =
            between(text, "Benchmarking ", " connections").and_then(number::whole);
        run.url = between(text, " @ ", " for ").map(str::to_owned);
        let length = text.rsplit_once(" for ").and_then(|(_, length)| {
            let (count, unit) = length.split_once(' ')?;
            let unit_s = match unit.trim_end_matches("(s)").trim_end_matches('s') {
                "second" => 1.0,
                "minute" => 60.0,
                "hour" => 3600.0,
                _ => return None,
            };
            Some(number::decimal(count)? * unit_s)
        });
        run.load.duration_s = length;
        return LineTaken::Ours;
    }
    let us = |text: &str| number::micros(text, Lone::Thousands);
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        ["Latencies:"] => draft.part = Part::Summary,
        ["Avg", "Stdev", "Min", "Max"] | ["Requests:" | "Transfer:"] => {}
        ["Total:", count, "Req/Sec:", rate] => {
            draft.requests(count);
            return draft.rate(rate, Lone::Thousands);
        }
        ["Total:", ..] => draft.whole = true,
        [mean, sd, min, max] if us(min).is_some() && draft.run.latency.mean_us.is_none() => {
            draft.moments(us(mean), us(sd), us(max));
        }
        [count, "Errors:" | "errors:", ..] if number::whole(count).is_some() => {
            add(
                &mut draft.run.failures.other,
                number::whole(count).unwrap_or(0),
            );
        }
        ["+", ..] => {}
        _ if text.contains('%') || text.contains("Percentile") => {}
        _ => return LineTaken::Foreign,
    }
    LineTaken::Ours
}
