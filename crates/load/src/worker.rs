//! An engine thread: walks its share through the parts of each slice, turn by turn of the driver.
//!
//! It gets commands, reports back, and has nothing in common with other threads but the interrupt flag and a counter
//! of its own that it publishes now and then.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use model::{Counts, GeneratorUse};
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};

use crate::clock;
use crate::corpus::Deck;
use crate::driver::{self, Driver, Route};
use crate::pacer::Pacer;
use crate::share::{Share, Terms};
use crate::{DriverChoice, LoadError, Until};

/// How often time limits, interrupts and the end of a window without traffic are looked at.
const TICK_NS: u64 = 10_000_000;
/// How many ticks pass between two publications of progress.
const PUBLISH_TICKS: u32 = 5;
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
    /// The connect phase is over.
    Prepared,
    /// The slice is over.
    Done(Box<Counts>),
}

/// Seen by all threads and by the caller.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) interrupted: AtomicBool,
    /// Complete responses in this slice, one counter for each thread.
    pub(crate) answered: Vec<Counter>,
}

/// A counter on a cache line (or a pair of them) of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counter(pub(crate) AtomicU64);

/// What a thread is made of; it builds the rest itself, on its own CPU's memory.
pub(crate) struct Orders {
    pub(crate) index: usize,
    pub(crate) cpu: Option<usize>,
    pub(crate) driver: DriverChoice,
    pub(crate) route: Route,
    pub(crate) connections: u32,
    pub(crate) terms: Terms,
    pub(crate) deck: Deck,
    pub(crate) pacer: Option<Pacer>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) commands: Receiver<Command>,
    pub(crate) reports: Sender<Report>,
}

struct Worker {
    index: usize,
    timeout_ns: u64,
    /// The run-queue delay when the connect phase was over.
    run_delay_ns: Option<u64>,
    share: Share,
    driver: Box<dyn Driver>,
    shared: Arc<Shared>,
    commands: Receiver<Command>,
    reports: Sender<Report>,
}

/// The body of an engine thread: reports whether it could start, then serves commands until the generator is gone.
pub(crate) fn work(orders: Orders) {
    let reports = orders.reports.clone();
    match Worker::new(orders) {
        Ok(worker) if reports.send(Report::Started(Ok(()))).is_ok() => worker.serve(),
        // Nobody waits for an answer any more.
        Ok(_) => {}
        Err(error) => drop(reports.send(Report::Started(Err(error)))),
    }
}

/// Pins the calling thread.
fn pin(cpu: usize) -> Result<(), LoadError> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(LoadError::Pin { cpu, source: std::io::ErrorKind::InvalidInput.into() });
    }
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    sched_setaffinity(None, &cpus).map_err(|errno| LoadError::Pin { cpu, source: errno.into() })
}

impl Worker {
    fn new(orders: Orders) -> Result<Worker, LoadError> {
        orders.cpu.map_or(Ok(()), pin)?;
        if orders.pacer.is_some() {
            // The kernel may else wake us 50 µs late to save wake-ups. Where it will not be told, lag shows it.
            let _ = set_current_timer_slack(NonZeroU64::new(1));
        }
        let connections = orders.connections as usize;
        let driver = driver::make(orders.driver, orders.route, orders.terms.plain(), connections)?;
        Ok(Worker {
            index: orders.index,
            timeout_ns: orders.terms.timeout_ns,
            run_delay_ns: None,
            share: Share::new(orders.terms, orders.deck, orders.pacer, orders.connections),
            driver,
            shared: orders.shared,
            commands: orders.commands,
            reports: orders.reports,
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
        self.share.prepare(clock::monotonic_ns(), allowance);
        // Connections may have been closed while nobody looked.
        while !self.driver.turn(&mut self.share, 0) {}
        self.pump(|worker, now_ns| worker.is_interrupted() || worker.share.is_prepared(now_ns));
        // Read before the window, for it takes a file to read it.
        self.run_delay_ns = clock::thread_run_delay_ns();
        Report::Prepared
    }

    fn load(&mut self, started_ns: u64, until: Until) -> Report {
        let (cpu_ns, wall_ns) = (clock::thread_cpu_ns(), clock::monotonic_ns());
        let alive_at_start = self.share.alive();

        self.share.open_window(started_ns, until);
        self.driver.start_all(&mut self.share);
        self.pump(|worker, now_ns| worker.is_interrupted() || worker.share.is_window_over(now_ns));
        let stopped_ns = self.drain();
        self.publish();
        let (cpu_end_ns, finished_ns) = (clock::thread_cpu_ns(), clock::monotonic_ns());
        let counts = self.share.finish(finished_ns, |index| self.driver.close(index));

        let delays_ns = self.run_delay_ns.zip(clock::thread_run_delay_ns());
        Report::Done(Box::new(Counts {
            started_ns,
            window_ns: stopped_ns.saturating_sub(started_ns),
            drain_ns: finished_ns.saturating_sub(stopped_ns),
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
        let stopped_ns = self.share.stop_sending(now_ns, limit_ns);
        self.pump(|worker, now_ns| {
            if !interrupted && worker.is_interrupted() {
                worker.share.hurry(now_ns, INTERRUPTED_DRAIN_NS);
            }
            worker.share.is_drained(now_ns)
        });
        // The last request's time may be up since the last tick: then it has timed out and is not merely unfinished.
        self.driver.sweep(&mut self.share, clock::monotonic_ns());
        stopped_ns
    }

    /// Turns the driver until `is_over` says so.
    fn pump(&mut self, mut is_over: impl FnMut(&mut Worker, u64) -> bool) {
        let mut next_tick_ns = 0;
        let mut ticks = 0;
        loop {
            let mut now_ns = clock::monotonic_ns();
            if now_ns >= next_tick_ns {
                next_tick_ns = now_ns + TICK_NS;
                ticks += 1;
                if now_ns >= self.share.next_due_ns() {
                    self.driver.sweep(&mut self.share, now_ns);
                }
                if ticks % PUBLISH_TICKS == 0 {
                    self.publish();
                }
            }
            if is_over(self, now_ns) {
                return;
            }
            if now_ns >= self.share.next_start_ns() {
                self.driver.start_due(&mut self.share);
                now_ns = clock::monotonic_ns();
            }
            let next_ns = self.share.wake_ns().min(next_tick_ns);
            self.driver.turn(&mut self.share, next_ns.saturating_sub(now_ns));
        }
    }

    fn is_interrupted(&self) -> bool {
        self.shared.interrupted.load(Ordering::Relaxed)
    }

    fn publish(&self) {
        self.shared.answered[self.index].0.store(self.share.answered(), Ordering::Relaxed);
    }
}
