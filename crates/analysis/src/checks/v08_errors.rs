//! Too many requests failed
//!
//! **Seen.** `3,296 of 33,122 requests (9.95 %) had no expected response; 2,969 timed out`.
//!
//! **Why.** Failing mostly costs less work, so it looks fast. Not reported for [capacity](capacity.md).
//!
//! **What to do.** For the most frequent failure:
//!
//! - Status 429: raise the service's rate limit, or set a rate below it.
//! - Another 4xx: correct the path, headers, body or credentials.
//! - 5xx: read the end of the log; correct the service or lower the load.
//! - Broken connections: read the log, or use fewer `load.connections`.
//! - Timeouts: fewer `load.connections`, a lower rate, or a longer `load.timeout`.
//! - Else: correct `expect`, or the service.
//!
//! **Threshold.** `FAILED_SHARE_MAX = 0.001`.

use model::quantity::counted as number_of;
use model::{Cause, FAILED_SHARE_MAX, Phase, Quantity, RequestOutcome, evidence};
use record::{ContractFailure, Slice};

use super::finding::{CheckFinding, void, warning};
use super::input::{CheckedRun, CheckedVariant};
use super::row::{CheckRow, Maker, Subject, VOID, row};
use crate::failure::FailureClass;
use crate::only_if;
use crate::sums::{counted, outcome};
use crate::window::MeasuredWindow;

pub(super) static ROW: CheckRow = row(
    Subject::Work,
    VOID,
    &[Maker::Succeeding(errors), Maker::Slice(ended_early)],
);

/// Reports too many requests without an expected response. A capacity measurement counts them as never
/// responded to, and its windows are placed where the allowed number fails.
pub(super) fn errors(run: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    only_if(run.plan.design.slo.is_empty())?;
    let whole = outcome(&variant.slices);
    // If one request is judged separately, successes of others do not count for it.
    let endpoint = run
        .plan
        .design
        .endpoint
        .as_ref()
        .map(|of| (&of.name, of_endpoint(&variant.slices, &of.name)));
    let (of, outcome) = match endpoint.filter(|(_, own)| own.is_void() && !whole.is_void()) {
        Some((name, own)) => (format!(" of `{name}`"), own),
        None => (String::new(), whole),
    };
    only_if(outcome.is_void())?;
    let (RequestOutcome { due, failed }, share) = (outcome, outcome.failed_share()?);
    let mut seen = variant
        .slices
        .iter()
        .flat_map(|slice| &slice.counts.contract_failures);
    let example = |of: &ContractFailure| format!("; for example {}: {}", of.kind, of.example);
    let example = seen.next().map(example).unwrap_or_default();
    let (lost, limit) = (lost(&variant.slices), Quantity::share(FAILED_SHARE_MAX));
    let evidence = evidence!(
        "{failed} of {requests}{of} ({share}) had no expected response; {timed_out} timed out{lost}{example}";
        failed = Quantity::count(failed), requests = number_of(due, "request"), share = Quantity::share(share),
        timed_out = Quantity::count(variant.sum(|slice| slice.counts.timed_out)));
    let class = FailureClass::dominant(&variant.slices, variant.plan)?;
    if run.slice().is_some() {
        let effect = if class.has_response() {
            "throughput leaves them out, and the latencies contain them, however soon they came"
        } else {
            "throughput leaves them out, and in the latencies they are at least as long as they were waited for"
        };
        return Some(warning(evidence, format!("{effect}; {}", class.advice())));
    }
    let remedy = format!(
        "failed requests cost a service other work than successful ones, so rates above {limit} do not compare; {}",
        class.advice()
    );
    Some(void(evidence, remedy))
}

/// Outcome of the requests with this name.
fn of_endpoint(slices: &[&Slice], name: &str) -> RequestOutcome {
    let counts = slices
        .iter()
        .flat_map(|slice| &slice.counts.endpoints)
        .filter(|counts| counts.name == name);
    counts
        .map(|counts| RequestOutcome {
            due: counts.sent,
            failed: counts.failed(),
        })
        .sum()
}

/// Reports a slice that ended before all of its requests were sent. The generator stops if no connection
/// accepts requests.
fn ended_early(window: &MeasuredWindow<'_>) -> Option<CheckFinding> {
    let total = window.asked.until.requests()?;
    let due = window.slice.counts.due();
    only_if(due < total && !window.interrupted)?;
    let evidence = evidence!("{due} of {total} were sent, and then no connection took one";
        due = Quantity::count(due), total = number_of(total, "request"));
    let remedy =
        "the service ended or refuses connections, which no figure and no limit shows: see its log";
    Some(void(evidence, remedy))
}

/// Causes and phases of lost requests: `; 2 × reset (head)`. Connections that ended while idle lost none.
fn lost(slices: &[&Slice]) -> String {
    let errors = slices.iter().flat_map(|slice| &slice.counts.errors);
    let errors = errors.filter(|error| error.phase != Phase::Idle && error.cause != Cause::Timeout);
    let causes = counted(errors.map(|error| ((error.phase, error.cause), error.count)));
    causes
        .iter()
        .map(|((phase, cause), count)| format!("; {count} × {cause} ({phase})"))
        .collect()
}
