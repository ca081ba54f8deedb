//! Warm-ups that do not end: not in the time that was watched, or inside of what is measured, where a trial's last figures are not
//! those of its first.
//!
//! Each trial is its own pair, first third and last third, and trials of different blocks are independent. Blind to which variant is
//! ahead.

use model::{Check, Finding, Metric, Quantity, evidence, quantity::signed};
use record::{Record, Slice, Trial};
use stats::Effect;

use super::order::{MARGIN_SHARE_MIN, chance};
use super::{SERIES_ALPHA, trials};
use crate::metric::{log_over, of_slices};
use crate::no_success;

/// A trial of one slice is seen by its counts of 100 ms where a third of them has so many at least.
pub const THIRD_BUCKETS_MIN: usize = 4;
/// And where its responses take at most this part of a third (p90): what is under way at the window's beginning is missing there.
pub const THIRD_RESPONSE_MAX: f64 = 0.2;

/// Fewest trials of a variant: those of the first look, without the one whose warm-up was watched.
pub const THIRD_TRIALS_MIN: usize = 5;

/// A variant whose figures change within its trials.
pub(super) struct Change {
    pub variant: usize,
    /// Of the metric's logarithm, last third less first, over trials.
    effect: Effect,
    trials: usize,
    metric: Metric,
}

/// A finding for each variant that changes by more than half of the margin.
pub(super) fn warm_up_inside(record: &Record) -> Vec<Finding> {
    changes(record).iter().map(|change| finding(record, change)).collect()
}

/// Variants that were not seen steady in the warm-up that was watched, but for those that are seen not to be in what was measured.
pub(super) fn never_steady(record: &Record) -> Vec<Finding> {
    let Some(warm_up) = record.warm_up.as_ref().filter(|warm_up| warm_up.measured) else {
        return vec![];
    };
    let names = record.header.plan.variants.iter().map(|variant| variant.name.as_str());
    let late = |after: &Option<f64>| after.is_none_or(|after| after > warm_up.seconds);
    // Where the measured slices themselves show it, that says more.
    let shown: Vec<usize> = changes(record).iter().map(|change| change.variant).collect();
    let unsteady =
        |index: &usize| warm_up.steady_after_s.get(*index).is_some_and(late) && !shown.contains(index);
    let unsteady: Vec<(usize, &str)> = names.enumerate().filter(|(index, _)| unsteady(index)).collect();
    if unsteady.is_empty() {
        return vec![];
    }
    let named: Vec<&str> = unsteady.iter().map(|(_, name)| *name).collect();
    let named = named.join(", ");
    let finding = Finding::warning(
        Check::NeverSteady,
        evidence!("{named}: not seen steady within the {warm_up} of warm-up that the trials get";
            warm_up = Quantity::seconds(warm_up.seconds)),
        "warm-up may be inside the figures, for all variants alike; give a larger budget, or set design.warmup",
    );
    vec![finding.about(unsteady.iter().map(|(index, _)| *index).collect::<Vec<_>>())]
}

/// Variants whose last third differs from their first by more than chance and half of the margin.
pub(super) fn changes(record: &Record) -> Vec<Change> {
    let plan = &record.header.plan;
    let alpha = SERIES_ALPHA / plan.variants.len().max(1) as f64;
    let large = |change: &Change| {
        let size = change.effect.value.exp_m1().abs();
        change.effect.p <= alpha && size > plan.design.margin * MARGIN_SHARE_MIN
    };
    (0..plan.variants.len()).filter_map(|variant| of_variant(record, variant)).filter(large).collect()
}

fn of_variant(record: &Record, variant: usize) -> Option<Change> {
    if no_success::measured(record, variant).is_some() {
        return None;
    }
    let metric = of_slices(record.header.plan.design.metric, record);
    // The block that watched the warm-up had a longer one than all later ones.
    let watched = record.warm_up.as_ref().is_some_and(|warm_up| warm_up.measured);
    let counted =
        trials(record).filter(|trial| trial.variant() == variant && !(watched && trial.started.block == 1));
    let changes: Vec<f64> = counted.filter_map(|trial| of_trial(trial, metric)).collect();
    let effect = stats::mean_effect(&changes).filter(|_| changes.len() >= THIRD_TRIALS_MIN)?;
    Some(Change { variant, effect, trials: changes.len(), metric })
}

/// The logarithm of the last third less that of the first. Of few slices the thirds are a half each, of one they are of its counts.
fn of_trial(trial: &Trial, metric: Metric) -> Option<f64> {
    let slices: Vec<&Slice> = trial.measured().collect();
    if let [slice] = slices.as_slice() {
        return of_counts(slice).filter(|_| metric == Metric::Throughput);
    }
    let third = slices.len().div_ceil(3);
    let value = |slices: &[&Slice]| log_over(metric, slices.iter().copied());
    let last = slices.len().checked_sub(third)?;
    Some(value(&slices[last..])? - value(slices.get(..third)?)?)
}

/// The same of one uninterrupted slice, by its counts.
fn of_counts(slice: &Slice) -> Option<f64> {
    // The last one may be shorter than the others.
    let whole = usize::try_from(slice.counts.window_ns / 100_000_000)
        .ok()?
        .min(slice.counts.successful_per_100_ms.len());
    let third = whole / 3;
    let response_ns = slice.counts.latency.quantile(0.9)?.ns();
    let response_max_ns = third as f64 * 1e8 * THIRD_RESPONSE_MAX;
    if slice.counts.open.is_some() || third < THIRD_BUCKETS_MIN || response_ns as f64 > response_max_ns {
        return None;
    }
    let counts = &slice.counts.successful_per_100_ms[..whole];
    let sum = |counts: &[u32]| counts.iter().map(|count| f64::from(*count)).sum::<f64>();
    let change = (sum(&counts[whole - third..]) / sum(&counts[..third])).ln();
    change.is_finite().then_some(change)
}

fn finding(record: &Record, change: &Change) -> Finding {
    let percent = change.effect.value.exp_m1() * 100.0;
    let rises = (percent > 0.0) == change.metric.wants_more();
    let name = record.header.plan.variants.get(change.variant).map_or("", |variant| variant.name.as_str());
    let (metric, size, chance) = (change.metric.name(), signed(percent, 1), chance(change.effect.p));
    let t = change.effect.t;
    let evidence = evidence!(
        "{name}: {metric} of the last third of a trial differs by {size} from that of the first ({trials} trials, t {t:+.1}, by chance in \
         {chance})";
        trials = Quantity::count(change.trials as u64));
    let remedy = if rises {
        "it still became faster while it was measured, so its figures are those of a service that is not warm yet, and variants may differ in \
         how far they are; set design.warmup longer, or give a larger budget"
    } else {
        "it became slower while it was measured (memory that fills, files or queues that grow, a processor that slows down), so its figures \
         depend on how long a trial is; find out what grows, and measure for as long as it takes to settle"
    };
    Finding::warning(Check::WarmUpInside, evidence, remedy).about([change.variant])
}
