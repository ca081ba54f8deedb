//! What became of each of several requests: a table, a line for each. Pure.

use std::fmt::Write;

use model::EndpointCounts;
use report::{count, rate};
use stats::Latencies;

use super::{COLUMN, NOTHING, quantile, shown};
use crate::load::outcome::Outcome;

/// Longer names are cut.
const NAME_MAX: usize = 22;
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
    let mut text = format!(
        "\n{HEADING:<width$}{:>COLUMN$}{:>COLUMN$}{:>COLUMN$}{:>COLUMN$}   status\n",
        "sent", "good", "p50", "p99"
    );
    for (name, endpoint) in names.iter().zip(endpoints) {
        let latencies = latencies(outcome, endpoint);
        let at = |q| shown(&latencies, q).map_or(NOTHING.into(), quantile);
        let good = outcome.per_second(endpoint.successful_in_window as f64).map_or(NOTHING.into(), rate);
        let (sent, p50, p99) = (count(endpoint.sent), at(0.5), at(0.99));
        let figures = format!("{name:<width$}{sent:>COLUMN$}{good:>COLUMN$}{p50:>COLUMN$}{p99:>COLUMN$}");
        let statuses =
            statuses(endpoint).join(&format!("\n{:indent$}", "", indent = figures.chars().count() + 3));
        let _ = writeln!(text, "{figures}   {statuses}");
    }
    text + match outcome.asked() {
        Some(_) => "p50 and p99: response time, from when a request was due.\n",
        None => "p50 and p99: from sent to the complete answer.\n",
    }
}

/// Of all outcomes together: response time where requests were due.
fn latencies(outcome: &Outcome, endpoint: &EndpointCounts) -> Latencies {
    let mut all = Latencies::new();
    for ended in &endpoint.outcomes {
        all.merge(if outcome.asked().is_some() { &ended.response } else { &ended.latency });
    }
    all
}

/// One status alone needs no count: it is that of all that were sent.
fn statuses(endpoint: &EndpointCounts) -> Vec<String> {
    let name = |status: Option<u16>| status.map_or("no answer".to_owned(), |status| status.to_string());
    match endpoint.outcomes.as_slice() {
        [] => vec![NOTHING.into()],
        [only] => vec![name(only.status)],
        several => {
            several.iter().map(|o| format!("{} × {}", name(o.status), count(o.latency.count()))).collect()
        }
    }
}

fn cut(name: &str) -> String {
    if name.chars().count() <= NAME_MAX {
        return name.to_owned();
    }
    name.chars().take(NAME_MAX - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use model::{Counts, EndpointCounts, EndpointOutcome};
    use stats::Latencies;

    use crate::load::sample::{at_a_rate, slice};

    #[test]
    fn each_request_has_a_line_and_what_it_ended_in() {
        let ended = |status, samples: u64| {
            let mut response = Latencies::new();
            match status {
                Some(_) => (0..samples).for_each(|n| response.record(1_000_000 + n * 1000)),
                None => (0..samples).for_each(|_| response.censor(2_000_000_000)),
            }
            EndpointOutcome { status, latency: response.clone(), response }
        };
        let endpoint = |name: &str, sent, outcomes| EndpointCounts {
            name: name.into(),
            sent,
            successful: sent,
            successful_in_window: sent,
            body_bytes: 0,
            outcomes,
            contents: vec![],
        };
        let endpoints = vec![
            endpoint("GET /", 20_000, vec![ended(Some(200), 20_000)]),
            endpoint(
                "GET /a/long/path/{to}/cut",
                400,
                vec![ended(Some(200), 350), ended(Some(404), 30), ended(None, 20)],
            ),
            endpoint("never", 0, vec![]),
        ];
        insta::assert_snapshot!(super::render(&at_a_rate(Counts { endpoints, ..slice() }, 0)).trim_start(), @"
        Endpoint                    sent      good       p50       p99   status
        GET /                     20,000   2,000/s   11.0 ms   20.8 ms   200
        GET /a/long/path/{to}…       400    40.0/s   1.17 ms         -   200 × 350
                                                                         404 × 30
                                                                         no answer × 20
        never                          0       0/s         -         -   -
        p50 and p99: response time, from when a request was due.
        ");
    }
}
