//! In which ways a variant's requests failed, told apart as far as the record tells: for showing.
//!
//! Must not: judge how many are too many; that is a check.

use std::collections::BTreeMap;

use record::{Record, Slice};

use crate::variant::measured;

/// One way to fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Where in a request's life: `connect`, `tls`, `send`, `head`, `body`, `idle`; or `response` where one came and was not what is
    /// expected, `time-out` where it was given up, `unfinished` where the window ended before it, or before it could be sent.
    pub phase: String,
    /// What happened.
    pub cause: String,
    /// How often, in the measured slices of complete blocks.
    pub count: u64,
    /// What came instead, where that is known.
    pub example: Option<String>,
}

/// All ways in which requests of a variant failed, by its index in the plan, the most frequent first.
pub fn failures(record: &Record, index: usize) -> Vec<Failure> {
    let mut counts: BTreeMap<(String, String), (u64, Option<&str>)> = BTreeMap::new();
    for slice in measured(record, index) {
        for (phase, cause, count, example) in of_slice(slice) {
            let known = counts.entry((phase, cause)).or_default();
            known.0 += count;
            known.1 = known.1.or(example);
        }
    }
    let failure = |((phase, cause), (count, example)): ((String, String), (u64, Option<&str>))| Failure {
        phase,
        cause,
        count,
        example: example.map(str::to_owned),
    };
    let mut all: Vec<Failure> = counts.into_iter().map(failure).filter(|failure| failure.count > 0).collect();
    all.sort_by_key(|failure| std::cmp::Reverse(failure.count));
    all
}

fn of_slice(slice: &Slice) -> Vec<(String, String, u64, Option<&str>)> {
    let mut ways = Vec::new();
    let mut given_up = 0;
    for error in &slice.counts.errors {
        if error.is_request_timeout() {
            given_up += error.count;
            ways.push((
                "time-out".to_owned(),
                format!("no answer in time, in the phase {}", error.phase),
                error.count,
                None,
            ));
        } else {
            ways.push((error.phase.to_string(), error.cause.to_string(), error.count, None));
        }
    }
    for failure in &slice.counts.contract_failures {
        ways.push((
            "response".to_owned(),
            failure.kind.to_string(),
            failure.count,
            Some(failure.example.as_str()),
        ));
    }
    let unsent = slice.counts.open.as_ref().map_or(0, |open| open.unsent);
    let without = [
        ("time-out", "no answer in time".to_owned(), slice.counts.timed_out.saturating_sub(given_up), None),
        ("unfinished", "under way when the window ended".to_owned(), slice.counts.unfinished, None),
        ("unfinished", "due and never sent".to_owned(), unsent, None),
    ];
    ways.extend(without.map(|(phase, cause, count, example)| (phase.to_owned(), cause, count, example)));
    ways
}
