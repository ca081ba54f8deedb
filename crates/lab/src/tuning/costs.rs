//! What trials, slices and turns take beside their load: measured, or assumed until then. Pure.

use plan::Plan;
use record::{Block, Record, SliceKind};

use super::mean;

/// What a slice costs beside its window, assumed until it is measured: draining, reading what the services used.
const SLICE_GAP_S: f64 = 0.05;
/// The same with other generators than this process: to agree on a begin, and to hear what came of it, where the way to them is short.
const AGREED_GAP_S: f64 = 0.1;
/// What a turn costs beside window and drain: to begin and to end the load.
pub(super) const TURN_GAP_S: f64 = 0.001;

/// What a trial and a slice take beside their load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// Seconds of a trial beside warm-up and slices: start, connect, stop.
    pub trial_s: f64,
    /// Seconds of a slice beside its windows: drains, reading what was used.
    pub gap_s: f64,
    /// The same without drains: what is sure to come between two slices.
    pub own_gap_s: f64,
    /// Seconds of drain after one window.
    pub turn_gap_s: f64,
}

/// The measured costs of a trial and of a slice; `None` before the first block is complete.
pub fn costs(record: &Record) -> Option<Costs> {
    let mut blocks: Vec<&Block> = record.complete_blocks().collect();
    if blocks.is_empty() {
        // What was taken from those that were dropped made them dearer; still that is nearer than a guess.
        blocks = record.blocks.iter().filter(|block| block.seconds.is_some()).collect();
    }
    let slices = || blocks.iter().flat_map(|block| &block.trials).flat_map(|trial| &trial.slices);
    let measured = || slices().filter(|slice| slice.kind == SliceKind::Measured);
    let drains_s: Vec<f64> = measured().map(|slice| slice.counts.drain_ns as f64 / 1e9).collect();
    let pauses_s: Vec<f64> = measured().map(|slice| f64::from(slice.turns) * TURN_GAP_S).collect();
    let turns: u32 = measured().map(|slice| slice.turns).sum();
    let turn_gap_s = drains_s.iter().sum::<f64>() / f64::from(turns.max(1));
    let own_gap_s = agreed_gap_s(record, &blocks).unwrap_or(gap_s(&record.header.plan));
    let gap_s = own_gap_s + mean(&pauses_s)? + mean(&drains_s)?;
    // What follows a warm-up is a cost of the trial: there is one warm-up, however many slices.
    let gap_of = |slice: &record::Slice| if slice.kind == SliceKind::Measured { gap_s } else { 0.0 };
    let loaded_s: f64 = slices().map(|slice| slice.counts.window_ns as f64 / 1e9 + gap_of(slice)).sum();
    let total_s: f64 = blocks.iter().filter_map(|block| block.seconds).sum();
    let trials: usize = blocks.iter().map(|block| block.trials.len()).sum();
    let trial_s = ((total_s - loaded_s) / trials as f64).max(0.0);
    Some(Costs { trial_s, gap_s, own_gap_s, turn_gap_s })
}

/// What really lay between two slices of a trial, in seconds: with other generators than this process that is the way to the farthest of
/// them, some times there and back. `None` where no trial has two, or nobody had to agree.
fn agreed_gap_s(record: &Record, blocks: &[&Block]) -> Option<f64> {
    let between = |pair: &[&record::Slice]| {
        let [one, next] = pair else { return None };
        let ended_ns = one.counts.started_ns + one.counts.window_ns + one.counts.drain_ns;
        Some(next.counts.started_ns.saturating_sub(ended_ns) as f64 / 1e9)
    };
    let trials = blocks.iter().flat_map(|block| &block.trials);
    let gaps_s = trials.flat_map(|trial| {
        let slices: Vec<&record::Slice> = trial.measured().collect();
        slices.windows(2).filter_map(between).collect::<Vec<f64>>()
    });
    mean(&gaps_s.collect::<Vec<f64>>()).filter(|_| !record.header.plan.generators.is_here())
}

/// What a slice is assumed to cost beside window and drain, in seconds.
pub(super) fn gap_s(plan: &Plan) -> f64 {
    if plan.generators.is_here() { SLICE_GAP_S } else { AGREED_GAP_S }
}
