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
}

impl HostError {
    /// What helps, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            HostError::NotStarted { .. } => None,
        }
    }
}
