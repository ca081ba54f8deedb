//! Stretches of time over which the machine was watched: those of single slices, and those in which slices were made in turns.
//!
//! What the whole machine did counts once for each stretch, not once for each slice that tells it. It judges nothing.

use record::{Block, MachineUse, Record, Slice};

/// One stretch, with the slices that were made in it; there is at least one.
pub(super) struct Stretch<'a> {
    pub machine: &'a MachineUse,
    pub slices: Vec<&'a Slice>,
}

impl Stretch<'_> {
    pub fn sum(&self, of: impl Fn(&Slice) -> u64) -> u64 {
        self.slices.iter().map(|slice| of(slice)).sum()
    }

    /// Time under load, drains included.
    pub fn wall_ns(&self) -> u64 {
        self.sum(|slice| slice.counts.window_ns + slice.counts.drain_ns)
    }

    /// Whether all that was counted in it is of this variant, or of nobody's doing.
    pub fn belongs_to(&self, variant: usize) -> bool {
        self.slices.iter().all(|slice| slice.variant == variant && slice.turns == 1)
    }

    fn holds(&self, slice: &Slice) -> bool {
        // Nobody else has the same figures to the nanosecond. Where there are none, turns tell.
        let told = slice.turns > 1 || slice.machine.spin_ns.is_some();
        told && same_time(self.machine, &slice.machine)
    }
}

/// The stretches of all measured slices of complete blocks.
pub(super) fn measured(record: &Record) -> Vec<Stretch<'_>> {
    record.complete_blocks().flat_map(of_block).collect()
}

fn of_block(block: &Block) -> Vec<Stretch<'_>> {
    // Slices that were made in turns are the nth of their trials alike.
    let mut by_number: Vec<Vec<Stretch<'_>>> = Vec::new();
    for (number, slice) in block.trials.iter().flat_map(|trial| trial.measured().enumerate()) {
        by_number.resize_with(by_number.len().max(number + 1), Vec::new);
        let found = &mut by_number[number];
        match found.iter_mut().find(|stretch| stretch.holds(slice)) {
            Some(stretch) => stretch.slices.push(slice),
            None => found.push(Stretch { machine: &slice.machine, slices: vec![slice] }),
        }
    }
    by_number.into_iter().flatten().collect()
}

/// Whether these were read at the same two moments. On a link each trial has a TCP of its own.
fn same_time(one: &MachineUse, other: &MachineUse) -> bool {
    let shared = |machine: &MachineUse| MachineUse { tcp: None, ..machine.clone() };
    shared(one) == shared(other)
}
