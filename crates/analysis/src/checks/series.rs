//! Figures over time and order. These checks detect:
//! - blocks that depend on a trial's position or on the previous block
//! - a machine that changed between the first and last blocks
//! - figures that change within a trial
//! - memory that only grows
//!
//! The tests do not depend on which variant is ahead. Their level is one clean run in a thousand, because
//! users do not expect a finding by chance. `tests/series.rs` measures how often they fire without a cause.

use std::collections::BTreeSet;

use model::quantity::{change_alone, count as counted_as, counted, decimal, with_sign};
use model::{BUCKET_NS, Check, Finding, Metric, Quantity, Until, evidence};
use record::{Slice, SliceKind};
use stats::RegressionEffect;

use super::{CheckFinding, CheckedBlock, CheckedRun, CheckedTrial, CheckedVariant, warning};
use crate::comparison::ratios;
use crate::metric::{self, BlockFigures, log_over, of_slices};
use crate::only_if;
use crate::window::MeasuredWindow;

/// Probability that each of these checks fires in a clean run, over all its variants and comparisons. With
/// one in a thousand, all checks together stay far below one in a hundred. The minimum sizes make it rarer
/// still.
pub(super) const SERIES_ALPHA: f64 = 0.001;
/// Share of the margin above which a difference not caused by the variants may change a verdict.
const MARGIN_SHARE_MIN: f64 = 0.5;
/// Maximum lag-1 correlation of blocks. Above it intervals are too narrow: at 0.4 blocks are worth less than
/// half their number, (1 − 0.4)/(1 + 0.4) of it.
const LAG1_MAX: f64 = 0.4;
/// Minimum number of blocks for judging autocorrelation. With fewer, any correlation could be chance at this
/// level.
pub(crate) const LAG1_BLOCKS_MIN: u32 = 8;

/// Reports the effect of being started later in a block, over all variants.
pub(super) fn order_effect(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let design = &run.plan.design;
    let has_all = |index: &usize| {
        run.figures
            .iter()
            .all(|of| of.log_value(design.metric, *index).is_some())
    };
    let complete: Vec<usize> = (0..run.variants.len()).filter(has_all).collect();
    let row = |(block, figures): (&CheckedBlock<'_>, &BlockFigures)| -> Option<Vec<(f64, f64)>> {
        let place = |variant: usize| block.order.iter().position(|of| *of == variant);
        let value = |variant: usize| figures.compared(design.metric, variant).map(f64::ln);
        complete
            .iter()
            .map(|variant| Some((place(*variant)? as f64, value(*variant)?)))
            .collect()
    };
    let rows: Vec<_> = run
        .complete_blocks()
        .zip(run.figures)
        .map(row)
        .collect::<Option<_>>()?;
    let RegressionEffect { value, t, p } = stats::place_effect(&rows)?;
    let places = run.variants.len().checked_sub(1)? as f64;
    let whole = (value * places).exp() - 1.0;
    only_if(p <= SERIES_ALPHA && whole.abs() > design.margin * MARGIN_SHARE_MIN)?;
    let (metric, change, chance) = (
        design.metric.name(),
        change_alone(1.0 + whole, 1),
        chance(p),
    );
    Some(warning(
        evidence!(
            "whatever the variant, {metric} of the one that is started last in its block differs by {change} from that of the first (t \
             {}, by chance in {chance}, {blocks})", with_sign(t, 1);
            blocks = counted(rows.len() as u64, "block")),
        "the order is drawn anew for each block, so this widens the intervals and favours nobody in the long run; in few blocks one variant \
         may have had the better places more often. What comes first leaves something behind (a cache, a hot processor, connections), or is \
         warmed up longer ago: set a longer design.warmup, or ask for more blocks",
    ))
}

/// Reports the comparison whose blocks are most dependent, if that exceeds chance among all comparisons.
pub(super) fn autocorrelated(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let plan = run.plan;
    let verdicts = plan.comparisons.len() * plan.design.metrics().count();
    // Two tests each.
    let alpha = SERIES_ALPHA / (2 * verdicts.max(1)) as f64;
    let asked = plan
        .comparisons
        .iter()
        .flat_map(|asked| plan.design.metrics().map(move |of| (asked, of)));
    let found = asked.filter_map(|(asked, metric)| {
        let d = ratios(run.figures, asked, metric)?;
        Some((
            alike(&d, alpha, plan.design.margin)?,
            asked,
            metric,
            d.len(),
        ))
    });
    // A comparison decided early has fewer blocks than the run.
    let (alike, asked, metric, count) =
        found.max_by(|one, other| one.0.strength().total_cmp(&other.0.strength()))?;
    let ratios = format!("the blocks' ratios of {}", metric.name());
    let evidence = match alike {
        Alike::Trend { slope, p } => {
            let (each, whole, chance) =
                (change(slope), change(slope * (count - 1) as f64), chance(p));
            evidence!(
                "{ratios} go one way, by {each} a block and {whole} from the first to the last of {count}; by chance in {chance}"
            )
        }
        Alike::Neighbours { lag1, critical } => {
            let chance = chance(alpha);
            evidence!(
                "{ratios} resemble those of their neighbours, with a correlation of {correlation} over {count} blocks; by chance it is above \
                 {} in {chance}", with_sign(critical, 2);
                correlation = Quantity::number(lag1))
        }
    };
    let remedy = "intervals take blocks for independent, and are narrower here than they may be: something slow favours one variant for blocks \
                  on end. End what else runs on this machine, look at `steal` and `other_processes`, and run again; a verdict that stands in \
                  both runs is worth more than this one alone";
    Some(super::told_of(asked, warning(evidence, remedy)))
}

/// Kind of dependence between the blocks of a comparison.
enum Alike {
    /// A trend.
    Trend { slope: f64, p: f64 },
    /// Neighbouring blocks are correlated.
    Neighbours { lag1: f64, critical: f64 },
}

impl Alike {
    /// Priority for reporting. A trend also causes a correlation, so it is reported first. Among several, the
    /// least likely by chance.
    fn strength(&self) -> f64 {
        match self {
            // A correlation is at most 1.
            Alike::Trend { p, .. } => 2.0 - p,
            Alike::Neighbours { lag1, .. } => *lag1,
        }
    }
}

/// Detects a trend, or otherwise a correlation of neighbours, that exceeds chance and is large enough to
/// matter. With ten blocks even a straight line has a correlation of at most 0.7, which chance reaches in one
/// of a thousand runs. So a trend needs a separate test.
fn alike(d: &[f64], alpha: f64, margin: f64) -> Option<Alike> {
    let steps = d.len().saturating_sub(1) as f64;
    let large = |slope: f64| (slope * steps).abs() > margin * MARGIN_SHARE_MIN;
    if let Some(trend) =
        stats::mann_kendall(d).filter(|trend| trend.p <= alpha && large(trend.slope))
    {
        return Some(Alike::Trend {
            slope: trend.slope,
            p: trend.p,
        });
    }
    let blocks = u32::try_from(d.len())
        .ok()
        .filter(|blocks| *blocks >= LAG1_BLOCKS_MIN)?;
    let critical = stats::lag1_critical(blocks, alpha)?;
    let lag1 = stats::lag1(d).filter(|lag1| *lag1 > critical.max(LAG1_MAX))?;
    Some(Alike::Neighbours { lag1, critical })
}

/// Formats a small probability in words, without zeros to count.
fn chance(p: f64) -> String {
    if p < 1e-6 {
        "less than 1 run in a million".to_owned()
    } else {
        format!("1 run in {}", counted_as((1.0 / p).round() as u64))
    }
}

/// Formats a difference of logarithms as a percentage with its sign.
fn change(log: f64) -> String {
    change_alone(log.exp(), if log.exp_m1().abs() < 0.1 { 2 } else { 0 })
}

/// Change of the baseline's figure from which the first and the last blocks are not comparable.
const DRIFT_MIN: f64 = 0.1;

/// Reports drift of the baseline that shows it most clearly. Ratios are not affected, because drift cancels
/// if it is slow compared with a block.
pub(super) fn drift(run: &CheckedRun<'_>) -> Option<CheckFinding> {
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
    let (what, last) = (
        metric::pace(run.pacing).row().title,
        values.len().saturating_sub(1),
    );
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
) -> Option<Finding> {
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
    let pace = metric::pace(run.pacing);
    let value = |trial: &CheckedTrial<'_>| log_over(pace, trial.measured().take(slices));
    let values = trials.iter().map(value).collect::<Option<Vec<f64>>>()?;
    Some((
        trials.iter().map(|trial| trial.started.block).collect(),
        values,
    ))
}

/// A variant's trials, without the block whose warm-up was observed, which was longer than later ones.
fn after_warm_up<'a>(
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

/// Reports variants that were not steady in the observed warm-up, except those whose measured slices show the
/// change.
pub(super) fn never_steady(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let warm_up = run.warm_up.filter(|warm_up| warm_up.measured)?;
    let late = |after: &Option<f64>| after.is_none_or(|after| after > warm_up.seconds);
    let unsteady = |variant: &&CheckedVariant<'_>| {
        // A change within the measured slices is more informative.
        warm_up.steady_after_s.get(variant.index).is_some_and(late)
            && change_within(run, variant).is_none()
    };
    let unsteady = run
        .variants
        .iter()
        .filter(unsteady)
        .map(|variant| (variant.index, variant.name));
    let (about, names): (Vec<usize>, Vec<&str>) = unsteady.unzip();
    let evidence = evidence!("{}: not seen steady within the {warm_up} of warm-up that the trials get", names.join(", ");
        warm_up = Quantity::seconds(warm_up.seconds));
    let remedy = "warm-up may be inside the figures, for all variants alike; give a larger budget, or set design.warmup";
    (!about.is_empty()).then(|| warning(evidence, remedy).about(about))
}

/// Minimum window length. A service has barely begun to warm up in a shorter window.
const WINDOW_MIN_NS: u64 = 1_000_000_000;

/// Reports a slice with a short window.
pub(super) fn short_window(window: &MeasuredWindow<'_>) -> Option<CheckFinding> {
    let window_ns = window.slice.counts.window_ns;
    only_if(window_ns < WINDOW_MIN_NS && window.has_success() && !window.interrupted)?;
    let evidence = evidence!("the window was {window}"; window = Quantity::ns(window_ns));
    let remedy = match (window.is_too_short(), window.asked.until) {
        (true, Until::Elapsed(_)) => "too short for any rate: load for longer (--duration 10s)",
        (true, Until::Requests(_)) => "too short for any rate: send more requests (--requests)",
        (false, Until::Elapsed(_) | Until::Requests(_)) => {
            "a first impression only: a service has hardly begun to warm up"
        }
    };
    Some(warning(evidence, remedy))
}

/// Returns the difference between the last and the first third of a variant's trials, as a logarithm of a
/// metric, with the number of trials. `None` unless it exceeds chance and half of the margin. Each trial is
/// its own pair, and trials of different blocks are independent.
fn change_within(
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

/// Reports figures of a variant that change within its trials by more than half of the margin.
pub(super) fn warm_up_inside(
    run: &CheckedRun<'_>,
    variant: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
    let still_changing = super::young::still_changing(run, variant);
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

/// Minimum number of slices per trial, including warm-up, that show a slope after the first third.
const LEAK_SLICES_MIN: usize = 3;
/// Minimum rise per minute as a share of the peak. With a slower rise, no trial is long enough for it to
/// matter.
const LEAK_SHARE_MIN: f64 = 0.05;
/// Minimum rise after the first third of a trial, in bytes. A young heap does not explain more: V8's young
/// generation is two halves of 16 MiB, and services without any leak rose by 7 to 11 MB in six seconds in our
/// measurements.
const LEAK_BYTES_MIN: f64 = 32.0 * 1024.0 * 1024.0;
/// Minimum share of a variant's trials in which memory must rise.
const LEAK_TRIALS_MIN: f64 = 0.9;
/// Minimum number of trials, as in the shortest run with a verdict.
const LEAK_SLOPES_MIN: usize = 4;

/// Rise of a service's memory in one trial, after its first third.
struct Rise {
    bytes_per_request: f64,
    bytes_per_minute: f64,
    /// Total rise.
    bytes: f64,
    /// Maximum after any slice.
    peak: u64,
}

/// Reports memory of a service that grows with requests in nearly all trials without end: a leak, or what
/// looks like one in the available time.
///
/// Garbage collectors let memory grow at first, because that is cheaper than collecting it. So the first
/// third of a trial is ignored, and the rest must exceed a young heap. Slow leaks are not detected, because
/// that would need trials of hours.
pub(super) fn leak(run: &CheckedRun<'_>) -> Vec<CheckFinding> {
    let services = run
        .succeeding()
        .flat_map(|variant| used(variant).map(move |service| (variant, service)));
    let services: Vec<_> = services.collect();
    let alpha = SERIES_ALPHA / services.len().max(1) as f64;
    let told = |(variant, service): (&CheckedVariant<'_>, _)| {
        Some(variant.told(grows(variant, service, alpha)?))
    };
    services.into_iter().filter_map(told).collect()
}

/// The services with recorded figures.
fn used<'a>(variant: &CheckedVariant<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    let first = variant
        .slices
        .first()
        .map(|slice| slice.services.as_slice());
    first
        .unwrap_or_default()
        .iter()
        .map(|used| used.service.as_str())
}

fn grows(variant: &CheckedVariant<'_>, service: &str, alpha: f64) -> Option<CheckFinding> {
    let trials = &variant.trials;
    let rises: Vec<Rise> = trials
        .iter()
        .filter_map(|trial| rise(trial, service))
        .collect();
    let slopes: Vec<f64> = rises.iter().map(|rise| rise.bytes_per_minute).collect();
    let rising = slopes.iter().filter(|slope| **slope > 0.0).count();
    let effect = stats::mean_effect(&slopes).filter(|_| slopes.len() >= LEAK_SLOPES_MIN)?;
    let nearly_all = rising as f64 >= LEAK_TRIALS_MIN * slopes.len() as f64;
    let sure = effect.t > 0.0 && effect.p / 2.0 <= alpha && nearly_all;
    let typical = |of: fn(&Rise) -> f64| stats::median(rises.iter().map(of));
    let (per_minute, bytes) = (
        typical(|rise| rise.bytes_per_minute)?,
        typical(|rise| rise.bytes)?,
    );
    let (per_request, peak) = (
        typical(|rise| rise.bytes_per_request)?,
        typical(|rise| rise.peak as f64)?,
    );
    only_if(sure && bytes >= LEAK_BYTES_MIN && per_minute > LEAK_SHARE_MIN * peak)?;
    let (chance, doubles) = (chance(effect.p / 2.0), peak / per_minute);
    let of = counted(rises.len() as u64, "trial");
    let evidence = evidence!(
        "after the first third of a trial the memory of {service} rises by {per_request} a request, {per_minute} a minute of load, in \
         {rising} of {of} ({peak} at the end of one; by chance in {chance})";
        per_request = Quantity::bytes(per_request), per_minute = Quantity::bytes(per_minute), rising = Quantity::count(rising as u64),
        peak = Quantity::bytes(peak));
    let remedy = format!(
        "at this pace it doubles in {} minutes of load, and the figures are those of a process that has just begun. If it goes on it is a \
         leak, if not a heap that had not been collected yet: measure longer trials (design.slices), or look at what holds the memory",
        decimal(doubles, 1)
    );
    Some(warning(evidence, remedy))
}

/// Fits least-squares lines through the memory after each slice, without the warm-up and the first third.
fn rise(trial: &CheckedTrial<'_>, service: &str) -> Option<Rise> {
    let slices = trial.slices;
    only_if(slices.len() >= LEAK_SLICES_MIN)?;
    let held = |slice: &Slice| {
        Some(
            slice
                .services
                .iter()
                .find(|used| used.service == service)?
                .rss_bytes,
        )
    };
    let (mut requests, mut minutes) = (0.0, 0.0);
    let (mut by_request, mut by_minute, mut peak) = (Vec::new(), Vec::new(), 0);
    for slice in slices {
        requests += slice.counts.responses as f64;
        minutes += slice.counts.window_ns as f64 / 6e10;
        let bytes = held(slice)?;
        peak = peak.max(bytes);
        by_request.push((requests, bytes as f64));
        by_minute.push((minutes, bytes as f64));
    }
    let warm_up = slices
        .iter()
        .filter(|slice| slice.kind == SliceKind::WarmUp)
        .count();
    let rest = slices.len().div_ceil(3).max(warm_up);
    let bytes_per_minute = stats::slope(&by_minute[rest..])?;
    let passed = by_minute.last()?.0 - by_minute.get(rest)?.0;
    Some(Rise {
        bytes_per_request: stats::slope(&by_request[rest..])?,
        bytes_per_minute,
        bytes: bytes_per_minute * passed,
        peak,
    })
}
