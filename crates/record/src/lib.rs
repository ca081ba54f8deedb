//! What is kept of a run: a directory, made whole before the run starts and appended to as it goes.
//!
//! ```text
//! records/express-node-env-20261121-034500/
//!   record.json       what was asked, where, with which seed: complete before anything starts
//!   experiment.toml   the experiment file, secrets masked
//!   events.jsonl      one line for each thing that happened, in order, with its number and a checksum over all before it
//!   logs/             the services' own output, bounded
//!   profiles/         what was captured to explain the difference, where that was asked for
//!   summary.json      what a list of many records shows of this one; it can be made again
//!   explanation.json  what follows from it; like a report, it can be made again
//!   report.html       the report as a page; .txt, .md and .json beside it
//! ```
//!
//! A record is a fold over its events ([`Record::apply`]): the lab and every later reader see the same
//! thing through the same code. A run killed at any moment leaves a record that opens; a line cut off in
//! the middle is reported as damage and everything before it counts; a block of which a line is missing or changed counts for nothing. This crate draws no conclusions.

mod environment;
mod fold;
mod reader;
mod seal;
mod summary;
mod writer;

pub use environment::{Environment, package_version};
pub use fold::{Block, Record, Trial};
pub use machine::write_whole;
pub use model::{
    AgentSeen, Allocation, Capture, CaptureKind, CapturedProcess, CapturedService, Cause, ConnectionsChosen,
    ContentSeen, ContractFailure, CoresChosen, Counts, Deployed, EndReason, Ended, EndpointCounts,
    ErrorCount, Event, FailureKind, Generator, GeneratorLost, GeneratorPart, GeneratorUse, MachineUse,
    NodeCounters, OpenLoop, Pauses, Phase, PodSeen, Prepared, ProcessSeen, ProfileFile, RateChosen,
    ServiceStarted, ServiceUse, Slice, SliceKind, TcpUse, ThreadUse, TrialEnded, TrialStarted, WarmUp,
    Witness, WorkersLost,
};
pub use reader::{HEADER_BYTES_MAX, is_being_written, open, read_file};
pub use summary::{Folder, SUMMARY};
pub use writer::{WriteError, Writer};

use std::collections::BTreeMap;

use ::model::Digest;
use plan::Plan;
use serde::{Deserialize, Serialize};

/// Version of the record's format. A reader opens its own version and every older one.
///
/// 2: lines of `events.jsonl` are numbered and have checksums.
pub const VERSION: u32 = 2;

/// The folder of captured profiles in that of a record.
pub const PROFILES: &str = "profiles";

/// The file beside the events that has what follows from captures. It is no part of the fold: it can be made again.
pub const EXPLANATION: &str = "explanation.json";

/// The command that made a record, as far as others do not repeat it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MadeBy {
    /// `run`, or one whose experiment `run` repeats. Records that do not say are taken for it.
    #[default]
    Run,
    /// `capacity` of a file, which does not say what users bear.
    CapacityOfFile,
    /// `doctor calibrate`.
    Calibrate,
    /// A step of `tune`.
    Tune,
    /// `load`, which has no file.
    Load,
}

/// What is known before anything starts: `record.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Format of the record, see [`VERSION`].
    pub version: u32,
    /// Version of the Proofload that ran it.
    pub proofload: String,
    /// When the record was made, RFC 3339 in UTC.
    pub created: String,
    /// Its place among the records beside it, where the clock was behind one of them: the time of the newest, and how many have followed
    /// that one so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<(String, u32)>,
    /// Path of the experiment file as it was given.
    pub experiment: String,
    /// The command that was given, word by word.
    pub command: Vec<String>,
    /// What repeats it.
    #[serde(default)]
    pub made_by: MadeBy,
    /// Whether its budget was typed, and is not that of the experiment's text.
    #[serde(default)]
    pub budget_typed: bool,
    /// Seed of every random choice of the run.
    pub seed: u64,
    /// The plan as it was run.
    pub plan: Plan,
    /// Digests of the files that its load is made of, by name: those that were there before the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Digest>,
    /// The machine on which it was run.
    pub environment: Environment,
}

/// The time now, RFC 3339 in UTC with whole seconds.
pub fn now() -> String {
    utc(jiff::Timestamp::now())
}

fn utc(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The time now in UTC as part of a folder's name: `20261121-034500`.
pub fn stamp() -> String {
    jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string()
}
