//! Joint intervals for several candidates against one baseline in the same blocks.
//!
//! Candidates of a block share its baseline, so their log ratios are correlated, and Bonferroni, which
//! assumes the worst case, is too strict. Flipping the sign of a *whole block* preserves that correlation.
//! Without a difference, a block's log ratios are equally likely with all signs reversed, so each of the 2^n
//! ways to flip is as likely as the data.
//!
//! The joint interval is for a single look at a number of blocks fixed beforehand (looks are for
//! [`crate::Looks`]). Every block must have all candidates.

use crate::looks::{ALPHA, COMPARISONS_MAX};
use crate::{Resampling, plain_t};

/// Up to this number of blocks all 2^n ways to flip are enumerated. Beyond it, flips are drawn as specified
/// by [`Resampling`].
pub const EXACT_BLOCKS_MAX: u32 = 12;

/// Minimum number of blocks for joint intervals. Fewer have too few ways to flip: with 7, the intervals of
/// simulated runs held in only 94.1 %.
pub const JOINT_BLOCKS_MIN: u32 = 8;

const PURPOSE: [u8; 8] = *b"flipping";
/// Difference up to which two statistics, both from 0 to 1, count as equal. The error is on the safe side.
const ROUNDING: f64 = 1e-12;

/// Critical t for all candidates together at one look, to be passed to [`Estimate::of`](crate::Estimate::of)
/// for each. It is at least the critical t for a single candidate. `log_ratios` has one row per block and one
/// column per candidate (natural logarithm, candidate over baseline). `None` below [`JOINT_BLOCKS_MIN`]
/// blocks, where candidates share α instead, and if no candidate varies.
///
/// It is the 1 − α quantile of the largest |t|, recomputed for each flip, over flips of the *residuals* d −
/// mean of each candidate (the wild bootstrap with fair signs, Liu 1988). The log ratios d are not flipped
/// themselves: if all candidates differ from the baseline, flips of d move all columns alike, and joint
/// intervals of ten candidates then miss a true value in 11 to 20 instead of 5 of 100 runs. Sources: Westfall
/// & Young, *Resampling-Based Multiple Testing*, 1993; flips: Fisher 1935; counting the data as one of the
/// draws: Phipson & Smyth 2010.
///
/// `None` also for too few or too many resamples, for no candidate or more than [`COMPARISONS_MAX`], if rows
/// differ in length, and with a value that is not finite.
pub fn joint_t(log_ratios: &[Vec<f64>], resampling: Resampling) -> Option<f64> {
    let blocks = u32::try_from(log_ratios.len())
        .ok()
        .filter(|blocks| *blocks >= JOINT_BLOCKS_MIN)?;
    let mut draws = resampling.draws(PURPOSE)?;
    let candidates = log_ratios.first()?.len();
    let is_whole =
        |row: &Vec<f64>| row.len() == candidates && row.iter().all(|value| value.is_finite());
    if !(1..=COMPARISONS_MAX as usize).contains(&candidates) || !log_ratios.iter().all(is_whole) {
        return None;
    }
    let columns: Vec<Vec<f64>> = (0..candidates)
        .map(|place| residuals(log_ratios, place))
        .collect();
    let exact = blocks <= EXACT_BLOCKS_MAX;
    // All ways to flip without mirror images, which have the same |t|, or the given number of draws.
    let total = if exact {
        1 << (blocks - 1)
    } else {
        resampling.resamples as usize
    };
    let mut signs = vec![1.0; log_ratios.len()];
    let largest = |flip: usize| {
        if exact {
            // The last block keeps its sign, because numbers below 2^(n − 1) do not have its bit.
            signs
                .iter_mut()
                .enumerate()
                .for_each(|(bit, sign)| *sign = [1.0, -1.0][flip >> bit & 1]);
        } else {
            draws.signs(&mut signs);
        }
        let correlation = |column: &Vec<f64>| {
            column
                .iter()
                .zip(&signs)
                .map(|(entry, sign)| sign * entry)
                .sum::<f64>()
        };
        columns
            .iter()
            .map(|column| correlation(column).abs())
            .fold(0.0, f64::max)
    };
    let mut largest: Vec<f64> = (0..total).map(largest).collect();
    largest.sort_by(f64::total_cmp);
    // The smallest value exceeded by at most a share α of the flips. The data count as one flip, also if
    // flips are drawn.
    let ways = total + usize::from(!exact);
    let rank = ((1.0 - ALPHA) * ways as f64 * (1.0 - ROUNDING)).ceil() as usize;
    let joint = largest
        .get(rank.max(1) - 1)
        .and_then(|r| t_of(*r, blocks))
        .filter(|t| *t > 0.0)?;
    Some(joint.max(plain_t(blocks, 1.0 - ALPHA)?))
}

/// A column minus its mean, scaled to a length of 1/√n, so that |Σ sign × entry| is |S|/√(n V), from 0 to 1.
/// This is equivalent to |t|, because t² = (n − 1) r²/(1 − r²) increases with r and is the same function for
/// every column. All 0 if the column does not vary. Intermediate values are in units of the largest, so that
/// sums cannot overflow.
fn residuals(log_ratios: &[Vec<f64>], candidate: usize) -> Vec<f64> {
    let n = log_ratios.len() as f64;
    let scaled = |values: Vec<f64>| {
        let largest = values
            .iter()
            .fold(0.0, |largest: f64, value| largest.max(value.abs()));
        values
            .into_iter()
            .map(|value| if largest > 0.0 { value / largest } else { 0.0 })
            .collect::<Vec<f64>>()
    };
    let seen = scaled(log_ratios.iter().map(|row| row[candidate]).collect());
    let mean = seen.iter().sum::<f64>() / n;
    let residual = |value: &f64| {
        if (value - mean).abs() <= ROUNDING {
            0.0
        } else {
            value - mean
        }
    };
    let rest = scaled(seen.iter().map(residual).collect());
    let length = (n * rest.iter().map(|value| value * value).sum::<f64>()).sqrt();
    rest.into_iter()
        .map(|value| if length > 0.0 { value / length } else { 0.0 })
        .collect()
}

/// Converts |S|/√(n V) to |t|. `None` if it is infinite.
fn t_of(r: f64, blocks: u32) -> Option<f64> {
    let rest = 1.0 - r * r;
    (rest > ROUNDING).then(|| (f64::from(blocks - 1) * r * r / rest).sqrt())
}
