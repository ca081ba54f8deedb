//! Services as process trees: started, ready, pinned, sampled, stopped, with no process left behind.
//!
//! Each service is started by a *warden*: Proofload's own program run again. It adopts all processes that the
//! service starts, and ends them on request or when Proofload dies. If a warden is killed, Proofload ends the
//! service. If both are killed at once, the kernel ends the root process, and [`orphans`] finds the rest.
//!
//! A container is not a child of its service's root process, which is the engine's command. It is identified
//! by its control group, and the warden has the engine remove it. Processes that a service starts through
//! another daemon, as `systemd-run` does, are out of reach.
//!
//! This crate deals with processes. It does not know about load, statistics or records.

mod agent;
mod bell;
mod command;
mod container;
mod cpus;
mod error;
mod kin;
mod link;
mod marker;
mod message;
mod network;
mod ports;
mod prepare;
mod probe;
mod program;
mod running;
mod sample;
mod source;
mod warden;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use plan::ReadyResponse;
use rustix::process::{Resource, Rlimit, getrlimit};

pub use agent::{AgentHostFolder, AgentTake, Arming, CaptureOrder, Role, ThreadAgent};
pub use command::{check_command, is_inherited};
pub use cpus::{Division, cpus_allowed, divide, give_up_real_time, siblings};
pub use error::{Blame, Error};
pub use kin::{end_orphans, orphans};
pub use message::{Exit, Leftover, Stopped};
pub use network::{NamespaceVisit, NetworkPair, can_be_made as networks_can_be_made};
pub use ports::Ports;
pub use prepare::{Cache, DataPlace, PreparedData, Preparing, bytes_below};
pub use probe::reach_socket;
pub use running::{Listening, Running, ServiceProcesses, WatchedProcesses, start};
pub use sample::{CpuSource, ProcessCpu, ProcessInfo, ProcessThreads, UsageSample};
pub use source::{CommitSource, Worktree};
pub use warden::warden_main;

/// Entry points of the fuzz target.
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
    /// The limit on open files when this value was created. A load may raise our own limit later, and all
    /// services must be started under the same one.
    files: Rlimit,
}

impl Warden {
    /// This program with a hidden subcommand. It uses the kernel's path of the program, which stays valid if
    /// the file is replaced by a new build.
    pub fn of_this_program(subcommand: &str) -> Self {
        Self::new(vec!["/proc/self/exe".into(), subcommand.into()])
    }

    /// A warden that is run by this command. Create it before any load.
    pub fn new(command: Vec<OsString>) -> Self {
        Self {
            command,
            files: getrlimit(Resource::Nofile),
        }
    }
}

/// Where and how a service runs in one trial.
#[derive(Debug, Clone)]
pub struct Placement {
    /// CPUs that it may use. Empty for all CPUs that Proofload may use.
    pub cpus: Vec<usize>,
    /// File for its output, replaced if it exists. Its folder must exist.
    pub log: PathBuf,
    /// Length of the variable `PROOFLOAD_PADDING`, 0 for none. The size of the environment shifts the stack,
    /// which alone can make a program some percent faster or slower. A random length in each trial turns that
    /// bias into noise.
    pub padding_bytes: usize,
    /// Address on which it listens.
    pub address: IpAddr,
    /// Addresses of the services of its variant, by name.
    pub addresses: BTreeMap<String, IpAddr>,
    /// Whether to count CPU time in a control group, if that is possible without changing the measurement.
    pub group: bool,
    /// Further placeholders of its command and environment, in addition to those that every service has.
    pub values: BTreeMap<String, String>,
    /// The response that shows that it is ready, if it names no path for that.
    pub ready_response: ReadyResponse,
    /// Endpoint for agents in its Node.js processes. `None` if no agent is loaded.
    pub agent: Option<AgentHostFolder>,
}

impl Placement {
    /// On loopback, without CPU pinning, padding or further placeholders.
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
