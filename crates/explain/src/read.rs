//! Profiles as other programs write them: bytes in, values out.
//!
//! What is read may be cut off, made by hand or made to hurt: each reader has limits, follows no list by recursion and takes no
//! number on trust. It must not judge whose code a function is, and it opens no file.

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

use crate::{Cut, Naming, Unit, cpu_tree, heap_tree, native_tree};

/// The most calls that a profile may have. V8 makes some 10 000 for an hour of a service.
pub(crate) const NODES_MAX: usize = 4_000_000;
/// A call is an object, and its function another in it.
const OBJECTS_MAX: usize = 2 * NODES_MAX;
/// Where a log of `node --prof` begins.
const PROF_LOG: &[u8] = b"v8-version,";
const NATIVE: &str = ".native.json";

/// Why a profile cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It ends in the middle.
    #[error(
        "{format}: cut off at line {line}, column {column}: it ends in the middle, and no part of it can be trusted; \
         capture it again"
    )]
    CutOff {
        /// What it would have been.
        format: &'static str,
        /// Line, from 1.
        line: usize,
        /// Column, from 1. Profiles are written in one line, so it is near the size of the file.
        column: usize,
    },
    /// It is not what it should be, says nothing that can be used, is too large, or of no format that is known.
    #[error("{0}")]
    Unusable(String),
}

impl ReadError {
    pub(crate) fn json(format: &'static str, bytes: &[u8], error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        if error.is_eof() || (error.is_syntax() && is_end(bytes, line, column)) {
            return Self::CutOff { format, line, column };
        }
        // The place is told apart from the text.
        let text = error.to_string();
        let end = text.rfind(" at line ").unwrap_or(text.len());
        Self::unusable(format, format!("line {line}, column {column}: {}", &text[..end]))
    }

    pub(crate) fn unusable(what: &str, problem: impl Display) -> Self {
        Self::Unusable(format!("{what}: {problem}"))
    }
}

/// Whether a place is the end of a text: a number cut off after its sign is wrong, and a parser does not say that it ended there.
fn is_end(bytes: &[u8], line: usize, column: usize) -> bool {
    let mut lines = bytes.rsplit(|byte| *byte == b'\n');
    let last = lines.next().map_or(0, <[u8]>::len);
    column >= last && lines.count() + 1 == line
}

/// Refuses what has more objects than the most calls take: each takes more memory than its text. Whoever opens a file has a limit for that.
fn bounded<'b>(format: &str, bytes: &'b [u8]) -> Result<&'b [u8], ReadError> {
    if bytes.iter().filter(|byte| **byte == b'{').count() > OBJECTS_MAX {
        return Err(ReadError::unusable(format, format!("too many values, at most {OBJECTS_MAX} are read")));
    }
    // Editors of some systems put a mark of the encoding first.
    Ok(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes))
}

/// Reads a profile as JSON has it.
fn parsed<'b, T: Deserialize<'b>>(format: &'static str, bytes: &'b [u8]) -> Result<T, ReadError> {
    let bytes = bounded(format, bytes)?;
    serde_json::from_slice(bytes).map_err(|error| ReadError::json(format, bytes, &error))
}

/// Version of `.native.json`, which proofload's own sampling writes.
pub(crate) const NATIVE_VERSION: u32 = 1;

/// Stacks of compiled code and of the kernel, of all threads of a process. It has no times, only how often each stack was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeProfile {
    /// Format of the file: 1.
    pub version: u32,
    /// The process.
    pub pid: u32,
    /// Begin of the sampling, CLOCK_MONOTONIC in nanoseconds.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
    /// CPU time that a sample stands for.
    pub period_ns: u64,
    /// Samples that the kernel could not keep.
    #[serde(default)]
    pub lost: u64,
    /// The functions.
    pub frames: Vec<NativeFrame>,
    /// The stacks.
    pub stacks: Vec<NativeStack>,
    /// What is not in it, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The module of a function of the kernel.
pub(crate) const KERNEL: &str = "[kernel]";
/// The module of code that was made while running.
pub(crate) const MADE: &str = "[jit]";
/// The name of a function where there are no symbols.
pub(crate) const UNKNOWN: &str = "[unknown]";

/// A function of compiled code.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NativeFrame {
    /// Its name; `[unknown]` where there are no symbols.
    pub name: String,
    /// The library or program that it is of; `[kernel]`, or `[jit]` for code made while running.
    pub module: String,
}

/// A stack, and how often it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeStack {
    /// The thread, by its number.
    pub thread: u32,
    /// Its name as the kernel has it.
    pub thread_name: String,
    /// Indices of functions, the outermost first.
    pub frames: Vec<u32>,
    /// How often.
    pub samples: u64,
}

impl NativeProfile {
    /// How many samples it has.
    pub(crate) fn samples(&self) -> u64 {
        self.stacks.iter().map(|stack| stack.samples).fold(0, u64::saturating_add)
    }

    /// Reads it.
    ///
    /// # Errors
    /// If it is cut off, not JSON, of another version, or points at functions that it does not have.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        let profile: Self = parsed(NATIVE, bytes)?;
        let places = || profile.stacks.iter().flat_map(|stack| &stack.frames);
        let (known, count) = (profile.frames.len(), places().count());
        let problem = if profile.version != NATIVE_VERSION {
            format!("version {}: this proofload reads version {NATIVE_VERSION}", profile.version)
        } else if count > NODES_MAX {
            format!("{count} places in stacks: too many, at most {NODES_MAX} are read")
        } else if let Some(frame) = places().find(|frame| **frame as usize >= known) {
            format!("a stack has function {frame}, and there are {known}")
        } else {
            return Ok(profile);
        };
        Err(ReadError::unusable(NATIVE, problem))
    }
}

/// A profile of any format.
#[derive(Debug, Clone, PartialEq)]
pub enum Profile {
    /// Time by stacks of JavaScript: of V8's profiler, or of a log of `--prof`.
    Cpu(CpuProfile),
    /// Bytes by stacks of JavaScript.
    Heap(HeapProfile),
    /// Time by stacks of compiled code.
    Native(NativeProfile),
}

impl Profile {
    /// All of it, as a tree.
    pub fn cut(&self, naming: &Naming<'_>) -> Cut {
        match self {
            Self::Cpu(profile) => cpu_tree(profile, None, naming),
            Self::Heap(profile) => heap_tree(profile, naming),
            Self::Native(profile) => native_tree(profile, naming),
        }
    }

    /// What its values are.
    pub fn unit(&self) -> Unit {
        match self {
            Self::Cpu(_) | Self::Native(_) => Unit::Nanoseconds,
            Self::Heap(_) => Unit::Bytes,
        }
    }
}

/// Reads a profile of any format, known by what is in it. `name` is what it is called in an error.
///
/// # Errors
/// If it is of no known format, or its reader refuses it.
pub fn read_any(name: &str, bytes: &[u8]) -> Result<Profile, ReadError> {
    const FORMAT: &str = "profile";
    let bytes = bounded(FORMAT, bytes)?;
    if bytes.starts_with(PROF_LOG) {
        let hint =
            "a log of node --prof: first node --prof-process --preprocess LOG > LOG.json, then read that";
        return Err(ReadError::unusable(FORMAT, hint));
    }
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(ReadError::unusable(FORMAT, TRACE));
    }
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(ReadError::unusable(name, UNKNOWN_FORMAT));
    }
    // What it has at its top tells its format.
    let top: BTreeMap<Cow<'_, str>, IgnoredAny> =
        serde_json::from_slice(bytes).map_err(|error| ReadError::json(FORMAT, bytes, &error))?;
    let has = |key: &str| top.contains_key(key);
    match () {
        () if has("nodes") => CpuProfile::read(bytes).map(Profile::Cpu),
        () if has("stacks") => NativeProfile::read(bytes).map(Profile::Native),
        () if has("ticks") && has("code") => prof_process::read(bytes).map(Profile::Cpu),
        () if has("traceEvents") => Err(ReadError::unusable(FORMAT, TRACE)),
        () if has("head") => HeapProfile::read(bytes).map(Profile::Heap),
        () => Err(ReadError::unusable(name, UNKNOWN_FORMAT)),
    }
}

const UNKNOWN_FORMAT: &str = "no profile that is known; known are .cpuprofile and .heapprofile of V8, .native.json of proofload, and what \
                              `node --prof-process --preprocess` prints";
const TRACE: &str = "a trace of DevTools, not a profile: open it in DevTools, and save the profile of one thread as .cpuprofile";

#[cfg(test)]
mod tests;
