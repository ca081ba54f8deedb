//! The processor's speed changed
//!
//! **Seen.** `the same arithmetic took 512 µs to 590 µs from block to block (14 %)`, in CPU time.
//!
//! **Why.** Heat, load, or a neighbour on the core. Comparisons within blocks hold; absolute figures do not.
//!
//! **What to do.** Fix the frequency (governor `performance`, no turbo), or cool the machine.
//!
//! **Threshold.** A tenth of the median (`SPIN_SPREAD_MAX`), from six blocks on.

use model::{Quantity, evidence};

use super::finding::{CheckFinding, warning};
use super::input::{CheckedBlock, CheckedRun};
use super::row::{CheckRow, Maker, OFF, Subject, WARNING, row};
use crate::only_if;

pub(super) static ROW: CheckRow =
    row(Subject::Machine, WARNING, &[Maker::Whole(spin_varies)]).alone(OFF);

/// Maximum change of processor speed between blocks, as a share of the median. On a shared virtual machine
/// running compilers, the quickest of twelve probes was within 6 % in eighteen of twenty groups. Frequency
/// steps and heat change 10 % and more.
const SPIN_SPREAD_MAX: f64 = 0.1;
/// Minimum number of blocks for judging the speed.
const SPIN_BLOCKS_MIN: usize = 6;

/// Reports that the same arithmetic took longer in some blocks than in others.
///
/// The quickest probe of each block counts, and the extreme blocks are left out: a neighbour slows single
/// probes, a lower frequency slows all of them. Changes within a block are not detected.
fn spin_varies(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let quickest = |block: &CheckedBlock<'_>| {
        let slices = block.trials.iter().flat_map(|trial| trial.slices);
        slices.filter_map(|slice| slice.machine.spin_ns).min()
    };
    let mut quickest: Vec<u64> = run.complete_blocks().filter_map(quickest).collect();
    quickest.sort_unstable();
    only_if(quickest.len() >= SPIN_BLOCKS_MIN)?;
    let (low, high) = (quickest[1], quickest[quickest.len() - 2]);
    let typical = stats::median(quickest.iter().map(|ns| *ns as f64))?;
    let share = (high - low) as f64 / typical.max(1.0);
    only_if(share > SPIN_SPREAD_MAX)?;
    Some(warning(
        evidence!("the same arithmetic took {low} to {high} from block to block ({spread}), the extreme blocks left out";
            spread = Quantity::share(share), low = Quantity::ns(low), high = Quantity::ns(high)),
        "the processors changed their speed: frequency, heat, or a neighbour on the same core. Comparisons within blocks hold, absolute \
         figures are those of a changing machine; fix the frequency (governor performance, no turbo), or cool it",
    ))
}
