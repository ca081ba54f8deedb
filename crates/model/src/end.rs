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
    #[serde(rename = "invalid")]
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
    Failed(FailedPart),
}

/// The part of a run that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedPart {
    /// The failure as the beginning of a sentence.
    pub words: &'static str,
    /// The failure in a narrow column.
    pub short: &'static str,
    /// The program whose output is part of the text.
    pub output_of: Option<&'static str>,
    /// The exit code of every command that prints the run.
    pub exit_code: u8,
}

/// Why a gate judges nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unfit {
    /// A finding makes the result invalid.
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

impl EndReason {
    /// The name in records and events, the kind, and the text of each reason.
    fn row(&self) -> (&'static str, EndKind, Option<&str>) {
        let failed = |exit_code, words, short, output_of| {
            EndKind::Failed(FailedPart {
                words,
                short,
                output_of,
                exit_code,
            })
        };
        match self {
            EndReason::Decided => ("decided", EndKind::Decided, None),
            EndReason::LastLook => ("last_look", EndKind::Planned, None),
            EndReason::BudgetSpent => ("budget_spent", EndKind::Planned, None),
            EndReason::Measured => ("measured", EndKind::Planned, None),
            EndReason::BudgetTooSmall { needed_s: _ } => {
                ("budget_too_small", EndKind::BudgetTooSmall, None)
            }
            EndReason::Interrupted => ("interrupted", EndKind::Interrupted, None),
            EndReason::Void(why) => ("invalid", EndKind::Void, Some(why)),
            EndReason::LoadRefused(why) => {
                let words = "the load cannot be sent";
                let kind = failed(exit_code::USAGE, words, "load failed", None);
                ("load_refused", kind, Some(why))
            }
            EndReason::GeneratorFailed(why) => {
                let words = "the load generator failed";
                let kind = failed(exit_code::SELF, words, "load failed", None);
                ("generator_failed", kind, Some(why))
            }
            EndReason::ServiceFailed(why) => {
                let (words, source) = ("a service failed", Some("the service"));
                let kind = failed(exit_code::SERVICE, words, words, source);
                ("service_failed", kind, Some(why))
            }
            EndReason::PreparationFailed(why) => {
                let words = "data that services need could not be made";
                let kind = failed(exit_code::SERVICE, words, "no data", Some("its command"));
                ("preparation_failed", kind, Some(why))
            }
        }
    }

    /// The name in records and events.
    pub fn name(&self) -> &'static str {
        self.row().0
    }

    /// Kind of the end.
    pub fn kind(&self) -> EndKind {
        self.row().1
    }

    /// The reason in words, if it has a text.
    pub fn text(&self) -> Option<&str> {
        self.row().2
    }

    /// How the run ended, as a clause.
    pub fn sentence(&self) -> String {
        let clause = match self {
            EndReason::Decided => "every comparison was decided",
            EndReason::LastLook => "the last look was taken",
            EndReason::BudgetSpent => "no further block fitted the budget",
            EndReason::BudgetTooSmall { .. } => "stopped, because the budget holds too few blocks,",
            EndReason::Measured => "ended as planned",
            EndReason::Interrupted => "interrupted",
            EndReason::Void(_) => "stopped as invalid",
            EndReason::LoadRefused(_)
            | EndReason::GeneratorFailed(_)
            | EndReason::ServiceFailed(_)
            | EndReason::PreparationFailed(_) => {
                let words = self.failure().map_or("", |(part, _)| part.words);
                return format!("stopped, because {words},");
            }
        };
        clause.to_owned()
    }

    /// The part that failed, and the description of its failure. `None` if nothing failed.
    pub fn failure(&self) -> Option<(FailedPart, &str)> {
        match self.row() {
            (_, EndKind::Failed(part), Some(text)) => Some((part, text)),
            _ => None,
        }
    }

    /// A sufficient budget in seconds, if the budget was too small.
    pub fn needed_s(&self) -> Option<u64> {
        let EndReason::BudgetTooSmall { needed_s } = self else {
            return None;
        };
        Some(*needed_s)
    }

    /// The exit code of every command that prints the run. `None` if the result of the run determines it.
    pub fn exit_code(&self) -> Option<u8> {
        match self.kind() {
            EndKind::Interrupted => Some(exit_code::INTERRUPTED),
            EndKind::Failed(part) => Some(part.exit_code),
            EndKind::Decided | EndKind::Planned | EndKind::BudgetTooSmall | EndKind::Void => None,
        }
    }

    /// Whether the run ended regularly: not interrupted and without a failure.
    pub fn is_own(&self) -> bool {
        !matches!(self.kind(), EndKind::Interrupted | EndKind::Failed(_))
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
            EndKind::Failed(_) => Err((Unfit::Failed, self.to_string())),
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
