//! What captures tell of a run, as a value that is kept beside the record and that every report is drawn from.
//!
//! It has no method that computes: how it comes about is said in the modules that make it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Frame, Kind, Tree};

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

/// Everything that the captures of a run tell. Times are microseconds of CPU per request that was answered, unless said otherwise.
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
    /// Requests answered while profiles of CPU were taken, all rounds.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerShare {
    /// Number of the round.
    pub round: u32,
    /// The process.
    pub pid: u32,
    /// Requests that it says it answered; `None` where nothing told.
    pub requests: Option<u64>,
    /// CPU time of all its threads in nanoseconds.
    pub cpu_ns: u64,
    /// Whether there is a profile of it.
    pub profiled: bool,
}

/// Where requests wait, of a service in a variant; means over workers and rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    /// Share of time in which the event loop was busy, 0 to 1, of the busiest worker.
    pub loop_utilisation: f64,
    /// How late the event loop's timers were, 99th percentile, in milliseconds.
    pub loop_delay_p99_ms: f64,
    /// Time that a small task waited for a thread of libuv's pool, mean, in microseconds; `None` where not asked.
    pub pool_wait_us: Option<f64>,
    /// Time in garbage collection's pauses, share of the window, 0 to 1.
    pub gc_share: f64,
    /// Time that its threads were ready to run and had no processor, share of the time that they ran.
    pub run_delay_share: f64,
}

/// One variant against another: where the difference is.
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

/// Something that makes an explanation doubtful, or a part of it that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Doubt {
    /// Stable name, such as `agent_missing`.
    pub check: String,
    /// What was seen, with its figures.
    pub evidence: String,
    /// What it means and what to do.
    pub remedy: String,
}
