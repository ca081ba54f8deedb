//! Workers ended while they were measured
//!
//! **Seen.** `cluster: api lost 1 of 4 workers in block 3; so it went in 2 of its trials`.
//!
//! **Why.** Fewer processes served, or a new one without connections. Restarts of a container, by nodemon or
//! a shell count, and the end of a process behind a local URL.
//!
//! **What to do.** Read the logs of service and kernel (out of memory).
//!
//! **Threshold.** One worker.

use model::quantity::many;
use model::{Quantity, evidence};
use record::WorkersLost;

use super::finding::{CheckFinding, void};
use super::input::{CheckedRun, CheckedTrial, CheckedVariant};
use super::row::{CheckRow, Maker, Subject, VOID, row};
use crate::variant::workers;

pub(super) static ROW: CheckRow =
    row(Subject::Service, VOID, &[Maker::Each(workers_lost)]).ending_run();

/// Reports lost workers. The rest of the service then serves with fewer processes, or with new ones without
/// connections, which is not the intended configuration, however good the figures.
fn workers_lost(_: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
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
