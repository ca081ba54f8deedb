//! Sampling of processes from start to stop: a thread of ours reads what the kernel writes and counts stacks. Names are read after the
//! end, so that nothing but the samples themselves disturbs what is measured.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use indexmap::IndexSet;
use machine::clock::monotonic_ns;

use super::event::{Event, Ring};
use super::opening::{self, PerfError, Rights, granted};
use super::space::{Binaries, Space};
use super::stacks::{Names, Tally};
use crate::NativeProfile;
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
    reader: JoinHandle<Tally>,
    spaces: Vec<Space>,
    binaries: Binaries,
    start_ns: u64,
    period_ns: u64,
    notes: Vec<String>,
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
        let pids: Vec<u32> = pids.iter().copied().collect::<IndexSet<u32>>().into_iter().collect();
        let mode = granted(period_ns)?;
        let opened = opening::open(&pids, mode)?;
        let mut binaries = Binaries::default();
        let spaces = pids.iter().map(|pid| Space::of(*pid, &mut binaries)).collect();
        let notes = if mode.kernel { Vec::new() } else { vec![Rights::read().why_no_kernel()] };
        let (running, stop) = channel();
        let (tally, rings, pids) = (Tally::of(opened.threads), opened.rings, pids.into_iter().collect());
        let pause = (period * READ_EVERY).clamp(Duration::from_millis(10), Duration::from_millis(100));
        let reader = Builder::new()
            .name("perf-reader".to_owned())
            .spawn(move || counted(tally, rings, &pids, &stop, pause))?;
        let start_ns = monotonic_ns();
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
        let end_ns = monotonic_ns();
        drop(self.running);
        let mut tally = match self.reader.join() {
            Ok(tally) => tally,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        drop(self.events);
        tally.refresh_names();
        let (mut spaces, mut binaries) = (self.spaces, self.binaries);
        for space in &mut spaces {
            space.refresh(&mut binaries);
        }
        let names = Names::read(&tally, &mut spaces, binaries);
        let profile = |space: &Space| {
            let (frames, stacks, kernel_hidden) = names.stacks(&tally, space);
            NativeProfile {
                version: NATIVE_VERSION,
                pid: space.pid,
                start_ns: self.start_ns,
                end_ns,
                period_ns: self.period_ns,
                lost: tally.lost.get(&space.pid).copied().unwrap_or(0),
                frames,
                stacks,
                notes: notes(&self.notes, &tally, kernel_hidden),
            }
        };
        spaces.iter().map(profile).collect()
    }
}

fn checked(period: Duration) -> Result<u64, PerfError> {
    let (ns, limits) = (period.as_nanos(), PERIOD_MIN_NS..=PERIOD_MAX_NS);
    u64::try_from(ns).ok().filter(|ns| limits.contains(ns)).ok_or_else(|| {
        let limits = format!("{PERIOD_MIN_NS} to {PERIOD_MAX_NS} ns");
        PerfError::new(format!("a sampling period of {ns} ns is outside of {limits}"), "")
    })
}

fn notes(of_start: &[String], tally: &Tally, kernel_hidden: bool) -> Vec<String> {
    const HIDDEN: &str = "functions of the kernel have no names: kernel.kptr_restrict hides them; sudo sysctl kernel.kptr_restrict=0";
    let (throttled, broken) = (tally.throttled, tally.broken);
    let notes = [
        kernel_hidden.then(|| HIDDEN.to_owned()),
        (throttled > 0).then(|| {
            format!("the kernel held sampling back {throttled} times, so that there are too few samples: kernel.perf_event_max_sample_rate")
        }),
        (broken > 0).then(|| format!("{broken} pieces of the samples could not be read")),
    ];
    of_start.iter().cloned().chain(notes.into_iter().flatten()).collect()
}

/// What the thread that reads does, until the other end of `stop` is gone.
fn counted(
    mut tally: Tally,
    mut rings: Vec<Ring>,
    pids: &HashSet<u32>,
    stop: &Receiver<()>,
    pause: Duration,
) -> Tally {
    let mut bytes = Vec::new();
    loop {
        // Nothing is ever sent: the other end is dropped once the events are disabled. What they wrote is then read below.
        let ended = stop.recv_timeout(pause) != Err(RecvTimeoutError::Timeout);
        for ring in &mut rings {
            bytes.clear();
            ring.drain(&mut bytes);
            tally.take(&bytes, pids);
        }
        if ended {
            return tally;
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
}
