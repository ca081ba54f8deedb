//! A limit that breaks far below the capacity
//!
//! **Seen.** `api: at 20,100/s a limit is exceeded already, far below the rate at which its windows meet it`.
//!
//! **Why.** Pauses, or nearly 1 % of slow requests, occur at any rate, so p99 < 10 ms is met by chance.
//!
//! **What to do.** Allow more time or failures, or a lower quantile. The curve shows each rate.
//!
//! **Threshold.** A step below `FAR_BELOW = 0.7` of the capacity breaks a limit by itself, with at least
//! `BEYOND_LEAST = 3.0` requests allowed to, in at least `BREAKING_LEAST = 2` processes and half of those
//! with such a step. In fewer the capacity is inconclusive.

use model::{Finding, Quantity, evidence};

use super::Check;
use super::row::{CheckRow, Subject, VOID, row};
use crate::Capacity;

// The thresholds are in `crate::capacity`, which also needs them for the curve.
pub(super) static ROW: CheckRow = row(Subject::Service, VOID, &[]);

/// Reports a variant whose limit breaks far below its capacity, which is then invalid.
pub(crate) fn breaks_far_below(capacity: &Capacity, variant: usize) -> Option<Finding<Check>> {
    let evidence = evidence!("{}: at {breaks_at} a limit is exceeded already, far below the rate at which its windows meet it",
        capacity.variant; breaks_at = Quantity::per_s(capacity.breaks_at_per_s?));
    let remedy = "what misses the limit does not follow the rate, so no rate is its capacity; allow a longer time, or more requests that \
                  miss it: a lower quantile such as p90, or a larger share of failures";
    Some(Finding::void(Check::BreaksFarBelow, evidence, remedy).about([variant]))
}
