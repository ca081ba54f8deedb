//! In which ways a variant's requests failed, told apart as far as the record tells: for showing.
//!
//! Must not: judge how many are too many; that is a check.

use record::{Record, Slice};

use crate::variant::measured;

/// One way to fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Where in a request's life.
    pub phase: String,
    /// What happened, in words.
    pub cause: String,
    /// How often, in the measured slices of complete blocks.
    pub count: u64,
    /// What came instead, where that is known.
    pub example: Option<String>,
}

/// All ways in which requests of a variant failed, by its index in the plan, the most frequent first.
pub fn failures(record: &Record, index: usize) -> Vec<Failure> {
    let ways = measured(record, index).flat_map(ways).filter(|(.., count, _)| *count > 0);
    let ways = model::grouped(ways.map(|(phase, cause, count, example)| ((phase, cause), (count, example))));
    let failure = |((phase, cause), all): ((String, String), Vec<(u64, Option<&str>)>)| Failure {
        phase,
        cause,
        count: all.iter().map(|(count, _)| count).sum(),
        example: all.iter().find_map(|(_, example)| *example).map(str::to_owned),
    };
    let mut all: Vec<Failure> = ways.into_iter().map(failure).collect();
    all.sort_by_key(|failure| std::cmp::Reverse(failure.count));
    all
}

/// Each way in which requests of a slice failed: in which phase, for which cause, how many, and what came instead.
fn ways(slice: &Slice) -> Vec<(String, String, u64, Option<&str>)> {
    let (late, mut given_up) = ("no response in time", 0);
    let mut ways = Vec::new();
    let mut add = |phase: &str, cause: &str, count: u64, example| {
        ways.push((phase.to_owned(), cause.to_owned(), count, example));
    };
    for error in &slice.counts.errors {
        let phase = error.phase.to_string();
        if error.is_request_timeout() {
            given_up += error.count;
            add("time-out", &format!("{late}, in the phase {phase}"), error.count, None);
        } else {
            add(&phase, &error.cause.to_string(), error.count, None);
        }
    }
    for failure in &slice.counts.contract_failures {
        add("response", &failure.kind.to_string(), failure.count, Some(failure.example.as_str()));
    }
    let unsent = slice.counts.open.as_ref().map_or(0, |open| open.unsent);
    add("time-out", late, slice.counts.timed_out.saturating_sub(given_up), None);
    add("unfinished", "under way when the window ended", slice.counts.unfinished, None);
    add("unfinished", "due and never sent", unsent, None);
    ways
}
