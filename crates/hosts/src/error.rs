//! Why a program could not be had on another machine. Each names the machine.

use std::io;

/// What went wrong, with which host.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A process could not be started.
    #[error("{host}: cannot be started: {source}")]
    NotStarted {
        /// The machine.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// Nobody knows at which address it is found.
    #[error("{host}: {reason}")]
    NoAddress {
        /// The machine.
        host: String,
        /// Why.
        reason: String,
    },
}

impl HostError {
    /// What helps, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            HostError::NotStarted { .. } => None,
            HostError::NoAddress { .. } => {
                Some("`services.NAME.address` says at which address its services are found".into())
            }
        }
    }
}
