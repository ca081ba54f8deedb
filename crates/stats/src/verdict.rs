//! Converts an interval to a verdict: better, worse, equivalent or inconclusive. Also computes the number of
//! blocks needed to find a difference.
//!
//! This module does not know units or metrics, and does not invalidate results. Invalidity is a finding about
//! how a result was measured, which no interval can show.

use crate::looks::BLOCKS_MIN;
use crate::{Estimate, Rule, student};

/// Maximum result of [`blocks_for`]. A larger number is not practical.
pub const BLOCKS_NEEDED_MAX: u32 = 10_000;

/// Distance from 1 that is rounding error of logarithms.
const CONSTANT_ROUNDING: f64 = 1e-9;

/// Verdict on a variant against its baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The interval is entirely on the good side of 1.
    Better,
    /// The interval is entirely on the bad side of 1.
    Worse,
    /// The interval is entirely within the margin: no difference that matters.
    Equivalent,
    /// None of the others.
    Inconclusive,
}

/// Whether higher or lower values of a metric are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Throughput.
    HigherIsBetter,
    /// Latency, CPU per request, memory, bytes.
    LowerIsBetter,
}

/// Returns the verdict for an estimate.
///
/// `margin` is the smallest difference that matters, as a share (0.03 is 3 %). It reaches from 1/(1 + margin)
/// to 1 + margin, symmetric on the log scale. An interval within it is `Equivalent` *even if it excludes 1*:
/// the difference is then certain, but certainly too small to matter. Otherwise an interval that excludes 1
/// is `Better` or `Worse`, and all others are `Inconclusive`, as is everything from fewer than [`BLOCKS_MIN`]
/// blocks. With a margin of 0 (or negative, or NaN) nothing is `Equivalent`.
///
/// `Equivalent` is the two one-sided tests of Schuirmann (1987) with the whole interval instead of one of 1 −
/// 2α. This is stricter than necessary, so that one interval supports every verdict.
pub fn judge(estimate: &Estimate, margin: f64, direction: Direction) -> Verdict {
    let Estimate {
        blocks, low, high, ..
    } = *estimate;
    of_interval(blocks, (low, high), margin, direction)
}

/// Returns the verdict if all blocks gave the same `ratio`, as [`judge`] for an interval without width.
///
/// Such a metric is deterministic (bytes of a response), or coarser than its noise. More blocks would give
/// the same ratio, so the first look decides. A ratio of 1 is no difference, and with a margin of 0 it has no
/// verdict.
pub fn judge_constant(ratio: f64, blocks: u32, margin: f64, direction: Direction) -> Verdict {
    let ratio = if (ratio - 1.0).abs() <= CONSTANT_ROUNDING {
        1.0
    } else {
        ratio
    };
    of_interval(blocks, (ratio, ratio), margin, direction)
}

fn of_interval(blocks: u32, (low, high): (f64, f64), margin: f64, direction: Direction) -> Verdict {
    let (more, less) = match direction {
        Direction::HigherIsBetter => (Verdict::Better, Verdict::Worse),
        Direction::LowerIsBetter => (Verdict::Worse, Verdict::Better),
    };
    if blocks < BLOCKS_MIN {
        Verdict::Inconclusive
    } else if margin > 0.0 && high <= 1.0 + margin && low >= 1.0 / (1.0 + margin) {
        Verdict::Equivalent
    } else if low > 1.0 {
        more
    } else if high < 1.0 {
        less
    } else {
        Verdict::Inconclusive
    }
}

/// Number of blocks needed to find a true difference with probability `power`, for log ratios with a standard
/// deviation of `sd_log`. `ln_ratio` is the natural logarithm of the true ratio.
///
/// ```text
/// the least n with   |ln_ratio| √n / sd_log − t(n) ≥ z(power)
/// ```
/// with the critical t of the rule after n blocks. This is the probability to have found it *by* then,
/// computed for the end of a run only, so the true probability is slightly higher. The normal distribution
/// replaces the non-central t, and `power` is clamped to 0.5 to 0.999. `None` if [`BLOCKS_NEEDED_MAX`] is not
/// enough, and for no difference or a value that is not finite.
pub fn blocks_for(ln_ratio: f64, sd_log: f64, power: f64, rule: &Rule) -> Option<u32> {
    let z = student::normal_quantile(power.clamp(0.5, 0.999));
    let effect = ln_ratio.abs();
    if !(effect > 0.0 && effect.is_finite() && sd_log > 0.0 && sd_log.is_finite()) {
        return None;
    }
    let found = |blocks: u32| {
        let room = |t: f64| effect * f64::from(blocks).sqrt() / sd_log - t;
        rule.forecast_t(blocks).is_some_and(|t| room(t) >= z)
    };
    let all: Vec<u32> = (BLOCKS_MIN..=BLOCKS_NEEDED_MAX).collect();
    all.get(all.partition_point(|blocks| !found(*blocks)))
        .copied()
}

/// Smallest true difference, as the natural logarithm of a ratio, that is found with probability `power` in
/// `blocks` blocks. The inverse of [`blocks_for`]. `None` if the rule has no interval for this number of
/// blocks, without spread, and for a value that is not finite.
pub fn effect_found(blocks: u32, sd_log: f64, power: f64, rule: &Rule) -> Option<f64> {
    let z = student::normal_quantile(power.clamp(0.5, 0.999));
    let t = if blocks < BLOCKS_MIN {
        None
    } else {
        rule.forecast_t(blocks)
    };
    t.map(|t| (t + z) * sd_log / f64::from(blocks).sqrt())
        .filter(|effect| *effect > 0.0 && effect.is_finite())
}
