//! Stopped, because going on was pointless
//!
//! **Seen.** `the run was stopped because going on was pointless: no request succeeded`.
//!
//! **Why.** No further block could give an answer.
//!
//! **What to do.** Follow the finding.
//!
//! **Threshold.** That of [the reason](methodology.md#what-is-dropped).

use record::EndReason;

use super::finding::{CheckFinding, void};
use super::input::CheckedRun;
use super::row::{CheckRow, Maker, Subject, VOID, row};

pub(super) static ROW: CheckRow = row(Subject::Lab, VOID, &[Maker::Whole(pointless)]);

fn pointless(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let Some(EndReason::Void(why)) = run.end() else {
        return None;
    };
    Some(void(
        format!("the run was stopped because going on was pointless: {why}"),
        "change what it names, then run again; the services' output lies in the record's logs",
    ))
}
