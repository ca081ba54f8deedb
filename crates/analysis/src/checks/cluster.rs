//! Workers that are too many for the processors, and work that is dealt unevenly among them.
//!
//! Both by the CPU time of processes, as `workers` counts those that did nothing at all.

use record::{Record, Trial};

use super::{percent, trials};
use crate::no_success;
use crate::service::{Work, median, workers};
use model::{Check, Finding, Grade};

/// Part of the busiest process's CPU time from which on a process counts as a worker where nobody asked for a number: helpers of a
/// program, such as the first process of a cluster, use less.
pub const WORKER_SHARE_MIN: f64 = 0.5;
/// How far the work may be dealt from evenly, which is 0, to all to one, which is 1: (s − 1/n)/(1 − 1/n) of the busiest one's share s among n.
/// Two workers out of balance by three to one are at 0.5. Connections that are dealt by a hash of their ports come to 0.2 by chance.
pub const UNEVEN_MAX: f64 = 0.5;

/// Services of each variant, looked at over its trials.
fn each_service(
    record: &Record,
    check: impl Fn((usize, &str), &str, &[&Trial]) -> Option<Finding>,
) -> Vec<Finding> {
    let variants = record.header.plan.variants.iter().enumerate();
    let variants = variants.filter(|(index, _)| no_success::measured(record, *index).is_none());
    let of_variant = |(index, variant): (usize, &plan::Variant)| {
        let trials: Vec<&Trial> = trials(record).filter(|trial| trial.variant() == index).collect();
        let services = trials.first().map(|trial| trial.started.services.as_slice()).unwrap_or_default();
        let found = services
            .iter()
            .filter_map(|started| check((index, variant.name.as_str()), &started.service, &trials));
        found.collect::<Vec<Finding>>()
    };
    variants.flat_map(of_variant).collect()
}

/// More processes serve than there are processors for them.
pub(super) fn too_many_workers(record: &Record) -> Vec<Finding> {
    each_service(record, |(index, name), service, trials| {
        let cpus =
            trials.first()?.started.services.iter().find(|started| started.service == service)?.cpus.len();
        let serving = median(trials.iter().filter_map(|trial| serving(trial, service)))?;
        if cpus == 0 || serving as usize <= cpus {
            return None;
        }
        Some(Finding {
            check: Check::TooManyWorkers,
            grade: Grade::Warning,
            evidence: format!(
                "{name}: {serving} processes of {service} did the work on {cpus} processor{}",
                if cpus == 1 { "" } else { "s" }
            ).into(),
            remedy: "they take turns on it, which costs switches and memory and gives no more throughput (what long requests hold up may get \
                     through earlier); what workers do for the service where there is room for them cannot be seen here. Ask for no more than \
                     there are (`workers = \"cores\"`), or give services more (`cpus = \"shared\"`, a larger machine)"
                .into(),
            variants: vec![index],
        })
    })
}

/// Processes of a trial that do the work: workers, and never more than were asked for, or the first of them would count as well.
fn serving(trial: &Trial, service: &str) -> Option<u32> {
    let work = Work::of(trial, service)?;
    Some(match workers(trial, service) {
        Some(asked) => work.serving().min(asked),
        None => work.above(WORKER_SHARE_MIN),
    })
}

/// One worker has much more to do than the others, though all have something: those are for `workers_idle`.
pub(super) fn workers_uneven(record: &Record) -> Vec<Finding> {
    each_service(record, |(index, name), service, trials| {
        let asked = workers(trials.first()?, service).filter(|asked| *asked >= 2)?;
        let works: Vec<Work> = trials.iter().filter_map(|trial| Work::of(trial, service)).collect();
        if works.is_empty() || works.iter().any(|work| work.serving() < asked) {
            return None;
        }
        let mut by_skew: Vec<(f64, &Work)> = works.iter().map(|work| (skew(work, asked), work)).collect();
        by_skew.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (typical, work) = by_skew[by_skew.len() / 2];
        if typical <= UNEVEN_MAX {
            return None;
        }
        let shares: Vec<String> = work.shares(asked).into_iter().map(percent).collect();
        Some(Finding {
            check: Check::WorkersUneven,
            grade: Grade::Warning,
            evidence: format!(
                "{name}: of the work of {service} its {asked} workers did {} (CPU time, median of {} trials); evenly it would be {} each",
                shares.join(", "),
                works.len(),
                percent(1.0 / f64::from(asked)),
            ).into(),
            remedy: "connections are dealt to workers when they are opened, and stay there: some workers have many and some few, and requests \
                     wait at one while others idle. More load.connections even it out; so does Node.js's round robin, where the service \
                     turned it off (NODE_CLUSTER_SCHED_POLICY)"
                .into(),
            variants: vec![index],
        })
    })
}

/// From 0, all alike, to 1, one does all.
fn skew(work: &Work, workers: u32) -> f64 {
    let even = 1.0 / f64::from(workers);
    let busiest = work.shares(workers).first().copied().unwrap_or(even);
    (busiest - even) / (1.0 - even)
}
