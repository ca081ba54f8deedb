//! What a run tells whoever watches it: events as the record keeps them, and what is under way, which nobody keeps.

use analysis::Conclusion;
use record::{CaptureKind, Event};
use schemars::JsonSchema;
use serde::Serialize;
use services::Preparing;

use crate::environment::Connecting;

/// News of a run.
#[derive(Debug)]
pub struct Update<'a> {
    /// Seconds since the run began.
    pub elapsed_s: f64,
    /// Seconds that the run may still take at the most; of captures about how long they take.
    pub left_s: f64,
    /// What is new.
    pub news: News<'a>,
}

/// What is new.
#[derive(Debug, Clone, Copy)]
pub enum News<'a> {
    /// Something happened. The record has it, or gets it now; while captures are made it may have no place for it.
    Event(&'a Event),
    /// Something is under way.
    Progress(Progress<'a>),
}

/// What is under way. Variants are told by their index in the plan.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub enum Progress<'a> {
    /// Generators are being connected: told as it begins, and about once a second.
    Connecting(Connecting<'a>),
    /// Data of this name is not there yet: told as it begins, and about once a second.
    Preparing { name: &'a str, doing: Preparing },
    /// Work on a trial begins. Where trials take turns, measuring is told once for all of them, with the variant whose turn is first.
    Trial { doing: Doing, variant: usize },
    /// What follows from all blocks so far, after one that counts.
    Concluded(&'a Conclusion),
    /// The run has its result, and captures of what explains so many variants begin, in so many passes over them. On top of the budget they
    /// take about so many seconds.
    Explaining { variants: usize, rounds: u32, seconds: f64 },
    /// A window of load begins in which something is captured; rounds are counted from 1.
    Capturing { round: u32, kind: CaptureKind, variant: usize },
    /// Nothing is explained, or nothing more: why. The result stays what it is.
    NotExplained(&'a str),
}

/// What is done with a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// Its services are being started.
    Starting,
    /// Its capacity is being measured, before the first block.
    MeasuringCapacity,
    /// It is being warmed up.
    WarmingUp,
    /// A slice of it is being measured.
    Measuring,
    /// It is loaded at another rate than that of its capacity, to find that.
    Probing,
    /// It is loaded with more than it can do, and seen to recover.
    Overloading,
}
