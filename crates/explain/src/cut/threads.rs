//! What a stack of compiled code is about: garbage collection, compiling, libuv's pool, or none of these.
//!
//! **By stack where there are symbols**, because names do not tell: up to Node.js 22 the threads of libuv's pool and those of V8 are
//! all called `node`, and V8's collect garbage and compile in turns. **Else by name**: `libuv-worker` is the pool, and
//! `V8Worker` is taken as compiling; that may be wrong, and without symbols nothing tells.

use crate::Kind;

/// Names of V8's functions that collect garbage.
const COLLECTING: [&str; 13] = [
    "ArrayBufferSweeper",
    "CollectGarbage",
    "ConcurrentMarking",
    "Evacuat",
    "GCTracer",
    "IncrementalMarking",
    "MarkCompact",
    "MinorMarkSweep",
    "MinorMS",
    "Scaveng",
    "Sweeper",
    "YoungGenerationMark",
    "cppgc::internal::",
];
/// Names of V8's functions that parse and compile.
const COMPILING: [&str; 11] = [
    "BaselineBatchCompiler",
    "ConcurrentBaselineCompiler",
    "OptimizedCompilationJob",
    "OptimizingCompileDispatcher",
    "internal::Compiler::Compile",
    "internal::baseline::",
    "internal::compiler::",
    "internal::interpreter::InterpreterCompilationJob",
    "internal::maglev::",
    "internal::parsing::",
    "turboshaft",
];
/// The functions in which V8's own threads wait for work.
const V8_LOOPS: [&str; 2] = ["PlatformWorkerThread", "DefaultWorkerThreadsTaskRunner"];
/// The functions that run what was given to libuv's pool. Its loop is called just this; work on files is also done by who asks for it
/// to be done at once, so that function tells nothing.
const POOL_LOOP: &str = "worker";
const POOL: [&str; 2] = ["uv__queue_work", "ThreadPoolWork::ScheduleWork"];
/// What Node.js gives to the pool; where JavaScript stands below it in the stack, it is done at once instead.
const POOL_TASK: &str = "DoThreadPoolWork";
/// The module of code that was made while running.
const MADE: &str = "[jit]";
/// Beginnings of programs and libraries that V8 and libuv are part of.
const MODULES: [&str; 4] = ["node", "libnode", "libv8", "libuv"];

/// What a thread is there for, if not for the service's own code: from its name, and the functions of a stack with their modules.
pub(super) fn of_thread<'a>(
    name: &str,
    stack: impl Iterator<Item = (&'a str, &'a str)> + Clone,
) -> Option<Kind> {
    let has_script = stack.clone().any(|(_, module)| module == MADE);
    let stack = stack.filter(|(_, module)| is_ours(module)).map(|(function, _)| function);
    let says = |names: &[&str]| stack.clone().any(|function| contains(function, names));
    let pooled = says(&POOL) || stack.clone().any(|function| function == POOL_LOOP);
    if name == "libuv-worker" || pooled || (!has_script && says(&[POOL_TASK])) {
        return Some(Kind::ThreadPool);
    }
    let is_v8 = name.contains("V8Worker") || name.contains("V8 Worker") || says(&V8_LOOPS);
    is_v8.then(|| stack.clone().find_map(of_name).unwrap_or(Kind::Jit))
}

/// What a function and all that it calls are about.
pub(super) fn of_function(name: &str, module: &str) -> Option<Kind> {
    is_ours(module).then(|| of_name(name)).flatten()
}

fn is_ours(module: &str) -> bool {
    MODULES.iter().any(|known| module.starts_with(known))
}

fn of_name(function: &str) -> Option<Kind> {
    // Who calls their own function `Sweeper` in an addon means another one.
    if !(function.contains("v8::") || function.contains("cppgc::")) {
        return None;
    }
    if contains(function, &COLLECTING) {
        return Some(Kind::Gc);
    }
    contains(function, &COMPILING).then_some(Kind::Jit)
}

fn contains(function: &str, names: &[&str]) -> bool {
    names.iter().any(|name| function.contains(name))
}

/// What the root of such a thread is called, whatever its system calls it.
pub(super) fn root(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::ThreadPool => Some("(thread pool)"),
        Kind::Gc => Some("(garbage collector threads)"),
        Kind::Jit => Some("(compiler threads)"),
        _ => None,
    }
}
