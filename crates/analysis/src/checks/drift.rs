//! Whether the machine of the first blocks was that of the last: a step or a trend in the baseline's figures.
//!
//! Says nothing of the ratios, from which it cancels as long as it is slow against a block.

use model::{Check, Finding};
use record::{Record, Trial};

use super::order::{chance, change};
use super::{SERIES_ALPHA, trials};
use crate::metric::{self, log_over};
use crate::no_success;

/// The change of the baseline's figure, up or down, from which on the first and the last blocks are of two worlds.
pub const DRIFT_MIN: f64 = 0.1;

/// A step or a trend, of the logarithm of the figure.
enum Drift {
    Step(stats::Step),
    Trend(stats::Trend),
}

impl Drift {
    fn p(&self) -> f64 {
        match self {
            Drift::Step(step) => step.p,
            Drift::Trend(trend) => trend.p,
        }
    }

    /// From before to after, or from the first of so many to the last.
    fn size(&self, values: usize) -> f64 {
        match self {
            Drift::Step(step) => step.difference,
            Drift::Trend(trend) => trend.slope * values.saturating_sub(1) as f64,
        }
    }
}

/// One finding for the baseline that shows it most clearly.
pub(super) fn drift(record: &Record) -> Vec<Finding> {
    let mut baselines: Vec<usize> =
        record.header.plan.comparisons.iter().map(|asked| asked.baseline).collect();
    baselines.sort_unstable();
    baselines.dedup();
    if baselines.is_empty() {
        // Nothing is compared, and absolute figures are all there is.
        baselines.push(0);
    }
    // Two tests for each.
    let alpha = SERIES_ALPHA / (2 * baselines.len()) as f64;
    let found = baselines.iter().filter_map(|index| of_variant(record, *index, alpha));
    let found = found.min_by(|one, other| one.0.total_cmp(&other.0));
    found.map(|(_, finding)| finding).into_iter().collect()
}

fn of_variant(record: &Record, index: usize, alpha: f64) -> Option<(f64, Finding)> {
    if no_success::measured(record, index).is_some() {
        return None;
    }
    let (numbers, values) = series(record, index)?;
    let step = stats::step(&values).map(Drift::Step);
    let trend = stats::mann_kendall(&values).map(Drift::Trend);
    let large = |drift: &Drift| drift.size(values.len()).abs() > DRIFT_MIN.ln_1p() && drift.p() <= alpha;
    let found = [step, trend].into_iter().flatten().filter(large);
    let drift = found.min_by(|one, other| one.p().total_cmp(&other.p()))?;
    let what = metric::pace(record).row().title;
    let told = match &drift {
        Drift::Step(step) => {
            format!("{what} changed by {} after block {}", change(step.difference), numbers[step.after - 1])
        }
        Drift::Trend(trend) => {
            format!(
                "{what} went by {} a block, {} from the first to the last",
                change(trend.slope),
                change(drift.size(values.len()))
            )
        }
    };
    let name = &record.header.plan.variants.get(index)?.name;
    let (first, last, chance) = (numbers.first()?, numbers.last()?, chance(drift.p()));
    let finding = Finding::warning(
        Check::Drift,
        format!("{name}, which others are compared with: {told} (blocks {first} to {last}; by chance in {chance})"),
        "blocks take it out of the ratios, which compare what ran at the same time; but the absolute figures are a mean of two worlds, so do \
         not quote them nor compare them with another run's. Look for what else began or ended on this machine or its host (steal, \
         frequency, temperature, a credit that was used up)",
    )
    .about([index]);
    Some((drift.p(), finding))
}

/// Numbers of the blocks, and the logarithm of the figure in each: throughput in closed loop, else CPU per request, which is what
/// shows the machine's speed there. `None` where a block has none.
///
/// Of each trial only as many slices as every trial has, or those of the first blocks would be younger than the others. And not
/// the block whose warm-up was watched, for that was longer than all later ones.
fn series(record: &Record, index: usize) -> Option<(Vec<u32>, Vec<f64>)> {
    let watched = record.warm_up.as_ref().is_some_and(|warm_up| warm_up.measured);
    let counted = |trial: &&Trial| trial.variant() == index && !(watched && trial.started.block == 1);
    let trials: Vec<&Trial> = trials(record).filter(counted).collect();
    let slices = trials.iter().map(|trial| trial.measured().count()).min()?;
    let value = |trial: &&Trial| log_over(metric::pace(record), trial.measured().take(slices));
    let values = trials.iter().map(value).collect::<Option<Vec<f64>>>()?;
    Some((trials.iter().map(|trial| trial.started.block).collect(), values))
}
