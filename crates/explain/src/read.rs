//! Readers for profiles written by other programs: bytes in, values out.
//!
//! Input may be truncated, hand-made or hostile. Each reader has limits, follows no list by recursion and
//! trusts no number. This module does not decide whose code a function is, and opens no file.

mod prof_process;
mod v8;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

pub(crate) use prof_process::{script as script_frame, usual_us};
pub(crate) use v8::{CallFrame, Calls};
pub use v8::{CpuProfile, HeapProfile};

use crate::{Cut, Naming, TreeUnit, cpu_tree, heap_tree, native_tree};

/// Maximum calls of a profile. V8 makes some 10 000 for an hour of a service.
pub(crate) const NODES_MAX: usize = 4_000_000;
/// Each call is an object that contains its function as another.
const OBJECTS_MAX: usize = 2 * NODES_MAX;
/// The start of a `node --prof` log.
const PROF_LOG: &[u8] = b"v8-version,";
const NATIVE: &str = ".native.json";

/// The reason a profile cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileReadError {
    /// It is truncated.
    #[error(
        "{format}: cut off at line {line}, column {column}: it ends in the middle, and no part of it can be trusted; \
         capture it again"
    )]
    CutOff {
        /// The expected format.
        format: &'static str,
        /// Line, from 1.
        line: usize,
        /// Column, from 1. Profiles are written in one line, so it is near the size of the file.
        column: usize,
    },
    /// It is invalid, has no usable data, is too large, or has an unknown format.
    #[error("{0}")]
    Unusable(String),
}

impl ProfileReadError {
    pub(crate) fn json(format: &'static str, bytes: &[u8], error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        if error.is_eof() || (error.is_syntax() && is_end(bytes, line, column)) {
            return Self::CutOff {
                format,
                line,
                column,
            };
        }
        // The position is reported separately from the text.
        let text = error.to_string();
        let end = text.rfind(" at line ").unwrap_or(text.len());
        Self::unusable(
            format,
            format!("line {line}, column {column}: {}", &text[..end]),
        )
    }

    pub(crate) fn unusable(what: &str, problem: impl Display) -> Self {
        Self::Unusable(format!("{what}: {problem}"))
    }
}

/// Whether a position is the end of a text. A number truncated after its sign is reported as wrong, not as an
/// end.
fn is_end(bytes: &[u8], line: usize, column: usize) -> bool {
    let mut lines = bytes.rsplit(|byte| *byte == b'\n');
    let last = lines.next().map_or(0, <[u8]>::len);
    column >= last && lines.count() + 1 == line
}

/// Rejects input with more objects than the maximum number of calls, because each takes more memory than its
/// text. The code that opens a file limits its size.
fn bounded<'b>(format: &str, bytes: &'b [u8]) -> Result<&'b [u8], ProfileReadError> {
    if bytes.iter().filter(|byte| **byte == b'{').count() > OBJECTS_MAX {
        return Err(ProfileReadError::unusable(
            format,
            format!("too many values, at most {OBJECTS_MAX} are read"),
        ));
    }
    // Some editors write a byte order mark first.
    Ok(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes))
}

/// Parses a JSON profile.
fn parsed<'b, T: Deserialize<'b>>(
    format: &'static str,
    bytes: &'b [u8],
) -> Result<T, ProfileReadError> {
    let bytes = bounded(format, bytes)?;
    serde_json::from_slice(bytes).map_err(|error| ProfileReadError::json(format, bytes, &error))
}

/// Version of `.native.json`, which proofload's own sampling writes.
pub(crate) const NATIVE_VERSION: u32 = 1;

/// Stacks of compiled code and of the kernel, for all threads of a process. It has no times, only a count of
/// each stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeProfile {
    /// Format version of the file: 1.
    pub version: u32,
    /// The process.
    pub pid: u32,
    /// Start of the sampling, CLOCK_MONOTONIC in nanoseconds.
    pub start_ns: u64,
    /// End of the sampling.
    pub end_ns: u64,
    /// CPU time per sample.
    pub period_ns: u64,
    /// Number of samples that the kernel dropped.
    pub lost: u64,
    /// The functions.
    pub frames: Vec<NativeFrame>,
    /// The stacks.
    pub stacks: Vec<NativeStack>,
    /// Descriptions of missing data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The module of a function of the kernel.
pub(crate) const KERNEL: &str = "[kernel]";
/// The module of code generated at run time.
pub(crate) const MADE: &str = "[jit]";
/// The name of a function without symbols.
pub(crate) const UNKNOWN: &str = "[unknown]";

/// A function of compiled code.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NativeFrame {
    /// Its name. `[unknown]` if there are no symbols.
    pub name: String,
    /// Its library or program, `[kernel]`, or `[jit]` for code generated at run time.
    pub module: String,
}

/// A stack with its count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeStack {
    /// The thread's ID.
    pub thread: u32,
    /// The kernel's name of the thread.
    pub thread_name: String,
    /// Indices of functions, outermost first.
    pub frames: Vec<u32>,
    /// Number of samples.
    pub samples: u64,
}

impl NativeProfile {
    /// Number of samples.
    pub(crate) fn samples(&self) -> u64 {
        self.stacks
            .iter()
            .map(|stack| stack.samples)
            .fold(0, u64::saturating_add)
    }

    /// Reads a native profile.
    ///
    /// # Errors
    /// Returns an error if it is truncated, not JSON, of another version, or refers to missing functions.
    pub fn read(bytes: &[u8]) -> Result<Self, ProfileReadError> {
        let profile: Self = parsed(NATIVE, bytes)?;
        let places = || profile.stacks.iter().flat_map(|stack| &stack.frames);
        let (known, count) = (profile.frames.len(), places().count());
        let problem = if profile.version != NATIVE_VERSION {
            format!(
                "version {}: this proofload reads version {NATIVE_VERSION}",
                profile.version
            )
        } else if count > NODES_MAX {
            format!("{count} places in stacks: too many, at most {NODES_MAX} are read")
        } else if let Some(frame) = places().find(|frame| **frame as usize >= known) {
            format!("a stack has function {frame}, and there are {known}")
        } else {
            return Ok(profile);
        };
        Err(ProfileReadError::unusable(NATIVE, problem))
    }
}

/// A profile of any format.
#[derive(Debug, Clone, PartialEq)]
pub enum Profile {
    /// Time by JavaScript stack, from V8's profiler or a `--prof` log.
    Cpu(CpuProfile),
    /// Bytes by JavaScript stack.
    Heap(HeapProfile),
    /// Time by stack of compiled code.
    Native(NativeProfile),
}

impl Profile {
    /// The whole profile as a tree.
    pub fn cut(&self, naming: &Naming<'_>) -> Cut {
        match self {
            Self::Cpu(profile) => cpu_tree(profile, None, naming),
            Self::Heap(profile) => heap_tree(profile, naming),
            Self::Native(profile) => native_tree(profile, naming),
        }
    }

    /// The unit of its values.
    pub fn unit(&self) -> TreeUnit {
        match self {
            Self::Cpu(_) | Self::Native(_) => TreeUnit::Nanoseconds,
            Self::Heap(_) => TreeUnit::Bytes,
        }
    }
}

/// Reads a profile of any format, detected by its content. `name` is used in errors.
///
/// # Errors
/// Returns an error if the format is unknown, or its reader rejects it.
pub fn read_any(name: &str, bytes: &[u8]) -> Result<Profile, ProfileReadError> {
    const FORMAT: &str = "profile";
    let bytes = bounded(FORMAT, bytes)?;
    if bytes.starts_with(PROF_LOG) {
        let hint = "a log of node --prof: first node --prof-process --preprocess LOG > LOG.json, then read that";
        return Err(ProfileReadError::unusable(FORMAT, hint));
    }
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(ProfileReadError::unusable(FORMAT, TRACE));
    }
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(ProfileReadError::unusable(name, UNKNOWN_FORMAT));
    }
    // The top-level keys identify the format.
    let top: BTreeMap<Cow<'_, str>, IgnoredAny> = serde_json::from_slice(bytes)
        .map_err(|error| ProfileReadError::json(FORMAT, bytes, &error))?;
    let has = |key: &str| top.contains_key(key);
    match () {
        () if has("nodes") => CpuProfile::read(bytes).map(Profile::Cpu),
        () if has("stacks") => NativeProfile::read(bytes).map(Profile::Native),
        () if has("ticks") && has("code") => prof_process::read(bytes).map(Profile::Cpu),
        () if has("traceEvents") => Err(ProfileReadError::unusable(FORMAT, TRACE)),
        () if has("head") => HeapProfile::read(bytes).map(Profile::Heap),
        () => Err(ProfileReadError::unusable(name, UNKNOWN_FORMAT)),
    }
}

const UNKNOWN_FORMAT: &str = "no profile that is known; known are .cpuprofile and .heapprofile of V8, .native.json of proofload, and what \
                              `node --prof-process --preprocess` prints";
const TRACE: &str = "a trace of DevTools, not a profile: open it in DevTools, and save the profile of one thread as .cpuprofile";

#[cfg(test)]
mod tests;
