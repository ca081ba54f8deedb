//! Warm-up inside the figures
//!
//! **Seen.** `throughput of the last third of a trial differs by +6.8 % from that of the first`. Invalid:
//! `still changing while it was measured`.
//!
//! **Why.** Faster: not warm yet. Slower: something grows.
//!
//! **What to do.** Faster: a longer `--warmup` (`design.warmup`) or budget. Slower: find what grows (memory,
//! files, a queue).
//!
//! **Threshold.** More than chance in `SERIES_ALPHA = 0.001` of clean runs, and more than
//! `MARGIN_SHARE_MIN = 0.5` of your margin. Invalid: the ratio of two variants changes within trials by more
//! than `MARGINS_MIN = 2.0` margins and more than it differs from 1, either beyond chance at the same level,
//! or in each of three trials by a log of 0.25 (of two: 0.4).

use model::quantity::{change_alone, counted, span, with_sign};
use model::{Metric, Quantity, evidence};
use plan::Comparison;
use record::{Record, Slice, Trial};
use stats::RegressionEffect;

use super::chance::{SERIES_ALPHA, chance};
use super::finding::{CheckFinding, void, warning};
use super::input::{CheckedRun, CheckedVariant};
use super::row::{CheckRow, EITHER, Maker, OFF, Subject, row};
use super::trial_change::{change_in_trial, change_within};
use crate::comparison::ratios;
use crate::metric::{log_over, of_slices};
use crate::rule::{BlockPace, budget_s};

pub(super) static ROW: CheckRow =
    row(Subject::Service, EITHER, &[Maker::Each(warm_up_inside)]).alone(OFF);

/// Reports figures of a variant that change within its trials by more than half of the margin.
fn warm_up_inside(run: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    let still_changing = still_changing(run, variant);
    if still_changing.is_some() {
        return still_changing;
    }
    let (RegressionEffect { value, t, p }, trials, metric) = change_within(run, variant)?;
    let percent = value.exp_m1() * 100.0;
    let (size, chance) = (change_alone(value.exp(), 1), chance(p));
    let evidence = evidence!(
        "{} of the last third of a trial differs by {size} from that of the first ({trials}, t {}, by chance in {chance})",
        metric.name(), with_sign(t, 1);
        trials = counted(trials as u64, "trial"));
    let remedy = if (percent > 0.0) == metric.wants_more() {
        "it still became faster while it was measured, so its figures are those of a service that is not warm yet, and variants may differ in \
         how far they are; set a longer design.warmup, or give a larger budget"
    } else {
        "it became slower while it was measured (memory that fills, files or queues that grow, a processor that slows down), so its figures \
         depend on how long a trial is; find out what grows, and measure for as long as it takes to settle"
    };
    Some(warning(evidence, remedy))
}

/// Change of the ratio within each trial, as a logarithm, that is not noise: with three trials, and with two.
const CHANGE_MIN: [(usize, f64); 2] = [(3, 0.25), (2, 0.4)];
/// Change within the trials of one block from which on later blocks get a longer warm-up.
const CHANGE_ONCE: f64 = 0.4;
/// Minimum number of trials for a test by the spread of their changes.
const TESTED_MIN: usize = 4;
/// The change must exceed this number of margins, and the observed difference, to make a verdict invalid.
const MARGINS_MIN: f64 = 2.0;
/// The suggested warm-up is this much longer than the oldest measured process, in steps of this many seconds.
const WARM_UP_ROOM: f64 = 1.25;
const WARM_UP_STEP_S: f64 = 5.0;
/// Number of blocks for the suggested budget.
const BLOCKS_ASKED: u32 = 6;

/// Change within the trials of a block: last slice over first, as a logarithm.
struct Changed {
    baseline: f64,
    candidate: f64,
}

impl Changed {
    /// Change of candidate over baseline.
    fn of_ratio(&self) -> f64 {
        self.candidate - self.baseline
    }

    /// Changes of a comparison in each complete block, or in the block with this number.
    fn all(record: &Record, asked: &Comparison, number: Option<u32>) -> Vec<Changed> {
        let metric = of_slices(record.header.plan.design.metric, record.pacing());
        let of = |trials: &[Trial], variant: usize| {
            change_of(
                trials.iter().find(|trial| trial.variant() == variant)?,
                metric,
            )
        };
        let blocks = record.blocks.iter().filter(|block| match number {
            Some(number) => block.number == number,
            None => block.seconds.is_some() && block.dropped.is_none(),
        });
        let changed = |trials: &[Trial]| {
            Some(Changed {
                baseline: of(trials, asked.baseline)?,
                candidate: of(trials, asked.candidate)?,
            })
        };
        blocks.filter_map(|block| changed(&block.trials)).collect()
    }
}

/// Logarithm of the last slice minus that of the first. For a single slice, from its counts.
fn change_of(trial: &Trial, metric: Metric) -> Option<f64> {
    let slices: Vec<&Slice> = trial.measured().collect();
    match slices.as_slice() {
        [first, .., last] => {
            Some(log_over(metric, [*last].into_iter())? - log_over(metric, [*first].into_iter())?)
        }
        _ => change_in_trial(slices.iter().copied(), metric),
    }
}

/// Variants that changed within their trials of one block by far more than the variants they are compared
/// with.
pub fn changing_variants(record: &Record, block: u32) -> Vec<usize> {
    let changing = |asked: &Comparison| {
        let changed = Changed::all(record, asked, Some(block)).pop()?;
        let is_candidate = changed.candidate.abs() > changed.baseline.abs();
        let about = if is_candidate {
            asked.candidate
        } else {
            asked.baseline
        };
        (changed.of_ratio().abs() >= CHANGE_ONCE).then_some(about)
    };
    model::distinct(record.header.plan.comparisons.iter().filter_map(changing))
}

/// Reports a variant whose figures change within each trial by more than the observed difference.
fn still_changing(run: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    let comparisons = &run.plan.comparisons;
    let involved = comparisons
        .iter()
        .filter(|asked| [asked.baseline, asked.candidate].contains(&variant.index));
    let alpha = SERIES_ALPHA / comparisons.len().max(1) as f64;
    let record = run.record()?;
    let changed = involved.filter_map(|asked| {
        let changed = Changed::all(record, asked, None);
        let change = goes_on(&changed, alpha)?;
        let sum = |of: fn(&Changed) -> f64| changed.iter().map(of).sum::<f64>().abs();
        let (baseline, candidate) = (sum(|of| of.baseline), sum(|of| of.candidate));
        let about = if candidate > baseline {
            asked.candidate
        } else {
            asked.baseline
        };
        let found = ratios(run.figures, asked, run.plan.design.metric)?;
        let found = found.iter().sum::<f64>() / found.len() as f64;
        let least = (run.plan.design.margin.ln_1p() * MARGINS_MIN).max(found.abs());
        (about == variant.index && change.abs() > least).then_some(changed.len())
    });
    seen(run, variant, changed.max()?)
}

/// Mean change of the ratio, if it exceeds chance: large and of the same sign in each of a few trials, or by
/// a test over more.
fn goes_on(changed: &[Changed], alpha: f64) -> Option<f64> {
    let changes: Vec<f64> = changed.iter().map(Changed::of_ratio).collect();
    let mean = changes.iter().sum::<f64>() / changes.len().max(1) as f64;
    let least = changes
        .iter()
        .map(|change| change * mean.signum())
        .fold(f64::INFINITY, f64::min);
    let sudden = CHANGE_MIN
        .iter()
        .any(|(trials, size)| changes.len() >= *trials && least >= *size);
    let tested = || {
        changes.len() >= TESTED_MIN && stats::mean_effect(&changes).is_some_and(|of| of.p <= alpha)
    };
    (sudden || tested()).then_some(mean)
}

fn seen(run: &CheckedRun<'_>, variant: &CheckedVariant<'_>, trials: usize) -> Option<CheckFinding> {
    let metric = of_slices(run.plan.design.metric, run.pacing);
    let (mut first, mut last, mut oldest_s) = (0.0, 0.0, 0.0_f64);
    let of_several: Vec<Vec<&Slice>> = variant
        .trials
        .iter()
        .map(|trial| trial.measured().collect())
        .collect();
    let of_several: Vec<&Vec<&Slice>> = of_several
        .iter()
        .filter(|slices| slices.len() > 1)
        .collect();
    for slices in &of_several {
        first += log_over(metric, slices.first().copied().into_iter())?;
        last += log_over(metric, slices.last().copied().into_iter())?;
    }
    for trial in &variant.trials {
        let (begin, end) = (trial.slices.first()?, trial.slices.last()?);
        let age_ns =
            (end.counts.started_ns + end.counts.wall_ns()).saturating_sub(begin.counts.started_ns);
        oldest_s = oldest_s.max(age_ns as f64 / 1e9);
    }
    let amount = |log: f64| Quantity {
        value: (log / of_several.len().max(1) as f64).exp(),
        unit: metric.unit(),
    };
    let warm_up_s = (oldest_s * WARM_UP_ROOM / WARM_UP_STEP_S).ceil() * WARM_UP_STEP_S;
    let warm_up_now_s = run.warm_up.map_or(0.0, |warm_up| warm_up.seconds);
    let pace = BlockPace::of(run.record()?)?;
    let block_s = pace.block_s + pace.variants as f64 * (warm_up_s - warm_up_now_s).max(0.0);
    let budget_s = budget_s(block_s * f64::from(BLOCKS_ASKED));
    let what = match of_several.is_empty() {
        true => {
            evidence!("still changing while it was measured, in {trials}"; trials = counted(trials as u64, "trial"))
        }
        false => evidence!(
            "still changing while it was measured: its slices within a trial go from {first} to {last} ({trials})";
            first = amount(first), last = amount(last), trials = counted(trials as u64, "trial")),
    };
    let remedy = format!(
        "no process was older than {} when its trial ended, so what it does later is unknown; warm up for longer than it \
         changes: --warmup {} (`design.warmup`) with --budget {}",
        span(oldest_s),
        span(warm_up_s),
        span(budget_s)
    );
    Some(void(what, remedy))
}
