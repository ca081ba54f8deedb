//! Services on other machines: started, sampled and stopped there by an agent, as [`::services`] does it here.
//!
//! The agent starts them by the same [`::services::start`], below wardens of its own, so that a service is watched there as it is here.
//! Whatever ends the agent ends them: a run that is over, a Proofload here that was killed, a connection that broke, a timeout. Ports,
//! probes and owners of sockets are those of the other machine: nothing of it is judged from here.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use ::services::{
    Exit, Placement, Ports, ProcessThreads, Running, Sample, Sight, Stopped, Warden, check_address,
    check_directory, cpus_allowed, end_orphans, orphans, start,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use machine::clock::spin_ns;
use machine::groups::quota_files;
use machine::{Look, TcpCounters};
use model::Found;
use plan::Service;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::protocol::{AgentHost, Control, Failed};
use crate::{Blame, Error};

pub use host::{PendingView, RemoteHost};
pub use service::{RemoteService, ServiceHandle};

mod host;
mod service;

// The messages to services on another machine and from them.

/// A request to services. Numbers are those of [`StartService`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ServicesRequest {
    /// Comes first, and once: all services that may be started, without the texts of their templates.
    Begin { services: Vec<Service> },
    /// Choose ports for the services of a variant that will listen on an address. A random number tells where the search begins.
    Choose { services: Vec<Service>, address: IpAddr, random: u64 },
    /// Start a service and wait until it is ready.
    Start(Box<StartService>),
    /// Read what services and machine have used so far, and before that time a fixed piece of arithmetic if `spin` says so.
    View { first: First, spin: bool },
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
    /// What have its threads used?
    Threads,
    /// What is the peak of its memory, in bytes?
    PeakMemory,
    /// How many of its workers are gone?
    WorkersLost,
}

/// The answer to the [`Question`] of its name.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Answer {
    Sight(Sight),
    Threads(Vec<ProcessThreads>),
    PeakMemory(u64),
    WorkersLost(u32),
}

impl Question {
    fn answer(self, running: &Running) -> Answer {
        match self {
            Question::Sight(variables) => {
                Answer::Sight(running.sight(&variables.iter().map(String::as_str).collect::<Vec<_>>()))
            }
            Question::Threads => Answer::Threads(running.threads()),
            Question::PeakMemory => Answer::PeakMemory(running.peak_memory()),
            Question::WorkersLost => Answer::WorkersLost(running.workers_lost()),
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

/// A response from services, each to the request of its name; a log is in base64.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ServicesResponse {
    Begun(Begun),
    Chosen { ports: Ports },
    Started(Box<Started>),
    Viewed(Box<HostView>),
    Sampled(Box<ServiceView>),
    Answered(Answer),
    Stopped { stopped: Stopped, log: String },
}

/// What is known of a machine before any service starts.
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
    /// Whether that is neither PORT nor where it was found when it was started before.
    pub found: Option<Found>,
    /// Further ports that it listens on.
    pub other_ports: Vec<u16>,
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
    /// Which it is; see [`RemoteService::number`](RemoteService::number).
    pub number: u64,
    /// What it has used so far.
    pub sample: Sample,
    /// How it ended, if it has, and the last lines of its output.
    pub exited: Option<(Exit, String)>,
}

// The services of an agent: carries out one request after the other, and leaves nothing when it is dropped.

/// What runs services on an agent's machine.
pub(crate) struct ServicesAgent {
    warden: Warden,
    about: fn(&[Service]) -> serde_json::Value,
    control: Control,
    /// By their numbers, so that later ones were started later.
    living: BTreeMap<u64, Living>,
    quota_files: Vec<PathBuf>,
}

struct Living {
    running: Running,
    log: MemoryLog,
}

impl Living {
    fn view(&mut self, number: u64) -> ServiceView {
        let sample = self.running.sample();
        let exited = self.running.exited().map(|exit| (exit, self.running.tail()));
        ServiceView { number, sample, exited }
    }
}

type Carried = Result<ServicesResponse, Failed>;

impl ServicesAgent {
    pub fn new(host: &AgentHost, control: Control) -> ServicesAgent {
        ServicesAgent {
            warden: host.warden.clone(),
            about: host.about,
            control,
            living: BTreeMap::new(),
            quota_files: quota_files(),
        }
    }

    pub fn carry_out(&mut self, request: ServicesRequest) -> Carried {
        use ServicesResponse as To;
        match request {
            ServicesRequest::Begin { services } => self.begin(services),
            ServicesRequest::Choose { services, address, random } => {
                Ok(To::Chosen { ports: Ports::choose(&services, address, random)? })
            }
            ServicesRequest::Start(wanted) => self.start(*wanted),
            ServicesRequest::View { first, spin } => Ok(To::Viewed(Box::new(self.view(first, spin)))),
            ServicesRequest::Sample(number) => self.of(number, |of| To::Sampled(Box::new(of.view(number)))),
            ServicesRequest::Ask(number, question) => {
                self.of(number, |of| To::Answered(question.answer(&of.running)))
            }
            ServicesRequest::Stop(number) => self.stop(number),
        }
    }

    fn of(&mut self, number: u64, job: impl FnOnce(&mut Living) -> ServicesResponse) -> Carried {
        self.living.get_mut(&number).map(job).ok_or_else(|| unknown(number))
    }

    /// Makes room, and looks whether services could be started at all: what is missing is an error before anything runs.
    fn begin(&self, services: Vec<Service>) -> Carried {
        let services: Vec<Service> = services.into_iter().map(at_home).collect();
        services.iter().try_for_each(check)?;
        let left = orphans();
        end_orphans(&left);
        let ended = left.iter().map(|process| {
            format!("{} (pid {})", plan::masked_words(&process.argv).join(" "), process.id.pid)
        });
        let (cpus, about, ended) = (cpus_allowed(), (self.about)(&services), ended.collect());
        Ok(ServicesResponse::Begun(Begun { cpus, about, ended }))
    }

    fn start(&mut self, wanted: StartService) -> Carried {
        let no_memory = |error| Failed::new(Blame::Machine, format!("no memory for a log: {error}"));
        let log = MemoryLog::new().map_err(no_memory)?;
        let service = at_home(wanted.service);
        let placement = Placement { log: log.path(), ..wanted.placement };
        let cancelled = || self.control.is_cancelled();
        let running = match start(&self.warden, &service, &wanted.ports, &placement, &cancelled) {
            Ok(running) => running,
            Err(error) => return Err(Failed { error, log: Some(log.encoded()) }),
        };
        let started = Started {
            pid: running.pid,
            port: running.address.port(),
            // The address is the machine's own business.
            found: running.found.clone().map(|found| Found { address: None, ..found }),
            other_ports: running.other_ports.clone(),
            workers: running.workers(),
        };
        self.living.insert(wanted.number, Living { running, log });
        Ok(ServicesResponse::Started(Box::new(started)))
    }

    fn stop(&mut self, number: u64) -> Carried {
        let Living { running, log } = self.living.remove(&number).ok_or_else(|| unknown(number))?;
        let stopped = running.stop();
        Ok(ServicesResponse::Stopped { stopped, log: log.encoded() })
    }

    fn view(&mut self, first: First, spin: bool) -> HostView {
        let spin_ns = if spin { spin_ns() } else { None };
        let sampled = (first == First::Services).then(|| self.sample());
        let wardens_ns = || self.living.values().map(|of| of.running.warden_cpu_ns()).sum();
        let machine = Look::now(&cpus_allowed(), &self.quota_files, wardens_ns);
        let tcp = TcpCounters::read();
        let services = sampled.unwrap_or_else(|| self.sample());
        HostView { services, machine, tcp, spin_ns }
    }

    fn sample(&mut self) -> Vec<ServiceView> {
        self.living.iter_mut().map(|(number, of)| of.view(*number)).collect()
    }
}

impl Drop for ServicesAgent {
    /// Asks all of them before it waits for any, the last one started first.
    fn drop(&mut self) {
        self.living.values_mut().rev().for_each(|of| of.running.begin_stop());
        while self.living.pop_last().is_some() {}
    }
}

/// The service with its directory as it is here: `~` is the home of the user that logged in. Whatever is wrong with it is told as of another
/// machine than that of the experiment file.
fn at_home(mut service: Service) -> Service {
    let Some(command) = service.command_mut() else { return service };
    command.host.get_or_insert_default();
    if let (Ok(below), Some(home)) = (command.directory.strip_prefix("~"), std::env::var_os("HOME")) {
        // Joined to nothing a path would end with a slash.
        command.directory = PathBuf::from(home).join(below).components().collect();
    }
    service
}

/// Whether a service can be started here at all, as far as that can be seen without starting it.
fn check(service: &Service) -> Result<(), Error> {
    let Some(command) = service.command() else { return Ok(()) };
    check_directory(&service.name, command)?;
    command.address.map_or(Ok(()), |address| check_address(&service.name, address))
}

fn unknown(number: u64) -> Failed {
    Failed::new(Blame::Request, format!("there is no service of the number {number}"))
}

// The log of a service on another machine: in memory, so that whatever ends there nothing is left to be removed.
//
// A warden writes a log to a file; this one has no name, only a descriptor of ours. What is kept of an output is
// bounded (1 MiB and 64 KiB), and so is this.

/// A file without a name.
#[derive(Debug)]
pub(crate) struct MemoryLog(File);

impl MemoryLog {
    /// A new one, empty.
    pub fn new() -> io::Result<MemoryLog> {
        let name = "proofload-log";
        // Since Linux 6.3 a machine may insist on a flag that nothing in it will be run; older kernels do not know the flag.
        let made = match memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL) {
            Err(Errno::INVAL) => memfd_create(name, MemfdFlags::CLOEXEC),
            made => made,
        };
        Ok(MemoryLog(File::from(made?)))
    }

    /// Where a child of ours finds it.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }

    /// All of it in base64, as far as it can be read.
    pub fn encoded(mut self) -> String {
        let mut bytes = Vec::new();
        if self.0.rewind().is_ok() {
            let _ = self.0.read_to_end(&mut bytes);
        }
        STANDARD.encode(bytes)
    }
}
