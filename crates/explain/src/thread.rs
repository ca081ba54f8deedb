//! The roles of a process's threads: from the kernel's names and the order in which Node.js starts them, or
//! from a stack of compiled code.
//!
//! **By name and order.** The main thread, and worker threads reported by an agent, are known by their ID.
//! Others are known by their names: `libuv-worker` is libuv's pool, `V8Worker` and `DelayedTaskSche` are V8's
//! helpers for garbage collection and compiling, and `v8:ProfEvntProc` is V8's profiler itself, which is not
//! a cost of the service. Before Node.js 24 most threads are named like the process, and the order decides.
//! V8's scheduler, its four helpers and the inspector's thread start before the service's code and so have
//! the first six IDs. Pool threads start on first use (observed with Node.js 20). A service that changes
//! `--v8-pool-size` is misclassified by this.
//!
//! **By stack if there are symbols**, because V8's threads alternate between garbage collection and
//! compiling. Unknown work counts as garbage collection, which these threads do once a service is warm. This
//! may be wrong, and nothing indicates it.
//!
//! This module makes no decisions about cost.

use model::{CapturedProcess, ThreadUse};

use crate::CodeKind;
use crate::label::has_part;
use crate::read::MADE;

/// Number of threads that Node.js starts for V8 and the inspector before it runs code.
const STARTED_FIRST: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Runs JavaScript: the main thread, or a worker thread reported by an agent.
    JavaScript,
    /// libuv's pool.
    Pool,
    /// V8's helpers.
    V8,
    /// V8's profiler.
    Profiler,
    Other,
}

/// The class of each thread of a Node.js process. `javascript` are threads that run it, in addition to those
/// reported by an agent.
pub(crate) fn classes(process: &CapturedProcess, javascript: &[u32]) -> Vec<Class> {
    let is_spoken_for = |id: u32| {
        process
            .agents
            .iter()
            .any(|agent| agent.thread_id == Some(id))
    };
    let first = |thread: &ThreadUse| match thread.id {
        // All exited threads together. Their roles are unknown.
        0 => Some(Class::Other),
        id if id == process.pid || javascript.contains(&id) || is_spoken_for(id) => {
            Some(Class::JavaScript)
        }
        _ => named(&thread.name),
    };
    let mut classes: Vec<Option<Class>> = process.threads.iter().map(first).collect();
    // libuv names its own threads, and Node.js names V8's threads. A distribution may combine a libuv that
    // does so with a Node.js that does not yet.
    let [pool_is_named, v8_is_named] =
        [Class::Pool, Class::V8].map(|class| classes.contains(&Some(class)));
    let mut unnamed: Vec<usize> = (0..classes.len())
        .filter(|index| classes[*index].is_none())
        .collect();
    unnamed.sort_by_key(|index| process.threads[*index].id);
    for (place, index) in unnamed.into_iter().enumerate() {
        classes[index] = Some(match place {
            place if place < STARTED_FIRST && !v8_is_named => Class::V8,
            _ if pool_is_named || v8_is_named => Class::Other,
            _ => Class::Pool,
        });
    }
    classes
        .into_iter()
        .map(|class| class.unwrap_or(Class::Other))
        .collect()
}

fn named(name: &str) -> Option<Class> {
    match name {
        "libuv-worker" => Some(Class::Pool),
        "V8Worker" | "DelayedTaskSche" => Some(Class::V8),
        "v8:ProfEvntProc" => Some(Class::Profiler),
        "SignalInspector" => Some(Class::Other),
        _ => None,
    }
}

/// Whether a command line is that of Node.js, as far as can be seen.
pub(crate) fn is_node(command: &str) -> bool {
    let program = command.split_whitespace().next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    // PM2 replaces the command line with its own title.
    matches!(name, "node" | "nodejs" | "PM2") || command.starts_with("node:")
}

/// Parts of names of V8's garbage collection functions.
const COLLECTING: &str = "ArrayBufferSweeper CollectGarbage ConcurrentMarking Evacuat GCTracer IncrementalMarking MarkCompact \
                          MinorMarkSweep MinorMS Scaveng Sweeper YoungGenerationMark cppgc::internal::";
/// Parts of names of V8's functions that parse and compile.
const COMPILING: &str = "BaselineBatchCompiler ConcurrentBaselineCompiler OptimizedCompilationJob OptimizingCompileDispatcher \
                         internal::Compiler::Compile internal::baseline:: internal::compiler:: \
                         internal::interpreter::InterpreterCompilationJob internal::maglev:: internal::parsing:: turboshaft";
/// The functions in which V8's own threads wait for work.
const V8_LOOPS: &str = "PlatformWorkerThread DefaultWorkerThreadsTaskRunner";
/// The functions that run tasks of libuv's pool. Its loop has just this name. File work also runs on the
/// calling thread for synchronous calls, so that function is not conclusive.
const POOL_LOOP: &str = "worker";
const POOL: &str = "uv__queue_work ThreadPoolWork::ScheduleWork";
/// Node.js's pool task. If JavaScript is below it in the stack, it runs synchronously.
const POOL_TASK: &str = "DoThreadPoolWork";
/// Prefixes of programs and libraries that contain V8 and libuv.
const MODULES: [&str; 4] = ["node", "libnode", "libv8", "libuv"];

/// The role of a thread other than the service's own code, from its name and the functions of a stack with
/// their modules.
pub(crate) fn of_thread<'a>(
    name: &str,
    stack: impl Iterator<Item = (&'a str, &'a str)> + Clone,
) -> Option<CodeKind> {
    let has_script = stack.clone().any(|(_, module)| module == MADE);
    let stack = stack
        .filter(|(_, module)| is_ours(module))
        .map(|(function, _)| function);
    let says = |parts: &str| stack.clone().any(|function| has_part(parts, function));
    let pooled = says(POOL) || stack.clone().any(|function| function == POOL_LOOP);
    if name == "libuv-worker" || pooled || (!has_script && says(POOL_TASK)) {
        return Some(CodeKind::ThreadPool);
    }
    let is_v8 = name.contains("V8Worker") || name.contains("V8 Worker") || says(V8_LOOPS);
    is_v8.then(|| stack.clone().find_map(of_name).unwrap_or(CodeKind::Gc))
}

/// The kind of work of a function and its callees.
pub(crate) fn of_function(name: &str, module: &str) -> Option<CodeKind> {
    is_ours(module).then(|| of_name(name)).flatten()
}

fn is_ours(module: &str) -> bool {
    MODULES.iter().any(|known| module.starts_with(known))
}

fn of_name(function: &str) -> Option<CodeKind> {
    // A function named `Sweeper` in an addon is a different one.
    if !(function.contains("v8::") || function.contains("cppgc::")) {
        return None;
    }
    if has_part(COLLECTING, function) {
        return Some(CodeKind::Gc);
    }
    has_part(COMPILING, function).then_some(CodeKind::Jit)
}

/// The name of such a thread's root, regardless of its name in the system.
pub(crate) fn root(kind: CodeKind) -> Option<&'static str> {
    match kind {
        CodeKind::ThreadPool => Some("(thread pool)"),
        CodeKind::Gc => Some("(garbage collector threads)"),
        CodeKind::Jit => Some("(compiler threads)"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(names: &[&str]) -> CapturedProcess {
        let thread = |(id, name): (u32, &&str)| ThreadUse {
            id,
            name: (*name).into(),
            cpu_ns: 1,
            waited_ns: 0,
        };
        let threads = (100..).zip(names).map(thread).collect();
        let command = "node server.js".into();
        CapturedProcess {
            pid: 100,
            parent: 1,
            command,
            threads,
            agents: vec![],
            native: None,
        }
    }

    #[test]
    fn names_tell_where_node_gives_them() {
        let names =
            "node DelayedTaskSche V8Worker SignalInspector libuv-worker addon v8:ProfEvntProc";
        let names: Vec<&str> = names.split(' ').collect();
        let found = classes(&process(&names), &[]);
        use Class::{JavaScript, Other, Pool, Profiler, V8};
        assert_eq!(found, [JavaScript, V8, V8, Other, Pool, Other, Profiler]);
    }

    #[test]
    fn the_order_tells_where_all_are_called_alike() {
        let mut names = vec!["node"; 11];
        names.push("v8:ProfEvntProc");
        let found = classes(&process(&names), &[]);
        assert_eq!(found[1..7], [Class::V8; 6]);
        assert_eq!(found[7..11], [Class::Pool; 4]);
        assert_eq!(found[11], Class::Profiler);
        // If only the pool's threads have their own name, V8's are still the first.
        let mut renamed = names.clone();
        renamed[7..11].fill("libuv-worker");
        assert_eq!(classes(&process(&renamed), &[]), found);
        // A worker thread is none of these and does not shift others. Nor do exited threads.
        let mut process = process(&names);
        process.threads.push(ThreadUse {
            id: 0,
            name: "ended threads".into(),
            cpu_ns: 1,
            waited_ns: 0,
        });
        let found = classes(&process, &[103]);
        assert_eq!(found[12], Class::Other);
        assert_eq!(
            (found[3], found[7], found[8]),
            (Class::JavaScript, Class::V8, Class::Pool)
        );
    }

    #[test]
    fn without_symbols_v8s_threads_are_the_same_whatever_the_version_calls_them() {
        let unnamed = [("[unknown]", "node")];
        let looped = [("node::PlatformWorkerThread", "node"), unnamed[0]];
        assert_eq!(
            of_thread("V8Worker", unnamed.into_iter()),
            Some(CodeKind::Gc)
        );
        assert_eq!(of_thread("node", looped.into_iter()), Some(CodeKind::Gc));
    }

    #[test]
    fn a_command_of_node_is_known() {
        assert!(
            is_node("/usr/local/bin/node --max-old-space-size=4096 server.js")
                && is_node("PM2 v6.0.8: God Daemon")
        );
        assert!(
            !is_node("nginx: worker process") && !is_node("") && !is_node("sh -c node server.js")
        );
    }
}
