//! Why a program could not be had on another machine. Each names the machine.

use std::io;
use std::path::PathBuf;

use crate::ssh::Fault;

use crate::kubernetes::ClusterError;

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
    /// Its address is unknown.
    #[error("{host}: {reason}")]
    NoAddress {
        /// The machine.
        host: String,
        /// Why.
        reason: String,
    },
    /// The program that should be put elsewhere cannot be read here.
    #[error("{}: {source}", path.display())]
    Program {
        /// The file, of this machine.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A machine was not had by SSH.
    #[error("{host}: {fault}")]
    Ssh {
        /// The machine, as `ssh://` and its destination.
        host: String,
        /// Why.
        fault: Box<Fault>,
    },
    /// Pods could not be had.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

impl HostError {
    /// What helps, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            HostError::NotStarted { .. } => None,
            HostError::NoAddress { .. } => {
                Some("`services.NAME.address` says at which address its services are found".into())
            }
            HostError::Program { .. } => Some("name a proofload that was built for Linux".into()),
            HostError::Ssh { host, fault } => fault.hint(host),
            HostError::Cluster(error) => error.hint(),
        }
    }
}
