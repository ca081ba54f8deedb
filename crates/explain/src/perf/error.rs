//! Why there is no native profile, with what to do about it. Messages are one line; the hint comes apart.

use std::io;

/// Why processes cannot be sampled.
#[derive(Debug, thiserror::Error)]
pub enum PerfError {
    /// The kernel, or a sandbox around us, forbids it.
    #[error("the kernel does not allow native profiles: {why}")]
    Forbidden {
        /// What forbids it, with its value.
        why: String,
        /// What to set.
        hint: String,
    },
    /// The kernel does not know perf events.
    #[error("this kernel has no perf events: perf_event_open: {0}")]
    Missing(#[source] io::Error),
    /// There is no such process any more.
    #[error("process {pid} cannot be sampled: it is not there")]
    NoProcess {
        /// Its number.
        pid: u32,
    },
    /// A process that this user may not look into.
    #[error("process {pid} cannot be sampled: it is another user's, or does not allow to be looked into")]
    Stranger {
        /// Its number.
        pid: u32,
    },
    /// Each thread takes an open file for each CPU that it may run on.
    #[error(
        "native profiles of {threads} threads on {cpus} CPUs take {needed} open files; there are too few"
    )]
    Descriptors {
        /// Threads to be sampled.
        threads: usize,
        /// CPUs that they may run on.
        cpus: usize,
        /// Files that this takes.
        needed: usize,
    },
    /// Memory shared with the kernel could not be had.
    #[error("no memory for samples, {kib} KiB for each of {cpus} CPUs: {source}")]
    Memory {
        /// The least that was tried.
        kib: usize,
        /// CPUs.
        cpus: usize,
        /// The system's answer.
        source: io::Error,
    },
    /// A period out of the limits.
    #[error("a sampling period of {period_ns} ns is outside of {min_ns} to {max_ns} ns")]
    Period {
        /// What was asked.
        period_ns: u128,
        /// The least.
        min_ns: u64,
        /// The most.
        max_ns: u64,
    },
    /// Anything else.
    #[error("cannot sample: {0}")]
    System(#[from] io::Error),
}

impl PerfError {
    /// What to do about it, if there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            PerfError::Forbidden { hint, .. } => Some(hint.clone()),
            PerfError::Missing(_) => Some("a kernel with CONFIG_PERF_EVENTS has them".to_owned()),
            PerfError::Stranger { .. } => {
                Some("run as its user, as root, or with the capability CAP_PERFMON".to_owned())
            }
            PerfError::Descriptors { needed, .. } => {
                Some(format!("raise the limit of open files by {needed} (ulimit -n), or pin the service to fewer CPUs"))
            }
            PerfError::Memory { .. } => Some(
                "raise kernel.perf_event_mlock_kb (sysctl), or end other programs of this user that use perf events"
                    .to_owned(),
            ),
            PerfError::NoProcess { .. } | PerfError::Period { .. } | PerfError::System(_) => None,
        }
    }
}
