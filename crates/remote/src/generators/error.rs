//! What can go wrong with generators on other machines. Each error names one.

use std::io;

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
    /// A generator ended without saying why.
    #[error("generator {name} ended {when}")]
    Gone {
        /// The generator.
        name: String,
        /// Before what: `before it was ready`.
        when: &'static str,
    },
    /// A generator did not respond in time.
    #[error("generator {name} did not respond within {seconds} s {when}")]
    TimedOut {
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
        by_request: bool,
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
            | FleetError::TimedOut { name, .. }
            | FleetError::Refused { name, .. }
            | FleetError::Version { name, .. } => name,
        }
    }
}
