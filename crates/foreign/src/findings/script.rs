//! Checks of a run whose load is a script: its stages, its pauses, and what its end cut off.

use model::quantity::count;
use model::{Grade, Quantity, evidence};

use super::RunFinding;
use crate::run::ToolRun;

/// An iteration of a script that takes this many times as long as its requests waits.
const WAITING_FACTOR: f64 = 1.5;

/// A load in stages.
pub fn ramp(run: &ToolRun) -> Option<RunFinding> {
    let stages = run.script.as_ref()?.stages.clone()?;
    Some((Grade::Warning, stages.into()))
}

/// Iterations of a script that take much longer than their requests.
pub fn script_waits(run: &ToolRun) -> Option<RunFinding> {
    let script = run.script.as_ref()?;
    let (iterations, each_us) = (
        script.iterations.filter(|count| *count > 0)?,
        script.iteration_us?,
    );
    let requests_us = run.latency.mean_us? * run.requests? as f64 / iterations as f64;
    let paced = run.load.rate_per_s.is_some();
    if paced || requests_us <= 0.0 || each_us < WAITING_FACTOR * requests_us {
        return None;
    }
    let rate = run
        .rate()
        .map(|rate| format!("; {} is its pace", Quantity::per_s(rate)));
    let seen = evidence!("an iteration takes {iteration_us}, its requests {requests_us}{}", rate.unwrap_or_default();
        iteration_us = Quantity::us(each_us), requests_us = Quantity::us(requests_us));
    Some((Grade::Warning, seen))
}

/// Iterations that the end of the run cut off.
pub fn interrupted(run: &ToolRun) -> Option<RunFinding> {
    let script = run.script.as_ref()?;
    let cut = script.interrupted.filter(|cut| *cut > 0)?;
    let complete = script.iterations.unwrap_or(0);
    let seen = evidence!("{interrupted} beside {} complete ones", count(complete);
        interrupted = Quantity::count(cut));
    Some((Grade::Warning, seen))
}
