//! What a run tells whoever watches it: where it is, and what happened just now. It says nothing that is not in the record too, or
//! soon will be.

use analysis::Conclusion;
use record::{CaptureKind, Generator, Prepared, RateChosen, Slice};
use services::Preparing;

use crate::world::{Connecting, Lost};

/// What the run is doing, for whoever watches.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Number of the block under way, from 1; 0 before the first.
    pub block: u32,
    /// Blocks dropped so far, of those before.
    pub dropped: u32,
    /// Blocks that count in all, once that is settled.
    pub blocks_planned: Option<u32>,
    /// Seconds since the run began, without those in which it was paused.
    pub elapsed_s: f64,
    /// Seconds that the run may still take at the most; of captures about how long they take.
    pub left_s: f64,
    /// What happened just now.
    pub notice: &'a Notice<'a>,
}

/// Something that a watcher may want to show.
#[derive(Debug)]
pub enum Notice<'a> {
    /// Generators are being connected: told as it begins, and about once a second.
    Connecting(Connecting<'a>),
    /// All generators are there, for the first time or once more.
    Connected(&'a [Generator]),
    /// A generator is gone.
    GeneratorLost(&'a Lost),
    /// Data of this name is not there yet.
    Preparing(&'a str, Preparing),
    /// Data is there.
    Prepared(&'a Prepared),
    /// A block begins; the trials of these variants are started in this order.
    BlockStarted(&'a [usize]),
    /// Work on a trial begins. Where trials take turns, measuring is told once for all of them, with the variant whose turn is first.
    Trial(Doing, &'a str),
    /// A slice ended. Of trials that take turns, those of a pass end together.
    SliceDone(&'a Slice),
    /// The run waits, because the user wants it to.
    Paused,
    /// It goes on, after so many seconds.
    Resumed {
        /// How long it had waited.
        seconds: f64,
    },
    /// The rate that all variants get is settled.
    RateChosen(&'a RateChosen),
    /// A block is complete; this is what follows from all blocks so far.
    BlockDone(&'a Conclusion),
    /// A block counts for nothing, for what machine or generators did meanwhile. Another takes its place.
    BlockDropped(&'a str),
    /// The run ends, because going on is pointless: why, and what to do.
    Pointless(&'a str),
    /// The run has its result, and captures of what explains it begin, on top of the budget.
    Explaining {
        /// How many variants are explained.
        variants: usize,
        /// Passes over them.
        rounds: u32,
        /// About how long that takes.
        seconds: f64,
    },
    /// A window of load begins in which something is captured.
    Capturing {
        /// Number of the round, from 1.
        round: u32,
        /// What is captured.
        kind: CaptureKind,
        /// The variant's name.
        variant: &'a str,
    },
    /// Nothing is explained, or nothing more: why. The result stays what it is.
    NotExplained(&'a str),
}

/// What is done with a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Its services are being started.
    Starting,
    /// Its capacity is being measured, before the first block.
    MeasuringCapacity,
    /// It is being warmed up.
    WarmingUp,
    /// A slice of it is being measured.
    Measuring,
}
