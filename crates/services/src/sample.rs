//! What a service's tree has used so far: CPU, waiting for CPU, memory, switches, reading from storage.
//!
//! Two samples around a slice give the slice's share. It reads; it never waits and never judges.
//!
//! **CPU time** comes from a control group where one could be made ([`CpuSource::Group`]): it misses nothing. Elsewhere
//! ([`CpuSource::Processes`]) it is, over all processes of the tree, their own time (their CPU clock, ns) plus that of
//! their children that have ended (`cutime` and `cstime` of `/proc/PID/stat`). What that loses: up to two clock ticks
//! (20 ms) for each process that has ended children, and all of the time of children whose parent ignores SIGCHLD. A
//! tree that starts and ends no processes during a slice loses nothing. Either way the share of a thread running this
//! moment is up to a scheduler tick (1 to 10 ms) old.

use std::collections::HashMap;
use std::fs;

use serde::{Deserialize, Serialize};

use crate::clock::monotonic_ns;
use crate::group::CpuGroup;
use crate::process::{ProcessId, Stat, cpu_ns, ticks_to_ns};
use crate::tree;

/// Where [`Sample::cpu_ns`] is from; the module says what each may miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CpuSource {
    /// A control group of the tree.
    Group,
    /// The clocks and accounts of its processes.
    Processes,
}

/// What a tree has used from its start to `at_ns`, and what it holds then.
///
/// Sums over all processes. Figures of what was used never decrease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// When, on `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// CPU time, user and system, of all threads there are or were.
    pub cpu_ns: u64,
    /// Where that is from.
    pub cpu_source: CpuSource,
    /// CPU time by [`CpuSource::Processes`], for comparison.
    pub cpu_processes_ns: u64,
    /// Time that threads were ready to run and waited for a CPU. Of ended threads what the last sample saw; 0 on kernels
    /// without CONFIG_SCHED_INFO.
    pub run_delay_ns: u64,
    /// Switches away from a thread that waited for something. Of ended threads as above.
    pub switches_voluntary: u64,
    /// Switches away from a thread that would have run on. Of ended threads as above.
    pub switches_involuntary: u64,
    /// Page faults that had to read from disk.
    pub major_faults: u64,
    /// Bytes that were fetched from storage: what the page cache had is not among them. 0 where they may not be read.
    pub read_bytes: u64,
    /// Resident memory. Pages that processes share count for each of them.
    pub rss_bytes: u64,
    /// The largest `rss_bytes` of all samples: at least this much was held at one time.
    pub rss_bytes_max: u64,
    /// Sum of the processes' own peaks, whenever each was: at most this much was held at one time. Shared pages count as above;
    /// see [`crate::Running::peak_memory`].
    pub peak_rss_bytes: u64,
    /// Proportional memory: shared pages are divided among their users. `None` unless asked for.
    pub pss_bytes: Option<u64>,
    /// Processes.
    pub processes: u32,
    /// Threads of them all.
    pub threads: u32,
    /// CPU time of the processes there are, each with its ended threads and without its children: the [`BY_PROCESS_MAX`] that
    /// used most, those first.
    pub cpu_by_process: Vec<ProcessCpu>,
}

/// Processes of a tree whose CPU time is told one by one, at most.
pub const BY_PROCESS_MAX: usize = 64;

/// CPU time of one process since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessCpu {
    /// Who it is.
    pub id: ProcessId,
    /// User and system time of all threads that it has or had, in nanoseconds.
    pub cpu_ns: u64,
}

impl Sample {
    /// CPU time that each process has used since an earlier sample of the same tree, the busiest first, without those that used
    /// none. At least so much: of a process that the earlier sample left out for others that had used more, what it had at
    /// most is taken off.
    pub fn cpu_by_process_since(&self, earlier: &Sample) -> Vec<u64> {
        let before = &earlier.cpu_by_process;
        let unlisted_ns = match before.last() {
            Some(least) if before.len() >= BY_PROCESS_MAX => least.cpu_ns,
            _ => 0,
        };
        let used = |now: &ProcessCpu| {
            let then = before.iter().find(|then| then.id == now.id);
            now.cpu_ns.saturating_sub(then.map_or(unlisted_ns, |then| then.cpu_ns))
        };
        let mut used: Vec<u64> = self.cpu_by_process.iter().map(used).filter(|used| *used > 0).collect();
        used.sort_unstable_by(|one, other| other.cmp(one));
        used
    }
}

/// Whether to ask for [`Sample::pss_bytes`], for which the kernel walks all pages: milliseconds a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Resident only.
    Resident,
    /// Proportional, too.
    Proportional,
}

/// What a thread has counted so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counters {
    run_delay_ns: u64,
    voluntary: u64,
    involuntary: u64,
}

/// Makes samples of one tree, and remembers what ended threads had counted.
#[derive(Debug)]
pub(crate) struct Meter {
    warden: u32,
    group: Option<CpuGroup>,
    /// By process and thread number.
    living: HashMap<(u32, u32), Counters>,
    ended: Counters,
    cpu_ns: u64,
    cpu_processes_ns: u64,
    major_faults: u64,
    read_bytes: u64,
    rss_bytes_max: u64,
}

impl Meter {
    /// Of the tree below a warden, which itself is not part of it.
    pub fn new(warden: u32, group: Option<CpuGroup>) -> Self {
        Self {
            warden,
            group,
            living: HashMap::new(),
            ended: Counters::default(),
            cpu_ns: 0,
            cpu_processes_ns: 0,
            major_faults: 0,
            read_bytes: 0,
            rss_bytes_max: 0,
        }
    }

    /// Samples, and says which processes there are.
    pub fn sample(&mut self, memory: Memory) -> (Sample, Vec<Stat>) {
        let at_ns = monotonic_ns();
        let group_ns = self.group.as_ref().and_then(CpuGroup::cpu_ns);
        let processes = tree::descendants(self.warden);
        let cpu_by_process = self.account(&processes);
        let cpu_source = if group_ns.is_some() { CpuSource::Group } else { CpuSource::Processes };
        // A process between its end and its parent's account is in neither for a moment.
        self.cpu_ns = self.cpu_ns.max(group_ns.unwrap_or(self.cpu_processes_ns));
        self.read_bytes = self.read_bytes.max(self.fetched(&processes));
        let counters = self.count(&processes);
        let pages: Vec<Pages> = processes.iter().map(|stat| Pages::of(stat.id.pid)).collect();
        let rss_bytes = pages.iter().map(|pages| pages.rss_bytes).sum();
        self.rss_bytes_max = self.rss_bytes_max.max(rss_bytes);
        let pss = || processes.iter().map(|stat| pss_bytes(stat.id.pid)).sum();
        let sample = Sample {
            at_ns,
            cpu_ns: self.cpu_ns,
            cpu_source,
            cpu_processes_ns: self.cpu_processes_ns,
            run_delay_ns: counters.run_delay_ns,
            switches_voluntary: counters.voluntary,
            switches_involuntary: counters.involuntary,
            major_faults: self.major_faults,
            read_bytes: self.read_bytes,
            rss_bytes,
            rss_bytes_max: self.rss_bytes_max,
            peak_rss_bytes: pages.iter().map(|pages| pages.peak_bytes).sum(),
            pss_bytes: (memory == Memory::Proportional).then(pss),
            processes: u32::try_from(processes.iter().filter(|stat| stat.is_alive()).count())
                .unwrap_or(u32::MAX),
            threads: u32::try_from(self.living.len()).unwrap_or(u32::MAX),
            cpu_by_process,
        };
        (sample, processes)
    }

    /// Sums CPU time and faults of the processes, and of those that ended. The account of an ended child is its
    /// parent's once the parent has waited for it; the warden is the parent of orphans. Gives the busiest processes.
    fn account(&mut self, processes: &[Stat]) -> Vec<ProcessCpu> {
        let own = |stat: &Stat| cpu_ns(stat.id.pid).unwrap_or_else(|| ticks_to_ns(stat.cpu_ticks));
        let own = |stat: &Stat| ProcessCpu { id: stat.id, cpu_ns: own(stat) };
        let mut own: Vec<ProcessCpu> = processes.iter().map(own).collect();
        let warden = Stat::read(self.warden);
        let children = processes.iter().chain(warden.iter());
        let (ticks, faults) = children.fold((0, 0), |(ticks, faults), stat| {
            (ticks + stat.children_cpu_ticks, faults + stat.children_major_faults)
        });
        let cpu_ns = own.iter().map(|process| process.cpu_ns).sum::<u64>() + ticks_to_ns(ticks);
        let faults = processes.iter().map(|stat| stat.major_faults).sum::<u64>() + faults;
        self.cpu_processes_ns = self.cpu_processes_ns.max(cpu_ns);
        self.major_faults = self.major_faults.max(faults);
        own.sort_by_key(|process| std::cmp::Reverse(process.cpu_ns));
        own.truncate(BY_PROCESS_MAX);
        own
    }

    /// Bytes fetched from storage by all processes there are and were: the kernel adds those of an ended child to its parent when that
    /// has waited for it, as it does with CPU time. The warden fetches nothing once it runs.
    fn fetched(&self, processes: &[Stat]) -> u64 {
        processes.iter().map(|stat| stat.id.pid).chain([self.warden]).map(read_bytes).sum()
    }

    /// Sums what threads count, ended ones as they were last seen.
    fn count(&mut self, processes: &[Stat]) -> Counters {
        let mut now = HashMap::with_capacity(self.living.len());
        for pid in processes.iter().filter(|stat| stat.is_alive()).map(|stat| stat.id.pid) {
            for thread in tree::threads(pid) {
                let Some(counters) = Counters::of(pid, thread) else { continue };
                let before = self.living.remove(&(pid, thread)).unwrap_or_default();
                if counters.voluntary < before.voluntary || counters.run_delay_ns < before.run_delay_ns {
                    // The number belongs to a later thread now.
                    self.ended = self.ended.plus(before);
                }
                now.insert((pid, thread), counters);
            }
        }
        let gone = std::mem::replace(&mut self.living, now);
        self.ended = gone.into_values().fold(self.ended, Counters::plus);
        self.living.values().fold(self.ended, |sum, counters| sum.plus(*counters))
    }
}

impl Counters {
    /// `None`: the thread has ended.
    fn of(pid: u32, thread: u32) -> Option<Self> {
        let status = fs::read(format!("/proc/{pid}/task/{thread}/status")).ok()?;
        let status = String::from_utf8_lossy(&status);
        let schedule = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).unwrap_or_default();
        Some(Self {
            // "time on a CPU, time waiting for one, times run"
            run_delay_ns: schedule
                .split_ascii_whitespace()
                .nth(1)
                .and_then(|field| field.parse().ok())
                .unwrap_or(0),
            voluntary: field(&status, "voluntary_ctxt_switches:"),
            involuntary: field(&status, "nonvoluntary_ctxt_switches:"),
        })
    }

    fn plus(self, other: Self) -> Self {
        Self {
            run_delay_ns: self.run_delay_ns + other.run_delay_ns,
            voluntary: self.voluntary + other.voluntary,
            involuntary: self.involuntary + other.involuntary,
        }
    }
}

/// Memory of a process.
#[derive(Debug, Clone, Copy)]
struct Pages {
    rss_bytes: u64,
    peak_bytes: u64,
}

impl Pages {
    /// Zero for a process that has ended.
    fn of(pid: u32) -> Self {
        let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
        let status = String::from_utf8_lossy(&status);
        Self { rss_bytes: field(&status, "VmRSS:") * 1024, peak_bytes: field(&status, "VmHWM:") * 1024 }
    }
}

/// Of a process and its children that ended; 0 if it is gone, or not ours to look into.
fn read_bytes(pid: u32) -> u64 {
    let account = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    field(&account, "read_bytes:")
}

fn pss_bytes(pid: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    field(&rollup, "Pss:") * 1024
}

/// The number after a name at the beginning of a line; 0 if there is none.
fn field(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    value.split_ascii_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
