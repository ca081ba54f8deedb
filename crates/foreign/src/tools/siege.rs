//! siege 3 and 4, the text. Its transactions are requests that got a response; failed ones are counted apart, and
//! include responses with an error status.

use super::{Beginning, Meaning, Tool, ToolRow, between, usual};
use crate::draft::{LineTaken, RunDraft};
use crate::number::{self, Lone};

/// siege's output and flags.
pub static SIEGE: ToolRow = ToolRow {
    flags: &[
        (&["c", "concurrent"], Meaning::Connections),
        (&["t", "time"], Meaning::Duration),
        (&["H", "header"], Meaning::Header),
    ],
    rounds_bytes: true,
    ..usual(Tool::Siege, "siege", begins, take)
};

fn begins(text: &str) -> Option<Beginning> {
    match text {
        _ if text.starts_with("** SIEGE ") => Beginning::FIRST,
        _ if text.starts_with("Transactions:") && text.ends_with(" hits") => Beginning::LATER,
        _ => None,
    }
}

/// `0.60 secs`, `596.77 ms` since version 4.1, or seconds without a unit.
fn time_us(words: &[&str]) -> Option<f64> {
    let figure = number::decimal(words.first()?)?;
    let unit = words.get(1).and_then(|unit| number::unit_us(unit));
    Some(figure * unit.unwrap_or(1e6))
}

fn take(text: &str, draft: &mut RunDraft) -> LineTaken {
    if text.starts_with("** Preparing ") {
        let users = between(text, "** Preparing ", " concurrent users");
        draft.run.load.connections = users.and_then(number::whole);
        return LineTaken::Ours;
    }
    let Some((name, value)) = text.split_once(':') else {
        let known = [
            "** SIEGE",
            "The server is now under siege",
            "Lifting the server siege",
            "done.",
        ];
        return match known.iter().any(|known| text.starts_with(known)) {
            true => LineTaken::Ours,
            false => LineTaken::Foreign,
        };
    };
    let words: Vec<&str> = value.split_whitespace().collect();
    let figure = words.first().and_then(|word| number::decimal(word));
    let count = words.first().and_then(|word| number::whole(word));
    let run = &mut draft.run;
    match name {
        "Transactions" if run.requests.is_some() => return LineTaken::Again,
        "Transactions" => run.requests = count,
        "Availability" => run.success_share = figure.map(|percent| percent / 100.0),
        "Elapsed time" => run.duration_s = figure,
        "Data transferred" => {
            run.bytes = number::bytes(&words.concat(), 1024.0);
        }
        // siege prints two decimals, so less than 5 ms is printed as zero.
        "Response time" => draft.moments(time_us(&words).filter(|us| *us > 0.0), None, None),
        "Transaction rate" => {
            let rate = words.first().copied().unwrap_or_default();
            return draft.rate(rate, Lone::Decimal);
        }
        "Failed transactions" => run.failures.other = count,
        "Longest transaction" => run.latency.max_us = time_us(&words).filter(|us| *us > 0.0),
        "Shortest transaction" => draft.whole = true,
        "Throughput" | "Concurrency" | "Successful transactions" => {}
        _ => return LineTaken::Foreign,
    }
    LineTaken::Ours
}
