//! Throughput that moves in steps
//!
//! **Seen.** `each connection got 4.80 responses in a window, of 100 ms to 102 ms (p10 to p90)`.
//!
//! **Why.** Whether each connection's last response still fits the window changes throughput by a step.
//!
//! **What to do.** Judge latency at a rate (`metric = "p50"`), or lengthen `design.slice`.
//!
//! **Threshold.** A step larger than your margin, while the responses of a window spread by less than
//! `STEPS_SPREAD_MIN = 1.0` of one, and neither side is at its limit.

use model::{Quantity, evidence};

use super::finding::{CheckFinding, warning};
use super::input::{CheckedRun, CheckedVariant};
use super::row::{CheckRow, Maker, Subject, WARNING, row};
use super::waiting_variant::judged;
use crate::only_if;

pub(super) static ROW: CheckRow = row(
    Subject::Service,
    WARNING,
    &[Maker::Each(throughput_in_steps)],
);

/// Minimum spread of the responses of one connection in a window, so that windows cut them at random. In
/// responses: p10 to p90 of one, times the root of their number.
const STEPS_SPREAD_MIN: f64 = 1.0;

/// Reports variants whose connections all begin a window together and get few, equally long responses in it.
/// Throughput then changes by a whole step, depending on whether the last of them arrives in time.
fn throughput_in_steps(run: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    let waiting = judged(run, variant.index)?;
    only_if(!waiting.by_latency)?;
    let (median, (low, high)) = (waiting.median_ms?, waiting.most_ms?);
    let (step, spread) = (
        1.0 / waiting.by_window,
        (high - low) / median * waiting.by_window.sqrt(),
    );
    only_if(step > run.plan.design.margin && spread < STEPS_SPREAD_MIN)?;
    let evidence = evidence!(
        "each connection got {responses} responses in a window, of {low} to {high} (p10 to p90), and all begin a window together: \
         throughput moves in steps of {step}";
        responses = Quantity::number(waiting.by_window), low = Quantity::us(low * 1e3), high = Quantity::us(high * 1e3),
        step = Quantity::share(step));
    let remedy = "a small difference in how long a response takes shows as a whole step or not at all, the same in every block; judge the \
                  response time itself, which is in open loop (`metric = \"p50\"` with a rate)";
    Some(warning(evidence, remedy))
}
