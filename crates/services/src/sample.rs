//! Resource use of a service's process tree: CPU, run-queue delay, memory, context switches, storage reads.
//!
//! The difference of two samples around a slice is the slice's share. This module only reads. It never waits
//! or judges.
//!
//! **CPU time** comes from a control group if one could be created and no process has left it
//! ([`CpuSource::Group`]). A group misses nothing. Otherwise ([`CpuSource::Processes`]) it is the sum over
//! all processes of the tree: their own time (their CPU clock, ns) plus the time of their ended children
//! (`cutime` and `cstime` of `/proc/PID/stat`). This loses up to two clock ticks (20 ms) for each process
//! with ended children, and all time of children whose parent ignores SIGCHLD. A tree that starts and ends no
//! processes during a slice loses nothing. With either source, the share of a running thread is up to a
//! scheduler tick (1 to 10 ms) old.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use machine::groups::{ControlGroup, held_back_ns, quota_files_beside};
use machine::process::{self, Environ, ProcessId, Stat, number, text, ticks_to_ns};
use model::ThreadUse;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use crate::marker;

/// Source of [`Sample::cpu_ns`]. The module documentation lists what each source may miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuSource {
    /// A control group of the tree.
    Group,
    /// The CPU clocks and `/proc` accounts of its processes.
    Processes,
}

/// Resources that a tree used from its start to a moment, and holds at that moment.
///
/// Sums over all processes. Cumulative values never decrease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageSample {
    /// CPU time, user and system, of all current and ended threads.
    pub cpu_ns: u64,
    /// Source of the CPU time.
    pub cpu_source: CpuSource,
    /// Time that threads were runnable and waited for a CPU. Ended threads count with their last sampled
    /// value. 0 on kernels without CONFIG_SCHED_INFO.
    pub run_delay_ns: u64,
    /// Context switches away from a thread that waited. Ended threads count with their last sampled value.
    pub switches_voluntary: u64,
    /// Context switches away from a runnable thread. Ended threads count with their last sampled value.
    pub switches_involuntary: u64,
    /// Page faults that had to read from disk.
    pub major_faults: u64,
    /// Bytes fetched from storage, without reads served by the page cache. 0 if they may not be read.
    pub read_bytes: u64,
    /// Time throttled by the tree's own CPU quotas. Quotas around Proofload count for the machine.
    pub throttled_ns: u64,
    /// Resident memory. Pages shared by several processes count once for each of them.
    pub rss_bytes: u64,
    /// Number of processes.
    pub processes: u32,
    /// Number of threads of all processes.
    pub threads: u32,
    /// CPU time of each current process, with its ended threads and without its children. Limited to the
    /// [`BY_PROCESS_MAX`] processes with the most CPU time, busiest first.
    pub cpu_by_process: Vec<ProcessCpu>,
}

/// Maximum number of processes of a tree whose CPU time is reported individually.
pub const BY_PROCESS_MAX: usize = 64;

/// CPU time of one process since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessCpu {
    /// The process.
    pub id: ProcessId,
    /// User and system time of all its threads, including ended ones, in nanoseconds.
    pub cpu_ns: u64,
}

impl UsageSample {
    /// Returns the CPU time of each process since an earlier sample of the same tree, busiest first, without
    /// idle processes. The value is a lower bound: for a process that the earlier sample omitted, its largest
    /// possible earlier value is subtracted.
    pub fn cpu_by_process_since(&self, earlier: &UsageSample) -> Vec<u64> {
        let before = &earlier.cpu_by_process;
        let unlisted_ns = match before.last() {
            Some(least) if before.len() >= BY_PROCESS_MAX => least.cpu_ns,
            _ => 0,
        };
        let used = |now: &ProcessCpu| {
            let then = before.iter().find(|then| then.id == now.id);
            now.cpu_ns
                .saturating_sub(then.map_or(unlisted_ns, |then| then.cpu_ns))
        };
        let mut used: Vec<u64> = self
            .cpu_by_process
            .iter()
            .map(used)
            .filter(|used| *used > 0)
            .collect();
        used.sort_unstable_by(|one, other| other.cmp(one));
        used
    }
}

/// Counters of one thread, or the sum of several threads.
#[derive(Debug, Clone, Copy, Default)]
struct Counters {
    run_delay_ns: u64,
    voluntary: u64,
    involuntary: u64,
}

/// The set of processes that belong to a service.
#[derive(Debug, Clone)]
pub(crate) enum ServiceTree {
    /// All descendants of a warden, without the warden, and the control group that counts them.
    Below(u32, Option<ControlGroup>),
    /// All processes in the control groups of containers.
    In(Vec<ControlGroup>),
    /// These processes and all their descendants.
    From(Vec<ProcessId>),
}

impl ServiceTree {
    /// Returns the processes. Below a warden, parents come first.
    pub fn processes(&self) -> Vec<Stat> {
        match self {
            ServiceTree::Below(warden, _) => process::descendants(*warden),
            ServiceTree::In(groups) => groups
                .iter()
                .flat_map(ControlGroup::members)
                .filter_map(Stat::read)
                .collect(),
            ServiceTree::From(roots) => {
                let roots = roots
                    .iter()
                    .filter_map(|id| Stat::read(id.pid).filter(|stat| stat.id == *id));
                roots
                    .flat_map(|root| {
                        [vec![root.clone()], process::descendants(root.id.pid)].concat()
                    })
                    .collect()
            }
        }
    }

    /// Control groups that count the CPU time. Empty if there is none.
    fn groups(&self) -> &[ControlGroup] {
        match self {
            ServiceTree::Below(_, group) => group.as_slice(),
            ServiceTree::In(groups) => groups,
            ServiceTree::From(_) => &[],
        }
    }

    /// The parent of orphans, whose `/proc` account includes the ended ones.
    fn warden(&self) -> Option<u32> {
        if let ServiceTree::Below(warden, _) = self {
            Some(*warden)
        } else {
            None
        }
    }
}

/// Samples one tree, and keeps the counters of ended threads.
#[derive(Debug)]
pub(crate) struct Meter {
    pub tree: ServiceTree,
    /// For each group: its last reading, and the time counted before it was created again, in nanoseconds.
    groups: Vec<(Option<u64>, u64)>,
    /// Counters by process and thread number.
    living: HashMap<(u32, u32), Counters>,
    ended: Counters,
    cpu_ns: u64,
    major_faults: u64,
    read_bytes: u64,
    /// Files in which the kernel reports throttling by the tree's own quotas.
    quota_files: Vec<PathBuf>,
    throttled_ns: u64,
}

impl Meter {
    pub fn new(tree: ServiceTree) -> Self {
        let (living, ended, groups) = (HashMap::new(), Counters::default(), Vec::new());
        let (cpu_ns, major_faults, read_bytes, throttled_ns) = (0, 0, 0, 0);
        let quota_files = Vec::new();
        Self {
            tree,
            groups,
            living,
            ended,
            cpu_ns,
            major_faults,
            read_bytes,
            quota_files,
            throttled_ns,
        }
    }

    /// Starts to track CPU quotas that apply to the current processes and not to Proofload.
    pub fn watch_quotas(&mut self) {
        let pids: Vec<u32> = self
            .tree
            .processes()
            .iter()
            .map(|stat| stat.id.pid)
            .collect();
        self.quota_files = quota_files_beside(&pids);
    }

    /// Switches to counting by processes if a process is not in the group that should count it. Tools that
    /// start a container, and `systemd-run --scope`, move a process into another group.
    pub fn check_group(&mut self) {
        let ServiceTree::Below(warden, Some(group)) = &self.tree else {
            return;
        };
        let (processes, members) = (self.tree.processes(), group.members());
        // A process that ended in between has not left the group.
        let has_left = |stat: &Stat| !members.contains(&stat.id.pid) && stat.id.is_alive();
        if processes.iter().any(has_left) {
            self.tree = ServiceTree::Below(*warden, None);
        }
    }

    /// Takes a sample. Also returns the current processes.
    pub fn sample(&mut self) -> (UsageSample, Vec<Stat>) {
        let group_ns = self.group_ns();
        let processes = self.tree.processes();
        let cpu_by_process = self.account(&processes, group_ns);
        self.read_bytes = self.read_bytes.max(self.fetched(&processes));
        self.throttled_ns = self.throttled_ns.max(held_back_ns(&self.quota_files));
        let counters = self.count(&processes);
        let alive = processes.iter().filter(|stat| stat.is_alive()).count();
        let rss_kb = processes
            .iter()
            .map(|stat| number(&text(stat.id.pid, "status"), "VmRSS"));
        let sample = UsageSample {
            cpu_ns: self.cpu_ns,
            cpu_source: if group_ns.is_some() {
                CpuSource::Group
            } else {
                CpuSource::Processes
            },
            run_delay_ns: counters.run_delay_ns,
            switches_voluntary: counters.voluntary,
            switches_involuntary: counters.involuntary,
            major_faults: self.major_faults,
            read_bytes: self.read_bytes,
            throttled_ns: self.throttled_ns,
            rss_bytes: rss_kb.sum::<u64>() * 1024,
            processes: u32::try_from(alive).unwrap_or(u32::MAX),
            threads: u32::try_from(self.living.len()).unwrap_or(u32::MAX),
            cpu_by_process,
        };
        (sample, processes)
    }

    /// Sum of all groups' counters. A container's group disappears when the container ends, and starts at
    /// zero when it is started again.
    fn group_ns(&mut self) -> Option<u64> {
        let groups = self.tree.groups();
        self.groups.resize(groups.len(), (None, 0));
        let mut sum_ns = None;
        for (group, (last, before)) in groups.iter().zip(&mut self.groups) {
            let now = group.cpu_ns().or(*last)?;
            *before += last.filter(|last| now < *last).unwrap_or(0);
            *last = Some(now);
            sum_ns = Some(sum_ns.unwrap_or(0) + *before + now);
        }
        sum_ns
    }

    /// Sums CPU time and major faults of current and ended processes, and returns the busiest processes. An
    /// ended child is added to its parent's account after the parent has waited for it. The warden is the
    /// parent of orphans.
    fn account(&mut self, processes: &[Stat], group_ns: Option<u64>) -> Vec<ProcessCpu> {
        let own = |stat: &Stat| {
            process::cpu_ns(stat.id.pid).unwrap_or_else(|| ticks_to_ns(stat.cpu_ticks))
        };
        let own = |stat: &Stat| ProcessCpu {
            id: stat.id,
            cpu_ns: own(stat),
        };
        let mut own: Vec<ProcessCpu> = processes.iter().map(own).collect();
        let warden = self.tree.warden().and_then(Stat::read);
        let parents = || processes.iter().chain(warden.iter());
        let of_children = ticks_to_ns(parents().map(|stat| stat.children_cpu_ticks).sum());
        let cpu_ns = own.iter().map(|process| process.cpu_ns).sum::<u64>() + of_children;
        let faults = processes.iter().map(|stat| stat.major_faults).sum::<u64>()
            + parents()
                .map(|stat| stat.children_major_faults)
                .sum::<u64>();
        // An ended process is in no account until its parent has waited for it.
        self.cpu_ns = self.cpu_ns.max(group_ns.unwrap_or(cpu_ns));
        self.major_faults = self.major_faults.max(faults);
        own.sort_by_key(|process| std::cmp::Reverse(process.cpu_ns));
        own.truncate(BY_PROCESS_MAX);
        own
    }

    /// Bytes fetched from storage by all current and ended processes. As with CPU time, the kernel adds an
    /// ended child to its parent when the parent has waited for it. The warden reads nothing from storage
    /// once it runs.
    fn fetched(&self, processes: &[Stat]) -> u64 {
        let pids = processes
            .iter()
            .map(|stat| stat.id.pid)
            .chain(self.tree.warden());
        pids.map(|pid| number(&text(pid, "io"), "read_bytes")).sum()
    }

    /// Sums the counters of all threads. Ended threads count with their last value.
    fn count(&mut self, processes: &[Stat]) -> Counters {
        let mut now = HashMap::with_capacity(self.living.len());
        for pid in processes
            .iter()
            .filter(|stat| stat.is_alive())
            .map(|stat| stat.id.pid)
        {
            for thread in process::threads(pid) {
                let Some(counters) = Counters::of(pid, thread) else {
                    continue;
                };
                let before = self.living.remove(&(pid, thread)).unwrap_or_default();
                if counters.voluntary < before.voluntary
                    || counters.run_delay_ns < before.run_delay_ns
                {
                    // The number belongs to a newer thread.
                    self.ended = self.ended.plus(before);
                }
                now.insert((pid, thread), counters);
            }
        }
        let gone = std::mem::replace(&mut self.living, now);
        self.ended = gone.into_values().fold(self.ended, Counters::plus);
        self.living
            .values()
            .fold(self.ended, |sum, counters| sum.plus(*counters))
    }
}

impl Counters {
    /// Returns `None` if the thread has ended.
    fn of(pid: u32, thread: u32) -> Option<Self> {
        let (_, run_delay_ns) = process::thread_cpu_and_wait_ns(pid, thread)?;
        let status = text(pid, &format!("task/{thread}/status"));
        let switches = |kind: &str| number(&status, &format!("{kind}_ctxt_switches"));
        Some(Self {
            run_delay_ns,
            voluntary: switches("voluntary"),
            involuntary: switches("nonvoluntary"),
        })
    }

    fn plus(self, other: Self) -> Self {
        let Self {
            run_delay_ns,
            voluntary,
            involuntary,
        } = other;
        Self {
            run_delay_ns: self.run_delay_ns + run_delay_ns,
            voluntary: self.voluntary + voluntary,
            involuntary: self.involuntary + involuntary,
        }
    }
}

/// Peak resident memory of these processes in bytes. Pages that they share count once.
///
/// The kernel keeps the peak of each process (`VmHWM`), which includes every resident page, shared or not.
/// Workers of one program share its text, some 40 MB of a Node.js process of 55 MB: the plain sum of four workers
/// would be twice their actual use. The proportional size (PSS) divides a page among all processes that map it.
/// These include trees of other variants that run at the same time, so the PSS depends on them. Therefore:
///
/// ```text
///   for each program:  Σ (peak − shared)  +  the largest shared     over its processes; shared: now, of `smaps_rollup`
/// ```
/// The result is exact for one process, and for processes that share all their pages with one another. Pages
/// shared by different programs (the C library) count for each program. Each process counts with its peak at any
/// time. Peaks of ended processes are lost. Reading takes milliseconds for each process, so it is not done during a
/// measurement.
pub(crate) fn peak_bytes(processes: &[Stat]) -> u64 {
    let mut programs: BTreeMap<Option<PathBuf>, Vec<(u64, u64)>> = BTreeMap::new();
    for pid in processes
        .iter()
        .filter(|stat| stat.is_alive())
        .map(|stat| stat.id.pid)
    {
        // A program that may not be read is taken to share with all others that may not be read.
        let held = held_kb(&text(pid, "status"), &text(pid, "smaps_rollup"));
        programs
            .entry(process::program(pid))
            .or_default()
            .push(held);
    }
    programs.values().map(|held| together_kb(held) * 1024).sum()
}

/// Returns a process's peak, and the part of its memory that others map as well. 0 if the kernel does not
/// report it.
fn held_kb(status: &str, rollup: &str) -> (u64, u64) {
    let peak = number(status, "VmHWM");
    // The two values are counted differently. The shared part cannot exceed the total.
    (
        peak,
        (number(rollup, "Shared_Clean") + number(rollup, "Shared_Dirty")).min(peak),
    )
}

/// Combined peak of processes of one program.
fn together_kb(held: &[(u64, u64)]) -> u64 {
    let private: u64 = held.iter().map(|(peak, shared)| peak - shared).sum();
    private + held.iter().map(|(_, shared)| *shared).max().unwrap_or(0)
}

// Descriptions of a service's processes, and signals to single processes.

/// A process and its start parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessInfo {
    /// The process.
    pub id: ProcessId,
    /// Process number of its parent.
    pub ppid: u32,
    /// Arguments, the program first, without trailing empty ones. Bytes that are not UTF-8 are replaced. A
    /// program may have overwritten its arguments with a title.
    pub argv: Vec<String>,
    /// The requested variables that were in its environment when it was started.
    pub environ: BTreeMap<String, String>,
    /// Whether Proofload's marker is in the environment, so that the environment is complete. Without the
    /// marker a missing variable proves nothing: the process may have been started with another environment,
    /// may have overwritten it with its title as nginx does, or may belong to another user.
    pub marked: bool,
    /// CPUs that the process may run on.
    pub cpus: Vec<usize>,
}

impl ProcessInfo {
    /// Describes a process, including the requested `variables` of its environment.
    pub(crate) fn of(stat: &Stat, variables: &[&str]) -> ProcessInfo {
        let pid = stat.id.pid;
        let all = Environ::read(pid).unwrap_or_default();
        ProcessInfo {
            id: stat.id,
            ppid: stat.ppid,
            argv: process::argv(pid),
            environ: all.variables(|name| variables.contains(&name)),
            marked: !all.is_written_over()
                && !all.variables(|name| name == marker::VARIABLE).is_empty(),
            cpus: process::cpus(pid),
        }
    }
}

/// Converts a process number to the type of system calls.
pub(crate) fn pid_of(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

/// Sends `signal` to this process, and returns whether it was sent. A newer process with the same number gets
/// nothing.
///
/// The descriptor is opened before the start times are compared, so that the compared process is the
/// signalled one.
pub(crate) fn signal(id: ProcessId, signal: Signal) -> bool {
    let Some(pid) = pid_of(id.pid) else {
        return false;
    };
    let is_it = || ProcessId::of(id.pid) == Some(id);
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(descriptor) => is_it() && pidfd_send_signal(descriptor, signal).is_ok(),
        // Linux before 5.3, and some sandboxes.
        Err(Errno::NOSYS) => is_it() && kill_process(pid, signal).is_ok(),
        Err(_) => false,
    }
}

// CPU time of each thread of a process.
//
// It separates the work of a thread pool, a garbage collector or a compiler from the main thread's work, for
// any program. It reads only, and keeps no state between calls. For a running thread up to a scheduler tick
// (1 to 10 ms) is missing.

/// Name of the entry that sums up all threads that existed for only a part of the time.
pub const ENDED_THREADS: &str = "ended threads";
/// A smaller difference between the clock of a process and the sum of its threads is reading skew.
const ENDED_MIN_NS: u64 = 5_000_000;

/// A process and its threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessThreads {
    /// The process.
    pub id: ProcessId,
    /// Process number of its parent.
    pub parent: u32,
    /// File name of its program, such as `node`. Empty if it may not be read.
    pub program: String,
    /// Arguments, the program first. A program may have overwritten them with a title.
    pub argv: Vec<String>,
    /// CPU time used, with ended threads and without children.
    pub cpu_ns: u64,
    /// Threads by number, with their use since their start.
    pub threads: Vec<ThreadUse>,
}

impl ProcessThreads {
    pub(crate) fn of(stat: &Stat) -> Self {
        let pid = stat.id.pid;
        let threads = process::threads(pid)
            .into_iter()
            .filter_map(|thread| thread_use(pid, thread));
        let mut threads: Vec<ThreadUse> = threads.collect();
        threads.sort_by_key(|thread| thread.id);
        let file = process::program(pid).unwrap_or_default();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        Self {
            id: stat.id,
            parent: stat.ppid,
            // The kernel appends this when the file was replaced by a newer one.
            program: name.trim_end_matches(" (deleted)").to_owned(),
            argv: process::argv(pid),
            cpu_ns: process::cpu_ns(pid).unwrap_or(0),
            threads,
        }
    }

    /// Returns the use of each thread since an `earlier` reading of the same process, or since its start
    /// without one. Threads that have ended since then, and short-lived ones, are summed up in a last entry
    /// with number 0. Its value is the process's use minus that of the listed threads.
    pub fn used_since(&self, earlier: Option<&Self>) -> Vec<ThreadUse> {
        let earlier = earlier.filter(|earlier| earlier.id == self.id);
        let before: HashMap<u32, &ThreadUse> = earlier
            .iter()
            .flat_map(|earlier| &earlier.threads)
            .map(|thread| (thread.id, thread))
            .collect();
        let mut used: Vec<ThreadUse> = self
            .threads
            .iter()
            .map(|now| since(now, before.get(&now.id).copied()))
            .collect();
        let whole_ns = self
            .cpu_ns
            .saturating_sub(earlier.map_or(0, |earlier| earlier.cpu_ns));
        let rest_ns = whole_ns.saturating_sub(used.iter().map(|thread| thread.cpu_ns).sum());
        if rest_ns >= ENDED_MIN_NS {
            used.push(ThreadUse {
                id: 0,
                name: ENDED_THREADS.to_owned(),
                cpu_ns: rest_ns,
                waited_ns: 0,
            });
        }
        used
    }
}

/// Returns a thread's use, or `None` if the thread has ended.
fn thread_use(pid: u32, id: u32) -> Option<ThreadUse> {
    let (cpu_ns, waited_ns) = process::thread_cpu_and_wait_ns(pid, id)?;
    let name = text(pid, &format!("task/{id}/comm")).trim_end().to_owned();
    Some(ThreadUse {
        id,
        name,
        cpu_ns,
        waited_ns,
    })
}

/// Returns the use since an earlier reading. A thread with less use than before is a newer thread with the
/// same number.
fn since(now: &ThreadUse, earlier: Option<&ThreadUse>) -> ThreadUse {
    let earlier = earlier.filter(|earlier| earlier.cpu_ns <= now.cpu_ns);
    let (cpu_ns, waited_ns) = earlier.map_or((0, 0), |earlier| (earlier.cpu_ns, earlier.waited_ns));
    ThreadUse {
        id: now.id,
        name: now.name.clone(),
        cpu_ns: now.cpu_ns - cpu_ns,
        waited_ns: now.waited_ns.saturating_sub(waited_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_workers_share_counts_once_and_what_is_their_own_for_each() {
        let status = "Name:\tnode\nVmPeak:\t 900000 kB\nVmHWM:\t   55000 kB\nVmRSS:\t   50000 kB\n";
        let rollup =
            "Rss:  50000 kB\nPss:  20000 kB\nShared_Clean:  40000 kB\nShared_Dirty:  1000 kB\n";
        let node = held_kb(status, rollup);
        assert_eq!(node, (55_000, 41_000));
        assert_eq!(
            together_kb(&[node]),
            55_000,
            "one process holds all that it holds"
        );
        assert_eq!(
            (together_kb(&[node; 4]), together_kb(&[])),
            (4 * 14_000 + 41_000, 0)
        );
        // Without sharing data every page counts, and the shared part never exceeds the total.
        assert_eq!(together_kb(&[held_kb(status, ""); 2]), 2 * 55_000);
        assert_eq!(held_kb("VmHWM: 10 kB\n", rollup), (10, 10));
    }

    #[test]
    fn what_a_container_has_used_counts_when_it_has_ended_and_when_it_was_started_again() {
        let folder = tempfile::tempdir().unwrap();
        let group = |name: &str| ControlGroup {
            folder: folder.path().join(name),
            unified: false,
        };
        let (app, job) = (group("app"), group("job"));
        let counts = |group: &ControlGroup, ns: &str| {
            std::fs::create_dir_all(&group.folder).unwrap();
            std::fs::write(group.folder.join("cpuacct.usage"), ns).unwrap();
        };
        let mut meter = Meter::new(ServiceTree::In(vec![app.clone(), job.clone()]));
        let mut used_ns = || meter.sample().0.cpu_ns;
        counts(&app, "5000\n");
        counts(&job, "700\n");
        assert_eq!(used_ns(), 5700);
        std::fs::remove_dir_all(&job.folder).unwrap();
        counts(&app, "300\n");
        assert_eq!(used_ns(), 6000);
        counts(&app, "450\n");
        assert_eq!(used_ns(), 6150);
    }

    #[test]
    fn a_number_taken_by_a_later_process_is_not_signalled() {
        let me = ProcessId::of(std::process::id()).unwrap();
        // A sent signal would end this test.
        assert!(!signal(
            ProcessId {
                start_ticks: me.start_ticks + 1,
                ..me
            },
            Signal::KILL
        ));
    }

    fn thread(id: u32, cpu_ns: u64) -> ThreadUse {
        ThreadUse {
            id,
            name: "x".into(),
            cpu_ns,
            waited_ns: cpu_ns / 10,
        }
    }

    fn process(cpu_ns: u64, threads: Vec<ThreadUse>) -> ProcessThreads {
        let id = ProcessId {
            pid: 7,
            start_ticks: 1,
        };
        ProcessThreads {
            id,
            parent: 1,
            program: "x".into(),
            argv: Vec::new(),
            cpu_ns,
            threads,
        }
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn threads_that_come_and_go_are_in_what_is_left_over() {
        let before = process(150 * MS, vec![thread(7, 100 * MS), thread(8, 50 * MS)]);
        // Thread 8 ended after 30 ms more, 9 started, and another one started and ended.
        let after = process(400 * MS, vec![thread(7, 200 * MS), thread(9, 60 * MS)]);
        let used = after.used_since(Some(&before));
        let told: Vec<(u32, u64)> = used
            .iter()
            .map(|thread| (thread.id, thread.cpu_ns / MS))
            .collect();
        assert_eq!(told, [(7, 100), (9, 60), (0, 90)]);
        assert_eq!(
            (used[2].name.as_str(), used[0].waited_ns),
            (ENDED_THREADS, 10 * MS)
        );
        // A new process counts from its start. So does a thread whose number was reused.
        assert_eq!(
            after
                .used_since(None)
                .iter()
                .map(|thread| thread.cpu_ns)
                .sum::<u64>(),
            400 * MS
        );
        let again = process(205 * MS, vec![thread(7, 100 * MS), thread(8, 2 * MS)]);
        assert_eq!(again.used_since(Some(&before))[1].cpu_ns, 2 * MS);
    }
}
