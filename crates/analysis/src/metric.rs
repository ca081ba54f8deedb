//! Computes each metric's value from measurements: one value per trial, one log ratio per block. Also
//! provides metrics block by block, for pictures and tables of the data behind an estimate. Comparisons are
//! made only in [`conclude`](crate::conclude).
//!
//! Histograms are not kept here. There is one for each block and variant, and a long run has tens of
//! thousands.

use model::{Metric, MetricSource, Pacing};
use record::{Block, Record, Slice, Trial};
use stats::{Latencies, Quantile};

use crate::capacity::Searched;
use crate::sums::{few_merged, geometric_mean, mean, merged};
use crate::throughput::{judged_by, per_core};
use crate::{DroppedBlock, capacity, only_if};

/// Maximum number of requests without a response that a quantile tolerates, as a share of the requests beyond
/// it.
const CENSORED_SHARE_MAX: f64 = 0.1;

/// The metrics in reports of a record: default metrics with figures, and those that the plan names. In open
/// loop throughput is excluded, because it is given.
pub fn metrics(record: &Record) -> impl Iterator<Item = Metric> {
    Metric::of(record.pacing()).filter(|metric| is_reported(record, *metric))
}

/// Whether reports of a record include this metric, if there are figures of it.
pub(crate) fn is_reported(record: &Record, metric: Metric) -> bool {
    let plan = &record.header.plan;
    let limits = plan.gate.iter().map(|entry| entry.limit.figure);
    metric.row().usual
        || plan.design.metrics().any(|judged| judged == metric)
        || limits
            .filter_map(plan::LimitFigure::metric)
            .any(|bounded| bounded == metric)
}

/// Whether a metric's value is a ratio of sums, so that parts of a trial have it too.
pub(crate) fn is_of_sums(metric: Metric) -> bool {
    match metric.row().source {
        MetricSource::Ratio { .. } => true,
        MetricSource::Trial(_) | MetricSource::Response(_) | MetricSource::Search => false,
    }
}

/// Whether a trial has the metric only once.
pub(crate) fn is_once(metric: Metric) -> bool {
    match metric.row().source {
        MetricSource::Trial(_) => true,
        MetricSource::Ratio { .. } | MetricSource::Response(_) | MetricSource::Search => false,
    }
}

/// The value for one slice. A metric that a trial has only once is taken from `trial`. `None` for quantiles,
/// which have separate rules, and for the capacity.
pub(crate) fn of_slice(metric: Metric, slice: &Slice, trial: Option<&Trial>) -> Option<f64> {
    match metric.row().source {
        MetricSource::Ratio { parts, scale } => sound(ratio(std::iter::once(parts(slice))) * scale),
        MetricSource::Trial(value) => sound(value(trial?.ended.as_ref()?)),
        MetricSource::Response(_) | MetricSource::Search => None,
    }
}

/// A zero has no logarithm and is not a valid measurement.
fn sound(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite() && *value > 0.0)
}

/// A metric with values for single slices: the metric itself, or for metrics that a trial has only once the
/// one that reflects the machine's speed.
pub(crate) fn of_slices(metric: Metric, pacing: Pacing) -> Metric {
    match metric.row().source {
        MetricSource::Trial(_) | MetricSource::Search => pace(pacing),
        MetricSource::Ratio { .. } | MetricSource::Response(_) => metric,
    }
}

/// The metric that reflects the speed of machine and service: throughput in closed loop, CPU time per request
/// in open loop.
pub(crate) fn pace(pacing: Pacing) -> Metric {
    if pacing.is_open() {
        Metric::CpuPerRequest
    } else {
        Metric::Throughput
    }
}

fn ratio(parts: impl Iterator<Item = (u64, u64)>) -> f64 {
    let (above, below) = parts.fold((0, 0), |(above, below), (of, per)| {
        (above + of, below + per)
    });
    above as f64 / below as f64
}

/// Logarithm of a metric's value over these slices together, for a quantile the mean over them. `None` if
/// they have no value.
pub(crate) fn log_over<'a>(metric: Metric, slices: impl Iterator<Item = &'a Slice>) -> Option<f64> {
    match metric.row().source {
        MetricSource::Ratio { parts, scale } => {
            sound(ratio(slices.map(parts)) * scale).map(f64::ln)
        }
        MetricSource::Trial(_) | MetricSource::Search => None,
        MetricSource::Response(q) => {
            let log = |slice: &Slice| {
                let ns = slice.counts.open.as_ref()?.response.quantile(q)?.ns();
                (ns > 0).then(|| (ns as f64).ln())
            };
            mean(slices.map(log).collect::<Option<Vec<f64>>>()?)
        }
    }
}

/// A trial's value of a metric.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MetricSample {
    /// The value in the metric's unit, above 0.
    pub value: f64,
    /// Whether it is only a lower bound, because requests were abandoned or never sent.
    pub at_least: bool,
}

/// Values of a trial over its measured slices. Computed once, because it merges histograms.
#[derive(Debug)]
pub(crate) struct TrialFigures {
    samples: [Option<MetricSample>; Metric::ALL.len()],
    /// Number of requests with a response time, including abandoned ones. 0 in closed loop.
    pub response_times: u64,
}

impl TrialFigures {
    pub fn of(trial: &Trial) -> TrialFigures {
        let mut opens = trial
            .measured()
            .filter_map(|slice| slice.counts.open.as_ref())
            .peekable();
        let response = opens
            .peek()
            .is_some()
            .then(|| few_merged(opens.map(|open| &open.response)));
        let mut samples = [None; Metric::ALL.len()];
        for (sample, metric) in samples.iter_mut().zip(Metric::ALL) {
            *sample = MetricSample::of(trial, response.as_ref(), *metric);
        }
        TrialFigures {
            samples,
            response_times: response.map_or(0, |response| response.count()),
        }
    }
}

impl MetricSample {
    fn of(trial: &Trial, response: Option<&Latencies>, metric: Metric) -> Option<MetricSample> {
        let (value, at_least) = match metric.row().source {
            MetricSource::Ratio { parts, scale } => {
                (ratio(trial.measured().map(parts)) * scale, false)
            }
            MetricSource::Trial(value) => (value(trial.ended.as_ref()?), false),
            MetricSource::Search => return None,
            MetricSource::Response(q) => {
                let found = quantile(response?, q)?;
                (found.ns() as f64 / 1e3, !found.is_exact())
            }
        };
        Some(MetricSample {
            value: sound(value)?,
            at_least,
        })
    }
}

/// A single request without a response moves a quantile by at most one rank, which is less than its random
/// error. So a few of them count as slower than all others, which they were for a user. With more, the
/// quantile is only a bound.
fn quantile(response: &Latencies, q: f64) -> Option<Quantile> {
    only_if(response.resolves(q))?;
    let few = response.count() as f64 * (1.0 - q) * CENSORED_SHARE_MAX;
    match response.bounds(q)? {
        (_, Some(high)) if response.censored() as f64 <= few => Some(Quantile::Exact(high)),
        _ => response.quantile(q),
    }
}

/// The figures of one complete block, by variant. `None` for a variant without a trial.
#[derive(Debug)]
pub(crate) struct BlockFigures {
    pub number: u32,
    pub variants: Vec<Option<TrialFigures>>,
    /// Whether throughput is compared per core-second.
    pub per_core: bool,
}

impl BlockFigures {
    /// Computes the figures of every complete block.
    pub fn all(record: &Record) -> Vec<BlockFigures> {
        BlockFigures::with(record, &capacity::searched(record))
    }

    /// Like [`BlockFigures::all`], with the given capacities.
    pub fn with(record: &Record, searched: &[Searched]) -> Vec<BlockFigures> {
        let mut blocks = BlockFigures::of(record, record.complete_blocks(), searched);
        if record.header.plan.design.pooled {
            pool(record, &mut blocks);
        }
        blocks
    }

    /// Computes the figures of some blocks, without pooling.
    pub fn of<'a>(
        record: &Record,
        blocks: impl Iterator<Item = &'a Block>,
        searched: &[Searched],
    ) -> Vec<BlockFigures> {
        let variants = record.header.plan.variants.len();
        let per_core = per_core(record);
        let of = |block: &Block| BlockFigures {
            number: block.number,
            variants: (0..variants)
                .map(|index| block.trial(index).map(TrialFigures::of))
                .collect(),
            per_core,
        };
        let mut blocks = blocks.map(of).collect::<Vec<_>>();
        for (variant, searched) in searched.iter().enumerate() {
            for block in &mut blocks {
                let Some(figures) = &mut block.variants[variant] else {
                    continue;
                };
                figures.samples[Metric::Capacity as usize] = searched
                    .sample(block.number)
                    .map(|(value, at_least)| MetricSample { value, at_least });
            }
        }
        blocks
    }

    /// Whether the variant has a trial in this block.
    pub fn has(&self, variant: usize) -> bool {
        self.variants.get(variant).is_some_and(Option::is_some)
    }

    /// A variant's value in the metric's unit, including lower bounds. `None` if nothing was measured, no
    /// request succeeded, or there are too few requests for the quantile.
    pub fn sample(&self, metric: Metric, variant: usize) -> Option<MetricSample> {
        self.variants.get(variant)?.as_ref()?.samples[metric as usize]
    }

    /// A variant's value. `None` also if it is only a lower bound.
    pub fn value(&self, metric: Metric, variant: usize) -> Option<f64> {
        self.sample(metric, variant)
            .filter(|sample| !sample.at_least)
            .map(|sample| sample.value)
    }

    /// Logarithm of a variant's value.
    pub fn log_value(&self, metric: Metric, variant: usize) -> Option<f64> {
        self.value(metric, variant).map(f64::ln)
    }

    /// The value by which a variant is compared. See [`judged_by`].
    pub fn compared(&self, metric: Metric, variant: usize) -> Option<f64> {
        let (source, sign) = judged_by(metric, self.per_core);
        let value = self.value(source, variant)?;
        Some(if sign < 0.0 { value.recip() } else { value })
    }

    /// ln(candidate / baseline) of the block. `None` if either has no value.
    pub fn log_ratio(&self, metric: Metric, baseline: usize, candidate: usize) -> Option<f64> {
        Some((self.compared(metric, candidate)? / self.compared(metric, baseline)?).ln())
    }

    /// ln(candidate / baseline) of the values themselves, never per core-second.
    pub fn plain_log_ratio(
        &self,
        metric: Metric,
        baseline: usize,
        candidate: usize,
    ) -> Option<f64> {
        Some((self.value(metric, candidate)? / self.value(metric, baseline)?).ln())
    }

    /// candidate − baseline of the block in the metric's unit. `None` if either has no value.
    pub fn difference(&self, metric: Metric, baseline: usize, candidate: usize) -> Option<f64> {
        Some(self.value(metric, candidate)? - self.value(metric, baseline)?)
    }
}

/// Logarithm of a variant's value in each block in which it was measured. `None` if one of these has no
/// value, because the others would be a different quantity.
pub(crate) fn log_values(
    blocks: &[BlockFigures],
    metric: Metric,
    variant: usize,
) -> Option<Vec<f64>> {
    let measured = blocks
        .iter()
        .filter(|block| block.variants[variant].is_some());
    measured
        .map(|block| block.log_value(metric, variant))
        .collect()
}

/// Replaces each block's quantiles by its contribution to the quantile of all responses together, so that
/// statistics over blocks apply to that quantile too. These are the pseudo-values of the infinitesimal
/// jackknife (Jaeckel 1972), ln Q + w (F(Q) − Fᵢ(Q)) · d ln Q/dq, with F the share of responses that took no
/// longer and w the block's responses over those of a mean block. Their mean is ln Q and their spread its
/// uncertainty. The ordinary jackknife, which leaves out one block at a time, does not work: quantiles come
/// in steps of 0.1 %, which would count once for each block.
fn pool(record: &Record, blocks: &mut [BlockFigures]) {
    let quantiles: Vec<Metric> = Metric::of(record.pacing())
        .filter(|metric| metric.quantile().is_some())
        .collect();
    for variant in 0..record.header.plan.variants.len() {
        let response = |block: &Block| {
            let opens = block.trial(variant).into_iter().flat_map(Trial::measured);
            few_merged(
                opens
                    .filter_map(|slice| slice.counts.open.as_ref())
                    .map(|open| &open.response),
            )
        };
        let responses: Vec<Latencies> = record.complete_blocks().map(response).collect();
        let all = merged(responses.iter());
        // Decided variants are measured only in some blocks.
        let measured = responses.iter().filter(|of| of.count() > 0).count();
        let weight =
            |block: &Latencies| block.count() as f64 * measured as f64 / all.count() as f64;
        for metric in &quantiles {
            let added = added(&all, *metric);
            for (block, response) in blocks.iter_mut().zip(&responses) {
                let Some(figures) = &mut block.variants[variant] else {
                    continue;
                };
                figures.samples[*metric as usize] = added
                    .as_ref()
                    .and_then(|added| added(response, weight(response)));
            }
        }
    }
}

/// Contribution of a block with a given weight to the quantile of all responses together. `None` with too few
/// requests for the quantile.
fn added(
    all: &Latencies,
    metric: Metric,
) -> Option<impl Fn(&Latencies, f64) -> Option<MetricSample>> {
    let q = metric.quantile()?;
    let found = quantile(all, q)?;
    let (ns, at_least) = (found.ns(), !found.is_exact());
    // Wide enough to span many responses, narrow enough for the local slope.
    let near = q.min(1.0 - q) / 2.0;
    let log = |q: f64| Some((all.quantile(q)?.ns().max(1) as f64).ln());
    let slope = (log(q + near)? - log(q - near)?) / (2.0 * near);
    let share = share_within(all, ns);
    Some(move |block: &Latencies, weight: f64| {
        let more = weight * (share - share_within(block, ns)) * slope;
        Some(MetricSample {
            value: sound(ns as f64 / 1e3 * more.exp())?,
            at_least,
        })
    })
}

/// Share of responses that took no longer than this. Abandoned requests took longer.
fn share_within(responses: &Latencies, ns: u64) -> f64 {
    let count = responses.count();
    let took = |rank: u64| {
        responses
            .bounds(rank as f64 / count as f64)
            .and_then(|(_, high)| high)
    };
    let (mut within, mut beyond) = (0, count + 1);
    while beyond - within > 1 {
        let rank = within.midpoint(beyond);
        if took(rank).is_some_and(|took| took <= ns) {
            within = rank
        } else {
            beyond = rank
        }
    }
    within as f64 / count.max(1) as f64
}

/// One metric's value in each block, for each variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The metric.
    pub of: Metric,
    /// Whether throughput is compared per core-second.
    pub per_core: bool,
    /// Numbers of the blocks that came to their end, dropped ones among them.
    pub blocks: Vec<u32>,
    /// The dropped blocks.
    pub dropped: Vec<DroppedBlock>,
    /// `values[variant][block]`, by index in the plan and in `blocks`. `None` if there is no value: no
    /// request succeeded, a quantile is only a bound, or there are too few requests for it.
    pub values: Vec<Vec<Option<f64>>>,
}

/// All metrics with figures in a record, in the order of reports.
pub fn series(record: &Record) -> Vec<Series> {
    let ended: Vec<&Block> = record
        .blocks
        .iter()
        .filter(|block| block.seconds.is_some())
        .collect();
    let variants = record.header.plan.variants.len();
    let figures = BlockFigures::of(record, ended.iter().copied(), &capacity::searched(record));
    let values = |metric, variant| {
        figures
            .iter()
            .map(|block| block.value(metric, variant))
            .collect()
    };
    let per_core = per_core(record);
    let of = |metric: Metric| Series {
        of: metric,
        per_core,
        blocks: ended.iter().map(|block| block.number).collect(),
        dropped: ended
            .iter()
            .filter_map(|block| DroppedBlock::of(block))
            .collect(),
        values: (0..variants)
            .map(|variant| values(metric, variant))
            .collect(),
    };
    metrics(record).map(of).collect()
}

impl Series {
    /// For each block, whether it counts.
    pub fn counts(&self) -> Vec<bool> {
        let is_dropped = |number: &u32| self.dropped.iter().any(|dropped| dropped.block == *number);
        self.blocks
            .iter()
            .map(|number| !is_dropped(number))
            .collect()
    }

    /// Geometric mean over the blocks that count and over these variants. `None` if one of them has no value.
    pub fn mean(&self, variants: impl IntoIterator<Item = usize>) -> Option<f64> {
        let of = |variant: usize| {
            let counting = self
                .values
                .get(variant)?
                .iter()
                .zip(self.counts())
                .filter(|(_, counts)| *counts);
            geometric_mean(
                counting
                    .map(|(value, _)| *value)
                    .collect::<Option<Vec<f64>>>()?,
            )
        };
        geometric_mean(variants.into_iter().map(of).collect::<Option<Vec<f64>>>()?)
    }
}
