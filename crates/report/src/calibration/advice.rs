//! What to do about a calibration: which budget finds the margin, and whether the machine may be trusted.

use serde_json::{Value, json};

use super::{Calibrated, difference};
use crate::figure::{seconds, share};
use crate::sheet::metric_name;

/// Budgets are named in steps of so many seconds, and leave a tenth of room.
const BUDGET_STEP_S: f64 = 30.0;
const BUDGET_ROOM: f64 = 1.1;
/// Standard deviations of the correlation of independent blocks beyond which it is taken for real.
const LAG1_SDS: f64 = 2.0;

/// What to do next, each a sentence or a command with its reason.
pub(super) fn steps(calibrated: &Calibrated<'_>) -> Vec<String> {
    let Some(calibration) = &calibrated.calibration else { return Vec::new() };
    let design = &calibrated.experiment.design;
    let file = &calibrated.record.header.experiment;
    let mut steps = Vec::new();
    let Some(noise) = calibration.noise(design.metric) else { return steps };
    if noise.copies.differ {
        steps.push(format!(
            "calibrate again: if the copies differ again, this machine favours one of them, and no difference of that size may \
             be believed; `aa = true` in the design then keeps watch: proofload calibrate {file}"
        ));
    }
    let by_chance = LAG1_SDS / f64::from(calibration.blocks).sqrt();
    if let Some(lag1) = noise.blocks_lag1.filter(|lag1| *lag1 > by_chance) {
        steps.push(format!(
            "blocks resemble their neighbours ({lag1:+.2}, by chance up to {by_chance:.2}): something on this machine comes and \
             goes over minutes, and intervals are narrower than they should be; end it, or measure at another time"
        ));
    }
    let asked = estimates(calibrated);
    let of = if asked > 1 { format!(", where {asked} estimates share the 5 %") } else { String::new() };
    let margin = format!("the margin ({}) in {}{of}", share(design.margin), metric_name(design.metric));
    steps.push(match margin_found(calibrated) {
        Some(found) => format!(
            "to find a true difference of {margin}, in 8 of 10 runs, takes about {} blocks: proofload run {file} --budget {}",
            found["blocks"],
            seconds(found["budget_s"].as_f64().unwrap_or(0.0))
        ),
        None => format!(
            "no run is long enough to find a true difference of {margin}; the longest finds {}: quieten the machine, give trials \
             more slices (design.slices), or ask for less (design.margin)",
            noise.least_difference(design, asked).map(difference).unwrap_or_default()
        ),
    });
    steps
}

/// The blocks and the budget that find the margin in the experiment's metric; `None` where no run does, or nothing is known.
pub(super) fn margin_found(calibrated: &Calibrated<'_>) -> Option<Value> {
    let (calibration, plan) = (calibrated.calibration.as_ref()?, calibrated.experiment);
    let noise = calibration.noise(plan.design.metric)?;
    let blocks = noise.blocks_to_find(plan.design.margin, &plan.design, estimates(calibrated))?;
    let run_s = calibration.run_s(blocks, plan.variants.len()) * BUDGET_ROOM;
    let budget_s = (run_s / BUDGET_STEP_S).ceil().max(2.0) * BUDGET_STEP_S;
    Some(json!({ "blocks": blocks, "budget_s": budget_s }))
}

/// Estimates of the experiment that share the chance to err; one where it compares nothing.
fn estimates(calibrated: &Calibrated<'_>) -> usize {
    let plan = calibrated.experiment;
    (plan.comparisons.len() * plan.design.metrics().count()).max(1)
}
