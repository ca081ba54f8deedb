//! vegeta's report, text and JSON. It sends at a rate, so its latencies are open-loop ones.

use serde_json::Value;

use super::{
    Beginning, LateResponses, Meaning, RateOf, Tool, ToolPace, ToolRow, at, count_at, counts_at,
    ended, percent, starts, usual,
};
use crate::draft::{LineTaken, Part, RunDraft, keep};
use crate::number::{self, Lone};
use crate::run::ToolRun;

/// vegeta's output and flags.
pub static VEGETA: ToolRow = ToolRow {
    flags: &[
        (&["rate"], Meaning::Rate),
        (&["duration"], Meaning::Duration),
        (&["header"], Meaning::Header),
        (&["keepalive"], Meaning::Keep),
        (&["timeout"], Meaning::Timeout),
    ],
    long_behind_one_dash: true,
    verbs: &["attack", "report"],
    reads_pipe: true,
    sends_accept_encoding: true,
    // Go's client requests gzip by default and counts decoded bytes.
    counts_unpacked_bytes: true,
    failures_within: true,
    late: LateResponses::AtLimit,
    limit_s: Some(30.0),
    rate_of: RateOf::Successes,
    pace: ToolPace::Rate,
    json: Some((from_json, &["\"bytes_in\"", "\"latencies\""])),
    ..usual(Tool::Vegeta, "vegeta", begins, take)
};

fn begins(text: &str) -> Option<Beginning> {
    let row = |titles: &str| starts(text, titles) && text.contains('[') && text.contains("total, ");
    match text {
        // Old versions do not print the rate.
        _ if text.starts_with("Requests")
            && (text.contains("[total, rate") || text.contains("[total]")) =>
        {
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
        draft.part = Part::Errors;
        return LineTaken::Ours;
    }
    if draft.part == Part::Errors && begins(text).is_none() {
        return cause(text, draft);
    }
    let Some((title, rest)) = text.split_once('[') else {
        return LineTaken::Foreign;
    };
    let Some((names, values)) = rest.split_once(']') else {
        return LineTaken::Foreign;
    };
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    // With separators of thousands, if somebody added these.
    let values: Vec<&str> = values.split(", ").map(str::trim).collect();
    let value = |name: &str| {
        names
            .iter()
            .position(|known| *known == name)
            .and_then(|at| values.get(at))
            .copied()
    };
    let listed = !matches!(title.trim(), "Success" | "Status Codes");
    if listed && names.len() != values.len() {
        draft.not_understood();
        return LineTaken::Ours;
    }
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
        "Bytes In" => {
            let total = value("total");
            draft.run.bytes = total.and_then(|total| number::figure(total, Lone::Thousands));
        }
        "Bytes Out" => {}
        "Success" => {
            let percent = values.first().and_then(|value| percent(value));
            draft.run.success_share = percent.map(|percent| percent / 100.0);
        }
        // `[code:count]  0:535  200:665`
        "Status Codes" => {
            let pairs = rest
                .split_once(']')
                .map_or(rest, |(_, pairs)| pairs)
                .split_whitespace()
                .filter_map(|word| word.split_once(':'));
            let pairs: Vec<(&str, Option<u64>)> = pairs
                .map(|(code, count)| (code, number::whole(count)))
                .collect();
            if pairs.is_empty() || pairs.iter().any(|(_, count)| count.is_none()) {
                draft.not_understood();
            } else {
                let pairs = pairs
                    .into_iter()
                    .map(|(code, count)| (code, count.unwrap_or(0)));
                statuses(pairs, draft);
            }
            draft.whole = true;
        }
        _ => return LineTaken::Foreign,
    }
    LineTaken::Ours
}

/// A line below `Error Set:`: `500 Internal Server Error`, or the error of a request without a response. They
/// have no counts, so only a single kind says what the requests without a response died of.
fn cause(text: &str, draft: &mut RunDraft) -> LineTaken {
    let status = text.get(..4).is_some_and(|code| {
        code.ends_with(' ') && code.trim_end().chars().all(|c| c.is_ascii_digit())
    });
    let lost = starts(
        text,
        "Get |Post |Put |Head |Delete |Patch |Options |dial |read |write |http: |net/http: |http2: |tls: |x509: |lookup ",
    ) || [
        "EOF",
        "deadline exceeded",
        "Timeout",
        "timeout",
        "refused",
        "reset by peer",
    ]
    .iter()
    .any(|word| text.contains(word));
    if !status && !lost {
        draft.part = Part::Summary;
        return LineTaken::Foreign;
    }
    let late = ["deadline exceeded", "Timeout", "timeout"]
        .iter()
        .any(|word| text.contains(word));
    let failures = &mut draft.run.failures;
    if lost && late && !draft.several {
        failures.timeouts = failures.other.take().or(failures.timeouts);
    } else if lost {
        // Two kinds, of unknown counts.
        draft.several = true;
        failures.other = failures.timeouts.take().or(failures.other);
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
    draft.run.success_share = at(value, &["success"]);
    let seconds = |key| at(value, &[key]).map(|ns| ns / 1e9);
    draft.run.load.duration_s = seconds("duration");
    draft.run.duration_s =
        seconds("duration").map(|attack| attack + seconds("wait").unwrap_or(0.0));
    let us = |key: &str| at(value, &["latencies", key]).map(|ns| ns / 1e3);
    draft.moments(us("mean"), None, us("max"));
    statuses(counts_at(value, "status_codes"), &mut draft);
    let errors = value.get("errors").and_then(Value::as_array);
    for error in errors.into_iter().flatten().filter_map(Value::as_str) {
        cause(error, &mut draft);
    }
    ended(draft, &value["latencies"], 1e-3, |key| {
        key.strip_suffix("th")
    })
}
