//! Held back by a quota
//!
//! **Seen.** `quotas of CPU time held processes back for 12 % of the measured time, in 60 of 72 slices`.
//!
//! **Why.** A throttled process stops until the next tenth of a second. The service's own quota counts, but
//! drops no block.
//!
//! **What to do.** Lift it (`cpu.max`, `docker --cpus`, `limits.cpu`), or run fewer workers.
//!
//! **Threshold.** `THROTTLED_SHARE_MAX = 0.01` of the measured time.

use model::quantity::many;
use model::thresholds::THROTTLED_SHARE_MAX;
use model::{Quantity, evidence};
use record::Slice;

use super::finding::{CheckFinding, warning};
use super::input::CheckedRun;
use super::row::{CheckRow, Maker, Subject, WARNING, row};
use super::watched_span::{WatchedSpan, loaded_ns, stretches};

pub(super) static ROW: CheckRow = row(Subject::Machine, WARNING, &[Maker::Whole(throttled)]);

fn throttled(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let stretches = stretches(run);
    let held_in = |stretch: &WatchedSpan<'_>| {
        stretch
            .machine
            .throttled_ns
            .max(stretch.sum(Slice::services_throttled_ns))
    };
    let held = stretches.iter().map(held_in);
    let (held_ns, hit) = held.fold((0, 0), |(sum, hit), ns| {
        (sum + ns, hit + usize::from(ns > 0))
    });
    let (share, of) = (
        held_ns as f64 / loaded_ns(&stretches),
        many(stretches.len() as u64, "slice"),
    );
    let evidence = evidence!("quotas of CPU time held processes back for {held} of the measured time, in {hit} of {of}";
        held = Quantity::share(share));
    let remedy = "what was measured is rather the quota than the service, with pauses of up to 100 ms; lift it (cpu.max, cpu.cfs_quota_us, \
                  docker --cpus, limits.cpu), or run fewer workers than it allows";
    (share > THROTTLED_SHARE_MAX).then(|| warning(evidence, remedy))
}
