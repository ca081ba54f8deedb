//! Profiles as other programs write them: bytes in, values out.
//!
//! What is read may be cut off, made by hand or made to hurt: each reader has limits, follows no list by recursion and takes no
//! number on trust. It must not judge whose code a function is, and it opens no file.

mod call;
mod cpuprofile;
mod heapprofile;
mod links;
mod native;
mod prof_process;

use serde::Deserialize;
use serde::de::IgnoredAny;

pub(crate) use call::CallFrame;
pub use cpuprofile::CpuProfile;
pub use heapprofile::HeapProfile;
pub(crate) use native::NATIVE_VERSION;
pub use native::{NativeFrame, NativeProfile, NativeStack};
pub(crate) use prof_process::script as script_frame;

use crate::cut::heap_cut;
use crate::{Cut, Naming, Unit, Window, cpu_tree, native_tree};

/// The largest file that is read. What is made of it takes about as much memory again.
pub const PROFILE_BYTES_MAX: usize = 1 << 30;
/// The most calls that a profile may have. V8 makes some 10 000 for an hour of a service.
pub(crate) const NODES_MAX: usize = 4_000_000;
/// Where a log of `node --prof` begins.
const PROF_LOG: &[u8] = b"v8-version,";

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
    /// It is not what it should be.
    #[error("{format}: line {line}, column {column}: {problem}")]
    Malformed {
        /// What it should be.
        format: &'static str,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong there.
        problem: String,
    },
    /// It is whole, and says nothing that can be used.
    #[error("{format}: {problem}")]
    Unusable {
        /// What it should be.
        format: &'static str,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// It is larger than what is read.
    #[error("profile of {bytes} bytes: too large, at most {max}; capture for a shorter time, or less often", max = PROFILE_BYTES_MAX)]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// It is of no format that is known.
    #[error(
        "{name}: no profile that is known; known are .cpuprofile and .heapprofile of V8, .native.json of proofload, and what \
         `node --prof-process --preprocess` prints"
    )]
    Unknown {
        /// Its name.
        name: String,
    },
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
        Self::Malformed { format, line, column, problem: text[..end].to_owned() }
    }

    pub(crate) fn unusable(format: &'static str, problem: impl Into<String>) -> Self {
        Self::Unusable { format, problem: problem.into() }
    }
}

/// Whether a place is the end of a text: a number cut off after its sign is wrong, and a parser does not say that it ended there.
fn is_end(bytes: &[u8], line: usize, column: usize) -> bool {
    let mut lines = bytes.rsplit(|byte| *byte == b'\n');
    let last = lines.next().map_or(0, <[u8]>::len);
    column >= last && lines.count() + 1 == line
}

/// Refuses what is too large to be read.
pub(crate) fn bounded(bytes: &[u8]) -> Result<&[u8], ReadError> {
    if bytes.len() > PROFILE_BYTES_MAX {
        return Err(ReadError::TooLarge { bytes: bytes.len() });
    }
    // Editors of some systems put a mark of the encoding first.
    Ok(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes))
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
    /// Its tree. A window cuts stacks of JavaScript only, for the others have no times.
    pub fn cut(&self, window: Option<Window>, naming: &Naming<'_>) -> Cut {
        match self {
            Self::Cpu(profile) => cpu_tree(profile, window, naming),
            Self::Heap(profile) => heap_cut(profile, naming),
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

/// What a file has at its top: enough to know its format by.
#[derive(Deserialize)]
struct Top {
    nodes: Option<IgnoredAny>,
    head: Option<IgnoredAny>,
    stacks: Option<IgnoredAny>,
    ticks: Option<IgnoredAny>,
    code: Option<IgnoredAny>,
    #[serde(rename = "traceEvents")]
    trace_events: Option<IgnoredAny>,
}

/// Reads a profile of any format, known by what is in it. `name` is what it is called in an error.
///
/// # Errors
/// If it is of no known format, or its reader refuses it.
pub fn read_any(name: &str, bytes: &[u8]) -> Result<Profile, ReadError> {
    const FORMAT: &str = "profile";
    let bytes = bounded(bytes)?;
    if bytes.starts_with(PROF_LOG) {
        let hint =
            "a log of node --prof: first node --prof-process --preprocess LOG > LOG.json, then read that";
        return Err(ReadError::unusable(FORMAT, hint));
    }
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(ReadError::unusable(FORMAT, TRACE));
    }
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(ReadError::Unknown { name: name.to_owned() });
    }
    let top: Top = serde_json::from_slice(bytes).map_err(|error| ReadError::json(FORMAT, bytes, &error))?;
    match top {
        Top { nodes: Some(_), .. } => CpuProfile::read(bytes).map(Profile::Cpu),
        Top { stacks: Some(_), .. } => NativeProfile::read(bytes).map(Profile::Native),
        Top { ticks: Some(_), code: Some(_), .. } => prof_process::read(bytes).map(Profile::Cpu),
        Top { trace_events: Some(_), .. } => Err(ReadError::unusable(FORMAT, TRACE)),
        Top { head: Some(_), .. } => HeapProfile::read(bytes).map(Profile::Heap),
        _ => Err(ReadError::Unknown { name: name.to_owned() }),
    }
}

const TRACE: &str = "a trace of DevTools, not a profile: open it in DevTools, and save the profile of one thread as .cpuprofile";

#[cfg(test)]
mod tests;
