//! oha, text and JSON. Its requests per second count failures too, also requests that the end of the run cut off.

use serde_json::Value;

use super::{Beginning, Facts, Meaning, Reader, Tool, at, count_at, percent};
use crate::draft::{Draft, Part, Taken, add, keep};
use crate::number::{self, Kilo, Lone};
use crate::run::Run;

/// Reads what oha prints.
pub struct Oha;

static FACTS: Facts = Facts {
    flags: &[
        ("c", Meaning::Connections),
        ("n", Meaning::Requests),
        ("z", Meaning::Duration),
        ("q", Meaning::Rate),
        ("p", Meaning::Pipelining),
        ("H", Meaning::Header),
        ("disable-keepalive", Meaning::Close),
        ("disable-compression", Meaning::NoCompression),
    ],
    sends_accept_encoding: true,
    counts_timeouts: true,
    ..Facts::USUAL
};

impl Reader for Oha {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn begins(&self, text: &str) -> Option<Beginning> {
        // `Summary:` is hey's too, and the line after it tells.
        if text.starts_with("Success rate:") { Beginning::LATER } else { None }
    }

    fn take(&self, text: &str, draft: &mut Draft) -> Taken {
        take(text, draft)
    }

    fn json(&self, value: &Value) -> Option<Run> {
        from_json(value)
    }

    fn json_keys(&self) -> &'static [&'static str] {
        &["\"successRate\"", "\"summary\""]
    }
}

/// What oha says of requests under way when `-z` ends; they are no fault of the service.
const DEADLINE: &str = "aborted due to deadline";

/// Both begin with `Summary:`; the line after it tells.
pub fn instead_of_hey(text: &str, draft: &mut Draft) -> bool {
    let oha =
        draft.run.tool == Tool::Hey && draft.run.duration_s.is_none() && text.starts_with("Success rate:");
    if oha {
        draft.run.tool = Tool::Oha;
    }
    oha
}

fn take(text: &str, draft: &mut Draft) -> Taken {
    match text {
        "Summary:" => return if draft.run.requests_per_s.is_some() { Taken::Again } else { Taken::Ours },
        "Response time distribution:" | "Latency distribution:" => draft.part = Part::Quantiles,
        "Status code distribution:" => draft.part = Part::Statuses,
        "Error distribution:" => draft.part = Part::Errors,
        _ if text.ends_with("histogram:") || text.starts_with("Details (") => draft.part = Part::Skipped,
        _ if draft.part == Part::Summary => return summary(text, draft),
        _ => return listed(text, draft),
    }
    Taken::Ours
}

fn summary(text: &str, draft: &mut Draft) -> Taken {
    let Some((name, value)) = text.split_once(':') else {
        return if text.is_empty() { Taken::Ours } else { Taken::Foreign };
    };
    let value = value.trim();
    let run = &mut draft.run;
    match name {
        "Success rate" | "Fastest" | "Size/request" | "Size/sec" => {}
        "Total" => return keep(&mut run.duration_s, time_us(value).map(|us| us / 1e6)),
        "Slowest" => run.latency.max_us = time_us(value),
        "Average" => {
            let max = run.latency.max_us;
            draft.moments(time_us(value), None, max);
        }
        "Requests/sec" => return draft.rate(value, Lone::Decimal),
        "Total data" => run.bytes = number::bytes(value, Kilo::Binary),
        _ => return Taken::Foreign,
    }
    Taken::Ours
}

/// `1.2345 ms`, in older versions `0.0012 secs`.
fn time_us(value: &str) -> Option<f64> {
    let (number, unit) = value.trim().split_once(' ')?;
    let us = number::unit_us(unit.split_whitespace().next()?)?;
    Some(number::figure(number, Lone::Decimal)? * us)
}

fn listed(text: &str, draft: &mut Draft) -> Taken {
    let bracket = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match (draft.part, bracket) {
        (Part::Statuses, Some((status, rest))) => {
            let responses = rest.split_whitespace().next().and_then(number::whole).unwrap_or(0);
            add(&mut draft.run.requests, responses);
            let good = status.starts_with(['2', '3']);
            add(&mut draft.run.failures.status, if good { 0 } else { responses });
            draft.whole = true;
        }
        (Part::Errors, Some((count, cause))) => {
            error(number::whole(count).unwrap_or(0), cause, draft);
            draft.whole = true;
        }
        (Part::Quantiles, None) => {
            let Some((share, time)) = text.split_once(" in ") else { return Taken::Foreign };
            draft.quantile(percent(share.trim()), time_us(time));
        }
        (Part::Skipped, _)
            if text.contains('[') || text.contains('|') || text.contains(" ms") || text.contains(" sec") => {}
        _ => return Taken::Foreign,
    }
    Taken::Ours
}

fn error(count: u64, cause: &str, draft: &mut Draft) {
    // Counted in requests/s all the same.
    add(&mut draft.run.requests, count);
    if !cause.contains(DEADLINE) {
        super::hey::error(count, cause, draft);
    }
}

fn from_json(value: &Value) -> Option<Run> {
    let statuses = value.get("statusCodeDistribution")?.as_object()?;
    value.get("summary")?.get("successRate")?;
    let mut draft = Draft::new(Tool::Oha);
    for status in statuses.keys() {
        let responses = count_at(value, &["statusCodeDistribution", status]).unwrap_or(0);
        add(&mut draft.run.requests, responses);
        let good = status.starts_with(['2', '3']);
        add(&mut draft.run.failures.status, if good { 0 } else { responses });
    }
    for cause in
        value.get("errorDistribution").and_then(Value::as_object).into_iter().flat_map(|map| map.keys())
    {
        error(count_at(value, &["errorDistribution", cause]).unwrap_or(0), cause, &mut draft);
    }
    draft.run.duration_s = at(value, &["summary", "total"]);
    draft.run.requests_per_s = at(value, &["summary", "requestsPerSec"]);
    draft.run.bytes = at(value, &["summary", "totalData"]);
    let us = |key: &str| at(value, &["summary", key]).map(|seconds| seconds * 1e6);
    draft.moments(us("average"), None, us("slowest"));
    for key in
        value.get("latencyPercentiles").and_then(Value::as_object).into_iter().flat_map(|map| map.keys())
    {
        let percent = key.strip_prefix('p').and_then(|digits| number::figure(digits, Lone::Decimal));
        draft.quantile(percent, at(value, &["latencyPercentiles", key]).map(|seconds| seconds * 1e6));
    }
    draft.run.latency.quantiles.sort_by(|one, other| one.percent.total_cmp(&other.percent));
    draft.whole = true;
    draft.finish()
}
