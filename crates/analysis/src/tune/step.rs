//! Data exchanged between a tuning and the code that runs its steps: goals, steps and outcomes.

use std::collections::BTreeMap;

use model::quantity::{count, many};
use model::{FAILED_SHARE_MAX, Metric};
use record::{Record, Witness};
use serde::{Deserialize, Serialize};
use stats::Estimate;

use super::setting::{Keep, Setting};
use crate::Conclusion;
use crate::checks::Check;

/// A level for each setting, in their order. 0 is the unchanged service.
pub type LevelRow = Vec<usize>;

/// Purpose of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The unchanged service: whether it works, and how long it warms up.
    Baseline,
    /// A single setting: whether it starts, and responds the same.
    Smoke(usize),
    /// Settings of a row that did not start: whether they start together.
    Together,
    /// Half of a mirrored pair of the screening.
    Screen {
        /// Number of the pair, from 1.
        pair: u32,
        /// Maximum number of pairs.
        of: u32,
    },
    /// Levels of a setting against each other.
    Race(usize),
    /// Half of a mirrored pair of the chosen settings at a rate, for their effect on response times.
    Latency {
        /// Number of the pair, from 1.
        pair: u32,
    },
    /// The choice against the unchanged service.
    Confirm,
    /// The choice against the unchanged service at a rate, if response times have limits.
    ConfirmLatency,
}

impl Purpose {
    /// Whether the step is in open loop, for response times.
    pub fn is_at_a_rate(&self) -> bool {
        match self {
            Purpose::Latency { .. } | Purpose::ConfirmLatency => true,
            Purpose::Baseline
            | Purpose::Smoke(_)
            | Purpose::Together
            | Purpose::Screen { .. }
            | Purpose::Race(_)
            | Purpose::Confirm => false,
        }
    }
}

/// A measurement to run.
#[derive(Debug, Clone, PartialEq)]
pub struct TuneStep {
    /// Purpose of the step.
    pub purpose: Purpose,
    /// The distinct rows, one per variant.
    pub rows: Vec<LevelRow>,
    /// Number of blocks, each with fresh processes.
    pub blocks: u32,
    /// Approximate duration, in seconds.
    pub seconds: f64,
    /// Maximum duration, in seconds. Blocks that do not fit are left out.
    pub most_s: f64,
    /// Requests per second in open loop. `None` at the limit.
    pub rate_per_s: Option<f64>,
}

impl TuneStep {
    /// Whether the step compares the choice with the unchanged service.
    pub fn confirms(&self) -> bool {
        match self.purpose {
            Purpose::Confirm | Purpose::ConfirmLatency => true,
            Purpose::Baseline
            | Purpose::Smoke(_)
            | Purpose::Together
            | Purpose::Screen { .. }
            | Purpose::Race(_)
            | Purpose::Latency { .. } => false,
        }
    }
}

/// Outcome of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepOutcome {
    /// Figures of each row, `None` if it has none, and the seconds of the last block.
    Measured(Vec<Option<RowFigures>>, f64),
    /// The service did not start, responded differently, or crashed. The text says how.
    Failed(String),
    /// A row did not start: its index, and why.
    NotStarted(usize, String),
    /// Result of a confirmation, `None` if it is invalid.
    Confirmed(Option<Confirmation>),
}

impl StepOutcome {
    /// Returns the result of a confirmation, if this is one.
    pub(super) fn seen(self) -> Option<Confirmation> {
        match self {
            StepOutcome::Confirmed(seen) => seen,
            StepOutcome::Measured(..) | StepOutcome::Failed(_) | StepOutcome::NotStarted(..) => {
                None
            }
        }
    }

    /// Why there are no figures.
    pub(super) fn failed(self) -> Option<String> {
        match self {
            StepOutcome::Failed(why) | StepOutcome::NotStarted(_, why) => Some(why),
            StepOutcome::Measured(..) | StepOutcome::Confirmed(_) => None,
        }
    }
}

/// Result of a confirmation: the choice over the unchanged service, for each metric with an interval.
pub type Confirmation = Vec<(Metric, EffectEstimate)>;

/// Goal and budget of a tuning.
#[derive(Debug, Clone, PartialEq)]
pub struct TuneSpec {
    /// Settings to try.
    pub settings: Vec<Setting>,
    /// Metric to improve.
    pub metric: Metric,
    /// Smallest difference that matters, as a fraction.
    pub margin: f64,
    /// Limits to keep.
    pub keep: Vec<Keep>,
    /// Budget of the whole tuning, in seconds.
    pub budget_s: f64,
    /// Seed of all random choices.
    pub seed: u64,
}

/// The budget has no room for two pairs.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("the budget is too small for a screening and its confirmation; {} s would do", count(needed_s.ceil() as u64))]
pub struct TooShort {
    /// A sufficient budget, in seconds.
    pub needed_s: f64,
}

/// Estimated effect on a metric, of a setting or of the whole choice.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EffectEstimate {
    /// On over off.
    pub ratio: f64,
    /// Lower end of the interval, at 95 % for all settings together.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl EffectEstimate {
    /// Whether the whole interval is on the good side of 1.
    pub fn is_better(&self, metric: Metric) -> bool {
        if metric.wants_more() {
            self.low > 1.0
        } else {
            self.high < 1.0
        }
    }
}

/// Figures of a row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowFigures {
    /// Values by metric, in the metric's unit.
    pub values: BTreeMap<Metric, f64>,
    /// Whether all rows of its block kept all their cores busy, so that throughput per core-second is
    /// equivalent.
    pub per_core: bool,
}

impl RowFigures {
    /// A metric's value. `None` if it does not exist in this kind of loop.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        self.values
            .get(&metric)
            .copied()
            .filter(|value| *value > 0.0 && value.is_finite())
    }
}

/// Figures of each variant of a step, in plan order.
pub fn figures(record: &Record, conclusion: &Conclusion) -> Vec<Option<RowFigures>> {
    let per_core = crate::per_core(record);
    let figures = |variant: &crate::VariantFigures| {
        let is_sound = variant
            .failed_share
            .is_some_and(|share| share <= FAILED_SHARE_MAX);
        variant.throughput_per_s.filter(|_| is_sound)?;
        let latencies = variant
            .response_time
            .iter()
            .map(|time| (time.metric, time.us));
        Some(RowFigures {
            values: variant.values.iter().copied().chain(latencies).collect(),
            per_core,
        })
    };
    conclusion.variants.iter().map(figures).collect()
}

/// Result of a confirmation. `None` if a finding makes it invalid, or with too few blocks.
pub fn confirmed(conclusion: &Conclusion) -> Option<Confirmation> {
    let none = conclusion.is_void() || conclusion.finding(Check::TooFewBlocks).is_some();
    let verdict = conclusion.comparisons.first().filter(|_| !none)?;
    let own = verdict
        .estimate
        .as_ref()
        .map(|estimate| (verdict.metric, estimate));
    let others = verdict
        .exploratory
        .iter()
        .filter(|other| other.metric != verdict.metric);
    let all = own
        .into_iter()
        .chain(others.map(|other| (other.metric, &other.estimate)));
    Some(
        all.map(
            |(
                of,
                &Estimate {
                    ratio, low, high, ..
                },
            )| (of, EffectEstimate { ratio, low, high }),
        )
        .collect(),
    )
}

/// Whether a service with a setting responds as without it.
///
/// # Errors
/// Describes the difference.
pub fn same_work(before: &Record, after: &Record) -> Result<(), String> {
    for now in witnesses(after) {
        let Some(was) = witnesses(before).find(|was| was.request == now.request) else {
            continue;
        };
        let Witness {
            request,
            status,
            decoded_sha256,
            repeats,
            // Reported together with the hash.
            body_bytes: _,
            decoded_bytes: _,
            // Settings may change these: a proxy adds its name, and compresses.
            headers: _,
            accept_encoding: _,
            coding_on_request: _,
        } = now;
        if was.status != *status {
            return Err(format!(
                "{request} responds with {status} instead of {}",
                was.status
            ));
        }
        let (Some(one), Some(other)) = (&was.decoded_sha256, decoded_sha256) else {
            continue;
        };
        if was.repeats && *repeats && one != other {
            // Exact numbers, because the difference may be small.
            let size = |witness: &Witness| {
                many(witness.decoded_bytes.unwrap_or(witness.body_bytes), "byte")
            };
            let (was, now) = (size(was), size(now));
            return Err(format!(
                "{request} responds with another body ({now}, {was} before)"
            ));
        }
    }
    Ok(())
}

fn witnesses(record: &Record) -> impl Iterator<Item = &Witness> {
    record.trials().flat_map(|trial| &trial.started.witnesses)
}
