//! An engine thread: runs its worker through the phases of each slice, one driver turn at a time.
//!
//! It receives commands and sends reports. It shares with other threads only the interrupt flag and its own
//! counter, which it publishes periodically. While its counts are watched, it also publishes a copy of them.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::{Counts, GeneratorUse};
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};

use crate::arena::{RequestArena, RequestSampler};
use crate::clock;
use crate::completion::Completion;
use crate::driver::{Driver, Route};
use crate::error::no_thread;
use crate::pacer::{Pacer, SharedPace};
use crate::protocol;
use crate::readiness::Readiness;
use crate::settings::WorkerSettings;
use crate::trust::TlsSettings;
use crate::user::UserSettings;
use crate::worker::Worker;
use crate::{
    Address, Arrivals, DriverChoice, Lanes, LoadError, LoadSpec, RequestSpec, Until, Users,
};

/// Interval of the checks for time limits, interrupts, and the end of a window without traffic.
const TICK_NS: u64 = 10_000_000;
/// A tick later than this was not merely deferred: the thread or the machine was halted.
const HALT_MIN_NS: u64 = 500_000_000;
/// A tick later than this leaves a gap in which the thread did not read responses.
const AWAY_MIN_NS: u64 = 20_000_000;
/// Number of ticks between two publications of progress.
const PUBLISH_TICKS: u32 = 5;
/// Time within which every working thread has published once more.
pub(crate) const PUBLISHED: Duration =
    Duration::from_millis(2 * PUBLISH_TICKS as u64 * TICK_NS / 1_000_000);
/// A shorter window is one of many.
const LISTENED_NS: u64 = 100_000_000;
/// Interval between connection attempts before a window, over all threads of a load. Accepting one costs a
/// service CPU time. A thousand at once would overflow its queue (511 in Node.js), and the first requests
/// would wait.
const OPENING_GAP_NS: u64 = 250_000;
/// Maximum time for opening all connections.
const OPENING_MAX_NS: u64 = 1_000_000_000;
/// Drain limit of an interrupted slice.
const INTERRUPTED_DRAIN_NS: u64 = 100_000_000;

/// Commands to a thread, in this order for each slice.
pub(crate) enum ThreadCommand {
    /// Open missing connections.
    Prepare { allowance: Option<u64> },
    /// Load, drain, report.
    Load { started_ns: u64, until: Until },
}

/// Reports of a thread, in this order.
pub(crate) enum ThreadReport {
    /// Sent once: the thread is pinned and ready, or failed to start.
    Started(Result<(), LoadError>),
    Prepared,
    Done(Box<Counts>),
}

/// State shared by all threads and the caller.
#[derive(Debug, Default)]
pub(crate) struct ThreadsShared {
    pub(crate) interrupted: AtomicBool,
    /// Whether a caller waits for the counts so far.
    pub(crate) watched: AtomicBool,
    pub(crate) threads: Vec<Published>,
}

/// Counts of one thread in this slice, on its own cache line (or pair of lines).
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Published {
    pub(crate) completed: AtomicU64,
    /// All counts. Unused unless they are watched.
    pub(crate) seen: Mutex<Option<Box<Counts>>>,
}

struct LoadThread {
    index: usize,
    timeout_ns: u64,
    /// Start of the current slice. 0 between slices.
    started_ns: u64,
    /// Run-queue delay at the end of the connect phase.
    run_delay_ns: Option<u64>,
    /// The last tick by the clock that includes suspension, and the total halt time in the slice.
    ticked_boot_ns: u64,
    halted_ns: u64,
    worker: Worker,
    driver: Box<dyn Driver>,
    shared: Arc<ThreadsShared>,
    commands: Receiver<ThreadCommand>,
    reports: Sender<ThreadReport>,
}

/// Values that all threads share, and the channels to the generator.
pub(crate) type Common = (Arc<RequestArena>, Option<TlsSettings>, Arc<ThreadsShared>);
pub(crate) type ThreadEnds = (Receiver<ThreadCommand>, Sender<ThreadReport>);

/// The body of engine thread `index`: reports whether it could start, then serves commands until the
/// generator is dropped. It allocates its state itself, in its own CPU's memory.
pub(crate) fn work(spec: &LoadSpec, index: u32, common: Common, ends: ThreadEnds) {
    let reports = ends.1.clone();
    match LoadThread::new(spec, index, common, ends) {
        Ok(thread) if reports.send(ThreadReport::Started(Ok(()))).is_ok() => thread.serve(),
        // The generator no longer waits for a response.
        Ok(_) => {}
        Err(error) => drop(reports.send(ThreadReport::Started(Err(error)))),
    }
}

/// Pins the calling thread.
fn pin(cpu: usize) -> Result<(), LoadError> {
    let refused = |why| LoadError::System(format!("cannot pin a load thread to CPU {cpu}: {why}"));
    if cpu >= CpuSet::MAX_CPU {
        return Err(refused(Errno::INVAL));
    }
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    sched_setaffinity(None, &cpus).map_err(refused)
}

/// Interval for one thread, given that all threads open connections at the same time, including threads of
/// other generators.
fn opening_gap_ns(spec: &LoadSpec) -> u64 {
    let all = spec.lanes.map_or(spec.threads, |lanes| lanes.of);
    let most_ns = OPENING_MAX_NS * u64::from(spec.threads) / u64::from(spec.connections).max(1);
    most_ns.min(OPENING_GAP_NS * u64::from(all))
}

impl LoadThread {
    fn new(
        spec: &LoadSpec,
        index: u32,
        (arena, tls, shared): Common,
        (commands, reports): ThreadEnds,
    ) -> Result<LoadThread, LoadError> {
        if !spec.cpus.is_empty() {
            pin(spec.cpus[index as usize % spec.cpus.len()])?;
        }
        let Lanes { first, of } = spec.lanes.unwrap_or(Lanes {
            first: 0,
            of: spec.threads,
        });
        let sampler = RequestSampler::new(arena.clone(), spec.seed, first + index);
        let pacer = match spec.arrivals {
            Arrivals::Closed => None,
            Arrivals::Open {
                rate,
                process,
                seed,
            } => {
                // Otherwise the kernel may wake this thread 50 µs late to save wake-ups. If this fails, the
                // lag is reported.
                let _ = set_current_timer_slack(NonZeroU64::new(1));
                Some(Pacer::new(
                    SharedPace {
                        rate,
                        process,
                        seed,
                    },
                    first + index,
                    of,
                ))
            }
        };
        let contract =
            |request: &RequestSpec| request.contract.as_ref().unwrap_or(&spec.contract).clone();
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let users = UserSettings {
            users: spec.users.clone(),
            endpoint: spec.requests.len(),
            seed: spec.seed,
            lane: ((first + index) as usize, of as usize),
            now_s: now.as_secs() as i64,
        };
        let settings = WorkerSettings {
            arena,
            protocol: spec.protocol,
            tls,
            fresh: !spec.keep_alive,
            can_skip: matches!(spec.address, Address::Tcp(_)),
            timeout_ns: clock::in_ns(spec.timeout),
            connect_timeout_ns: clock::in_ns(spec.connect_timeout),
            opening_gap_ns: opening_gap_ns(spec),
            contracts: spec.all_requests().map(contract).collect(),
            sample_every: spec.sample_every,
            users: (spec.users != Users::default()).then(|| Arc::new(users)),
        };
        let connections = dealt(spec.connections.into(), spec.threads.into(), index.into()) as u32;
        let route = Route {
            address: spec.address.clone(),
            sources: spec.sources.clone(),
        };
        let rendered = (settings.arena.clone(), protocol::is_plain(&settings));
        Ok(LoadThread {
            index: index as usize,
            timeout_ns: settings.timeout_ns,
            started_ns: 0,
            run_delay_ns: None,
            ticked_boot_ns: 0,
            halted_ns: 0,
            driver: driver(spec.driver, route, rendered, connections as usize)?,
            worker: Worker::new(settings, sampler, pacer, connections),
            shared,
            commands,
            reports,
        })
    }

    fn serve(mut self) {
        while let Ok(command) = self.commands.recv() {
            let report = match command {
                ThreadCommand::Prepare { allowance } => self.prepare(allowance),
                ThreadCommand::Load { started_ns, until } => self.load(started_ns, until),
            };
            if self.reports.send(report).is_err() {
                return;
            }
        }
    }

    fn prepare(&mut self, allowance: Option<u64>) -> ThreadReport {
        self.publish();
        // Connections may have been closed between slices. They are reopened spread out, with the others.
        while !self.driver.turn(&mut self.worker, 0) {}
        self.worker.prepare(clock::monotonic_ns(), allowance);
        self.pump(|thread, now_ns| thread.is_interrupted() || thread.worker.is_prepared(now_ns));
        // Read before the window, because this reads a file.
        self.run_delay_ns = clock::thread_run_delay_ns();
        ThreadReport::Prepared
    }

    fn load(&mut self, started_ns: u64, until: Until) -> ThreadReport {
        let (cpu_ns, wall_ns) = (clock::thread_cpu_ns(), clock::monotonic_ns());
        let alive_at_start = self.worker.alive;
        (self.ticked_boot_ns, self.halted_ns) = (clock::boot_ns(), 0);

        self.started_ns = started_ns;
        self.worker.open_window(started_ns, until);
        // In open loop all free connections are listed already, and starting each would delay the first
        // requests.
        if !self.worker.is_open_loop() {
            self.driver.start_all(&mut self.worker);
        }
        self.pump(|thread, now_ns| thread.is_interrupted() || thread.worker.is_window_over(now_ns));
        let stopped_ns = self.drain();
        self.publish();
        self.started_ns = 0;
        let (cpu_end_ns, finished_ns) = (clock::thread_cpu_ns(), clock::monotonic_ns());
        self.listen(until, stopped_ns.saturating_sub(started_ns));
        let counts = self
            .worker
            .finish(finished_ns, |index| self.driver.close(index));

        let delays_ns = self.run_delay_ns.zip(clock::thread_run_delay_ns());
        ThreadReport::Done(Box::new(Counts {
            started_ns,
            window_ns: stopped_ns.saturating_sub(started_ns),
            drain_ns: finished_ns.saturating_sub(stopped_ns),
            halted_ns: self.halted_ns,
            connections_alive_at_start: alive_at_start,
            generator: GeneratorUse {
                driver: self.driver.name().to_owned(),
                cpu_ns: vec![cpu_end_ns - cpu_ns],
                run_delay_ns: delays_ns
                    .map(|(before, after)| after - before)
                    .into_iter()
                    .collect(),
                wall_ns: vec![finished_ns - wall_ns],
            },
            ..counts
        }))
    }

    /// Waits for requests in flight. Returns the time at which sending stopped.
    fn drain(&mut self) -> u64 {
        let now_ns = clock::monotonic_ns();
        let interrupted = self.is_interrupted();
        let limit_ns = if interrupted {
            INTERRUPTED_DRAIN_NS.min(self.timeout_ns)
        } else {
            self.timeout_ns
        };
        let stopped_ns = self.worker.stop_sending(now_ns, limit_ns);
        self.pump(|thread, now_ns| {
            if !interrupted && thread.is_interrupted() {
                thread.worker.hurry(now_ns, INTERRUPTED_DRAIN_NS);
            }
            thread.worker.is_drained(now_ns)
        });
        // The last request may have expired since the last tick. It then counts as timed out, not as
        // unfinished.
        self.driver.sweep(&mut self.worker, clock::monotonic_ns());
        stopped_ns
    }

    /// Waits for unexpected responses. Skipped after one of many short windows, because the next one begins
    /// with what arrived meanwhile.
    fn listen(&mut self, until: Until, window_ns: u64) {
        if until
            .length()
            .is_some_and(|window| clock::in_ns(window) < LISTENED_NS)
        {
            return;
        }
        let listen_ns = self.worker.listen_ns(window_ns);
        if listen_ns == 0 {
            return;
        }
        self.driver.acknowledge();
        let until_ns = clock::monotonic_ns() + listen_ns;
        self.pump(|thread, now_ns| now_ns >= until_ns || thread.is_interrupted());
    }

    /// Runs the driver until `is_over` returns true.
    fn pump(&mut self, mut is_over: impl FnMut(&mut LoadThread, u64) -> bool) {
        let mut next_tick_ns = 0;
        let mut ticks = 0;
        loop {
            let mut now_ns = clock::monotonic_ns();
            if now_ns >= next_tick_ns {
                if ticks > 0 && now_ns - next_tick_ns >= AWAY_MIN_NS {
                    self.worker.tally.silence.was_away(now_ns - next_tick_ns);
                }
                next_tick_ns = now_ns + TICK_NS;
                ticks += 1;
                self.note_halt();
                if now_ns >= self.worker.next_due_ns {
                    self.driver.sweep(&mut self.worker, now_ns);
                }
                if ticks % PUBLISH_TICKS == 0 {
                    self.publish();
                }
            }
            if is_over(self, now_ns) {
                return;
            }
            if now_ns >= self.worker.next_start_ns() {
                self.driver.start_due(&mut self.worker);
                now_ns = clock::monotonic_ns();
            }
            let next_ns = self.worker.wake_ns().min(next_tick_ns);
            self.driver
                .turn(&mut self.worker, next_ns.saturating_sub(now_ns));
        }
    }

    /// Records a halt of the thread since the last tick, if there was one.
    fn note_halt(&mut self) {
        let boot_ns = clock::boot_ns();
        let gap_ns = boot_ns - std::mem::replace(&mut self.ticked_boot_ns, boot_ns);
        if gap_ns >= HALT_MIN_NS {
            self.halted_ns += gap_ns;
        }
    }

    fn is_interrupted(&self) -> bool {
        self.shared.interrupted.load(Ordering::Relaxed)
    }

    fn publish(&self) {
        let published = &self.shared.threads[self.index];
        published
            .completed
            .store(self.worker.tally.counts.responses, Ordering::Relaxed);
        if self.started_ns > 0 && self.shared.watched.load(Ordering::Relaxed) {
            let counts = Counts {
                started_ns: self.started_ns,
                ..self.worker.tally.so_far()
            };
            *published
                .seen
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Some(Box::new(counts));
        }
    }
}

/// Number of items taker `index` gets when `total` items are dealt round-robin to `takers`.
pub(crate) fn dealt(total: u64, takers: u64, index: u64) -> u64 {
    total / takers + u64::from(index < total % takers)
}

/// Creates the requested driver, or the readiness driver if the kernel refuses the other. `plain` means that
/// only the arena's bytes are ever written, one request at a time.
fn driver(
    choice: DriverChoice,
    route: Route,
    (arena, plain): (Arc<RequestArena>, bool),
    connections: usize,
) -> Result<Box<dyn Driver>, LoadError> {
    if choice != DriverChoice::Readiness
        && let Ok(driver) = Completion::new(route.clone(), (arena, plain), connections)
    {
        return Ok(Box::new(driver));
    }
    let driver = Readiness::new(route, connections).map_err(no_thread)?;
    let needed = "Linux 5.11 or newer is needed, or a sandbox forbids its epoll_pwait2";
    driver
        .probe()
        .map_err(|errno| LoadError::System(format!("{needed}: {errno}")))?;
    Ok(Box::new(driver))
}
