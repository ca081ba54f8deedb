//! Time intervals over which the machine was observed. Slices made in turns share one interval.

use record::{MachineUse, Slice};

use super::input::{CheckedBlock, CheckedRun};
use crate::sums::total;

pub(super) fn loaded_ns(stretches: &[WatchedSpan<'_>]) -> f64 {
    stretches
        .iter()
        .map(WatchedSpan::wall_ns)
        .sum::<u64>()
        .max(1) as f64
}

/// A time interval over which the machine was observed: of one slice, or of several slices that were made in
/// turns. Activity of the whole machine counts once per interval, not once per slice. Contains at least one
/// slice.
pub(super) struct WatchedSpan<'a> {
    pub machine: &'a MachineUse,
    pub slices: Vec<&'a Slice>,
}

impl WatchedSpan<'_> {
    pub fn sum(&self, of: impl Fn(&Slice) -> u64) -> u64 {
        total(&self.slices, of)
    }

    /// Time under load, including drains.
    pub fn wall_ns(&self) -> u64 {
        self.sum(|slice| slice.counts.wall_ns())
    }

    /// Whether all counts in it belong to this variant, or to no variant.
    pub fn belongs_to(&self, variant: usize) -> bool {
        self.slices
            .iter()
            .all(|slice| slice.variant == variant && slice.turns == 1)
    }

    fn holds(&self, slice: &Slice) -> bool {
        // No other slice has the same values to the nanosecond. Without such values, the number of turns
        // decides.
        let told = slice.turns > 1 || slice.machine.spin_ns.is_some();
        told && same_time(self.machine, &slice.machine)
    }
}

/// The intervals of all measured slices of complete blocks.
pub(super) fn stretches<'a>(run: &CheckedRun<'a>) -> Vec<WatchedSpan<'a>> {
    let of_block = |block| of_block(block, true);
    run.complete_blocks().flat_map(of_block).collect()
}

/// The intervals of all other slices, in every block that was not dropped. Warm-ups take turns, too, except
/// in the first block.
fn stretches_beside<'a>(run: &CheckedRun<'a>) -> Vec<WatchedSpan<'a>> {
    let kept = run.blocks.iter().filter(|block| block.dropped.is_none());
    kept.flat_map(|block| of_block(block, false)).collect()
}

/// The intervals of the slices with the result, or of all others.
fn of_block<'a>(block: &CheckedBlock<'a>, with_result: bool) -> Vec<WatchedSpan<'a>> {
    // Slices made in turns have the same index in their trials.
    let mut by_number: Vec<Vec<WatchedSpan<'a>>> = Vec::new();
    let numbered = block.trials.iter().flat_map(|trial| {
        let is_wanted = move |slice: &&Slice| trial.counts(slice) == with_result;
        let kept = trial.slices.iter().filter(is_wanted);
        kept.enumerate()
    });
    for (number, slice) in numbered {
        by_number.resize_with(by_number.len().max(number + 1), Vec::new);
        let found = &mut by_number[number];
        match found.iter_mut().find(|stretch| stretch.holds(slice)) {
            Some(stretch) => stretch.slices.push(slice),
            None => found.push(WatchedSpan {
                machine: &slice.machine,
                slices: vec![slice],
            }),
        }
    }
    by_number.into_iter().flatten().collect()
}

/// Whether two entries were read at the same two moments. On a link each trial has its own TCP counters.
fn same_time(one: &MachineUse, other: &MachineUse) -> bool {
    let shared = |machine: &MachineUse| MachineUse {
        tcp: None,
        ..machine.clone()
    };
    shared(one) == shared(other)
}

/// Slices of a variant during which no other trial's connections were counted.
pub(super) fn own<'a>(run: &CheckedRun<'a>, variant: usize, on_link: bool) -> Vec<&'a Slice> {
    if on_link {
        return run.slices(variant).collect();
    }
    let all = stretches_beside(run).into_iter().chain(stretches(run));
    all.filter(|stretch| stretch.belongs_to(variant))
        .flat_map(|stretch| stretch.slices)
        .collect()
}
