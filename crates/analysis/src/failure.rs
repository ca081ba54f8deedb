//! Failed requests: the kinds of failure, advice, the outcome of variants without any success, and whether a
//! run can still produce a result. A check decides how many failures are too many. Pure.
//!
//! A variant that never succeeds is a result, not a flaw of the experiment. It has nothing to measure, and a
//! statement in place of a number shows what a mean of timeouts would hide. The other variants are still
//! compared. But if no variant succeeds, probably the experiment is wrong. A variant that succeeds only now
//! and then has no figure that could be judged.

use std::collections::BTreeMap;

use model::quantity::{count, many, span};
use model::{Cause, ErrorCount, FailureKind, LOCATION, Phase};
use record::{ContractFailure, Record, Slice, SliceKind};
use schemars::JsonSchema;
use serde::Serialize;

use crate::sums::{counted, measured as measured_slices, outcome, slices, total};
use crate::{NAMED_MAX, few};

/// Maximum number of kinds of failure in a description.
const WAYS_MAX: usize = 3;

/// Outcome of the requests of a variant that never succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NoSuccess {
    /// Requests sent. In open loop, requests due.
    pub requests: u64,
    /// Description: `no response within 2s (0 of 340)`, `0 of 340 succeeded: status 500`.
    pub answer: String,
}

/// Outcome of a variant's requests in all measured slices, of complete and incomplete blocks. `None` if there
/// were none, or one succeeded.
pub(crate) fn measured(record: &Record, variant: usize) -> Option<NoSuccess> {
    of(record, variant, |slice| slice.kind == SliceKind::Measured)
}

/// Whether these slices had requests and none succeeded. At a low rate none may have been due.
pub(crate) fn fruitless(slices: &[&Slice]) -> bool {
    let asked = slices
        .iter()
        .any(|slice| slice.counts.due() > 0 || !slice.counts.errors.is_empty());
    asked && slices.iter().all(|slice| slice.counts.successful == 0)
}

fn of(record: &Record, variant: usize, counts: impl Fn(&Slice) -> bool) -> Option<NoSuccess> {
    // Dropped blocks contain neither failures nor successes.
    let slices: Vec<&Slice> = slices(record, variant)
        .filter(|slice| counts(slice))
        .collect();
    no_success(&slices, &record.header.plan.variants[variant])
}

/// Outcome of the requests of these slices of a variant. `None` if there were none, or one succeeded.
pub(crate) fn no_success(slices: &[&Slice], variant: &plan::Variant) -> Option<NoSuccess> {
    fruitless(slices).then(|| told(slices, variant))
}

fn told(slices: &[&Slice], variant: &plan::Variant) -> NoSuccess {
    let requests = total(slices, |slice| slice.counts.due());
    let late = format!(
        "no response within {}",
        span(variant.load.timeout.as_secs_f64())
    );
    let ways = ways(slices, &late, |status| is_expected(variant, status));
    let all = count(requests);
    let answer = match ways.as_slice() {
        [(way, number)] if requests > 0 && *way == late && *number == requests => {
            format!("{late} (0 of {all})")
        }
        [(way, number)] if requests == 0 => {
            format!(
                "no request could be sent: {way} ({})",
                many(*number, "time")
            )
        }
        [] => format!("0 of {all} succeeded"),
        [(way, _)] => format!("0 of {all} succeeded: {way}"),
        several => {
            let told = several
                .iter()
                .take(WAYS_MAX)
                .map(|(way, number)| format!("{way} ({})", count(*number)));
            format!(
                "0 of {all} succeeded: {}",
                told.collect::<Vec<_>>().join(", ")
            )
        }
    };
    NoSuccess { requests, answer }
}

/// Kinds of failure and their numbers, most frequent first.
fn ways(slices: &[&Slice], late: &str, is_expected: impl Fn(u16) -> bool) -> Vec<(String, u64)> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |way: String, count: u64| *counts.entry(way).or_default() += count;
    let mut examples: BTreeMap<&FailureKind, &str> = BTreeMap::new();
    for slice in slices {
        let unsent = slice.counts.open.as_ref().map_or(0, |open| open.unsent);
        add(
            late.to_owned(),
            slice.counts.timed_out + slice.counts.unfinished + unsent,
        );
        let failures = &slice.counts.contract_failures;
        // Responses to log-ins are included in the status counts, but are described by the name of the
        // log-in.
        let is_log_in = |failure: &ContractFailure| matches!(failure.kind, FailureKind::LogIn(_));
        let by_status = !failures.iter().any(is_log_in);
        let unexpected = slice
            .counts
            .status
            .iter()
            .filter(|(status, _)| by_status && !is_expected(**status));
        unexpected.for_each(|(status, count)| add(with_location(*status, failures), *count));
        for failure in failures
            .iter()
            .filter(|of| !by_status || of.kind != FailureKind::Status)
        {
            let example = *examples.entry(&failure.kind).or_insert(&failure.example);
            let is_status = failure.kind == FailureKind::Status;
            let seen = if is_status {
                example.to_owned()
            } else {
                format!("({example})")
            };
            add(format!("{} {seen}", failure.kind), failure.count);
        }
        // A timed-out request is counted above.
        let given_up =
            |error: &&ErrorCount| error.cause == Cause::Timeout && error.phase != Phase::Connect;
        for error in slice.counts.errors.iter().filter(|error| !given_up(error)) {
            let way = || format!("{} {}", error.phase, error.cause);
            add(
                error.cause.remedy().map_or_else(way, str::to_owned),
                error.count,
            );
        }
    }
    let mut ways: Vec<(String, u64)> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
    ways.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    ways
}

/// Class of a failure, by the advice against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FailureClass {
    /// Status 429 (Too Many Requests, RFC 6585).
    RateLimited,
    /// Another status from 400 to 499.
    RequestRejected,
    /// A status from 500 to 599.
    ServiceFailed,
    /// The connection or stream failed before the response was complete.
    ConnectionLost,
    /// No complete response in time, or never sent.
    TimedOut,
    /// A complete response with an unexpected status, header or content.
    Unexpected,
}

impl FailureClass {
    /// The most frequent class of failed requests in a variant's slices. None if no request failed.
    pub(crate) fn dominant(slices: &[&Slice], variant: &plan::Variant) -> Option<FailureClass> {
        let status = slices.iter().flat_map(|slice| &slice.counts.status);
        let unexpected = status.filter(|(status, _)| !is_expected(variant, **status));
        let mut counts =
            counted(unexpected.map(|(status, count)| (FailureClass::of_status(*status), *count)));
        let mut add = |class, count: u64| *counts.entry(class).or_default() += count;
        let unsent = |slice: &Slice| slice.counts.open.as_ref().map_or(0, |open| open.unsent);
        let late = |slice: &Slice| slice.counts.timed_out + slice.counts.unfinished + unsent(slice);
        add(FailureClass::TimedOut, total(slices, late));
        add(
            FailureClass::ConnectionLost,
            total(slices, |slice| slice.counts.broken),
        );
        // The remaining failures had an expected status. Only a sample of contents is checked, so their
        // failures are not counted individually.
        let failed = outcome(slices).failed;
        let known: u64 = counts.values().sum();
        *counts.entry(FailureClass::Unexpected).or_default() += failed.saturating_sub(known);
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        most.filter(|(_, count)| *count > 0).map(|(class, _)| class)
    }

    fn of_status(status: u16) -> FailureClass {
        match status {
            429 => FailureClass::RateLimited,
            400..=499 => FailureClass::RequestRejected,
            500..=599 => FailureClass::ServiceFailed,
            _ => FailureClass::Unexpected,
        }
    }

    /// Whether failures of this class have a complete response, whose latency is a sample like any other.
    pub(crate) fn has_response(self) -> bool {
        match self {
            FailureClass::RateLimited
            | FailureClass::RequestRejected
            | FailureClass::ServiceFailed
            | FailureClass::Unexpected => true,
            FailureClass::ConnectionLost | FailureClass::TimedOut => false,
        }
    }

    /// Advice against failures of this class.
    pub(crate) fn advice(self) -> &'static str {
        match self {
            FailureClass::RateLimited => {
                "the service limits the rate (status 429): raise its limit, or measure below it at a rate (`design.rate`, --rate)"
            }
            FailureClass::RequestRejected => {
                "the service rejects the requests (status 4xx): correct their path, headers, body or credentials, or what `expect` says"
            }
            FailureClass::ServiceFailed => {
                "the service fails (status 5xx): see the end of its log (in `logs` of the record if Proofload started it), and correct it or lower the load (`load.connections`, `design.rate`)"
            }
            FailureClass::ConnectionLost => {
                "connections broke before the response was complete: see in the service's log whether it ends or limits them, or lower `load.connections`"
            }
            FailureClass::TimedOut => {
                "responses did not come in time: lower the load (`load.connections`, `design.rate`), or raise `load.timeout`"
            }
            FailureClass::Unexpected => {
                "responses are not as expected: correct the service, or what `expect` says (--expect-status, --expect-header)"
            }
        }
    }
}

/// Whether the variant expects this status in response to any of its requests.
pub(crate) fn is_expected(variant: &plan::Variant, status: u16) -> bool {
    let mut requests = variant.load.requests.iter();
    requests.any(|request| {
        request
            .expect
            .as_ref()
            .unwrap_or(&variant.expect)
            .accepts_status(status)
    })
}

/// Describes a status, with the location of a redirect.
fn with_location(status: u16, failures: &[ContractFailure]) -> String {
    let of_status = failures
        .iter()
        .filter(|failure| failure.kind == FailureKind::Status);
    let mut locations = of_status.filter_map(|failure| {
        failure
            .example
            .strip_prefix(&status.to_string())?
            .strip_prefix(LOCATION)
    });
    match locations.next() {
        Some(place) => {
            format!(
                "status {status} to {place}; redirects are not followed: request that instead, by --path or the URL"
            )
        }
        None => format!("status {status}"),
    }
}

/// Time in which a ready service may still refuse requests, in seconds of its warm-up.
const PATIENCE_S: f64 = 2.0;

/// Explains why no undecided comparison can get a result, after a slice without success. `None` while one
/// can.
pub fn all_fruitless(record: &Record) -> Option<String> {
    let plan = &record.header.plan;
    let each = |counts: fn(&Slice) -> bool| {
        (0..plan.variants.len()).map(move |index| of(record, index, counts))
    };
    // First all slices so far, of any kind. Then only measured slices without success, even if others had
    // some.
    let never: Vec<Option<NoSuccess>> = each(|_| true)
        .enumerate()
        .map(|(index, never)| never.filter(|_| is_tried(record, index)))
        .collect();
    let now_and_then =
        each(|slice| slice.kind == SliceKind::Measured && slice.counts.successful == 0);
    if never.iter().all(Option::is_some) {
        return Some(format!("no request succeeded; {}", named(record, &never)));
    }
    let both = now_and_then.zip(&never);
    let spoilt: Vec<Option<NoSuccess>> = both
        .map(|(some, never)| some.filter(|_| never.is_none()))
        .collect();
    let is_undecided = |asked: &plan::Comparison| {
        let either = |of: &[Option<NoSuccess>]| {
            of[asked.baseline].is_some() || of[asked.candidate].is_some()
        };
        !either(&never) && !either(&spoilt)
    };
    let any = spoilt.iter().any(Option::is_some);
    (any && !plan.comparisons.iter().any(is_undecided)).then(|| {
        format!(
            "in some slices no request succeeded, though in others some did; {}",
            named(record, &spoilt)
        )
    })
}

/// Whether a variant was loaded long enough to conclude that it never succeeds.
fn is_tried(record: &Record, variant: usize) -> bool {
    let warm_up_s: f64 = slices(record, variant)
        .map(|slice| slice.counts.window_ns as f64 / 1e9)
        .sum();
    warm_up_s >= PATIENCE_S || slices(record, variant).any(|slice| slice.kind != SliceKind::WarmUp)
}

fn named(record: &Record, failed: &[Option<NoSuccess>]) -> String {
    let names = record
        .header
        .plan
        .variants
        .iter()
        .map(|variant| &variant.name);
    let told = |(name, of): (&String, &Option<NoSuccess>)| {
        Some(format!("{name}: {}", of.as_ref()?.answer))
    };
    few(names.zip(failed).filter_map(told), NAMED_MAX, "; ")
}

/// One kind of failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailureCount {
    /// Phase of the request: `connect`, `tls`, `send`, `head`, `body`, `idle`, `response`, `time-out`,
    /// `unfinished`.
    pub phase: String,
    /// Description of the cause.
    pub cause: String,
    /// Number of failures in the measured slices of complete blocks.
    pub count: u64,
    /// The actual value, if known.
    pub example: Option<String>,
}

/// All kinds of failure of a variant's requests, by its index in the plan, most frequent first.
pub fn failures(record: &Record, index: usize) -> Vec<FailureCount> {
    let ways = measured_slices(record, index)
        .flat_map(ways_to_fail)
        .filter(|way| way.count > 0);
    let alike = model::grouped(ways.map(|way| ((way.phase.clone(), way.cause.clone()), way)));
    let together = |((phase, cause), ways): ((String, String), Vec<FailureCount>)| FailureCount {
        phase,
        cause,
        count: ways.iter().map(|way| way.count).sum(),
        example: ways.into_iter().find_map(|way| way.example),
    };
    let mut all: Vec<FailureCount> = alike.into_iter().map(together).collect();
    all.sort_by_key(|failure| std::cmp::Reverse(failure.count));
    all
}

fn ways_to_fail(slice: &Slice) -> Vec<FailureCount> {
    let (late, mut given_up) = ("no response in time", 0);
    let mut ways = Vec::new();
    let mut add = |phase: &str, cause: &str, count: u64, example: Option<&String>| {
        let (phase, cause, example) = (phase.to_owned(), cause.to_owned(), example.cloned());
        ways.push(FailureCount {
            phase,
            cause,
            count,
            example,
        });
    };
    for error in &slice.counts.errors {
        let phase = error.phase.to_string();
        if error.is_request_timeout() {
            given_up += error.count;
            add(
                "time-out",
                &format!("{late}, in the phase {phase}"),
                error.count,
                None,
            );
        } else {
            add(&phase, &error.cause.to_string(), error.count, None);
        }
    }
    for failure in &slice.counts.contract_failures {
        add(
            "response",
            &failure.kind.to_string(),
            failure.count,
            Some(&failure.example),
        );
    }
    let unsent = slice.counts.open.as_ref().map_or(0, |open| open.unsent);
    add(
        "time-out",
        late,
        slice.counts.timed_out.saturating_sub(given_up),
        None,
    );
    add(
        "unfinished",
        "under way when the window ended",
        slice.counts.unfinished,
        None,
    );
    add("unfinished", "due and never sent", unsent, None);
    ways
}
