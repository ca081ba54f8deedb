//! Workers of services: idle ones, lost ones, too many, and uneven distribution of work.
//!
//! The work of each is measured by the CPU time of processes.

use model::quantity::{counted, many};
use model::{Quantity, evidence};
use record::WorkersLost;

use super::{CheckFinding, CheckedRun, CheckedTrial, CheckedVariant, either, void, warning};
use crate::only_if;
use crate::sums::middle_count;
use crate::variant::{WorkerShares, workers};

/// Share of a variant's trials with only one serving process from which on the variant is invalid.
const ALONE_SHARE_VOID: f64 = 0.5;
/// Share of the busiest process's CPU time from which on a process counts as a worker if no number was
/// configured. Helper processes, such as the first process of a cluster, use less.
const WORKER_SHARE_MIN: f64 = 0.5;
/// Maximum unevenness of work, from 0 (even) to 1 (all done by one): (s − 1/n)/(1 − 1/n) for the share s of
/// the busiest among n. Two workers with a ratio of three to one are at 0.5. Connections distributed by a
/// hash of their ports reach 0.2 by chance.
const UNEVEN_MAX: f64 = 0.5;

pub(super) fn workers_idle(variant: &CheckedVariant<'_>, service: &str) -> Option<CheckFinding> {
    workers(variant.trials.first()?.started, service)?;
    let asked = |trial: &CheckedTrial<'_>| {
        let shares = WorkerShares::of(trial.measured(), service)?;
        Some((workers(trial.started, service)?, shares))
    };
    let all: Vec<(u32, WorkerShares)> = variant.trials.iter().filter_map(asked).collect();
    let fewer: Vec<&(u32, WorkerShares)> = all
        .iter()
        .filter(|(wanted, work)| work.serving() < *wanted)
        .collect();
    let least = fewer.iter().map(|(_, work)| work.serving()).min()?;
    let worst: Vec<&&(u32, WorkerShares)> = fewer
        .iter()
        .filter(|(_, work)| work.serving() == least)
        .collect();
    let done = worst.iter().map(|(_, work)| work.of_busiest(least));
    let (done, whole) = done.fold((0, 0), |(done, whole), (some, of)| {
        (done + some, whole + of)
    });
    let alone = least == 1 && worst.len() as f64 >= ALONE_SHARE_VOID * all.len() as f64;
    let others = match fewer.len() - worst.len() {
        0 => String::new(),
        more => format!(", and fewer than asked for in {more} more"),
    };
    let (hit, of) = (worst.len(), many(all.len() as u64, "trial"));
    let evidence = evidence!(
        "{serving} of {workers} workers of {service} did {share} of its work in {hit} of {of}{others}";
        serving = Quantity::count(least), workers = Quantity::count(worst[0].0),
        share = Quantity::share(done as f64 / whole.max(1) as f64));
    let remedy = if alone {
        "one process did what several were asked to do, so this is not what it is called; see in the record's logs whether the workers \
         started and share the port, and whether load.connections reaches them all"
    } else {
        "connections are dealt to workers, not requests: with few of them some workers get none; more load.connections spread the work"
    };
    Some(either(alone, evidence, remedy))
}

/// Reports lost workers. The rest of the service then serves with fewer processes, or with new ones without
/// connections, which is not the intended configuration, however good the figures.
pub(super) fn workers_lost(
    _: &CheckedRun<'_>,
    variant: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
    let measured = variant
        .trials
        .iter()
        .filter(|trial| trial.measured().next().is_some());
    let hit: Vec<(&CheckedTrial<'_>, &WorkersLost)> = measured
        .filter_map(|trial| Some((trial, trial.ended?.workers_lost.first()?)))
        .collect();
    let (trial, WorkersLost { service, lost }) = hit.first()?;
    let (block, asked) = (trial.started.block, workers(trial.started, service));
    // Without workers it is a single process that was restarted, or a container.
    let processes = || many((*lost).into(), "process");
    let told = asked.map_or_else(processes, |of| {
        format!("{lost} of {}", many(of.into(), "worker"))
    });
    let evidence = evidence!("{service} lost {told} in block {block}; so it went in {trials} of its trials";
        trials = Quantity::count(hit.len() as u64));
    let evidence = evidence.with([("lost", Quantity::count(*lost))]);
    Some(void(
        evidence,
        "find out in the service's log why its workers end, and run again",
    ))
}

pub(super) fn too_many_workers(
    variant: &CheckedVariant<'_>,
    service: &str,
) -> Option<CheckFinding> {
    let started = variant.trials.first()?.started.services.iter();
    let cpus = started
        .into_iter()
        .find(|started| started.service == service)?
        .cpus
        .len();
    let serving = middle_count(
        variant
            .trials
            .iter()
            .filter_map(|trial| serving(trial, service)),
    )?;
    only_if(cpus > 0 && serving as usize > cpus)?;
    Some(warning(
        evidence!("{serving} of {service} did the work on {cpus}";
            serving = counted(serving, "process"), cpus = counted(cpus as u64, "processor")),
        "they take turns on it, which costs switches and memory and gives no more throughput (what long requests hold up may get through \
         earlier); what workers do for the service where there is room for them cannot be seen here. Ask for no more than there are \
         (`workers = \"cores\"`), or give services more (`cpus = \"shared\"`, a larger machine)",
    ))
}

/// Number of processes of a trial that do the work, at most the configured number. Otherwise the parent would
/// count as well.
fn serving(trial: &CheckedTrial<'_>, service: &str) -> Option<u32> {
    let work = WorkerShares::of(trial.measured(), service)?;
    Some(match workers(trial.started, service) {
        Some(asked) => work.serving().min(asked),
        None => work.above(WORKER_SHARE_MIN),
    })
}

/// Reports that one worker does much more work than the others, if all do some. Idle workers are reported by
/// `workers_idle`.
pub(super) fn workers_uneven(variant: &CheckedVariant<'_>, service: &str) -> Option<CheckFinding> {
    let asked = workers(variant.trials.first()?.started, service).filter(|asked| *asked >= 2)?;
    let works: Vec<WorkerShares> = variant
        .trials
        .iter()
        .filter_map(|trial| WorkerShares::of(trial.measured(), service))
        .collect();
    only_if(!works.is_empty() && works.iter().all(|work| work.serving() >= asked))?;
    let by_skew = works.iter().map(|work| (skew(work, asked), work));
    let (typical, work) = stats::middle_by(by_skew, |(skew, _)| *skew)?;
    only_if(typical > UNEVEN_MAX)?;
    let shares: Vec<String> = work
        .shares(asked)
        .into_iter()
        .map(|share| Quantity::share(share).to_string())
        .collect();
    let trials = many(works.len() as u64, "trial");
    Some(warning(
        evidence!("of the work of {service} its {workers} workers did {} (CPU time, median of {trials}); evenly it would be \
                   {even} each", shares.join(", ");
            workers = Quantity::count(asked), even = Quantity::share(1.0 / f64::from(asked))),
        "connections are dealt to workers when they are opened, and stay there: some workers have many and some few, and requests wait \
         at one while others idle. More load.connections even it out; so does Node.js's round robin, where the service turned it off \
         (NODE_CLUSTER_SCHED_POLICY)",
    ))
}

/// Unevenness from 0 (all equal) to 1 (one does all).
fn skew(work: &WorkerShares, workers: u32) -> f64 {
    let even = 1.0 / f64::from(workers);
    (work.shares(workers).first().copied().unwrap_or(even) - even) / (1.0 - even)
}
