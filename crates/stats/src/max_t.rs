//! Several candidates against one baseline in the same blocks: p-values and intervals that hold for all together.
//!
//! Candidates of a block share its baseline, so their log ratios go together, and Bonferroni, which must reckon with the
//! worst, asks for too much. Flipping the sign of a *whole block* keeps what its candidates share: where nothing differs, a
//! block's log ratios are as likely to be all turned round, so each of the 2^n ways to flip was as likely as what was seen.
//!
//! Must not: be read at more than one number of blocks, fixed beforehand (looks are for [`crate::Looks`]), and must not be used
//! where a block lacks a candidate.

use crate::estimate::blocks as checked;
use crate::resampling::Draws;
use crate::student::check_alpha;
use crate::{ALPHA, COMPARISONS_MAX, Error, Resampling, plain_t};

/// Up to so many blocks all 2^n ways to flip are gone through; beyond, as many as the [`Resampling`] says are drawn.
pub const EXACT_BLOCKS_MAX: u32 = 12;

/// Fewer blocks have too few ways to flip for joint intervals: with 7 those of simulated runs held in 94.1 % only.
pub const JOINT_BLOCKS_MIN: u32 = 8;

const PURPOSE: [u8; 8] = *b"flipping";
/// Two statistics, both from 0 to 1, that differ by no more count as equal: the error is to the safe side.
const ROUNDING: f64 = 1e-12;

/// What all candidates together show.
#[derive(Clone, Debug, PartialEq)]
pub struct MaxT {
    /// Blocks it rests on.
    pub blocks: u32,
    /// One for each candidate, in the order of the columns.
    pub candidates: Vec<Adjusted>,
    /// The critical t for simultaneous intervals, to be given to [`Estimate::of`](crate::Estimate::of) for each candidate.
    /// `None` when no candidate varies, or α is less than the 2/2^n that n blocks can tell (for 0.05: below 6 blocks).
    pub critical_t: Option<f64>,
    /// Whether all ways to flip were gone through, so that the p-values are exact.
    pub exact: bool,
}

/// One candidate among several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adjusted {
    /// |Mean| over its standard error, s with n − 1. `None` when all blocks gave the same ratio.
    pub t: Option<f64>,
    /// p-value by comparison with the largest |t| of all candidates.
    pub single_step: f64,
    /// p-value by comparison with the largest |t| of this candidate and all with a smaller |t|; never above `single_step`.
    pub step_down: f64,
}

/// The critical t that holds for all candidates together at one look, for rows as [`max_t`] takes them: never less than what
/// holds for one alone. `None` below [`JOINT_BLOCKS_MIN`] blocks, where candidates share the α instead, and where none varies.
///
/// # Errors
/// As [`max_t`].
pub fn joint_t(log_ratios: &[Vec<f64>], resampling: Resampling) -> Result<Option<f64>, Error> {
    let blocks = u32::try_from(log_ratios.len()).unwrap_or(u32::MAX);
    if blocks < JOINT_BLOCKS_MIN {
        return Ok(None);
    }
    let Some(joint) = max_t(log_ratios, ALPHA, resampling)?.critical_t else { return Ok(None) };
    Ok(Some(joint.max(plain_t(blocks, 1.0 - ALPHA)?)))
}

/// Sign-flip max-T over `log_ratios`: one row a block, one column a candidate (natural logarithm, candidate over baseline).
///
/// The statistic is |t|, standardised anew for each flip. With k of N flips (as seen included) in which the largest is at
/// least as large as the one seen, p = k/N where all flips are gone through and (1 + k)/(1 + B) where B are drawn. Step-down:
/// candidates in falling order of |t|, the largest taken over this and all later ones, p never below the one before. Both
/// hold the chance of *any* false rejection at α whichever candidates truly differ, where noise is symmetric.
/// Source: Westfall & Young, *Resampling-Based Multiple Testing*, 1993, algorithms 2.5 and 2.8; flips: Fisher 1935; the +1:
/// Phipson & Smyth 2010.
///
/// `critical_t` is the 1 − α quantile of the largest |t| over flips of the *residuals* d − mean, each candidate's own (the
/// wild bootstrap with fair signs, Liu 1988). Not of d itself: where all candidates differ from the baseline, flips of d
/// move all columns alike, and joint intervals of ten candidates then miss a truth in 11 to 20 instead of 5 of 100 runs.
/// The intervals are approximate where the p-values are exact, and the two may disagree next to α.
///
/// # Errors
/// [`Error::Alpha`], [`Error::Resamples`], [`Error::TooFewBlocks`] below 2, [`Error::Comparisons`] for no candidate or more than
/// [`COMPARISONS_MAX`], [`Error::Cells`] when rows differ in length, [`Error::NotFinite`] with the block's index.
pub fn max_t(log_ratios: &[Vec<f64>], alpha: f64, resampling: Resampling) -> Result<MaxT, Error> {
    check_alpha(alpha)?;
    let draws = resampling.draws(PURPOSE)?;
    let blocks = check(log_ratios)?;
    let mut flips = Flips::new(blocks, resampling.resamples, draws);
    let (seen, rest) = (Columns::of(log_ratios), Columns::of(&residuals(log_ratios)));
    let mut counts = Counts::new(&seen);
    let mut largest = Vec::with_capacity(flips.total);
    let mut correlations = vec![0.0; seen.candidates];
    while let Some(signs) = flips.next() {
        seen.correlations(signs, &mut correlations);
        counts.add(&correlations);
        rest.correlations(signs, &mut correlations);
        largest.push(correlations.iter().copied().fold(0.0, f64::max));
    }
    let exact = flips.exact;
    let candidates = counts.adjusted(|count| p_value(count, flips.total, exact), blocks, &rest);
    let critical_t = critical_t(largest, blocks, alpha, exact);
    Ok(MaxT { blocks, candidates, critical_t, exact })
}

fn check(log_ratios: &[Vec<f64>]) -> Result<u32, Error> {
    let candidates = log_ratios.first().map_or(0, Vec::len);
    let blocks = u32::try_from(log_ratios.len()).unwrap_or(u32::MAX);
    if blocks < 2 {
        return Err(Error::TooFewBlocks { blocks, least: 2 });
    }
    if candidates == 0 || candidates > COMPARISONS_MAX as usize {
        let comparisons = u32::try_from(candidates).unwrap_or(u32::MAX);
        return Err(Error::Comparisons { comparisons, most: COMPARISONS_MAX });
    }
    for (block, row) in log_ratios.iter().enumerate() {
        if row.len() != candidates {
            return Err(Error::Cells { block, cells: row.len(), expected: candidates });
        }
        if let Err(Error::NotFinite { value, .. }) = checked(row, 0) {
            return Err(Error::NotFinite { index: block, value });
        }
    }
    Ok(blocks)
}

/// The log ratios less their column's mean; 0 where that is only rounding. In units of the column's largest, which the
/// statistic does not see, so that sums cannot overflow.
fn residuals(log_ratios: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n = log_ratios.len() as f64;
    let mut rest = log_ratios.to_vec();
    for candidate in 0..rest[0].len() {
        let largest = largest(log_ratios, candidate);
        if largest == 0.0 {
            continue;
        }
        let mean = log_ratios.iter().map(|row| row[candidate] / largest).sum::<f64>() / n;
        for (row, seen) in rest.iter_mut().zip(log_ratios) {
            let residual = seen[candidate] / largest - mean;
            row[candidate] = if residual.abs() <= ROUNDING { 0.0 } else { residual };
        }
    }
    rest
}

fn largest(rows: &[Vec<f64>], candidate: usize) -> f64 {
    rows.iter().map(|row| row[candidate].abs()).fold(0.0, f64::max)
}

/// Columns scaled to a length of 1/√n, so that |Σ sign × entry| is |S|/√(n V), from 0 to 1: |t| by another name, because
/// t² = (n − 1) r²/(1 − r²) rises with r and is the same function for every column. A column of zeros stays one.
struct Columns {
    candidates: usize,
    rows: Vec<Vec<f64>>,
}

impl Columns {
    fn of(rows: &[Vec<f64>]) -> Self {
        let (n, candidates) = (rows.len() as f64, rows[0].len());
        let mut scaled = rows.to_vec();
        for candidate in 0..candidates {
            let largest = largest(rows, candidate);
            let square: f64 = rows.iter().map(|row| (row[candidate] / largest).powi(2)).sum();
            let length = (n * square).sqrt();
            for row in &mut scaled {
                row[candidate] = if largest > 0.0 { row[candidate] / largest / length } else { 0.0 };
            }
        }
        Self { candidates, rows: scaled }
    }

    fn varies(&self, candidate: usize) -> bool {
        self.rows.iter().any(|row| row[candidate] != 0.0)
    }

    fn correlations(&self, signs: &[f64], into: &mut [f64]) {
        into.fill(0.0);
        for (row, sign) in self.rows.iter().zip(signs) {
            into.iter_mut().zip(row).for_each(|(sum, entry)| *sum += sign * entry);
        }
        into.iter_mut().for_each(|sum| *sum = sum.abs());
    }
}

/// All ways to flip but their mirror images, which have the same |t|; or as many as are drawn.
struct Flips {
    signs: Vec<f64>,
    done: usize,
    total: usize,
    exact: bool,
    draws: Draws,
}

impl Flips {
    fn new(blocks: u32, resamples: u32, draws: Draws) -> Self {
        let exact = blocks <= EXACT_BLOCKS_MAX;
        let total = if exact { 1 << (blocks - 1) } else { resamples as usize };
        Self { signs: vec![1.0; blocks as usize], done: 0, total, exact, draws }
    }

    fn next(&mut self) -> Option<&[f64]> {
        if self.done == self.total {
            return None;
        }
        if self.exact {
            // The last block keeps its sign: no bit of a number below 2^(n − 1) stands there.
            for (bit, sign) in self.signs.iter_mut().enumerate() {
                *sign = if self.done >> bit & 1 == 1 { -1.0 } else { 1.0 };
            }
        } else {
            self.draws.signs(&mut self.signs);
        }
        self.done += 1;
        Some(&self.signs)
    }
}

/// How many flips reach what was seen, for each candidate.
struct Counts {
    seen: Vec<f64>,
    /// Columns in falling order of what was seen.
    order: Vec<usize>,
    single: Vec<usize>,
    down: Vec<usize>,
}

impl Counts {
    fn new(columns: &Columns) -> Self {
        let mut seen = vec![0.0; columns.candidates];
        columns.correlations(&vec![1.0; columns.rows.len()], &mut seen);
        let mut order: Vec<usize> = (0..seen.len()).collect();
        order.sort_by(|&a, &b| seen[b].total_cmp(&seen[a]));
        Self { order, single: vec![0; seen.len()], down: vec![0; seen.len()], seen }
    }

    fn add(&mut self, flipped: &[f64]) {
        let mut largest = 0.0_f64;
        for &candidate in self.order.iter().rev() {
            largest = largest.max(flipped[candidate]);
            self.down[candidate] += usize::from(largest >= self.seen[candidate] - ROUNDING);
        }
        for (count, seen) in self.single.iter_mut().zip(&self.seen) {
            *count += usize::from(largest >= seen - ROUNDING);
        }
    }

    fn adjusted(&self, p_value: impl Fn(usize) -> f64, blocks: u32, rest: &Columns) -> Vec<Adjusted> {
        let one = |candidate: usize| Adjusted {
            t: t_of(self.seen[candidate], blocks).filter(|_| rest.varies(candidate)),
            single_step: p_value(self.single[candidate]),
            step_down: 1.0,
        };
        let mut adjusted: Vec<Adjusted> = (0..self.seen.len()).map(one).collect();
        let mut before = 0.0_f64;
        for &candidate in &self.order {
            before = before.max(p_value(self.down[candidate]));
            adjusted[candidate].step_down = before;
        }
        adjusted
    }
}

fn p_value(count: usize, total: usize, exact: bool) -> f64 {
    if exact { count as f64 / total as f64 } else { (count + 1) as f64 / (total + 1) as f64 }
}

/// |t| of |S|/√(n V); `None` where it is infinite.
fn t_of(r: f64, blocks: u32) -> Option<f64> {
    let rest = 1.0 - r * r;
    (rest > ROUNDING).then(|| (f64::from(blocks - 1) * r * r / rest).sqrt())
}

/// The least t that at most a share `alpha` of the flips exceeds.
fn critical_t(mut largest: Vec<f64>, blocks: u32, alpha: f64, exact: bool) -> Option<f64> {
    let ways = 1.0 / f64::from(blocks - 1).exp2();
    let total = if exact { largest.len() } else { largest.len() + 1 };
    let rank = ((1.0 - alpha) * total as f64 * (1.0 - ROUNDING)).ceil() as usize;
    largest.sort_by(f64::total_cmp);
    let value = largest.get(rank.max(1) - 1)?;
    t_of(*value, blocks).filter(|&t| t > 0.0 && alpha >= ways)
}
