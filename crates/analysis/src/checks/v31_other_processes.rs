//! Other processes used the machine
//!
//! **Seen.** `other processes used 11 % of the CPU time: 0.220 of 2 cores`.
//!
//! **Why.** Intervals get wider. CPU per request lacks the cost of those that work *for* a service (an
//! outside database).
//!
//! **What to do.** Stop other programs (`top`). Add those that work for a service to the experiment.
//!
//! **Threshold.** `OTHERS_SHARE_MAX = 0.05` of the CPU time. Not judged with pods on this machine (kind,
//! minikube, k3s), or with a URL to it (also by a LAN or container address) whose processes cannot be read.

use model::quantity::many;
use model::thresholds::OTHERS_SHARE_MAX;
use model::{Quantity, evidence};

use super::finding::{CheckFinding, warning};
use super::input::CheckedRun;
use super::row::{CheckRow, DISTURBED, Maker, Subject, WARNING, row};
use super::watched_span::{WatchedSpan, stretches};
use crate::only_if;
use crate::usage::{processors, works_unseen};

pub(super) static ROW: CheckRow =
    row(Subject::Machine, WARNING, &[Maker::Whole(other_processes)]).alone(DISTURBED);

/// Minimum total measured time for reporting other processes.
const STRANGERS_WALL_NS_LEAST: u64 = 500_000_000;

/// Reports processes that are neither Proofload nor a service of the run and used the processors.
fn other_processes(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let started = || run.complete_trials().map(|trial| trial.started);
    only_if(!run.is_of_url() && !works_unseen(started()))?;
    let stretches = stretches(run);
    let used_ns: u64 = stretches
        .iter()
        .map(|stretch| stretch.machine.strangers_cpu_ns)
        .sum();
    let wall_ns: u64 = stretches.iter().map(WatchedSpan::wall_ns).sum();
    // The system counts CPU time in hundredths of a second.
    only_if(wall_ns >= STRANGERS_WALL_NS_LEAST)?;
    let cores = used_ns as f64 / wall_ns as f64;
    let cpus = processors(run.machine, started().take(1));
    let share = cores / cpus as f64;
    only_if(share > OTHERS_SHARE_MAX)?;
    Some(warning(
        evidence!("other processes used {used} of the CPU time: {cores} of {}", many(cpus as u64, "core");
            used = Quantity::share(share), cores = Quantity::number(cores)),
        "this affects all variants and widens the intervals; stop other programs (see top). If one works for the services (a container, \
         a database), its cost is missing from CPU per request",
    ))
}
