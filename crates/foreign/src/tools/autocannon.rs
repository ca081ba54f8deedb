//! autocannon, tables and JSON. Its text has only rounded counts; its rates are means of samples, one a second.

use serde_json::Value;

use super::{Beginning, Facts, Meaning, RateOf, Reader, Tool, at, between, count_at};
use crate::draft::{Draft, Taken, keep};
use crate::number::{self, Kilo, Lone};
use crate::run::Run;

/// Reads what autocannon prints.
pub struct Autocannon;

static FACTS: Facts = Facts {
    flags: &[
        ("c", Meaning::Connections),
        ("connections", Meaning::Connections),
        ("d", Meaning::Duration),
        ("duration", Meaning::Duration),
        ("a", Meaning::Requests),
        ("amount", Meaning::Requests),
        ("w", Meaning::Threads),
        ("workers", Meaning::Threads),
        ("p", Meaning::Pipelining),
        ("pipelining", Meaning::Pipelining),
        ("R", Meaning::Rate),
        ("overallRate", Meaning::Rate),
        ("r", Meaning::RateEach),
        ("connectionRate", Meaning::RateEach),
        ("H", Meaning::Header),
        ("headers", Meaning::Header),
    ],
    rate_of: RateOf::Samples,
    ..Facts::USUAL
};

impl Reader for Autocannon {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn begins(&self, text: &str) -> Option<Beginning> {
        match text {
            // Of `Running 10s test @ …` the line after it tells whether it is wrk's.
            _ if text.starts_with("Running ") && text.contains(" @ ") && !text.contains(" test @ ") => {
                Beginning::FIRST
            }
            _ if is_table(text) || is_total(text) => Beginning::LATER,
            _ => None,
        }
    }

    fn take(&self, text: &str, draft: &mut Draft) -> Taken {
        take(text, draft)
    }

    fn json(&self, value: &Value) -> Option<Run> {
        from_json(value)
    }

    fn json_keys(&self) -> &'static [&'static str] {
        &["\"p97_5\"", "\"latency\""]
    }
}

/// A row of its tables.
pub fn is_table(text: &str) -> bool {
    let cells = cells(text);
    matches!(cells.first(), Some(&("Stat" | "Latency" | "Req/Sec" | "Bytes/Sec"))) && cells.len() >= 4
}

/// `24k requests in 10.03s, 5.4 MB read`; wrk puts no blank before the unit.
pub fn is_total(text: &str) -> bool {
    let size = text.strip_suffix(" read").and_then(|rest| rest.rsplit_once(", ")).map(|(_, size)| size);
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.contains(" requests in ")
        && size.is_some_and(|size| size.contains(' '))
}

/// Both begin with `Running 10s test @ …`; the line after it tells.
pub fn instead_of_wrk(text: &str, draft: &mut Draft) -> Option<Taken> {
    if draft.run.load.threads.is_some() || draft.run.has_figures() {
        return None;
    }
    let counted = |noun: &str| {
        text.split_once(' ')
            .is_some_and(|(count, rest)| number::whole(count).is_some() && rest.starts_with(noun))
    };
    if !(counted("connection") || is_table(text)) {
        return None;
    }
    draft.run.tool = Tool::Autocannon;
    Some(take(text, draft))
}

fn take(text: &str, draft: &mut Draft) -> Taken {
    if is_frame(text) || is_start(text, draft) {
        return Taken::Ours;
    }
    if text.contains('│') {
        return row(&cells(text), draft);
    }
    if is_total(text) {
        return total(text, draft);
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let failures = &mut draft.run.failures;
    match words.as_slice() {
        // These counts are exact, and printed only where there are failures.
        [good, "2xx", "responses,", bad, "non", "2xx", "responses"] => {
            failures.status = number::whole(bad);
            let both = number::whole(good).zip(failures.status).map(|(good, bad)| good.saturating_add(bad));
            return keep(&mut draft.run.requests, both);
        }
        [errors, "errors", timeouts, "timeouts)"] => {
            let count = |word: &str| number::count(word.trim_matches(['(', ')'])).map(|(count, _)| count);
            let timeouts = count(timeouts);
            failures.timeouts = timeouts;
            failures.other = count(errors).map(|all| all.saturating_sub(timeouts.unwrap_or(0)));
        }
        ["#", "of", "samples:", ..] | ["Req/Bytes", ..] => {}
        _ => return Taken::Foreign,
    }
    Taken::Ours
}

fn is_start(text: &str, draft: &mut Draft) -> bool {
    if let Some(rest) = text.strip_prefix("Running ") {
        let Some((what, url)) = rest.split_once(" test @ ").or_else(|| rest.split_once(" warmup @ ")) else {
            return false;
        };
        let duration = number::micros(what, Lone::Decimal).map(|us| us / 1e6);
        draft.run.load.duration_s = duration;
        draft.run.load.requests = what.strip_suffix(" requests").and_then(number::whole);
        draft.run.url = url.split_whitespace().next().map(str::to_owned);
        return true;
    }
    let Some((count, rest)) = text.split_once(' ') else { return false };
    let Some(count) = number::whole(count) else { return false };
    if rest.starts_with("connection") {
        draft.run.load.connections = Some(count);
        draft.run.load.pipelining = between(rest, "with ", " pipelining").and_then(number::whole);
    } else if rest == "workers" {
        draft.run.load.threads = Some(count);
    } else {
        return false;
    }
    true
}

fn is_frame(text: &str) -> bool {
    text.starts_with(['┌', '├', '└']) || (!text.is_empty() && text.chars().all(|c| "─┬┼┴┐┤┘".contains(c)))
}

fn cells(text: &str) -> Vec<&str> {
    text.trim_matches('│').split('│').map(str::trim).collect()
}

/// Cells by the names of their columns, because versions differ in which there are.
fn row(cells: &[&str], draft: &mut Draft) -> Taken {
    let Some((name, values)) = cells.split_first() else { return Taken::Foreign };
    match *name {
        "Stat" => draft.columns = values.iter().map(|cell| (*cell).to_owned()).collect(),
        "Latency" => {
            let columns = draft.columns.clone();
            let us = |wanted: &str| {
                let at = columns.iter().position(|column| column == wanted)?;
                number::micros(&values.get(at)?.replace(' ', ""), Lone::Thousands)
            };
            draft.moments(us("Avg"), us("Stdev"), us("Max"));
            for column in columns.iter().filter(|column| column.ends_with('%')) {
                draft.quantile(super::percent(column), us(column));
            }
        }
        "Req/Sec" => {
            let at = draft.columns.iter().position(|column| column == "Avg");
            let rate = at.and_then(|at| values.get(at)).copied().unwrap_or_default();
            return draft.rate(rate, Lone::Thousands);
        }
        _ => {}
    }
    Taken::Ours
}

fn total(text: &str, draft: &mut Draft) -> Taken {
    let exact = draft.run.requests.is_some() && draft.run.duration_s.is_none();
    let taken =
        if exact { Taken::Ours } else { draft.requests(text.split_whitespace().next().unwrap_or_default()) };
    if taken == Taken::Ours {
        let seconds =
            between(text, " requests in ", ", ").and_then(|time| number::micros(time, Lone::Decimal));
        keep(&mut draft.run.duration_s, seconds.map(|us| us / 1e6));
        let size = text.rsplit_once(", ").and_then(|(_, size)| size.strip_suffix(" read"));
        draft.run.bytes = size.and_then(|size| number::bytes(size, Kilo::Decimal));
        draft.whole = true;
    }
    taken
}

fn from_json(value: &Value) -> Option<Run> {
    at(value, &["latency", "p97_5"]).or_else(|| at(value, &["latency", "average"]))?;
    at(value, &["requests", "average"])?;
    let mut draft = Draft::new(Tool::Autocannon);
    let run = &mut draft.run;
    run.url = value.get("url").and_then(Value::as_str).map(str::to_owned);
    run.load.connections = count_at(value, &["connections"]);
    run.load.pipelining = count_at(value, &["pipelining"]);
    run.load.threads = count_at(value, &["workers"]).filter(|workers| *workers > 0);
    run.duration_s = at(value, &["duration"]);
    // Older versions have neither the total nor the classes of statuses.
    run.requests = count_at(value, &["requests", "total"]);
    run.requests_per_s = at(value, &["requests", "average"]);
    run.bytes = at(value, &["throughput", "total"]);
    run.failures.timeouts = count_at(value, &["timeouts"]);
    let errors = count_at(value, &["errors"]);
    run.failures.other = errors.map(|all| all.saturating_sub(run.failures.timeouts.unwrap_or(0)));
    run.failures.status = count_at(value, &["non2xx"]);
    let us = |key: &str| at(value, &["latency", key]).map(|ms| ms * 1e3);
    draft.moments(us("average").or_else(|| us("mean")), us("stddev"), us("max"));
    for key in value.get("latency").and_then(Value::as_object).into_iter().flat_map(|map| map.keys()) {
        let digits = key.strip_prefix('p').map(|digits| digits.replace('_', "."));
        let percent = digits.and_then(|digits| number::figure(&digits, Lone::Decimal));
        draft.quantile(percent, us(key));
    }
    draft.run.latency.quantiles.sort_by(|one, other| one.percent.total_cmp(&other.percent));
    draft.whole = true;
    draft.finish()
}
