//! How each metric's value is taken from what was measured: one value a trial, one log-ratio a block. And each metric block by block, for
//! pictures and tables of what an estimate rests on: never for comparing, which is [`conclude`](crate::conclude)'s work.
//!
//! Must not: keep histograms. There is one for each block and variant, and a long run has tens of thousands.

use model::Metric;
use record::{Block, Record, Slice, Trial};
use stats::{Latencies, Quantile};

use crate::capacity::Searched;
use crate::checks::per_core;
use crate::comparison::Comparison;
use crate::variant::{few_merged, geometric_mean, merged};
use crate::{DroppedBlock, capacity, only_if};

/// Requests without response that a quantile bears, as a share of those beyond it.
const CENSORED_SHARE_MAX: f64 = 0.1;

/// Where a metric's value comes from.
enum Sampler {
    /// Over slices: one sum over another, and what makes it the metric's unit.
    Ratio { parts: fn(&Slice) -> (u64, u64), scale: f64 },
    /// Something that a trial has once.
    Trial(fn(&Trial) -> Option<f64>),
    /// A quantile of the response times.
    Response,
    /// What follows from all blocks together: see [`crate::capacity`].
    Search,
}

fn sampler(metric: Metric) -> Sampler {
    match metric {
        Metric::Throughput => Sampler::Ratio { parts: Slice::throughput, scale: 1e9 },
        Metric::CpuPerRequest => {
            Sampler::Ratio { parts: |slice| (slice.services_cpu_ns(), slice.counts.successful), scale: 1e-3 }
        }
        Metric::PeakMemory => Sampler::Trial(|trial| Some(trial.ended.as_ref()?.peak_rss_bytes as f64)),
        Metric::Capacity => Sampler::Search,
        Metric::P50 | Metric::P75 | Metric::P90 | Metric::P95 | Metric::P99 | Metric::P995 | Metric::P999 => {
            Sampler::Response
        }
    }
}

/// The metrics that reports of a record have: the usual ones that it has figures of, and those that the plan names. In open loop throughput
/// is none of them: it is given.
pub fn metrics(record: &Record) -> impl Iterator<Item = Metric> {
    Metric::of(record.pacing()).filter(|metric| is_reported(record, *metric))
}

/// Whether reports of a record have this metric, if there are figures of it.
pub(crate) fn is_reported(record: &Record, metric: Metric) -> bool {
    let plan = &record.header.plan;
    let limits = plan.gate.iter().map(|entry| entry.limit.figure);
    metric.row().usual
        || plan.design.metrics().any(|judged| judged == metric)
        || limits.filter_map(plan::Figure::metric).any(|bounded| bounded == metric)
}

/// Whether a metric's value is a ratio of sums, so that parts of a trial have it like the whole.
pub(crate) fn is_of_sums(metric: Metric) -> bool {
    match sampler(metric) {
        Sampler::Ratio { .. } => true,
        Sampler::Trial(_) | Sampler::Response | Sampler::Search => false,
    }
}

/// Whether a trial has it once.
pub(crate) fn is_once(metric: Metric) -> bool {
    match sampler(metric) {
        Sampler::Trial(_) => true,
        Sampler::Ratio { .. } | Sampler::Response | Sampler::Search => false,
    }
}

/// The value of one slice; of what a trial has once, that of `trial`. Quantiles have their own rules, and a search has none.
pub(crate) fn of_slice(metric: Metric, slice: &Slice, trial: Option<&Trial>) -> Option<f64> {
    match sampler(metric) {
        Sampler::Ratio { parts, scale } => sound(ratio(std::iter::once(parts(slice))) * scale),
        Sampler::Trial(value) => sound(value(trial?)?),
        Sampler::Response | Sampler::Search => None,
    }
}

/// A zero has no logarithm and is no measurement.
fn sound(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite() && *value > 0.0)
}

/// A metric of which single slices have values: the metric itself, or for what a trial has only once that which shows how fast the
/// machine is: throughput in closed loop, in open loop CPU time per request.
pub(crate) fn of_slices(metric: Metric, record: &Record) -> Metric {
    match sampler(metric) {
        Sampler::Trial(_) | Sampler::Search => pace(record),
        Sampler::Ratio { .. } | Sampler::Response => metric,
    }
}

/// The metric that shows how fast machine and service are.
pub(crate) fn pace(record: &Record) -> Metric {
    if record.is_open_loop() { Metric::CpuPerRequest } else { Metric::Throughput }
}

fn ratio(parts: impl Iterator<Item = (u64, u64)>) -> f64 {
    let (above, below) = parts.fold((0, 0), |(above, below), (of, per)| (above + of, below + per));
    above as f64 / below as f64
}

/// The logarithm of a metric's value over these slices together, in the mean over them for a quantile; `None` where they have none.
pub(crate) fn log_over<'a>(metric: Metric, slices: impl Iterator<Item = &'a Slice>) -> Option<f64> {
    match sampler(metric) {
        Sampler::Ratio { parts, scale } => sound(ratio(slices.map(parts)) * scale).map(f64::ln),
        Sampler::Trial(_) | Sampler::Search => None,
        Sampler::Response => {
            let q = metric.quantile()?;
            let log = |slice: &Slice| {
                let ns = slice.counts.open.as_ref()?.response.quantile(q)?.ns();
                (ns > 0).then(|| (ns as f64).ln())
            };
            crate::variant::mean(slices.map(log).collect::<Option<Vec<f64>>>()?)
        }
    }
}

/// A trial's value of a metric.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// In the metric's unit, above 0.
    pub value: f64,
    /// Whether it is only a lower bound, because requests were given up or never sent.
    pub at_least: bool,
}

/// What a trial's measured slices amount to. Made once, for it merges histograms.
#[derive(Debug)]
pub(crate) struct Figures {
    samples: [Option<Sample>; Metric::ALL.len()],
    /// Requests with a response time, those that were given up included; 0 in closed loop.
    pub response_times: u64,
}

impl Figures {
    pub fn of(trial: &Trial) -> Figures {
        let mut opens = trial.measured().filter_map(|slice| slice.counts.open.as_ref()).peekable();
        let response = opens.peek().is_some().then(|| few_merged(opens.map(|open| &open.response)));
        let mut samples = [None; Metric::ALL.len()];
        for (sample, metric) in samples.iter_mut().zip(Metric::ALL) {
            *sample = Sample::of(trial, response.as_ref(), *metric);
        }
        Figures { samples, response_times: response.map_or(0, |response| response.count()) }
    }
}

impl Sample {
    fn of(trial: &Trial, response: Option<&Latencies>, metric: Metric) -> Option<Sample> {
        let (value, at_least) = match sampler(metric) {
            Sampler::Ratio { parts, scale } => (ratio(trial.measured().map(parts)) * scale, false),
            Sampler::Trial(value) => (value(trial)?, false),
            Sampler::Search => return None,
            Sampler::Response => {
                let found = quantile(response?, metric.quantile()?)?;
                (found.ns() as f64 / 1e3, !found.is_exact())
            }
        };
        Some(Sample { value: sound(value)?, at_least })
    }
}

/// A single request without response moves a quantile by up to one rank, which is nothing beside the chance in it. So where they are few
/// they count as slower than all others, which is what they were to whoever waited; else it is bounded.
fn quantile(response: &Latencies, q: f64) -> Option<Quantile> {
    only_if(response.resolves(q))?;
    let few = response.count() as f64 * (1.0 - q) * CENSORED_SHARE_MAX;
    match response.bounds(q)? {
        (_, Some(high)) if response.censored() as f64 <= few => Some(Quantile::Exact(high)),
        _ => response.quantile(q),
    }
}

/// The figures of one complete block, by variant; `None` where a variant has no trial.
#[derive(Debug)]
pub(crate) struct BlockFigures {
    pub number: u32,
    pub variants: Vec<Option<Figures>>,
    /// Whether throughput is compared per core-second.
    pub per_core: bool,
}

impl BlockFigures {
    /// Those of every complete block.
    pub fn all(record: &Record) -> Vec<BlockFigures> {
        BlockFigures::with(record, &capacity::searched(record))
    }

    /// The same with the capacities that were found.
    pub fn with(record: &Record, searched: &[Searched]) -> Vec<BlockFigures> {
        let mut blocks = BlockFigures::of(record, record.complete_blocks(), searched);
        if record.header.plan.design.pooled {
            pool(record, &mut blocks);
        }
        blocks
    }

    /// Those of some blocks, each by itself.
    pub fn of<'a>(
        record: &Record,
        blocks: impl Iterator<Item = &'a Block>,
        searched: &[Searched],
    ) -> Vec<BlockFigures> {
        let variants = record.header.plan.variants.len();
        let per_core = per_core(record);
        let of = |block: &Block| BlockFigures {
            number: block.number,
            variants: (0..variants).map(|index| block.trial(index).map(Figures::of)).collect(),
            per_core,
        };
        let mut blocks = blocks.map(of).collect::<Vec<_>>();
        for (variant, searched) in searched.iter().enumerate() {
            for block in &mut blocks {
                let Some(figures) = &mut block.variants[variant] else { continue };
                figures.samples[Metric::Capacity as usize] = searched.sample(block.number);
            }
        }
        blocks
    }

    /// A variant's value in the metric's unit, lower bounds included; `None` where nothing was measured or nothing succeeded, and where
    /// too few requests bear a quantile.
    pub fn sample(&self, metric: Metric, variant: usize) -> Option<Sample> {
        self.variants.get(variant)?.as_ref()?.samples[metric as usize]
    }

    /// The same, `None` also where it is only bounded from below.
    pub fn value(&self, metric: Metric, variant: usize) -> Option<f64> {
        self.sample(metric, variant).filter(|sample| !sample.at_least).map(|sample| sample.value)
    }

    /// Its logarithm.
    pub fn log_value(&self, metric: Metric, variant: usize) -> Option<f64> {
        self.value(metric, variant).map(f64::ln)
    }

    /// What a variant is compared by: its value, of throughput per core-second where that is judged.
    pub fn compared(&self, metric: Metric, variant: usize) -> Option<f64> {
        if self.per_core && metric == Metric::Throughput {
            return self.value(Metric::CpuPerRequest, variant).map(f64::recip);
        }
        self.value(metric, variant)
    }

    /// ln(candidate / baseline) of the block, `None` where either has no value.
    pub fn log_ratio(&self, metric: Metric, baseline: usize, candidate: usize) -> Option<f64> {
        Some((self.compared(metric, candidate)? / self.compared(metric, baseline)?).ln())
    }

    /// The same of the values themselves.
    pub fn plain_log_ratio(&self, metric: Metric, baseline: usize, candidate: usize) -> Option<f64> {
        Some((self.value(metric, candidate)? / self.value(metric, baseline)?).ln())
    }

    /// candidate − baseline of the block in the metric's unit, `None` where either has no value.
    pub fn difference(&self, metric: Metric, baseline: usize, candidate: usize) -> Option<f64> {
        Some(self.value(metric, candidate)? - self.value(metric, baseline)?)
    }
}

/// The logarithm of a variant's value in each block in which it was measured; `None` where one of these has none: what the others have is
/// another quantity.
pub(crate) fn log_values(blocks: &[BlockFigures], metric: Metric, variant: usize) -> Option<Vec<f64>> {
    let measured = blocks.iter().filter(|block| block.variants[variant].is_some());
    measured.map(|block| block.log_value(metric, variant)).collect()
}

/// Puts in the place of each block's quantiles what the block adds to the quantile of all responses together, so that whatever is done to
/// blocks holds for it too: the pseudo-values of the infinitesimal jackknife (Jaeckel 1972), ln Q + w (F(Q) − Fᵢ(Q)) · d ln Q/dq, with F the
/// share of responses that took no longer and w the block's responses over those of a mean block. Their mean is ln Q and their spread its
/// uncertainty. To leave out a block and look again will not do: quantiles come in steps of 0.1 %, which would count once for each block.
fn pool(record: &Record, blocks: &mut [BlockFigures]) {
    let quantiles: Vec<Metric> =
        Metric::of(record.pacing()).filter(|metric| metric.quantile().is_some()).collect();
    for variant in 0..record.header.plan.variants.len() {
        let response = |block: &Block| {
            let opens = block.trial(variant).into_iter().flat_map(Trial::measured);
            few_merged(opens.filter_map(|slice| slice.counts.open.as_ref()).map(|open| &open.response))
        };
        let responses: Vec<Latencies> = record.complete_blocks().map(response).collect();
        let all = merged(responses.iter());
        // What is decided is measured in some blocks alone.
        let measured = responses.iter().filter(|of| of.count() > 0).count();
        let weight = |block: &Latencies| block.count() as f64 * measured as f64 / all.count() as f64;
        for metric in &quantiles {
            let added = added(&all, *metric);
            for (block, response) in blocks.iter_mut().zip(&responses) {
                let Some(figures) = &mut block.variants[variant] else { continue };
                figures.samples[*metric as usize] =
                    added.as_ref().and_then(|added| added(response, weight(response)));
            }
        }
    }
}

/// What a block of such a weight adds to the quantile of all responses together; `None` where too few requests bear the quantile.
fn added(all: &Latencies, metric: Metric) -> Option<impl Fn(&Latencies, f64) -> Option<Sample>> {
    let q = metric.quantile()?;
    let found = quantile(all, q)?;
    let (ns, at_least) = (found.ns(), !found.is_exact());
    // Far enough for many responses between, near enough to be the slope there.
    let near = q.min(1.0 - q) / 2.0;
    let log = |q: f64| Some((all.quantile(q)?.ns().max(1) as f64).ln());
    let slope = (log(q + near)? - log(q - near)?) / (2.0 * near);
    let share = share_within(all, ns);
    Some(move |block: &Latencies, weight: f64| {
        let more = weight * (share - share_within(block, ns)) * slope;
        Some(Sample { value: sound(ns as f64 / 1e3 * more.exp())?, at_least })
    })
}

/// The share of responses that took no longer than this; what was given up took longer.
fn share_within(responses: &Latencies, ns: u64) -> f64 {
    let count = responses.count();
    let took = |rank: u64| responses.bounds(rank as f64 / count as f64).and_then(|(_, high)| high);
    let (mut within, mut beyond) = (0, count + 1);
    while beyond - within > 1 {
        let rank = within.midpoint(beyond);
        if took(rank).is_some_and(|took| took <= ns) { within = rank } else { beyond = rank }
    }
    within as f64 / count.max(1) as f64
}

/// One metric's value in each block, for each variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The metric.
    pub of: Metric,
    /// Whether variants are compared by the inverse of their CPU time per request.
    pub per_core: bool,
    /// Numbers of the blocks that came to their end, dropped ones among them.
    pub blocks: Vec<u32>,
    /// Those of them that count for nothing.
    pub dropped: Vec<DroppedBlock>,
    /// `values[variant][block]`, by place in the plan and in `blocks`. `None` where there is no value: nothing succeeded, a quantile
    /// is only bounded, or too few requests bear it.
    pub values: Vec<Vec<Option<f64>>>,
}

/// Every metric that a record has figures of, in the order in which reports have them.
pub fn series(record: &Record) -> Vec<Series> {
    let ended: Vec<&Block> = record.blocks.iter().filter(|block| block.seconds.is_some()).collect();
    let variants = record.header.plan.variants.len();
    let figures = BlockFigures::of(record, ended.iter().copied(), &capacity::searched(record));
    let values = |metric, variant| figures.iter().map(|block| block.value(metric, variant)).collect();
    let per_core = per_core(record);
    let of = |metric: Metric| Series {
        of: metric,
        per_core: per_core && metric == Metric::Throughput,
        blocks: ended.iter().map(|block| block.number).collect(),
        dropped: ended.iter().filter_map(|block| DroppedBlock::of(block)).collect(),
        values: (0..variants).map(|variant| values(metric, variant)).collect(),
    };
    metrics(record).map(of).collect()
}

impl Series {
    /// For each of the blocks, whether it counts.
    pub fn counts(&self) -> Vec<bool> {
        let is_dropped = |number: &u32| self.dropped.iter().any(|dropped| dropped.block == *number);
        self.blocks.iter().map(|number| !is_dropped(number)).collect()
    }

    /// Geometric mean over the blocks that count, and over these variants; `None` where one of them has no value.
    pub fn mean(&self, variants: impl IntoIterator<Item = usize>) -> Option<f64> {
        let of = |variant: usize| {
            let counting = self.values.get(variant)?.iter().zip(self.counts()).filter(|(_, counts)| *counts);
            geometric_mean(counting.map(|(value, _)| *value).collect::<Option<Vec<f64>>>()?)
        };
        geometric_mean(variants.into_iter().map(of).collect::<Option<Vec<f64>>>()?)
    }
}

/// Candidate over baseline in each block that counts, in their order; empty where the comparison may show no number: it is void or
/// without success, waits for its one look, or a block has no value.
pub fn ratios_by_block(all: &[Series], comparison: &Comparison) -> Vec<f64> {
    let series = |metric: Metric| all.iter().find(|series| series.of == metric);
    // Where there may be no ratio of all blocks together there is none of one.
    let judged = series(comparison.metric).filter(|_| comparison.ratio_so_far.is_some());
    let (above, below) = (comparison.candidate, comparison.baseline);
    let (compared, (above, below)) = match judged {
        Some(judged) if judged.per_core => (series(Metric::CpuPerRequest), (below, above)),
        judged => (judged, (above, below)),
    };
    let Some(series) = compared else { return Vec::new() };
    let of = |variant: usize| series.values.get(variant).map(Vec::as_slice).unwrap_or_default();
    let pairs = of(above).iter().zip(of(below)).zip(series.counts());
    pairs.filter(|(_, counts)| *counts).filter_map(|((one, other), _)| Some((*one)? / (*other)?)).collect()
}
