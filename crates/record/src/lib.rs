//! The record of a run: a directory that is created before the run starts and appended to during the run.
//!
//! ```text
//! records/express-node-env-20261121-034500/
//!   record.json       the plan, the machine and the seed: complete before anything starts
//!   experiment.toml   the experiment file, secrets masked
//!   events.jsonl      one line per event, in order, with its number and a checksum over everything before it
//!   logs/             output of the services, limited in size
//!   profiles/         captures that explain the difference, if requested
//!   summary.json      the row of this record in lists of records; it can be recomputed
//!   explanation.json  results of the captures; like a report, it can be recomputed
//!   report.html       the report as a page; .txt, .md and .json next to it
//! ```
//!
//! A record is a fold over its events ([`Record::apply`]): the lab and all later readers use the same code
//! and see the same data. A run killed at any moment leaves a record that opens. A truncated last line is
//! reported as damage, and everything before it counts. A block with a missing or changed line is discarded.
//! This crate does not draw conclusions.

mod environment;
mod fold;
mod reader;
mod seal;
mod summary;
mod writer;

pub use environment::{MachineFingerprint, package_version};
pub use fold::{Block, Record, Trial};
pub use machine::write_whole;
pub use model::{
    AgentSeen, Allocation, Capture, CaptureKind, CapturedProcess, CapturedService, Cause,
    ConnectedGenerator, ConnectionsChosen, ContentSeen, ContractFailure, CoresChosen, Counts,
    DeployedSeen, EndKind, EndReason, Ended, EndpointCounts, ErrorCount, Event, FailureKind,
    GeneratorLost, GeneratorPart, GeneratorUse, MachineUse, NodeCounters, OpenLoop, Pauses, Phase,
    PodSeen, Prepared, ProcessSeen, ProfileFile, RateChosen, ServiceStarted, ServiceUse, Slice,
    SliceKind, TcpUse, ThreadUse, TrialEnded, TrialStarted, WarmUp, Witness, WorkersLost,
};
pub use reader::{HEADER_BYTES_MAX, is_being_written, open, read_file};
pub use summary::{RecordFolder, SUMMARY};
pub use writer::{WriteError, Writer};

use std::collections::BTreeMap;

use ::model::Digest;
use plan::Plan;
use serde::{Deserialize, Serialize};

/// Version of the record format. A reader opens only its own version.
pub const VERSION: u32 = 1;

/// The folder of captured profiles within a record.
pub const PROFILES: &str = "profiles";

/// The file with the results of the captures. It is not part of the fold, because it can be recomputed.
pub const EXPLANATION: &str = "explanation.json";

/// How to repeat a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// The command as given. It has no experiment file, and a seed without a flag.
    AsTyped,
    /// These words after `proofload`, which also accept `--seed` and `--budget`.
    Command(Vec<String>),
    /// `run` with the experiment file in the record.
    SavedFile,
}

/// Data known before anything starts: `record.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Format of the record, see [`VERSION`].
    pub version: u32,
    /// Version of the Proofload that ran it.
    pub proofload: String,
    /// When the record was made, RFC 3339 in UTC.
    pub created: String,
    /// Position among adjacent records if the clock was behind the newest of them: the time of that record,
    /// and the number of records that followed it in this way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<(String, u32)>,
    /// Path of the experiment file as given.
    pub experiment: String,
    /// The command as given, word by word.
    pub command: Vec<String>,
    /// How to repeat the run with its flags.
    pub repeat: Repeat,
    /// Seed of all random choices of the run.
    pub seed: u64,
    /// The plan as run.
    pub plan: Plan,
    /// Digests of the load's files by name, as far as they existed before the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Digest>,
    /// The machine of the run.
    pub environment: MachineFingerprint,
}

/// Functions for the fuzz target.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    use crate::seal::Seal;

    /// Adds numbers and checksums to the lines of events below a header.
    pub fn sealed(header: &[u8], events: &[u8]) -> Vec<u8> {
        let mut seal = Seal::of(header);
        events
            .split(|byte| *byte == b'\n')
            .flat_map(|event| seal.marked(event))
            .collect()
    }
}

/// The current time, RFC 3339 in UTC with whole seconds.
pub fn now() -> String {
    utc(jiff::Timestamp::now())
}

fn utc(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The current time in UTC as part of a folder name: `20261121-034500`.
pub fn stamp() -> String {
    jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string()
}
