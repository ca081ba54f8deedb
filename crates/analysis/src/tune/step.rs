//! The words between a tuning and whoever carries its steps out: what is asked, what is to be measured, what came of it.

use model::Metric;
use serde::Serialize;

use super::figures::Figures;
use super::setting::{Keep, Setting};

/// A level of each setting, in their order; 0 is the service as it is.
pub type Row = Vec<usize>;

/// What a step is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The service as it is: does it work, how long does it warm up?
    Baseline,
    /// A setting alone: does it start, does it answer the same?
    Smoke(usize),
    /// Half of a mirrored pair of the screening.
    Screen {
        /// Number of the pair, from 1.
        pair: u32,
        /// Numbers of pairs.
        of: u32,
    },
    /// Levels of a setting against each other.
    Race(usize),
    /// Half of a mirrored pair of what was chosen, at a rate: what it does to response times.
    Latency {
        /// Number of the pair, from 1.
        pair: u32,
    },
    /// What was chosen against the service as it is.
    Confirm,
    /// The same at a rate, where response times are to be kept.
    ConfirmLatency,
}

/// What is to be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What for.
    pub purpose: Purpose,
    /// What each variant is, each unlike the others.
    pub rows: Vec<Row>,
    /// Passes over them, each with fresh processes.
    pub blocks: u32,
    /// About how long it takes, in seconds.
    pub seconds: f64,
    /// Requests per second, in open loop; `None` at the limit.
    pub rate_per_s: Option<f64>,
}

impl Step {
    /// Whether it compares the choice with the service as it is.
    pub fn confirms(&self) -> bool {
        matches!(self.purpose, Purpose::Confirm | Purpose::ConfirmLatency)
    }
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// What each row came to; `None` where it has no figures.
    Measured(Vec<Option<Figures>>, Took),
    /// It did not start, answered otherwise, or fell over: how.
    Failed(String),
    /// What the confirmation shows: candidate over baseline with an interval, for each metric; `None` where it is void.
    Confirmed(Option<Confirmation>),
}

/// How long a step took, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Took {
    /// All of it, with what was disturbed and repeated.
    pub seconds: f64,
    /// Its last block.
    pub block_s: f64,
}

/// What the confirmation shows, for each metric that has an interval: what is chosen over the service as it is.
pub type Confirmation = Vec<(Metric, Known)>;

/// What is to be found out.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// What may be set.
    pub settings: Vec<Setting>,
    /// What is to become better.
    pub metric: Metric,
    /// The smallest difference that matters, as a fraction.
    pub margin: f64,
    /// What must be respected.
    pub keep: Vec<Keep>,
    /// For the whole of it, in seconds.
    pub budget_s: f64,
    /// Seed of every random choice.
    pub seed: u64,
}

/// The budget holds no two pairs; so many seconds would.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("the budget is too small for a screening and its confirmation; {needed_s:.0} s would do")]
pub struct TooShort {
    /// A budget that is enough.
    pub needed_s: f64,
}

/// What is known of an effect on a metric: a setting's, or that of all that is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Known {
    /// On over off.
    pub ratio: f64,
    /// Lower end of the interval, all settings together with 95 % confidence.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Known {
    /// Whether the whole interval lies on the good side of 1.
    pub fn is_better(&self, metric: Metric) -> bool {
        if metric.wants_more() { self.low > 1.0 } else { self.high < 1.0 }
    }
}
