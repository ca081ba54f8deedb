//! Services on another machine: a Proofload there *attends* to them, and does as one here says over its stdin and stdout.
//!
//! It starts them by the same [`crate::start`], below wardens of its own, so that a service is watched there as it is here. Whatever
//! ends its input ends them: a run that is over, a Proofload here that was killed, a connection that broke. Silence does too: a network
//! that is cut tells nobody, so who attends hears something every few seconds or takes us for dead.
//!
//! One JSON object a line, with the kind of line as its one key. Each order has one answer, but for `beat` and `cancel`, which have none:
//!
//! ```text
//! ──► {"begin":{"version":1,"services":[…]}}
//! ◄── {"ready":{"version":1,"proofload":"0.1.0","cpus":[0,1],"about":{…},"ended":[]}}
//! ──► {"choose":{"services":[…],"address":"10.0.0.7","random":17}}
//! ◄── {"chosen":{"ports":{"api":10017}}}
//! ──► {"start":{"number":1,"service":{…},"ports":{…},…}}
//! ◄── {"started":{"number":1,"pid":4711,…}}            or {"failed":{"message":"…",…}}
//! ──► {"view":{"first":"services","spin":true}}        before each window of load and after it
//! ◄── {"viewed":{…}}
//! ──► {"stop":1}
//! ◄── {"stopped":{"stopped":{…},"log":"aGVsbG8K"}}
//! ──► "end"                                            or the end of stdin
//! ◄── "ended"
//! ```
//! Ports, probes and owners of sockets are those of the other machine: nothing of it is judged from here.

use std::collections::BTreeMap;
use std::net::IpAddr;

use plan::Service;
use serde::{Deserialize, Serialize};

use crate::message::Exit;
use crate::running::{Listening, Sight, Stopped};
use crate::sample::Sample;
use crate::texts::{MachineTexts, TcpTexts};
use crate::threads::ProcessThreads;
use crate::{Ports, Startup};

mod attendant;
mod distant;
mod kept_log;
mod line;
mod orders;
mod serve;

pub use attendant::{Attendant, Viewing};
pub use distant::Distant;
pub use serve::{AttendHost, attend};

/// Version of what is said. Both sides must have the same: they are the same program.
pub const ATTEND_VERSION: u32 = 1;

/// What who attends is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Comes first, and once: all services that may be started.
    Begin { version: u32, services: Vec<Service> },
    /// We are still there.
    Beat,
    /// Choose ports for services that will listen on an address.
    Choose { services: Vec<Service>, address: IpAddr, random: u64 },
    /// Start a service and wait until it is ready.
    Start(Box<Begun>),
    /// Break off the start under way.
    Cancel,
    /// Tell what services and machine have used so far.
    View { first: First, spin: bool },
    /// Tell what one service has used so far.
    Sample(u64),
    /// Tell all that can be seen of a service.
    Sight { number: u64, variables: Vec<String> },
    /// Tell whose socket answers on its port.
    Listening(u64),
    /// Tell what its threads have used.
    Threads(u64),
    /// Tell the peak of its memory.
    PeakMemory(u64),
    /// Tell how many of its workers are gone.
    WorkersLost(u64),
    /// Tell its last words.
    Tail(u64),
    /// Stop it and tell how it ended.
    Stop(u64),
    /// Stop all, and go.
    End,
}

/// A service to start, and where.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Begun {
    /// What it is called from now on.
    pub number: u64,
    pub service: Service,
    /// Of all services of its variant.
    pub ports: Ports,
    pub address: IpAddr,
    pub addresses: BTreeMap<String, IpAddr>,
    pub padding_bytes: usize,
    pub group: bool,
    pub values: BTreeMap<String, String>,
}

/// In which order a machine is looked at: what is nearest to the load comes nearest to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum First {
    /// Before the load: the machine last.
    Services,
    /// After it: the machine first.
    Machine,
}

/// What who attends answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Ready(Ready),
    Chosen { ports: Ports },
    Started(Box<Started>),
    Viewed(Box<HostView>),
    Sampled(Box<ServiceView>),
    Sighted(Sight),
    Listened(Listening),
    Threaded(Vec<ProcessThreads>),
    PeakMemory(u64),
    WorkersLost(u32),
    Tail(String),
    Stopped { stopped: Stopped, log: String },
    Failed(Failed),
    Ended,
}

/// Who attends, and where.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Ready {
    pub version: u32,
    /// Version of the program.
    pub proofload: String,
    /// Processors that its services may use.
    pub cpus: Vec<usize>,
    /// What describes the machine, in the words of whoever runs the program.
    pub about: serde_json::Value,
    /// What runs that were killed had left there, and was ended.
    pub ended: Vec<String>,
}

/// A service that is ready.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Started {
    pub pid: u32,
    pub port: u16,
    pub startup: Startup,
    pub workers: Option<u32>,
}

/// What could not be done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Failed {
    pub message: String,
    /// The last lines of the service's output.
    pub tail: Option<String>,
    pub hint: Option<String>,
    /// All that is kept of its output, in base64.
    pub log: Option<String>,
    /// Whether it was broken off because that was asked for.
    #[serde(default)]
    pub cancelled: bool,
}

/// What a machine elsewhere and its services had counted by one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostView {
    /// When, on the CLOCK_MONOTONIC of that machine.
    pub at_ns: u64,
    /// Its services.
    pub services: Vec<ServiceView>,
    /// The machine.
    pub machine: MachineTexts,
    /// TCP in its network.
    pub tcp: TcpTexts,
    /// CPU time of Proofload itself there, its wardens included: before the machine was looked at, and after.
    pub ours_ns: (u64, u64),
    /// CPU time of a fixed piece of arithmetic, where that was asked for.
    pub spin_ns: Option<u64>,
}

/// One service in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceView {
    /// Which it is; see [`Distant::number`].
    pub number: u64,
    /// What it has used so far.
    pub sample: Sample,
    /// How it ended, if it has, and the last lines of its output.
    pub exited: Option<(Exit, String)>,
}
