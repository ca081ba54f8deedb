//! The checks of an open loop: whether requests were sent when they were due, and enough of them for the quantile.
//!
//! Like every check they look at measured slices of complete blocks only. They are silent on a closed loop.

use record::{OpenLoop, Record, Slice};
use stats::Latencies;

use super::{each_variant, percent, total};
use crate::variant::merged;
use model::{Check, Finding, Grade};

/// Share of the requests due that has to be sent in the window for the load to be what was asked for.
pub const SENT_SHARE_MIN: f64 = 0.99;
/// Share of the requests due that may find no connection free.
pub const QUEUED_SHARE_MAX: f64 = 0.01;
/// How late the client may be for one request in a hundred without it mattering, in nanoseconds.
pub const LAG_MAX_NS: u64 = 200_000;
/// Which part of the response time the client's own lateness may be, both at p99.
pub const LAG_SHARE_MAX: f64 = 0.1;
/// Above this part it is rather the client that was measured.
pub const LAG_SHARE_VOID: f64 = 0.5;

fn opens<'a>(slices: &[&'a Slice]) -> Vec<&'a OpenLoop> {
    slices.iter().filter_map(|slice| slice.counts.open.as_deref()).collect()
}

/// What is wrong with a latency only qualifies CPU per request.
fn graver_for_latency(record: &Record) -> Grade {
    if record.header.plan.design.most_wanting().0.quantile().is_some() { Grade::Void } else { Grade::Warning }
}

/// Requests were due and not sent, or waited for a connection: what was measured is the queue.
pub(super) fn rate_not_kept(record: &Record) -> Vec<Finding> {
    each_variant(record, |index, name, slices| {
        let opens = opens(slices);
        let sum = |of: fn(&OpenLoop) -> u64| opens.iter().map(|open| of(open)).sum::<u64>();
        let due = sum(|open| open.intended);
        if due == 0 {
            return None;
        }
        let share = |part: u64| part as f64 / due as f64;
        let (sent, queued) = (share(sum(|open| open.sent_in_window)), share(sum(|open| open.queued)));
        if sent >= SENT_SHARE_MIN && queued <= QUEUED_SHARE_MAX {
            return None;
        }
        let due_per_s = due as f64 / (total(slices, |slice| slice.counts.window_ns) as f64 / 1e9);
        let capacity = record.rate.as_ref().and_then(|rate| rate.capacities_per_s.get(index));
        let capacity = capacity.filter(|per_s| **per_s > 0.0);
        let capacity = capacity.map(|per_s| format!("; its capacity was {per_s:.0}/s")).unwrap_or_default();
        Some(Finding {
            check: Check::RateNotKept,
            grade: graver_for_latency(record),
            evidence: format!(
                "{name}: of {due_per_s:.0} requests due per second {} were sent in time, and {} found no connection \
                 free{capacity}",
                percent(sent),
                percent(queued),
            ).into(),
            remedy: if queued > QUEUED_SHARE_MAX {
                "it was overloaded or had too few connections, so this is the length of a queue and not its latency; \
                 set load.connections higher, or design.rate lower"
            } else {
                "connections were free and the client did not send; give it a core of its own, or more threads \
                 (load.threads)"
            }
            .into(),
            variants: vec![index],
        })
    })
}

/// The client had a connection free and sent late, which is part of the response time.
pub(super) fn client_late(record: &Record) -> Vec<Finding> {
    each_variant(record, |index, name, slices| {
        let opens = opens(slices);
        let p99_ns = |latencies: Latencies| latencies.quantile(0.99).map(stats::Quantile::ns);
        let lag_ns = p99_ns(merged(opens.iter().map(|open| &open.schedule_lag)))?;
        let response_ns = p99_ns(merged(opens.iter().map(|open| &open.response)))?;
        let share = lag_ns as f64 / response_ns.max(1) as f64;
        if lag_ns <= LAG_MAX_NS || share <= LAG_SHARE_MAX {
            return None;
        }
        let void = share > LAG_SHARE_VOID;
        Some(Finding {
            check: Check::ClientLate,
            grade: if void { graver_for_latency(record) } else { Grade::Warning },
            evidence: format!(
                "{name}: with a connection free the client sent up to {:.2} ms late (p99), {} of the response time of \
                 {:.2} ms (p99){}",
                lag_ns as f64 / 1e6,
                percent(share),
                response_ns as f64 / 1e6,
                latest(slices),
            ).into(),
            remedy: if void {
                "what was measured is rather the client than the service; give it a core of its own, or end what else \
                 runs on this machine"
            } else {
                "the client's lateness is part of every figure, for all variants alike, and makes differences look smaller; \
                 give it a core of its own"
            }
            .into(),
            variants: vec![index],
        })
    })
}

/// Which of several generators was the latest.
fn latest(slices: &[&Slice]) -> String {
    let parts = slices.iter().flat_map(|slice| &slice.generators);
    let latest = parts.filter_map(|part| Some((part.lag_p99_ns?, &part.name))).max();
    latest.map_or(String::new(), |(ns, name)| format!("; {name} up to {:.2} ms in a slice", ns as f64 / 1e6))
}
