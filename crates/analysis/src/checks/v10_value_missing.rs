//! A trial without a value
//!
//! **Seen.** `2 of 12 trials have no throughput; in block 4 nothing was measured, or nothing succeeded`.
//!
//! **Why.** Omitting such blocks would select by outcome.
//!
//! **What to do.** Read the logs. If responses outlast a slice, set `design.slice` to several response times,
//! and `load.timeout` well above it.
//!
//! **Threshold.** One trial.

use model::quantity::many;
use model::{Metric, Quantity, Until, evidence};

use super::finding::{CheckFinding, void, warning};
use super::input::{CheckedRun, CheckedTrial, CheckedVariant};
use super::missing_values::each_missing;
use super::row::{CheckRow, Maker, OFF, Subject, VOID, row};
use crate::capacity::is_erratic;
use crate::only_if;
use crate::sums::merged;
use crate::window::MeasuredWindow;

pub(super) static ROW: CheckRow = row(
    Subject::Work,
    VOID,
    &[Maker::Several(value_missing), Maker::Slice(late_responses)],
)
.alone(OFF);

/// Reports missing values of metrics that are not quantiles. Leaving out such blocks would be a choice by
/// outcome: a variant that fails now and then would be judged only by its good blocks.
fn value_missing(run: &CheckedRun<'_>) -> Vec<CheckFinding> {
    each_missing(run, |variant, metric, first, told| {
        // A capacity limited by the load generator is a lower bound, and not missing.
        only_if(first.sample(metric, variant.index).is_none())?;
        // It was measured but is withheld. The capacity explains why.
        let is_erratic = || run.record().is_some_and(|of| is_erratic(of, variant.index));
        only_if(metric != Metric::Capacity || !is_erratic())?;
        let remedy = "blocks are never dropped because of their result; find out in the logs why the variant fails in some, and run again";
        let nothing = || void(told("nothing was measured, or nothing succeeded"), remedy);
        metric
            .quantile()
            .is_none()
            .then(|| late(variant, metric).unwrap_or_else(nothing))
    })
}

/// Reports responses that came after the window. They are valid, but take longer than a slice.
fn late(variant: &CheckedVariant<'_>, metric: Metric) -> Option<CheckFinding> {
    let is_late = |trial: &&CheckedTrial<'_>| {
        trial
            .measured()
            .all(|slice| slice.counts.successful_in_window == 0)
    };
    let late: Vec<_> = variant.trials.iter().filter(is_late).collect();
    let slices = || late.iter().flat_map(|trial| trial.measured());
    only_if(metric == Metric::Throughput && slices().any(|slice| slice.counts.successful > 0))?;
    let (hit, of) = (late.len(), many(variant.trials.len() as u64, "trial"));
    let window_ns = slices().map(|slice| slice.counts.window_ns).max()?;
    let took_ns = merged(slices().map(|slice| &slice.counts.latency))
        .quantile(0.5)?
        .ns();
    Some(void(
        evidence!("in {hit} of {of} no response came within a window of {window}; half of them took {took} or more";
            window = Quantity::ns(window_ns), took = Quantity::ns(took_ns)),
        "a rate wants several responses of each connection in a window: set design.slice and load.timeout well above what one takes",
    ))
}

/// Reports that all responses of a slice came after its window. They are valid, but give no rate.
fn late_responses(window: &MeasuredWindow<'_>) -> Option<CheckFinding> {
    let counts = &window.slice.counts;
    only_if(window.is_shorter_than_a_response())?;
    only_if(!window.is_too_short() && !window.interrupted)?;
    let took = counts.latency.quantile(0.5)?;
    let evidence = evidence!("no response came within the window of {window}; half of them took {took} or more";
        window = Quantity::ns(counts.window_ns), took = Quantity::ns(took.ns()));
    let remedy = match window.asked.until {
        Until::Elapsed(_) => {
            "there is no throughput of it: load for several times as long as a response takes (--duration)"
        }
        Until::Requests(_) => {
            "there is no throughput of it: send several times as many requests as there are connections (--requests)"
        }
    };
    Some(warning(evidence, remedy))
}
