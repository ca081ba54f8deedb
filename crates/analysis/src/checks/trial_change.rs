//! Change of a metric within the trials of a variant.

use model::{BUCKET_NS, Metric};
use record::Slice;
use stats::RegressionEffect;

use super::chance::{MARGIN_SHARE_MIN, SERIES_ALPHA};
use super::input::{CheckedRun, CheckedTrial, CheckedVariant};
use crate::metric::{log_over, of_slices};
use crate::only_if;

/// A variant's trials, without the block whose warm-up was observed, which was longer than later ones.
pub(super) fn after_warm_up<'a>(
    run: &CheckedRun<'_>,
    variant: &CheckedVariant<'a>,
) -> impl Iterator<Item = CheckedTrial<'a>> {
    let watched = run.warm_up.is_some_and(|warm_up| warm_up.measured);
    let trials = variant.trials.clone().into_iter();
    trials.filter(move |trial| !(watched && trial.started.block == 1))
}

/// Minimum number of 100 ms counts in a third of a slice, for judging a trial of one slice.
const THIRD_BUCKETS_MIN: usize = 4;

/// Maximum response time (p90) as a share of a third. Requests in flight at the start of the window are
/// missing there.
const THIRD_RESPONSE_MAX: f64 = 0.2;

/// Minimum number of trials of a variant: six blocks, without the one whose warm-up was observed.
const THIRD_TRIALS_MIN: usize = 5;

/// Returns the difference between the last and the first third of a variant's trials, as a logarithm of a
/// metric, with the number of trials. `None` unless it exceeds chance and half of the margin. Each trial is
/// its own pair, and trials of different blocks are independent.
pub(super) fn change_within(
    run: &CheckedRun<'_>,
    variant: &CheckedVariant<'_>,
) -> Option<(RegressionEffect, usize, Metric)> {
    let alpha = SERIES_ALPHA / run.variants.len().max(1) as f64;
    let metric = of_slices(run.plan.design.metric, run.pacing);
    let changes =
        after_warm_up(run, variant).filter_map(|trial| change_in_trial(trial.measured(), metric));
    let changes: Vec<f64> = changes.collect();
    let enough = changes.len() >= THIRD_TRIALS_MIN && !variant.never_succeeded();
    let effect = stats::mean_effect(&changes).filter(|_| enough)?;
    let large = effect.value.exp_m1().abs() > run.plan.design.margin * MARGIN_SHARE_MIN;
    (effect.p <= alpha && large).then_some((effect, changes.len(), metric))
}

/// Logarithm of the last third of a trial's measured slices minus that of the first. With few slices the
/// thirds are halves, and with one slice its counts are used.
pub(super) fn change_in_trial<'a>(
    measured: impl Iterator<Item = &'a Slice>,
    metric: Metric,
) -> Option<f64> {
    let slices: Vec<&Slice> = measured.collect();
    if let [slice] = slices.as_slice() {
        return of_counts(slice).filter(|_| metric == Metric::Throughput);
    }
    let third = slices.len().div_ceil(3);
    let value = |slices: &[&Slice]| log_over(metric, slices.iter().copied());
    let last = slices.len().checked_sub(third)?;
    Some(value(&slices[last..])? - value(slices.get(..third)?)?)
}

/// Logarithm of the last third minus that of the first, from the counts of one uninterrupted slice.
fn of_counts(slice: &Slice) -> Option<f64> {
    // The last bucket may be shorter than the others.
    let buckets = (slice.counts.window_ns / BUCKET_NS) as usize;
    let whole = buckets.min(slice.counts.successful_per_100_ms.len());
    let third = whole / 3;
    let response_ns = slice.counts.latency.quantile(0.9)?.ns();
    let most_ns = third as f64 * 1e8 * THIRD_RESPONSE_MAX;
    only_if(
        slice.counts.open.is_none() && third >= THIRD_BUCKETS_MIN && response_ns as f64 <= most_ns,
    )?;
    let counts = &slice.counts.successful_per_100_ms[..whole];
    let sum = |counts: &[u32]| counts.iter().map(|count| f64::from(*count)).sum::<f64>();
    let change = (sum(&counts[whole - third..]) / sum(&counts[..third])).ln();
    change.is_finite().then_some(change)
}
