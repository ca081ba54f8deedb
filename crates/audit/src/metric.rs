//! The figures by which variants are compared: one value a trial, one log-ratio a block.

use plan::Metric;
use record::{Block, Trial};
use stats::Direction;

/// Whether more or less of a metric is better.
pub fn direction(metric: Metric) -> Direction {
    match metric {
        Metric::Throughput => Direction::HigherIsBetter,
        Metric::CpuPerRequest => Direction::LowerIsBetter,
    }
}

/// A trial's value: expected responses per second, or CPU-µs of its services per expected response.
///
/// `None` where nothing was measured or nothing succeeded: a zero has no logarithm and is no measurement.
pub fn trial_value(trial: &Trial, metric: Metric) -> Option<f64> {
    let sum = |of: fn(&record::Slice) -> u64| trial.measured().map(of).sum::<u64>() as f64;
    let value = match metric {
        Metric::Throughput => sum(|slice| slice.ok_in_window) / sum(|slice| slice.window_ns) * 1e9,
        Metric::CpuPerRequest => sum(record::Slice::services_cpu_ns) / sum(|slice| slice.ok) / 1e3,
    };
    (value.is_finite() && value > 0.0).then_some(value)
}

/// ln(candidate / baseline) of one block, `None` where either has no value.
pub fn block_log_ratio(block: &Block, metric: Metric, baseline: usize, candidate: usize) -> Option<f64> {
    let value = |variant| {
        let trial = block.trials.iter().find(|trial| trial.variant() == variant)?;
        trial_value(trial, metric)
    };
    Some((value(candidate)? / value(baseline)?).ln())
}
