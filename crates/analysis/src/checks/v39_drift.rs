//! It was not the same all along
//!
//! **Seen.** `throughput changed by −23 % after block 7`, or a trend.
//!
//! **Why.** The machine changed. Absolute figures mix two states; ratios are not affected.
//!
//! **What to do.** Quote ratios. Possible causes: [V29](#v29), [V31](#v31), [V32](#v32), used-up CPU credit.
//!
//! **Threshold.** More than `DRIFT_MIN = 0.1` up or down, and more than chance.

use std::collections::BTreeSet;

use model::{Finding, Quantity, evidence};

use super::Check;
use super::chance::{SERIES_ALPHA, chance, change};
use super::finding::{CheckFinding, warning};
use super::input::{CheckedRun, CheckedTrial, CheckedVariant};
use super::row::{CheckRow, Maker, OFF, Subject, WARNING, row};
use super::trial_change::after_warm_up;
use crate::metric::{log_over, pace};
use crate::only_if;
use crate::window::MeasuredWindow;

pub(super) static ROW: CheckRow = row(Subject::Design, WARNING, &[Maker::Whole(drift)]).alone(OFF);

/// Change of the baseline's figure from which the first and the last blocks are not comparable.
const DRIFT_MIN: f64 = 0.1;

/// Reports drift of the baseline that shows it most clearly. Ratios are not affected, because drift cancels
/// if it is slow compared with a block.
fn drift(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let mut baselines: BTreeSet<usize> = run
        .plan
        .comparisons
        .iter()
        .map(|asked| asked.baseline)
        .collect();
    if baselines.is_empty() {
        // Nothing is compared, so only absolute figures matter.
        baselines.insert(0);
    }
    // Two tests each.
    let alpha = SERIES_ALPHA / (2 * baselines.len()) as f64;
    let variants = baselines
        .iter()
        .filter_map(|index| run.variants.get(*index));
    let found = variants.filter_map(|variant| drift_of(run, variant, alpha));
    found
        .min_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, seen)| seen)
}

/// Returns the more significant of a step and a trend in the logarithm of the figure: its p-value and its
/// finding.
fn drift_of(
    run: &CheckedRun<'_>,
    variant: &CheckedVariant<'_>,
    alpha: f64,
) -> Option<(f64, CheckFinding)> {
    only_if(!variant.never_succeeded())?;
    let (numbers, values) = by_block(run, variant)?;
    let (what, last) = (pace(run.pacing).row().title, values.len().saturating_sub(1));
    let step = stats::step(&values).map(|step| {
        let after = numbers[step.after - 1];
        let told = format!(
            "{what} changed by {} after block {after}",
            change(step.difference)
        );
        (step.p, step.difference, told)
    });
    let trend = stats::mann_kendall(&values).map(|trend| {
        let whole = trend.slope * last as f64;
        let (each, all) = (change(trend.slope), change(whole));
        (
            trend.p,
            whole,
            format!("{what} went by {each} a block, {all} from the first to the last"),
        )
    });
    let large = |(p, size, _): &(f64, f64, String)| size.abs() > DRIFT_MIN.ln_1p() && *p <= alpha;
    let found = [step, trend].into_iter().flatten().filter(large);
    let (p, _, told) = found.min_by(|one, other| one.0.total_cmp(&other.0))?;
    let (name, first, last, chance) = (variant.name, numbers.first()?, numbers.last()?, chance(p));
    let seen = warning(
        format!(
            "{name}, which others are compared with: {told} (blocks {first} to {last}; by chance in {chance})"
        ),
        "blocks take it out of the ratios, which compare what ran at the same time; but the absolute figures are a mean of two worlds, so do \
         not quote them nor compare them with another run's. Look for what else began or ended on this machine or its host (steal, \
         frequency, temperature, a credit that was used up)",
    );
    Some((p, seen.about([variant.index])))
}

/// Maximum ratio of a slice's throughput to the measured capacity. Above it, that capacity is doubtful.
const CAPACITY_EXCEEDED: f64 = 1.05;

/// Reports that a service without a comparison had a higher throughput at a rate than in closed loop.
pub(crate) fn capacity_exceeded(
    capacity: Option<&MeasuredWindow<'_>>,
    windows: &[MeasuredWindow<'_>],
) -> Option<Finding<Check>> {
    let capacity_per_s = capacity?.throughput_per_s().filter(|per_s| *per_s > 0.0)?;
    let best = windows
        .iter()
        .filter_map(MeasuredWindow::throughput_per_s)
        .reduce(f64::max)?;
    let evidence = evidence!("at a rate the service gave {best}, more than the {capacity} of closed loop";
        best = Quantity::per_s(best), capacity = Quantity::per_s(capacity_per_s));
    let remedy = "its saturation was underestimated: it was not warm then, or needs more connections to be busy";
    let exceeded = best > CAPACITY_EXCEEDED * capacity_per_s;
    exceeded.then(|| Finding::warning(Check::Drift, evidence, remedy).about([0]))
}

/// Returns block numbers and the logarithm of the figure in each block: throughput in closed loop, otherwise
/// CPU per request, which reflects the machine's speed. `None` if a block has no value.
///
/// Uses the same number of slices from each trial. Otherwise the slices of the first blocks would be younger
/// than others.
fn by_block(run: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<(Vec<u32>, Vec<f64>)> {
    let trials: Vec<CheckedTrial<'_>> = after_warm_up(run, variant).collect();
    let slices = trials.iter().map(|trial| trial.measured().count()).min()?;
    let pace = pace(run.pacing);
    let value = |trial: &CheckedTrial<'_>| log_over(pace, trial.measured().take(slices));
    let values = trials.iter().map(value).collect::<Option<Vec<f64>>>()?;
    Some((
        trials.iter().map(|trial| trial.started.block).collect(),
        values,
    ))
}
