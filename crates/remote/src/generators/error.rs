//! What can go wrong with generators elsewhere, which each error names, and why one of them ends early.

use std::io;
use std::time::Duration;

/// Why a fleet could not begin, or a generator is lost.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The channel to a generator broke, or what came over it was not understood.
    #[error("generator {name}: {source}")]
    Channel {
        /// The generator.
        name: String,
        /// What happened.
        source: io::Error,
    },
    /// A generator ended without a word.
    #[error("generator {name} ended {when}")]
    Gone {
        /// The generator.
        name: String,
        /// Before what: `before it was ready`.
        when: &'static str,
    },
    /// A generator did not answer in time.
    #[error("generator {name} did not answer within {seconds} s {when}")]
    Silent {
        /// The generator.
        name: String,
        /// How long it was waited for.
        seconds: u64,
        /// At what.
        when: &'static str,
    },
    /// A generator could not begin.
    #[error("generator {name}: {message}")]
    Refused {
        /// The generator.
        name: String,
        /// What it said.
        message: String,
        /// Whether the specification is to blame, and not the machine.
        by_specification: bool,
    },
    /// A generator speaks another version.
    #[error(
        "generator {name} speaks version {found} of the protocol (proofload {proofload}), here it is {expected}"
    )]
    Version {
        /// The generator.
        name: String,
        /// Version of its program.
        proofload: String,
        /// Its version of the protocol.
        found: u32,
        /// Ours.
        expected: u32,
    },
}

impl FleetError {
    /// The generator that it is about.
    pub fn generator(&self) -> &str {
        match self {
            FleetError::Channel { name, .. }
            | FleetError::Gone { name, .. }
            | FleetError::Silent { name, .. }
            | FleetError::Refused { name, .. }
            | FleetError::Version { name, .. } => name,
        }
    }
}

/// Why a generator ends without having been told to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Its answers cannot be written.
    #[error("{0}")]
    Unwritable(#[from] io::Error),
    /// Whoever gives orders has said nothing for so long.
    #[error("nothing came for {} s", .lease.as_secs())]
    Silent {
        /// How long that may be.
        lease: Duration,
    },
}
