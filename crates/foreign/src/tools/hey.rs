//! hey, and oha, which prints the same in other units. Requests per second of both include failures. For oha
//! they also include requests that the end of the run interrupted. hey prints neither address nor
//! connections. oha also writes JSON.

use serde_json::Value;

use super::{
    Beginning, Divides, Meaning, RateOf, Tool, ToolRow, at, counts_at, ended, percent, usual,
};
use crate::draft::{LineTaken, Part, RunDraft, add, keep};
use crate::number::{self, Lone};
use crate::run::ToolRun;

/// hey's output and flags.
pub static HEY: ToolRow = ToolRow {
    flags: &[
        (&["c"], Meaning::Connections),
        (&["n"], Meaning::Requests),
        (&["z"], Meaning::Duration),
        (&["q"], Meaning::RateEach),
        (&["H"], Meaning::Header),
        (&["disable-keepalive"], Meaning::Close),
        (&["disable-compression"], Meaning::NoCompression),
        (&["t"], Meaning::Timeout),
    ],
    long_behind_one_dash: true,
    connections: 50,
    sends_accept_encoding: true,
    failures_within: true,
    limit_s: Some(20.0),
    rate_of: RateOf::Requests,
    divides: Divides::RequestsByConnections,
    ..usual(Tool::Hey, "hey", begins, take)
};

fn begins(text: &str) -> Option<Beginning> {
    let timed = ["Total:", "Slowest:", "Fastest:"]
        .iter()
        .any(|name| text.starts_with(name) && text.trim_end_matches('.').ends_with(" secs"));
    match text {
        "Summary:" => Beginning::FIRST_OF_SEVERAL,
        _ if timed => Beginning::LATER,
        _ => None,
    }
}

/// oha's output and flags. `Summary:` is hey's too, and the line after it distinguishes them.
pub static OHA: ToolRow = ToolRow {
    flags: &[
        (&["c"], Meaning::Connections),
        (&["n"], Meaning::Requests),
        (&["z"], Meaning::Duration),
        (&["q"], Meaning::Rate),
        (&["p"], Meaning::Pipelining),
        (&["H"], Meaning::Header),
        (&["disable-keepalive"], Meaning::Close),
        (&["disable-compression"], Meaning::NoCompression),
        (&["t"], Meaning::Timeout),
    ],
    sends_accept_encoding: true,
    failures_within: true,
    rate_of: RateOf::Requests,
    json: Some((from_json, &["\"successRate\"", "\"summary\""])),
    ..usual(
        Tool::Oha,
        "oha",
        |text| Beginning::LATER.filter(|_| text.starts_with("Success rate:")),
        take,
    )
};

/// oha's message for requests in flight when `-z` ends, which are no fault of the service.
const DEADLINE: &str = "aborted due to deadline";

fn take(text: &str, draft: &mut RunDraft) -> LineTaken {
    match text {
        "Summary:" if draft.run.requests_per_s.is_some() => return LineTaken::Again,
        "Summary:" => {}
        "Response time distribution:" | "Latency distribution:" => draft.part = Part::Quantiles,
        "Status code distribution:" => draft.part = Part::Statuses,
        "Error distribution:" => draft.part = Part::Errors,
        _ if text.ends_with("histogram:") || text.starts_with("Details (") => {
            draft.part = Part::Skipped
        }
        _ if draft.part == Part::Summary && !is_listed(text) => return summary(text, draft),
        _ => return listed(text, draft),
    }
    LineTaken::Ours
}

/// Whether a line is recognisable without its title: `99% in 0.0012 secs`, `[200] 1000 responses`.
fn is_listed(text: &str) -> bool {
    text.contains("% in ") || (text.starts_with('[') && text.ends_with(" responses"))
}

fn summary(text: &str, draft: &mut RunDraft) -> LineTaken {
    let Some((name, value)) = text.split_once(':') else {
        return if text.is_empty() {
            LineTaken::Ours
        } else {
            LineTaken::Foreign
        };
    };
    let value = value.trim();
    let run = &mut draft.run;
    match name {
        "Success rate" if run.duration_s.is_none() => run.tool = Tool::Oha,
        "Success rate" | "Fastest" | "Size/request" | "Size/sec" | "Response Size per Request" => {}
        // ghz prints the number of calls, and hey does not.
        "Count" => draft.refused = Some("ghz"),
        "Total" => return keep(&mut run.duration_s, time_us(value).map(|us| us / 1e6)),
        "Slowest" => run.latency.max_us = time_us(value),
        "Average" => {
            let max = run.latency.max_us;
            draft.moments(time_us(value), None, max);
        }
        "Requests/sec" => return draft.rate(value, Lone::Decimal),
        // The second name is that of boom.
        "Total data" | "Total Data Received" => run.bytes = number::bytes(value, 1024.0),
        _ => return LineTaken::Foreign,
    }
    LineTaken::Ours
}

/// `1.2345 ms` or `0.0012 secs`.
fn time_us(value: &str) -> Option<f64> {
    let (number, unit) = value.trim().split_once(' ')?;
    let unit = unit.split_whitespace().next()?.trim_end_matches('.');
    let us = number::unit_us(unit)?;
    Some(number::decimal(number)? * us)
}

/// A line below a title: `50% in 0.0012 secs`, `[200] 1000 responses`, or `[3] what went wrong`.
fn listed(text: &str, draft: &mut RunDraft) -> LineTaken {
    match (
        draft.part,
        text.strip_prefix('[').and_then(|rest| rest.split_once(']')),
    ) {
        (Part::Quantiles | Part::Summary, None) => {
            let Some((share, time)) = text.split_once(" in ") else {
                return LineTaken::Foreign;
            };
            draft.quantile(percent(share.trim()), time_us(time));
            return LineTaken::Ours;
        }
        (Part::Skipped, _)
            if [" ms", " sec", "[", "|"]
                .iter()
                .any(|mark| text.contains(mark)) =>
        {
            return LineTaken::Ours;
        }
        (Part::Statuses | Part::Summary, Some((code, rest))) => {
            let count = rest.split_whitespace().next().and_then(number::whole);
            // Statuses of gRPC have names.
            match (code.parse::<u16>(), count) {
                (Ok(_), Some(count)) => status(code, count, draft),
                (Err(_), Some(_)) if rest.contains("responses") => draft.refused = Some("ghz"),
                (Ok(_) | Err(_), _) => draft.not_understood(),
            }
        }
        (Part::Errors, Some((count, cause))) => match number::whole(count) {
            Some(count) => error(count, cause, draft),
            None => draft.not_understood(),
        },
        _ => return LineTaken::Foreign,
    }
    draft.whole = true;
    LineTaken::Ours
}

/// Responses of a status. Redirects are followed, so a remaining 3xx is an ordinary response.
fn status(code: &str, responses: u64, draft: &mut RunDraft) {
    add(&mut draft.run.requests, responses);
    add(
        &mut draft.run.failures.status,
        if code.starts_with(['2', '3']) {
            0
        } else {
            responses
        },
    );
}

/// A failure by its cause, in the words of Go's HTTP client or of oha's.
fn error(count: u64, cause: &str, draft: &mut RunDraft) {
    // Also counted in requests/s.
    add(&mut draft.run.requests, count);
    if draft.run.tool == Tool::Oha && cause.contains(DEADLINE) {
        return;
    }
    let failures = &mut draft.run.failures;
    // Skips `Get "http://127.0.0.1/timeout"`, which does not describe the cause.
    let why = cause.split_once("\": ").map_or(cause, |(_, why)| why);
    let says = |words: &[&str]| words.iter().any(|word| why.contains(word));
    let kind = match () {
        () if says(&["Timeout", "timeout", "deadline exceeded", "timed out"]) => {
            &mut failures.timeouts
        }
        () if says(&["dial ", "refused"]) => &mut failures.connect,
        // Checked before messages that contain "connection", because of `connection reset by peer`.
        () if says(&["reset", "read ", "EOF"]) => &mut failures.read,
        () if says(&["Connection closed before", "connect"]) => &mut failures.connect,
        () if says(&["write ", "broken pipe"]) => &mut failures.write,
        () => &mut failures.other,
    };
    add(kind, count);
}

fn from_json(value: &Value) -> Option<ToolRun> {
    value.get("statusCodeDistribution")?.as_object()?;
    value.get("summary")?.get("successRate")?;
    let mut draft = RunDraft::new(Tool::Oha);
    for (code, responses) in counts_at(value, "statusCodeDistribution") {
        status(code, responses, &mut draft);
    }
    for (cause, count) in counts_at(value, "errorDistribution") {
        error(count, cause, &mut draft);
    }
    draft.run.duration_s = at(value, &["summary", "total"]);
    draft.run.requests_per_s = at(value, &["summary", "requestsPerSec"]);
    draft.run.bytes = at(value, &["summary", "totalData"]);
    let us = |key: &str| at(value, &["summary", key]).map(|seconds| seconds * 1e6);
    draft.moments(us("average"), None, us("slowest"));
    ended(draft, &value["latencyPercentiles"], 1e6, |key| {
        key.strip_prefix('p')
    })
}
