//! Times that a record shows: responses of warm-ups, seconds until variants were steady, costs of trials, and
//! variances. This module reads records and decides nothing.

use analysis::Spread;
use analysis::changing_variants;
use plan::Metric;
use record::{Block, Record, Slice, SliceKind, Trial, WarmUp};
use stats::{Components, Quantile};

use super::{TRIAL_GUESS_S, TURN_GAP_S, gap_s};

/// The part of it for stopping.
const STOP_GUESS_S: f64 = 0.2;
/// The warm-up is no longer watched if the cut is within this share of it. While values still rise, it seldom
/// is.
const WATCHED_SHARE: f64 = 1.0 / 3.0;

/// Measured times that change the timing of the next trials.
#[derive(Debug, Clone, Copy)]
pub enum MeasuredTimes<'a> {
    /// The rate of all variants was determined.
    Rate {
        /// Requests per second.
        per_s: f64,
    },
    /// The first block is warm.
    WarmUps(&'a ResponseTimes),
    /// The first block is complete.
    FirstBlock(&'a FirstBlockTimes),
    /// Enough blocks for variances are complete.
    Blocks {
        /// Variances between and within trials. `None` if they cannot be estimated.
        components: Option<Components>,
        /// Costs of trials.
        costs: TrialCosts,
    },
}

/// Response times in the warm-ups of a block.
#[derive(Debug, Clone, Copy)]
pub struct ResponseTimes {
    /// Likely duration of the requests in flight after a window, in seconds.
    pub drain_s: f64,
    /// Lead of turns in seconds, see [`crate::Turn`].
    pub lead_s: f64,
    /// Median response time of the slowest variant that waits, in seconds. 0 if none waits.
    pub waited_s: f64,
    /// Seconds that a trial takes to start and to stop.
    pub start_s: f64,
}

impl ResponseTimes {
    /// Reads the warm-ups of a block, in which these variants wait. `None` if there were none.
    pub(crate) fn of(record: &Record, block: u32, waiting: &[usize]) -> Option<ResponseTimes> {
        Some(ResponseTimes {
            drain_s: warm_up_drain_s(record, block)?,
            lead_s: lead_s(record, block),
            waited_s: waited_s(record, block, waiting),
            start_s: start_s(record),
        })
    }
}

/// Times of the first block.
#[derive(Debug, Clone, Default)]
pub struct FirstBlockTimes {
    /// Response times of the warm-ups, if its slices showed that other variants wait.
    pub responses: Option<ResponseTimes>,
    /// Costs of its trials. `None` if nothing was measured.
    pub costs: Option<TrialCosts>,
    /// Seconds until each variant was steady. `None` for a variant that never was.
    pub steady_after_s: Vec<Option<f64>>,
    /// Variants that still changed in their slices, and the seconds of load before the last slice. Empty if
    /// the warm-up cannot be lengthened.
    pub changing: Vec<(usize, f64)>,
}

impl FirstBlockTimes {
    /// Reads the first complete block.
    pub(crate) fn of(
        record: &Record,
        block: u32,
        responses: Option<ResponseTimes>,
        costs: Option<TrialCosts>,
    ) -> FirstBlockTimes {
        let design = &record.header.plan.design;
        // A trial of a search has no slices of equal load.
        let can_lengthen = costs.is_some() && design.warmup.is_none() && design.slo.is_empty();
        FirstBlockTimes {
            responses,
            costs,
            steady_after_s: steady_after_of_variants_s(record),
            changing: if can_lengthen {
                changing_s(record, block)
            } else {
                Vec::new()
            },
        }
    }

    /// The warm-up that was chosen, with the measurements that it follows from.
    pub(crate) fn warm_up(&self, seconds: f64, was_watched: bool) -> WarmUp {
        let measured = was_watched && self.costs.is_some();
        let is_steady =
            |variant| measured && self.changing.iter().all(|(other, _)| *other != variant);
        let steady_after_s = self.steady_after_s.iter().enumerate();
        WarmUp {
            seconds,
            measured,
            steady_after_s: steady_after_s
                .map(|(variant, after_s)| after_s.filter(|_| is_steady(variant)))
                .collect(),
        }
    }
}

/// Seconds until each variant of the first ended block was steady.
fn steady_after_of_variants_s(record: &Record) -> Vec<Option<f64>> {
    let first = record.blocks.iter().find(|block| block.seconds.is_some());
    let trials = first
        .map(|block| block.trials.as_slice())
        .unwrap_or_default();
    let steady_after =
        |variant| steady_after_s(trials.iter().find(|trial| trial.variant() == variant)?);
    (0..record.header.plan.variants.len())
        .map(steady_after)
        .collect()
}

/// The variants that still changed in the slices of a block, and the seconds of load before the last slice.
fn changing_s(record: &Record, block: u32) -> Vec<(usize, f64)> {
    let changing = changing_variants(record, block);
    let trials = record
        .blocks
        .iter()
        .filter(|of| of.number == block)
        .flat_map(|of| &of.trials);
    let loaded_s = |trial: &Trial| -> f64 {
        let before = &trial.slices[..trial.slices.len().saturating_sub(1)];
        before
            .iter()
            .map(|slice| slice.counts.window_ns as f64 / 1e9)
            .sum()
    };
    trials
        .filter(|trial| changing.contains(&trial.variant()))
        .map(|trial| (trial.variant(), loaded_s(trial)))
        .collect()
}

/// Whether a watched warm-up is complete.
pub(crate) fn is_warm(trial: &Trial) -> bool {
    let watched_s = warm_up_counts(trial).len() as f64 / 10.0;
    steady_after_s(trial).is_some_and(|seconds| seconds <= WATCHED_SHARE * watched_s)
}

/// Seconds until a trial was warm. `None` if it never was.
fn steady_after_s(trial: &Trial) -> Option<f64> {
    let counts = warm_up_counts(trial);
    if !counts.is_empty() && counts.iter().all(|count| *count == 0.0) {
        // A variant that never succeeds has nothing that could become steady.
        return Some(0.0);
    }
    stats::steady_after(&counts).map(|buckets| buckets as f64 / 10.0)
}

/// Successful responses of a trial's warm-up in each 100 ms. In open loop another warm-up at the common rate
/// follows.
fn warm_up_counts(trial: &Trial) -> Vec<f64> {
    let warm_ups = trial
        .slices
        .iter()
        .filter(|slice| slice.kind == SliceKind::WarmUp && slice.counts.open.is_none());
    warm_ups
        .flat_map(|slice| &slice.counts.successful_per_100_ms)
        .map(|count| f64::from(*count))
        .collect()
}

/// Likely duration of requests in flight after a window in seconds, from the warm-ups of a block. `None` if
/// there was none.
///
/// The drains alone would not be sufficient: if all responses take equally long, a window may by chance end
/// as they arrive.
fn warm_up_drain_s(record: &Record, block: u32) -> Option<f64> {
    let drain_ns = |slice: &Slice| {
        slice
            .counts
            .drain_ns
            .max(slice.counts.latency.quantile(0.5).map_or(0, Quantile::ns))
    };
    stats::mean(warm_ups(record, block).map(|slice| drain_ns(slice) as f64 / 1e9))
}

/// Seconds that a trial takes to start and to stop, averaged over all starts so far.
fn start_s(record: &Record) -> f64 {
    stats::mean(starts_s(record)).unwrap_or(TRIAL_GUESS_S) + STOP_GUESS_S
}

/// The same by the longest start so far.
pub(crate) fn longest_start_s(record: &Record) -> f64 {
    starts_s(record).reduce(f64::max).unwrap_or(TRIAL_GUESS_S) + STOP_GUESS_S
}

/// The shortest start so far, in seconds.
pub(crate) fn shortest_start_s(record: &Record) -> f64 {
    starts_s(record).reduce(f64::min).unwrap_or(0.0)
}

fn starts_s(record: &Record) -> impl Iterator<Item = f64> {
    record
        .blocks
        .iter()
        .flat_map(|block| &block.trials)
        .map(|trial| trial.started.start_s)
}

fn warm_ups(record: &Record, block: u32) -> impl Iterator<Item = &Slice> {
    let block = record.blocks.iter().find(|found| found.number == block);
    let slices = block
        .into_iter()
        .flat_map(|block| &block.trials)
        .flat_map(|trial| &trial.slices);
    slices.filter(|slice| slice.kind == SliceKind::WarmUp)
}

/// The lead of turns, from the warm-ups of a block: about the slowest variant's response if connections share
/// a link. Otherwise none, because the first of several requests that queue for a processor gets its response
/// at once.
fn lead_s(record: &Record, block: u32) -> f64 {
    let linked = record
        .header
        .plan
        .variants
        .iter()
        .any(|variant| variant.load.network.is_some());
    if linked {
        slowest_s(record, block, 0.9, |_| true)
    } else {
        0.0
    }
}

/// Median response time of the slowest of these variants in the warm-ups of a block, in seconds. 0 without
/// any.
fn waited_s(record: &Record, block: u32, waiting: &[usize]) -> f64 {
    slowest_s(record, block, 0.5, |variant| waiting.contains(&variant))
}

/// The largest quantile of the latencies among these variants' warm-ups in a block, in seconds.
fn slowest_s(record: &Record, block: u32, q: f64, is_one: impl Fn(usize) -> bool) -> f64 {
    let of_these = warm_ups(record, block).filter(|slice| is_one(slice.variant));
    let quantiles = of_these.filter_map(|slice| slice.counts.latency.quantile(q));
    quantiles
        .map(|quantile| quantile.ns() as f64 / 1e9)
        .fold(0.0, f64::max)
}

/// Variance components of log throughput. In open loop of the log of the metric, because throughput is fixed
/// there.
pub(crate) fn components(record: &Record, slice_s: f64) -> Option<Components> {
    let metric = record.header.plan.design.metric;
    let varying = match (record.is_open_loop(), metric.quantile()) {
        (false, _) if analysis::per_core(record) => Metric::CpuPerRequest,
        (false, _) => Metric::Throughput,
        (true, None) => Metric::CpuPerRequest,
        (true, Some(_)) => metric,
    };
    Spread::of(record, varying, slice_s).components()
}

/// Overhead of a trial and a slice beside their load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialCosts {
    /// Seconds of a trial beside warm-up and slices: start, connect, stop.
    pub trial_s: f64,
    /// Seconds of a slice beside its windows: drains, reading the use of services.
    pub gap_s: f64,
    /// The same without drains: the minimum time between two slices.
    pub own_gap_s: f64,
    /// Seconds of drain after one window.
    pub turn_gap_s: f64,
}

/// The measured costs of a trial and of a slice. `None` before the first block is complete.
pub(crate) fn trial_costs(record: &Record) -> Option<TrialCosts> {
    let mut blocks: Vec<&Block> = record.complete_blocks().collect();
    if blocks.is_empty() {
        // Disturbances made the dropped blocks slower, but they are still closer than an assumption.
        blocks = record
            .blocks
            .iter()
            .filter(|block| block.seconds.is_some())
            .collect();
    }
    let slices = || {
        blocks
            .iter()
            .flat_map(|block| &block.trials)
            .flat_map(|trial| &trial.slices)
    };
    let measured = || slices().filter(|slice| slice.kind == SliceKind::Measured);
    let drains_s = || measured().map(|slice| slice.counts.drain_ns as f64 / 1e9);
    let pauses_s = measured().map(|slice| f64::from(slice.turns) * TURN_GAP_S);
    let turns: u32 = measured().map(|slice| slice.turns).sum();
    let turn_gap_s = drains_s().sum::<f64>() / f64::from(turns.max(1));
    let own_gap_s = agreed_gap_s(record, &blocks).unwrap_or(gap_s(&record.header.plan));
    let gap_s = own_gap_s + stats::mean(pauses_s)? + stats::mean(drains_s())?;
    // The gap after a warm-up is a cost of the trial: there is one warm-up for any number of slices.
    let gap_of = |slice: &Slice| {
        if slice.kind == SliceKind::Measured {
            gap_s
        } else {
            0.0
        }
    };
    let loaded_s: f64 = slices()
        .map(|slice| slice.counts.window_ns as f64 / 1e9 + gap_of(slice))
        .sum();
    let total_s: f64 = blocks.iter().filter_map(|block| block.seconds).sum();
    let trials: usize = blocks.iter().map(|block| block.trials.len()).sum();
    let trial_s = ((total_s - loaded_s) / trials as f64).max(0.0);
    Some(TrialCosts {
        trial_s,
        gap_s,
        own_gap_s,
        turn_gap_s,
    })
}

/// Measured time between two slices of a trial in seconds. With other generators than this process it is
/// several round trips to the farthest of them. `None` if no trial has two slices, or no agreement is needed.
fn agreed_gap_s(record: &Record, blocks: &[&Block]) -> Option<f64> {
    let between = |pair: &[&Slice]| {
        let [one, next] = pair else { return None };
        let ended_ns = one.counts.started_ns + one.counts.window_ns + one.counts.drain_ns;
        Some(next.counts.started_ns.saturating_sub(ended_ns) as f64 / 1e9)
    };
    let trials = blocks.iter().flat_map(|block| &block.trials);
    let gaps_s = trials.flat_map(|trial| {
        let slices: Vec<&Slice> = trial.measured().collect();
        slices.windows(2).filter_map(between).collect::<Vec<f64>>()
    });
    stats::mean(gaps_s).filter(|_| !record.header.plan.generators.is_here())
}
