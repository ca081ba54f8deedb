//! From an interval to a word: better, worse, equivalent or inconclusive, and how many blocks it takes to find a difference.
//!
//! Must not: know units or metrics, or void anything. That a run is void is a finding about how it was measured, which
//! no interval can show.

use crate::looks::BLOCKS_MIN;
use crate::{Estimate, Rule, student};

/// Most blocks [`blocks_for`] speaks of; beyond it the honest answer is "not this way".
pub const BLOCKS_NEEDED_MAX: u32 = 10_000;

/// Distance from 1 that rounding of logarithms explains.
const CONSTANT_ROUNDING: f64 = 1e-9;

/// What may be said about a variant against its baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The interval lies wholly on the good side of 1.
    Better,
    /// The interval lies wholly on the bad side of 1.
    Worse,
    /// The interval lies wholly within the margin: no difference that matters.
    Equivalent,
    /// None of these.
    Inconclusive,
}

/// Which way a metric is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Throughput.
    HigherIsBetter,
    /// Latency, CPU per request, memory, bytes.
    LowerIsBetter,
}

/// The verdict an estimate allows.
///
/// `margin` is the smallest difference that matters, as a share (0.03 is 3 %); it reaches from 1/(1 + margin) to 1 + margin,
/// the same distance both ways on the log scale. An interval within it is `Equivalent` *even where it excludes 1*: the
/// difference is then certain and certainly smaller than what matters. Else an interval that excludes 1 is `Better` or
/// `Worse`, and all the rest is `Inconclusive`, as is everything from fewer than [`BLOCKS_MIN`] blocks. A margin of 0
/// (or less, or no number) is never undercut, so nothing is `Equivalent` then.
///
/// `Equivalent` is the two one-sided tests of Schuirmann (1987) with the whole interval instead of one of 1 − 2α: stricter
/// than needed, so that one interval carries every verdict.
pub fn judge(estimate: &Estimate, margin: f64, direction: Direction) -> Verdict {
    let Estimate { blocks, low, high, .. } = *estimate;
    of_interval(blocks, (low, high), margin, direction)
}

/// The verdict of blocks that all gave the same `ratio`: as [`judge`] for an interval of no width.
///
/// Such a metric is deterministic (bytes of a response), or coarser than its noise. More blocks would give the same ratio again, so
/// the first look decides. A ratio of 1 is no difference, and with a margin of 0 there is no verdict for it.
pub fn judge_constant(ratio: f64, blocks: u32, margin: f64, direction: Direction) -> Verdict {
    let ratio = if (ratio - 1.0).abs() <= CONSTANT_ROUNDING { 1.0 } else { ratio };
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

/// How many blocks it takes to find a true difference with probability `power`, for log ratios with a standard deviation of
/// `sd_log`: `ln_ratio` is the natural logarithm of the true ratio.
///
/// ```text
/// the least n with   |ln_ratio| √n / sd_log − t(n) ≥ z(power)
/// ```
/// with the critical t that the rule has after n blocks: the chance to have found it *by* then, for the end of a run only, so a
/// little more than that in fact. The normal distribution stands in for the non-central t, and `power` is kept within 0.5 to 0.999.
/// `None` when even [`BLOCKS_NEEDED_MAX`] would not do, and for no difference or no number.
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
    all.get(all.partition_point(|blocks| !found(*blocks))).copied()
}

/// The least true difference, as the natural logarithm of a ratio, that is found with probability `power` in `blocks` blocks:
/// [`blocks_for`] the other way round. `None` where the rule has no interval for so few blocks, and for no spread or no number.
pub fn effect_found(blocks: u32, sd_log: f64, power: f64, rule: &Rule) -> Option<f64> {
    let z = student::normal_quantile(power.clamp(0.5, 0.999));
    let t = if blocks < BLOCKS_MIN { None } else { rule.forecast_t(blocks) };
    t.map(|t| (t + z) * sd_log / f64::from(blocks).sqrt())
        .filter(|effect| *effect > 0.0 && effect.is_finite())
}
