//! Processes outlived their trial
//!
//! **Seen.** `these outlived their trial: node worker.js (pid 4711)`.
//!
//! **Why.** They take CPU time and memory from later trials, as does a container that was not removed
//! (`container 4f2a19c0b7d3`). A folder with a mount in it also stays.
//!
//! **What to do.** End them, find what starts them, and run again.
//!
//! **Threshold.** One process.

use super::finding::{CheckFinding, void};
use super::input::CheckedRun;
use super::row::{CheckRow, Maker, Subject, VOID, row};

pub(super) static ROW: CheckRow = row(Subject::Lab, VOID, &[Maker::Whole(left_over)]).ending_run();

fn left_over(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let trials = run.blocks.iter().flat_map(|block| &block.trials);
    let ended = trials.filter_map(|trial| trial.ended);
    let leftovers: Vec<&str> = ended
        .flat_map(|ended| &ended.leftovers)
        .map(String::as_str)
        .collect();
    let evidence = format!("these outlived their trial: {}", leftovers.join(", "));
    let remedy = "processes ran on beside later trials: end them by hand, unmount what a service mounted, and run again";
    (!leftovers.is_empty()).then(|| void(evidence, remedy))
}
