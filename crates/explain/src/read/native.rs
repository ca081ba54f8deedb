//! Stacks of compiled code and of the kernel, `.native.json`: what proofload's own sampling writes. It must not say whose they
//! are.

use serde::{Deserialize, Serialize};

use super::{NODES_MAX, ReadError, bounded};

const FORMAT: &str = ".native.json";
pub(crate) const NATIVE_VERSION: u32 = 1;

/// Stacks of all threads of a process. It has no times, only how often each stack was seen.
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
    /// Reads it.
    ///
    /// # Errors
    /// If it is cut off, not JSON, of another version, or points at functions that it does not have.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        let bytes = bounded(bytes)?;
        let profile: Self =
            serde_json::from_slice(bytes).map_err(|error| ReadError::json(FORMAT, bytes, &error))?;
        if profile.version != NATIVE_VERSION {
            let problem =
                format!("version {}: this proofload reads version {NATIVE_VERSION}", profile.version);
            return Err(ReadError::unusable(FORMAT, problem));
        }
        let places: usize = profile.stacks.iter().map(|stack| stack.frames.len()).sum();
        if places > NODES_MAX {
            let problem = format!("{places} places in stacks: too many, at most {NODES_MAX} are read");
            return Err(ReadError::unusable(FORMAT, problem));
        }
        let known = profile.frames.len();
        let stray =
            profile.stacks.iter().flat_map(|stack| &stack.frames).find(|frame| **frame as usize >= known);
        match stray {
            Some(frame) => Err(ReadError::unusable(
                FORMAT,
                format!("a stack has function {frame}, and there are {known}"),
            )),
            None => Ok(profile),
        }
    }
}
