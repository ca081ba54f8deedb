//! Services as running process trees: ready, pinned, sampled, stopped, none left behind.
//!
//! Each service is started by a *warden*: Proofload's own program once more, which adopts all that the service starts
//! and ends it when told to, or when Proofload dies of whatever. If a warden is killed, Proofload ends the service; if
//! both are killed at once, the kernel ends the first process, and [`orphans`] finds the rest.
//!
//! A container is no child of its service's first process, which is the engine's command; it is known by its control group, and
//! the warden has the engine remove it. Out of reach are other processes that a service has somebody else start, as `systemd-run` does.
//!
//! This crate knows processes. It must not know about load, statistics or records.

mod agent;
mod command;
mod container;
mod cpus;
mod error;
mod link;
mod marker;
mod message;
mod network;
mod port_search;
mod ports;
mod prepare;
mod probe;
mod running;
mod sample;
mod sight;
mod source;
mod warden;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use plan::ReadyResponse;
use rustix::process::{Resource, Rlimit, getrlimit};
use serde::{Deserialize, Serialize};

pub use agent::{Agent, AgentHost, Arming, Role, Take, Wanted};
pub use command::{check_command, check_directory, is_inherited};
pub use cpus::{Division, cpus_allowed, divide, give_up_real_time, siblings};
pub use error::{Blame, Error};
pub use marker::{end_orphans, orphans};
pub use message::{Exit, Leftover, Stopped};
pub use network::{Network, Visit, can_be_made as networks_can_be_made};
pub use ports::{Ports, check_address};
pub use prepare::{Cache, Place, Prepared, Preparing, bytes_below};
pub use probe::reach_socket;
pub use running::{Running, start};
pub use sample::{CpuSource, ProcessCpu, ProcessInfo, ProcessThreads, Sample};
pub use sight::{Listening, Sight, Watched};
pub use source::{Source, Worktree};
pub use warden::warden_main;

/// What the fuzz target calls.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::agent::hears_anything;
}

/// How to run a warden: a command that ends up in [`warden_main`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warden {
    /// Program and arguments.
    command: Vec<OsString>,
    /// The limit on open files when this was made. A load may raise our own later, and no service is to be started under another.
    files: Rlimit,
}

impl Warden {
    /// This very program with a hidden subcommand. By the kernel's name for it, which stays right when the file has been
    /// replaced by a new build.
    pub fn of_this_program(subcommand: &str) -> Self {
        Self::new(vec!["/proc/self/exe".into(), subcommand.into()])
    }

    /// This command: a program and its arguments. To be made before any load.
    pub fn new(command: Vec<OsString>) -> Self {
        Self { command, files: getrlimit(Resource::Nofile) }
    }
}

/// Where and how a service runs in one trial. What of it is this machine's alone stays here when it travels.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Placement {
    /// CPUs that it may use; empty: those that Proofload may use.
    #[serde(skip)]
    pub cpus: Vec<usize>,
    /// File for its output, replaced if it exists. Its folder must exist.
    #[serde(skip)]
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
    /// The response that shows that it is ready, if it names no path for that.
    pub ready_response: ReadyResponse,
    /// Where agents in its Node.js processes find us; `None`: no agent is loaded.
    #[serde(skip)]
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
            ready_response: ReadyResponse::default(),
            agent: None,
        }
    }
}
