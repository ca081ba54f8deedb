//! Where a record's spread comes from: processes of one variant, and slices of one process.
//!
//! What a pass over all variants has in common (the machine's speed of the moment) cancels in a log-ratio, so it is taken out
//! first. Blind to which variant is ahead; decides nothing.

use model::Metric;
use record::{Record, Slice, Trial};
use stats::Components;

use crate::metric::log_over;
use crate::no_success;

/// Slices whose length differs from the others' by more than this share vary differently.
const ALIKE: f64 = 0.1;

/// The logarithms of a metric's values in slices without what their pass has in common: variant → trial → slices.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread(Vec<Vec<Vec<f64>>>);

impl Spread {
    /// That of all complete blocks whose measured slices are `slice_s` seconds long; blocks in which a slice has no value
    /// are left out.
    pub fn of(record: &Record, metric: Metric, slice_s: f64) -> Spread {
        let mut variants = vec![Vec::new(); record.header.plan.variants.len()];
        // What never succeeded has no value in any block, and would leave nothing of the others'.
        let succeeded = (0..variants.len()).map(|index| no_success::measured(record, index).is_none());
        let succeeded: Vec<bool> = succeeded.collect();
        let counted = |trial: &&Trial| succeeded[trial.variant()];
        // The first block may have had other slices.
        let alike = |slice: &Slice| (slice.counts.window_ns as f64 / 1e9 / slice_s - 1.0).abs() < ALIKE;
        let blocks = record.complete_blocks();
        let log = |slice: &Slice| log_over(metric, std::iter::once(slice));
        for block in blocks.filter(|block| block.trials.iter().flat_map(Trial::measured).all(alike)) {
            let logs = |trial: &&Trial| trial.measured().map(log).collect::<Option<Vec<f64>>>();
            let counted: Vec<&Trial> = block.trials.iter().filter(counted).collect();
            let Some(trials) = counted.iter().map(logs).collect::<Option<Vec<Vec<f64>>>>() else {
                continue;
            };
            let passes = trials.iter().map(Vec::len).min().unwrap_or(0);
            // The slices of one pass are neighbours in time. A variant alone shares them with none.
            let shared = |pass: usize| mean(trials.iter().map(|trial| trial[pass]));
            let shared = |pass| if trials.len() > 1 { shared(pass) } else { Some(0.0) };
            let common: Vec<f64> = (0..passes).filter_map(shared).collect();
            for (trial, logs) in counted.iter().zip(&trials) {
                let centred = logs.iter().zip(&common).map(|(log, common)| log - common);
                variants[trial.variant()].push(centred.collect::<Vec<f64>>());
            }
        }
        variants.retain(|trials: &Vec<Vec<f64>>| !trials.is_empty());
        Spread(variants)
    }

    /// Variances between processes of a variant, and between slices of a process; `None` where they cannot be had.
    pub fn components(&self) -> Option<Components> {
        // Taking out the mean of so many variants has taken out that part of each one's own spread, too.
        let shrunk = if self.0.len() > 1 { 1.0 - 1.0 / self.0.len() as f64 } else { 1.0 };
        let found = stats::components(&self.0)?;
        Some(Components { between: found.between / shrunk, within: found.within / shrunk, ..found })
    }

    /// Lag-1 autocorrelation of the slices of a trial, the mean over trials; `None` where no trial has three slices.
    pub fn slices_lag1(&self) -> Option<f64> {
        mean(self.0.iter().flatten().filter_map(|slices| stats::lag1(slices)))
    }
}

pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.into_iter().fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// That of ratios and of positive figures.
pub(crate) fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    mean(values.into_iter().map(f64::ln)).map(f64::exp)
}
