//! Variants none of whose requests succeeded: what became of them, in a line that stands where a number would.
//!
//! That is an answer, and no fault of the experiment: where nothing comes back there is nothing to measure, and to say so is what
//! a mean of time-outs hides.

use std::collections::BTreeMap;

use model::quantity::span;
use model::{Cause, ErrorCount, FailureKind, Phase};
use record::{Record, Slice, SliceKind};
use schemars::JsonSchema;
use serde::Serialize;

use crate::variant::slices;

/// Ways to fail that are told apart.
const WAYS_MAX: usize = 3;

/// What became of the requests of a variant that never succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NoSuccess {
    /// Requests sent; in open loop those due.
    pub requests: u64,
    /// What became of them: `no response within 2s (0 of 340)`, `0 of 340 succeeded: status 500`.
    pub answer: String,
}

/// What became of a variant's requests in all slices so far, whatever they were for; `None` where there were none, or one succeeded.
pub(crate) fn never_succeeded(record: &Record, variant: usize) -> Option<NoSuccess> {
    of(record, variant, |_| true)
}

/// The same for those slices alone in which none succeeded, be there others; `None` where there are none.
pub(crate) fn fruitless_slices(record: &Record, variant: usize) -> Option<NoSuccess> {
    of(record, variant, |slice| slice.counts.successful == 0)
}

/// The same for what was measured, be the blocks complete or not.
pub(crate) fn measured(record: &Record, variant: usize) -> Option<NoSuccess> {
    of(record, variant, |slice| slice.kind == SliceKind::Measured)
}

/// Whether these slices had requests of which none succeeded. At a low rate none may have been due.
pub(crate) fn fruitless(slices: &[&Slice]) -> bool {
    let asked = slices.iter().any(|slice| slice.counts.due() > 0 || !slice.counts.errors.is_empty());
    asked && slices.iter().all(|slice| slice.counts.successful == 0)
}

fn of(record: &Record, variant: usize, counts: impl Fn(&Slice) -> bool) -> Option<NoSuccess> {
    // What counts for nothing is neither a failure nor a success.
    let slices: Vec<&Slice> = slices(record, variant).filter(|slice| counts(slice)).collect();
    fruitless(&slices).then(|| told(&slices, record.header.plan.variants.get(variant)))
}

fn told(slices: &[&Slice], variant: Option<&plan::Variant>) -> NoSuccess {
    let requests: u64 = slices.iter().map(|slice| slice.counts.due()).sum();
    let late = variant.map_or_else(
        || "no response in time".to_owned(),
        |variant| format!("no response within {}", span(variant.load.timeout.as_secs_f64())),
    );
    let expected = variant.map(|variant| variant.expect.status.as_slice()).unwrap_or_default();
    let ways = ways(slices, &late, expected);
    let answer = match ways.as_slice() {
        [(way, count)] if requests > 0 && *way == late && *count == requests => {
            format!("{late} (0 of {requests})")
        }
        [(way, count)] if requests == 0 => format!("no request could be sent: {way} ({count} times)"),
        [] => format!("0 of {requests} succeeded"),
        [(way, _)] => format!("0 of {requests} succeeded: {way}"),
        several => {
            let told = several.iter().take(WAYS_MAX).map(|(way, count)| format!("{way} ({count})"));
            format!("0 of {requests} succeeded: {}", told.collect::<Vec<_>>().join(", "))
        }
    };
    NoSuccess { requests, answer }
}

/// In which ways requests failed and how often, the most frequent first.
fn ways(slices: &[&Slice], late: &str, expected: &[u16]) -> Vec<(String, u64)> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |way: String, count: u64| *counts.entry(way).or_default() += count;
    let mut examples: BTreeMap<&FailureKind, &str> = BTreeMap::new();
    for slice in slices {
        let unsent = slice.counts.open.as_ref().map_or(0, |open| open.unsent);
        add(late.to_owned(), slice.counts.timed_out + slice.counts.unfinished + unsent);
        for (status, count) in slice.counts.status.iter().filter(|(status, _)| !expected.contains(status)) {
            add(format!("status {status}"), *count);
        }
        let failures = slice.counts.contract_failures.iter();
        for failure in failures.filter(|failure| failure.kind != FailureKind::Status) {
            let example = *examples.entry(&failure.kind).or_insert(&failure.example);
            add(format!("{} ({example})", failure.kind), failure.count);
        }
        // A request that was given up is counted above.
        let given_up = |error: &&ErrorCount| error.cause == Cause::Timeout && error.phase != Phase::Connect;
        for error in slice.counts.errors.iter().filter(|error| !given_up(error)) {
            add(format!("{} {}", error.phase, error.cause), error.count);
        }
    }
    let mut ways: Vec<(String, u64)> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
    ways.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    ways
}
