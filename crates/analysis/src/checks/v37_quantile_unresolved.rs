//! Too few requests for the quantile
//!
//! **Seen.** `3 of 10 trials have no p99.9`.
//!
//! **Why.** With fewer than ten requests beyond it, a quantile is chance. Requests without a response give a
//! lower bound.
//!
//! **What to do.** A lower quantile. Too few: a higher `design.rate`. A bound: a longer `load.timeout`, or a
//! lower `design.rate`.
//!
//! **Threshold.** 10 / (1 − q) requests in each trial: 1,000 for p99, 10,000 for p99.9
//! ([details](methodology.md#latency)).

use model::quantity::{count as counted_as, many};

use super::finding::{CheckFinding, void};
use super::input::CheckedRun;
use super::missing_values::each_missing;
use super::row::{CheckRow, Maker, OFF, Subject, VOID, row};

pub(super) static ROW: CheckRow = row(
    Subject::Design,
    VOID,
    &[Maker::Several(quantile_unresolved)],
)
.alone(OFF);

/// Reports missing values of a quantile, because there are too few requests for it, or it is only a bound.
fn quantile_unresolved(run: &CheckedRun<'_>) -> Vec<CheckFinding> {
    each_missing(run, |variant, metric, first, told| {
        let q = metric.quantile()?;
        let bounded = first.sample(metric, variant.index).is_some();
        let figures = first.variants.get(variant.index).and_then(Option::as_ref);
        let count = figures.map_or(0, |figures| figures.response_times);
        let wants = counted_as((10.0 / (1.0 - q)).round() as u64);
        let are = if count == 1 { "is" } else { "are" };
        let too_few = format!("{} {are} too few, it wants {wants}", many(count, "request"));
        let why = if bounded {
            "requests without response leave only a lower bound of it"
        } else {
            &too_few
        };
        let remedy = if bounded {
            "choose a lower quantile, a longer load.timeout, or a lower design.rate"
        } else {
            "choose a lower quantile or a higher design.rate, or leave out design.slices and design.slice"
        };
        Some(void(told(why), remedy))
    })
}
