//! Why a generator could not be started. What goes wrong later is counted, never returned.

use std::io;

/// Why [`Generator::start`](crate::Generator::start) failed.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The spec asks for something that cannot be.
    #[error("{field}: {problem}")]
    Spec {
        /// The field of the spec, as `load.threads`.
        field: &'static str,
        /// What is wrong with it, with its value and the limit.
        problem: String,
    },
    /// More connections than the process may have open files, even after the soft limit was raised to the hard one.
    #[error("{needed} open files are needed, the limit of this process is {limit} (ulimit -n)")]
    Descriptors {
        /// Files needed: what is open already, the connections, and a few for the threads.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// A thread could not be pinned.
    #[error("cannot pin a load thread to CPU {cpu}: {source}")]
    Pin {
        /// The CPU asked for.
        cpu: usize,
        /// The system's response.
        source: io::Error,
    },
    /// The kernel cannot wait for less than a millisecond.
    #[error("Linux 5.11 or newer is needed, or a sandbox forbids its epoll_pwait2: {0}")]
    Kernel(#[source] io::Error),
    /// A thread or its epoll instance could not be made.
    #[error("cannot start a load thread: {0}")]
    Thread(#[source] io::Error),
}
