//! The end of a run, and everything that follows from its reason alone: its name, the exit code, and whether
//! a gate may judge the run.
//!
//! This is the only table of ends. What depends on the results is decided by those who know them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exit_code;

/// End of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ended {
    /// Why the run ended.
    pub reason: EndReason,
    /// Length of the run in seconds.
    pub seconds: f64,
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// Every comparison has a verdict.
    Decided,
    /// The last look was taken.
    LastLook,
    /// No further block fits into the budget.
    BudgetSpent,
    /// The budget is too small for the blocks that a verdict needs.
    BudgetTooSmall {
        /// A sufficient budget, in seconds.
        needed_s: u64,
    },
    /// The experiment compares nothing, and its one pass is done.
    Measured,
    /// The user stopped it.
    Interrupted,
    /// The run was stopped because it could not produce a result. The text says why.
    Void(String),
    /// The requested load cannot be sent, or one of its files is invalid. The text says why.
    LoadRefused(String),
    /// The load generator failed. The text says why.
    GeneratorFailed(String),
    /// A service failed. The text says how.
    ServiceFailed(String),
    /// Data that services need could not be made, or services could not be built. The text says why.
    PreparationFailed(String),
}

/// Kind of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndKind {
    /// Every comparison has a verdict.
    Decided,
    /// The planned number of blocks is complete, regardless of their results.
    Planned,
    /// The budget is too small for a verdict.
    BudgetTooSmall,
    /// The run could not produce a result.
    Void,
    /// The user stopped the run.
    Interrupted,
    /// Something failed that the run needs.
    Failed,
}

/// Why a gate judges nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unfit {
    /// A finding makes the result invalid.
    #[serde(rename = "void")]
    Invalid,
    /// The run ended with fewer blocks than a verdict needs.
    TooFewBlocks,
    /// The run is still running, or was killed.
    Unfinished,
    /// The user stopped the run, perhaps because of its results.
    Interrupted,
    /// A service, the load generator, or the preparation of data failed.
    Failed,
}

impl Unfit {
    /// The sentence of a gate that judges nothing for this reason.
    pub fn sentence(self, reason: &str) -> String {
        match self {
            Unfit::Invalid | Unfit::TooFewBlocks => reason.to_owned(),
            Unfit::Unfinished | Unfit::Interrupted => {
                format!("no limit is judged by a run that did not end by its rule: {reason}")
            }
            Unfit::Failed => format!("no limit is judged by a run that failed: {reason}"),
        }
    }

    /// The exit code of a gate that judges nothing, unless the reason of the end has its own.
    pub fn exit_code(self) -> u8 {
        match self {
            Unfit::TooFewBlocks => exit_code::OPEN,
            Unfit::Invalid | Unfit::Unfinished | Unfit::Interrupted | Unfit::Failed => {
                exit_code::VOID
            }
        }
    }
}

/// A row of the table of ends.
struct EndRow<'a> {
    name: &'static str,
    kind: EndKind,
    /// `None` if the result of the run determines the exit code.
    exit_code: Option<u8>,
    /// The part that failed, in words. Empty if nothing failed.
    failed_part: &'static str,
    /// The program whose output the text contains.
    output_of: Option<&'static str>,
    /// The text of the reason.
    text: Option<&'a str>,
    /// A sufficient budget in seconds, if the budget was too small.
    needed_s: Option<u64>,
}

impl EndRow<'_> {
    fn new(name: &'static str, kind: EndKind) -> Self {
        EndRow {
            name,
            kind,
            exit_code: None,
            failed_part: "",
            output_of: None,
            text: None,
            needed_s: None,
        }
    }
}

impl EndReason {
    fn row(&self) -> EndRow<'_> {
        let failed = |name, exit_code, failed_part| EndRow {
            exit_code: Some(exit_code),
            failed_part,
            ..EndRow::new(name, EndKind::Failed)
        };
        match self {
            EndReason::Decided => EndRow::new("decided", EndKind::Decided),
            EndReason::LastLook => EndRow::new("last_look", EndKind::Planned),
            EndReason::BudgetSpent => EndRow::new("budget_spent", EndKind::Planned),
            EndReason::Measured => EndRow::new("measured", EndKind::Planned),
            EndReason::BudgetTooSmall { needed_s } => EndRow {
                needed_s: Some(*needed_s),
                ..EndRow::new("budget_too_small", EndKind::BudgetTooSmall)
            },
            EndReason::Interrupted => EndRow {
                exit_code: Some(exit_code::INTERRUPTED),
                ..EndRow::new("interrupted", EndKind::Interrupted)
            },
            EndReason::Void(why) => EndRow {
                text: Some(why),
                ..EndRow::new("void", EndKind::Void)
            },
            EndReason::LoadRefused(why) => EndRow {
                text: Some(why),
                ..failed("load_refused", exit_code::USAGE, "the load cannot be sent")
            },
            EndReason::GeneratorFailed(why) => EndRow {
                text: Some(why),
                ..failed(
                    "generator_failed",
                    exit_code::SELF,
                    "the load generator failed",
                )
            },
            EndReason::ServiceFailed(why) => EndRow {
                text: Some(why),
                output_of: Some("the service"),
                ..failed("service_failed", exit_code::SERVICE, "a service failed")
            },
            EndReason::PreparationFailed(why) => EndRow {
                text: Some(why),
                output_of: Some("its command"),
                ..failed(
                    "preparation_failed",
                    exit_code::SERVICE,
                    "data that services need could not be made",
                )
            },
        }
    }

    /// The name in records and events.
    pub fn name(&self) -> &'static str {
        self.row().name
    }

    /// Kind of the end.
    pub fn kind(&self) -> EndKind {
        self.row().kind
    }

    /// The exit code of every command that prints the run. `None` if the result of the run determines it.
    pub fn exit_code(&self) -> Option<u8> {
        self.row().exit_code
    }

    /// The reason in words, if it has a text.
    pub fn text(&self) -> Option<&str> {
        self.row().text
    }

    /// Description of the failure. `None` if nothing failed.
    pub fn failure(&self) -> Option<&str> {
        self.text().filter(|_| self.kind() == EndKind::Failed)
    }

    /// The part that failed, as the beginning of a sentence. Empty if nothing failed.
    pub fn failed_part(&self) -> &'static str {
        self.row().failed_part
    }

    /// The program whose output is part of the text.
    pub fn output_of(&self) -> Option<&'static str> {
        self.row().output_of
    }

    /// A sufficient budget in seconds, if the budget was too small.
    pub fn needed_s(&self) -> Option<u64> {
        self.row().needed_s
    }

    /// Whether the run ended regularly: not interrupted and without a failure.
    pub fn is_own(&self) -> bool {
        !matches!(self.kind(), EndKind::Interrupted | EndKind::Failed)
    }

    /// Whether the run ended after the planned number of blocks, regardless of their results.
    pub fn is_planned(&self) -> bool {
        self.kind() == EndKind::Planned
    }

    /// Whether a gate may judge a run that ended this way.
    ///
    /// # Errors
    /// Why not, as a value and as text.
    pub fn fits_gate(&self) -> Result<(), (Unfit, String)> {
        match self.kind() {
            EndKind::Interrupted => Err((
                Unfit::Interrupted,
                "it was interrupted, and who stops a run may have seen what it showed".to_owned(),
            )),
            EndKind::Failed => Err((Unfit::Failed, self.to_string())),
            EndKind::Decided | EndKind::Planned | EndKind::BudgetTooSmall | EndKind::Void => Ok(()),
        }
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.text(), self.needed_s()) {
            (Some(text), _) => f.write_str(text),
            (None, Some(needed_s)) => {
                write!(f, "the budget is too small, {needed_s} s would do")
            }
            (None, None) => f.write_str(self.name()),
        }
    }
}
