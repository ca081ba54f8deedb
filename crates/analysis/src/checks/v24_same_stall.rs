//! The same stall in every response
//!
//! **Seen.** `half of the responses took 41.2 ms and more in the one, 41.1 ms in the other`, while the
//! services were hardly busy.
//!
//! **Why.** A pause is compared with itself: 40 ms is Nagle's algorithm with a delayed acknowledgement; a
//! round time, a timer.
//!
//! **What to do.** 40 ms: set TCP_NODELAY, or write head and body at once. A round time (100 ms, 1 s): find
//! the timer, poll, batch or retry.
//!
//! **Threshold.** Both medians in `DELAYED_ACK_MS = (38.0, 44.0)`, or within `STALL_APART_MAX = 0.01` of each
//! other and at most `ROUND_LATE_MAX = 0.03` above a round time.

use model::{Quantity, evidence};
use plan::Comparison;

use super::finding::{CheckFinding, void};
use super::input::CheckedRun;
use super::row::{CheckRow, Maker, OFF, Subject, VOID, row};
use super::waiting_variant::{WaitingVariant, judged};
use crate::only_if;

pub(super) static ROW: CheckRow = row(Subject::Network, VOID, &[Maker::Pair(same_stall)])
    .of_pairs()
    .alone(OFF);

/// Delay of Nagle's algorithm with a delayed acknowledgement, in milliseconds: 40 on Linux, plus the rest of
/// the response.
const DELAYED_ACK_MS: (f64, f64) = (38.0, 44.0);
/// Typical timer durations in programs, in milliseconds. Timers never fire early.
const ROUND_MS: [f64; 8] = [100.0, 200.0, 250.0, 500.0, 1000.0, 2000.0, 3000.0, 5000.0];
/// Maximum relative delay of a timer.
const ROUND_LATE_MAX: f64 = 0.03;
/// Maximum difference between the medians of two variants that wait for the same.
const STALL_APART_MAX: f64 = 0.01;
/// Maximum difference between throughput and connections over the median response time, if nearly all
/// connections wait for exactly that time. The responses cut off at the end of a window are counted
/// separately.
const STALL_LITTLE_MAX: f64 = 0.1;

pub(super) fn same_stall(run: &CheckedRun<'_>, asked: &Comparison) -> Option<CheckFinding> {
    let (baseline, candidate) = (judged(run, asked.baseline)?, judged(run, asked.candidate)?);
    let (one, other) = (stall_ms(baseline)?, stall_ms(candidate)?);
    let within = |ms: f64| (DELAYED_ACK_MS.0..=DELAYED_ACK_MS.1).contains(&ms);
    let apart = (one / other).ln().abs();
    let round = ROUND_MS
        .iter()
        .find(|round| (**round..=**round * (1.0 + ROUND_LATE_MAX)).contains(&one));
    let nagle = within(one) && within(other);
    only_if(nagle || round.is_some() && apart <= STALL_APART_MAX)?;
    let remedy = if nagle {
        "40 ms is what Nagle's algorithm and a delayed acknowledgement take together: a response is written in two pieces, and the second \
         waits until the first is acknowledged. Set TCP_NODELAY in the service, or write head and body at once; until then this compares \
         one pause with itself"
    } else {
        "a time as round as this is a timer's (a sleep, a poll, a batch, a retry); until it is gone this compares one pause with itself"
    };
    let evidence = evidence!(
        "half of the responses took {baseline_took} and more in the one, {candidate_took} in the other, with services that were busy for \
         {baseline_busy} and {candidate_busy} cores: both waited for the same";
        baseline_took = Quantity::us(one * 1e3), candidate_took = Quantity::us(other * 1e3),
        baseline_busy = Quantity::number(baseline.cores), candidate_busy = Quantity::number(candidate.cores));
    Some(void(evidence, remedy))
}

/// The median response time, if nearly every request takes exactly that time, as throughput confirms.
fn stall_ms(waiting: &WaitingVariant) -> Option<f64> {
    // Connections begin a window together, and the response cut off at its end is not counted: up to one
    // per connection is missing.
    let alike = |ms: &f64| {
        let counted = waiting.per_s * ms / 1e3 / f64::from(waiting.under_way);
        let step = counted / waiting.by_window;
        (1.0 - STALL_LITTLE_MAX - step..=1.0 + STALL_LITTLE_MAX).contains(&counted)
    };
    waiting.median_ms.filter(alike)
}
