//! What is compared with a limit: a value with its interval, and on which side of the limit it lies.

use plan::Limit;
use record::{Record, Slice, Trial};
use serde::Serialize;
use stats::{Estimate, MeanInterval};

use super::Ruling;
use super::family::Family;
use crate::metric::trial;

/// A figure with its interval: a ratio, or an amount in responses per second, µs, bytes or as a share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measured {
    /// The geometric mean over blocks; of failed requests their share.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end; `None` where requests without an answer leave it open. Value and lower end are lower bounds then.
    pub high: Option<f64>,
    /// Blocks it rests on.
    pub blocks: u32,
    /// Standard deviation of the blocks' logarithms, where it is one of those.
    #[serde(skip)]
    pub(crate) sd_log: Option<f64>,
}

impl Measured {
    pub(super) fn of(estimate: &Estimate) -> Measured {
        let Estimate { blocks, ratio, low, high, sd_log, .. } = *estimate;
        Measured { value: ratio, low, high: Some(high), blocks, sd_log: Some(sd_log) }
    }

    /// What a slice had, which is no estimate of anything: all of its requests are in it.
    pub(super) fn exact(value: f64) -> Measured {
        Measured { value, low: value, high: Some(value), blocks: 1, sd_log: None }
    }

    /// The same where blocks tell what it is at least.
    pub(super) fn unbounded(self) -> Measured {
        Measured { high: None, sd_log: None, ..self }
    }

    /// What each of these blocks' values is at least.
    pub(super) fn at_least(values: &[f64]) -> Measured {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let blocks = u32::try_from(values.len()).unwrap_or(u32::MAX);
        Measured { value: least, low: least, high: None, blocks, sd_log: None }
    }

    /// Pass or fail where the whole interval is on one side.
    pub(super) fn ruling(&self, limit: &Limit) -> Ruling {
        let bound = limit.bound.value();
        let (below, above) = (self.high.is_some_and(|high| high < bound), self.low > bound);
        let (pass, fail) = if limit.figure.wants_more() {
            (above, self.high.is_some_and(|high| high <= bound))
        } else {
            (below, self.low >= bound)
        };
        match (pass, fail) {
            (true, _) => Ruling::Pass,
            (_, true) => Ruling::Fail,
            _ => Ruling::Inconclusive,
        }
    }
}

/// The share of a variant's requests that failed: the wider of Wilson's interval, which takes requests as independent, and of that by t
/// over blocks, which knows that failures come in bursts and nothing of a share of 0. `None` without requests.
pub(super) fn failed(record: &Record, variant: usize, family: &Family) -> Option<Measured> {
    let trials: Vec<&Trial> = record.complete_blocks().filter_map(|block| trial(block, variant)).collect();
    let sum = |trial: &&Trial, of: fn(&Slice) -> u64| trial.measured().map(of).sum::<u64>();
    let counts: Vec<(u64, u64)> = trials
        .iter()
        .map(|trial| (sum(trial, |slice| slice.counts.failed()), sum(trial, |slice| slice.counts.due())))
        .collect();
    let (failed, due) = counts.iter().fold((0, 0), |(failed, due), more| (failed + more.0, due + more.1));
    let wilson = stats::wilson(failed, due, family.level(counts.len())).ok().flatten()?;
    let shares: Vec<f64> = counts.iter().map(|(failed, due)| *failed as f64 / (*due).max(1) as f64).collect();
    let over_blocks = family.critical_t(counts.len()).and_then(|t| MeanInterval::of(&shares, t));
    let (low, high) = over_blocks.map_or((wilson.low, wilson.high), |blocks| {
        (wilson.low.min(blocks.low).max(0.0), wilson.high.max(blocks.high).min(1.0))
    });
    let blocks = u32::try_from(counts.len()).unwrap_or(u32::MAX);
    Some(Measured { value: failed as f64 / due as f64, low, high: Some(high), blocks, sd_log: None })
}
