//! The messages to services on another machine and from them.

use std::net::IpAddr;

use machine::{Look, TcpCounters};
use plan::Service;
use serde::{Deserialize, Serialize};

use ::services::{
    Exit, Listening, Placement, Ports, ProcessThreads, Running, Sample, Sight, Startup, Stopped,
};

/// A request to services. Numbers are those of [`StartService`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServicesRequest {
    /// Comes first, and once: all services that may be started.
    Begin {
        /// Without the texts of their templates.
        services: Vec<Service>,
    },
    /// Choose ports for services that will listen on an address.
    Choose {
        /// Those of one variant.
        services: Vec<Service>,
        /// Where they will listen.
        address: IpAddr,
        /// Where the search begins.
        random: u64,
    },
    /// Start a service and wait until it is ready.
    Start(Box<StartService>),
    /// Read what services and machine have used so far.
    View {
        /// In which order.
        first: First,
        /// Whether to time a fixed piece of arithmetic.
        spin: bool,
    },
    /// Read what one service has used so far.
    Sample(u64),
    /// Look at one service.
    Ask(u64, Question),
    /// Stop it.
    Stop(u64),
}

/// What may be asked about a service that runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Which are its processes, with these of their variables?
    Sight(Vec<String>),
    /// Whose socket listens on its port?
    Listening,
    /// What have its threads used?
    Threads,
    /// What is the peak of its memory, in bytes?
    PeakMemory,
    /// How many of its workers are gone?
    WorkersLost,
    /// What are its last lines?
    Tail,
}

/// The answer to the [`Question`] of its name.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Answer {
    Sight(Sight),
    Listening(Listening),
    Threads(Vec<ProcessThreads>),
    PeakMemory(u64),
    WorkersLost(u32),
    Tail(String),
}

impl Question {
    pub(super) fn answer(self, running: &Running) -> Answer {
        match self {
            Question::Sight(variables) => {
                Answer::Sight(running.sight(&variables.iter().map(String::as_str).collect::<Vec<_>>()))
            }
            Question::Listening => Answer::Listening(running.listening()),
            Question::Threads => Answer::Threads(running.threads()),
            Question::PeakMemory => Answer::PeakMemory(running.peak_memory()),
            Question::WorkersLost => Answer::WorkersLost(running.workers_lost()),
            Question::Tail => Answer::Tail(running.tail()),
        }
    }
}

/// A service to start, and where.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StartService {
    /// Its number from now on.
    pub number: u64,
    /// What it is.
    pub service: Service,
    /// Of all services of its variant.
    pub ports: Ports,
    /// Where and how it runs, but for what the machine there decides.
    #[serde(flatten)]
    pub placement: Placement,
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

/// A response from services, each to the request of its name.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ServicesResponse {
    Begun(Begun),
    Chosen {
        ports: Ports,
    },
    Started(Box<Started>),
    Viewed(Box<HostView>),
    Sampled(Box<ServiceView>),
    Answered(Answer),
    /// With its log in base64.
    Stopped {
        stopped: Stopped,
        log: String,
    },
}

/// What is known of the machine before any service starts.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Begun {
    /// Processors that its services may use.
    pub cpus: Vec<usize>,
    /// Describes the machine, as the program there does it.
    pub about: serde_json::Value,
    /// What runs that were killed had left there, and was ended: a command and a number each.
    pub ended: Vec<String>,
}

/// A service that is ready.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Started {
    /// Number of its first process.
    pub pid: u32,
    /// Where it listens.
    pub port: u16,
    /// How long it took.
    pub startup: Startup,
    /// Workers that it has.
    pub workers: Option<u32>,
}

/// What another machine and its services had counted by one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostView {
    /// Its services.
    pub services: Vec<ServiceView>,
    /// The machine, with what Proofload itself used there, its wardens included.
    pub machine: Look,
    /// TCP in its network; `None` where the kernel does not say.
    pub tcp: Option<TcpCounters>,
    /// CPU time of a fixed piece of arithmetic, where that was asked for.
    pub spin_ns: Option<u64>,
}

/// One service in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceView {
    /// Which it is; see [`RemoteService::number`](super::RemoteService::number).
    pub number: u64,
    /// What it has used so far.
    pub sample: Sample,
    /// How it ended, if it has, and the last lines of its output.
    pub exited: Option<(Exit, String)>,
}
