//! One worker had most of the work
//!
//! **Seen.** `of the work of api its 4 workers did 71 %, 11 %, 10 %, 8 %`, by CPU time.
//!
//! **Why.** Connections stay with their worker, so requests wait while others idle.
//!
//! **What to do.** More `load.connections`, or Node.js's round robin (`NODE_CLUSTER_SCHED_POLICY`).
//!
//! **Threshold.** `UNEVEN_MAX = 0.5` on a scale from 0 (all alike) to 1 (one does all). Three to one is 0.5.

use model::quantity::many;
use model::{Quantity, evidence};

use super::finding::{CheckFinding, warning};
use super::input::CheckedVariant;
use super::row::{CheckRow, Maker, Subject, WARNING, row};
use crate::only_if;
use crate::variant::{WorkerShares, workers};

pub(super) static ROW: CheckRow = row(Subject::Service, WARNING, &[Maker::Service(workers_uneven)]);

/// Maximum unevenness of work, from 0 (even) to 1 (all done by one): (s − 1/n)/(1 − 1/n) for the share s of
/// the busiest among n. Two workers with a ratio of three to one are at 0.5. Connections distributed by a
/// hash of their ports reach 0.2 by chance.
const UNEVEN_MAX: f64 = 0.5;

/// Reports that one worker does much more work than the others, if all do some. Idle workers are reported by
/// `workers_idle`.
fn workers_uneven(variant: &CheckedVariant<'_>, service: &str) -> Option<CheckFinding> {
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
