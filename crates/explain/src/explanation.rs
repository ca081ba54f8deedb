//! What captures tell of a run, as a value that is kept beside the record and that every report is drawn from; and intervals over capture
//! rounds, the one piece of statistics that it needs.
//!
//! **Method.** A figure has one value in each capture round: a fresh start of the variant, which makes a round one observation however
//! many samples a profile has. The estimate is the mean over the rounds, its interval the one of Student at 95 %. What is
//! compared is paired by round: the difference is taken within each round, and the interval is that of the differences, so that what a
//! round's variants have in common falls out. With one round there is no interval: both ends are the estimate, and a doubt says so.
//! These intervals are looked at once and for many functions: they help to read a table and give no verdict.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use stats::MeanInterval;

use crate::doubt::Doubt;
use crate::{Frame, Kind, Tree};

/// Confidence of every interval here.
const LEVEL: f64 = 0.95;

/// An estimate with its interval. Both ends are the estimate where one capture is all there is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DifferenceInterval")]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Lower end, at 95 %.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Everything that the captures of a run tell. Times are microseconds of CPU per successful request, unless said otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// Format of this value.
    pub version: u32,
    /// How often each variant was captured.
    pub rounds: u32,
    /// One for each variant and service that was profiled; the entry's first.
    pub subjects: Vec<Subject>,
    /// One for each comparison of the experiment.
    pub comparisons: Vec<Comparison>,
    /// What makes it doubtful or is missing, as values that every report shows.
    pub doubts: Vec<Doubt>,
}

/// One service in one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Subject {
    /// The variant's name.
    pub variant: String,
    /// The service's name.
    pub service: String,
    /// Successful requests while profiles of CPU were taken, all rounds.
    pub requests: u64,
    /// CPU time of all its processes and threads by the kernel's accounting, without a profiler.
    pub cpu_us: Interval,
    /// What the profiler cost.
    pub tax: Tax,
    /// By whose code it is, most expensive first. Sums up to what was seen.
    pub kinds: Vec<Cost<Kind>>,
    /// By package, most expensive first. The service's own code and Node.js itself are not among them.
    pub packages: Vec<Cost<String>>,
    /// By function (self time), most expensive first.
    pub functions: Vec<Row>,
    /// How the requests were spread over its processes.
    pub workers: Vec<WorkerShare>,
    /// Where requests wait, as far as the counters tell.
    pub waiting: Option<Waiting>,
    /// Workers and rounds merged; values are µs per request.
    pub tree: Tree,
    /// Bytes allocated and still alive at the end per request, from the heap's sampling; `None` where it was not taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap: Option<Tree>,
}

/// What a profiler cost, as ratios of the same trial with it and without it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tax {
    /// CPU time per request with the profile of CPU being taken ÷ without.
    pub cpu_ratio: Interval,
    /// The same of requests per second.
    pub throughput_ratio: Interval,
}

/// Cost of something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CostOf{T}")]
pub struct Cost<T> {
    /// What costs.
    pub what: T,
    /// How much.
    pub us: Interval,
}

/// Cost of a function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// The function.
    pub frame: Frame,
    /// Time in it itself.
    pub self_us: Interval,
    /// Time in it and in what it calls, counted once where it calls itself.
    pub total_us: f64,
    /// Smallest and largest self time among workers, each per request of its own; equal where there is one.
    pub workers_us: (f64, f64),
    /// Its most expensive lines, at most five.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LineCost>,
}

/// Cost of a line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LineCost {
    /// The line, from 1.
    pub line: u32,
    /// Time in it itself.
    pub us: f64,
}

/// A process of a service, and its part of the work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerShare {
    /// Number of the round.
    pub round: u32,
    /// The process.
    pub pid: u32,
    /// Requests that it counted itself; `None` where nothing told.
    pub requests: Option<u64>,
    /// CPU time of all its threads in nanoseconds.
    pub cpu_ns: u64,
    /// Whether there is a profile of it.
    pub profiled: bool,
}

/// Where requests wait, of a service in a variant: of its busiest worker where nothing else is said; means over rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    /// Share of the window in which the event loop was busy, 0 to 1.
    pub loop_utilisation: f64,
    /// How late the event loop's timers were, 99th percentile, in milliseconds.
    pub loop_delay_p99_ms: f64,
    /// Time that a small task waited for a thread of libuv's pool, mean over all workers, in microseconds; `None` where not asked.
    pub pool_wait_us: Option<f64>,
    /// Time in garbage collection's pauses, share of the window, 0 to 1.
    pub gc_share: f64,
    /// Time that all its threads were ready to run and had no processor, share of the time that they ran.
    pub run_delay_share: f64,
}

/// One variant vs another: where the difference is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ExplainedComparison")]
pub struct Comparison {
    /// The baseline's name.
    pub baseline: String,
    /// The variant's name.
    pub variant: String,
    /// Difference of CPU time per request of all services together, from trials without any profiler, variant − baseline.
    pub measured_us: Interval,
    /// The same difference as the profiles see it.
    pub profiled_us: Interval,
    /// `profiled_us ÷ measured_us`, where the measured interval excludes 0.
    pub explained_share: Option<f64>,
    /// By whose code it is, largest change first.
    pub kinds: Vec<Change<Kind>>,
    /// By package, largest change first.
    pub packages: Vec<Change<String>>,
    /// By function, largest change first.
    pub functions: Vec<Change<Frame>>,
    /// Change of bytes per request by function that allocates, largest first; empty where the heap was not sampled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heap: Vec<Change<Frame>>,
    /// The reconciliation in one line, such as "profiles explain 91 % of +84 µs/request".
    pub reconciliation: String,
    /// The cause in plain language, for clear cases only; none below 80 % explained.
    pub story: Option<String>,
    /// Where requests wait, in words, where CPU time is equal and the event loop not full.
    pub waiting: Option<String>,
}

/// Cost of something in two variants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ChangeOf{T}")]
pub struct Change<T> {
    /// What costs.
    pub what: T,
    /// What it was in the baseline, if it was called otherwise there: a function's old file, line or version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<T>,
    /// In the baseline, per request.
    pub baseline: f64,
    /// In the variant.
    pub variant: f64,
    /// Variant − baseline.
    pub difference: Interval,
}

impl Subject {
    /// CPU time of these kinds of code per request, and its share of all.
    pub fn share_of(&self, kinds: impl Fn(Kind) -> bool) -> (f64, f64) {
        let sum = |kinds: &dyn Fn(Kind) -> bool| {
            let costs = self.kinds.iter().filter(|cost| cost.what != Kind::Waiting && kinds(cost.what));
            costs.map(|cost| cost.us.value).sum::<f64>()
        };
        let us = sum(&kinds);
        (us, us / sum(&|_| true))
    }
}

impl Interval {
    /// A value without an interval.
    pub const fn exactly(value: f64) -> Interval {
        Interval { value, low: value, high: value }
    }

    /// The mean of one value a round with its interval; zero of none. Values that are no finite numbers count for nothing.
    pub fn over(values: impl IntoIterator<Item = f64>) -> Interval {
        let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        let rounds = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let interval = stats::plain_t(rounds, LEVEL).and_then(|t| MeanInterval::of(&values, t));
        match interval {
            Some(MeanInterval { value, low, high }) => Interval { value, low, high },
            // One round, or rounds that are all alike.
            None => Interval::exactly(mean(values).unwrap_or(0.0)),
        }
    }

    /// Whether it is made of numbers.
    pub fn is_finite(&self) -> bool {
        [self.value, self.low, self.high].into_iter().all(f64::is_finite)
    }

    /// Whether zero lies outside of it.
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// The mean of numbers; `None` where there are none, or where it is no number.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    stats::mean(values).filter(|mean| mean.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_round_none_and_no_numbers_have_no_interval() {
        assert_eq!(Interval::over([7.0]), Interval::exactly(7.0));
        assert_eq!(Interval::over([7.0, f64::NAN]), Interval::exactly(7.0));
        assert_eq!(Interval::over([f64::INFINITY]), Interval::exactly(0.0));
        assert_eq!(Interval::over([]), Interval::exactly(0.0));
        assert_eq!(Interval::over([3.0, 3.0, 3.0]), Interval::exactly(3.0));
    }
}
