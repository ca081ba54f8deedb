//! Messages between Proofload and a warden: one JSON value per line, orders down, notices up.
//!
//! Both ends are always the same build, so the format has no version. This module only defines data.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use machine::groups::ControlGroup;
use machine::process::describe;
use serde::{Deserialize, Serialize};

/// The first line: the fully resolved service to start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct WardenSpec {
    /// The program's file.
    pub program: PathBuf,
    /// Its arguments. The first one is the name in the experiment.
    pub command: Vec<String>,
    pub directory: PathBuf,
    /// Variables of Proofload's environment that the service must not inherit.
    pub env_withheld: Vec<String>,
    pub env: Vec<(String, String)>,
    /// CPUs of warden and service. Empty for the same as Proofload.
    pub cpus: Vec<usize>,
    /// File of the service's output.
    pub log: PathBuf,
    pub stop_timeout: Duration,
    /// See [`crate::marker::Marker`]. It also names the group.
    pub marker: String,
    /// Whether to count CPU time in a control group if possible.
    pub group: bool,
    /// The service's private folder, if it needs one.
    pub scratch: Option<Scratch>,
    /// The process to be ended before the others.
    pub head: Option<HeadProcess>,
    /// Files that receive the service's output in addition to its standard output.
    pub logs: Vec<PathBuf>,
    /// Removes everything that is not below the warden, after the processes below it have ended.
    pub cleanup: Option<Cleanup>,
}

impl WardenSpec {
    /// Sets a variable of the service, replacing an existing one.
    pub fn set(&mut self, name: &str, value: String) {
        self.env.retain(|(other, _)| other != name);
        self.env.push((name.to_owned(), value));
    }
}

/// A command that runs in the service's directory with its variables. Compose reads its file again, which may
/// need them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cleanup {
    pub command: Vec<String>,
    /// A command that prints a line for each remaining container.
    pub left: Vec<String>,
    pub directory: PathBuf,
    pub env: Vec<(String, String)>,
}

/// A folder that is created before the service starts and removed after it has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Scratch {
    pub directory: PathBuf,
    /// Files to write into it: names, with one folder at most, and texts.
    pub files: Vec<(String, String)>,
}

/// A process that ends all others itself, and would fail if they were ended without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HeadProcess {
    /// The root process.
    First,
    /// The process with the number in this file.
    Named(PathBuf),
}

/// Orders after the spec. End of input means `Stop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// End the service, then the warden.
    Stop,
    /// Send the last lines of the output.
    Tail,
}

/// Notices of a warden.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Notice {
    /// The root process runs.
    Started {
        pid: u32,
        group: Option<ControlGroup>,
    },
    /// Nothing was started, and the warden exits.
    Failed(StartFailure),
    /// The root process exited. Descendants may still be running.
    Exited { exit: Exit, tail: String },
    /// No process is left.
    Empty,
    /// The answer to [`Order::Tail`].
    Tail(String),
    /// The final report.
    Stopped(Stopped),
}

/// Reason why nothing was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StartFailure {
    /// The program could not be executed: an error number.
    Execute(i32),
    /// Any other reason.
    Other(String),
}

impl StartFailure {
    /// An error of Proofload or of the system in the process that should have started something.
    pub fn of_warden(what: impl fmt::Display) -> StartFailure {
        StartFailure::Other(format!("its warden failed: {what}"))
    }

    /// The same, with the failed action and its error.
    pub fn because(what: impl fmt::Display, error: impl fmt::Display) -> StartFailure {
        StartFailure::of_warden(format!("{what}: {error}"))
    }
}

/// How a service ended, and which processes are left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// Exit of its root process. `None` if even SIGKILL did not end it.
    pub exit: Option<Exit>,
    /// Number of processes that ignored SIGTERM until the timeout and were killed.
    pub killed: u32,
    /// Processes that even SIGKILL did not end. Later measurements are not to be trusted.
    pub leftovers: Vec<Leftover>,
    /// Bytes of output.
    pub output_bytes: u64,
    /// Bytes of output that the log does not contain. It keeps the first 1 MiB and the last 64 KiB.
    pub output_dropped_bytes: u64,
}

/// A process that survived SIGKILL: another user's, or stuck in the kernel. Or a container that its engine
/// did not remove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// Process number. 0 for a container.
    pub pid: u32,
    /// Command and number, for messages.
    pub description: String,
}

impl Leftover {
    pub(crate) fn of(pid: u32) -> Leftover {
        Leftover {
            pid,
            description: describe(pid),
        }
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It exited with this status.
    Status(i32),
    /// This signal ended it.
    Signal(i32),
    /// Its warden was killed, so Proofload killed all processes below the warden.
    WithWarden,
}

impl Exit {
    /// Whether it exited with status 0.
    pub fn is_success(self) -> bool {
        self == Self::Status(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "status {status}"),
            Self::Signal(signal) => {
                write!(f, "signal {signal}")?;
                let place = usize::try_from(*signal)
                    .ok()
                    .and_then(|number| number.checked_sub(1));
                let name = place.and_then(|place| SIGNALS.get(place));
                name.map_or(Ok(()), |name| write!(f, " (SIG{name})"))
            }
            Self::WithWarden => f.write_str("its warden, which was killed"),
        }
    }
}

/// Names of signals from 1 on, in Linux's order on the processors that Proofload supports.
const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];
