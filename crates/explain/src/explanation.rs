//! The explanation of a run, as a value that is stored beside the record and used by every report, and
//! intervals over capture rounds, the only statistics it needs.
//!
//! **Method.** A figure has one value per capture round. A round is a fresh start of the variant, and so one
//! observation, regardless of the number of samples. The estimate is the mean over the rounds, with Student's
//! interval at 95 %. Comparisons are paired by round: the interval is that of the differences within rounds,
//! so effects common to a round cancel out. With one round there is no interval: both ends are the estimate,
//! and a doubt says so. These intervals are not corrected for many functions. They help to read a table and
//! give no verdict.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use stats::MeanInterval;

use crate::doubt::Doubt;
use crate::{CodeKind, Frame, Tree};

/// Confidence level of every interval here.
const LEVEL: f64 = 0.95;

/// An estimate with its interval. Both ends equal the estimate if there is only one capture.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DifferenceInterval")]
pub struct CostInterval {
    /// The estimate.
    pub value: f64,
    /// Lower end, at 95 %.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The explanation from a run's captures. Times are microseconds of CPU per successful request, unless stated
/// otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// Number of captures of each variant.
    pub rounds: u32,
    /// One for each variant and service that was profiled. The entry comes first.
    pub subjects: Vec<ExplainedService>,
    /// One for each comparison of the experiment.
    pub comparisons: Vec<CostComparison>,
    /// Doubts and missing data, as shown by every report.
    pub doubts: Vec<Doubt>,
}

/// One service in one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedService {
    /// The variant's name.
    pub variant: String,
    /// The service's name.
    pub service: String,
    /// Successful requests during CPU profiles, all rounds.
    pub requests: u64,
    /// CPU time of all its processes and threads by the kernel's accounting, without a profiler.
    pub cpu_us: CostInterval,
    /// Overhead of the profiler.
    pub tax: Tax,
    /// By kind of code, most expensive first. The sum is the observed time.
    pub kinds: Vec<Cost<CodeKind>>,
    /// By package, most expensive first. Without the service's own code and Node.js itself.
    pub packages: Vec<Cost<String>>,
    /// By function (self time), most expensive first.
    pub functions: Vec<FunctionCost>,
    /// Distribution of the requests over its processes.
    pub workers: Vec<WorkerShare>,
    /// Where requests wait, as far as the counters show.
    pub waiting: Option<WaitingTimes>,
    /// The merged tree of workers and rounds, in µs per request.
    pub tree: Tree,
    /// Bytes per request that were allocated and still live at the end, from heap sampling. `None` if not
    /// sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap: Option<Tree>,
}

/// The overhead of a profiler, as ratios within the same trial with and without it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tax {
    /// CPU time per request with CPU profiling ÷ without.
    pub cpu_ratio: CostInterval,
    /// The same for requests per second.
    pub throughput_ratio: CostInterval,
}

/// The cost of an item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CostOf{T}")]
pub struct Cost<T> {
    /// The item.
    pub what: T,
    /// Its cost.
    pub us: CostInterval,
}

/// Cost of a function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionCost {
    /// The function.
    pub frame: Frame,
    /// Self time.
    pub self_us: CostInterval,
    /// Time including callees. Recursion is counted once.
    pub total_us: f64,
    /// Smallest and largest self time among workers, each per own request. Equal if there is one worker.
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
    /// Self time.
    pub us: f64,
}

/// A process of a service, and its share of the work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerShare {
    /// Number of the round.
    pub round: u32,
    /// The process.
    pub pid: u32,
    /// Requests counted by the process itself. `None` if unknown.
    pub requests: Option<u64>,
    /// CPU time of all its threads in nanoseconds.
    pub cpu_ns: u64,
    /// Whether it has a profile.
    pub profiled: bool,
}

/// Where requests of a service wait in a variant. Values are of its busiest worker unless stated otherwise,
/// as means over rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingTimes {
    /// Share of the window in which the event loop was busy, 0 to 1.
    pub loop_utilisation: f64,
    /// Delay of the event loop's timers, 99th percentile, in milliseconds.
    pub loop_delay_p99_ms: f64,
    /// Time that a small task waited for a thread of libuv's pool, mean over all workers, in microseconds.
    /// `None` if not measured.
    pub pool_wait_us: Option<f64>,
    /// Time in garbage collection pauses, share of the window, 0 to 1.
    pub gc_share: f64,
    /// Time that its threads were ready to run without a processor, as a share of their run time.
    pub run_delay_share: f64,
}

/// One variant compared with another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ExplainedComparison")]
pub struct CostComparison {
    /// The baseline's name.
    pub baseline: String,
    /// The variant's name.
    pub variant: String,
    /// Difference of CPU time per request of all services together, from trials without a profiler, variant −
    /// baseline.
    pub measured_us: CostInterval,
    /// The same difference according to the profiles.
    pub profiled_us: CostInterval,
    /// `profiled_us ÷ measured_us`, if the measured interval excludes 0.
    pub explained_share: Option<f64>,
    /// By kind of code, largest change first.
    pub kinds: Vec<CostChange<CodeKind>>,
    /// By package, largest change first.
    pub packages: Vec<CostChange<String>>,
    /// By function, largest change first.
    pub functions: Vec<CostChange<Frame>>,
    /// Change of bytes per request by allocating function, largest first. Empty if the heap was not sampled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heap: Vec<CostChange<Frame>>,
    /// The reconciliation in one line, such as "profiles explain 91 % of +84 µs/request".
    pub reconciliation: String,
    /// The cause in plain language, for clear cases only. None below 80 % explained.
    pub story: Option<String>,
    /// Where requests wait, in words, if CPU time is equal and the event loop is not saturated.
    pub waiting: Option<String>,
}

/// The cost of an item in two variants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ChangeOf{T}")]
pub struct CostChange<T> {
    /// The item.
    pub what: T,
    /// The item in the baseline, if it had another name there: a function's old file, line or version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<T>,
    /// Cost in the baseline, per request.
    pub baseline: f64,
    /// Cost in the variant.
    pub variant: f64,
    /// Variant − baseline.
    pub difference: CostInterval,
}

impl ExplainedService {
    /// CPU time of these kinds of code per request, and its share of the total.
    pub fn share_of(&self, kinds: impl Fn(CodeKind) -> bool) -> (f64, f64) {
        let sum = |kinds: &dyn Fn(CodeKind) -> bool| {
            let costs = self
                .kinds
                .iter()
                .filter(|cost| cost.what != CodeKind::Waiting && kinds(cost.what));
            costs.map(|cost| cost.us.value).sum::<f64>()
        };
        let us = sum(&kinds);
        (us, us / sum(&|_| true))
    }
}

impl CostInterval {
    /// A value without an interval.
    pub const fn exactly(value: f64) -> CostInterval {
        CostInterval {
            value,
            low: value,
            high: value,
        }
    }

    /// The mean of one value per round, with its interval. Zero without values. Ignores values that are not
    /// finite.
    pub fn over(values: impl IntoIterator<Item = f64>) -> CostInterval {
        let values: Vec<f64> = values
            .into_iter()
            .filter(|value| value.is_finite())
            .collect();
        let rounds = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let interval = stats::plain_t(rounds, LEVEL).and_then(|t| MeanInterval::of(&values, t));
        match interval {
            Some(MeanInterval { value, low, high }) => CostInterval { value, low, high },
            // One round, or rounds with equal values.
            None => CostInterval::exactly(mean(values).unwrap_or(0.0)),
        }
    }

    /// Whether all its values are finite.
    pub fn is_finite(&self) -> bool {
        [self.value, self.low, self.high]
            .into_iter()
            .all(f64::is_finite)
    }

    /// Whether zero lies outside of it.
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// The mean of numbers. `None` if there are none, or if it is not finite.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    stats::mean(values).filter(|mean| mean.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_round_none_and_no_numbers_have_no_interval() {
        assert_eq!(CostInterval::over([7.0]), CostInterval::exactly(7.0));
        assert_eq!(
            CostInterval::over([7.0, f64::NAN]),
            CostInterval::exactly(7.0)
        );
        assert_eq!(
            CostInterval::over([f64::INFINITY]),
            CostInterval::exactly(0.0)
        );
        assert_eq!(CostInterval::over([]), CostInterval::exactly(0.0));
        assert_eq!(
            CostInterval::over([3.0, 3.0, 3.0]),
            CostInterval::exactly(3.0)
        );
    }
}
