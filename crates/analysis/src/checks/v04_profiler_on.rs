//! A profiler ran along
//!
//! **Seen.** `api ran with --inspect in its command`, or another profiler, debugger, tracer or coverage tool.
//!
//! **Why.** Its cost grows with the number of calls, so it differs between variants.
//!
//! **What to do.** Profile in separate runs. To measure its cost, enable it in one level.
//!
//! **Threshold.** One process.

use std::collections::BTreeMap;

use model::quantity::many;
use record::ProcessSeen;

use super::finding::{CheckFinding, void};
use super::input::{CheckedRun, CheckedTrial, CheckedVariant};
use super::row::{CheckRow, Maker, Subject, VOID, row};
use crate::{is_one_of, only_if};

pub(super) static ROW: CheckRow =
    row(Subject::Treatment, VOID, &[Maker::Each(profiler_on)]).ending_run();

/// Flags of Node.js and V8 that cost time. Flags that only choose a port, a folder or an interval are
/// excluded.
const NODE_FLAGS: &str = "--cpu-prof --heap-prof --prof --inspect --perf-prof --perf-basic-prof \
    --track-heap-objects";

/// Prefixes of similar flags that switch nothing on.
const NODE_HARMLESS: &str = "--inspect-port --inspect-publish-uid --cpu-prof- --heap-prof- --prof- \
    --trace-warnings --trace-deprecation --trace-uncaught --trace-exit --trace-sigint --trace-env \
    --trace-event-file-pattern --trace-require-module";

/// Programs that run others under observation, also as a script of Node.js or Python.
const OBSERVERS: &str = "clinic 0x c8 nyc py-spy scalene memray viztracer kernprof strace ltrace valgrind \
    gdb lldb rbspy";

/// Python modules that run others under observation.
const PYTHON_MODULES: [&str; 9] = [
    "cProfile",
    "profile",
    "trace",
    "coverage",
    "pyinstrument",
    "scalene",
    "memray",
    "viztracer",
    "pdb",
];

/// Prefixes of flags of the Java VM.
const JAVA_FLAGS: &str = "-agentlib:jdwp -agentlib:hprof -Xrunjdwp -Xrunhprof -XX:StartFlightRecording \
    -XX:+FlightRecorder -agentpath:";

/// Variables that pass flags to Java.
const JAVA_OPTIONS: [&str; 3] = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"];
/// Variables that switch on a profiler by being set.
const SWITCHES: [&str; 4] = [
    "NODE_V8_COVERAGE",
    "COVERAGE_PROCESS_START",
    "CPUPROFILE",
    "HEAPPROFILE",
];

fn profiler_on(run: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    let by_plan = |of: &CheckedVariant<'_>| in_plan(of.plan).is_some();
    // If only some variants have one, that is what the experiment is about.
    only_if(!by_plan(variant) || run.variants.iter().all(by_plan))?;
    let trials = &variant.all_trials;
    let hits: Vec<(&str, String)> = trials.iter().filter_map(|trial| in_trial(trial)).collect();
    let (service, how) = hits.first().cloned().or_else(|| in_plan(variant.plan))?;
    let often = match hits.len() {
        0 => ", as the experiment has it".to_owned(),
        hits => format!(", so in {hits} of {}", many(trials.len() as u64, "trial")),
    };
    Some(void(
        format!("{service} ran with {how}{often}"),
        "profilers, debuggers and tracers take time, and not of every variant alike; switch it off, and profile in a run of its own",
    ))
}

/// A profiler in the plan: the service, and the word or variable.
fn in_plan(variant: &plan::Variant) -> Option<(&str, String)> {
    variant.services.iter().find_map(|service| {
        let started = service.command()?;
        let command: Vec<&str> = started
            .command
            .iter()
            .flat_map(|word| word.split_whitespace())
            .collect();
        Some((service.name.as_str(), by(&command, &started.env)?))
    })
}

fn in_trial<'a>(trial: &CheckedTrial<'a>) -> Option<(&'a str, String)> {
    trial.started.services.iter().find_map(|started| {
        let at_end = trial
            .ended
            .and_then(|ended| ended.processes_by_service.get(&started.service));
        let how = started
            .processes
            .iter()
            .chain(at_end.into_iter().flatten())
            .find_map(in_process)?;
        Some((started.service.as_str(), how))
    })
}

fn in_process(process: &ProcessSeen) -> Option<String> {
    let command: Vec<&str> = process.command.split_whitespace().collect();
    Some(format!(
        "{} ({}, pid {})",
        by(&command, &process.environment)?,
        process.command,
        process.pid
    ))
}

/// The word of the command or the variable that starts a profiler.
fn by(command: &[&str], variables: &BTreeMap<String, String>) -> Option<String> {
    let how = |(name, value): (&String, &String)| {
        let word = match name.as_str() {
            _ if value.is_empty() => None,
            "NODE_OPTIONS" => value.split_whitespace().find(|word| is_node_flag(word)),
            name if JAVA_OPTIONS.contains(&name) => {
                value.split_whitespace().find(|word| is_java_flag(word))
            }
            name if SWITCHES.contains(&name) => Some(value.as_str()),
            _ => None,
        };
        Some(format!("{name}={}", word?))
    };
    let in_command = by_command(command).map(|how| format!("{how} in its command"));
    in_command.or_else(|| variables.iter().find_map(how))
}

/// The word of a command line that starts a profiler. Programs may follow others: `env X=1 node`, `sh -c
/// 'exec node ...'`.
fn by_command<'a>(words: &[&'a str]) -> Option<&'a str> {
    words.iter().enumerate().find_map(|(at, word)| {
        let rest = &words[at + 1..];
        match base(word) {
            "node" | "nodejs" => flags(rest)
                .find(|flag| is_node_flag(flag))
                .or_else(|| script(rest)),
            name if name.starts_with("python") => module(rest).or_else(|| script(rest)),
            "java" => flags(rest).find(|flag| is_java_flag(flag)),
            "perf" => (matches!(rest.first(), Some(&"record" | &"trace"))).then_some(*word),
            // As a program, not as an argument.
            _ if at == 0 || leads(words[at - 1]) => observer(word),
            _ => None,
        }
    })
}

/// Whether the word after this one is a program that it starts.
fn leads(word: &str) -> bool {
    let starts = [
        "exec", "npx", "bunx", "pnpx", "env", "sudo", "nice", "-c", "--", "&&", ";",
    ];
    starts.contains(&base(word)) || word.contains('=') && !word.starts_with('-')
}

fn base(word: &str) -> &str {
    let word = word.trim_matches(['\'', '"', '(', ')']);
    word.rsplit('/').next().unwrap_or(word)
}

fn observer(word: &str) -> Option<&str> {
    is_one_of(OBSERVERS, base(word)).then_some(word)
}

/// The flags of an interpreter: words before the first word that is neither a flag nor possibly the value of
/// one.
fn flags<'a>(rest: &[&'a str]) -> impl Iterator<Item = &'a str> {
    rest[..plan::script_at(rest)]
        .iter()
        .copied()
        .filter(|word| word.starts_with('-'))
}

/// A script that is such a program: `node /app/node_modules/.bin/c8`.
fn script<'a>(rest: &[&'a str]) -> Option<&'a str> {
    observer(rest.get(plan::script_at(rest))?)
}

fn module<'a>(rest: &[&'a str]) -> Option<&'a str> {
    let at = rest
        .iter()
        .position(|word| *word == "-m")
        .filter(|at| *at < plan::script_at(rest))?;
    rest.get(at + 1)
        .copied()
        .filter(|name| PYTHON_MODULES.contains(name))
}

fn is_node_flag(word: &str) -> bool {
    // V8 accepts both.
    let word = word.replace('_', "-");
    let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
    let begins = |flags: &str| flags.split(' ').any(|flag| name.starts_with(flag));
    !begins(NODE_HARMLESS) && (begins(NODE_FLAGS) || name.starts_with("--trace-"))
}

fn is_java_flag(word: &str) -> bool {
    JAVA_FLAGS.split(' ').any(|flag| word.starts_with(flag))
}
