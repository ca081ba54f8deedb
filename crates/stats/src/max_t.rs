//! Several candidates against one baseline in the same blocks: intervals that hold for all together.
//!
//! Candidates of a block share its baseline, so their log ratios go together, and Bonferroni, which must reckon with the
//! worst, asks for too much. Flipping the sign of a *whole block* keeps what its candidates share: where nothing differs, a
//! block's log ratios are as likely to be all turned round, so each of the 2^n ways to flip was as likely as what was seen.
//!
//! Must not: be read at more than one number of blocks, fixed beforehand (looks are for [`crate::Looks`]), and must not be used
//! where a block lacks a candidate.

use crate::looks::{ALPHA, COMPARISONS_MAX};
use crate::{Resampling, plain_t};

/// Up to so many blocks all 2^n ways to flip are gone through; beyond, as many as the [`Resampling`] says are drawn.
pub const EXACT_BLOCKS_MAX: u32 = 12;

/// Fewer blocks have too few ways to flip for joint intervals: with 7 those of simulated runs held in 94.1 % only.
pub const JOINT_BLOCKS_MIN: u32 = 8;

const PURPOSE: [u8; 8] = *b"flipping";
/// Two statistics, both from 0 to 1, that differ by no more count as equal: the error is to the safe side.
const ROUNDING: f64 = 1e-12;

/// The critical t that holds for all candidates together at one look, to be given to [`Estimate::of`](crate::Estimate::of) for each:
/// never less than what holds for one alone. `None` below [`JOINT_BLOCKS_MIN`] blocks, where candidates share the α instead, and
/// where none varies. `log_ratios` has one row a block, one column a candidate (natural logarithm, candidate over baseline).
///
/// It is the 1 − α quantile of the largest |t|, standardised anew for each flip, over flips of the *residuals* d − mean, each
/// candidate's own (the wild bootstrap with fair signs, Liu 1988). Not of d itself: where all candidates differ from the baseline,
/// flips of d move all columns alike, and joint intervals of ten candidates then miss a truth in 11 to 20 instead of 5 of 100 runs.
/// Source: Westfall & Young, *Resampling-Based Multiple Testing*, 1993; flips: Fisher 1935; that what was seen is one of the drawn:
/// Phipson & Smyth 2010.
///
/// `None` also for too few or many resamples, for no candidate or more than [`COMPARISONS_MAX`], when rows differ in length, and with a value
/// that is not finite.
pub fn joint_t(log_ratios: &[Vec<f64>], resampling: Resampling) -> Option<f64> {
    let blocks = u32::try_from(log_ratios.len()).ok().filter(|blocks| *blocks >= JOINT_BLOCKS_MIN)?;
    let mut draws = resampling.draws(PURPOSE)?;
    let candidates = log_ratios.first()?.len();
    let is_whole = |row: &Vec<f64>| row.len() == candidates && row.iter().all(|value| value.is_finite());
    if !(1..=COMPARISONS_MAX as usize).contains(&candidates) || !log_ratios.iter().all(is_whole) {
        return None;
    }
    let columns: Vec<Vec<f64>> = (0..candidates).map(|place| residuals(log_ratios, place)).collect();
    let exact = blocks <= EXACT_BLOCKS_MAX;
    // All ways to flip but their mirror images, which have the same |t|; or as many as are drawn.
    let total = if exact { 1 << (blocks - 1) } else { resampling.resamples as usize };
    let mut signs = vec![1.0; log_ratios.len()];
    let largest = |flip: usize| {
        if exact {
            // The last block keeps its sign: no bit of a number below 2^(n − 1) stands there.
            signs.iter_mut().enumerate().for_each(|(bit, sign)| *sign = [1.0, -1.0][flip >> bit & 1]);
        } else {
            draws.signs(&mut signs);
        }
        let correlation =
            |column: &Vec<f64>| column.iter().zip(&signs).map(|(entry, sign)| sign * entry).sum::<f64>();
        columns.iter().map(|column| correlation(column).abs()).fold(0.0, f64::max)
    };
    let mut largest: Vec<f64> = (0..total).map(largest).collect();
    largest.sort_by(f64::total_cmp);
    // The least that at most a share α of the flips exceeds. What was seen is one of the ways, also where the others are drawn.
    let ways = total + usize::from(!exact);
    let rank = ((1.0 - ALPHA) * ways as f64 * (1.0 - ROUNDING)).ceil() as usize;
    let joint = largest.get(rank.max(1) - 1).and_then(|r| t_of(*r, blocks)).filter(|t| *t > 0.0)?;
    Some(joint.max(plain_t(blocks, 1.0 - ALPHA)?))
}

/// A column less its mean, scaled to a length of 1/√n, so that |Σ sign × entry| is |S|/√(n V), from 0 to 1: |t| by another name,
/// because t² = (n − 1) r²/(1 − r²) rises with r and is the same function for every column. All 0 where it does not vary. In units
/// of the largest on the way, so that sums cannot overflow.
fn residuals(log_ratios: &[Vec<f64>], candidate: usize) -> Vec<f64> {
    let n = log_ratios.len() as f64;
    let scaled = |values: Vec<f64>| {
        let largest = values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
        values
            .into_iter()
            .map(|value| if largest > 0.0 { value / largest } else { 0.0 })
            .collect::<Vec<f64>>()
    };
    let seen = scaled(log_ratios.iter().map(|row| row[candidate]).collect());
    let mean = seen.iter().sum::<f64>() / n;
    let residual = |value: &f64| if (value - mean).abs() <= ROUNDING { 0.0 } else { value - mean };
    let rest = scaled(seen.iter().map(residual).collect());
    let length = (n * rest.iter().map(|value| value * value).sum::<f64>()).sqrt();
    rest.into_iter().map(|value| if length > 0.0 { value / length } else { 0.0 }).collect()
}

/// |t| of |S|/√(n V); `None` where it is infinite.
fn t_of(r: f64, blocks: u32) -> Option<f64> {
    let rest = 1.0 - r * r;
    (rest > ROUNDING).then(|| (f64::from(blocks - 1) * r * r / rest).sqrt())
}
