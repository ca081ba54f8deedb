//! One process as `/proc` shows it: who it is, whose child it is, what it was started with, what it used.
//!
//! It reads and signals single processes. It must not walk trees (see [`crate::tree`]) nor keep anything between calls.

use std::collections::BTreeMap;
use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::marker;

/// A process, told apart by its start from a later one that has the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// Its start in clock ticks since boot: field 22 of `/proc/PID/stat`.
    pub start_ticks: u64,
}

/// What a process is and what it was started with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// Who it is.
    pub id: ProcessId,
    /// Number of its parent.
    pub ppid: u32,
    /// Its arguments, the program first, without empty ones at the end; what is not UTF-8 is replaced. A program may
    /// have overwritten them with a title of its own.
    pub argv: Vec<String>,
    /// Its start on `CLOCK_BOOTTIME`, to a clock tick (10 ms).
    pub start_time_ns: u64,
    /// Those of the variables asked for that its environment had when it was started.
    pub environ: BTreeMap<String, String>,
    /// Whether Proofload's marker is in its environment, and that environment whole. Without it a variable that is missing proves
    /// nothing: the process was started with an environment of its own, or wrote its title over it as nginx does, or is another
    /// user's.
    pub marked: bool,
    /// The CPUs it may run on.
    pub cpus: Vec<usize>,
}

/// The fields of `/proc/PID/stat` that we use; times in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub id: ProcessId,
    pub state: u8,
    pub ppid: u32,
    pub process_group: u32,
    pub session: u32,
    /// Major faults of the process, and of its children that ended and were waited for.
    pub major_faults: u64,
    pub children_major_faults: u64,
    /// User and system time of the process.
    pub cpu_ticks: u64,
    /// The same of its children that ended and were waited for, and of theirs.
    pub children_cpu_ticks: u64,
}

impl Stat {
    /// `None`: there is no such process any more.
    pub fn read(pid: u32) -> Option<Self> {
        let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(pid, &String::from_utf8_lossy(&text))
    }

    /// The command in brackets may hold anything, also brackets and spaces: what counts begins after the last bracket.
    fn parse(pid: u32, text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
        // Numbered as in proc_pid_stat(5), where the state is field 3.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let id = |field: usize| number(field).and_then(|value| u32::try_from(value).ok());
        Some(Self {
            id: ProcessId { pid, start_ticks: number(22)? },
            state: *fields.first()?.as_bytes().first()?,
            ppid: id(4)?,
            process_group: id(5)?,
            session: id(6)?,
            major_faults: number(12)?,
            children_major_faults: number(13)?,
            cpu_ticks: number(14)? + number(15)?,
            children_cpu_ticks: number(16)? + number(17)?,
        })
    }

    /// All that can be said of it, with those of `variables` that it was given.
    pub fn info(&self, variables: &[&str]) -> ProcessInfo {
        let wanted = |name: &str| name == marker::VARIABLE || variables.contains(&name);
        let text = environ_text(self.id.pid).unwrap_or_default();
        let mut environ = variables_of(&text, wanted);
        let marked = environ.contains_key(marker::VARIABLE) && !is_written_over(&text);
        environ.retain(|name, _| variables.contains(&name.as_str()));
        ProcessInfo {
            id: self.id,
            ppid: self.ppid,
            argv: argv(self.id.pid),
            start_time_ns: ticks_to_ns(self.id.start_ticks),
            environ,
            marked,
            cpus: cpus(self.id.pid),
        }
    }

    /// Whether it still runs anything: an ended process that its parent has not waited for yet does not.
    pub fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X')
    }
}

impl ProcessId {
    /// Of a process that is there now.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Stat::read(pid).map(|stat| stat.id)
    }

    /// Whether this very process is still there and has not ended.
    pub fn is_alive(self) -> bool {
        Stat::read(self.pid).is_some_and(|stat| stat.id == self && stat.is_alive())
    }

    /// Sends `signal` to this very process; a later one of the same number gets nothing. Whether it was sent.
    ///
    /// The descriptor is opened first and the start compared after, so that the process compared is the one signalled.
    pub(crate) fn signal(self, signal: Signal) -> bool {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return false };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => {
                Self::of(self.pid) == Some(self) && pidfd_send_signal(descriptor, signal).is_ok()
            }
            // Linux before 5.3 and some sandboxes.
            Err(Errno::NOSYS) => Self::of(self.pid) == Some(self) && kill_process(pid, signal).is_ok(),
            Err(_) => false,
        }
    }
}

/// Whether a process is in our own PID namespace, where a number means the same process to it and to us.
pub(crate) fn is_numbered_as_we_are(pid: u32) -> bool {
    let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    namespace(&pid.to_string()) == namespace("self")
}

/// Clock ticks a second, in which `/proc` counts.
pub(crate) fn ticks_per_second() -> u64 {
    // SAFETY: takes no pointer and changes nothing.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).ok().filter(|ticks| *ticks > 0).unwrap_or(100)
}

/// Clock ticks, in which `/proc` counts time, as nanoseconds.
pub fn ticks_to_ns(ticks: u64) -> u64 {
    ticks * (1_000_000_000 / ticks_per_second())
}

/// CPU time that a process has used, with its ended threads; `None` if it is gone.
///
/// The clock of the process, in nanoseconds. The part of a thread that runs this moment is up to a scheduler tick (1 to
/// 10 ms) old.
pub fn cpu_ns(pid: u32) -> Option<u64> {
    let pid = i32::try_from(pid).ok()?;
    let mut clock = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both calls write to the one variable whose address they get.
    let read = unsafe {
        libc::clock_getcpuclockid(pid, &raw mut clock) == 0 && libc::clock_gettime(clock, &raw mut time) == 0
    };
    let (seconds, nanos) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
    read.then_some(seconds * 1_000_000_000 + nanos)
}

/// Time that the first thread of a process was ready to run and waited for a CPU; 0 where the kernel does not say.
pub(crate) fn run_delay_ns(pid: u32) -> u64 {
    let schedule = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    schedule.split_ascii_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// The arguments of a process; empty for one that is gone or has ended.
pub(crate) fn argv(pid: u32) -> Vec<String> {
    let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut argv: Vec<String> =
        text.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned()).collect();
    // Those who write a title fill the rest with zeros.
    argv.truncate(argv.iter().rposition(|part| !part.is_empty()).map_or(0, |last| last + 1));
    argv
}

/// `node server.js (pid 123)`, short enough for a message.
pub(crate) fn describe(pid: u32) -> String {
    let mut command = argv(pid).join(" ");
    if command.is_empty() {
        command = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned();
    }
    if command.chars().count() > 80 {
        command = command.chars().take(79).chain(['…']).collect();
    }
    format!("{command} (pid {pid})")
}

/// The variables of a process that `wanted` chooses; `None`: it may not be read, or is gone.
pub(crate) fn environ(pid: u32, wanted: impl Fn(&str) -> bool) -> Option<BTreeMap<String, String>> {
    Some(variables_of(&environ_text(pid)?, wanted))
}

fn environ_text(pid: u32) -> Option<Vec<u8>> {
    fs::read(format!("/proc/{pid}/environ")).ok()
}

fn variables_of(text: &[u8], wanted: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
    let variables = text.split(|byte| *byte == 0).filter_map(|entry| {
        let entry = String::from_utf8_lossy(entry);
        let (name, value) = entry.split_once('=')?;
        wanted(name).then(|| (name.to_owned(), value.to_owned()))
    });
    variables.collect()
}

/// Whether a title has been written over the beginning of an environment. Redis does so, and leaves the end as it was: a variable
/// that was at the beginning is then not missing, but hidden.
fn is_written_over(text: &[u8]) -> bool {
    let first = text.split(|byte| *byte == 0).next().unwrap_or_default();
    !first.contains(&b'=')
}

/// The CPUs a process's first thread may run on; empty if it is gone.
pub(crate) fn cpus(pid: u32) -> Vec<usize> {
    let text = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
    crate::cpus::parse_list(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_brackets_and_spaces_does_not_shift_the_fields() {
        let line = "7 (a) S 9 (b) R 3 4 5 0 -1 4194304 10 20 11 12 100 50 30 20 20 0 1 0 777 1000 2 184";
        let stat = Stat::parse(7, line).unwrap();
        assert_eq!((stat.state, stat.ppid, stat.process_group, stat.session), (b'R', 3, 4, 5));
        assert_eq!((stat.major_faults, stat.children_major_faults), (11, 12));
        assert_eq!((stat.cpu_ticks, stat.children_cpu_ticks, stat.id.start_ticks), (150, 50, 777));
        assert_eq!(Stat::parse(7, "7 (cut off) S 9"), None);
    }

    #[test]
    fn an_environment_with_a_title_over_its_beginning_is_not_whole() {
        assert!(!is_written_over(b"PATH=/bin\0PROOFLOAD_TRIAL=1\0"));
        // A title of zeros, and one that reaches into a variable.
        assert!(is_written_over(b"\0\0\0\0/bin\0PROOFLOAD_TRIAL=1\0"));
        assert!(is_written_over(b"redis-server *:6379\0ROOFLOAD=2\0"));
    }

    #[test]
    fn a_number_taken_by_a_later_process_is_not_signalled() {
        let me = ProcessId::of(std::process::id()).unwrap();
        assert!(me.is_alive());
        let stranger = ProcessId { start_ticks: me.start_ticks + 1, ..me };
        assert!(!stranger.is_alive());
        // It would end this test.
        assert!(!stranger.signal(Signal::KILL));
    }
}
