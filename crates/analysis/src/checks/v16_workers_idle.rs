//! Workers that did nothing
//!
//! **Seen.** `cluster: 1 of 4 workers of api did 98 % of its work in 6 of 10 trials`, by CPU time.
//!
//! **Why.** One process is no cluster.
//!
//! **What to do.** If one worked, check that the workers started and share the port. Otherwise, more
//! `load.connections`.
//!
//! **Threshold.** A worker serves if it used at least `SERVING_SHARE_MIN = 0.1` of the CPU time of the
//! busiest. Invalid if one did all in `ALONE_SHARE_VOID = 0.5` of the trials or more.

use model::quantity::many;
use model::{Quantity, evidence};

use super::finding::{CheckFinding, either};
use super::input::{CheckedTrial, CheckedVariant};
use super::row::{CheckRow, EITHER, Maker, Subject, row};
use crate::variant::{WorkerShares, workers};

pub(super) static ROW: CheckRow = row(Subject::Service, EITHER, &[Maker::Service(workers_idle)]);

/// Share of a variant's trials with only one serving process from which on the variant is invalid.
const ALONE_SHARE_VOID: f64 = 0.5;

fn workers_idle(variant: &CheckedVariant<'_>, service: &str) -> Option<CheckFinding> {
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
