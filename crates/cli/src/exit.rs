//! Exit codes, and how an error that ends the program is told.

use analysis::Conclusion;
use record::{EndReason, Record};
use services::Blame;

use crate::print;

/// A limit of a gate is broken.
pub const BROKEN: u8 = 1;
/// Usage, or an experiment file with problems.
pub const USAGE: u8 = 2;
/// A service did not start, or died, or data that it needs could not be made, or it could not be built.
pub const SERVICE: u8 = 3;
pub const VOID: u8 = 4;
/// No limit of a gate fails, and one is inconclusive.
pub const OPEN: u8 = 5;
/// Proofload could not do its own part.
pub const SELF: u8 = 6;
pub const INTERRUPTED: u8 = 130;

/// An error with the exit code it ends in, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failed {
    /// What happened: what, where, the value, the limit.
    pub message: String,
    /// What to do, where that can be said.
    pub hint: Option<String>,
    pub code: u8,
}

impl Failed {
    pub fn new(code: u8, message: impl ToString) -> Failed {
        Failed { message: message.to_string(), hint: None, code }
    }

    pub fn usage(message: impl ToString) -> Failed {
        Failed::new(USAGE, message)
    }

    pub fn hint(self, hint: impl Into<String>) -> Failed {
        Failed { hint: Some(hint.into()), ..self }
    }

    pub fn tell(&self) {
        print::error(&self.message);
        self.hint.iter().for_each(|hint| print::hint(hint));
    }

    /// A service, or what it needs, is to blame.
    pub fn service(error: services::Error) -> Failed {
        Failed { code: SERVICE, ..Failed::from(error) }
    }

    /// The same with what an error of another crate has for a hint.
    pub fn hinted<H: Into<String>>(self, hint: Option<H>) -> Failed {
        Failed { hint: hint.map(Into::into), ..self }
    }
}

/// What was asked for is to blame, or this is Proofload's own failure.
impl From<services::Error> for Failed {
    fn from(error: services::Error) -> Failed {
        let code = if *error.blame() == Blame::Request { USAGE } else { SELF };
        Failed::new(code, &error).hinted(error.hint())
    }
}

/// Tells an error on stderr and gives its exit code; one without a code of its own is Proofload's own failure.
pub fn fail(error: anyhow::Error) -> u8 {
    let failed = error.downcast().or_else(|error| error.downcast::<services::Error>().map(Failed::from));
    let failed = failed.unwrap_or_else(|error| Failed::new(SELF, format!("{error:#}")));
    failed.tell();
    failed.code
}

/// The first of these flags that was given.
pub fn given<'f>(flags: &[(bool, &'f str)]) -> Option<&'f str> {
    flags.iter().find(|(is_given, _)| *is_given).map(|(_, flag)| *flag)
}

/// The exit code of a record, however it is looked at.
pub fn of_record(record: &Record, conclusion: &Conclusion) -> u8 {
    let by_result = if conclusion.is_void() { VOID } else { 0 };
    match record.end() {
        Some(EndReason::Interrupted) => INTERRUPTED,
        Some(EndReason::ServiceFailed(_) | EndReason::PreparationFailed(_)) => SERVICE,
        Some(EndReason::LoadRefused(_)) => USAGE,
        Some(EndReason::GeneratorFailed(_)) => SELF,
        Some(
            EndReason::Decided
            | EndReason::LastLook
            | EndReason::BudgetSpent
            | EndReason::BudgetTooSmall { .. }
            | EndReason::Measured
            | EndReason::Void(_),
        )
        | None => by_result,
    }
}
