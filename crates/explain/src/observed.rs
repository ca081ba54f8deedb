//! One window of load and one service: everything that was seen of its CPU time, as one tree in nanoseconds.
//!
//! **Method.** A sample of V8's profiler is a stretch of wall time. Where a thread's processor was taken away or shared, samples say
//! more than it ran: then the busy time is scaled down to what the kernel counted for that thread in the window, and below
//! [`STRETCH_MIN`] a doubt says by how much. It is never scaled up: what the profile did not see stays unexplained. Threads that no
//! profile is of are added as the kernel counted them, by what they are there for (`thread`), so that the thread pool's, garbage
//! collection's and the JIT's work is never lost. V8's profiler has a thread of its own, which is left out: it is no cost of the
//! service.
//!
//! A JavaScript thread without a profile is not seen at all, unless by the kernel's sampling; its CPU time is unexplained, with a doubt.

use record::{AgentSeen, Capture, CapturedProcess, CapturedService};

use crate::doubt::Flaw;
use crate::native_side::{NativeSide, as_pool, as_v8, with_kernel};
use crate::opened::Profiles;
use crate::thread::{Class, classes, is_node};
use crate::words::percent;
use crate::{Kind, Tree, Window, WorkerShare, sums};

/// Part of a service's CPU time from which on a process that nobody saw into is worth a doubt, and any process worth a line.
pub const PROCESS_SHARE_MIN: f64 = 0.02;
/// Part of the window that a profile has to cover.
pub const COVERED_SHARE_MIN: f64 = 0.9;
/// Factor of scaling below which it is worth a doubt.
pub const STRETCH_MIN: f64 = 0.9;
/// What an agent says in a Node.js that it cannot profile.
const TOO_OLD: &str = "is too old";

/// What was seen of one service in one window.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// Good responses of the window.
    pub requests: u64,
    /// CPU time of the service by the kernel's accounting, without the profiler's own threads, in nanoseconds.
    pub cpu_ns: f64,
    /// All that was seen, in nanoseconds of CPU time.
    pub tree: Tree,
    /// Samples of JavaScript that it rests on; `None` where no profile of JavaScript could be read.
    pub samples: Option<u64>,
    /// Its processes one by one.
    pub processes: Vec<ProcessTree>,
    /// The same for people.
    pub shares: Vec<WorkerShare>,
    /// What is the matter with it.
    pub flaws: Vec<Flaw>,
}

/// What was seen of one process.
#[derive(Debug, Default)]
pub(crate) struct ProcessTree {
    /// Requests that it says it answered.
    pub requests: Option<u64>,
    /// In nanoseconds of CPU time.
    pub tree: Tree,
    profiled: bool,
    samples: Option<u64>,
    profiler_ns: u64,
    flaws: Vec<Flaw>,
}

/// Where an observation is made.
pub(crate) struct Sight<'a> {
    /// The window.
    pub capture: &'a Capture,
    /// The service in it.
    pub service: &'a CapturedService,
    /// What the kernel's sampling saw of the same trial.
    pub native: &'a NativeSide,
    /// The same service in other windows of the same trial, for who answered then.
    pub others: Vec<&'a CapturedService>,
    /// Gives profiles.
    pub profiles: &'a dyn Profiles,
}

impl Sight<'_> {
    /// Everything that is seen.
    pub fn observe(&self) -> Observed {
        let seen: Vec<ProcessTree> =
            self.service.processes.iter().map(|process| self.process(process)).collect();
        let profiler_ns = seen.iter().map(|process| process.profiler_ns).fold(0, u64::saturating_add);
        let cpu_ns = self.service.cpu_ns.saturating_sub(profiler_ns) as f64;
        let shares = self.service.processes.iter().zip(&seen);
        let shares =
            shares.filter(|(process, seen)| seen.profiled || self.share(process) >= PROCESS_SHARE_MIN);
        let share = |(process, seen): (&CapturedProcess, &ProcessTree)| WorkerShare {
            round: self.capture.round,
            pid: process.pid,
            requests: seen.requests,
            cpu_ns: all_ns(process),
            profiled: seen.profiled,
        };
        Observed {
            requests: self.capture.requests,
            cpu_ns,
            tree: sums::without_waiting(&sums::together(seen.iter().map(|process| &process.tree))),
            samples: seen.iter().filter_map(|process| process.samples).reduce(u64::saturating_add),
            shares: shares.map(share).collect(),
            flaws: seen.iter().flat_map(|process| process.flaws.clone()).collect(),
            processes: seen,
        }
    }

    fn process(&self, process: &CapturedProcess) -> ProcessTree {
        if process.agents.is_empty() && !is_node(&process.command) {
            return self.compiled(process);
        }
        let mut seen = ProcessTree { requests: self.requests(process), ..ProcessTree::default() };
        let (mut parts, mut javascript) = (Vec::new(), Vec::new());
        for agent in process.agents.iter().filter(|agent| agent.profile.is_some() || agent.failed.is_some()) {
            if let Some((thread, tree)) = self.javascript(process, agent, &javascript, &mut seen) {
                javascript.extend(thread);
                parts.push(tree);
            }
        }
        let known: Vec<u32> = process.agents.iter().filter_map(|agent| agent.thread_id).collect();
        let classes = classes(process, &[known, javascript.clone()].concat());
        let ns = |class: Class| {
            let of = process.threads.iter().zip(&classes).filter(|(_, one)| **one == class);
            of.map(|(thread, _)| thread.cpu_ns).fold(0, u64::saturating_add)
        };
        seen.profiler_ns = ns(Class::Profiler);
        if parts.is_empty() {
            self.unseen(process, &mut seen);
            parts.extend(
                self.native
                    .of(process.pid, Class::JavaScript)
                    .map(|tree| spread(tree, ns(Class::JavaScript))),
            );
        }
        parts.push(self.helpers(process.pid, Class::Pool, ns(Class::Pool)));
        parts.push(self.helpers(process.pid, Class::V8, ns(Class::V8)));
        parts.push(self.helpers(process.pid, Class::Other, ns(Class::Other)));
        seen.profiled = !javascript.is_empty();
        seen.tree = sums::together(&parts);
        seen
    }

    /// A JavaScript thread that was to be profiled: its number where it is known, and its tree.
    fn javascript(
        &self,
        process: &CapturedProcess,
        agent: &AgentSeen,
        taken: &[u32],
        seen: &mut ProcessTree,
    ) -> Option<(Option<u32>, Tree)> {
        let whose = format!("process {} ({})", process.pid, agent.role);
        let Some(file) = &agent.profile else {
            let why = agent.failed.as_deref().unwrap_or("no reason given");
            let check = if why.contains(TOO_OLD) { "node_too_old" } else { "worker_unprofiled" };
            seen.flaws.push(Flaw::new(check, format!("{whose} gave no profile: {why}")));
            return None;
        };
        let window = Window { start_ns: self.capture.start_ns, end_ns: self.capture.end_ns };
        let cut = match self.profiles.cpu(file, window, &self.service.directory) {
            Ok(cut) => cut,
            Err(problem) => {
                let check = if problem.contains("cut off") { "profile_cut_off" } else { "worker_unprofiled" };
                seen.flaws.push(Flaw::new(check, problem));
                return None;
            }
        };
        let tree = sums::without_waiting(&cut.tree);
        let busy_ns = tree.total();
        let thread = thread_of(process, agent, busy_ns, taken);
        let ran_ns =
            thread.and_then(|id| process.threads.iter().find(|one| one.id == id)).map(|one| one.cpu_ns);
        let factor = stretch(ran_ns, busy_ns);
        let asked_ns = self.capture.end_ns.saturating_sub(self.capture.start_ns).max(1) as f64;
        let covered = (cut.covered_ns + cut.capped_ns) / asked_ns;
        seen.samples = Some(seen.samples.unwrap_or(0).saturating_add(cut.samples));
        // V8 writes some samples a little late, always: that is no doubt. What is missing of the window is judged below.
        let settled = |note: &&String| note.contains("order of time") || note.contains("of the window");
        let notes = cut.notes.iter().filter(|note| !settled(note));
        seen.flaws.extend(notes.map(|note| Flaw::noted(note, "profile_note")));
        if covered < COVERED_SHARE_MIN {
            let evidence = format!("the profile of {whose} covers {} of its window", percent(covered));
            seen.flaws.push(Flaw::new("profile_cut_off", evidence));
        }
        if factor < STRETCH_MIN {
            let evidence = format!(
                "samples of {whose} say {:.0} ms where the kernel counted {:.0} ms of CPU time; they are scaled by {factor:.2}",
                busy_ns / 1e6,
                busy_ns * factor / 1e6
            );
            seen.flaws.push(Flaw::new("samples_stretched", evidence));
        }
        let scaled = sums::scaled(&tree, |_| factor);
        Some((thread, with_kernel(&scaled, self.native.kernel_share(process.pid))))
    }

    /// Threads of a class that no profile of JavaScript is of.
    fn helpers(&self, pid: u32, class: Class, ns: u64) -> Tree {
        let (name, kind) = match class {
            Class::Pool => ("(thread pool)", Kind::ThreadPool),
            Class::V8 => ("(V8 helper threads)", Kind::Gc),
            _ => ("(other threads)", Kind::Native),
        };
        let alone = sums::root(name, kind, ns as f64);
        let (Some(shape), Some(root)) = (self.native.of(pid, class), alone.frames.first()) else {
            return alone;
        };
        let inner = match class {
            Class::Pool => as_pool(shape),
            Class::V8 => as_v8(shape),
            _ => shape.clone(),
        };
        sums::below(root.clone(), &spread(&inner, ns))
    }

    /// A process that is not of Node.js.
    fn compiled(&self, process: &CapturedProcess) -> ProcessTree {
        let native = self.native.of_process(process.pid).map(|tree| spread(&tree, all_ns(process)));
        let profiled = native.is_some();
        let by_thread = || {
            let roots = process.threads.iter();
            let roots: Vec<Tree> = roots
                .map(|thread| sums::root(&format!("({})", thread.name), Kind::Native, thread.cpu_ns as f64))
                .collect();
            sums::together(&roots)
        };
        ProcessTree { tree: native.unwrap_or_else(by_thread), profiled, ..ProcessTree::default() }
    }

    /// Tells of a process of Node.js into which nobody saw.
    fn unseen(&self, process: &CapturedProcess, seen: &mut ProcessTree) {
        let share = self.share(process);
        if share < PROCESS_SHARE_MIN || !seen.flaws.is_empty() {
            return;
        }
        let had = |other: &&CapturedService| {
            other.processes.iter().any(|one| one.pid == process.pid && !one.agents.is_empty())
        };
        let what = format!("process {} has {} of the service's CPU time", process.pid, percent(share));
        let agents = || self.service.processes.iter().any(|one| !one.agents.is_empty());
        seen.flaws.push(if !process.agents.is_empty() {
            Flaw::new("worker_unprofiled", format!("{what} and gave no profile"))
        } else if self.others.iter().any(had) {
            Flaw::new("agent_lost", format!("{what}; its agent was there and is gone"))
        } else if agents() {
            Flaw::new("worker_unprofiled", format!("{what} and no agent in it"))
        } else {
            Flaw::new("agent_missing", format!("{what}, is Node.js by its command, and has no agent in it"))
        });
    }

    /// Requests that a process says it answered: in this window, else in another one of the same trial.
    fn requests(&self, process: &CapturedProcess) -> Option<u64> {
        let answered = |process: &CapturedProcess| {
            process.agents.iter().filter_map(|agent| agent.requests).reduce(u64::saturating_add)
        };
        let elsewhere = |other: &&CapturedService| {
            other.processes.iter().find(|one| one.pid == process.pid).and_then(answered)
        };
        answered(process).or_else(|| self.others.iter().find_map(elsewhere))
    }

    /// Share of the service's CPU time that is a process's.
    fn share(&self, process: &CapturedProcess) -> f64 {
        all_ns(process) as f64 / self.service.cpu_ns.max(1) as f64
    }
}

fn all_ns(process: &CapturedProcess) -> u64 {
    process.threads.iter().map(|thread| thread.cpu_ns).fold(0, u64::saturating_add)
}

/// The kernel's number of an agent's thread. A worker thread that could not tell is the one whose CPU time comes closest.
fn thread_of(process: &CapturedProcess, agent: &AgentSeen, busy_ns: f64, taken: &[u32]) -> Option<u32> {
    if agent.thread == 0 {
        return Some(process.pid);
    }
    let far = |cpu_ns: u64| (cpu_ns as f64 - busy_ns).abs();
    agent.thread_id.or_else(|| {
        let free = process.threads.iter().filter(|one| one.id != process.pid && !taken.contains(&one.id));
        free.min_by(|one, other| far(one.cpu_ns).total_cmp(&far(other.cpu_ns))).map(|one| one.id)
    })
}

/// By how much samples have to be scaled to be CPU time: never up. Where the kernel counted nothing at all it cannot count.
fn stretch(ran_ns: Option<u64>, busy_ns: f64) -> f64 {
    match ran_ns {
        Some(ran) if ran > 0 && busy_ns > ran as f64 => ran as f64 / busy_ns,
        _ => 1.0,
    }
}

/// The shape with so many nanoseconds altogether.
fn spread(shape: &Tree, ns: u64) -> Tree {
    let factor = ns as f64 / shape.total();
    sums::scaled(shape, |_| factor)
}
