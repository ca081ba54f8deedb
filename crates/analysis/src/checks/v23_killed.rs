//! A service that had to be killed
//!
//! **Seen.** `api did not end on SIGTERM in time and was killed (20 times in all)`.
//!
//! **Why.** Each kill costs `stop_timeout` of the budget.
//!
//! **What to do.** End on SIGTERM, or lengthen `stop_timeout`.
//!
//! **Threshold.** None.

use model::quantity::many;
use model::{Quantity, evidence};

use super::finding::CheckFinding;
use super::input::CheckedRun;
use super::row::{CheckRow, Maker, NOTE, Subject, row};

pub(super) static ROW: CheckRow = row(Subject::Service, NOTE, &[Maker::Whole(killed)]);

fn killed(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let ended = run.complete_trials().filter_map(|trial| trial.ended);
    let killed: Vec<&str> = ended
        .flat_map(|ended| &ended.killed)
        .map(String::as_str)
        .collect();
    let (first, times) = (killed.first()?, many(killed.len() as u64, "time"));
    let evidence =
        evidence!("{first} did not end on SIGTERM in time and was killed ({times} in all)");
    let evidence = evidence.with([("times", Quantity::count(killed.len() as u64))]);
    Some(CheckFinding::note(
        (),
        evidence,
        "let the service end on SIGTERM, or set its stop_timeout longer",
    ))
}
