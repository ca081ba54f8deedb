//! Whether a variant is the processes that it is said to be: with the variables that the experiment sets, behind their own port.
//!
//! It looks at all trials, those of unfinished blocks too, and compares with the plan. Variables whose value in the plan has a placeholder
//! differ from trial to trial and are not compared.

use model::{Check, Finding, Quantity, evidence};
use plan::{Service, Variant};
use record::{ProcessSeen, Record, ServiceStarted, Trial};

use super::{all_trials, variants};

/// Variables that are kept of every process, beside those that the experiment sets: they change from outside what runs.
pub const WATCHED_VARIABLES: [&str; 11] = [
    "NODE_ENV",
    "NODE_OPTIONS",
    "NODE_V8_COVERAGE",
    "UV_THREADPOOL_SIZE",
    "LD_PRELOAD",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "COVERAGE_PROCESS_START",
    "CPUPROFILE",
    "HEAPPROFILE",
];
/// Variables that PM2's launcher sets for its own purposes.
const OF_PM2: [&str; 4] = ["PATH", "PM2_HOME", "PM2_DISCRETE_MODE", "PM2_DISABLE_VERSION_CHECK"];

/// A variable that a process does not have as the experiment sets it.
struct Lost<'a> {
    service: &'a str,
    process: &'a ProcessSeen,
    variable: &'a str,
    wanted: String,
}

/// A finding for each variant of which a process that serves has another value of a variable than the experiment sets, or none.
pub(super) fn environment_lost(record: &Record) -> Vec<Finding> {
    let finding = |variant: super::Variant<'_>| {
        let trials = all_trials(record, variant.index);
        let lost: Vec<Lost<'_>> = trials.iter().filter_map(|trial| lost_in(trial, variant.plan)).collect();
        let Lost { service, process, variable, wanted } = lost.first()?;
        let seen = match process.environment.get(*variable) {
            Some(value) => format!("{variable}={value}"),
            None => format!("no {variable}"),
        };
        let (name, command, pid) = (variant.name(), &process.command, process.pid);
        let finding = Finding::void(
            Check::EnvironmentLost,
            evidence!(
                "{name}: the experiment sets {variable}={wanted} for {service}, and its process ran with {seen} ({command}, pid {pid}), so \
                 in {hit} of {trials} trials";
                hit = Quantity::count(lost.len() as u64), trials = Quantity::count(trials.len() as u64)),
            "the variable is lost or overwritten on the way, by a wrapper or a script; start the program itself, or set the variable where \
             it is set last",
        );
        Some(finding.about([variant.index]))
    };
    variants(record).filter_map(finding).collect()
}

fn lost_in<'a>(trial: &'a Trial, variant: &'a Variant) -> Option<Lost<'a>> {
    trial.started.services.iter().find_map(|started| {
        let service = variant.services.iter().find(|service| service.name == started.service)?;
        let at_end = trial.ended.as_ref().and_then(|ended| ended.processes_by_service.get(&started.service));
        let looks = [Some(&started.processes), at_end].into_iter().flatten();
        let serving = looks.flat_map(|processes| serving(processes, started));
        let processes: Vec<&ProcessSeen> = serving.collect();
        processes.into_iter().find_map(|process| {
            let (variable, wanted) = asked(service).find(|(name, wanted)| is_lost(process, name, wanted))?;
            Some(Lost { service: &service.name, process, variable, wanted })
        })
    })
}

/// The processes that do the work: those that listen, and where there are workers those without children of their own. Where nobody is
/// known to listen, those without children. What else a service starts may have an environment to its own liking.
fn serving<'a>(processes: &'a [ProcessSeen], started: &ServiceStarted) -> Vec<&'a ProcessSeen> {
    let is_parent = |one: &ProcessSeen| processes.iter().any(|other| other.parent == one.pid);
    let childless = processes.iter().filter(|one| !is_parent(one));
    let listening: Vec<&ProcessSeen> = processes.iter().filter(|process| process.listens).collect();
    match (listening.is_empty(), started.workers.is_some()) {
        (true, _) => childless.collect(),
        (false, false) => listening,
        (false, true) => {
            let workers = childless.filter(|one| !one.listens);
            listening.iter().copied().chain(workers).collect()
        }
    }
}

/// The variables that the experiment sets, with their values where those are the same in every trial.
fn asked(service: &Service) -> impl Iterator<Item = (&str, String)> {
    let own = move |name: &str| service.launcher.is_pm2() && OF_PM2.contains(&name);
    let plain = |value: &str| plan::fill(value, |_| None).ok();
    let set = service.env.iter().filter(move |(name, _)| !own(name));
    set.filter_map(move |(name, value)| Some((name.as_str(), plain(value)?)))
}

/// Whether a process has another value, or provably none. What only surrounds the value is none of ours: folders before a `PATH`, a flag
/// more in `NODE_OPTIONS`.
fn is_lost(process: &ProcessSeen, name: &str, wanted: &str) -> bool {
    match process.environment.get(name) {
        None => process.marked,
        Some(seen) if seen == wanted => false,
        Some(seen) => wanted.is_empty() || !surrounds(seen, wanted),
    }
}

fn surrounds(seen: &str, wanted: &str) -> bool {
    let ends = |c: Option<char>| c.is_none_or(|c| c.is_whitespace() || c == ':' || c == ',');
    seen.match_indices(wanted)
        .any(|(at, _)| ends(seen[..at].chars().next_back()) && ends(seen[at + wanted.len()..].chars().next()))
}

/// A finding for each variant on whose port another process listened too.
pub(super) fn stale_server(record: &Record) -> Vec<Finding> {
    let finding = |variant: super::Variant<'_>| {
        let trials = all_trials(record, variant.index);
        let ended: Vec<_> = trials.iter().filter_map(|trial| trial.ended.as_ref()).collect();
        let hit: Vec<_> = ended.iter().filter(|ended| !ended.strangers_listening.is_empty()).collect();
        let first = hit.first()?;
        let (name, who, block) = (variant.name(), first.strangers_listening.join("; "), first.block);
        let finding = Finding::void(
            Check::StaleServer,
            evidence!("{name}: another process listened where the load was sent to: {who} (block {block}; so in {hit} of {trials} trials)";
                hit = Quantity::count(hit.len() as u64), trials = Quantity::count(ended.len() as u64)),
            "it may have responded in the service's place; end it, see what starts it, and run again",
        );
        Some(finding.about([variant.index]))
    };
    variants(record).filter_map(finding).collect()
}
