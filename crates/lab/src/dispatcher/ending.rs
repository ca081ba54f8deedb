//! What a failure makes of a run's record, and tells its caller. Pure.

use plan::Secrets;
use record::{EndReason, WriteError};

use super::LabError;
use crate::environment::Failure;

/// How a run ends after `failure`: as the record keeps it, and as the caller is told, without any of `secrets`.
///
/// # Errors
/// If the record itself cannot be written, so that it cannot say either.
pub(super) fn of_failure(
    failure: Failure,
    secrets: &Secrets,
) -> Result<(EndReason, Result<(), LabError>), WriteError> {
    let what = secrets.hide(&failure.to_string());
    Ok(match failure {
        Failure::Interrupted => (EndReason::Interrupted, Ok(())),
        Failure::Pointless(why) => (EndReason::Void(why), Ok(())),
        Failure::BudgetTooSmall { needed_s } => (EndReason::BudgetTooSmall { needed_s }, Ok(())),
        Failure::Service(_) => (EndReason::ServiceFailed(what.clone()), Err(LabError::Service(what))),
        Failure::Preparation(_) => (EndReason::PreparationFailed(what.clone()), Err(LabError::Service(what))),
        Failure::Generator(_) | Failure::GeneratorsLost(_) => {
            (EndReason::GeneratorFailed(what.clone()), Err(LabError::Generator(what)))
        }
        Failure::Record(error) => return Err(error),
    })
}
