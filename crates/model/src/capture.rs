//! Captures that explain a difference. They are taken in separate trials, never in measured ones.
//!
//! Profiles are files in the record's folder `profiles/`. The types here store their paths and the
//! profiled processes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of data captured in a window of load.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CaptureKind {
    /// Only CPU time by thread. The baseline for all other kinds.
    Plain,
    /// Counters of Node.js: event loop, pauses, thread pool, requests by worker.
    Counters,
    /// JavaScript stacks from the profiler of V8.
    Cpu,
    /// Stacks of compiled code and of the kernel, sampled by the kernel.
    Native,
    /// Allocations that are still live, sampled by V8.
    Heap,
}

/// One window of load in which data was captured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Capture {
    /// Number of the round, from 1. In each round every explained variant is captured once, in an order drawn
    /// from the seed.
    pub round: u32,
    /// Index of the variant in the plan.
    pub variant: usize,
    /// Kind of the captured data.
    pub kind: CaptureKind,
    /// Start of the window, in nanoseconds of `CLOCK_MONOTONIC`.
    pub start_ns: u64,
    /// End of the window, in nanoseconds of `CLOCK_MONOTONIC`.
    pub end_ns: u64,
    /// Good responses in the window.
    pub requests: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Services of the variant, in start order.
    pub services: Vec<CapturedService>,
}

/// A service in a capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapturedService {
    /// Name of the service.
    pub service: String,
    /// Working directory of the service. Paths of source files are relative to this directory.
    pub directory: String,
    /// CPU time of all processes in the window, in nanoseconds.
    pub cpu_ns: u64,
    /// Processes of the service, parents first.
    pub processes: Vec<CapturedProcess>,
    /// Data that could not be captured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
}

/// Data that a capture could not get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missing {
    /// Kind of the missing data.
    pub what: Absence,
    /// The reason, as text with figures.
    pub why: String,
}

/// Kind of data that a capture can lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Absence {
    /// A Node.js process has no agent.
    Agent,
    /// No JavaScript stacks, because the service does not run Node.js.
    NotNode,
    /// A process or its agent ended in the window.
    Gone,
    /// No stacks of compiled code and of the kernel, because the kernel refuses them.
    NativeStacks,
    /// Any other kind.
    #[serde(other)]
    Other,
}

impl Missing {
    /// Creates an entry with its reason.
    pub fn new(what: Absence, why: impl Into<String>) -> Missing {
        Missing {
            what,
            why: why.into(),
        }
    }
}

/// A process of a service in a capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapturedProcess {
    /// Process ID.
    pub pid: u32,
    /// Process ID of the parent.
    pub parent: u32,
    /// Command line, cut at 512 bytes.
    pub command: String,
    /// Threads of the process and their CPU use in the window.
    pub threads: Vec<ThreadUse>,
    /// Reports of the agents in the main thread and in each worker thread. Empty without agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentSeen>,
    /// Native profile of the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<ProfileFile>,
}

/// CPU use of a thread. In a record: within the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadUse {
    /// Thread ID. The main thread has the process ID. 0 stands for all threads that existed only part of the
    /// time.
    pub id: u32,
    /// Thread name from the kernel, such as `node`, `V8Worker`, `libuv-worker`.
    pub name: String,
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Time ready to run without a processor, in nanoseconds. 0 on kernels without CONFIG_SCHED_INFO.
    pub waited_ns: u64,
}

/// Report of an agent in a JavaScript thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentSeen {
    /// Thread number in Node.js. 0 is the main thread.
    pub thread: u32,
    /// Thread ID in the kernel, if the agent could determine it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<u32>,
    /// Role of the thread: `service`, `primary` of a cluster, `worker` of a cluster, `thread`, `tool` such as
    /// npm or PM2's daemon.
    pub role: String,
    /// Versions of Node.js and its components: `node`, `v8`, `uv`, `openssl`.
    pub versions: BTreeMap<String, String>,
    /// NODE_ENV in the process.
    pub node_env: Option<String>,
    /// UV_THREADPOOL_SIZE in the process.
    pub uv_threadpool_size: Option<String>,
    /// The main script.
    pub main: Option<String>,
    /// Requests served in the window. `None` if the capture does not count them.
    pub requests: Option<u64>,
    /// Counters, if they were captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<NodeCounters>,
    /// Profile of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileFile>,
    /// Why there is no profile, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// A file in the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileFile {
    /// Path relative to the record's folder.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
}

/// Counters of a JavaScript thread over a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeCounters {
    /// Time in which the event loop was active, in nanoseconds.
    pub loop_active_ns: u64,
    /// Time in which the event loop waited, in nanoseconds.
    pub loop_idle_ns: u64,
    /// Mean delay of 20 ms timers, in nanoseconds.
    pub loop_delay_mean_ns: u64,
    /// Median delay of 20 ms timers, in nanoseconds.
    pub loop_delay_p50_ns: u64,
    /// 99th percentile of the delay of 20 ms timers, in nanoseconds.
    pub loop_delay_p99_ns: u64,
    /// Maximum delay of 20 ms timers, in nanoseconds.
    pub loop_delay_max_ns: u64,
    /// Garbage collection pauses by kind: `scavenge`, `mark_sweep_compact`, `incremental`, `weak_callbacks`.
    pub gc: BTreeMap<String, Pauses>,
    /// Latency of small tasks on libuv's thread pool, without the event loop's part. `None` if no task was
    /// submitted.
    pub pool_wait: Option<Pauses>,
    /// Bytes of the JavaScript heap in use at the end.
    pub heap_used_bytes: u64,
    /// Bytes held outside the JavaScript heap at the end.
    pub external_bytes: u64,
}

/// Summary of several durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pauses {
    /// Number of durations.
    pub count: u64,
    /// Sum, in nanoseconds.
    pub total_ns: u64,
    /// Maximum, in nanoseconds.
    pub max_ns: u64,
}
