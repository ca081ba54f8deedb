//! A load generator was lost
//!
//! **Seen.** `a load generator was lost once: in block 3 generator ssh://bench-1 exited before responding`.
//!
//! **Why.** Less load is another experiment, so the block is dropped. A warning if enough blocks remain.
//!
//! **What to do.** `exited before responding`: killed, or out of memory (`dmesg`).
//! `did not respond within 11 s`: broken network or stalled machine.
//! `did not complete its request within … s`: overloaded machine, or a bug.
//!
//! **Threshold.** One loss. The run ends if the generator does not come back.

use model::quantity::many;
use model::{Quantity, evidence};
use record::{EndReason, GeneratorLost};

use super::finding::{CheckFinding, either};
use super::input::CheckedRun;
use super::row::{CheckRow, EITHER, Maker, Subject, row};
use super::v36_too_few_blocks::BLOCKS_MIN;
use crate::{NAMED_MAX, few, only_if};

pub(super) static ROW: CheckRow = row(Subject::Client, EITHER, &[Maker::Whole(generator_lost)]);

/// Reports lost generators. Measurements in progress were discarded, so the figures are valid if enough
/// remain.
fn generator_lost(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let lost = run.generators_lost;
    only_if(!lost.is_empty())?;
    let failed = matches!(run.end(), Some(EndReason::GeneratorFailed(_)));
    let too_few = run.complete_blocks().count() < BLOCKS_MIN && !run.plan.comparisons.is_empty();
    let told = |lost: &GeneratorLost| match lost.block {
        0 => format!("before the first block {}", lost.why),
        block => format!("in block {block} {}", lost.why),
    };
    let told = few(lost.iter().map(told), NAMED_MAX, "; ");
    let times = if lost.len() == 1 {
        "once".to_owned()
    } else {
        many(lost.len() as u64, "time")
    };
    let evidence = evidence!("a load generator was lost {times}: {told}");
    let evidence = evidence.with([("times", Quantity::count(lost.len() as u64))]);
    let remedy = if failed {
        "the run ended with it; see on its machine whether memory ran out (dmesg), somebody ended it, or the network broke, and run again"
    } else {
        "the blocks in which that happened count for nothing, and others took their places, so that the result stands; see on its machine \
         whether memory ran out (dmesg), somebody ended it, or the network broke"
    };
    Some(either(failed && too_few, evidence, remedy))
}
