//! What each thread of a process has used: `/proc/PID/task/TID/schedstat` and `comm`.
//!
//! So the work of a thread pool, of a garbage collector and of a compiler is told apart from that of the main thread, whatever the
//! program is. It reads, and keeps nothing between calls. Of a thread that runs this moment up to a scheduler tick (1 to 10 ms) is missing.

use std::collections::HashMap;
use std::fs;

use serde::{Deserialize, Serialize};

use crate::process::{ProcessId, Stat, argv, cpu_ns, ticks_to_ns};
use crate::tree;

/// What stands for all threads that were there for a part of the time only.
pub const ENDED_THREADS: &str = "ended threads";
/// Less than this between the clock of a process and the sum of its threads is how far apart the two are read.
const ENDED_MIN_NS: u64 = 5_000_000;

/// A thread, and what it has used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadCpu {
    /// Its number; that of the first thread is the process's. 0 for [`ENDED_THREADS`].
    pub id: u32,
    /// Its name as the kernel has it, such as `node`, `V8Worker`, `libuv-worker`.
    pub name: String,
    /// Time that it ran, in nanoseconds.
    pub cpu_ns: u64,
    /// Time that it was ready to run and had no processor; 0 on kernels without CONFIG_SCHED_INFO.
    pub waited_ns: u64,
}

/// A process and its threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessThreads {
    /// Who it is.
    pub id: ProcessId,
    /// Number of its parent.
    pub parent: u32,
    /// Name of the file that it runs, such as `node`; empty where it may not be seen.
    pub program: String,
    /// Its arguments, the program first. A program may have overwritten them with a title of its own.
    pub argv: Vec<String>,
    /// CPU time that it has used, with its ended threads and without its children.
    pub cpu_ns: u64,
    /// Its threads, by number.
    pub threads: Vec<ThreadCpu>,
}

impl ProcessThreads {
    pub(crate) fn of(stat: &Stat) -> Self {
        let pid = stat.id.pid;
        let mut threads: Vec<ThreadCpu> =
            tree::threads(pid).into_iter().filter_map(|thread| ThreadCpu::of(pid, thread)).collect();
        threads.sort_by_key(|thread| thread.id);
        Self {
            id: stat.id,
            parent: stat.ppid,
            program: program(pid),
            argv: argv(pid),
            cpu_ns: cpu_ns(pid).unwrap_or(0),
            threads,
        }
    }

    /// What each thread has used since an `earlier` look at the same process; since its start where there is none. Threads that have
    /// ended since then, and those that came and went, are one at the end, by what the process used beside the others.
    pub fn used_since(&self, earlier: Option<&Self>) -> Vec<ThreadCpu> {
        let earlier = earlier.filter(|earlier| earlier.id == self.id);
        let before: HashMap<u32, &ThreadCpu> =
            earlier.iter().flat_map(|earlier| &earlier.threads).map(|thread| (thread.id, thread)).collect();
        let mut used: Vec<ThreadCpu> =
            self.threads.iter().map(|now| now.used_since(before.get(&now.id).copied())).collect();
        let whole_ns = self.cpu_ns.saturating_sub(earlier.map_or(0, |earlier| earlier.cpu_ns));
        let rest_ns = whole_ns.saturating_sub(used.iter().map(|thread| thread.cpu_ns).sum());
        if rest_ns >= ENDED_MIN_NS {
            used.push(ThreadCpu { id: 0, name: ENDED_THREADS.to_owned(), cpu_ns: rest_ns, waited_ns: 0 });
        }
        used
    }
}

impl ThreadCpu {
    /// `None`: the thread has ended.
    fn of(pid: u32, thread: u32) -> Option<Self> {
        let folder = format!("/proc/{pid}/task/{thread}");
        let name = fs::read(format!("{folder}/comm")).ok()?;
        let schedule = fs::read_to_string(format!("{folder}/schedstat")).unwrap_or_default();
        let (cpu_ns, waited_ns) = parse(&schedule).or_else(|| Some((ticks_ns(&folder)?, 0)))?;
        let name = String::from_utf8_lossy(&name).trim_end().to_owned();
        Some(Self { id: thread, name, cpu_ns, waited_ns })
    }

    /// A thread with less than before is a later one of the same number.
    fn used_since(&self, earlier: Option<&Self>) -> Self {
        let earlier = earlier.filter(|earlier| earlier.cpu_ns <= self.cpu_ns);
        let (cpu_ns, waited_ns) = earlier.map_or((0, 0), |earlier| (earlier.cpu_ns, earlier.waited_ns));
        Self {
            cpu_ns: self.cpu_ns - cpu_ns,
            waited_ns: self.waited_ns.saturating_sub(waited_ns),
            ..self.clone()
        }
    }
}

/// "time on a CPU, time waiting for one, times run"; `None` where the kernel does not count, and says zero of all three.
fn parse(schedule: &str) -> Option<(u64, u64)> {
    let mut numbers = schedule.split_ascii_whitespace().map(|field| field.parse::<u64>().ok());
    let (cpu_ns, waited_ns, times) = (numbers.next()??, numbers.next()??, numbers.next()??);
    (times > 0).then_some((cpu_ns, waited_ns))
}

/// CPU time of a thread in clock ticks, which every kernel tells.
fn ticks_ns(folder: &str) -> Option<u64> {
    let text = fs::read(format!("{folder}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    // Numbered as in proc_pid_stat(5), where the state, behind the last bracket, is field 3.
    let fields: Vec<&str> = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(ticks_to_ns(ticks(14)? + ticks(15)?))
}

fn program(pid: u32) -> String {
    let file = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    // As the kernel has it when the file was replaced by a newer one.
    name.trim_end_matches(" (deleted)").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(id: u32, cpu_ns: u64) -> ThreadCpu {
        ThreadCpu { id, name: "x".into(), cpu_ns, waited_ns: cpu_ns / 10 }
    }

    fn process(cpu_ns: u64, threads: Vec<ThreadCpu>) -> ProcessThreads {
        let id = ProcessId { pid: 7, start_ticks: 1 };
        ProcessThreads { id, parent: 1, program: "x".into(), argv: Vec::new(), cpu_ns, threads }
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn threads_that_come_and_go_are_in_what_is_left_over() {
        let before = process(150 * MS, vec![thread(7, 100 * MS), thread(8, 50 * MS)]);
        // 8 has ended after 30 ms more, 9 came, and another came and went.
        let after = process(400 * MS, vec![thread(7, 200 * MS), thread(9, 60 * MS)]);
        let used = after.used_since(Some(&before));
        let told: Vec<(u32, u64)> = used.iter().map(|thread| (thread.id, thread.cpu_ns / MS)).collect();
        assert_eq!(told, [(7, 100), (9, 60), (0, 90)]);
        assert_eq!((used[2].name.as_str(), used[0].waited_ns), (ENDED_THREADS, 10 * MS));
        // A process that was not there before counts from its start, and so does a number that was given away again.
        assert_eq!(after.used_since(None).iter().map(|thread| thread.cpu_ns).sum::<u64>(), 400 * MS);
        let again = process(205 * MS, vec![thread(7, 100 * MS), thread(8, 2 * MS)]);
        assert_eq!(again.used_since(Some(&before))[1].cpu_ns, 2 * MS);
    }

    #[test]
    fn a_kernel_that_does_not_count_says_nothing() {
        assert_eq!(parse("1186140 34620831 20\n"), Some((1_186_140, 34_620_831)));
        assert_eq!((parse("0 0 0\n"), parse(""), parse("1 x 2")), (None, None, None));
        let me = std::process::id();
        assert!(ticks_ns(&format!("/proc/{me}/task/{me}")).is_some());
    }
}
