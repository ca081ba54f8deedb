//! vegeta's report, text and JSON. It sends at a rate, so its latencies are open-loop ones.

use serde_json::Value;

use super::{
    Beginning, Meaning, RateOf, Tool, ToolPace, ToolRow, at, count_at, counts_at, ended, starts,
    usual,
};
use crate::draft::{LineTaken, RunDraft, keep};
use crate::number;
use crate::run::ToolRun;

/// vegeta's output and flags.
pub static VEGETA: ToolRow = ToolRow {
    flags: &[
        (&["rate"], Meaning::Rate),
        (&["duration"], Meaning::Duration),
        (&["header"], Meaning::Header),
        (&["keepalive"], Meaning::Keep),
    ],
    long_behind_one_dash: true,
    verbs: &["attack", "report"],
    reads_pipe: true,
    sends_accept_encoding: true,
    // Go's client requests gzip by default and counts decoded bytes.
    counts_unpacked_bytes: true,
    counts_timeouts: true,
    rate_of: RateOf::Successes,
    pace: ToolPace::Rate,
    json: Some((from_json, &["\"bytes_in\"", "\"latencies\""])),
    ..usual(Tool::Vegeta, "vegeta", begins, take)
};

fn begins(text: &str) -> Option<Beginning> {
    let row = |titles: &str| starts(text, titles) && text.contains('[') && text.contains("total, ");
    match text {
        _ if text.starts_with("Requests") && text.contains("[total, rate") => {
            Beginning::FIRST_OF_SEVERAL
        }
        _ if row("Requests|Duration|Latencies") => Beginning::LATER,
        _ => None,
    }
}

/// `Requests      [total, rate, throughput]  1200, 120.00, 65.87`: names in brackets, figures in the same
/// order.
fn take(text: &str, draft: &mut RunDraft) -> LineTaken {
    if text.starts_with("Error Set:") {
        draft.whole = true;
        return LineTaken::Ours;
    }
    let Some((title, rest)) = text.split_once('[') else {
        return LineTaken::Foreign;
    };
    let Some((names, values)) = rest.split_once(']') else {
        return LineTaken::Foreign;
    };
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    let values: Vec<&str> = values.split(',').map(str::trim).collect();
    let value = |name: &str| {
        names
            .iter()
            .position(|known| *known == name)
            .and_then(|at| values.get(at))
            .copied()
    };
    match title.trim() {
        "Requests" => {
            let taken = draft.requests(value("total").unwrap_or_default());
            if taken == LineTaken::Ours {
                let rate = |name| value(name).and_then(number::decimal);
                draft.run.load.rate_per_s = rate("rate").filter(|rate| *rate > 0.0);
                draft.run.requests_per_s = rate("throughput").or_else(|| rate("rate"));
            }
            return taken;
        }
        "Duration" => {
            draft.run.duration_s = value("total").and_then(number::seconds);
            keep(
                &mut draft.run.load.duration_s,
                value("attack").and_then(number::seconds),
            );
        }
        "Latencies" => {
            let us = |name: &str| value(name).and_then(number::us);
            draft.moments(us("mean"), None, us("max"));
            names
                .iter()
                .for_each(|name| draft.quantile(number::decimal(name), us(name)));
        }
        "Bytes In" => draft.run.bytes = value("total").and_then(number::decimal),
        "Bytes Out" | "Success" => {}
        // `[code:count]  0:535  200:665`
        "Status Codes" => {
            let pairs = rest
                .split_whitespace()
                .filter_map(|word| word.split_once(':'));
            statuses(
                pairs.map(|(code, count)| (code, number::whole(count).unwrap_or(0))),
                draft,
            );
            draft.whole = true;
        }
        _ => return LineTaken::Foreign,
    }
    LineTaken::Ours
}

/// Responses by status. 0 stands for requests without one.
fn statuses<'t>(counts: impl Iterator<Item = (&'t str, u64)>, draft: &mut RunDraft) {
    let (mut status, mut other) = (0_u64, 0_u64);
    for (code, count) in counts {
        let into = match code.chars().next() {
            Some('0') => &mut other,
            Some('4'..='9') => &mut status,
            _ => continue,
        };
        *into = into.saturating_add(count);
    }
    (draft.run.failures.status, draft.run.failures.other) = (Some(status), Some(other));
}

fn from_json(value: &Value) -> Option<ToolRun> {
    at(value, &["bytes_in", "total"])?;
    let mut draft = RunDraft::new(Tool::Vegeta);
    draft.run.requests = count_at(value, &["requests"]);
    draft.run.load.rate_per_s = at(value, &["rate"]).filter(|rate| *rate > 0.0);
    draft.run.requests_per_s = at(value, &["throughput"]).or(draft.run.load.rate_per_s);
    draft.run.bytes = at(value, &["bytes_in", "total"]);
    let seconds = |key| at(value, &[key]).map(|ns| ns / 1e9);
    draft.run.load.duration_s = seconds("duration");
    draft.run.duration_s =
        seconds("duration").map(|attack| attack + seconds("wait").unwrap_or(0.0));
    let us = |key: &str| at(value, &["latencies", key]).map(|ns| ns / 1e3);
    draft.moments(us("mean"), None, us("max"));
    statuses(counts_at(value, "status_codes"), &mut draft);
    ended(draft, &value["latencies"], 1e-3, |key| {
        key.strip_suffix("th")
    })
}
