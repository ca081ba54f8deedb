//! Exit codes, and the error that ends the program.

use analysis::Conclusion;
use record::{EndReason, Record};
use services::Blame;

pub use model::exit_code::*;

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
    let by_end = record.end().and_then(EndReason::exit_code);
    by_end.unwrap_or(by_result)
}
