//! How each metric's value is taken from what was measured: one value a trial, one log-ratio a block.
//!
//! Must not: keep histograms. There is one for each block and variant, and a long run has tens of thousands.

use model::Metric;
use record::{Block, Record, Slice, Trial};
use stats::{Latencies, Quantile};

use crate::variant::few_merged;

/// Requests without response that a quantile bears, as a share of those beyond it.
const CENSORED_SHARE_MAX: f64 = 0.1;

/// Where a metric's value comes from.
enum Sampler {
    /// Over slices: one sum over another, and what makes it the metric's unit.
    Ratio { of: fn(&Slice) -> u64, per: fn(&Slice) -> u64, scale: f64 },
    /// Something that a trial has once.
    Trial(fn(&Trial) -> Option<f64>),
    /// A quantile of the response times.
    Response,
}

fn sampler(metric: Metric) -> Sampler {
    match metric {
        Metric::Throughput => Sampler::Ratio {
            of: |slice| slice.counts.successful_in_window,
            per: |slice| slice.counts.window_ns,
            scale: 1e9,
        },
        Metric::CpuPerRequest => {
            Sampler::Ratio { of: Slice::services_cpu_ns, per: |slice| slice.counts.successful, scale: 1e-3 }
        }
        Metric::PeakMemory => Sampler::Trial(|trial| Some(trial.ended.as_ref()?.peak_rss_bytes as f64)),
        Metric::P50 | Metric::P90 | Metric::P99 | Metric::P999 => Sampler::Response,
    }
}

/// The metrics that a record has figures of. In open loop throughput is none of them: it is given.
pub fn metrics(record: &Record) -> impl Iterator<Item = Metric> {
    Metric::of_loop(record.is_open_loop())
}

/// Whether a metric's value is a ratio of sums, so that parts of a trial have it like the whole.
pub(crate) fn is_of_sums(metric: Metric) -> bool {
    matches!(sampler(metric), Sampler::Ratio { .. })
}

/// A metric of which single slices have values: the metric itself, or for what a trial has only once that which shows how fast the
/// machine is: throughput in closed loop, in open loop CPU time per request.
pub(crate) fn of_slices(metric: Metric, record: &Record) -> Metric {
    if matches!(sampler(metric), Sampler::Trial(_)) { pace(record) } else { metric }
}

/// The metric that shows how fast machine and service are.
pub(crate) fn pace(record: &Record) -> Metric {
    if record.is_open_loop() { Metric::CpuPerRequest } else { Metric::Throughput }
}

/// The logarithm of a metric's value over these slices together, in the mean over them for a quantile; `None` where they have none.
pub(crate) fn log_over<'a>(metric: Metric, slices: impl Iterator<Item = &'a Slice>) -> Option<f64> {
    match sampler(metric) {
        Sampler::Ratio { of, per, scale } => {
            let (above, below) =
                slices.fold((0, 0), |(above, below), slice| (above + of(slice), below + per(slice)));
            let value = above as f64 / below as f64 * scale;
            (value.is_finite() && value > 0.0).then(|| value.ln())
        }
        Sampler::Trial(_) => None,
        Sampler::Response => {
            let q = metric.quantile()?;
            let log = |slice: &Slice| {
                let ns = slice.counts.open.as_ref()?.response.quantile(q)?.ns();
                (ns > 0).then(|| (ns as f64).ln())
            };
            let logs = slices.map(log).collect::<Option<Vec<f64>>>()?;
            crate::spread::mean(&logs)
        }
    }
}

/// A trial's value of a metric.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// In the metric's unit, above 0: a zero has no logarithm and is no measurement.
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

    /// A trial's value in the metric's unit; `None` where nothing was measured or nothing succeeded, where too few requests bear a
    /// quantile, and where it is only bounded from below.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        self.sample(metric).filter(|sample| !sample.at_least).map(|sample| sample.value)
    }

    /// The same, lower bounds included.
    pub fn sample(&self, metric: Metric) -> Option<Sample> {
        self.samples[metric as usize]
    }
}

impl Sample {
    fn of(trial: &Trial, response: Option<&Latencies>, metric: Metric) -> Option<Sample> {
        let exact = |value: f64| Sample { value, at_least: false };
        let sample = match sampler(metric) {
            Sampler::Ratio { of, per, scale } => {
                let sum = |of: fn(&Slice) -> u64| trial.measured().map(of).sum::<u64>() as f64;
                exact(sum(of) / sum(per) * scale)
            }
            Sampler::Trial(value) => exact(value(trial)?),
            Sampler::Response => match quantile(response?, metric.quantile()?)? {
                Quantile::Exact(ns) => exact(ns as f64 / 1e3),
                Quantile::AtLeast(ns) => Sample { value: ns as f64 / 1e3, at_least: true },
            },
        };
        (sample.value.is_finite() && sample.value > 0.0).then_some(sample)
    }
}

/// A single request without response moves a quantile by up to one rank, which is nothing beside the chance in it. So where they are few
/// they count as slower than all others, which is what they were to whoever waited; else it is bounded.
fn quantile(response: &Latencies, q: f64) -> Option<Quantile> {
    if !response.resolves(q) {
        return None;
    }
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
}

impl BlockFigures {
    /// Those of every complete block.
    pub fn all(record: &Record) -> Vec<BlockFigures> {
        let variants = record.header.plan.variants.len();
        let of = |block: &Block| BlockFigures {
            number: block.number,
            variants: (0..variants).map(|index| trial(block, index).map(Figures::of)).collect(),
        };
        record.complete_blocks().map(of).collect()
    }

    /// A variant's value, lower bounds included; `None` where it has none.
    pub fn sample(&self, metric: Metric, variant: usize) -> Option<Sample> {
        self.variants.get(variant)?.as_ref()?.sample(metric)
    }

    /// A variant's value, `None` where it has none.
    pub fn value(&self, metric: Metric, variant: usize) -> Option<f64> {
        self.variants.get(variant)?.as_ref()?.value(metric)
    }

    /// Its logarithm.
    pub fn log_value(&self, metric: Metric, variant: usize) -> Option<f64> {
        self.value(metric, variant).map(f64::ln)
    }

    /// ln(candidate / baseline) of the block, `None` where either has no value.
    pub fn log_ratio(&self, metric: Metric, baseline: usize, candidate: usize) -> Option<f64> {
        Some((self.value(metric, candidate)? / self.value(metric, baseline)?).ln())
    }

    /// candidate − baseline of the block in the metric's unit, `None` where either has no value.
    pub fn difference(&self, metric: Metric, baseline: usize, candidate: usize) -> Option<f64> {
        Some(self.value(metric, candidate)? - self.value(metric, baseline)?)
    }
}

pub(crate) fn trial(block: &Block, variant: usize) -> Option<&Trial> {
    block.trials.iter().find(|trial| trial.variant() == variant)
}
