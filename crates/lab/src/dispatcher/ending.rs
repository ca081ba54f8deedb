//! What ends a run before its rule does: what a failure makes of its record and tells its caller, and findings that no further block
//! can heal. Pure.

use analysis::{Comparison, Conclusion, Finding, Outcome};
use record::{EndReason, WriteError};

use super::LabError;
use crate::environment::Failure;

/// Why no comparison can have an answer that it does not have yet, whatever further blocks show; `None` while one can.
pub(super) fn void_for_good(conclusion: &Conclusion) -> Option<String> {
    let found: Vec<&Finding> =
        conclusion.findings.iter().filter(|finding| finding.check.row().ends_run).collect();
    let voids = |finding: &Finding, asked: &Comparison| finding.voids(asked.baseline, asked.candidate);
    let is_open = |asked: &Comparison| {
        asked.outcome != Outcome::NoSuccess && !found.iter().any(|finding| voids(finding, asked))
    };
    if conclusion.comparisons.iter().any(is_open) {
        return None;
    }
    let first = found.iter().find(|finding| conclusion.comparisons.iter().any(|asked| voids(finding, asked)));
    first.map(|finding| format!("{}; {}", finding.evidence, finding.remedy))
}

/// How a run ends after `failure`: as the record keeps it, and as the caller is told.
///
/// # Errors
/// If the record itself cannot be written, so that it cannot say either.
pub(super) fn of_failure(failure: Failure) -> Result<(EndReason, Result<(), LabError>), WriteError> {
    Ok(match failure {
        Failure::Interrupted => (EndReason::Interrupted, Ok(())),
        Failure::Pointless(why) => (EndReason::Void(why), Ok(())),
        Failure::BudgetTooSmall { needed_s } => (EndReason::BudgetTooSmall { needed_s }, Ok(())),
        Failure::Service(what) => (EndReason::ServiceFailed(what.clone()), Err(LabError::Service(what))),
        Failure::Preparation(what) => {
            (EndReason::PreparationFailed(what.clone()), Err(LabError::Service(what)))
        }
        Failure::Generator(what) => {
            (EndReason::GeneratorFailed(what.clone()), Err(LabError::Generator(what)))
        }
        Failure::GeneratorsLost(_) => {
            let what = failure.to_string();
            (EndReason::GeneratorFailed(what.clone()), Err(LabError::Generator(what)))
        }
        Failure::Record(error) => return Err(error),
    })
}
