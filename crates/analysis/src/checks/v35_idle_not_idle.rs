//! Services worked while others were measured
//!
//! **Seen.** `trials that should have been idle used 3.20 % of a core while others were loaded`.
//!
//! **Why.** Background work takes time from the *other* variant under load.
//!
//! **What to do.** Turn background jobs and timers off, or set a fixed `port`: variants then run one after
//! another, which needs more blocks.
//!
//! **Threshold.** `IDLE_SHARE_MAX = 0.01` of a core. If trials take turns, only the first block's warm-ups
//! count, because later no service is idle.

use model::{Quantity, evidence};
use record::Slice;

use super::finding::{CheckFinding, warning};
use super::input::{CheckedRun, CheckedTrial};
use super::row::{CheckRow, Maker, Subject, WARNING, row};
use crate::sums::total;
use crate::usage::wall_ns;

pub(super) static ROW: CheckRow = row(Subject::Machine, WARNING, &[Maker::Whole(idle_not_idle)]);

/// Maximum share of a core that idle trials may use.
const IDLE_SHARE_MAX: f64 = 0.01;

fn idle_not_idle(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let slices: Vec<&Slice> = run.complete_trials().flat_map(beside_idle_trials).collect();
    let share = total(&slices, |slice| slice.machine.idle_trials_cpu_ns) as f64 / wall_ns(&slices);
    let evidence = evidence!("trials that should have been idle used {used} of a core while others were loaded"; used = Quantity::share(share));
    let remedy = "the services work without requests (timers, collectors); each variant is disturbed by the others";
    (share > IDLE_SHARE_MAX).then(|| warning(evidence, remedy))
}

/// The slices of a trial with a figure for idle trials. If trials take turns, no service is idle all the time,
/// and no idle use is recorded. In the first block trials are warmed up one by one.
fn beside_idle_trials<'a>(trial: &CheckedTrial<'a>) -> Vec<&'a Slice> {
    let one_by_one = |slice: &Slice| slice.block == 1 && !trial.counts(slice);
    let alone = |slice: &&Slice| slice.turns == 1 && slice.counts.sent > 0;
    let is_known = |slice: &&Slice| one_by_one(slice) || slice.machine.idle_trials_cpu_ns > 0;
    trial.slices.iter().filter(alone).filter(is_known).collect()
}
