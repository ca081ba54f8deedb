//! Findings of checks before they have their check.

use model::{Evidence, Finding, Grade, Remedy};
use plan::Comparison;

/// A finding of a check, before it has its number.
pub(super) type CheckFinding = Finding<()>;

pub(super) fn warning(evidence: impl Into<Evidence>, remedy: impl Into<Remedy>) -> CheckFinding {
    either(false, evidence, remedy)
}

pub(super) fn void(evidence: impl Into<Evidence>, remedy: impl Into<Remedy>) -> CheckFinding {
    either(true, evidence, remedy)
}

pub(super) fn either(
    is_void: bool,
    evidence: impl Into<Evidence>,
    remedy: impl Into<Remedy>,
) -> CheckFinding {
    let grade = if is_void {
        Grade::Invalid
    } else {
        Grade::Warning
    };
    Finding::new((), grade, evidence, remedy)
}

/// Prepends the name of the subject.
pub(super) fn named(name: &str, found: CheckFinding, about: &[usize]) -> CheckFinding {
    let evidence = found.evidence.reworded(|text| format!("{name}: {text}"));
    Finding {
        evidence,
        variants: about.to_vec(),
        ..found
    }
}

/// Prepends the label of a comparison.
pub(super) fn labelled(asked: &Comparison, found: CheckFinding) -> CheckFinding {
    named(&asked.label, found, &[asked.baseline, asked.candidate])
}
