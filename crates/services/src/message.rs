//! What Proofload and a warden say to each other: one JSON value a line, orders down, notices up.
//!
//! Both ends are always the same build, so the form has no version. Nothing here does anything.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use machine::groups::ControlGroup;
use machine::process::describe;
use serde::{Deserialize, Serialize};

/// The first line: the service to start, with nothing left to decide.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spec {
    /// The program's file.
    pub program: PathBuf,
    /// Its arguments, the first one its name as the experiment writes it.
    pub command: Vec<String>,
    pub directory: PathBuf,
    /// Variables of Proofload's own environment that the service must not see.
    pub env_withheld: Vec<String>,
    pub env: Vec<(String, String)>,
    /// CPUs of warden and service; empty: as Proofload.
    pub cpus: Vec<usize>,
    /// File of the service's output.
    pub log: PathBuf,
    pub stop_timeout: Duration,
    /// See [`crate::marker::Marker`]; also names the group.
    pub marker: String,
    /// Whether to count CPU time in a control group where that is possible.
    pub group: bool,
    /// The folder of its own that the service needs, if it does.
    pub scratch: Option<Scratch>,
    /// Who is to be asked to end before the others.
    pub head: Option<Head>,
    /// Files that the service's output goes to beside its standard output.
    pub logs: Vec<PathBuf>,
    /// What removes what is not below the warden, when all that is has ended.
    pub cleanup: Option<Cleanup>,
}

impl Spec {
    /// Sets a variable of the service, in place of one that it has.
    pub fn set(&mut self, name: &str, value: String) {
        self.env.retain(|(other, _)| other != name);
        self.env.push((name.to_owned(), value));
    }
}

/// A command that is run where the service's was and with its variables: Compose reads its file again, which may need them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cleanup {
    pub command: Vec<String>,
    /// A command that prints a line for each container that is there still.
    pub left: Vec<String>,
    pub directory: PathBuf,
    pub env: Vec<(String, String)>,
}

/// A folder to make before the service starts and to remove when all of it has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Scratch {
    pub directory: PathBuf,
    /// Files to write into it: names, with one folder at most, and texts.
    pub files: Vec<(String, String)>,
}

/// A process that ends all others itself, and would take it amiss were they ended without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Head {
    /// The first process.
    First,
    /// The one whose number stands in this file.
    Named(PathBuf),
}

/// What a warden is told after that. The end of its input means `Stop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// End the service, then yourself.
    Stop,
    /// Say the last lines of the output.
    Tail,
}

/// What a warden says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Notice {
    /// The first process runs.
    Started { pid: u32, group: Option<ControlGroup> },
    /// Nothing was started, and the warden ends.
    Failed(Failure),
    /// The first process has ended; what it started may still run.
    Exited { exit: Exit, tail: String },
    /// Nothing runs any more.
    Empty,
    /// The answer to [`Order::Tail`].
    Tail(String),
    /// The last words.
    Stopped(Stopped),
}

/// Why nothing was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Failure {
    /// The program could not be executed: an error number.
    Execute(i32),
    /// Anything else, in words.
    Other(String),
}

impl Failure {
    /// A fault of Proofload or of the system: what the process did that should have started something.
    pub fn of_warden(what: impl fmt::Display) -> Failure {
        Failure::Other(format!("its warden failed: {what}"))
    }

    /// The same, with what it could not do and why.
    pub fn because(what: impl fmt::Display, error: impl fmt::Display) -> Failure {
        Failure::of_warden(format!("{what}: {error}"))
    }
}

/// How a service ended, and what is left of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// How its first process ended; `None`: even SIGKILL did not end it.
    pub exit: Option<Exit>,
    /// Processes that did not heed SIGTERM in time and were killed.
    pub killed: u32,
    /// Processes that even SIGKILL did not end. Nothing measured after this is to be trusted.
    pub leftovers: Vec<Leftover>,
    /// Bytes of output.
    pub output_bytes: u64,
    /// Bytes of it that the log does not have: it keeps the first 1 MiB and the last 64 KiB.
    pub output_dropped_bytes: u64,
}

/// A process that outlived even SIGKILL: another user's, or stuck in the kernel. Or a container that its engine did not remove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// Its number; 0 of a container.
    pub pid: u32,
    /// Its command and number, for people.
    pub description: String,
}

impl Leftover {
    pub(crate) fn of(pid: u32) -> Leftover {
        Leftover { pid, description: describe(pid) }
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
    /// Its warden was killed, upon which Proofload killed all that the warden looked after.
    WithWarden,
}

impl Exit {
    /// Whether it ended by itself and says that all was well.
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
                let place = usize::try_from(*signal).ok().and_then(|number| number.checked_sub(1));
                let name = place.and_then(|place| SIGNALS.get(place));
                name.map_or(Ok(()), |name| write!(f, " (SIG{name})"))
            }
            Self::WithWarden => f.write_str("its warden, which was killed"),
        }
    }
}

/// Names of signals from 1 on, in the order that Linux gives them on the processors that this is built for.
const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
    "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
    "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];
