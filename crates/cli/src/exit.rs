//! Exit codes, and the output of an error that ends the program.

use analysis::Conclusion;
use record::{EndReason, Record};
use services::Blame;

use crate::print;

/// A limit of a gate is broken.
pub const BROKEN: u8 = 1;
/// Usage, or an experiment file with problems.
pub const USAGE: u8 = 2;
/// A service did not start or died, or its data could not be made, or it could not be built.
pub const SERVICE: u8 = 3;
pub const VOID: u8 = 4;
/// No limit of a gate fails, and one is inconclusive.
pub const OPEN: u8 = 5;
/// An error of Proofload itself.
pub const SELF: u8 = 6;
pub const INTERRUPTED: u8 = 130;

/// An error with its exit code and a hint.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CliError {
    /// The failure: what, where, the value, the limit.
    pub message: String,
    /// How to fix it, if known.
    pub hint: Option<String>,
    pub code: u8,
}

impl CliError {
    pub fn new(code: u8, message: impl ToString) -> CliError {
        CliError {
            message: message.to_string(),
            hint: None,
            code,
        }
    }

    pub fn usage(message: impl ToString) -> CliError {
        CliError::new(USAGE, message)
    }

    pub fn hint(self, hint: impl Into<String>) -> CliError {
        CliError {
            hint: Some(hint.into()),
            ..self
        }
    }

    pub fn tell(&self) {
        print::error(&self.message);
        self.hint.iter().for_each(|hint| print::hint(hint));
    }

    /// An error caused by a service or its requirements.
    pub fn service(error: services::Error) -> CliError {
        CliError {
            code: SERVICE,
            ..CliError::from(error)
        }
    }

    /// Adds the hint of another crate's error.
    pub fn hinted<H: Into<String>>(self, hint: Option<H>) -> CliError {
        CliError {
            hint: hint.map(Into::into),
            ..self
        }
    }
}

/// Blames the request, or Proofload itself.
impl From<services::Error> for CliError {
    fn from(error: services::Error) -> CliError {
        let code = if *error.blame() == Blame::Request {
            USAGE
        } else {
            SELF
        };
        CliError::new(code, &error).hinted(error.hint())
    }
}

/// Prints an error on stderr and returns its exit code. An error without a code is an error of Proofload
/// itself.
pub fn fail(error: anyhow::Error) -> u8 {
    let failed = error
        .downcast()
        .or_else(|error| error.downcast::<services::Error>().map(CliError::from));
    let failed = failed.unwrap_or_else(|error| CliError::new(SELF, format!("{error:#}")));
    failed.tell();
    failed.code
}

/// The first of these flags that was given.
pub fn given<'f>(flags: &[(bool, &'f str)]) -> Option<&'f str> {
    flags
        .iter()
        .find(|(is_given, _)| *is_given)
        .map(|(_, flag)| *flag)
}

/// The exit code of a record, the same for all commands.
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
