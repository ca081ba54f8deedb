//! One window of load and one service: all observed CPU time as one tree in nanoseconds.
//!
//! **Method.** A sample of V8's profiler is an interval of wall time. If a thread's processor was preempted
//! or shared, the samples exceed its run time. The busy time is then scaled down to the kernel's count for
//! that thread in the window, and below [`STRETCH_MIN`] a doubt states by how much. It is never scaled up:
//! time that the profile did not see stays unexplained. Threads without a profile are added with the kernel's
//! count, by their role (`thread`), so that the work of the thread pool, of garbage collection and of the JIT
//! is never lost. The thread of V8's profiler is omitted, because it is not a cost of the service. A
//! JavaScript thread without a profile is known from kernel sampling only. Without that, its CPU time is
//! unexplained, with a doubt.
//!
//! **Kernel sampling adds** the functions of pool and helper threads, the kernel's share of a main thread,
//! and everything for services that are not Node.js. Native profiles are captured in their own window of the
//! same trial. Their shares are used, their amounts are not. Each class of threads gets the CPU time that the
//! kernel counted for it in the window of the CPU profile, distributed as in the native profile. V8's
//! profiler does not see the kernel: its time is in the calling function, which is a native one or one of
//! Node.js. So the kernel's share of the main thread's native samples is taken from native functions first
//! and then from Node.js's own. It is never taken from the service's, a framework's or a package's code. It
//! is shown below each function as `(kernel)`. If the kernel's work may not be sampled, a service that is not
//! Node.js is assigned the CPU time it used beyond its samples as kernel work.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use model::quantity::{decimal, micros, share};
use model::{AgentSeen, Capture, CapturedProcess, CapturedService, ThreadUse};

use crate::captures::{Profiles, cpu_ns};
use crate::doubt::{DoubtKind, Note};
use crate::thread::{Class, classes, is_node};
use crate::tree::{self, below, together, without_waiting};
use crate::{CodeKind, Frame, TimeWindow, Tree, TreePlace, WorkerShare};

/// Share of a service's CPU time from which on a process without a profile is a doubt, and any process is
/// listed.
pub const PROCESS_SHARE_MIN: f64 = 0.02;
/// Share of the window that a profile must cover.
pub const COVERED_SHARE_MIN: f64 = 0.9;
/// Scaling factor below which a doubt is raised.
pub const STRETCH_MIN: f64 = 0.9;
/// The oldest major version of Node.js that the agent can profile.
const NODE_MAJOR_MIN: u32 = 18;

/// The observation of one service in one window.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub round: u32,
    /// Successful responses of the window.
    pub requests: u64,
    /// CPU time of the service in nanoseconds by the kernel's accounting, without the profiler's own threads.
    pub cpu_ns: f64,
    /// Everything observed, in nanoseconds of CPU time.
    pub tree: Tree,
    /// Number of JavaScript samples. `None` if no JavaScript profile could be read.
    pub samples: Option<u64>,
    /// Its processes, separately.
    pub processes: Vec<ProcessTree>,
    /// The shares of the processes worth listing.
    pub shares: Vec<WorkerShare>,
    pub notes: Vec<Note>,
}

#[derive(Debug, Default)]
pub(crate) struct ProcessTree {
    /// Its share of the work, for display.
    pub share: WorkerShare,
    /// In nanoseconds of CPU time.
    pub tree: Tree,
    samples: Option<u64>,
    profiler_ns: u64,
    notes: Vec<Note>,
}

/// The inputs of an observation.
pub(crate) struct ObservedPlace<'a> {
    pub capture: &'a Capture,
    pub service: &'a CapturedService,
    /// Kernel samples of the same trial.
    pub native: &'a NativeSide,
    /// The same service in other windows of the same trial, for their counts.
    pub others: Vec<&'a CapturedService>,
    pub profiles: &'a dyn Profiles,
}

impl ObservedPlace<'_> {
    pub fn observe(&self) -> Observed {
        let seen: Vec<ProcessTree> = self
            .service
            .processes
            .iter()
            .map(|process| self.process(process))
            .collect();
        let profiler_ns = seen
            .iter()
            .map(|process| process.profiler_ns)
            .fold(0, u64::saturating_add);
        let shown = |of: &&ProcessTree| {
            of.share.profiled || self.share(of.share.cpu_ns) >= PROCESS_SHARE_MIN
        };
        Observed {
            round: self.capture.round,
            requests: self.capture.requests,
            cpu_ns: self.service.cpu_ns.saturating_sub(profiler_ns) as f64,
            tree: without_waiting(&together(seen.iter().map(|process| &process.tree))),
            samples: seen
                .iter()
                .filter_map(|process| process.samples)
                .reduce(u64::saturating_add),
            shares: seen
                .iter()
                .filter(shown)
                .map(|of| of.share.clone())
                .collect(),
            notes: seen
                .iter()
                .flat_map(|process| process.notes.clone())
                .collect(),
            processes: seen,
        }
    }

    fn process(&self, process: &CapturedProcess) -> ProcessTree {
        let (round, pid, cpu_ns) = (self.capture.round, process.pid, cpu_ns(process));
        let share = WorkerShare {
            round,
            pid,
            cpu_ns,
            ..WorkerShare::default()
        };
        let mut seen = ProcessTree {
            share,
            ..ProcessTree::default()
        };
        if is_compiled(process) {
            self.compiled(process, &mut seen);
            return seen;
        }
        seen.share.requests = self.requests(process);
        let (mut parts, mut javascript) = (Vec::new(), Vec::new());
        for agent in process
            .agents
            .iter()
            .filter(|agent| agent.profile.is_some() || agent.failed.is_some())
        {
            match self.javascript(process, agent, &javascript, &mut seen) {
                Ok((thread, tree)) => {
                    javascript.extend(thread);
                    parts.push(tree);
                }
                Err(note) => seen.notes.push(note),
            }
        }
        let classes = classes(process, &javascript);
        let ns = |class: Class| {
            let of = process
                .threads
                .iter()
                .zip(&classes)
                .filter(|(_, one)| **one == class);
            of.map(|(thread, _)| thread.cpu_ns)
                .fold(0, u64::saturating_add)
        };
        seen.profiler_ns = ns(Class::Profiler);
        if parts.is_empty() {
            self.unseen(process, &mut seen);
            let shape = self.native.of(process.pid, Class::JavaScript);
            parts.extend(shape.map(|shape| spread(shape, ns(Class::JavaScript))));
        }
        for (class, name, kind) in HELPERS {
            let (shape, ns) = (self.native.of(process.pid, class), ns(class));
            parts.push(match shape.filter(|_| ns > 0) {
                Some(shape) => helpers(&Frame::new(name, "", 0, kind), spread(shape, ns), class),
                None => tree::root(name, kind, ns as f64),
            });
        }
        seen.share.profiled = !javascript.is_empty();
        seen.tree = together(&parts);
        seen
    }

    /// A JavaScript thread that was to be profiled: its thread ID, if known, and its tree.
    fn javascript(
        &self,
        process: &CapturedProcess,
        agent: &AgentSeen,
        taken: &[u32],
        seen: &mut ProcessTree,
    ) -> Result<(Option<u32>, Tree), Note> {
        let whose = format!("process {} ({})", process.pid, agent.role);
        let file = agent.profile.as_ref().ok_or_else(|| {
            let why = agent.failed.as_deref().unwrap_or("no reason given");
            let doubt = if is_too_old(agent) {
                DoubtKind::NodeTooOld
            } else {
                DoubtKind::WorkerUnprofiled
            };
            Note::new(doubt, format!("{whose} gave no profile: {why}"))
        })?;
        let window = TimeWindow {
            start_ns: self.capture.start_ns,
            end_ns: self.capture.end_ns,
        };
        let cut = self.profiles.cpu(file, window, &self.service.directory)?;
        let tree = without_waiting(&cut.tree);
        let busy_ns = tree.total();
        let thread = thread_of(process, agent, busy_ns, taken);
        let ran = process
            .threads
            .iter()
            .find(|one| Some(one.id) == thread)
            .map(|one| one.cpu_ns as f64);
        // Never scaled up. If the kernel counted nothing at all, its count is not used.
        let ran = ran.filter(|ran| *ran > 0.0 && *ran < busy_ns);
        let factor = ran.map_or(1.0, |ran| ran / busy_ns);
        let asked_ns = self
            .capture
            .end_ns
            .saturating_sub(self.capture.start_ns)
            .max(1) as f64;
        let covered = (cut.covered_ns + cut.capped_ns) / asked_ns;
        seen.samples = Some(seen.samples.unwrap_or(0).saturating_add(cut.samples));
        seen.notes.extend(cut.notes);
        if covered < COVERED_SHARE_MIN {
            let evidence = format!(
                "the profile of {whose} covers {} of its window",
                share(covered)
            );
            seen.notes
                .push(Note::new(DoubtKind::ProfileCutOff, evidence));
        }
        if factor < STRETCH_MIN {
            let evidence = format!(
                "samples of {whose} say {} where the kernel counted {} of CPU time; they are scaled by {}",
                micros(busy_ns / 1e3),
                micros(busy_ns * factor / 1e3),
                decimal(factor, 2)
            );
            seen.notes
                .push(Note::new(DoubtKind::SamplesStretched, evidence));
        }
        let scaled = tree::scaled(&tree, |_| factor);
        Ok((
            thread,
            with_kernel(&scaled, self.native.kernel_share(process.pid)),
        ))
    }

    fn compiled(&self, process: &CapturedProcess, seen: &mut ProcessTree) {
        let native = self
            .native
            .of_process(process.pid)
            .map(|tree| spread(&tree, seen.share.cpu_ns));
        seen.share.profiled = native.is_some();
        seen.tree = native.unwrap_or_else(|| {
            let root = |thread: &ThreadUse| {
                tree::root(
                    &format!("({})", thread.name),
                    CodeKind::Native,
                    thread.cpu_ns as f64,
                )
            };
            together(&process.threads.iter().map(root).collect::<Vec<Tree>>())
        });
    }

    /// Adds a note for a Node.js process without a profile.
    fn unseen(&self, process: &CapturedProcess, seen: &mut ProcessTree) {
        let part = self.share(seen.share.cpu_ns);
        if part < PROCESS_SHARE_MIN || !seen.notes.is_empty() {
            return;
        }
        let same = |one: &&CapturedProcess| one.pid == process.pid;
        let elsewhere = self
            .others
            .iter()
            .filter_map(|other| other.processes.iter().find(same));
        let had = elsewhere.into_iter().any(|one| !one.agents.is_empty());
        let (doubt, why) = if !process.agents.is_empty() {
            (DoubtKind::WorkerUnprofiled, " and gave no profile")
        } else if had {
            (DoubtKind::AgentLost, "; its agent was there and is gone")
        } else if self
            .service
            .processes
            .iter()
            .any(|one| !one.agents.is_empty())
        {
            (DoubtKind::WorkerUnprofiled, " and no agent in it")
        } else {
            (
                DoubtKind::AgentMissing,
                ", is Node.js by its command, and has no agent in it",
            )
        };
        let what = format!(
            "process {} has {} of the service's CPU time",
            process.pid,
            share(part)
        );
        seen.notes.push(Note::new(doubt, what + why));
    }

    /// Requests counted by a process itself, in this window or in another one of the same trial.
    fn requests(&self, process: &CapturedProcess) -> Option<u64> {
        let counted = |process: &CapturedProcess| {
            process
                .agents
                .iter()
                .filter_map(|agent| agent.requests)
                .reduce(u64::saturating_add)
        };
        let elsewhere = self.others.iter().flat_map(|other| &other.processes);
        let mut elsewhere = elsewhere.filter(|one| one.pid == process.pid);
        counted(process).or_else(|| elsewhere.find_map(counted))
    }

    /// CPU time as a share of the service's CPU time.
    fn share(&self, cpu_ns: u64) -> f64 {
        cpu_ns as f64 / self.service.cpu_ns.max(1) as f64
    }
}

/// Whether a process is not Node.js, as far as is known.
fn is_compiled(process: &CapturedProcess) -> bool {
    process.agents.is_empty() && !is_node(&process.command)
}

/// The work of a process's threads by their role.
fn by_class(process: &CapturedProcess, threads: IndexMap<u32, Tree>) -> BTreeMap<Class, Tree> {
    let classes = classes(process, &[]);
    let mut trees: BTreeMap<Class, Vec<Tree>> = BTreeMap::new();
    for (thread, tree) in threads {
        let place = process.threads.iter().position(|one| one.id == thread);
        let class = place.map_or(Class::Other, |place| classes[place]);
        trees.entry(class).or_default().push(without_waiting(&tree));
    }
    if is_compiled(process) {
        let kernel = kernel_beside(trees.values().flatten(), cpu_ns(process));
        trees.entry(Class::Other).or_default().push(kernel);
    }
    trees
        .into_iter()
        .map(|(class, trees)| (class, together(&trees)))
        .collect()
}

/// The kernel's work if it may not be sampled: the CPU time of a process beyond its samples, if none of them
/// is in the kernel. Otherwise its functions would be assigned that time.
fn kernel_beside<'t>(samples: impl Iterator<Item = &'t Tree>, cpu_ns: u64) -> Tree {
    let seen = together(samples);
    let is_seen = seen
        .frames
        .iter()
        .any(|frame| frame.kind == CodeKind::Kernel)
        || seen.nodes.is_empty();
    let rest = if is_seen {
        0.0
    } else {
        cpu_ns as f64 - seen.total()
    };
    tree::root("(kernel)", CodeKind::Kernel, rest)
}

/// Whether a Node.js is known to be older than the agent supports.
fn is_too_old(agent: &AgentSeen) -> bool {
    let major = |version: &String| version.split('.').next()?.parse::<u32>().ok();
    agent
        .versions
        .get("node")
        .and_then(major)
        .is_some_and(|major| major < NODE_MAJOR_MIN)
}

/// The kernel's ID of an agent's thread. If a worker thread could not report it, the thread with the closest
/// CPU time.
fn thread_of(
    process: &CapturedProcess,
    agent: &AgentSeen,
    busy_ns: f64,
    taken: &[u32],
) -> Option<u32> {
    if agent.thread == 0 {
        return Some(process.pid);
    }
    let far = |cpu_ns: u64| (cpu_ns as f64 - busy_ns).abs();
    agent.thread_id.or_else(|| {
        let is_free = |id: u32| id != process.pid && id != 0 && !taken.contains(&id);
        let free = process.threads.iter().filter(|one| is_free(one.id));
        free.min_by(|one, other| far(one.cpu_ns).total_cmp(&far(other.cpu_ns)))
            .map(|one| one.id)
    })
}

/// Threads without a JavaScript profile: the name of the root of each class, and its kind of code.
const HELPERS: [(Class, &str, CodeKind); 3] = [
    (Class::Pool, "(thread pool)", CodeKind::ThreadPool),
    (Class::V8, "(V8 helper threads)", CodeKind::Gc),
    (Class::Other, "(other threads)", CodeKind::Native),
];

/// The work of such threads, below their root.
fn helpers(root: &Frame, mut shape: Tree, class: Class) -> Tree {
    // Work that cannot be identified as compiling counts as garbage collection, which these threads do once a
    // service is warm.
    let unknown = |kind| class == Class::Pool || class == Class::V8 && kind == CodeKind::Native;
    shape
        .frames
        .iter_mut()
        .filter(|frame| unknown(frame.kind))
        .for_each(|frame| frame.kind = root.kind);
    below(root, &shape)
}

/// Scales the shape to a total of `ns` nanoseconds.
fn spread(shape: &Tree, ns: u64) -> Tree {
    let factor = ns as f64 / shape.total();
    tree::scaled(shape, |_| factor)
}

/// Native profiles of a service's processes, by class of thread.
#[derive(Debug, Default)]
pub(crate) struct NativeSide {
    by_process: BTreeMap<u32, BTreeMap<Class, Tree>>,
}

impl NativeSide {
    /// Reads the profiles of a capture, with notes on unreadable and incomplete ones.
    pub fn read(service: &CapturedService, profiles: &dyn Profiles) -> (NativeSide, Vec<Note>) {
        let (mut side, mut problems) = (NativeSide::default(), Vec::new());
        for process in &service.processes {
            let Some(file) = &process.native else {
                continue;
            };
            match profiles.native(file, &service.directory) {
                Ok((threads, notes)) => {
                    problems.extend(notes);
                    side.by_process
                        .insert(process.pid, by_class(process, threads));
                }
                Err(problem) => problems.push(problem),
            }
        }
        (side, problems)
    }

    /// The work of a process's threads of one class. `None` if it was not sampled.
    pub fn of(&self, pid: u32, class: Class) -> Option<&Tree> {
        self.by_process
            .get(&pid)?
            .get(&class)
            .filter(|tree| tree.total() > 0.0)
    }

    /// The work of all threads of a process.
    pub fn of_process(&self, pid: u32) -> Option<Tree> {
        Some(tree::together(self.by_process.get(&pid)?.values())).filter(|tree| tree.total() > 0.0)
    }

    /// The kernel's share of a process's JavaScript threads, 0 to 1. Zero if it was not sampled.
    pub fn kernel_share(&self, pid: u32) -> f64 {
        let Some(tree) = self.of(pid, Class::JavaScript) else {
            return 0.0;
        };
        let kernel = tree
            .sums(|frame| Some(frame.kind))
            .get(&CodeKind::Kernel)
            .copied();
        kernel.map_or(0.0, |kernel| (kernel / tree.total()).clamp(0.0, 1.0))
    }
}

/// The tree with this share attributed to the kernel, below the functions that called it.
fn with_kernel(tree: &Tree, share: f64) -> Tree {
    if !(share > 0.0 && share <= 1.0) {
        return tree.clone();
    }
    let by_kind = tree.sums(|frame| Some(frame.kind));
    let mut wanted = tree.total() * share;
    // Taken from native functions first, then from Node.js's own: the fraction of each.
    let [of_native, of_core] = [CodeKind::Native, CodeKind::Core].map(|kind| {
        let there = by_kind.get(&kind).copied().filter(|there| *there > 0.0);
        let part = there.map_or(0.0, |there| (wanted / there).clamp(0.0, 1.0));
        wanted -= part * there.unwrap_or(0.0);
        part
    });
    let mut made = tree.clone();
    let kernel = made.frames.len();
    made.frames
        .push(Frame::new("(kernel)", "", 0, CodeKind::Kernel));
    for index in 0..tree.nodes.len() {
        let node = &mut made.nodes[index];
        let factor = match tree.frames.get(node.frame).map(|frame| frame.kind) {
            Some(CodeKind::Native) => of_native,
            Some(CodeKind::Core) => of_core,
            _ => 0.0,
        };
        let value = node.self_value * factor;
        if value > 0.0 {
            node.self_value -= value;
            node.lines
                .values_mut()
                .for_each(|line| *line *= 1.0 - factor);
            let lines = BTreeMap::new();
            made.nodes.push(TreePlace {
                frame: kernel,
                parent: Some(index),
                self_value: value,
                lines,
            });
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_of(parts: &[(&str, CodeKind, f64)]) -> Tree {
        let trees: Vec<Tree> = parts
            .iter()
            .map(|(name, kind, value)| tree::root(name, *kind, *value))
            .collect();
        together(&trees)
    }

    #[test]
    fn the_kernel_is_taken_out_of_those_who_call_it_and_of_nobody_else() {
        let all = made_of(&[
            ("spin", CodeKind::Application, 50.0),
            ("(program)", CodeKind::Native, 20.0),
            ("write", CodeKind::Core, 30.0),
        ]);
        let some = with_kernel(&all, 0.1).sums(|frame| Some(frame.kind));
        assert_eq!(
            (
                some[&CodeKind::Kernel],
                some[&CodeKind::Native],
                some[&CodeKind::Core]
            ),
            (10.0, 10.0, 30.0)
        );
        let more = with_kernel(&all, 0.35).sums(|frame| Some(frame.kind));
        assert!(
            (more[&CodeKind::Kernel] - 35.0).abs() < 1e-9
                && (more[&CodeKind::Core] - 15.0).abs() < 1e-9
        );
        assert_eq!(more[&CodeKind::Application], 50.0);
        // The maximum that can be taken.
        let most = with_kernel(&all, 0.9).sums(|frame| Some(frame.kind));
        assert_eq!(
            (most[&CodeKind::Kernel], most[&CodeKind::Application]),
            (50.0, 50.0)
        );
        assert_eq!(with_kernel(&all, f64::NAN), all);
    }
}
