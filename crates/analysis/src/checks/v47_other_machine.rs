//! Records of two machines side by side
//!
//! **Seen.** Only by `proofload history compare`: `the two were not measured on the same machine and
//! software: node v20.20.2 and v22.11.0`.
//!
//! **Why.** Absolute figures depend on the machine. Comparisons within records hold.
//!
//! **What to do.** Make both states variants of one experiment.
//!
//! **Threshold.** Another processor, number of processors, kernel, C library, frequency governor, or version
//! of a runtime; or memory that differs by more than `MEMORY_TOLERANCE = 0.02`.

use model::Finding;

use super::Check;
use super::row::{CheckRow, Subject, VOID, row};

// The threshold is in `crate::across`, which finds the differences.
pub(super) static ROW: CheckRow = row(Subject::Machine, VOID, &[]);

/// Reports that two records come from different machines.
pub(crate) fn other_machine(differences: &[String]) -> Option<Finding<Check>> {
    let evidence = || {
        format!(
            "the two were not measured on the same machine and software: {}",
            differences.join("; ")
        )
    };
    let remedy = "absolute figures of one say nothing beside those of the other; what each found between its own variants stands. To compare two \
                  states of a service, make variants of them and run both here, in one experiment";
    (!differences.is_empty()).then(|| Finding::void(Check::OtherMachine, evidence(), remedy))
}
