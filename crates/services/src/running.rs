//! One service from its start to its end, in Proofload's hands.
//!
//! Starting waits until the service is ready; dropping stops it. What to do with it in between is the lab's business.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use plan::Service;
use serde::{Deserialize, Serialize};

use crate::agent::AgentHost;
use crate::command::{self, Prepared};
use crate::error::TargetError;
use crate::link::{Link, News};
use crate::marker::Marker;
use crate::message::{Exit, Failure, Leftover, Order, Spec};
use crate::ports::check_free;
use crate::probe::{self, Seen};
use crate::process::{ProcessId, cpu_ns, describe};
use crate::sample::{Memory, Meter, Sample};
use crate::threads::ProcessThreads;
use crate::{Placement, Ports, Warden, memory, sockets, tree};
use workers::Crew;

mod sight;
mod workers;

pub use sight::{Listening, Sight};

/// How long a warden may take to start a process. Milliseconds, unless the machine is on its knees.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// Time between two looks at whether a service is ready.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A service that was started and became ready. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    name: String,
    command: Box<str>,
    address: SocketAddr,
    first: u32,
    link: Link,
    meter: Meter,
    startup: Startup,
    crew: Crew,
    agent: Option<AgentHost>,
}

/// How long a service took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Startup {
    /// From the call of [`start`] until its first process ran.
    pub spawned: Duration,
    /// From then until it was ready, to 10 ms.
    pub ready: Duration,
}

/// How a service ended, and what is left of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

/// Starts a service and waits until it is ready: it accepts connections or answers its path with 2xx, the socket is its
/// own, and all its workers are there and idle. `cancelled` is asked about every 10 ms, of idle workers every 100 ms.
///
/// # Errors
/// Every way in which that can fail; then nothing of the service is left.
pub fn start(
    warden: &Warden,
    service: &Service,
    ports: &Ports,
    placement: &Placement,
    cancelled: &dyn Fn() -> bool,
) -> Result<Running, TargetError> {
    let begin = Instant::now();
    let name = || service.name.clone();
    let port = ports.of(&service.name).ok_or_else(|| TargetError::NoPort { service: name() })?;
    let address = SocketAddr::new(placement.address, port);
    let marker = Marker::new();
    let Prepared { spec, command, workers } = command::prepare(service, ports, placement, &marker)?;
    check_free(&service.name, address)?;
    let link = Link::open(warden, &spec, marker)
        .map_err(|reason| TargetError::WardenFailed { service: name(), reason })?;
    if let Some(agent) = &placement.agent {
        agent.belongs_to(link.pid());
    }
    let (link, first) = started(link, service, &spec)?;
    let meter = Meter::new(link.pid(), link.kin.group());
    let startup = Startup { spawned: begin.elapsed(), ready: Duration::ZERO };
    let crew = Crew::new(service.launcher, workers);
    let (command, agent) = (command.into(), placement.agent.clone());
    let mut running = Running { name: name(), command, address, first, link, meter, startup, crew, agent };
    // On an error it is dropped here, and so stopped.
    let begin = Instant::now();
    running.wait_ready(service, cancelled)?;
    running.wait_workers(begin, service.ready_timeout, cancelled)?;
    running.startup.ready = begin.elapsed();
    Ok(running)
}

/// Waits until the warden has started the first process: its number.
fn started(mut link: Link, service: &Service, spec: &Spec) -> Result<(Link, u32), TargetError> {
    let outcome = link.wait(START_PATIENCE, |news: &mut News| match (&news.started, &news.failed) {
        (Some((pid, _)), _) => Some(Ok(*pid)),
        (None, Some(failure)) => Some(Err(Some(failure.clone()))),
        (None, None) => news.closed.is_some().then_some(Err(None)),
    });
    let name = service.name.clone();
    let failed = |reason| TargetError::WardenFailed { service: name.clone(), reason };
    match outcome {
        Some(Ok(pid)) => Ok((link, pid)),
        Some(Err(Some(Failure::Execute(number)))) => Err(command::refused(name, &spec.program, number)),
        Some(Err(Some(Failure::Log(reason)))) => {
            Err(TargetError::LogFailed { service: name, path: spec.log.clone(), reason })
        }
        Some(Err(Some(Failure::Scratch(reason)))) => {
            let path = spec.scratch.as_ref().map(|scratch| scratch.directory.clone()).unwrap_or_default();
            Err(TargetError::ScratchFailed { service: name, path, reason })
        }
        Some(Err(Some(Failure::Warden(reason)))) => Err(failed(reason)),
        Some(Err(None)) => Err(failed(link.last_words())),
        None => Err(failed(format!("it started nothing in {} s", START_PATIENCE.as_secs()))),
    }
}

impl Running {
    /// The service's name in the experiment.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of its first process.
    pub fn pid(&self) -> u32 {
        self.first
    }

    /// Number of its warden, which is not part of the service.
    pub fn warden_pid(&self) -> u32 {
        self.link.pid()
    }

    /// CPU time that the warden has used itself, by keeping the service's output for example, in nanoseconds.
    pub fn warden_cpu_ns(&self) -> u64 {
        cpu_ns(self.link.pid()).unwrap_or(0)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How long its start took.
    pub fn startup(&self) -> Startup {
        self.startup
    }

    /// How it ended, if it has: all its processes, or the first one with a failure.
    pub fn exited(&mut self) -> Option<Exit> {
        self.link.news().end()
    }

    /// What it has used so far.
    pub fn sample(&mut self) -> Sample {
        self.sample_with(Memory::Resident)
    }

    /// The same, with proportional memory if asked for.
    pub fn sample_with(&mut self, memory: Memory) -> Sample {
        let (sample, processes) = self.meter.sample(memory);
        self.link.kin.remember(&processes);
        sample
    }

    /// Peak resident memory of its processes in bytes, pages that they share counted once: see `memory.rs`. It takes milliseconds
    /// a process, in which they are held up.
    pub fn peak_memory(&self) -> u64 {
        let processes = tree::descendants(self.link.pid());
        self.link.kin.remember(&processes);
        memory::peak_bytes(&processes)
    }

    /// Where the agents in its Node.js processes are asked; `None` where none were loaded.
    pub fn agent(&self) -> Option<&AgentHost> {
        self.agent.as_ref()
    }

    /// Its processes and what each of their threads has used so far, parents first.
    pub fn threads(&self) -> Vec<ProcessThreads> {
        let processes = tree::descendants(self.link.pid());
        self.link.kin.remember(&processes);
        processes.iter().filter(|stat| stat.is_alive()).map(ProcessThreads::of).collect()
    }

    /// The last 20 lines of its output.
    pub fn tail(&self) -> String {
        self.link.tail()
    }

    /// Asks it to end, without waiting: to stop several services at once, call this for each before [`Running::stop`].
    pub fn begin_stop(&mut self) {
        self.link.tell(Order::Stop);
    }

    /// Stops it: SIGTERM to all its processes, SIGKILL after its `stop_timeout`; waits until none is left.
    pub fn stop(mut self) -> Stopped {
        if let Some(report) = self.link.stop() {
            return Stopped {
                exit: report.exit,
                killed: report.killed,
                leftovers: report.leftovers,
                output_bytes: report.output_bytes,
                output_dropped_bytes: report.output_dropped_bytes,
            };
        }
        // The warden was killed. The log has what it wrote until then, and nobody counted.
        let left: Vec<ProcessId> = self.link.news().closed.take().unwrap_or_default();
        let leftovers =
            left.iter().map(|id| Leftover { pid: id.pid, description: describe(id.pid) }).collect();
        Stopped {
            exit: Some(Exit::WithWarden),
            killed: 0,
            leftovers,
            output_bytes: 0,
            output_dropped_bytes: 0,
        }
    }

    fn wait_ready(&mut self, service: &Service, cancelled: &dyn Fn() -> bool) -> Result<(), TargetError> {
        let begin = Instant::now();
        let mut last_seen = Seen::Refused;
        while last_seen != Seen::Ready {
            if cancelled() {
                return Err(TargetError::Cancelled { service: self.name.clone() });
            }
            if let Some(exit) = self.exited() {
                return Err(self.exited_early(exit, begin.elapsed()));
            }
            let over = || begin.elapsed() >= service.ready_timeout;
            if over() {
                return Err(self.not_ready(service, last_seen));
            }
            let link = &self.link;
            let mut abandoned = || over() || cancelled() || link.news().end().is_some();
            last_seen = probe::look(self.address, &service.ready, &mut abandoned);
            if last_seen != Seen::Ready {
                // The end of the service need not be waited for.
                self.link.wait(LOOK_AGAIN, |news| news.end());
            }
        }
        match self.listening() {
            Listening::Theirs(owner) => Err(TargetError::NotOurs {
                service: self.name.clone(),
                address: self.address,
                owner,
                tail: self.tail().into(),
            }),
            Listening::Ours | Listening::Unknown => Ok(()),
        }
    }

    fn exited_early(&self, exit: Exit, after: Duration) -> TargetError {
        let (service, command) = (self.name.clone(), self.command.clone());
        TargetError::ExitedEarly { service, command, exit, after, tail: self.tail().into() }
    }

    /// Where the service listens on its port, if it does.
    fn elsewhere(&self) -> Option<Seen> {
        let processes = tree::descendants(self.link.pid());
        let open = processes.iter().filter_map(|stat| sockets::open_sockets(stat.id.pid)).flatten();
        let ours: Vec<u64> = open.collect();
        let listeners = sockets::listeners(self.address.port());
        let listener = listeners.iter().find(|listener| ours.contains(&listener.inode))?;
        Some(Seen::Elsewhere { listens: listener.address, linked: !self.address.ip().is_loopback() })
    }

    fn not_ready(&self, service: &Service, last_seen: Seen) -> TargetError {
        let refused = last_seen == Seen::Refused;
        let last_seen = refused.then(|| self.elsewhere()).flatten().unwrap_or(last_seen);
        TargetError::NotReady {
            service: self.name.clone(),
            command: self.command.clone(),
            waited_for: probe::describe(self.address, &service.ready).into(),
            timeout: service.ready_timeout,
            last_seen,
            tail: self.tail().into(),
        }
    }
}
