//! What was captured to explain a difference: in trials of their own, never in measured ones.
//!
//! Profiles themselves are files in the record's folder `profiles/`; here is where they lie and what they are of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What was captured in a window of load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureKind {
    /// Nothing: CPU time by thread alone. What the others are held against.
    Plain,
    /// Counters of Node.js: event loop, pauses, thread pool, requests by worker.
    Counters,
    /// Stacks of JavaScript, by V8's own profiler.
    Cpu,
    /// Stacks of compiled code and of the kernel, by the kernel's sampling.
    Native,
    /// What was allocated and still lives, by V8's sampling.
    Heap,
}

/// One window of load in which something was captured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capture {
    /// Number of the round, from 1. In each round every explained variant is captured once, in an order drawn from the seed.
    pub round: u32,
    /// Index of the variant in the plan.
    pub variant: usize,
    /// What was captured.
    pub kind: CaptureKind,
    /// Begin of the window, CLOCK_MONOTONIC in nanoseconds.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
    /// Good responses in the window.
    pub requests: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Services of the variant, in order of their start.
    pub services: Vec<CapturedService>,
}

/// A service in a capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapturedService {
    /// Its name.
    pub service: String,
    /// Its directory, against which files of its own code are named.
    pub directory: String,
    /// CPU time of all its processes in the window, in nanoseconds.
    pub cpu_ns: u64,
    /// Its processes, parents first.
    pub processes: Vec<CapturedProcess>,
    /// What could not be had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
}

/// Something that a capture could not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "MissingForm")]
pub struct Missing {
    /// What it is.
    pub what: Absence,
    /// Why, in words, with figures.
    pub why: String,
}

/// What a capture can lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Absence {
    /// A process of Node.js without an agent.
    Agent,
    /// Stacks of JavaScript, because the service does not run Node.js.
    NotNode,
    /// A process, or its agent, that ended in the window.
    Gone,
    /// Stacks of compiled code and of the kernel, which the kernel refuses.
    NativeStacks,
    /// Anything else.
    #[default]
    #[serde(other)]
    Other,
}

impl Missing {
    /// This is missing, for that reason.
    pub fn new(what: Absence, why: impl Into<String>) -> Missing {
        Missing { what, why: why.into() }
    }
}

/// What is missing as records have it: those up to 0.1.0 have the reason alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum MissingForm {
    Reason(String),
    Whole {
        #[serde(default)]
        what: Absence,
        why: String,
    },
}

impl From<MissingForm> for Missing {
    fn from(form: MissingForm) -> Missing {
        match form {
            MissingForm::Reason(why) => Missing { what: Absence::Other, why },
            MissingForm::Whole { what, why } => Missing { what, why },
        }
    }
}

/// A process of a service in a capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapturedProcess {
    /// Its number.
    pub pid: u32,
    /// Number of its parent.
    pub parent: u32,
    /// Its command line, cut at 512 bytes.
    pub command: String,
    /// Its threads and what they used in the window.
    pub threads: Vec<ThreadUse>,
    /// What its agents told: of its main thread, and of each of its worker threads. Empty where it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentSeen>,
    /// Its native profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<ProfileFile>,
}

/// A thread of a process, and what it used: in a capture within the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// Its number; that of the main thread is the process's. 0 for all together that have ended.
    pub id: u32,
    /// Its name as the kernel has it, such as `node`, `V8Worker`, `libuv-worker`.
    pub name: String,
    /// Time that it ran, in nanoseconds.
    pub cpu_ns: u64,
    /// Time that it was ready to run and had no processor; 0 on kernels without CONFIG_SCHED_INFO.
    pub waited_ns: u64,
}

/// What an agent in a JavaScript thread told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentSeen {
    /// Its thread as Node.js numbers it: 0 is the main thread.
    pub thread: u32,
    /// Its thread as the kernel numbers it, where it could tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<u32>,
    /// What it is: `service`, `primary` of a cluster, `worker` of a cluster, `thread`, `tool` such as npm or PM2's daemon.
    pub role: String,
    /// Versions of Node.js and what it is made of: `node`, `v8`, `uv`, `openssl`.
    pub versions: BTreeMap<String, String>,
    /// NODE_ENV as the process sees it.
    pub node_env: Option<String>,
    /// UV_THREADPOOL_SIZE as the process sees it.
    pub uv_threadpool_size: Option<String>,
    /// The file that it runs.
    pub main: Option<String>,
    /// Requests answered in the window; `None` where the capture does not count.
    pub requests: Option<u64>,
    /// What a capture of counters told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<NodeCounters>,
    /// Its profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileFile>,
    /// Why there is none, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// A file in the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileFile {
    /// Its path, relative to the record's folder.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// Counters of a JavaScript thread over a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeCounters {
    /// Time in which the event loop did something, in nanoseconds.
    pub loop_active_ns: u64,
    /// Time in which it waited.
    pub loop_idle_ns: u64,
    /// How late timers of 20 ms were: mean, in nanoseconds.
    pub loop_delay_mean_ns: u64,
    /// The same, 50th percentile.
    pub loop_delay_p50_ns: u64,
    /// The same, 99th percentile.
    pub loop_delay_p99_ns: u64,
    /// The same, at most.
    pub loop_delay_max_ns: u64,
    /// Pauses of garbage collection, by kind: `scavenge`, `mark_sweep_compact`, `incremental`, `weak_callbacks`.
    pub gc: BTreeMap<String, Pauses>,
    /// How long small tasks for libuv's thread pool took from asking to answer, less the event loop's part; `None` where none was asked.
    pub pool_wait: Option<Pauses>,
    /// Bytes of the JavaScript heap in use at the end.
    pub heap_used_bytes: u64,
    /// Bytes outside of it that it holds.
    pub external_bytes: u64,
}

/// A number of spans of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pauses {
    /// How many.
    pub count: u64,
    /// Their sum, in nanoseconds.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
}
