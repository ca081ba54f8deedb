//! The metrics by which variants are compared: one table, a row for each, of all that is known of them.
//!
//! A new metric is a row here, and the function that takes its value from a trial in `analysis`. Must not: compute a value.

use serde::{Deserialize, Serialize};
use stats::Direction;

use crate::quantity::Unit;

/// When requests are sent, in the slices that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pacing {
    /// Closed loop: each connection sends its next request when the last one is done.
    Closed,
    /// Open loop, at a rate common to all variants.
    Open,
    /// Open loop, at the rate at which each variant just keeps the limits that users bear, which is searched for.
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

/// In which runs a metric has values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loop {
    /// In closed loop only: in open loop it is given.
    Closed,
    /// In open loop at a common rate only: in closed loop it follows from the number of connections.
    Open,
    /// Only where the rate is searched for.
    Search,
    /// In all.
    Either,
}

/// All that is known of a metric.
#[derive(Debug)]
pub struct MetricRow {
    /// In sentences: `p99 response time`.
    pub title: &'static str,
    /// Above a column: `CPU/request`.
    pub heading: &'static str,
    /// What it measures: `expected responses per second`.
    pub meaning: &'static str,
    /// What it is counted in.
    pub unit: Unit,
    /// Whether more or less of it is better.
    pub direction: Direction,
    /// The verdict on a candidate that is better: `faster`.
    pub better: &'static str,
    /// The verdict on one that is worse: `slower`.
    pub worse: &'static str,
    /// Where its value is a greater number: `higher`, `longer`.
    pub more: &'static str,
    /// Where it is a smaller one: `lower`, `shorter`.
    pub less: &'static str,
    /// The loops in which it has values.
    pub loops: Loop,
    /// Which quantile of the response time it is, 0.99 for p99; `None` where it is no latency.
    pub quantile: Option<f64>,
    /// Whether it is a figure of the service's processes, and not of its responses: of what runs in a cluster nobody knows it.
    pub of_processes: bool,
    /// Whether reports have it without being asked.
    pub usual: bool,
}

/// Makes the metrics, each with its name and its row, and the list of them all.
macro_rules! metrics {
    ($($(#[doc = $doc:literal])+ $metric:ident = $name:literal: $row:expr;)+) => {
        /// A figure by which variants are compared.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
        )]
        pub enum Metric {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $metric,)+
        }

        impl Metric {
            /// All metrics, in the order in which reports have them.
            pub const ALL: &[Metric] = &[$(Metric::$metric),+];

            /// Its name, as the experiment file has it.
            pub fn name(self) -> &'static str {
                match self { $(Metric::$metric => $name,)+ }
            }

            /// All that is known of it.
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
        loops: Loop::Closed,
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
        loops: Loop::Either,
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
        loops: Loop::Either,
        quantile: None,
        of_processes: true,
        usual: true,
    };
    /// The highest rate of requests at which the variant keeps the limits of `design.slo`; more is better.
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
        loops: Loop::Search,
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

/// The row of a metric that is reported only if the plan names it.
const fn unusual(row: MetricRow) -> MetricRow {
    MetricRow { usual: false, ..row }
}

/// The row of a quantile of the response time.
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
        loops: Loop::Open,
        quantile: Some(quantile),
        of_processes: false,
        usual: true,
    }
}

impl Metric {
    /// The metric of that name.
    pub fn named(name: &str) -> Option<Metric> {
        Metric::ALL.iter().copied().find(|metric| metric.name() == name)
    }

    /// The metrics that are quantiles of the response time.
    pub fn latencies() -> impl Iterator<Item = Metric> {
        Metric::ALL.iter().copied().filter(|metric| metric.quantile().is_some())
    }

    /// The metrics that have values in runs of this pacing.
    pub fn of(pacing: Pacing) -> impl Iterator<Item = Metric> {
        Metric::ALL.iter().copied().filter(move |metric| metric.exists_in(pacing))
    }

    /// Whether it has values in runs of this pacing.
    pub fn exists_in(self, pacing: Pacing) -> bool {
        match self.row().loops {
            Loop::Closed => pacing == Pacing::Closed,
            Loop::Open => pacing == Pacing::Open,
            Loop::Search => pacing == Pacing::Search,
            Loop::Either => true,
        }
    }

    /// Which quantile of the response time it is, 0.99 for p99; `None` where it is no latency.
    pub fn quantile(self) -> Option<f64> {
        self.row().quantile
    }

    /// What it is counted in.
    pub fn unit(self) -> Unit {
        self.row().unit
    }

    /// Whether more of it is better.
    pub fn wants_more(self) -> bool {
        self.row().direction == Direction::HigherIsBetter
    }

    /// Whether it is a figure of the service's processes; see [`MetricRow::of_processes`].
    pub fn is_of_processes(self) -> bool {
        self.row().of_processes
    }

    /// Requests that a trial has to be planned for, so that it has those that the metric wants: for a quantile q ten
    /// beyond it, n = 10 / (1 − q), and five standard deviations more, for arrivals at random are not always as many.
    /// 0 where any number will do.
    pub fn requests_wanted(self) -> f64 {
        let least = |q: f64| 10.0 / (1.0 - q);
        self.quantile().map_or(0.0, |q| (least(q) + 5.0 * least(q).sqrt() + 10.0).ceil())
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
