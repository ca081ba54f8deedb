//! Blocks that count for nothing
//!
//! **Seen.** `2 of 12 blocks were dropped: in block 4 CPU steal was 31 %`. Without a comparison,
//! `the load stood still for 2.00 s` (invalid).
//!
//! **Why.** Something else used the machine. Dropping depends only on machine counters, so the result holds.
//!
//! **What to do.** Nothing, if the verdict is clear. `design.drop_disturbed = false` counts disturbed blocks.
//!
//! **Threshold.** `GROSS_STEAL_SHARE = 0.2` of all CPU time, `GROSS_OTHERS_SHARE = 0.2` by other processes,
//! `GROSS_THROTTLED_SHARE = 0.2` of the windows throttled by a quota, or [another
//! rule](methodology.md#what-is-dropped).

use model::quantity::counted;
use model::{Quantity, evidence};

use super::finding::{CheckFinding, void, warning};
use super::input::{CheckedBlock, CheckedRun};
use super::row::{CheckRow, EITHER, Maker, Subject, row};
use crate::window::MeasuredWindow;
use crate::{NAMED_MAX, few};

pub(super) static ROW: CheckRow = row(
    Subject::Lab,
    EITHER,
    &[Maker::Whole(blocks_dropped), Maker::Slice(stood_still)],
);

/// Reports blocks that the lab dropped because of the machine, which explains the time they took.
fn blocks_dropped(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let why =
        |block: &CheckedBlock<'_>| Some(format!("in block {} {}", block.number, block.dropped?));
    let told: Vec<String> = run.blocks.iter().filter_map(why).collect();
    let dropped = told.len();
    let complete = run.complete_blocks().count() + dropped;
    let evidence = evidence!("{dropped} of {blocks} were dropped: {}", few(told, NAMED_MAX, "; ");
        dropped = Quantity::count(dropped as u64), blocks = counted(complete as u64, "block"));
    let remedy = "they count for nothing, by a rule that does not see what was measured, so that the result stands; it rests on fewer blocks \
                  than there was time for, and a quieter machine decides more";
    (dropped > 0).then(|| warning(evidence, remedy))
}

/// Reports that the load stood still during a slice. In an experiment such a block is dropped.
fn stood_still(window: &MeasuredWindow<'_>) -> Option<CheckFinding> {
    let halted_ns = Some(window.slice.counts.halted_ns).filter(|ns| *ns > 0)?;
    let evidence = evidence!("the load stood still for {time}"; time = Quantity::ns(halted_ns));
    let remedy = "it was stopped (Ctrl-Z, SIGSTOP), or the machine suspended, while the window went on: measure again";
    Some(void(evidence, remedy))
}
