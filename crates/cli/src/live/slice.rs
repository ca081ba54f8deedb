//! A slice in the few figures that are shown of it while a run goes on, and what failed in it. Pure.

use std::collections::BTreeMap;

use record::{Cause, Phase, Slice, SliceKind};
use stats::{Latencies, Quantile};

/// The quantiles that are told of a slice, in per cent.
pub const PERCENT: [f64; 3] = [50.0, 90.0, 99.0];

/// A quantile of the times of a slice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timed {
    /// Which, in per cent.
    pub percent: f64,
    /// Microseconds.
    pub us: f64,
    /// Whether that is a lower bound, because requests got no answer.
    pub at_least: bool,
}

/// What is shown of a slice.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Good responses per second of its window.
    pub rate_per_s: f64,
    /// At each of [`PERCENT`], where that rests on enough requests: response times in open loop, in closed loop service times.
    pub times: [Option<Timed>; PERCENT.len()],
    /// Requests that there were to send.
    pub requests: u64,
    /// Requests among them that did not end in an expected response.
    pub failed: u64,
}

impl Figures {
    /// The figures of a slice.
    pub fn of(slice: &Slice) -> Figures {
        let window_s = slice.counts.window_ns as f64 / 1e9;
        let latencies = slice.counts.open.as_ref().map_or(&slice.counts.latency, |open| &open.response);
        Figures {
            rate_per_s: if window_s > 0.0 {
                slice.counts.successful_in_window as f64 / window_s
            } else {
                0.0
            },
            times: PERCENT.map(|percent| timed(latencies, percent)),
            requests: slice.counts.due(),
            failed: slice.counts.failed(),
        }
    }

    /// The time at this quantile in microseconds; `None` where the slice has too few requests for it.
    pub fn us(&self, percent: f64) -> Option<f64> {
        self.times.iter().flatten().find(|timed| timed.percent == percent).map(|timed| timed.us)
    }
}

fn timed(latencies: &Latencies, percent: f64) -> Option<Timed> {
    if !latencies.resolves(percent / 100.0) {
        return None;
    }
    let (ns, at_least) = match latencies.quantile(percent / 100.0)? {
        Quantile::Exact(ns) => (ns, false),
        Quantile::AtLeast(ns) => (ns, true),
    };
    Some(Timed { percent, us: ns as f64 / 1e3, at_least })
}

/// Requests that failed so far in measured slices, and in which ways.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Failures {
    /// Requests that there were to send.
    pub requests: u64,
    /// Those among them that did not end in an expected response.
    pub failed: u64,
    ways: BTreeMap<String, u64>,
}

impl Failures {
    /// Counts one more slice; warm-ups are no part of any figure.
    pub fn count(&mut self, slice: &Slice) {
        if slice.kind != SliceKind::Measured {
            return;
        }
        self.requests += slice.counts.due();
        self.failed += slice.counts.failed();
        let unsent = slice.counts.open.as_ref().map_or(0, |open| open.unsent);
        self.add("no answer in time", slice.counts.timed_out + slice.counts.unfinished + unsent);
        for failure in &slice.counts.contract_failures {
            self.add(&format!("{} {}", failure.kind, failure.example), failure.count);
        }
        // A request that was given up is counted above.
        for error in slice
            .counts
            .errors
            .iter()
            .filter(|error| error.cause != Cause::Timeout || error.phase == Phase::Connect)
        {
            self.add(&format!("{} {}", error.phase, error.cause), error.count);
        }
    }

    /// The most frequent way, and how often.
    pub fn most_frequent(&self) -> Option<(&str, u64)> {
        let most = self.ways.iter().max_by_key(|(_, count)| **count)?;
        Some((most.0.as_str(), *most.1))
    }

    fn add(&mut self, way: &str, count: u64) {
        if count > 0 {
            *self.ways.entry(way.to_owned()).or_default() += count;
        }
    }
}
