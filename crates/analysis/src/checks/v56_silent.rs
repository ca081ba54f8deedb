//! No response for a while
//!
//! **Seen.** `api: no response for 5.00s of 10.0s, 5.00s at a time, while requests waited`.
//!
//! **Why.** In closed loop nothing is sent while all connections wait, so p99 does not show even long pauses.
//! A limit on a latency quantile q (`--limit 'p99 < 50ms'`) therefore also fails if new requests would have
//! waited longer for 1 − q of the time. In open loop response times contain the pause.
//!
//! **What to do.** Find the cause in the log: a lock, garbage collection, a restart, a full disk. Or load it
//! at a rate (`--rate`, `design.rate`).
//!
//! **Threshold.** Pauses of at least 0.1 s (`SILENCE_MIN_NS`), and three times the response time of 99 % of
//! the other requests (`USUAL_FACTOR`), with waiting requests and no response on any thread. Together
//! `SILENT_SHARE_MIN = 0.01` of the time under load with drains, or one of 1 s. Invalid if one takes 1 s, all
//! exceed the margin, and trials take turns, whose throughput excludes pauses.

use model::{Counts, Quantity, evidence};
use record::Slice;

use super::finding::{CheckFinding, either};
use super::input::{CheckedRun, CheckedVariant};
use super::row::{CheckRow, EITHER, Maker, Subject, row};
use crate::only_if;
use crate::usage::wall_ns;

pub(super) static ROW: CheckRow = row(Subject::Service, EITHER, &[Maker::Succeeding(silent)]);

/// Share of the time under load from which a silence is reported.
const SILENT_SHARE_MIN: f64 = 0.01;
/// Length of a single silence that is reported for any share, in nanoseconds.
const SILENT_MIN_NS: u64 = 1_000_000_000;

/// Time in which requests waited for longer than `limit_ns` and no response arrived, in nanoseconds. 0 in
/// open loop, where requests remain due, and if the load generator itself was halted.
pub(crate) fn silent_ns(counts: &Counts, limit_ns: u64) -> u64 {
    if counts.open.is_some() || counts.halted_ns > 0 {
        return 0;
    }
    counts
        .silences()
        .iter()
        .map(|silence| silence.waited_ns().saturating_sub(limit_ns))
        .sum()
}

fn silent(run: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    let silent_ns = variant.sum(|slice| silent_ns(&slice.counts, 0));
    let each = variant
        .slices
        .iter()
        .flat_map(|slice| slice.counts.silences());
    let longest_ns = each
        .map(|silence| silence.waited_ns())
        .max()
        .filter(|_| silent_ns > 0)?;
    let load_ns = wall_ns(&variant.slices);
    let share = silent_ns as f64 / load_ns;
    only_if(share >= SILENT_SHARE_MIN || longest_ns >= SILENT_MIN_NS)?;
    // A turn can end before the silence does, and throughput then excludes the silence.
    let is_hidden = |slice: &&Slice| slice.turns > 1 && !slice.waits;
    let is_hidden = variant.slices.iter().any(is_hidden) && share > run.plan.design.margin;
    // Shorter silences may be caused by a shared machine.
    let is_hidden = is_hidden && longest_ns >= SILENT_MIN_NS;
    let remedy = if is_hidden {
        "throughput is counted in windows that ended before, and leaves this time out; find out in the service's log what it waited for \
         (a lock, a collection of memory, a restart, a full disk)"
    } else {
        "requests that would have come meanwhile are missing in closed loop, so quantiles of the latency hardly show it; find out in the \
         service's log what it waited for, and load it at a rate (--rate, design.rate), where each request has its time"
    };
    let evidence = evidence!("no response for {silent} of {load}, {longest} at a time, while requests waited";
        silent = Quantity::ns(silent_ns), load = Quantity::ns(load_ns as u64), longest = Quantity::ns(longest_ns));
    Some(either(is_hidden, evidence, remedy))
}
