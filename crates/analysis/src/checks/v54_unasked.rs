//! More was sent than was asked for
//!
//! **Seen.** `on: 64 times more came than the responses to what was requested`.
//!
//! **Why.** HTTP/1.1 matches responses by order, so a service that responds twice looks twice as fast.
//!
//! **What to do.** Look for a proxy or handler that responds twice, and bodies longer than Content-Length or
//! with status 204 or 304. A final 408 does not count.
//!
//! **Threshold.** Once. Slices of 100 ms or more check at their end, for 20 ms to 1 s; shorter ones when the
//! next begins.

use model::quantity::many;
use model::{Cause, Phase, Quantity, evidence};

use super::finding::{CheckFinding, void};
use super::input::{CheckedRun, CheckedVariant};
use super::row::{CheckRow, Maker, Subject, VOID, row};

pub(super) static ROW: CheckRow = row(Subject::Work, VOID, &[Maker::Each(unasked)]).ending_run();

/// Reports bytes that arrived when no response was pending: after a complete response, or between slices.
fn unasked(_: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    let errors = variant.slices.iter().flat_map(|slice| &slice.counts.errors);
    let unasked =
        errors.filter(|error| (error.phase, error.cause) == (Phase::Idle, Cause::Malformed));
    let count: u64 = unasked.map(|error| error.count).sum();
    let evidence = evidence!(
        "{} more came than the responses to what was requested",
        many(count, "time")
    );
    let evidence = evidence.with([("count", Quantity::count(count))]);
    let remedy = "two responses to one request, or bodies longer than their Content-Length: responses may be mixed up, and no figure holds";
    (count > 0).then(|| void(evidence, remedy))
}
