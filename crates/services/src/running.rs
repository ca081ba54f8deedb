//! One service from its start to its end.
//!
//! Starting waits until the service is ready. Dropping stops it. The lab decides what happens in between.

mod port_search;
mod sight;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use machine::groups::ControlGroup;
use machine::process::{Environ, ProcessId, Stat, cpu_ns, thread_cpu_and_wait_ns, threads};
use model::PortFound;
use model::quantity::{many, span};
use plan::{Launcher, ReadyResponse, Service};

use crate::agent::AgentHostFolder;
use crate::command::{self, PreparedService};
use crate::container::{Pack, Up};
use crate::cpus::pin_thread;
use crate::error::{Error, NO_MEMORY};
use crate::link::Link;
use crate::marker::Marker;
use crate::message::{Exit, Leftover, StartFailure, Stopped};
use crate::ports::check_free;
use crate::probe::{self, MORE_TIME, ProbeResult, ReadyCondition};
use crate::sample::{Meter, ProcessThreads, ServiceTree, UsageSample, peak_bytes};
use crate::{Placement, Ports, Warden};
use port_search::PortSearch;
use sight::ListenSockets;

pub use sight::{Listening, ServiceProcesses, WatchedProcesses};

/// Timeout for a warden to start a process. It takes milliseconds unless the machine is overloaded.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// Poll interval for the container engine.
const ENGINE_LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Exit status of an engine's command whose container was ended by SIGKILL.
const KILLED: i32 = 128 + libc::SIGKILL;
/// Poll interval for readiness.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A service that was started and became ready. It is stopped on drop.
#[derive(Debug)]
pub struct Running {
    /// Name in the experiment.
    pub name: String,
    /// Number of the root process.
    pub pid: u32,
    /// Address on which it listens.
    pub address: SocketAddr,
    /// How its address was found, if it listens neither on PORT nor where an earlier start found it.
    pub found: Option<PortFound>,
    /// Other ports on which it listened when it became ready, in order.
    pub other_ports: Vec<u16>,
    /// The port assigned to it.
    pub(crate) given: u16,
    /// Digest of its image. `None` if it is no container.
    pub image: Option<String>,
    command: String,
    pub(crate) link: Link,
    /// Endpoint for the agents in its Node.js processes. `None` if no agents were loaded. The folder stays
    /// until the link has ended the service.
    pub agent: Option<AgentHostFolder>,
    meter: Meter,
    crew: Crew,
    /// Sockets that answered when it became ready.
    pub(crate) door: ListenSockets,
    pub(crate) container: Option<Pack>,
    /// The root process of each of its containers, and its control group.
    containers: Vec<(ProcessId, ControlGroup)>,
}

/// Starts a service and waits until it is ready. A ready service accepts connections or answers its path with
/// 2xx, the socket belongs to it, and all its workers are there and idle. `cancelled` is checked every 10 ms,
/// and every 100 ms while waiting for idle workers.
///
/// # Errors
/// Any failure. Then nothing of the service is left.
pub fn start(
    warden: &Warden,
    service: &Service,
    ports: &Ports,
    placement: &Placement,
    cancelled: &dyn Fn() -> bool,
) -> Result<Running, Error> {
    let port = ports
        .of(&service.name)
        .ok_or_else(|| Error::of(&service.name, "no port was chosen for it"))?;
    let expected = service.command().and_then(|command| command.listens_on);
    let address = SocketAddr::new(placement.address, expected.unwrap_or(port));
    let marker = Marker::new();
    let PreparedService {
        spec,
        command,
        workers,
        container,
    } = command::prepare(service, ports, placement, &marker)?;
    check_free(&service.name, address)?;
    let refused = |failure| match failure {
        StartFailure::Execute(number) => command::refused(&service.name, &spec.program, number),
        StartFailure::Other(reason) => Error::of(&service.name, reason),
    };
    let mut link = Link::open(warden, &spec, marker).map_err(refused)?;
    if let Some(agent) = &placement.agent {
        agent.belongs_to(link.pid());
    }
    let nothing = || {
        StartFailure::of_warden(format!(
            "it started nothing in {} s",
            START_PATIENCE.as_secs()
        ))
    };
    let started = link.outcome(START_PATIENCE, |news| news.started);
    let pid = started.unwrap_or_else(|| Err(nothing())).map_err(refused)?;
    let launcher = service
        .command()
        .map(|command| command.launcher)
        .unwrap_or_default();
    let group = link.kin.group.lock().clone();
    let mut running = Running {
        name: service.name.clone(),
        pid,
        address,
        command,
        meter: Meter::new(ServiceTree::Below(link.pid(), group)),
        link,
        crew: Crew {
            launcher,
            wanted: workers,
            seen: Vec::new(),
        },
        door: ListenSockets::default(),
        agent: placement.agent.clone(),
        image: None,
        container,
        containers: Vec::new(),
        found: None,
        other_ports: Vec::new(),
        given: port,
    };
    // Dropping stops the service, so an early return cleans up.
    let begin = Instant::now();
    running.wait_container(service, &spec.cpus, cancelled)?;
    let wanted = ReadyCondition {
        ready: &service.ready,
        response: &placement.ready_response,
    };
    running.wait_ready(service, wanted, cancelled)?;
    running.wait_workers(begin, service.ready_timeout, cancelled)?;
    running.door = running.door_now();
    running.meter.watch_quotas();
    running.meter.check_group();
    Ok(running)
}

impl Running {
    /// Number of its warden, which is not part of the service.
    pub fn warden_pid(&self) -> u32 {
        self.link.pid()
    }

    /// CPU time of the warden itself, for example for copying the service's output, in nanoseconds.
    pub fn warden_cpu_ns(&self) -> u64 {
        cpu_ns(self.link.pid()).unwrap_or(0)
    }

    /// How it ended, if it has: all its processes, or the root process with a failure.
    pub fn exited(&mut self) -> Option<Exit> {
        self.link.news().end()
    }

    /// Resources used so far.
    pub fn sample(&mut self) -> UsageSample {
        let (sample, processes) = self.meter.sample();
        self.link.kin.remember(&processes);
        sample
    }

    /// Peak resident memory of its processes in bytes. Shared pages count once, see `sample.rs`. Reading
    /// takes milliseconds for each process, and stalls it.
    pub fn peak_memory(&self) -> u64 {
        peak_bytes(&self.alive())
    }

    /// Its processes with the use of each thread so far, parents first.
    pub fn threads(&self) -> Vec<ProcessThreads> {
        self.alive().iter().map(ProcessThreads::of).collect()
    }

    /// The last 20 lines of its output.
    pub fn tail(&self) -> String {
        self.link.tail()
    }

    /// Restricts all its current and future threads to these processors.
    ///
    /// # Errors
    /// If the kernel or the container engine refuses.
    pub fn confine(&self, cpus: &[usize]) -> Result<(), Error> {
        if let Some(container) = &self.container {
            return container.confine(cpus);
        }
        let mut confined = HashSet::new();
        // A new thread inherits the processors of its creator. Repeats until no new thread appears.
        loop {
            let ids = self
                .alive()
                .into_iter()
                .flat_map(|stat| threads(stat.id.pid));
            let new: Vec<u32> = ids.filter(|thread| confined.insert(*thread)).collect();
            if new.is_empty() {
                return Ok(());
            }
            for thread in new {
                pin_thread(thread, cpus).map_err(|error| {
                    let message = format!(
                        "thread {thread} cannot be confined to processors {cpus:?}: {error}"
                    );
                    Error::of(&self.name, message)
                        .help("let services use all processors: cpus = \"shared\"")
                })?;
            }
        }
    }

    /// Stops it: SIGTERM to all its processes, SIGKILL after its `stop_timeout`. Waits until none is left.
    pub fn stop(mut self) -> Stopped {
        if let Some(report) = self.link.stop() {
            return report;
        }
        // The warden was killed. The log has the output up to then, without counts.
        let left = self.link.news().closed.take().unwrap_or_default();
        let leftovers = left.iter().map(|id| Leftover::of(id.pid)).collect();
        Stopped {
            exit: Some(Exit::WithWarden),
            leftovers,
            ..Stopped::default()
        }
    }

    /// Its processes that have not ended.
    pub(crate) fn alive(&self) -> Vec<Stat> {
        let mut processes = self.meter.tree.processes();
        self.link.kin.remember(&processes);
        processes.retain(Stat::is_alive);
        processes
    }

    /// Waits until the engine has started all containers, and switches to these.
    fn wait_container(
        &mut self,
        service: &Service,
        cpus: &[usize],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let begin = Instant::now();
        while let Some(container) = &self.container {
            if let Some(Up {
                address,
                containers,
                image,
            }) = container.look(cpus)?
            {
                let groups = containers.iter().map(|(_, group)| group.clone()).collect();
                (self.address, self.meter, self.image) =
                    (address, Meter::new(ServiceTree::In(groups)), Some(image));
                self.containers = containers;
                return Ok(());
            }
            self.check_start(begin, cancelled)?;
            if begin.elapsed() >= service.ready_timeout {
                let words = "but its container does not run, or is not healthy".to_owned();
                let wanted = ReadyCondition {
                    ready: &service.ready,
                    response: &ReadyResponse::default(),
                };
                return Err(self.not_ready(
                    service,
                    wanted,
                    ProbeResult::Other(words, MORE_TIME.to_owned()),
                ));
            }
            self.link.wait(ENGINE_LOOK_AGAIN, |news| news.end());
        }
        Ok(())
    }

    fn wait_ready(
        &mut self,
        service: &Service,
        wanted: ReadyCondition<'_>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let begin = Instant::now();
        let mut last_seen = ProbeResult::Refused;
        let mut search = PortSearch::default();
        while last_seen != ProbeResult::Ready {
            self.check_start(begin, cancelled)?;
            let over = || begin.elapsed() >= service.ready_timeout;
            if over() {
                return Err(self.not_ready(service, wanted, last_seen));
            }
            let link = &self.link;
            let mut abandoned = || over() || cancelled() || link.news().end().is_some();
            last_seen = probe::look(self.address, wanted, &mut abandoned);
            if last_seen == ProbeResult::Refused {
                let waited = begin.elapsed();
                last_seen =
                    self.look_elsewhere(&mut search, service, (wanted, waited), &mut abandoned)?;
            }
            if last_seen != ProbeResult::Ready {
                // Returns early if the service ends.
                self.link.wait(LOOK_AGAIN, |news| news.end());
            }
        }
        if let Some((address, found)) = search.taken {
            (self.address, self.found) = (address, Some(found));
        }
        if self.container.is_none() {
            self.check_same_port()?;
            self.other_ports = self.ports_beside();
        }
        match self.listening() {
            Listening::Theirs(owner) => {
                let message = format!(
                    "{} is answered by {owner}, not by the service",
                    self.address
                );
                let hint = "stop that process: its answers would have been measured";
                Err(Error::of(&self.name, message).after(self.tail()).help(hint))
            }
            Listening::Ours | Listening::Unknown => Ok(()),
        }
    }

    fn exited_early(&self, exit: Exit, after: Duration) -> Error {
        let (command, after) = (&self.command, span(after.as_secs_f64()));
        let message = format!(
            "service {} ended with {exit} after {after}, before it was ready: {command}",
            self.name
        );
        let error = Error::new(message).after(self.tail());
        match exit {
            Exit::Status(0) => error.help(
                "a service must stay; one that goes to the background must leave a process behind",
            ),
            Exit::Signal(libc::SIGKILL) => error.help(NO_MEMORY),
            // An engine's command reports it with this status.
            Exit::Status(KILLED) if self.container.is_some() => error.help(NO_MEMORY),
            // The flag begins differently in Node.js 20.
            Exit::Status(1) if self.agent.is_some() && self.command.contains("-permission") => {
                let flag = format!(
                    "--allow-fs-read={}/proofload-*",
                    std::env::temp_dir().display()
                );
                let lacks =
                    "where Node.js has --permission it may not read the agent that profiles it";
                error.help(format!("{lacks}: add {flag}"))
            }
            _ => error,
        }
    }

    fn not_ready(
        &self,
        service: &Service,
        wanted: ReadyCondition<'_>,
        last_seen: ProbeResult,
    ) -> Error {
        let refused = last_seen == ProbeResult::Refused;
        let last_seen = refused
            .then(|| self.seen_elsewhere())
            .flatten()
            .unwrap_or(last_seen);
        let (seen, hint) = last_seen.told(wanted);
        let (name, timeout) = (&self.name, plan::duration_text(service.ready_timeout));
        let waited_for = probe::describe(self.address, &service.ready);
        let message = format!(
            "service {name} was not ready after {timeout}: waited for {waited_for}, {seen}"
        );
        Error::new(message).after(self.tail()).help(hint)
    }
}

// The workers of a service: whether all are there at the start, and whether any has ended later.
//
// A worker is one of several processes that serve: a worker of a Node.js cluster, however it was started, or
// a process that PM2 started. Workers are counted, not taken from what the service reports. This module must
// not signal them.

/// In the environment of each worker that the cluster module of Node.js starts. Node.js removes it from
/// `process.env`, so that no child inherits it.
const OF_CLUSTER: &str = "NODE_UNIQUE_ID";
/// In the environment of every process that PM2 starts, and of its children.
const OF_PM2: &str = "pm_id";

/// A service is idle if its processes were busy for at most this CPU time within this period. The wait has a
/// limit.
const IDLE_BUSY_NS: u64 = 10_000_000;
const IDLE_FOR: Duration = Duration::from_millis(100);
const IDLE_PATIENCE: Duration = Duration::from_secs(3);

/// Expected workers of a service, and the workers at the time it became ready.
#[derive(Debug)]
struct Crew {
    launcher: Launcher,
    wanted: Option<u32>,
    seen: Vec<ProcessId>,
}

impl Running {
    /// Number of workers when it became ready. `None` if workers cannot be distinguished from other
    /// processes.
    pub fn workers(&self) -> Option<u32> {
        u32::try_from(self.crew.seen.len())
            .ok()
            .filter(|workers| *workers > 0)
    }

    /// Number of those workers that have ended, also if others replaced them. For a Compose project: number
    /// of containers that were restarted. For a tool that restarts a program, such as nodemon: whether it
    /// did.
    pub fn workers_lost(&self) -> u32 {
        let lost = self
            .crew
            .seen
            .iter()
            .filter(|worker| !worker.is_alive())
            .count();
        // A container that only ended has done its work, for example preparing a database.
        let again = |(first, group): &&(ProcessId, ControlGroup)| {
            !first.is_alive() && !group.members().is_empty()
        };
        let again = self.containers.iter().filter(again).count();
        let anew = usize::from(self.has_another_door());
        u32::try_from(lost.max(again).max(anew)).unwrap_or(u32::MAX)
    }

    /// Waits until all workers are there. Connections are distributed to workers when they are opened, so a
    /// late worker never gets any.
    fn wait_workers(
        &mut self,
        begin: Instant,
        patience: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        loop {
            let (found, needed) = self.count_workers();
            if found.len() >= needed {
                // A service that needs one worker has answered, so the worker is there.
                if needed != 1 && !found.is_empty() {
                    self.wait_idle(cancelled)?;
                }
                let (found, needed) = self.count_workers();
                if found.len() >= needed {
                    self.crew.seen = found;
                    return Ok(());
                }
            }
            self.check_start(begin, cancelled)?;
            if begin.elapsed() >= patience {
                return Err(self.too_few_workers(found.len(), begin.elapsed()));
            }
            self.link.wait(LOOK_AGAIN, |news| news.end());
        }
    }

    /// Returns the current workers, and the minimum number. A program that is started directly may create
    /// processes in an unknown way. If it creates a cluster, it is expected to have the configured number of
    /// workers.
    fn count_workers(&self) -> (Vec<ProcessId>, usize) {
        let Crew {
            launcher, wanted, ..
        } = self.crew;
        let word = match launcher {
            Launcher::Pm2Fork => OF_PM2,
            Launcher::Exec | Launcher::Cluster | Launcher::Pm2Cluster => OF_CLUSTER,
        };
        let has_it = |stat: &Stat| {
            Environ::read(stat.id.pid)
                .is_some_and(|all| !all.variables(|name| name == word).is_empty())
        };
        let bearers: Vec<Stat> = self.alive().into_iter().filter(has_it).collect();
        let numbers: HashSet<u32> = bearers.iter().map(|stat| stat.id.pid).collect();
        // Children of a process that PM2 started inherit its variable.
        let found = bearers.iter().filter(|stat| !numbers.contains(&stat.ppid));
        let found: Vec<ProcessId> = found.map(|stat| stat.id).collect();
        let wanted = wanted.filter(|_| launcher.makes_workers() || !found.is_empty());
        (found, wanted.map_or(0, |wanted| wanted as usize))
    }

    /// Waits until workers have loaded their program, and their parent has finished starting them.
    fn wait_idle(&mut self, cancelled: &dyn Fn() -> bool) -> Result<(), Error> {
        let begin = Instant::now();
        let mut before = self.busy_ns();
        while begin.elapsed() < IDLE_PATIENCE {
            self.link.wait(IDLE_FOR, |news| news.end());
            self.check_start(begin, cancelled)?;
            let now = self.busy_ns();
            if now.saturating_sub(before) <= IDLE_BUSY_NS {
                break;
            }
            before = now;
        }
        Ok(())
    }

    /// CPU time that its processes have used or waited for. On a busy machine a process with much work may
    /// get no CPU.
    pub(crate) fn busy_ns(&self) -> u64 {
        let busy_ns = |pid| {
            let waited_ns = thread_cpu_and_wait_ns(pid, pid).map_or(0, |(_, waited_ns)| waited_ns);
            cpu_ns(pid).unwrap_or(0) + waited_ns
        };
        self.alive().iter().map(|stat| busy_ns(stat.id.pid)).sum()
    }

    fn check_start(&mut self, begin: Instant, cancelled: &dyn Fn() -> bool) -> Result<(), Error> {
        if cancelled() {
            return Err(Error::cancelled(&format!("service {}", self.name)));
        }
        match self.exited() {
            Some(exit) => Err(self.exited_early(exit, begin.elapsed())),
            None => Ok(()),
        }
    }

    fn too_few_workers(&self, running: usize, after: Duration) -> Error {
        let (wanted, command) = (self.crew.wanted.unwrap_or_default(), &self.command);
        let after = span(after.as_secs_f64());
        Error::of(
            &self.name,
            format!(
                "{running} of {} running after {after}: {command}",
                many(wanted.into(), "worker")
            ),
        )
        .after(self.tail())
        .help(
            "its output says why workers ended; raise `ready_timeout` if they only need more time",
        )
    }
}
