//! Information about a file beside its runs.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::pasted::Pasted;

/// The rest of a longer line is dropped. The longest line of a tool is JSON without line breaks, some ten kB.
pub const LINE_BYTES_MAX: usize = 1 << 20;
/// Maximum number of runs stored per file.
pub const RUNS_MAX: usize = 1000;

/// Information about a file beside its runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Transcript {
    /// Its name, as given.
    pub file: String,
    /// Bytes read.
    pub bytes: u64,
    /// Lines read.
    pub lines: u64,
    /// Whether it has more runs than the maximum.
    pub too_many_runs: bool,
    /// Unsupported tools whose output it contains.
    pub unread: BTreeSet<String>,
    /// Whether it contains bytes that do not occur in text.
    pub binary: bool,
    /// The first line that mentions compression, if no run does.
    pub speaks_of_compression: Option<u64>,
    /// Missing settings in code and configuration around the runs.
    #[serde(skip)]
    pub pasted: Pasted,
}

impl Transcript {
    /// A message that names the unsupported tools.
    pub fn not_read(&self) -> String {
        let tools: Vec<&str> = self.unread.iter().map(String::as_str).collect();
        format!("output of {} is there, and is not read", tools.join(", "))
    }
}
