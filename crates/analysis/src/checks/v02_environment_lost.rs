//! A variable did not reach the process
//!
//! **Seen.** `its process ran with no NODE_ENV`.
//!
//! **Why.** Without it, both variants are equal.
//!
//! **What to do.** Start the program without a wrapper, npm script, `sudo` or daemon.
//!
//! **Threshold.** One serving process.

use model::{Quantity, evidence};
use plan::Service;
use record::{ProcessSeen, ServiceStarted};

use super::finding::{CheckFinding, void};
use super::input::{CheckedRun, CheckedTrial, CheckedVariant};
use super::row::{CheckRow, Maker, Subject, VOID, row};

pub(super) static ROW: CheckRow =
    row(Subject::Treatment, VOID, &[Maker::Each(environment_lost)]).ending_run();

/// Variables recorded for every process in addition to those that the experiment sets. They change a program
/// from outside.
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

/// Variables that PM2's launcher sets itself.
const OF_PM2: [&str; 4] = [
    "PATH",
    "PM2_HOME",
    "PM2_DISCRETE_MODE",
    "PM2_DISABLE_VERSION_CHECK",
];

/// Service, process, variable and expected value of a variable that did not reach the process.
type LostVariable<'a> = (&'a str, &'a ProcessSeen, &'a str, String);

/// Reports a process that serves with a different value of a variable than the experiment sets, or without
/// it. Variables whose value in the plan has a placeholder differ between trials and are not compared.
fn environment_lost(_: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    let trials = &variant.all_trials;
    let lost: Vec<LostVariable<'_>> = trials
        .iter()
        .filter_map(|trial| lost_in(trial, variant.plan))
        .collect();
    let (service, process, variable, wanted) = lost.first()?;
    let seen = match process.environment.get(*variable) {
        Some(value) => format!("{variable}={value}"),
        None => format!("no {variable}"),
    };
    let (command, pid) = (&process.command, process.pid);
    Some(void(
        evidence!(
            "the experiment sets {variable}={wanted} for {service}, and its process ran with {seen} ({command}, pid {pid}), so in {hit} of \
             {trials} trials";
            hit = Quantity::count(lost.len() as u64), trials = Quantity::count(trials.len() as u64)),
        "a wrapper or a script loses or overwrites it on the way; start the program itself, or set the variable where it is set last",
    ))
}

fn lost_in<'a>(trial: &CheckedTrial<'a>, variant: &'a plan::Variant) -> Option<LostVariable<'a>> {
    trial.started.services.iter().find_map(|started| {
        let service = variant
            .services
            .iter()
            .find(|service| service.name == started.service)?;
        let at_end = trial
            .ended
            .and_then(|ended| ended.processes_by_service.get(&started.service));
        let looks = [Some(&started.processes), at_end].into_iter().flatten();
        looks
            .flat_map(|processes| serving(processes, started))
            .find_map(|process| {
                let (variable, wanted) =
                    asked(service).find(|(name, wanted)| is_lost(process, name, wanted))?;
                Some((service.name.as_str(), process, variable, wanted))
            })
    })
}

/// The processes that do the work: those that listen, and if there are workers, those without children. If no
/// listening process is known, those without children. Other processes of a service may have different
/// environments.
fn serving<'a>(processes: &'a [ProcessSeen], started: &ServiceStarted) -> Vec<&'a ProcessSeen> {
    let is_parent = |one: &ProcessSeen| processes.iter().any(|other| other.parent == one.pid);
    let any_listens = processes.iter().any(|process| process.listens);
    let works = |one: &ProcessSeen| (!any_listens || started.workers.is_some()) && !is_parent(one);
    let (mut serving, others): (Vec<_>, Vec<_>) =
        processes.iter().partition(|process| process.listens);
    serving.extend(others.into_iter().filter(|one| works(one)));
    serving
}

/// The variables that the experiment sets to the same value in every trial.
fn asked(service: &Service) -> impl Iterator<Item = (&str, String)> {
    let pm2 = service
        .command()
        .is_some_and(|command| command.launcher.is_pm2());
    let own = move |name: &str| pm2 && OF_PM2.contains(&name);
    let set = service
        .command()
        .into_iter()
        .flat_map(|command| &command.env);
    let set = set.filter(move |(name, _)| !own(name));
    set.filter_map(|(name, value)| Some((name.as_str(), plan::fill(value, |_| None).ok()?)))
}

/// Whether a process has a different value, or provably none. Additions around the value are accepted, such
/// as folders before a `PATH` or another flag in `NODE_OPTIONS`.
fn is_lost(process: &ProcessSeen, name: &str, wanted: &str) -> bool {
    match process.environment.get(name) {
        None => process.marked,
        Some(seen) if seen == wanted => false,
        Some(seen) => wanted.is_empty() || !surrounds(seen, wanted),
    }
}

fn surrounds(seen: &str, wanted: &str) -> bool {
    let ends = |c: Option<char>| c.is_none_or(|c| c.is_whitespace() || c == ':' || c == ',');
    seen.match_indices(wanted).any(|(at, _)| {
        ends(seen[..at].chars().next_back()) && ends(seen[at + wanted.len()..].chars().next())
    })
}
