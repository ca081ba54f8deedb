//! What the threads of a process are there for, by the kernel's names and the order in which Node.js starts them.
//!
//! **Method.** The main thread, and worker threads that an agent spoke for, are known by their number. Others are known by their names:
//! `libuv-worker` is libuv's pool, `V8Worker` and `DelayedTaskSche` are V8's helpers for garbage collection and compiling, and
//! `v8:ProfEvntProc` is V8's profiler itself, which is no cost of the service. Before Node.js 24 most threads are called as the process
//! is. There the order tells: V8's scheduler, its four helpers and the inspector's thread are started before any of the service's code
//! and so have the first six numbers; threads of the pool come when they are first needed (seen with Node.js 20). A service that
//! changes `--v8-pool-size` is not seen through by this.
//!
//! Decides nothing about cost.

use record::{CapturedProcess, ThreadUse};

/// Threads that Node.js starts for V8 and the inspector before it runs anything.
const STARTED_FIRST: usize = 6;

/// What a thread is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// It runs JavaScript: the main thread, or a worker thread that an agent spoke for.
    JavaScript,
    /// libuv's pool.
    Pool,
    /// V8's helpers.
    V8,
    /// V8's profiler.
    Profiler,
    /// Anything else.
    Other,
}

/// The class of each thread of a process of Node.js. `javascript` are the threads known to run it.
pub(crate) fn classes(process: &CapturedProcess, javascript: &[u32]) -> Vec<Class> {
    let first = |thread: &ThreadUse| match thread.id {
        id if id == process.pid || javascript.contains(&id) => Some(Class::JavaScript),
        _ => named(&thread.name),
    };
    let mut classes: Vec<Option<Class>> = process.threads.iter().map(first).collect();
    let names_tell = classes.iter().any(|class| matches!(class, Some(Class::Pool | Class::V8)));
    let mut unnamed: Vec<usize> = (0..classes.len()).filter(|index| classes[*index].is_none()).collect();
    unnamed.sort_by_key(|index| process.threads[*index].id);
    for (place, index) in unnamed.into_iter().enumerate() {
        classes[index] = Some(match place {
            _ if names_tell => Class::Other,
            place if place < STARTED_FIRST => Class::V8,
            _ => Class::Pool,
        });
    }
    classes.into_iter().map(|class| class.unwrap_or(Class::Other)).collect()
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

/// Whether a command line is one of Node.js, as far as it tells.
pub(crate) fn is_node(command: &str) -> bool {
    let program = command.split_whitespace().next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    // PM2 writes its own title over the command line.
    matches!(name, "node" | "nodejs" | "PM2") || command.starts_with("node:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(names: &[&str]) -> CapturedProcess {
        let thread = |(place, name): (usize, &&str)| ThreadUse {
            id: 100 + u32::try_from(place).unwrap(),
            name: (*name).into(),
            cpu_ns: 1,
            waited_ns: 0,
        };
        CapturedProcess {
            pid: 100,
            parent: 1,
            command: "node server.js".into(),
            threads: names.iter().enumerate().map(thread).collect(),
            agents: vec![],
            native: None,
        }
    }

    #[test]
    fn names_tell_where_node_gives_them() {
        let names = [
            "node",
            "DelayedTaskSche",
            "V8Worker",
            "SignalInspector",
            "libuv-worker",
            "addon",
            "v8:ProfEvntProc",
        ];
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
        // A worker thread is none of these and moves nobody's place.
        let found = classes(&process(&names), &[103]);
        assert_eq!((found[3], found[7], found[8]), (Class::JavaScript, Class::V8, Class::Pool));
    }

    #[test]
    fn a_command_of_node_is_known() {
        assert!(
            is_node("/usr/local/bin/node --max-old-space-size=4096 server.js")
                && is_node("PM2 v6.0.8: God Daemon")
        );
        assert!(!is_node("nginx: worker process") && !is_node("") && !is_node("sh -c node server.js"));
    }
}
