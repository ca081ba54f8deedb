//! Processes as shown by `/proc`: identity, parent, arguments and environment, and resource use.
//!
//! Read-only. The role of a process in a run is determined elsewhere. Between calls, only the kernel's
//! capabilities are cached.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use procfs_core::FromRead;
use procfs_core::process::{Schedstat, Stat as RawStat};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// The identity of a process. The start time distinguishes it from a later one with the same PID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId {
    /// Its PID.
    pub pid: u32,
    /// Its start in clock ticks since boot.
    pub start_ticks: u64,
}

impl ProcessId {
    /// The identity of a running process.
    pub fn of(pid: u32) -> Option<ProcessId> {
        Stat::read(pid).map(|stat| stat.id)
    }

    /// Whether this process still exists and has not exited.
    pub fn is_alive(self) -> bool {
        Stat::read(self.pid).is_some_and(|stat| stat.id == self && stat.is_alive())
    }

    /// Whether this process has exited. If `/proc` hides it from this user (`hidepid`), this is unknown, and
    /// it counts as existing.
    pub fn is_gone(self) -> bool {
        match Stat::read(self.pid) {
            Some(stat) => stat.id != self || !stat.is_alive(),
            None => !is_taken(self.pid),
        }
    }
}

/// Whether a PID is in use, including by a process that is hidden.
fn is_taken(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

/// The used fields of `/proc/PID/stat`. Times are in clock ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Its identity.
    pub id: ProcessId,
    /// Its name: up to 15 arbitrary bytes.
    pub name: String,
    /// Its state: `R`, `S`, `Z`.
    pub state: char,
    /// PID of its parent.
    pub ppid: u32,
    /// Its process group.
    pub process_group: u32,
    /// Its session.
    pub session: u32,
    /// Faults that required reading from disk.
    pub major_faults: u64,
    /// The same for its reaped children, and recursively for theirs.
    pub children_major_faults: u64,
    /// User and system time.
    pub cpu_ticks: u64,
    /// The same for its reaped children, and recursively for theirs.
    pub children_cpu_ticks: u64,
}

impl Stat {
    /// Reads the process's stat file. `None` if it no longer exists.
    pub fn read(pid: u32) -> Option<Stat> {
        Stat::parse(&patiently(|| fs::read(format!("/proc/{pid}/stat"))).ok()?)
    }

    /// Parses the full text of `/proc/PID/stat`, or of a thread's.
    pub fn parse(text: &[u8]) -> Option<Stat> {
        let raw = RawStat::from_read(text).ok()?;
        let number = |value: i32| u32::try_from(value).ok();
        let ticks = |one: i64, other: i64| u64::try_from(one + other).unwrap_or(0);
        Some(Stat {
            id: ProcessId {
                pid: number(raw.pid)?,
                start_ticks: raw.starttime,
            },
            name: raw.comm,
            state: raw.state,
            ppid: number(raw.ppid)?,
            process_group: number(raw.pgrp)?,
            session: number(raw.session)?,
            major_faults: raw.majflt,
            children_major_faults: raw.cmajflt,
            cpu_ticks: raw.utime + raw.stime,
            children_cpu_ticks: ticks(raw.cutime, raw.cstime),
        })
    }

    /// Whether it can still run. An exited process that its parent has not reaped cannot.
    pub fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }
}

/// A file of a process, such as `status` or `task/7/comm`. Empty if the process is gone, or access is denied.
pub fn text(pid: u32, file: &str) -> String {
    let bytes = patiently(|| fs::read(format!("/proc/{pid}/{file}"))).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Soft and hard limit of a process's open files. `None` if it is gone, or access is denied. `u64::MAX` means
/// no limit.
pub fn files_limits(pid: u32) -> Option<(u64, u64)> {
    parse_files_limits(&text(pid, "limits"))
}

pub(crate) fn parse_files_limits(limits: &str) -> Option<(u64, u64)> {
    let values = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    let limit = |text: &str| {
        if text == "unlimited" {
            Some(u64::MAX)
        } else {
            text.parse().ok()
        }
    };
    let mut values = values.split_ascii_whitespace().map_while(limit);
    values.next().zip(values.next())
}

/// The text after `name` and a colon, in the first line that begins with them.
pub fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        Some(
            line.strip_prefix(name)?
                .trim_start()
                .strip_prefix(':')?
                .trim(),
        )
    })
}

/// The leading number of a field, in kB if followed by kB. 0 if there is none.
pub fn number(text: &str, name: &str) -> u64 {
    let value = field(text, name).unwrap_or_default();
    value
        .split_ascii_whitespace()
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// CPU time and waiting time of a thread, in nanoseconds. `None` if it is gone.
///
/// Kernels without CONFIG_SCHED_INFO report CPU time in clock ticks, and no waiting time.
pub fn thread_cpu_and_wait_ns(pid: u32, thread: u32) -> Option<(u64, u64)> {
    let folder = format!("/proc/{pid}/task/{thread}");
    let schedule = patiently(|| fs::read(format!("{folder}/schedstat"))).ok();
    let schedule = schedule.and_then(|text| Schedstat::from_read(text.as_slice()).ok());
    match schedule.filter(|schedule| schedule.pcount > 0) {
        Some(schedule) => Some((schedule.sum_exec_runtime, schedule.run_delay)),
        None => Some((
            ticks_to_ns(Stat::parse(&fs::read(format!("{folder}/stat")).ok()?)?.cpu_ticks),
            0,
        )),
    }
}

/// Always `None`, because only Linux reports this for other processes.
#[cfg(not(target_os = "linux"))]
pub fn cpu_ns(_pid: u32) -> Option<u64> {
    None
}

/// CPU time of a process, including its exited threads. `None` if it is gone.
///
/// Reads the process's clock, in nanoseconds. The part of a currently running thread is up to a scheduler
/// tick old (1 to 10 ms).
#[cfg(target_os = "linux")]
pub fn cpu_ns(pid: u32) -> Option<u64> {
    let pid = i32::try_from(pid).ok()?;
    let mut clock = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both calls write only to the variable whose address they get.
    let read = unsafe {
        libc::clock_getcpuclockid(pid, &raw mut clock) == 0
            && libc::clock_gettime(clock, &raw mut time) == 0
    };
    let (seconds, nanos) = (
        u64::try_from(time.tv_sec).ok()?,
        u64::try_from(time.tv_nsec).ok()?,
    );
    read.then_some(seconds * 1_000_000_000 + nanos)
}

/// Always `None`, because only Linux reports this for other processes.
#[cfg(not(target_os = "linux"))]
pub fn age(_pid: u32) -> Option<Duration> {
    None
}

/// Time since a process was started. `None` if it is gone.
#[cfg(target_os = "linux")]
pub fn age(pid: u32) -> Option<Duration> {
    let started_ns = ticks_to_ns(Stat::read(pid)?.id.start_ticks);
    Some(Duration::from_nanos(
        crate::clock::boot_ns().saturating_sub(started_ns),
    ))
}

/// Converts clock ticks, the unit of `/proc`, to nanoseconds.
pub fn ticks_to_ns(ticks: u64) -> u64 {
    // SAFETY: takes no pointer and changes nothing.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    let per_second = u64::try_from(per_second)
        .ok()
        .filter(|ticks| *ticks > 0)
        .unwrap_or(100);
    ticks * (1_000_000_000 / per_second)
}

/// The arguments of a process, without trailing empty ones. Empty if it is gone or has exited.
pub fn argv(pid: u32) -> Vec<String> {
    // Programs that set a title pad it with zeros.
    let line = text(pid, "cmdline");
    let line = line.trim_end_matches('\0');
    if line.is_empty() {
        Vec::new()
    } else {
        line.split('\0').map(str::to_owned).collect()
    }
}

/// `node server.js (pid 123)`, short enough for a message.
pub fn describe(pid: u32) -> String {
    let mut command = argv(pid).join(" ");
    if command.is_empty() {
        command = text(pid, "comm").trim_end().to_owned();
    }
    format!("{} (pid {pid})", model::text::cut(&command, 80))
}

/// The environment of a process at its start.
#[derive(Debug, Clone, Default)]
pub struct Environ(Vec<u8>);

impl Environ {
    /// Reads the environment. `None` if access is denied, or the process is gone.
    pub fn read(pid: u32) -> Option<Environ> {
        patiently(|| fs::read(format!("/proc/{pid}/environ")))
            .ok()
            .map(Environ)
    }

    /// The variables selected by `wanted`.
    pub fn variables(&self, wanted: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
        let variables = self.0.split(|byte| *byte == 0).filter_map(|entry| {
            let entry = String::from_utf8_lossy(entry);
            let (name, value) = entry.split_once('=')?;
            wanted(name).then(|| (name.to_owned(), value.to_owned()))
        });
        variables.collect()
    }

    /// Whether a process title has overwritten its beginning. Redis does this, and leaves the end unchanged.
    /// A variable at the beginning is then hidden, not missing.
    pub fn is_written_over(&self) -> bool {
        let first = self.0.split(|byte| *byte == 0).next().unwrap_or_default();
        !first.contains(&b'=')
    }
}

/// The file that a process runs. `None` if access is denied. Ends with ` (deleted)` if it was replaced.
pub fn program(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The CPUs that a thread may run on, by its ID. A PID denotes the first thread. Empty if it is gone.
pub fn cpus(pid: u32) -> Vec<usize> {
    parse_list(field(&text(pid, "status"), "Cpus_allowed_list").unwrap_or_default())
}

/// Parses the kernel's form of a set of numbers, `0-3,8`. Invalid parts are ignored.
pub fn parse_list(text: &str) -> Vec<usize> {
    /// More processors or nodes than any kernel has, to limit the time for any text.
    const LONGEST: usize = 1 << 14;
    let mut numbers = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<usize>(), last.trim().parse::<usize>())
        {
            numbers.extend((first..=last).take(LONGEST.saturating_sub(numbers.len())));
        }
    }
    numbers
}

/// Whether a process is in our PID and time namespaces, so that its PID and start time have the same meaning.
pub fn is_numbered_as_we_are(pid: u32) -> bool {
    namespaces(&pid.to_string()) == namespaces("self")
}

/// Identifies the scope of PIDs and start times: this boot of this machine, and our namespaces.
pub fn place_of_numbers() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!("{boot}{:?}", namespaces("self"))
}

/// The PID and time namespaces of a process. `None` if the kernel has none, or access is denied.
fn namespaces(pid: &str) -> [Option<PathBuf>; 2] {
    ["pid", "time"].map(|kind| fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok())
}

/// Thread IDs of a process.
pub fn threads(pid: u32) -> Vec<u32> {
    numbered(&format!("/proc/{pid}/task"))
}

/// All visible processes.
pub fn everyone() -> Vec<Stat> {
    numbered("/proc")
        .into_iter()
        .filter_map(Stat::read)
        .collect()
}

fn numbered<T: FromStr>(folder: &str) -> Vec<T> {
    let names = names(Path::new(folder)).unwrap_or_default();
    names
        .iter()
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect()
}

/// The names of a folder's entries.
pub(crate) fn names(folder: &Path) -> io::Result<Vec<OsString>> {
    patiently(|| {
        fs::read_dir(folder)?
            .map(|entry| Ok(entry?.file_name()))
            .collect()
    })
}

/// Temporary errors of the system. A process that is missed because of them would be missing in a figure.
const PASSING: [Errno; 5] = [
    Errno::INTR,
    Errno::IO,
    Errno::MFILE,
    Errno::NFILE,
    Errno::NOMEM,
];
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(1);

/// Retries a read after a temporary error.
pub(crate) fn patiently<T>(mut read: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..TRIES {
        match read() {
            Err(error)
                if Errno::from_io_error(&error).is_some_and(|error| PASSING.contains(&error)) =>
            {
                thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
    read()
}

/// All descendants of `root`, parents before their children, including exited ones that were not reaped.
///
/// A snapshot of a changing tree is never exact. For certainty, repeat it until nothing is left.
pub fn descendants(root: u32) -> Vec<Stat> {
    descendants_until(root, None)
}

/// The same with a deadline: among hundreds of changing processes a scan may take many seconds.
pub fn descendants_until(root: u32, until: Option<Instant>) -> Vec<Stat> {
    /// Whether the kernel was built with CONFIG_PROC_CHILDREN. Otherwise all of `/proc` has to be read.
    static LISTS_CHILDREN: OnceLock<bool> = OnceLock::new();
    let lists = || fs::exists("/proc/thread-self/children").unwrap_or(false);
    if *LISTS_CHILDREN.get_or_init(lists) {
        by_children(root, until)
    } else {
        by_parents(root, &everyone())
    }
}

/// Maximum processes per scan. Processes that fork and exit as fast as the scan would be followed forever.
const SEEN_MAX: usize = 10_000;

fn by_children(root: u32, until: Option<Instant>) -> Vec<Stat> {
    let goes_on = |seen: &HashSet<u32>| {
        seen.len() < SEEN_MAX && until.is_none_or(|until| Instant::now() < until)
    };
    let mut found = Vec::new();
    let mut seen = HashSet::from([root]);
    let mut waiting = children(root);
    while !waiting.is_empty() && goes_on(&seen) {
        while let Some(pid) = waiting.pop() {
            if goes_on(&seen)
                && seen.insert(pid)
                && let Some(stat) = Stat::read(pid)
            {
                found.push(stat);
                waiting.extend(children(pid));
            }
        }
        // Orphans of parents that exited during the scan have moved up to `root`, which adopts them.
        waiting = children(root)
            .into_iter()
            .filter(|pid| !seen.contains(pid))
            .collect();
    }
    found
}

/// Children of a process. Empty if the kernel does not list them. A child belongs to the thread that started
/// it, so each thread has its own list.
pub fn children(pid: u32) -> Vec<u32> {
    let list = |thread: u32| text(pid, &format!("task/{thread}/children"));
    let lists: String = threads(pid).into_iter().map(list).collect();
    lists
        .split_ascii_whitespace()
        .filter_map(|child| child.parse().ok())
        .collect()
}

/// The descendants of `root` among `all`.
pub fn by_parents(root: u32, all: &[Stat]) -> Vec<Stat> {
    let (mut found, mut generation, mut seen) = (Vec::new(), vec![root], HashSet::from([root]));
    while !generation.is_empty() {
        // Each once: if PIDs are reused during the scan, two processes may seem to be each other's parent.
        let is_new = |stat: &&Stat| generation.contains(&stat.ppid) && seen.insert(stat.id.pid);
        let children: Vec<Stat> = all.iter().filter(is_new).cloned().collect();
        generation = children.iter().map(|stat| stat.id.pid).collect();
        found.extend(children);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_lacks_for_a_moment_hides_no_process_and_one_that_is_gone_is_not_waited_for()
    {
        let tried = |errors: &[Errno]| {
            let mut left = errors.iter();
            let read = patiently(|| left.next().map_or(Ok(()), |error| Err((*error).into())));
            (read.is_ok(), left.len())
        };
        assert_eq!(tried(&[Errno::MFILE, Errno::NOMEM]), (true, 0));
        assert_eq!(tried(&[Errno::NOENT, Errno::NOMEM]), (false, 1));
        assert_eq!(tried(&[Errno::IO; 9]), (false, 4));
    }

    #[test]
    fn a_command_with_brackets_and_spaces_does_not_shift_the_fields() {
        let rest = "0 ".repeat(30);
        let line = format!(
            "7 (a) S 9 (b) R 3 4 5 0 -1 4194304 10 20 11 12 100 50 30 20 20 0 1 0 777 {rest}"
        );
        let stat = Stat::parse(line.as_bytes()).unwrap();
        assert_eq!(
            (stat.state, stat.ppid, stat.process_group, stat.session),
            ('R', 3, 4, 5)
        );
        assert_eq!((stat.major_faults, stat.children_major_faults), (11, 12));
        assert_eq!(
            (stat.cpu_ticks, stat.children_cpu_ticks, stat.id.start_ticks),
            (150, 50, 777)
        );
        assert_eq!(Stat::parse(b"7 (cut off) S 9"), None);
    }

    #[test]
    fn processes_that_seem_to_be_each_others_parent_are_found_once() {
        let stat = |pid: u32, parent: u32| {
            let rest = "0 ".repeat(30);
            let line = format!("{pid} (a) S {parent} 4 5 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 9 {rest}");
            Stat::parse(line.as_bytes()).unwrap()
        };
        let found = by_parents(7, &[stat(7, 9), stat(8, 7), stat(9, 8)]);
        assert_eq!(
            found.iter().map(|stat| stat.id.pid).collect::<Vec<_>>(),
            [8, 9]
        );
    }

    #[test]
    fn an_environment_with_a_title_over_its_beginning_is_not_whole() {
        let written_over = |text: &[u8]| Environ(text.to_owned()).is_written_over();
        assert!(!written_over(b"PATH=/bin\0PROOFLOAD_TRIAL=1\0"));
        // A title of zeros, and one that reaches into a variable.
        assert!(written_over(b"\0\0\0\0/bin\0PROOFLOAD_TRIAL=1\0"));
        assert!(written_over(b"redis-server *:6379\0ROOFLOAD=2\0"));
    }

    #[test]
    fn both_ways_of_looking_see_a_grandchild() {
        let script = "sleep 30 & wait";
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", script])
            .spawn()
            .unwrap();
        let me = std::process::id();
        let of_child = |stats: &[Stat]| stats.iter().find(|stat| stat.ppid == child.id()).cloned();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        let grandchild = loop {
            match of_child(&descendants(me)) {
                Some(found) => break found,
                None => assert!(
                    std::time::Instant::now() < deadline,
                    "the grandchild was never seen"
                ),
            }
        };
        assert_eq!(
            of_child(&by_parents(me, &everyone())).map(|stat| stat.id),
            Some(grandchild.id)
        );
        let me = ProcessId::of(me).unwrap();
        let later = ProcessId {
            start_ticks: me.start_ticks + 1,
            ..me
        };
        assert!(me.is_alive() && !later.is_alive());
        let nobody = ProcessId {
            pid: 4_194_305,
            ..me
        };
        assert!(!me.is_gone() && later.is_gone() && nobody.is_gone());
        for pid in [grandchild.id.pid, child.id()] {
            // SAFETY: a signal to a process that this test started.
            unsafe { libc::kill(pid as i32, libc::SIGKILL) };
        }
        child.wait().unwrap();
    }

    #[test]
    fn a_list_of_numbers_and_the_time_of_a_thread_are_read() {
        assert_eq!(parse_list("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(parse_list(""), [] as [usize; 0]);
        let me = std::process::id();
        assert!(
            thread_cpu_and_wait_ns(me, me).is_some()
                && thread_cpu_and_wait_ns(me, u32::MAX).is_none()
        );
    }
}
