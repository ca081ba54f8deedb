//! An engine thread: takes its worker through the parts of each slice, turn by turn of the driver.
//!
//! It gets commands, reports back, and has nothing in common with other threads but the interrupt flag and a counter
//! of its own that it publishes now and then; and where somebody looks at all that it counts, a copy of that.

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
use crate::connection::TlsSettings;
use crate::driver::{self, Driver, Route};
use crate::generator::dealt;
use crate::pacer::{Pace, Pacer};
use crate::user::UserSettings;
use crate::worker::{Settings, Worker};
use crate::{Address, Arrivals, Lanes, LoadError, LoadSpec, Request, Until, Users};

/// How often time limits, interrupts and the end of a window without traffic are looked at.
const TICK_NS: u64 = 10_000_000;
/// A tick that is later than this was no tick that was put off: the thread, or the machine, stood still.
const HALT_MIN_NS: u64 = 500_000_000;
/// A tick that is later than this leaves a gap in which the thread did not look for responses.
const AWAY_MIN_NS: u64 = 20_000_000;
/// How many ticks pass between two publications of progress.
const PUBLISH_TICKS: u32 = 5;
/// By then every thread that is at work has published once more.
pub(crate) const PUBLISHED: Duration = Duration::from_millis(2 * PUBLISH_TICKS as u64 * TICK_NS / 1_000_000);
/// A window that is shorter is one of many.
const LISTENED_NS: u64 = 100_000_000;
/// How far apart all threads of a load together open connections before a window. Accepting one costs a service CPU time: a thousand at once
/// would overflow its queue (511 of Node.js), and the first requests would wait behind them.
const OPENING_GAP_NS: u64 = 250_000;
/// How long this may take for all connections.
const OPENING_MAX_NS: u64 = 1_000_000_000;
/// How long an interrupted slice waits for what is in flight.
const INTERRUPTED_DRAIN_NS: u64 = 100_000_000;

/// What a thread is told, in this order for each slice.
pub(crate) enum Command {
    /// Open what is not open.
    Prepare { allowance: Option<u64> },
    /// Load, drain, report.
    Load { started_ns: u64, until: Until },
}

/// What a thread says, in this order.
pub(crate) enum Report {
    /// Once: it is pinned and ready, or why not.
    Started(Result<(), LoadError>),
    Prepared,
    Done(Box<Counts>),
}

/// Seen by all threads and by the caller.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) interrupted: AtomicBool,
    /// Whether somebody waits for what threads have counted so far.
    pub(crate) watched: AtomicBool,
    pub(crate) threads: Vec<Published>,
}

/// What one thread has counted in this slice, on a cache line (or a pair of them) of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Published {
    pub(crate) completed: AtomicU64,
    /// All of it. Nobody touches it unless it is watched.
    pub(crate) seen: Mutex<Option<Box<Counts>>>,
}

struct Thread {
    index: usize,
    timeout_ns: u64,
    /// When the slice under way began; 0 between slices.
    started_ns: u64,
    /// The run-queue delay when the connect phase was over.
    run_delay_ns: Option<u64>,
    /// The last tick by the clock that goes on while the machine is suspended, and how long it stood still in the slice.
    ticked_boot_ns: u64,
    halted_ns: u64,
    worker: Worker,
    driver: Box<dyn Driver>,
    shared: Arc<Shared>,
    commands: Receiver<Command>,
    reports: Sender<Report>,
}

/// What a thread has in common with all others, and what with the generator.
pub(crate) type Common = (Arc<RequestArena>, Option<TlsSettings>, Arc<Shared>);
pub(crate) type Ends = (Receiver<Command>, Sender<Report>);

/// The body of engine thread `index`: reports whether it could start, then serves commands until the generator is gone. It builds
/// what it is made of itself, on its own CPU's memory.
pub(crate) fn work(spec: &LoadSpec, index: u32, common: Common, ends: Ends) {
    let reports = ends.1.clone();
    match Thread::new(spec, index, common, ends) {
        Ok(thread) if reports.send(Report::Started(Ok(()))).is_ok() => thread.serve(),
        // Nobody waits for a response any more.
        Ok(_) => {}
        Err(error) => drop(reports.send(Report::Started(Err(error)))),
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

/// The same of one thread: all of them open connections at the same time, those of other generators too.
fn opening_gap_ns(spec: &LoadSpec) -> u64 {
    let all = spec.lanes.map_or(spec.threads, |lanes| lanes.of);
    let most_ns = OPENING_MAX_NS * u64::from(spec.threads) / u64::from(spec.connections).max(1);
    most_ns.min(OPENING_GAP_NS * u64::from(all))
}

impl Thread {
    fn new(
        spec: &LoadSpec,
        index: u32,
        (arena, tls, shared): Common,
        (commands, reports): Ends,
    ) -> Result<Thread, LoadError> {
        if !spec.cpus.is_empty() {
            pin(spec.cpus[index as usize % spec.cpus.len()])?;
        }
        let Lanes { first, of } = spec.lanes.unwrap_or(Lanes { first: 0, of: spec.threads });
        let sampler = RequestSampler::new(arena.clone(), spec.seed, first + index);
        let pacer = match spec.arrivals {
            Arrivals::Closed => None,
            Arrivals::Open { rate, process, seed } => {
                // The kernel may else wake us 50 µs late to save wake-ups. Where it will not be told, lag shows it.
                let _ = set_current_timer_slack(NonZeroU64::new(1));
                Some(Pacer::new(Pace { rate, process, seed }, first + index, of))
            }
        };
        let contract = |request: &Request| request.contract.as_ref().unwrap_or(&spec.contract).clone();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let users = UserSettings {
            users: spec.users.clone(),
            endpoint: spec.requests.len(),
            seed: spec.seed,
            lane: ((first + index) as usize, of as usize),
            now_s: now.as_secs() as i64,
        };
        let settings = Settings {
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
        let route = Route { address: spec.address.clone(), sources: spec.sources.clone() };
        let rendered = (settings.arena.clone(), settings.is_plain());
        Ok(Thread {
            index: index as usize,
            timeout_ns: settings.timeout_ns,
            started_ns: 0,
            run_delay_ns: None,
            ticked_boot_ns: 0,
            halted_ns: 0,
            driver: driver::make(spec.driver, route, rendered, connections as usize)?,
            worker: Worker::new(settings, sampler, pacer, connections),
            shared,
            commands,
            reports,
        })
    }

    fn serve(mut self) {
        while let Ok(command) = self.commands.recv() {
            let report = match command {
                Command::Prepare { allowance } => self.prepare(allowance),
                Command::Load { started_ns, until } => self.load(started_ns, until),
            };
            if self.reports.send(report).is_err() {
                return;
            }
        }
    }

    fn prepare(&mut self, allowance: Option<u64>) -> Report {
        self.publish();
        // Connections may have been closed while nobody looked: they are opened with the others, and not all at once.
        while !self.driver.turn(&mut self.worker, 0) {}
        self.worker.prepare(clock::monotonic_ns(), allowance);
        self.pump(|thread, now_ns| thread.is_interrupted() || thread.worker.is_prepared(now_ns));
        // Read before the window, for it takes a file to read it.
        self.run_delay_ns = clock::thread_run_delay_ns();
        Report::Prepared
    }

    fn load(&mut self, started_ns: u64, until: Until) -> Report {
        let (cpu_ns, wall_ns) = (clock::thread_cpu_ns(), clock::monotonic_ns());
        let alive_at_start = self.worker.alive;
        (self.ticked_boot_ns, self.halted_ns) = (clock::boot_ns(), 0);

        self.started_ns = started_ns;
        self.worker.open_window(started_ns, until);
        // In open loop all that are free are listed already, and to ask each of them would make the first requests late.
        if !self.worker.is_open_loop() {
            self.driver.start_all(&mut self.worker);
        }
        self.pump(|thread, now_ns| thread.is_interrupted() || thread.worker.is_window_over(now_ns));
        let stopped_ns = self.drain();
        self.publish();
        self.started_ns = 0;
        let (cpu_end_ns, finished_ns) = (clock::thread_cpu_ns(), clock::monotonic_ns());
        self.listen(until, stopped_ns.saturating_sub(started_ns));
        let counts = self.worker.finish(finished_ns, |index| self.driver.close(index));

        let delays_ns = self.run_delay_ns.zip(clock::thread_run_delay_ns());
        Report::Done(Box::new(Counts {
            started_ns,
            window_ns: stopped_ns.saturating_sub(started_ns),
            drain_ns: finished_ns.saturating_sub(stopped_ns),
            halted_ns: self.halted_ns,
            connections_alive_at_start: alive_at_start,
            generator: GeneratorUse {
                driver: self.driver.name().to_owned(),
                cpu_ns: vec![cpu_end_ns - cpu_ns],
                run_delay_ns: delays_ns.map(|(before, after)| after - before).into_iter().collect(),
                wall_ns: vec![finished_ns - wall_ns],
            },
            ..counts
        }))
    }

    /// Waits for what is in flight; returns when sending stopped.
    fn drain(&mut self) -> u64 {
        let now_ns = clock::monotonic_ns();
        let interrupted = self.is_interrupted();
        let limit_ns = if interrupted { INTERRUPTED_DRAIN_NS.min(self.timeout_ns) } else { self.timeout_ns };
        let stopped_ns = self.worker.stop_sending(now_ns, limit_ns);
        self.pump(|thread, now_ns| {
            if !interrupted && thread.is_interrupted() {
                thread.worker.hurry(now_ns, INTERRUPTED_DRAIN_NS);
            }
            thread.worker.is_drained(now_ns)
        });
        // The last request's time may be up since the last tick: then it has timed out and is not merely unfinished.
        self.driver.sweep(&mut self.worker, clock::monotonic_ns());
        stopped_ns
    }

    /// Waits for what nobody asked for. Not after one of many short turns: the next one begins with what came meanwhile.
    fn listen(&mut self, until: Until, window_ns: u64) {
        if until.length().is_some_and(|window| clock::in_ns(window) < LISTENED_NS) {
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

    /// Turns the driver until `is_over` says so.
    fn pump(&mut self, mut is_over: impl FnMut(&mut Thread, u64) -> bool) {
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
            self.driver.turn(&mut self.worker, next_ns.saturating_sub(now_ns));
        }
    }

    /// Whether the thread stood still since the last tick.
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
        published.completed.store(self.worker.tally.counts.responses, Ordering::Relaxed);
        if self.started_ns > 0 && self.shared.watched.load(Ordering::Relaxed) {
            let counts = Counts { started_ns: self.started_ns, ..self.worker.tally.so_far() };
            *published.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(counts));
        }
    }
}
