//! In which ways a variant's requests failed, told apart as far as the record tells: for showing.
//!
//! Must not: judge how many are too many; that is a check.

use std::collections::BTreeMap;
use std::fmt;

use model::Phase;
use record::{Record, Slice};

use crate::variant::measured;

/// Where in a request's life it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailedIn {
    /// The connection failed in this phase.
    Connection(Phase),
    /// A response came and was not what is expected.
    Response,
    /// It was given up.
    TimeOut,
    /// The window ended before it, or before it could be sent.
    Unfinished,
}

impl fmt::Display for FailedIn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailedIn::Connection(phase) => phase.fmt(formatter),
            FailedIn::Response => formatter.pad("response"),
            FailedIn::TimeOut => formatter.pad("time-out"),
            FailedIn::Unfinished => formatter.pad("unfinished"),
        }
    }
}

/// One way to fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Where in a request's life.
    pub phase: FailedIn,
    /// What happened, in words.
    pub cause: String,
    /// How often, in the measured slices of complete blocks.
    pub count: u64,
    /// What came instead, where that is known.
    pub example: Option<String>,
}

/// All ways in which requests of a variant failed, by its index in the plan, the most frequent first.
pub fn failures(record: &Record, index: usize) -> Vec<Failure> {
    let mut counts: BTreeMap<(FailedIn, String), (u64, Option<&str>)> = BTreeMap::new();
    for slice in measured(record, index) {
        each_way(slice, |phase, cause, count, example| {
            let known = counts.entry((phase, cause)).or_default();
            known.0 += count;
            known.1 = known.1.or(example);
        });
    }
    let failure = |((phase, cause), (count, example)): ((FailedIn, String), (u64, Option<&str>))| Failure {
        phase,
        cause,
        count,
        example: example.map(str::to_owned),
    };
    let mut all: Vec<Failure> = counts.into_iter().map(failure).filter(|failure| failure.count > 0).collect();
    all.sort_by_key(|failure| std::cmp::Reverse(failure.count));
    all
}

fn each_way<'a>(slice: &'a Slice, mut add: impl FnMut(FailedIn, String, u64, Option<&'a str>)) {
    let (late, mut given_up) = ("no response in time".to_owned(), 0);
    for error in &slice.counts.errors {
        if error.is_request_timeout() {
            given_up += error.count;
            add(FailedIn::TimeOut, format!("{late}, in the phase {}", error.phase), error.count, None);
        } else {
            add(FailedIn::Connection(error.phase), error.cause.to_string(), error.count, None);
        }
    }
    for failure in &slice.counts.contract_failures {
        add(FailedIn::Response, failure.kind.to_string(), failure.count, Some(&failure.example));
    }
    let unsent = slice.counts.open.as_ref().map_or(0, |open| open.unsent);
    add(FailedIn::TimeOut, late, slice.counts.timed_out.saturating_sub(given_up), None);
    let under_way = "under way when the window ended".to_owned();
    add(FailedIn::Unfinished, under_way, slice.counts.unfinished, None);
    add(FailedIn::Unfinished, "due and never sent".to_owned(), unsent, None);
}
