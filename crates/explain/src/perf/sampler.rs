//! Sampling of processes from start to stop: a thread of ours reads what the kernel writes and counts stacks. Names are read after the
//! end, so that nothing but the samples themselves disturbs what is measured.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::NativeProfile;
use crate::perf::binaries::Binaries;
use crate::perf::chain::has_address;
use crate::perf::error::PerfError;
use crate::perf::event::{Event, Ring};
use crate::perf::naming::Names;
use crate::perf::opening;
use crate::perf::permission::{Rights, granted};
use crate::perf::process;
use crate::perf::records::{Record, read};
use crate::perf::space::Space;
use crate::perf::tally::{Tally, Thread};
use crate::read::NATIVE_VERSION;

/// The shortest period: below, samples cost more than what they sample.
const PERIOD_MIN_NS: u64 = 100_000;
/// The longest.
const PERIOD_MAX_NS: u64 = 1_000_000_000;
/// Samples of a CPU between two readings of its ring, at most.
const READ_EVERY: u32 = 100;
/// Sampling that goes on until it is stopped. Dropped without that, it ends and tells nothing.
pub struct Sampler {
    events: Vec<Event>,
    /// Dropped to end the reader.
    running: Sender<()>,
    reader: JoinHandle<Seen>,
    spaces: Vec<Space>,
    binaries: Binaries,
    start_ns: u64,
    period_ns: u64,
    notes: Vec<String>,
}

/// What the reader has counted.
struct Seen {
    tally: Tally,
    threads: HashMap<Thread, String>,
}

impl Sampler {
    /// Samples all threads of these processes, and threads that they start, each after every `period` of CPU time that it has used
    /// (100 µs to 1 s; 1001 µs does not keep step with what happens every millisecond). Processes that they start are not sampled.
    ///
    /// # Errors
    /// A process that is not there, or another user's; too few open files or too little memory for them; or the kernel does not allow
    /// it ([`crate::perf::allowed`]).
    pub fn start(pids: &[u32], period: Duration) -> Result<Sampler, PerfError> {
        let period_ns = checked(period)?;
        let pids = once_each(pids);
        let mode = granted(period_ns)?;
        let opened = opening::open(&pids, mode)?;
        let mut binaries = Binaries::default();
        let spaces = pids.iter().map(|pid| Space::of(*pid, &mut binaries)).collect();
        let notes = if mode.kernel { Vec::new() } else { vec![Rights::read().why_no_kernel()] };
        let (running, stop) = channel();
        let seen = Seen { tally: Tally::default(), threads: opened.threads };
        let reader = Reader { rings: opened.rings, pids: pids.into_iter().collect(), seen };
        let pause = (period * READ_EVERY).clamp(Duration::from_millis(10), Duration::from_millis(100));
        let reader = Builder::new().name("perf-reader".to_owned()).spawn(move || reader.run(&stop, pause))?;
        let start_ns = now_ns();
        for event in &opened.events {
            event.enable()?;
        }
        Ok(Sampler { events: opened.events, running, reader, spaces, binaries, start_ns, period_ns, notes })
    }

    /// Ends sampling and names what was seen: the profile of each process, in the order in which they were given, also of those that have
    /// ended. Takes some tenths of a second of CPU time where programs are large.
    pub fn stop(self) -> Vec<NativeProfile> {
        for event in &self.events {
            // What cannot be disabled ends when it is dropped, a moment later.
            let _ = event.disable();
        }
        let end_ns = now_ns();
        drop(self.running);
        let mut seen = match self.reader.join() {
            Ok(seen) => seen,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        drop(self.events);
        seen.refresh_names();
        let (mut spaces, mut binaries) = (self.spaces, self.binaries);
        for space in &mut spaces {
            space.refresh(&mut binaries);
        }
        let names = Names::read(&seen.tally, &mut spaces, binaries);
        let profile = |space: &Space| {
            let named = names.stacks(&seen.tally, space, &seen.threads);
            NativeProfile {
                version: NATIVE_VERSION,
                pid: space.pid,
                start_ns: self.start_ns,
                end_ns,
                period_ns: self.period_ns,
                lost: seen.tally.lost.get(&space.pid).copied().unwrap_or(0),
                frames: named.frames,
                stacks: named.stacks,
                notes: notes(&self.notes, &seen.tally, named.kernel_hidden),
            }
        };
        spaces.iter().map(profile).collect()
    }
}

fn checked(period: Duration) -> Result<u64, PerfError> {
    let wrong =
        || PerfError::Period { period_ns: period.as_nanos(), min_ns: PERIOD_MIN_NS, max_ns: PERIOD_MAX_NS };
    let period_ns = u64::try_from(period.as_nanos()).map_err(|_| wrong())?;
    if (PERIOD_MIN_NS..=PERIOD_MAX_NS).contains(&period_ns) { Ok(period_ns) } else { Err(wrong()) }
}

fn once_each(pids: &[u32]) -> Vec<u32> {
    let mut seen = HashSet::new();
    pids.iter().copied().filter(|pid| seen.insert(*pid)).collect()
}

fn notes(of_start: &[String], tally: &Tally, kernel_hidden: bool) -> Vec<String> {
    let mut notes = of_start.to_vec();
    if kernel_hidden {
        notes.push(
            "functions of the kernel have no names: kernel.kptr_restrict hides them; sudo sysctl kernel.kptr_restrict=0".to_owned(),
        );
    }
    if tally.throttled > 0 {
        notes.push(format!(
            "the kernel held sampling back {} times, so that there are too few samples: kernel.perf_event_max_sample_rate",
            tally.throttled
        ));
    }
    if tally.broken > 0 {
        notes.push(format!("{} pieces of the samples could not be read", tally.broken));
    }
    notes
}

fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    seconds.unwrap_or(0) * 1_000_000_000 + nanos.unwrap_or(0)
}

/// The thread that reads.
struct Reader {
    rings: Vec<Ring>,
    pids: HashSet<u32>,
    seen: Seen,
}

impl Reader {
    fn run(mut self, stop: &Receiver<()>, pause: Duration) -> Seen {
        let mut bytes = Vec::new();
        let mut chain = Vec::new();
        loop {
            // Nothing is ever sent: the other end is dropped once the events are disabled. What they wrote is then read below.
            let ended = stop.recv_timeout(pause) != Err(RecvTimeoutError::Timeout);
            for ring in &mut self.rings {
                bytes.clear();
                ring.drain(&mut bytes);
                self.seen.take(&bytes, &self.pids, &mut chain);
            }
            if ended {
                return self.seen;
            }
        }
    }
}

impl Seen {
    fn take(&mut self, bytes: &[u8], pids: &HashSet<u32>, chain: &mut Vec<u64>) {
        for record in read(bytes) {
            match record {
                // Before Linux 5.13 processes that were started meanwhile are among them.
                Record::Sample { pid, tid, address, chain: bytes } if pids.contains(&pid) => {
                    chain.clear();
                    let addresses = bytes.chunks_exact(8).filter_map(|bytes| bytes.try_into().ok());
                    chain.extend(addresses.map(u64::from_ne_bytes));
                    if !has_address(chain) {
                        chain.clear();
                        chain.push(address);
                    }
                    self.count(Thread { pid, tid }, chain);
                }
                Record::Lost { pid, count } => *self.tally.lost.entry(pid).or_default() += count,
                Record::Throttled => self.tally.throttled += 1,
                Record::Broken => self.tally.broken += 1,
                Record::Sample { .. } => {}
            }
        }
    }

    fn count(&mut self, thread: Thread, chain: &[u64]) {
        // Asked at once: it may not live until the end.
        if self.tally.add(thread, chain) && !self.threads.contains_key(&thread) {
            let name = process::thread_name(thread.pid, thread.tid).unwrap_or_default();
            self.threads.insert(thread, name);
        }
    }

    /// A thread may have got its name after it started.
    fn refresh_names(&mut self) {
        for thread in self.tally.threads() {
            if let Some(name) = process::thread_name(thread.pid, thread.tid) {
                self.threads.insert(thread, name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_out_of_limits_is_named_with_them() {
        let error = Sampler::start(&[], Duration::from_nanos(999)).err().unwrap();
        assert_eq!(error.to_string(), "a sampling period of 999 ns is outside of 100000 to 1000000000 ns");
        assert!(checked(Duration::from_secs(2)).is_err() && checked(Duration::from_micros(1001)).is_ok());
    }

    #[test]
    fn samples_of_other_processes_do_not_count() {
        let mut seen = Seen { tally: Tally::default(), threads: HashMap::new() };
        let ids = |pid: u32| [pid.to_ne_bytes(), pid.to_ne_bytes()].concat();
        let sample = |pid| {
            let body = [&0x1000u64.to_ne_bytes()[..], &ids(pid), &0u64.to_ne_bytes()].concat();
            let size = u16::try_from(8 + body.len()).unwrap();
            [&9u32.to_ne_bytes()[..], &[0, 0], &size.to_ne_bytes(), &body].concat()
        };
        let bytes = [sample(u32::MAX), sample(5), sample(u32::MAX)].concat();
        seen.take(&bytes, &HashSet::from([u32::MAX]), &mut Vec::new());
        assert!(seen.tally.of(5).is_empty());
        // A sample without a chain is its address.
        let expected: (Thread, &[u64], u64) = (Thread { pid: u32::MAX, tid: u32::MAX }, &[0x1000], 2);
        assert_eq!(seen.tally.of(u32::MAX), [expected]);
    }
}
