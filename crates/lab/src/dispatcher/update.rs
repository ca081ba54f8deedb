//! Updates of a run for its observers: events as they are recorded, and current activities, which are not
//! recorded.

use analysis::Conclusion;
use record::{CaptureKind, Event};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
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
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Progress<'a> {
    /// Generators are being connected. Reported at the beginning, and about once a second.
    Connecting(Connecting<'a>),
    /// Data that services need is not available yet. Reported at the beginning, and about once a second.
    Preparing {
        /// Name of the data in the experiment.
        name: &'a str,
        /// Seconds since its command was started. Null while another run makes the data.
        #[serde(rename = "making_s", serialize_with = "making_s")]
        #[schemars(with = "Option<f64>")]
        doing: Preparing,
    },
    /// Work on a trial begins. If trials take turns, measuring is reported once for all of them, with the
    /// first variant.
    Trial {
        /// The activity.
        doing: Doing,
        /// Index of the variant.
        variant: usize,
    },
    /// The conclusion from all blocks so far, after one that counts.
    Concluded(&'a Conclusion),
    /// The run has its result, and captures for explaining it begin.
    Explaining {
        /// Number of variants that are explained.
        variants: usize,
        /// Number of passes over them.
        rounds: u32,
        /// Estimated duration in addition to the budget.
        seconds: f64,
    },
    /// A window of load with a capture begins.
    Capturing {
        /// Number of the round, from 1.
        round: u32,
        /// Kind of capture.
        kind: CaptureKind,
        /// Index of the variant.
        variant: usize,
    },
    /// No or no further captures are made, with the reason. The result stays as it is.
    NotExplained(&'a str),
}

fn making_s<S: Serializer>(preparing: &Preparing, serializer: S) -> Result<S::Ok, S::Error> {
    match preparing {
        Preparing::Waiting => serializer.serialize_none(),
        Preparing::Making(for_now) => serializer.serialize_some(&for_now.as_secs_f64()),
    }
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
