//! Requests were not sent when they were due
//!
//! **Seen.** `of 4,000/s due 91 % were sent in time, and 12 % found no connection free; it saturates at
//! 4,100/s`.
//!
//! **Why.** Requests waited for connections, or the client was late. A warning if only CPU per request is
//! judged.
//!
//! **What to do.** More `load.connections`, or a lower `design.rate`. For a late client: a separate core, or
//! more `load.threads`.
//!
//! **Threshold.** At least `SENT_SHARE_MIN = 0.99` of the due requests sent in the window, and at most
//! `QUEUED_SHARE_MAX = 0.01` without a free connection (not judged near a [capacity](capacity.md) with
//! `CONNECTIONS_ROOM = 2.0` times the connections that the time limit can use).

use model::{Quantity, evidence};
use record::OpenLoop;

use super::finding::{CheckFinding, either, warning};
use super::input::{CheckedRun, CheckedVariant};
use super::open_loop::{judges_latency, opens};
use super::row::{CheckRow, EITHER, Maker, Subject, row};
use crate::capacity::has_connections;
use crate::only_if;
use crate::usage::QUEUED_SHARE_MAX;

pub(super) static ROW: CheckRow = row(Subject::Client, EITHER, &[Maker::Succeeding(rate_not_kept)]);

/// Minimum share of the due requests that must be sent in the window.
pub(crate) const SENT_SHARE_MIN: f64 = 0.99;

/// Reports that due requests were not sent, or waited for a connection, so that the queue was measured.
fn rate_not_kept(run: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    let opens = opens(variant);
    let sum = |of: fn(&OpenLoop) -> u64| opens.iter().map(|open| of(open)).sum::<u64>();
    let due = sum(|open| open.intended);
    only_if(due > 0)?;
    let share = |part: u64| part as f64 / due as f64;
    let (sent, queued) = (
        share(sum(|open| open.sent_in_window)),
        share(sum(|open| open.queued)),
    );
    only_if(sent < SENT_SHARE_MIN || queued > QUEUED_SHARE_MAX)?;
    // Around its capacity a service is overloaded at times.
    let record = run.record();
    let has_connections = || record.is_some_and(|record| has_connections(record, variant.index));
    only_if(queued <= QUEUED_SHARE_MAX || !has_connections())?;
    let rate = record.and_then(|record| record.rate.as_ref());
    let capacity = rate.and_then(|rate| rate.capacities_per_s.get(variant.index));
    let capacity = capacity
        .filter(|per_s| **per_s > 0.0)
        .map(|per_s| Quantity::per_s(*per_s));
    let capacity = capacity
        .map(|per_s| format!("; it saturates at {per_s}"))
        .unwrap_or_default();
    let evidence = evidence!("of {due} due {sent} were sent in time, and {queued} found no connection free{capacity}";
        due = Quantity::per_s(due as f64 / (variant.sum(|slice| slice.counts.window_ns) as f64 / 1e9)),
        sent = Quantity::share(sent), queued = Quantity::share(queued));
    if run.slice().is_some() {
        let remedy = if queued > QUEUED_SHARE_MAX {
            "requests waited for a connection, which the response time contains: more connections, or the service is overloaded"
        } else {
            "the client's own lateness is part of the response times: give it a core of its own, or more threads"
        };
        return Some(warning(evidence, remedy));
    }
    let remedy = if queued > QUEUED_SHARE_MAX {
        "it was overloaded or had too few connections, so this is the length of a queue and not its latency; set load.connections higher, \
         or design.rate lower"
    } else {
        "connections were free and the client did not send; give it a core of its own, or more threads (load.threads)"
    };
    // A capacity needs all requests of its rate, and counts windows with too few connections as bounds.
    let is_capacity = !run.plan.design.slo.is_empty();
    let is_void = if is_capacity {
        queued <= QUEUED_SHARE_MAX
    } else {
        judges_latency(run)
    };
    Some(either(is_void, evidence, remedy))
}
