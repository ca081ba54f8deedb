//! More workers than cores
//!
//! **Seen.** `cluster: 8 processes of api did the work on 2 processors`.
//!
//! **Why.** Sharing cores adds switches and memory, not throughput.
//!
//! **What to do.** `workers = "cores"`, a larger machine, or `cpus = "shared"`.
//!
//! **Threshold.** More working processes than processors.

use model::evidence;
use model::quantity::counted;

use super::finding::{CheckFinding, warning};
use super::input::{CheckedTrial, CheckedVariant};
use super::row::{CheckRow, Maker, Subject, WARNING, row};
use crate::only_if;
use crate::sums::middle_count;
use crate::variant::{WorkerShares, workers};

pub(super) static ROW: CheckRow = row(
    Subject::Service,
    WARNING,
    &[Maker::Service(too_many_workers)],
);

/// Share of the busiest process's CPU time from which on a process counts as a worker if no number was
/// configured. Helper processes, such as the first process of a cluster, use less.
const WORKER_SHARE_MIN: f64 = 0.5;

fn too_many_workers(variant: &CheckedVariant<'_>, service: &str) -> Option<CheckFinding> {
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
pub(super) fn serving(trial: &CheckedTrial<'_>, service: &str) -> Option<u32> {
    let work = WorkerShares::of(trial.measured(), service)?;
    Some(match workers(trial.started, service) {
        Some(asked) => work.serving().min(asked),
        None => work.above(WORKER_SHARE_MIN),
    })
}
