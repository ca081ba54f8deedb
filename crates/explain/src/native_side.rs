//! What the kernel's sampling adds: which function of a pool's or helper's thread, how much of a main thread is the kernel's work,
//! and everything of services that are not Node.js.
//!
//! **Method.** Native profiles are taken in a window of their own, in the same trial. Their shares are believed, their amounts are
//! not: each class of threads gets the CPU time that the kernel counted for it in the window of the CPU profile, spread as the native
//! profile has it.
//!
//! V8's profiler does not see the kernel: its time is in the function that called, which is a native one or one of Node.js. So the
//! kernel's share of the main thread's native samples is taken out of native functions first and then out of Node.js's own, never out
//! of the service's, a framework's or a package's code, and stands below each as `(kernel)`.

use std::collections::BTreeMap;

use record::{CapturedProcess, CapturedService};

use crate::opened::{Profiles, ThreadTree};
use crate::thread::{Class, classes};
use crate::{Frame, Kind, Node, Tree, sums};

/// Native profiles of a service's processes, by class of thread.
#[derive(Debug, Default)]
pub(crate) struct NativeSide {
    by_process: BTreeMap<u32, BTreeMap<Class, Tree>>,
}

impl NativeSide {
    /// Reads those of a capture. What cannot be read is missing, and told, as are the notes on what can.
    pub fn read(service: &CapturedService, profiles: &dyn Profiles) -> (NativeSide, Vec<String>) {
        let (mut side, mut problems) = (NativeSide::default(), Vec::new());
        for process in &service.processes {
            let Some(file) = &process.native else { continue };
            match profiles.native(file, &service.directory) {
                Ok((threads, notes)) => {
                    problems.extend(notes);
                    side.by_process.insert(process.pid, by_class(process, threads));
                }
                Err(problem) => problems.push(problem),
            }
        }
        (side, problems)
    }

    /// The shape of what a process's threads of a class do; `None` where nobody saw it.
    pub fn of(&self, pid: u32, class: Class) -> Option<&Tree> {
        self.by_process.get(&pid)?.get(&class).filter(|tree| tree.total() > 0.0)
    }

    /// The shape of all that a process does, whatever its threads are there for.
    pub fn of_process(&self, pid: u32) -> Option<Tree> {
        Some(sums::together(self.by_process.get(&pid)?.values())).filter(|tree| tree.total() > 0.0)
    }

    /// Share of a process's JavaScript threads that is the kernel's work, 0 to 1; zero where nobody saw it.
    pub fn kernel_share(&self, pid: u32) -> f64 {
        let Some(tree) = self.of(pid, Class::JavaScript) else { return 0.0 };
        tree.sums(|frame| Some(frame.kind))
            .get(&Kind::Kernel)
            .map_or(0.0, |kernel| (kernel / tree.total()).clamp(0.0, 1.0))
    }
}

fn by_class(process: &CapturedProcess, threads: Vec<ThreadTree>) -> BTreeMap<Class, Tree> {
    let javascript: Vec<u32> = process.agents.iter().filter_map(|agent| agent.thread_id).collect();
    let classes = classes(process, &javascript);
    let class_of = |thread: u32| {
        let place = process.threads.iter().position(|one| one.id == thread);
        place.map_or(Class::Other, |place| classes[place])
    };
    let mut grouped: BTreeMap<Class, Vec<Tree>> = BTreeMap::new();
    for thread in threads {
        let tree = sums::without_waiting(&thread.tree);
        grouped.entry(class_of(thread.thread)).or_default().push(tree);
    }
    grouped.into_iter().map(|(class, trees)| (class, sums::together(&trees))).collect()
}

/// A tree of which everything is the thread pool's.
pub(crate) fn as_pool(tree: &Tree) -> Tree {
    let mut tree = tree.clone();
    tree.frames.iter_mut().for_each(|frame| frame.kind = Kind::ThreadPool);
    tree
}

/// A tree of V8's helpers: what cannot be told to be compiling is garbage collection, which is what they do once a service is warm.
pub(crate) fn as_v8(tree: &Tree) -> Tree {
    let mut tree = tree.clone();
    tree.frames.iter_mut().filter(|frame| frame.kind == Kind::Native).for_each(|frame| frame.kind = Kind::Gc);
    tree
}

/// The tree with so much of it as the kernel's work, below the functions that called it.
pub(crate) fn with_kernel(tree: &Tree, share: f64) -> Tree {
    if !(share > 0.0 && share <= 1.0) {
        return tree.clone();
    }
    let wanted = tree.total() * share;
    let by_kind = tree.sums(|frame| Some(frame.kind));
    let of = |kind: Kind| by_kind.get(&kind).copied().unwrap_or(0.0);
    let part = |wanted: f64, there: f64| if there > 0.0 { (wanted / there).clamp(0.0, 1.0) } else { 0.0 };
    let of_native = part(wanted, of(Kind::Native));
    let of_core = part(wanted - of_native * of(Kind::Native), of(Kind::Core));
    let moved = |kind: Kind| match kind {
        Kind::Native => of_native,
        Kind::Core => of_core,
        _ => 0.0,
    };
    let mut made = tree.clone();
    let kernel = made.frames.len();
    made.frames.push(Frame {
        function: "(kernel)".into(),
        file: String::new(),
        line: 0,
        kind: Kind::Kernel,
        package: None,
    });
    for index in 0..tree.nodes.len() {
        let node = &mut made.nodes[index];
        let factor = tree.frames.get(node.frame).map_or(0.0, |frame| moved(frame.kind));
        let value = node.self_value * factor;
        if value <= 0.0 {
            continue;
        }
        node.self_value -= value;
        node.lines.values_mut().for_each(|line| *line *= 1.0 - factor);
        made.nodes.push(Node {
            frame: kernel,
            parent: Some(index),
            self_value: value,
            lines: BTreeMap::new(),
        });
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(parts: &[(&str, Kind, f64)]) -> Tree {
        let trees: Vec<Tree> =
            parts.iter().map(|(name, kind, value)| sums::root(name, *kind, *value)).collect();
        sums::together(&trees)
    }

    #[test]
    fn the_kernel_is_taken_out_of_those_who_call_it_and_of_nobody_else() {
        let all = tree(&[
            ("spin", Kind::Application, 50.0),
            ("(program)", Kind::Native, 20.0),
            ("write", Kind::Core, 30.0),
        ]);
        let some = with_kernel(&all, 0.1).sums(|frame| Some(frame.kind));
        assert_eq!((some[&Kind::Kernel], some[&Kind::Native], some[&Kind::Core]), (10.0, 10.0, 30.0));
        let more = with_kernel(&all, 0.35).sums(|frame| Some(frame.kind));
        assert!((more[&Kind::Kernel] - 35.0).abs() < 1e-9 && (more[&Kind::Core] - 15.0).abs() < 1e-9);
        assert_eq!(more[&Kind::Application], 50.0);
        // There is no more to take.
        let most = with_kernel(&all, 0.9).sums(|frame| Some(frame.kind));
        assert_eq!((most[&Kind::Kernel], most[&Kind::Application]), (50.0, 50.0));
        assert_eq!(with_kernel(&all, f64::NAN), all);
    }
}
