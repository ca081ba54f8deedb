//! Services as running process trees: ready, pinned, sampled, stopped, none left behind.
//!
//! Each service is started by a *warden*: Proofload's own program once more, which adopts all that the service starts
//! and ends it when told to, or when Proofload dies of whatever. If a warden is killed, Proofload ends the service; if
//! both are killed at once, the kernel ends the first process, and [`orphans`] finds the rest.
//!
//! What is out of reach: processes that a service has others start for it, as `docker run` and `systemd-run` do. They
//! are not its children.
//!
//! This crate knows processes. It must not know about load, statistics or records.

mod agent;
mod clock;
mod command;
mod cpus;
mod error;
mod group;
mod launcher;
mod link;
mod marker;
mod memory;
mod message;
mod network;
mod orphans;
mod ports;
mod prepare;
mod probe;
mod process;
mod quota;
mod running;
mod sample;
mod scratch;
mod sockets;
mod source;
mod texts;
mod threads;
mod tree;
mod warden;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

pub use agent::{Agent, AgentHost, Arming, Role, Take, Wanted};
pub use command::WITHHELD;
pub use cpus::{Division, cpus_allowed, divide, siblings};
pub use error::TargetError;
pub use message::{Exit, Leftover};
pub use network::{Network, NetworkError, Visit, can_be_made as networks_can_be_made};
pub use orphans::{end_orphans, orphans};
pub use ports::{Ports, check_address};
pub use prepare::{Cache, Place, PrepareError, Prepared, Preparing, placeholders as prepared_placeholders};
pub use probe::Seen;
pub use process::{ProcessId, ProcessInfo, cpu_ns as process_cpu_ns, ticks_to_ns};
pub use quota::quota_files;
pub use running::{Listening, Running, Sight, Startup, Stopped, start};
pub use sample::{BY_PROCESS_MAX, CpuSource, Memory, ProcessCpu, Sample};
pub use source::{Baseline, Source, SourceError, Worktree};
pub use texts::{MachineTexts, TcpTexts};
pub use threads::{ENDED_THREADS, ProcessThreads, ThreadCpu};
pub use warden::warden_main;

/// How to run a warden: a command that ends up in [`warden_main`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warden {
    /// Program and arguments.
    pub command: Vec<OsString>,
}

impl Warden {
    /// This very program with a hidden subcommand. By the kernel's name for it, which stays right when the file has been
    /// replaced by a new build.
    pub fn of_this_program(subcommand: &str) -> Self {
        Self { command: vec!["/proc/self/exe".into(), subcommand.into()] }
    }
}

/// Where and how a service runs in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// CPUs that it may use; empty: those that Proofload may use.
    pub cpus: Vec<usize>,
    /// File for its output, replaced if it exists. Its folder must exist.
    pub log: PathBuf,
    /// Length of the variable `PROOFLOAD_PADDING`, 0 for none. The size of the environment shifts the stack, which alone
    /// can make a program some percent faster or slower; a random length in each trial turns that bias into noise.
    pub padding_bytes: usize,
    /// Where it listens.
    pub address: IpAddr,
    /// Where the services of its variant are found, by name.
    pub addresses: BTreeMap<String, IpAddr>,
    /// Whether to count CPU time in a control group, where that is possible without changing what is measured.
    pub group: bool,
    /// Further placeholders of its command and environment, beside those that every service knows.
    pub values: BTreeMap<String, String>,
    /// Where agents in its Node.js processes find us; `None`: no agent is loaded.
    pub agent: Option<AgentHost>,
}

impl Placement {
    /// On loopback, with no CPUs of its own, no padding and no further placeholders.
    pub fn new(log: PathBuf) -> Self {
        Self {
            cpus: Vec::new(),
            log,
            padding_bytes: 0,
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            addresses: BTreeMap::new(),
            group: true,
            values: BTreeMap::new(),
            agent: None,
        }
    }
}
