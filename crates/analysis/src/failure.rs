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
    let ways = measured(record, index).flat_map(ways).filter(|way| way.count > 0);
    let alike = model::grouped(ways.map(|way| ((way.phase.clone(), way.cause.clone()), way)));
    let together = |((phase, cause), ways): ((String, String), Vec<Failure>)| Failure {
        phase,
        cause,
        count: ways.iter().map(|way| way.count).sum(),
        example: ways.into_iter().find_map(|way| way.example),
    };
    let mut all: Vec<Failure> = alike.into_iter().map(together).collect();
    all.sort_by_key(|failure| std::cmp::Reverse(failure.count));
    all
}

fn ways(slice: &Slice) -> Vec<Failure> {
    let (late, mut given_up) = ("no response in time", 0);
    let mut ways = Vec::new();
    let mut add = |phase: &str, cause: &str, count: u64, example: Option<&String>| {
        let (phase, cause, example) = (phase.to_owned(), cause.to_owned(), example.cloned());
        ways.push(Failure { phase, cause, count, example });
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
        add("response", &failure.kind.to_string(), failure.count, Some(&failure.example));
    }
    let unsent = slice.counts.open.as_ref().map_or(0, |open| open.unsent);
    add("time-out", late, slice.counts.timed_out.saturating_sub(given_up), None);
    add("unfinished", "under way when the window ended", slice.counts.unfinished, None);
    add("unfinished", "due and never sent", unsent, None);
    ways
}
