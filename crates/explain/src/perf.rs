//! Kernel sampling of processes: native stacks with names of the CPU time of compiled code, the kernel and
//! threads without JavaScript. It samples processes that the caller started. It starts, stops and changes
//! none.
//!
//! For every millisecond of CPU time of a thread, the kernel records its position (`perf_event_open`, the
//! software event cpu-clock, which needs no hardware counters). So a sample stands for one period of CPU
//! time.
//!
//! **Quality of the stacks.** The running function is always right. Its callers are found by frame pointers,
//! which code compiled by V8 and the kernel have, but most compiled libraries do not. There a stack may end
//! early or lack a caller. In the kernel a sample may be late, taken where interrupts are enabled again.
//!
//! **Not included:** processes that start later, the first period of a thread on each CPU, and, if
//! [`crate::NativeProfile::notes`] says so, the kernel.

use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use machine::clock::monotonic_ns;
use machine::{ProcessRights, Texts, process};
use model::quantity::many;

use self::event::{Mode, PerfEvent, PerfRing, page_bytes};
use self::space::{Binaries, Space};
use self::stacks::{SampledThread, StackNames, StackTally, thread_name};
use crate::NativeProfile;
use crate::read::NATIVE_VERSION;

#[cfg(fuzzing)]
#[doc(hidden)]
pub use symbols::names_anything;

mod event;
mod records;
mod space;
mod stacks;
mod symbols;

// Sampling of processes from start to stop: a reader thread reads the kernel's output and counts stacks.
// Names are resolved after the end, so that only the samples themselves disturb the measurement.

/// CPU time between samples: a little more than a millisecond, to avoid synchronising with periodic events.
const PERIOD_NS: u64 = 1_001_000;
/// Interval of reading the rings: at most a hundred samples of each CPU.
const READ_EVERY: Duration = Duration::from_millis(100);

/// Sampling in progress. Dropping it ends the sampling without a result.
pub struct StackSampler {
    events: Vec<PerfEvent>,
    /// Dropped to end the reader.
    running: Sender<()>,
    reader: JoinHandle<StackTally>,
    spaces: Vec<Space>,
    binaries: Binaries,
    start_ns: u64,
    notes: Vec<String>,
}

impl StackSampler {
    /// Samples all threads of these processes, and threads that they start. Processes that they start are not
    /// sampled.
    ///
    /// # Errors
    /// Returns an error if none of the processes exists, one belongs to another user, there are too few open
    /// files or too little memory, or the kernel does not allow it ([`crate::perf::allowed`]).
    pub fn start(pids: &[u32]) -> Result<StackSampler, PerfError> {
        let pids = model::distinct(pids.iter().copied());
        let mode = granted()?;
        let (events, rings, names) = open(&pids, mode)?;
        let mut binaries = Binaries::default();
        let spaces = pids
            .iter()
            .map(|pid| Space::of(*pid, &mut binaries))
            .collect();
        let notes = if mode.kernel {
            Vec::new()
        } else {
            vec![why_no_kernel(&rights())]
        };
        let (running, stop) = channel();
        let (tally, pids) = (StackTally::of(names), pids.into_iter().collect());
        let reader = Builder::new()
            .name("perf-reader".to_owned())
            .spawn(move || counted(tally, rings, &pids, &stop))?;
        let start_ns = monotonic_ns();
        for event in &events {
            event.enable()?;
        }
        Ok(StackSampler {
            events,
            running,
            reader,
            spaces,
            binaries,
            start_ns,
            notes,
        })
    }

    /// Ends sampling and resolves names. Returns the profile of each process, in the given order, including
    /// processes that have exited. Takes some tenths of a second of CPU time for large programs.
    pub fn stop(self) -> Vec<NativeProfile> {
        for event in &self.events {
            // Events that cannot be disabled end when they are dropped, a moment later.
            let _ = event.disable();
        }
        let end_ns = monotonic_ns();
        drop(self.running);
        let mut tally = self
            .reader
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        drop(self.events);
        tally.refresh_names();
        let (mut spaces, mut binaries) = (self.spaces, self.binaries);
        for space in &mut spaces {
            space.refresh(&mut binaries);
        }
        let names = StackNames::read(&tally, &mut spaces, binaries);
        let profile = |space: &Space| {
            let (frames, stacks, kernel_hidden) = names.stacks(&tally, space);
            NativeProfile {
                version: NATIVE_VERSION,
                pid: space.pid,
                start_ns: self.start_ns,
                end_ns,
                period_ns: PERIOD_NS,
                lost: tally.lost.get(&space.pid).copied().unwrap_or(0),
                frames,
                stacks,
                notes: notes(&self.notes, &tally, kernel_hidden),
            }
        };
        spaces.iter().map(profile).collect()
    }
}

fn notes(of_start: &[String], tally: &StackTally, kernel_hidden: bool) -> Vec<String> {
    const HIDDEN: &str = "functions of the kernel have no names: kernel.kptr_restrict hides them; sudo sysctl kernel.kptr_restrict=0";
    let (throttled, broken) = (tally.throttled, tally.broken);
    let notes = [
        kernel_hidden.then(|| HIDDEN.to_owned()),
        (throttled > 0).then(|| {
            format!("the kernel held sampling back {}, so that there are too few samples: kernel.perf_event_max_sample_rate", many(throttled, "time"))
        }),
        (broken > 0).then(|| format!("{} of the samples could not be read", many(broken, "piece"))),
    ];
    of_start
        .iter()
        .cloned()
        .chain(notes.into_iter().flatten())
        .collect()
}

/// The body of the reader thread, which runs until the other end of `stop` is dropped.
fn counted(
    mut tally: StackTally,
    mut rings: Vec<PerfRing>,
    pids: &HashSet<u32>,
    stop: &Receiver<()>,
) -> StackTally {
    let mut bytes = Vec::new();
    loop {
        // Nothing is ever sent: the other end is dropped once the events are disabled. Their output is then
        // read below.
        let ended = stop.recv_timeout(READ_EVERY) != Err(RecvTimeoutError::Timeout);
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

// Events for all threads of the processes, one ring for each CPU, and the check whether the kernel allows
// this, with a hint if it does not.
//
// **Why one event per thread and CPU.** An event that later threads inherit may share its memory only if it
// is bound to a CPU. An event bound to a CPU but to no thread would sample every program on the machine, and
// needs rare privileges. All events of a CPU write to one ring, whose memory stays within what the kernel
// allows all users.

/// The reason processes cannot be sampled. Messages are one line, and the hint is separate.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct PerfError {
    why: String,
    hint: String,
}

impl PerfError {
    pub(crate) fn new(why: String, hint: impl Into<String>) -> PerfError {
        PerfError {
            why,
            hint: hint.into(),
        }
    }

    /// A hint for the user, if there is one.
    pub fn hint(&self) -> Option<&str> {
        Some(self.hint.as_str()).filter(|hint| !hint.is_empty())
    }
}

impl From<io::Error> for PerfError {
    fn from(error: io::Error) -> PerfError {
        PerfError::new(format!("cannot sample: {error}"), "")
    }
}

/// Checks whether processes of this user may be sampled. Tries an event on the calling thread, without
/// sampling.
///
/// # Errors
/// Returns the reason and a hint, or an error if this kernel has no perf events.
pub fn allowed() -> Result<(), PerfError> {
    granted().map(|_| ())
}

/// The most complete mode the kernel grants: with kernel work if allowed, and without child processes if the
/// kernel can distinguish them from threads.
pub(crate) fn granted() -> Result<Mode, PerfError> {
    let mut mode = Mode {
        kernel: true,
        threads_only: true,
    };
    loop {
        let Err(error) = PerfEvent::open(None, mode) else {
            return Ok(mode);
        };
        match error.raw_os_error() {
            // Linux before 5.13 does not know this flag.
            Some(libc::EINVAL) if mode.threads_only => mode.threads_only = false,
            Some(libc::EACCES | libc::EPERM) if mode.kernel => mode.kernel = false,
            _ => return Err(refusal(error, &rights())),
        }
    }
}

fn rights() -> ProcessRights {
    ProcessRights::of(&Texts::look())
}

/// The reason the kernel's work is not in a profile.
fn why_no_kernel(rights: &ProcessRights) -> String {
    let level = rights
        .perf_event_paranoid
        .map_or_else(|| "unknown".to_owned(), |level| level.to_string());
    format!(
        "the kernel's own work is not in it: kernel.perf_event_paranoid is {level}; with 1, or with CAP_PERFMON, it is"
    )
}

const SYSCTL: &str = "sudo sysctl kernel.perf_event_paranoid=2 (1 to see the kernel's own work too), \
                      or run as root, or with the capability CAP_PERFMON";
const CONTAINER: &str = "allow perf_event_open in the container's seccomp profile: docker run --cap-add PERFMON, \
                         in Kubernetes securityContext.capabilities.add PERFMON, elsewhere a profile of your own";
const HOST: &str =
    "sudo sysctl kernel.perf_event_paranoid=2 on the host, or run outside of the container";
const MODULE: &str = "a security module (SELinux, lockdown in confidentiality mode) forbids it; run as root outside of it";

/// Converts the system's error into a helpful message.
fn refusal(error: io::Error, rights: &ProcessRights) -> PerfError {
    let (why, hint) = match (error.raw_os_error(), rights.perf_event_paranoid) {
        (Some(libc::ENOSYS), Some(_)) | (Some(libc::EPERM), _) if rights.filtered == Some(true) => {
            (
                "a filter of system calls (seccomp) refuses perf_event_open".to_owned(),
                CONTAINER,
            )
        }
        (Some(libc::ENOSYS | libc::ENOENT | libc::EOPNOTSUPP), _) => {
            let why = format!("this kernel has no perf events: perf_event_open: {error}");
            return PerfError::new(why, "a kernel with CONFIG_PERF_EVENTS has them");
        }
        // 3 and 4 exist on Debian, Ubuntu and Android: no perf events without the capability.
        (Some(libc::EACCES | libc::EPERM), Some(level)) if level > 2 => {
            let (which, hint) = match rights.perfmon {
                Some(true) => (
                    "the capability CAP_PERFMON is of a user namespace only",
                    HOST,
                ),
                _ => ("this process has no CAP_PERFMON", SYSCTL),
            };
            (
                format!("kernel.perf_event_paranoid is {level}, and {which}"),
                hint,
            )
        }
        (Some(libc::EACCES | libc::EPERM), level) => {
            let level = level.map_or_else(
                || "cannot be read".to_owned(),
                |level| format!("is {level}"),
            );
            (
                format!("perf_event_open: {error}, although kernel.perf_event_paranoid {level}"),
                MODULE,
            )
        }
        _ => return error.into(),
    };
    PerfError::new(
        format!("the kernel does not allow native profiles: {why}"),
        hint,
    )
}

/// Events that are not enabled yet, their rings, and the names of their threads.
type OpenedEvents = (
    Vec<PerfEvent>,
    Vec<PerfRing>,
    HashMap<SampledThread, String>,
);

/// Maximum attempts, because threads may start while events are opened.
const ATTEMPTS: usize = 3;
/// Memory of a ring. Samples of a tenth of a second with 127 callers each take less.
const RING_BYTES: usize = 256 << 10;
/// The minimum, if much of the user's allowance is taken.
const RING_BYTES_MIN: usize = 32 << 10;

/// Opens events for all threads of these processes.
pub(crate) fn open(pids: &[u32], mode: Mode) -> Result<OpenedEvents, PerfError> {
    let mut threads = threads_of(pids)?;
    for _ in 1..ATTEMPTS {
        let opened = open_threads(&threads, mode)?;
        let now = threads_of(pids)?;
        // A new thread was started either by a thread with an event, and has inherited it, or by one without.
        // This is unknown. Events for all threads that exist now are sure to count each once.
        if now.is_subset(&threads) {
            return Ok(opened);
        }
        threads = now;
    }
    open_threads(&threads, mode)
}

fn threads_of(pids: &[u32]) -> Result<BTreeSet<SampledThread>, PerfError> {
    let threads = |&pid: &u32| {
        process::threads(pid)
            .into_iter()
            .map(move |tid| SampledThread { pid, tid })
    };
    let all: BTreeSet<SampledThread> = pids.iter().flat_map(threads).collect();
    match pids.first() {
        // A service may start short-lived processes. If other processes exist, they are sampled.
        Some(pid) if all.is_empty() => Err(PerfError::new(
            format!("process {pid} cannot be sampled: it is not there"),
            "",
        )),
        _ => Ok(all),
    }
}

fn open_threads(threads: &BTreeSet<SampledThread>, mode: Mode) -> Result<OpenedEvents, PerfError> {
    // `/proc` also accepts a thread ID here.
    let cpus: BTreeSet<usize> = threads
        .iter()
        .flat_map(|thread| process::cpus(thread.tid))
        .collect();
    // All events of a CPU write to the ring of the first.
    let mut by_cpu: BTreeMap<usize, (PerfRing, Vec<PerfEvent>)> = BTreeMap::new();
    for thread in threads {
        for &cpu in &cpus {
            let event = match PerfEvent::open(Some((thread.tid, cpu)), mode) {
                Ok(event) => event,
                // The thread has exited, or the CPU is offline.
                Err(error)
                    if matches!(
                        error.raw_os_error(),
                        Some(libc::ESRCH | libc::ENODEV | libc::ENXIO)
                    ) =>
                {
                    continue;
                }
                Err(error) => return Err(told(error, thread.pid, threads.len(), cpus.len())),
            };
            match by_cpu.entry(cpu) {
                Entry::Vacant(free) => drop(free.insert((ring(&event, cpus.len())?, vec![event]))),
                Entry::Occupied(known) => {
                    let (_, events) = known.into_mut();
                    event.send_to(&events[0])?;
                    events.push(event);
                }
            }
        }
    }
    let (rings, events): (Vec<PerfRing>, Vec<Vec<PerfEvent>>) = by_cpu.into_values().unzip();
    let names = threads
        .iter()
        .map(|thread| (*thread, thread_name(*thread)))
        .collect();
    Ok((events.into_iter().flatten().collect(), rings, names))
}

/// The largest available ring: other programs may use a part of the user's allowance.
fn ring(event: &PerfEvent, cpus: usize) -> Result<PerfRing, PerfError> {
    let mut bytes = RING_BYTES;
    loop {
        match PerfRing::map(event, (bytes / page_bytes()).max(1)) {
            Ok(ring) => return Ok(ring),
            Err(source) if bytes <= RING_BYTES_MIN => {
                let why = format!(
                    "no memory for samples, {} KiB for each of {cpus} CPUs: {source}",
                    bytes / 1024
                );
                let hint = "raise kernel.perf_event_mlock_kb (sysctl), or end other programs of this user that use perf events";
                return Err(PerfError::new(why, hint));
            }
            Err(_) => bytes /= 2,
        }
    }
}

fn told(error: io::Error, pid: u32, threads: usize, cpus: usize) -> PerfError {
    let (why, hint) = match error.raw_os_error() {
        // Each thread needs an open file for each CPU that it may run on.
        Some(libc::EMFILE | libc::ENFILE) => {
            let needed = threads * cpus;
            (
                format!(
                    "native profiles of {} on {} take {}; there are too few",
                    many(threads as u64, "thread"),
                    many(cpus as u64, "CPU"),
                    many(needed as u64, "open file")
                ),
                format!(
                    "raise the limit of open files by {needed} (ulimit -n), or pin the service to fewer CPUs"
                ),
            )
        }
        // The general permission to sample was checked before.
        Some(libc::EACCES | libc::EPERM) => (
            format!(
                "process {pid} cannot be sampled: it is another user's, or does not allow to be looked into"
            ),
            "run as its user, as root, or with the capability CAP_PERFMON".to_owned(),
        ),
        _ => return error.into(),
    };
    PerfError::new(why, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_forbids_sampling_is_told_with_what_to_set() {
        const USER: &str = "CapEff:\t0000000000000000\nSeccomp:\t0\nSeccomp_filters:\t0";
        const ROOT: &str = "CapEff:\t000001ffffffffff\nSeccomp:\t0";
        const DOCKER: &str = "CapEff:\t00000000a80425fb\nSeccomp:\t2\nSeccomp_filters:\t1";
        const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
        let rights = |level: &str, status: &str| {
            let level = if level.is_empty() {
                String::new()
            } else {
                format!("== {PARANOID}\n{level}\n")
            };
            ProcessRights::of(&Texts::kept(&format!(
                "== /proc/self/status\n{status}\n{level}"
            )))
        };
        let denied = "(os error 13), although kernel.perf_event_paranoid is -1";
        for (errno, level, status, says, hints) in [
            (
                libc::EACCES,
                "4",
                USER,
                "is 4, and this process has no CAP_PERFMON",
                "perf_event_paranoid=2",
            ),
            // A container gets a hint about its own filter, not about the host.
            (libc::EPERM, "2", DOCKER, "seccomp", "--cap-add PERFMON"),
            (libc::ENOSYS, "2", DOCKER, "seccomp", "--cap-add PERFMON"),
            // Root of a user namespace gets a hint that its capability does not suffice.
            (libc::EACCES, "3", ROOT, "user namespace", "on the host"),
            (libc::EACCES, "-1", ROOT, denied, "security module"),
            (
                libc::ENOSYS,
                "",
                USER,
                "no perf events",
                "CONFIG_PERF_EVENTS",
            ),
            (libc::EMFILE, "2", USER, "cannot sample", ""),
        ] {
            let error = refusal(io::Error::from_raw_os_error(errno), &rights(level, status));
            assert!(error.to_string().contains(says), "{error}");
            assert!(
                error.hint().unwrap_or_default().contains(hints),
                "{error:?}"
            );
        }
        assert!(why_no_kernel(&rights("2", USER)).contains("paranoid is 2"));
    }
}
