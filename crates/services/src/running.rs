//! One service from its start to its end, in Proofload's hands.
//!
//! Starting waits until the service is ready; dropping stops it. What to do with it in between is the lab's business.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use machine::groups::ControlGroup;
use machine::process::{Environ, ProcessId, Stat, cpu_ns, thread_cpu_and_wait_ns, threads};
use model::Found;
use model::quantity::{many, span};
use plan::{Launcher, ReadyResponse, Service};

use crate::agent::AgentHost;
use crate::command::{self, Prepared};
use crate::container::{Pack, Up};
use crate::cpus::pin_thread;
use crate::error::{Error, NO_MEMORY};
use crate::link::Link;
use crate::marker::Marker;
use crate::message::{Exit, Failure, Leftover, Order, Stopped};
use crate::port_search::PortSearch;
use crate::ports::check_free;
use crate::probe::{self, MORE_TIME, Seen, Wanted};
use crate::sample::{Meter, ProcessThreads, Sample, Tree, peak_bytes};
use crate::sight::{Door, Listening};
use crate::{Placement, Ports, Warden};

/// How long a warden may take to start a process. Milliseconds, unless the machine is on its knees.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// Time between two questions to a container engine.
const ENGINE_LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The status with which an engine's command ends whose container was ended by SIGKILL.
const KILLED: i32 = 128 + libc::SIGKILL;
/// Time between two looks at whether a service is ready.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A service that was started and became ready. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    /// Its name in the experiment.
    pub name: String,
    /// Number of its first process.
    pub pid: u32,
    /// Where it listens.
    pub address: SocketAddr,
    /// Where it was found, if it listens neither on PORT nor where it was found when it was started before.
    pub found: Option<Found>,
    /// Further ports that it listened on when it became ready, in order.
    pub other_ports: Vec<u16>,
    /// The port that it was given.
    pub(crate) given: u16,
    /// The image that it was made from, by its digest; `None` for a service that is no container.
    pub image: Option<String>,
    command: String,
    pub(crate) link: Link,
    /// Where the agents in its Node.js processes are asked; `None` where none were loaded. Their folder stays until the link has ended the
    /// service.
    pub agent: Option<AgentHost>,
    meter: Meter,
    crew: Crew,
    /// Where it answered when it became ready.
    pub(crate) door: Door,
    pub(crate) container: Option<Pack>,
    /// The first process of each container that it has, and its control group.
    containers: Vec<(ProcessId, ControlGroup)>,
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
) -> Result<Running, Error> {
    let port =
        ports.of(&service.name).ok_or_else(|| Error::of(&service.name, "no port was chosen for it"))?;
    let expected = service.command().and_then(|command| command.listens_on);
    let address = SocketAddr::new(placement.address, expected.unwrap_or(port));
    let marker = Marker::new();
    let Prepared { spec, command, workers, container } =
        command::prepare(service, ports, placement, &marker)?;
    check_free(&service.name, address)?;
    let refused = |failure| match failure {
        Failure::Execute(number) => command::refused(&service.name, &spec.program, number),
        Failure::Other(reason) => Error::of(&service.name, reason),
    };
    let mut link = Link::open(warden, &spec, marker).map_err(refused)?;
    if let Some(agent) = &placement.agent {
        agent.belongs_to(link.pid());
    }
    let nothing = || Failure::of_warden(format!("it started nothing in {} s", START_PATIENCE.as_secs()));
    let started = link.outcome(START_PATIENCE, |news| news.started);
    let pid = started.unwrap_or_else(|| Err(nothing())).map_err(refused)?;
    let launcher = service.command().map(|command| command.launcher).unwrap_or_default();
    let group = link.kin.group.lock().clone();
    let mut running = Running {
        name: service.name.clone(),
        pid,
        address,
        command,
        meter: Meter::new(Tree::Below(link.pid(), group)),
        link,
        crew: Crew { launcher, wanted: workers, seen: Vec::new() },
        door: Door::default(),
        agent: placement.agent.clone(),
        image: None,
        container,
        containers: Vec::new(),
        found: None,
        other_ports: Vec::new(),
        given: port,
    };
    // On an error it is dropped here, and so stopped.
    let begin = Instant::now();
    running.wait_container(service, &spec.cpus, cancelled)?;
    let wanted = Wanted { ready: &service.ready, response: &placement.ready_response };
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

    /// CPU time that the warden has used itself, by keeping the service's output for example, in nanoseconds.
    pub fn warden_cpu_ns(&self) -> u64 {
        cpu_ns(self.link.pid()).unwrap_or(0)
    }

    /// How it ended, if it has: all its processes, or the first one with a failure.
    pub fn exited(&mut self) -> Option<Exit> {
        self.link.news().end()
    }

    /// What it has used so far.
    pub fn sample(&mut self) -> Sample {
        let (sample, processes) = self.meter.sample();
        self.link.kin.remember(&processes);
        sample
    }

    /// Peak resident memory of its processes in bytes, pages that they share counted once: see `sample.rs`. It takes milliseconds
    /// a process, in which they are held up.
    pub fn peak_memory(&self) -> u64 {
        peak_bytes(&self.alive())
    }

    /// Its processes and what each of their threads has used so far, parents first.
    pub fn threads(&self) -> Vec<ProcessThreads> {
        self.alive().iter().map(ProcessThreads::of).collect()
    }

    /// The last 20 lines of its output.
    pub fn tail(&self) -> String {
        self.link.tail()
    }

    /// Lets all its threads run on these processors only, and all that they start later.
    ///
    /// # Errors
    /// If the kernel refuses, or the container engine.
    pub fn confine(&self, cpus: &[usize]) -> Result<(), Error> {
        if let Some(container) = &self.container {
            return container.confine(cpus);
        }
        let mut confined = HashSet::new();
        // A thread that starts meanwhile has the processors of the thread that started it: looks again until there is no new one.
        loop {
            let ids = self.alive().into_iter().flat_map(|stat| threads(stat.id.pid));
            let new: Vec<u32> = ids.filter(|thread| confined.insert(*thread)).collect();
            if new.is_empty() {
                return Ok(());
            }
            for thread in new {
                pin_thread(thread, cpus).map_err(|error| {
                    let message =
                        format!("thread {thread} cannot be confined to processors {cpus:?}: {error}");
                    Error::of(&self.name, message).help("let services use all processors: cpus = \"shared\"")
                })?;
            }
        }
    }

    /// Asks it to end, without waiting: to stop several services at once, call this for each before [`Running::stop`].
    pub fn begin_stop(&mut self) {
        self.link.tell(Order::Stop);
    }

    /// Stops it: SIGTERM to all its processes, SIGKILL after its `stop_timeout`; waits until none is left.
    pub fn stop(mut self) -> Stopped {
        if let Some(report) = self.link.stop() {
            return report;
        }
        // The warden was killed. The log has what it wrote until then, and nobody counted.
        let left = self.link.news().closed.take().unwrap_or_default();
        let leftovers = left.iter().map(|id| Leftover::of(id.pid)).collect();
        Stopped { exit: Some(Exit::WithWarden), leftovers, ..Stopped::default() }
    }

    /// Those of its processes that have not ended.
    pub(crate) fn alive(&self) -> Vec<Stat> {
        let mut processes = self.meter.tree.processes();
        self.link.kin.remember(&processes);
        processes.retain(Stat::is_alive);
        processes
    }

    /// Waits until the engine has started all containers, and turns to those.
    fn wait_container(
        &mut self,
        service: &Service,
        cpus: &[usize],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let begin = Instant::now();
        while let Some(container) = &self.container {
            if let Some(Up { address, containers, image }) = container.look(cpus)? {
                let groups = containers.iter().map(|(_, group)| group.clone()).collect();
                (self.address, self.meter, self.image) = (address, Meter::new(Tree::In(groups)), Some(image));
                self.containers = containers;
                return Ok(());
            }
            self.check_start(begin, cancelled)?;
            if begin.elapsed() >= service.ready_timeout {
                let words = "but its container does not run, or is not healthy".to_owned();
                let wanted = Wanted { ready: &service.ready, response: &ReadyResponse::default() };
                return Err(self.not_ready(service, wanted, Seen::Other(words, MORE_TIME.to_owned())));
            }
            self.link.wait(ENGINE_LOOK_AGAIN, |news| news.end());
        }
        Ok(())
    }

    fn wait_ready(
        &mut self,
        service: &Service,
        wanted: Wanted<'_>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let begin = Instant::now();
        let mut last_seen = Seen::Refused;
        let mut search = PortSearch::default();
        while last_seen != Seen::Ready {
            self.check_start(begin, cancelled)?;
            let over = || begin.elapsed() >= service.ready_timeout;
            if over() {
                return Err(self.not_ready(service, wanted, last_seen));
            }
            let link = &self.link;
            let mut abandoned = || over() || cancelled() || link.news().end().is_some();
            last_seen = probe::look(self.address, wanted, &mut abandoned);
            if last_seen == Seen::Refused {
                let waited = begin.elapsed();
                last_seen = self.look_elsewhere(&mut search, service, (wanted, waited), &mut abandoned)?;
            }
            if last_seen != Seen::Ready {
                // The end of the service need not be waited for.
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
                let message = format!("{} is answered by {owner}, not by the service", self.address);
                let hint = "stop that process: its answers would have been measured";
                Err(Error::of(&self.name, message).after(self.tail()).help(hint))
            }
            Listening::Ours | Listening::Unknown => Ok(()),
        }
    }

    fn exited_early(&self, exit: Exit, after: Duration) -> Error {
        let (command, after) = (&self.command, span(after.as_secs_f64()));
        let message =
            format!("service {} ended with {exit} after {after}, before it was ready: {command}", self.name);
        let error = Error::new(message).after(self.tail());
        match exit {
            Exit::Status(0) => {
                error.help("a service must stay; one that goes to the background must leave a process behind")
            }
            Exit::Signal(libc::SIGKILL) => error.help(NO_MEMORY),
            // So an engine's command tells of it.
            Exit::Status(KILLED) if self.container.is_some() => error.help(NO_MEMORY),
            // The flag of Node.js 20 has another beginning.
            Exit::Status(1) if self.agent.is_some() && self.command.contains("-permission") => {
                let flag = format!("--allow-fs-read={}/proofload-*", std::env::temp_dir().display());
                let lacks = "where Node.js has --permission it may not read the agent that profiles it";
                error.help(format!("{lacks}: add {flag}"))
            }
            _ => error,
        }
    }

    fn not_ready(&self, service: &Service, wanted: Wanted<'_>, last_seen: Seen) -> Error {
        let refused = last_seen == Seen::Refused;
        let last_seen = refused.then(|| self.seen_elsewhere()).flatten().unwrap_or(last_seen);
        let (seen, hint) = last_seen.told(wanted);
        let (name, timeout) = (&self.name, plan::duration_text(service.ready_timeout));
        let waited_for = probe::describe(self.address, &service.ready);
        let message =
            format!("service {name} was not ready after {timeout}: waited for {waited_for}, {seen}");
        Error::new(message).after(self.tail()).help(hint)
    }
}

// The workers of a service: whether all are there when it is started, and whether any is gone later.
//
// A worker is a process that serves beside others of its kind: one of a cluster of Node.js, whoever started that, or the
// process that PM2 started. They are counted, never believed. It must not touch them.

/// In the environment of each worker that the cluster module of Node.js starts. It takes it out of `process.env`, so
/// that it is in no child of theirs.
const OF_CLUSTER: &str = "NODE_UNIQUE_ID";
/// In the environment of what PM2 starts, and of all its children.
const OF_PM2: &str = "pm_id";

/// A service is idle once its processes were busy for at most so long in this time, and is not waited for any longer than
/// that.
const IDLE_BUSY_NS: u64 = 10_000_000;
const IDLE_FOR: Duration = Duration::from_millis(100);
const IDLE_PATIENCE: Duration = Duration::from_secs(3);

/// Which workers a service is to have, and which it had when it became ready.
#[derive(Debug)]
struct Crew {
    launcher: Launcher,
    wanted: Option<u32>,
    seen: Vec<ProcessId>,
}

impl Running {
    /// Workers that it had when it became ready; `None` where it has none that can be told from its other processes.
    pub fn workers(&self) -> Option<u32> {
        u32::try_from(self.crew.seen.len()).ok().filter(|workers| *workers > 0)
    }

    /// How many of them are gone, also if others have taken their places; of a project how many containers were started again, and of what
    /// starts a program again, such as nodemon, whether it did.
    pub fn workers_lost(&self) -> u32 {
        let lost = self.crew.seen.iter().filter(|worker| !worker.is_alive()).count();
        // One that has only ended did what it was to do, as what prepares a database.
        let again =
            |(first, group): &&(ProcessId, ControlGroup)| !first.is_alive() && !group.members().is_empty();
        let again = self.containers.iter().filter(again).count();
        let anew = usize::from(self.has_another_door());
        u32::try_from(lost.max(again).max(anew)).unwrap_or(u32::MAX)
    }

    /// Waits until all its workers are there. A server deals connections to its workers when they are opened, so one that
    /// comes later never gets any.
    fn wait_workers(
        &mut self,
        begin: Instant,
        patience: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        loop {
            let (found, needed) = self.count_workers();
            if found.len() >= needed {
                // Of one that had to be there it is known that it is: it answered.
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

    /// The workers that there are, and how many there must be. A program that is started as it is may make its processes in its own way,
    /// which we do not know; where it makes a cluster, it is one of as many as it was told.
    fn count_workers(&self) -> (Vec<ProcessId>, usize) {
        let Crew { launcher, wanted, .. } = self.crew;
        let word = match launcher {
            Launcher::Pm2Fork => OF_PM2,
            Launcher::Exec | Launcher::Cluster | Launcher::Pm2Cluster => OF_CLUSTER,
        };
        let has_it = |stat: &Stat| {
            Environ::read(stat.id.pid).is_some_and(|all| !all.variables(|name| name == word).is_empty())
        };
        let bearers: Vec<Stat> = self.alive().into_iter().filter(has_it).collect();
        let numbers: HashSet<u32> = bearers.iter().map(|stat| stat.id.pid).collect();
        // What PM2's process starts inherits its variable.
        let found = bearers.iter().filter(|stat| !numbers.contains(&stat.ppid));
        let found: Vec<ProcessId> = found.map(|stat| stat.id).collect();
        let wanted = wanted.filter(|_| launcher.makes_workers() || !found.is_empty());
        (found, wanted.map_or(0, |wanted| wanted as usize))
    }

    /// Waits until workers that have only just begun are done with loading their program, and whoever started them with
    /// doing so.
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

    /// CPU time that its processes have used or waited for: on a busy machine one that has much to do may get to nothing.
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
            format!("{running} of {} running after {after}: {command}", many(wanted.into(), "worker")),
        )
        .after(self.tail())
        .help("its output says why workers ended; raise `ready_timeout` if they only need more time")
    }
}
