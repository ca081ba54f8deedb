//! The figures by which variants are compared: one value a trial, one log-ratio a block.

use plan::Metric;
use record::{Block, Record, Trial};
use stats::{Direction, Quantile};

use crate::variant::few_merged;

mod quantiles;

use quantiles::Quantiles;

/// The metrics of an experiment in closed loop.
const CLOSED: [Metric; 3] = [Metric::Throughput, Metric::CpuPerRequest, Metric::PeakMemory];
/// Those of one in open loop. Throughput is none of them: it is given.
const OPEN: [Metric; 6] =
    [Metric::CpuPerRequest, Metric::PeakMemory, Metric::P50, Metric::P90, Metric::P99, Metric::P999];

/// The metrics that a record has figures of.
pub fn metrics(record: &Record) -> &'static [Metric] {
    if record.is_open_loop() { &OPEN } else { &CLOSED }
}

/// Whether more or less of a metric is better.
pub fn direction(metric: Metric) -> Direction {
    match metric {
        Metric::Throughput => Direction::HigherIsBetter,
        _ => Direction::LowerIsBetter,
    }
}

/// What a trial's measured slices amount to. Made once, for it merges histograms.
#[derive(Debug)]
pub(crate) struct Figures {
    throughput_per_s: f64,
    cpu_us_per_request: f64,
    peak_rss_bytes: Option<u64>,
    /// Of the response times; `None` in closed loop.
    response: Option<Quantiles>,
}

impl Figures {
    pub fn of(trial: &Trial) -> Figures {
        let sum = |of: fn(&record::Slice) -> u64| trial.measured().map(of).sum::<u64>() as f64;
        let mut opens = trial.measured().filter_map(|slice| slice.counts.open.as_ref()).peekable();
        let response =
            opens.peek().is_some().then(|| Quantiles::of(&few_merged(opens.map(|open| &open.response))));
        Figures {
            throughput_per_s: sum(|slice| slice.counts.successful_in_window)
                / sum(|slice| slice.counts.window_ns)
                * 1e9,
            cpu_us_per_request: sum(record::Slice::services_cpu_ns)
                / sum(|slice| slice.counts.successful)
                / 1e3,
            peak_rss_bytes: trial.ended.as_ref().map(|ended| ended.peak_rss_bytes),
            response,
        }
    }

    /// A trial's value: expected responses per second, CPU-µs of its services per expected response, bytes of
    /// peak memory, or µs of response time.
    ///
    /// `None` where nothing was measured or nothing succeeded: a zero has no logarithm and is no measurement. A quantile
    /// that too few requests bear, or that is only bounded from below, is none either.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        let value = match metric {
            Metric::Throughput => self.throughput_per_s,
            Metric::CpuPerRequest => self.cpu_us_per_request,
            Metric::PeakMemory => self.peak_rss_bytes? as f64,
            Metric::P50 | Metric::P90 | Metric::P99 | Metric::P999 => match self.quantile(metric)? {
                Quantile::Exact(ns) => ns as f64 / 1e3,
                Quantile::AtLeast(_) => return None,
            },
        };
        (value.is_finite() && value > 0.0).then_some(value)
    }

    /// A quantile of the response time, if enough requests bear it.
    pub fn quantile(&self, metric: Metric) -> Option<Quantile> {
        self.response.as_ref()?.get(metric)
    }

    /// Requests with a response time, those that were given up included; 0 in closed loop.
    pub fn response_times(&self) -> u64 {
        self.response.as_ref().map_or(0, |response| response.requests)
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

    /// The logarithm of a variant's value, `None` where it has none.
    pub fn log_value(&self, metric: Metric, variant: usize) -> Option<f64> {
        Some(self.variants.get(variant)?.as_ref()?.value(metric)?.ln())
    }

    /// ln(candidate / baseline) of the block, `None` where either has no value.
    pub fn log_ratio(&self, metric: Metric, baseline: usize, candidate: usize) -> Option<f64> {
        let value = |variant: usize| self.variants.get(variant)?.as_ref()?.value(metric);
        Some((value(candidate)? / value(baseline)?).ln())
    }

    /// candidate − baseline of the block in the metric's unit, `None` where either has no value.
    pub fn difference(&self, metric: Metric, baseline: usize, candidate: usize) -> Option<f64> {
        let value = |variant: usize| self.variants.get(variant)?.as_ref()?.value(metric);
        Some(value(candidate)? - value(baseline)?)
    }
}

pub(crate) fn trial(block: &Block, variant: usize) -> Option<&Trial> {
    block.trials.iter().find(|trial| trial.variant() == variant)
}
