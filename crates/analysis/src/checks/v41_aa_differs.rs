//! The baseline differs from its own copy
//!
//! **Seen.** `none against itself: throughput differs by +4.1 % (+1.2 % to +7.1 %), and the two are the
//! same`.
//!
//! **Why.** With `aa = true` the baseline runs twice per block. If equal services differ, any difference is
//! doubtful.
//!
//! **What to do.** Find what the copies share (a port, a file, a cache), or use another machine or time.
//!
//! **Threshold.** The interval at 99 % excludes 1: by chance in one of a hundred experiments.

use model::{Finding, evidence, quantity};

use super::Check;
use super::row::{CheckRow, Subject, VOID, row};
use crate::AaCheck;

pub(super) static ROW: CheckRow = row(Subject::Design, VOID, &[]);

/// Reports that the baseline and its copy differ. Called with the conclusion, which has the interval.
pub(crate) fn aa_differs(aa: &AaCheck) -> Option<Finding<Check>> {
    let estimate = aa.estimate.as_ref().filter(|_| aa.differs)?;
    let (label, metric) = (&aa.label, aa.metric.name());
    Some(Finding::void(
        Check::AaDiffers,
        evidence!(
            "{label}: {metric} differs by {}, and the two are the same",
            quantity::change_told(estimate)
        ),
        "the machine makes up differences of this size, or the copies share something that the one takes from the other (a port, a file, a \
         cache); no difference of this run may be believed",
    ))
}
