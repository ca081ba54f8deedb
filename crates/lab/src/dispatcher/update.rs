//! Updates of a run for its observers: events as they are recorded, and current activities, which are not
//! recorded.

use analysis::Conclusion;
use record::{CaptureKind, Event};
use schemars::JsonSchema;
use serde::Serialize;
use services::Preparing;

use crate::environment::Connecting;

/// An update of a run.
#[derive(Debug)]
pub struct Update<'a> {
    /// Seconds since the start of the run.
    pub elapsed_s: f64,
    /// Maximum remaining seconds of the run. An estimate for captures.
    pub left_s: f64,
    /// The news.
    pub news: UpdateNews<'a>,
}

/// News of a run.
#[derive(Debug, Clone, Copy)]
pub enum UpdateNews<'a> {
    /// An event happened. The record contains it or gets it now. During captures it may have no place for it.
    Event(&'a Event),
    /// An activity is in progress.
    Progress(Progress<'a>),
}

/// Current activity. Variants are given by their index in the plan.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub enum Progress<'a> {
    /// Generators are being connected. Reported at the beginning, and about once a second.
    Connecting(Connecting<'a>),
    /// The data with this name is not available yet. Reported at the beginning, and about once a second.
    Preparing { name: &'a str, doing: Preparing },
    /// Work on a trial begins. If trials take turns, measuring is reported once for all of them, with the
    /// first variant.
    Trial { doing: Doing, variant: usize },
    /// The conclusion from all blocks so far, after one that counts.
    Concluded(&'a Conclusion),
    /// The run has its result, and captures for explaining it begin: number of variants, passes over them,
    /// and estimated seconds in addition to the budget.
    Explaining {
        variants: usize,
        rounds: u32,
        seconds: f64,
    },
    /// A window of load with a capture begins. Rounds are counted from 1.
    Capturing {
        round: u32,
        kind: CaptureKind,
        variant: usize,
    },
    /// No or no further captures are made, with the reason. The result stays as it is.
    NotExplained(&'a str),
}

/// Activity of a trial.
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
    /// It is loaded at rates other than its capacity, in order to find it.
    Probing,
    /// It is overloaded, and then observed while it recovers.
    Overloading,
}
