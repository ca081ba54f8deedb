//! What became of each of several requests: a table, a line for each. Pure.

use std::fmt::Write;

use load::Endpoint;
use report::{count, rate};
use stats::Latencies;

use super::{COLUMN, NOTHING, quantile, shown};
use crate::load::outcome::Outcome;

/// Longer names are cut.
const NAME_MAX: usize = 28;
/// Names are not shorter than their heading.
const HEADING: &str = "Endpoint";

/// Nothing where there is one.
pub fn render(outcome: &Outcome) -> String {
    let endpoints = &outcome.slice.endpoints;
    if endpoints.len() < 2 {
        return String::new();
    }
    let names: Vec<String> = endpoints.iter().map(|endpoint| cut(&endpoint.name)).collect();
    let width = names.iter().map(|name| name.chars().count()).chain([HEADING.len()]).max().unwrap_or(0);
    let time = if outcome.asked().is_some() { "response" } else { "complete" };
    let mut text = format!(
        "\n{HEADING:<width$}{:>COLUMN$}{:>COLUMN$}{:>COLUMN$}{:>COLUMN$}   status\n",
        "sent", "good", "p50", "p99"
    );
    for (name, endpoint) in names.iter().zip(endpoints) {
        let latencies = latencies(outcome, endpoint);
        let at = |q| shown(&latencies, q).map_or(NOTHING.into(), quantile);
        let good = outcome.per_second(endpoint.ok_in_window as f64).map_or(NOTHING.into(), rate);
        let _ = writeln!(
            text,
            "{name:<width$}{:>COLUMN$}{good:>COLUMN$}{:>COLUMN$}{:>COLUMN$}   {}",
            count(endpoint.sent),
            at(0.5),
            at(0.99),
            statuses(endpoint)
        );
    }
    let _ = writeln!(
        text,
        "p50 and p99 are of the time to {time}.",
        time =
            if time == "response" { "response, from when a request was due" } else { "the complete answer" }
    );
    text
}

/// Of all outcomes together: response time where requests were due.
fn latencies(outcome: &Outcome, endpoint: &Endpoint) -> Latencies {
    let mut all = Latencies::new();
    for ended in &endpoint.outcomes {
        all.merge(if outcome.asked().is_some() { &ended.response } else { &ended.latency });
    }
    all
}

/// One status alone needs no count: it is that of all that were sent.
fn statuses(endpoint: &Endpoint) -> String {
    let name = |status: Option<u16>| status.map_or("no answer".to_owned(), |status| status.to_string());
    match endpoint.outcomes.as_slice() {
        [] => NOTHING.into(),
        [only] => name(only.status),
        several => {
            let each = several.iter().map(|o| format!("{} × {}", name(o.status), count(o.latency.count())));
            each.collect::<Vec<_>>().join("  ")
        }
    }
}

fn cut(name: &str) -> String {
    if name.chars().count() <= NAME_MAX {
        return name.to_owned();
    }
    name.chars().take(NAME_MAX - 1).chain(['…']).collect()
}
