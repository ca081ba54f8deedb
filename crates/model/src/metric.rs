//! Table of the metrics by which variants are compared, with one row per metric.
//!
//! To add a metric, add a row here and, in `analysis`, the function that computes its value from a trial.
//! This module does not compute values.

use serde::{Deserialize, Serialize};
use stats::Direction;

use crate::quantity::Unit;

/// When requests are sent in measured slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pacing {
    /// Closed loop: each connection sends its next request after the response to the last one.
    Closed,
    /// Open loop at a common rate for all variants.
    Open,
    /// Open loop with a search for the highest rate at which each variant keeps its latency limits.
    Search,
}

impl Pacing {
    /// Whether requests are due at times that do not depend on responses.
    pub fn is_open(self) -> bool {
        match self {
            Pacing::Closed => false,
            Pacing::Open | Pacing::Search => true,
        }
    }
}

/// The kinds of run in which a metric has values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricLoop {
    /// Closed loop only. In open loop the value is given.
    Closed,
    /// Open loop at a common rate only. In closed loop the value follows from the number of connections.
    Open,
    /// Only runs that search for the rate.
    Search,
    /// All kinds of run.
    Either,
}

/// Properties of a metric.
#[derive(Debug)]
pub struct MetricRow {
    /// Name in sentences: `p99 response time`.
    pub title: &'static str,
    /// Column heading: `CPU/request`.
    pub heading: &'static str,
    /// Description: `expected responses per second`.
    pub meaning: &'static str,
    /// Unit of the values.
    pub unit: Unit,
    /// Whether higher or lower values are better.
    pub direction: Direction,
    /// Verdict on a better candidate: `faster`.
    pub better: &'static str,
    /// Verdict on a worse candidate: `slower`.
    pub worse: &'static str,
    /// Word for a greater value: `higher`, `longer`.
    pub more: &'static str,
    /// Word for a smaller value: `lower`, `shorter`.
    pub less: &'static str,
    /// The kinds of run in which the metric has values.
    pub loops: MetricLoop,
    /// The quantile of the response time, 0.99 for p99. `None` if the metric is not a latency.
    pub quantile: Option<f64>,
    /// Whether the metric is computed from the service's processes, not from responses. It is then unknown
    /// for services in a cluster.
    pub of_processes: bool,
    /// Whether reports include the metric by default.
    pub usual: bool,
}

/// Defines the metrics from their names and rows, and the list of all metrics.
macro_rules! metrics {
    ($($(#[doc = $doc:literal])+ $metric:ident = $name:literal: $row:expr;)+) => {
        /// A metric by which variants are compared.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
        )]
        pub enum Metric {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $metric,)+
        }

        impl Metric {
            /// All metrics, in the order of reports.
            pub const ALL: &[Metric] = &[$(Metric::$metric),+];

            /// The name in experiment files.
            pub fn name(self) -> &'static str {
                match self { $(Metric::$metric => $name,)+ }
            }

            /// The properties of the metric.
            pub fn row(self) -> &'static MetricRow {
                match self {
                    $(Metric::$metric => {
                        static ROW: MetricRow = $row;
                        &ROW
                    })+
                }
            }
        }
    };
}

metrics! {
    /// Successful responses per second in closed loop; more is better.
    Throughput = "throughput": MetricRow {
        title: "throughput",
        heading: "throughput",
        meaning: "expected responses per second",
        unit: Unit::PerS,
        direction: Direction::HigherIsBetter,
        better: "faster",
        worse: "slower",
        more: "higher",
        less: "lower",
        loops: MetricLoop::Closed,
        quantile: None,
        of_processes: false,
        usual: true,
    };
    /// CPU time of all of the variant's services per successful response; less is better.
    CpuPerRequest = "cpu_per_request": MetricRow {
        title: "CPU per request",
        heading: "CPU/request",
        meaning: "CPU time of the services per expected response",
        unit: Unit::Us,
        direction: Direction::LowerIsBetter,
        better: "cheaper",
        worse: "more expensive",
        more: "higher",
        less: "lower",
        loops: MetricLoop::Either,
        quantile: None,
        of_processes: true,
        usual: true,
    };
    /// Peak resident memory of all of the variant's processes; less is better.
    PeakMemory = "peak_memory": MetricRow {
        title: "peak memory",
        heading: "peak memory",
        meaning: "peak resident memory of the services",
        unit: Unit::Bytes,
        direction: Direction::LowerIsBetter,
        better: "less memory",
        worse: "more memory",
        more: "higher",
        less: "lower",
        loops: MetricLoop::Either,
        quantile: None,
        of_processes: true,
        usual: true,
    };
    /// The highest request rate at which the variant keeps the limits of `design.slo`; more is better.
    Capacity = "capacity": MetricRow {
        title: "capacity",
        heading: "capacity",
        meaning: "requests per second that it bears within design.slo",
        unit: Unit::PerS,
        direction: Direction::HigherIsBetter,
        better: "holds more",
        worse: "holds less",
        more: "higher",
        less: "lower",
        loops: MetricLoop::Search,
        quantile: None,
        of_processes: false,
        usual: true,
    };
    /// Median response time, from when a request was due, in open loop; less is better.
    P50 = "p50": response_time("p50 response time", "p50", 0.5);
    /// 75th percentile of the response time in open loop; less is better.
    P75 = "p75": unusual(response_time("p75 response time", "p75", 0.75));
    /// 90th percentile of the response time in open loop; less is better.
    P90 = "p90": response_time("p90 response time", "p90", 0.9);
    /// 95th percentile of the response time in open loop; less is better.
    P95 = "p95": unusual(response_time("p95 response time", "p95", 0.95));
    /// 99th percentile of the response time in open loop; less is better.
    P99 = "p99": response_time("p99 response time", "p99", 0.99);
    /// 99.5th percentile of the response time in open loop; less is better.
    P995 = "p99.5": unusual(response_time("p99.5 response time", "p99.5", 0.995));
    /// 99.9th percentile of the response time in open loop; less is better.
    P999 = "p99.9": response_time("p99.9 response time", "p99.9", 0.999);
}

/// Marks a metric as reported only if the plan names it.
const fn unusual(row: MetricRow) -> MetricRow {
    MetricRow {
        usual: false,
        ..row
    }
}

/// Creates the row of a response time quantile.
const fn response_time(title: &'static str, heading: &'static str, quantile: f64) -> MetricRow {
    MetricRow {
        title,
        heading,
        meaning: "response time, from when a request was due",
        unit: Unit::Us,
        direction: Direction::LowerIsBetter,
        better: "faster",
        worse: "slower",
        more: "longer",
        less: "shorter",
        loops: MetricLoop::Open,
        quantile: Some(quantile),
        of_processes: false,
        usual: true,
    }
}

impl Metric {
    /// Returns the metric with this name.
    pub fn named(name: &str) -> Option<Metric> {
        Metric::ALL
            .iter()
            .copied()
            .find(|metric| metric.name() == name)
    }

    /// Iterates over the metrics that are quantiles of the response time.
    pub fn latencies() -> impl Iterator<Item = Metric> {
        Metric::ALL
            .iter()
            .copied()
            .filter(|metric| metric.quantile().is_some())
    }

    /// Iterates over the metrics that have values in runs of this pacing.
    pub fn of(pacing: Pacing) -> impl Iterator<Item = Metric> {
        Metric::ALL
            .iter()
            .copied()
            .filter(move |metric| metric.exists_in(pacing))
    }

    /// Whether the metric has values in runs of this pacing.
    pub fn exists_in(self, pacing: Pacing) -> bool {
        match self.row().loops {
            MetricLoop::Closed => pacing == Pacing::Closed,
            MetricLoop::Open => pacing == Pacing::Open,
            MetricLoop::Search => pacing == Pacing::Search,
            MetricLoop::Either => true,
        }
    }

    /// The quantile of the response time, 0.99 for p99. `None` if the metric is not a latency.
    pub fn quantile(self) -> Option<f64> {
        self.row().quantile
    }

    /// Unit of the values.
    pub fn unit(self) -> Unit {
        self.row().unit
    }

    /// Whether a greater value is better.
    pub fn wants_more(self) -> bool {
        self.row().direction == Direction::HigherIsBetter
    }

    /// Whether the metric is computed from the service's processes. See [`MetricRow::of_processes`].
    pub fn is_of_processes(self) -> bool {
        self.row().of_processes
    }

    /// Number of requests to plan per trial so that the metric is well defined. For a quantile q this is ten
    /// requests beyond it, n = 10 / (1 − q), plus five standard deviations because the number of random
    /// arrivals varies. 0 if any number is enough.
    pub fn requests_wanted(self) -> f64 {
        let least = |q: f64| 10.0 / (1.0 - q);
        self.quantile()
            .map_or(0.0, |q| (least(q) + 5.0 * least(q).sqrt() + 10.0).ceil())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_files_and_known_once() {
        for metric in Metric::ALL {
            assert_eq!(Metric::named(metric.name()), Some(*metric));
            let same = |other: &&Metric| other.row().title == metric.row().title;
            assert_eq!(Metric::ALL.iter().filter(same).count(), 1, "{metric:?}");
        }
        assert!(Metric::of(Pacing::Closed).any(|metric| metric == Metric::Throughput));
        assert!(
            Metric::of(Pacing::Closed)
                .all(|metric| metric != Metric::Capacity && metric.row().quantile.is_none())
        );
        assert_eq!(Metric::latencies().count(), 7);
    }
}
