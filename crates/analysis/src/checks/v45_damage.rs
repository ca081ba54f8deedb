//! Part of the record cannot be read
//!
//! **Seen.** `part of the record could not be read: events.jsonl:812: cut off; what stands before it counts`.
//!
//! **Why.** Mostly a killed run. Damaged blocks do not count, and the record passes no gate.
//!
//! **What to do.** Nothing, with enough blocks left.
//!
//! **Threshold.** None.

use super::finding::{CheckFinding, warning};
use super::input::CheckedRun;
use super::row::{CheckRow, Maker, Subject, WARNING, row};

pub(super) static ROW: CheckRow = row(Subject::Lab, WARNING, &[Maker::Several(damage)]);

fn damage(run: &CheckedRun<'_>) -> Vec<CheckFinding> {
    let remedy = "what could be read counts; keep the folder as it is if you want to look further";
    let seen = |text: &String| {
        warning(
            format!("part of the record could not be read: {text}"),
            remedy,
        )
    };
    run.damage.iter().map(seen).collect()
}
