//! The metrics by which variants are compared: one table of what is known of each.

use serde::{Deserialize, Serialize};

/// A figure by which variants are compared.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Successful responses per second in closed loop; more is better.
    Throughput,
    /// CPU time of all of the variant's services per successful response; less is better.
    CpuPerRequest,
    /// Peak resident memory of all of the variant's processes; less is better.
    PeakMemory,
    /// Median response time, from when a request was due, in open loop; less is better.
    P50,
    /// 90th percentile of the response time in open loop; less is better.
    P90,
    /// 99th percentile of the response time in open loop; less is better.
    P99,
    /// 99.9th percentile of the response time in open loop; less is better.
    #[serde(rename = "p99.9")]
    P999,
}

impl Metric {
    /// The metrics that are quantiles of the response time.
    pub const LATENCIES: [Metric; 4] = [Metric::P50, Metric::P90, Metric::P99, Metric::P999];

    /// Which quantile of the response time it is, 0.99 for p99; `None` where it is no latency.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Metric::Throughput | Metric::CpuPerRequest | Metric::PeakMemory => None,
            Metric::P50 => Some(0.5),
            Metric::P90 => Some(0.9),
            Metric::P99 => Some(0.99),
            Metric::P999 => Some(0.999),
        }
    }

    /// Its name, as the experiment file has it.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Throughput => "throughput",
            Metric::CpuPerRequest => "cpu_per_request",
            Metric::PeakMemory => "peak_memory",
            Metric::P50 => "p50",
            Metric::P90 => "p90",
            Metric::P99 => "p99",
            Metric::P999 => "p99.9",
        }
    }

    /// Requests that a trial has to be planned for, so that it has those that the metric wants: for a quantile q ten
    /// beyond it, n = 10 / (1 − q), and five standard deviations more, for arrivals at random are not always as many.
    /// 0 where any number will do.
    pub fn requests_wanted(self) -> f64 {
        let least = |q: f64| 10.0 / (1.0 - q);
        self.quantile().map_or(0.0, |q| (least(q) + 5.0 * least(q).sqrt() + 10.0).ceil())
    }

    /// Whether it is a figure of the service's processes, and not of its responses: of what runs in a cluster nobody knows it.
    pub fn is_of_processes(self) -> bool {
        matches!(self, Metric::CpuPerRequest | Metric::PeakMemory)
    }
}
