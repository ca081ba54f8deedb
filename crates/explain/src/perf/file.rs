//! The native profile of a process as it lies in a record: `.native.json`, version 1. Values only.

use serde::{Deserialize, Serialize};

/// Stacks of one process, counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeProfileFile {
    /// Version of this format: 1.
    pub version: u32,
    /// The process.
    pub pid: u32,
    /// When sampling began, `CLOCK_MONOTONIC` in nanoseconds.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// CPU time that each sample stands for, in nanoseconds.
    pub period_ns: u64,
    /// Samples that the kernel could not deliver because they were not read in time. Processes share the memory that samples come
    /// in: these were lost next to a sample of this process.
    pub lost: u64,
    /// The functions, each once.
    pub frames: Vec<NativeFrame>,
    /// The stacks, each once for a thread; those with most samples first.
    pub stacks: Vec<NativeStack>,
    /// What is not in it, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NativeFrame {
    /// Its name, demangled, without arguments; `[unknown]` where its module names none for the address, `(other)` for stacks that
    /// were too many to be kept apart. It may hold anything: it comes out of somebody's file.
    pub name: String,
    /// The file that it is in, without folders, such as `node` or `libc.so.6`; or `[kernel]`, `[jit]` for code made at run time,
    /// `[vdso]`, `[unknown]`.
    pub module: String,
}

/// A stack of a thread and how often it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeStack {
    /// The thread as the kernel numbers it; of a main thread the process's number.
    pub thread: u32,
    /// Its name when it was last seen. Empty if it ended before it could be asked.
    pub thread_name: String,
    /// Indices into [`NativeProfileFile::frames`], from the root to the function that ran.
    pub frames: Vec<u32>,
    /// Samples.
    pub samples: u64,
}
