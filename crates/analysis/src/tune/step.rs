//! The words between a tuning and whoever carries its steps out: what is asked, what is to be measured, what came of it.

use std::collections::BTreeMap;

use model::quantity::{count, many};
use model::{Check, FAILED_SHARE_MAX, Metric};
use record::{Record, Witness};
use serde::Serialize;
use stats::Estimate;

use super::setting::{Keep, Setting};
use crate::Conclusion;

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
    /// Settings that a row of the screening did not start with: do they start together?
    Together,
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
    /// How long it may take at most, in seconds: the blocks that do not fit are left out.
    pub most_s: f64,
    /// Requests per second, in open loop; `None` at the limit.
    pub rate_per_s: Option<f64>,
}

impl Step {
    /// Whether it compares the choice with the service as it is.
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

/// What came of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// What each row came to, `None` where it has no figures; and the seconds that its last block took.
    Measured(Vec<Option<Figures>>, f64),
    /// It did not start, answered otherwise, or fell over: how.
    Failed(String),
    /// A row did not start: which, and why.
    NotStarted(usize, String),
    /// What the confirmation shows: candidate over baseline with an interval, for each metric, `None` where it is void.
    Confirmed(Option<Confirmation>),
}

impl Outcome {
    /// What a confirmation shows, if it ended as one.
    pub(super) fn seen(self) -> Option<Confirmation> {
        match self {
            Outcome::Confirmed(seen) => seen,
            Outcome::Measured(..) | Outcome::Failed(_) | Outcome::NotStarted(..) => None,
        }
    }

    /// Why there are no figures.
    pub(super) fn failed(self) -> Option<String> {
        match self {
            Outcome::Failed(why) | Outcome::NotStarted(_, why) => Some(why),
            Outcome::Measured(..) | Outcome::Confirmed(_) => None,
        }
    }
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
#[error("the budget is too small for a screening and its confirmation; {} s would do", count(needed_s.ceil() as u64))]
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

/// What a row came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// The value of each metric that it has, in the metric's unit.
    pub values: BTreeMap<Metric, f64>,
    /// Whether all rows of its block had all their cores busy, so that throughput per core-second is the same question.
    pub per_core: bool,
}

impl Figures {
    /// A metric's value; `None` of what cannot be had in the loop that it was measured in.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        self.values.get(&metric).copied().filter(|value| *value > 0.0 && value.is_finite())
    }
}

/// What each variant of a step came to, in the order of the plan.
pub fn figures(record: &Record, conclusion: &Conclusion) -> Vec<Option<Figures>> {
    let per_core = crate::per_core(record);
    let figures = |variant: &crate::Variant| {
        let is_sound = variant.failed_share.is_some_and(|share| share <= FAILED_SHARE_MAX);
        variant.throughput_per_s.filter(|_| is_sound)?;
        let latencies = variant.response_time.iter().map(|time| (time.metric, time.us));
        Some(Figures { values: variant.values.iter().copied().chain(latencies).collect(), per_core })
    };
    conclusion.variants.iter().map(figures).collect()
}

/// What a confirmation shows; `None` where a finding forbids a conclusion, or there are too few blocks.
pub fn confirmed(conclusion: &Conclusion) -> Option<Confirmation> {
    let none = conclusion.is_void() || conclusion.finding(Check::TooFewBlocks).is_some();
    let verdict = conclusion.comparisons.first().filter(|_| !none)?;
    let own = verdict.estimate.as_ref().map(|estimate| (verdict.metric, estimate));
    let others = verdict.exploratory.iter().filter(|other| other.metric != verdict.metric);
    let all = own.into_iter().chain(others.map(|other| (other.metric, &other.estimate)));
    Some(all.map(|(of, &Estimate { ratio, low, high, .. })| (of, Known { ratio, low, high })).collect())
}

/// Whether a service answers a setting's trial as it answered without it.
///
/// # Errors
/// What is different.
pub fn same_work(before: &Record, after: &Record) -> Result<(), String> {
    for now in witnesses(after) {
        let Some(was) = witnesses(before).find(|was| was.request == now.request) else { continue };
        let Witness {
            request,
            status,
            decoded_sha256,
            repeats,
            // Told beside the hash.
            body_bytes: _,
            decoded_bytes: _,
            // A setting may well change these: a proxy names itself, and compresses.
            headers: _,
            accept_encoding: _,
            coding_on_request: _,
        } = now;
        if was.status != *status {
            return Err(format!("{request} responds with {status} instead of {}", was.status));
        }
        let (Some(one), Some(other)) = (&was.decoded_sha256, decoded_sha256) else { continue };
        if was.repeats && *repeats && one != other {
            // Exact: they may differ by little.
            let size = |witness: &Witness| many(witness.decoded_bytes.unwrap_or(witness.body_bytes), "byte");
            let (was, now) = (size(was), size(now));
            return Err(format!("{request} responds with another body ({now}, {was} before)"));
        }
    }
    Ok(())
}

fn witnesses(record: &Record) -> impl Iterator<Item = &Witness> {
    record.trials().flat_map(|trial| &trial.started.witnesses)
}
