//! Never seen steady
//!
//! **Seen.** `not seen steady within the 3.00 s of warm-up that the trials get`.
//!
//! **Why.** The figures may include warm-up.
//!
//! **What to do.** A larger budget, or `design.warmup`.
//!
//! **Threshold.** [No steady state](methodology.md#warm-up) was found, as in at most 13 % of steady series,
//! or too late for the budget.

use model::{Quantity, Until, evidence};

use super::finding::{CheckFinding, warning};
use super::input::{CheckedRun, CheckedVariant};
use super::row::{CheckRow, Maker, Subject, WARNING, row};
use super::trial_change::change_within;
use crate::only_if;
use crate::window::MeasuredWindow;

pub(super) static ROW: CheckRow = row(
    Subject::Service,
    WARNING,
    &[Maker::Whole(never_steady), Maker::Slice(short_window)],
);

/// Reports variants that were not steady in the observed warm-up, except those whose measured slices show the
/// change.
fn never_steady(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let warm_up = run.warm_up.filter(|warm_up| warm_up.measured)?;
    let late = |after: &Option<f64>| after.is_none_or(|after| after > warm_up.seconds);
    let unsteady = |variant: &&CheckedVariant<'_>| {
        // A change within the measured slices is more informative.
        warm_up.steady_after_s.get(variant.index).is_some_and(late)
            && change_within(run, variant).is_none()
    };
    let unsteady = run
        .variants
        .iter()
        .filter(unsteady)
        .map(|variant| (variant.index, variant.name));
    let (about, names): (Vec<usize>, Vec<&str>) = unsteady.unzip();
    let evidence = evidence!("{}: not seen steady within the {warm_up} of warm-up that the trials get", names.join(", ");
        warm_up = Quantity::seconds(warm_up.seconds));
    let remedy = "warm-up may be inside the figures, for all variants alike; give a larger budget, or set design.warmup";
    (!about.is_empty()).then(|| warning(evidence, remedy).about(about))
}

/// Minimum window length. A service has barely begun to warm up in a shorter window.
const WINDOW_MIN_NS: u64 = 1_000_000_000;

/// Reports a slice with a short window.
fn short_window(window: &MeasuredWindow<'_>) -> Option<CheckFinding> {
    let window_ns = window.slice.counts.window_ns;
    only_if(window_ns < WINDOW_MIN_NS && window.has_success() && !window.interrupted)?;
    let evidence = evidence!("the window was {window}"; window = Quantity::ns(window_ns));
    let remedy = match (window.is_too_short(), window.asked.until) {
        (true, Until::Elapsed(_)) => "too short for any rate: load for longer (--duration 10s)",
        (true, Until::Requests(_)) => "too short for any rate: send more requests (--requests)",
        (false, Until::Elapsed(_) | Until::Requests(_)) => {
            "a first impression only: a service has hardly begun to warm up"
        }
    };
    Some(warning(evidence, remedy))
}
