//! Events for all threads of the processes asked for, and one ring for each CPU.
//!
//! **Why an event for each thread on each CPU.** An event that threads started later inherit may share its memory with us only if it is
//! bound to a CPU; one that is bound to a CPU and to no thread would sample every program of the machine, and takes rights that few
//! have. All events of a CPU write to one ring, whose memory stays within what the kernel allows to everybody.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;

use crate::perf::error::PerfError;
use crate::perf::event::{Event, Mode, Ring, Whom, page_bytes};
use crate::perf::process;
use crate::perf::tally::Thread;

/// What samples are made with, not enabled yet.
pub(crate) struct Opened {
    pub events: Vec<Event>,
    pub rings: Vec<Ring>,
    /// Names of the threads.
    pub threads: HashMap<Thread, String>,
}

/// Threads may start while we open. Then it is done again, at most so often.
const ATTEMPTS: usize = 3;
/// Memory of a ring: at the shortest period a tenth of a second's samples of 127 callers each take less.
const RING_BYTES: usize = 256 << 10;
/// The least, where much of what the user may have is taken.
const RING_BYTES_MIN: usize = 32 << 10;

/// Opens events for all threads of these processes.
pub(crate) fn open(pids: &[u32], mode: Mode) -> Result<Opened, PerfError> {
    let mut threads = threads_of(pids)?;
    for _ in 1..ATTEMPTS {
        let opened = open_threads(&threads, mode)?;
        let now = threads_of(pids)?;
        // A new one was started by a thread that had an event already, and has inherited it, or by one that had none yet: nobody
        // can tell. Events for all that are there now are sure to count each once.
        if now.is_subset(&threads) {
            return Ok(opened);
        }
        threads = now;
    }
    open_threads(&threads, mode)
}

fn threads_of(pids: &[u32]) -> Result<BTreeSet<Thread>, PerfError> {
    let mut all = BTreeSet::new();
    for &pid in pids {
        let threads = process::threads(pid);
        if threads.is_empty() {
            return Err(PerfError::NoProcess { pid });
        }
        all.extend(threads.into_iter().map(|tid| Thread { pid, tid }));
    }
    Ok(all)
}

fn open_threads(threads: &BTreeSet<Thread>, mode: Mode) -> Result<Opened, PerfError> {
    let cpus: BTreeSet<u32> =
        threads.iter().flat_map(|thread| process::cpus(thread.pid, thread.tid)).collect();
    let mut by_cpu: BTreeMap<u32, Cpu> = BTreeMap::new();
    let mut names = HashMap::new();
    for &thread in threads {
        names.insert(thread, process::thread_name(thread.pid, thread.tid).unwrap_or_default());
        for &cpu in &cpus {
            let event = match Event::open(Whom::Thread { tid: thread.tid, cpu }, mode) {
                Ok(event) => event,
                Err(error) if is_absence(&error) => continue,
                Err(error) => return Err(told(error, thread.pid, threads.len(), cpus.len())),
            };
            match by_cpu.get_mut(&cpu) {
                Some(known) => known.add(event)?,
                None => drop(by_cpu.insert(cpu, Cpu::new(event, cpus.len())?)),
            }
        }
    }
    let (events, rings): (Vec<Vec<Event>>, Vec<Ring>) =
        by_cpu.into_values().map(|cpu| (cpu.events, cpu.ring)).unzip();
    Ok(Opened { events: events.into_iter().flatten().collect(), rings, threads: names })
}

/// The events of a CPU. All send to the ring of the first.
struct Cpu {
    ring: Ring,
    events: Vec<Event>,
}

impl Cpu {
    fn new(event: Event, cpus: usize) -> Result<Cpu, PerfError> {
        Ok(Cpu { ring: ring(&event, cpus)?, events: vec![event] })
    }

    fn add(&mut self, event: Event) -> Result<(), PerfError> {
        if let Some(first) = self.events.first() {
            event.send_to(first)?;
        }
        self.events.push(event);
        Ok(())
    }
}

/// As much memory as there is to be had: others may use a part of what the kernel allows to a user.
fn ring(event: &Event, cpus: usize) -> Result<Ring, PerfError> {
    let mut bytes = RING_BYTES;
    loop {
        match Ring::map(event, (bytes / page_bytes()).max(1)) {
            Ok(ring) => return Ok(ring),
            Err(source) if bytes <= RING_BYTES_MIN => {
                return Err(PerfError::Memory { kib: bytes / 1024, cpus, source });
            }
            Err(_) => bytes /= 2,
        }
    }
}

/// The thread has ended, or the CPU is switched off.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENODEV | libc::ENXIO))
}

fn told(error: io::Error, pid: u32, threads: usize, cpus: usize) -> PerfError {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => PerfError::Descriptors { threads, cpus, needed: threads * cpus },
        // Whether we may sample at all has been tried before.
        Some(libc::EACCES | libc::EPERM) => PerfError::Stranger { pid },
        _ => PerfError::System(error),
    }
}
