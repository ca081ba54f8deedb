//! Table of the metrics by which variants are compared, with one row per metric: its words, its unit, and how
//! its value is taken from a trial.
//!
//! To add a metric, add a row here. This module does not compare values.

use serde::{Deserialize, Serialize};
use stats::Direction;

use crate::quantity::Unit;
use crate::{Counts, Slice, TrialEnded};

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

/// Source of a metric's value.
#[derive(Debug)]
pub enum MetricSource {
    /// A ratio of two sums over slices, scaled to the metric's unit.
    Ratio {
        /// Numerator and denominator of a slice.
        parts: fn(&Slice) -> (u64, u64),
        /// Factor for the metric's unit.
        scale: f64,
    },
    /// A value that a trial has once.
    Trial(fn(&TrialEnded) -> f64),
    /// A quantile of the response times in open loop, 0.99 for p99.
    Response(f64),
    /// Computed from all blocks together, by a search for the rate.
    Search,
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
    /// An example of a limit: `> 1000/s`.
    pub limit: &'static str,
    /// How the value is taken from a trial.
    pub source: MetricSource,
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
        limit: "> 1000/s",
        source: MetricSource::Ratio {
            parts: throughput,
            scale: 1e9,
        },
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
        limit: "< 900us",
        source: MetricSource::Ratio {
            parts: |slice| (slice.services_cpu_ns(), slice.counts.successful),
            scale: 1e-3,
        },
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
        limit: "< 200MB",
        source: MetricSource::Trial(|ended| ended.peak_rss_bytes as f64),
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
        limit: "> 2000/s",
        source: MetricSource::Search,
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

/// Number of successful responses and the nanoseconds they are divided by to get throughput.
///
/// At its limit a service is busy for the whole window, and throughput is the responses in the window over
/// its length. A service that waits (for a timer, a disk, another machine) is not: the number of responses
/// cut off by the end of the window depends on how response times vary. In that case each connection is a
/// renewal process that is stopped at its first response after the end of the window. By Wald's identity, the
/// responses of all windows, including drains, over the time in which connections had a request in flight are
/// an estimate without that bias, for any distribution of the response times. The first request of each
/// connection is left out if others follow, because it finds an empty queue and later ones do not.
pub fn throughput(slice: &Slice) -> (u64, u64) {
    let Counts {
        successful,
        first_successful,
        in_flight_ns,
        first_in_flight_ns,
        ..
    } = slice.counts;
    let connections = u64::from(slice.connections);
    let later = successful.saturating_sub(first_successful);
    match slice.waits {
        true if later > 0 => (
            later * connections,
            in_flight_ns.saturating_sub(first_in_flight_ns),
        ),
        true => (successful * connections, in_flight_ns),
        false => (slice.counts.successful_in_window, slice.counts.window_ns),
    }
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
        limit: "< 50ms",
        source: MetricSource::Response(quantile),
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
        match self.row().source {
            MetricSource::Response(quantile) => Some(quantile),
            MetricSource::Ratio { .. } | MetricSource::Trial(_) | MetricSource::Search => None,
        }
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
                .all(|metric| metric != Metric::Capacity && metric.quantile().is_none())
        );
        assert_eq!(Metric::latencies().count(), 7);
    }
}
