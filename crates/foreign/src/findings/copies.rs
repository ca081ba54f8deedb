//! The same output in two places. It must not judge figures that are merely close.

use std::collections::{BTreeMap, HashMap};

use super::{About, Case, Finding, Grade, finding};
use crate::figure::{digits, many};
use crate::run::Run;

/// Runs that agree to the last digit in everything that was measured.
pub fn same_output(runs: &[Run]) -> Option<Finding> {
    let mut alike: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, run) in runs.iter().enumerate() {
        // No two runs take as long on average to the last digit, and do as many requests.
        if let (Some(requests), Some(rate), Some(mean)) =
            (run.requests, run.requests_per_s, run.latency.mean_us)
        {
            let key =
                format!("{:?} {requests} {rate} {mean} {:?} {:?}", run.tool, run.bytes, run.latency.max_us);
            alike.entry(key).or_default().push(index);
        }
    }
    let mut copies: Vec<Vec<usize>> = alike.into_values().filter(|indices| indices.len() > 1).collect();
    copies.sort();
    let cases = copies.into_iter().map(|indices| {
        let places: Vec<String> =
            indices.iter().take(4).map(|at| runs[*at].lines.first.to_string()).collect();
        let first = &runs[indices[0]];
        let rate = first.requests_per_s.unwrap_or(0.0);
        Case {
            label: first.label.clone(),
            evidence: format!(
                "{} with {}/s, in lines {}{}",
                many(indices.len() as u64, "run"),
                digits(rate),
                places.join(", "),
                if indices.len() > places.len() { ", …" } else { "" }
            ),
            figures: BTreeMap::from([("runs", indices.len() as f64), ("requests_per_s", rate)]),
            runs: indices,
        }
    });
    finding(
        "same_output",
        (Grade::Void, About::Comparison),
        cases.collect(),
        "the same output stands there more than once",
        "Two runs never agree to the last digit: it was pasted twice, or a file was read twice. What it is compared with, or \
         pooled with, is itself.",
    )
}
