//! Detects the end of the warm-up in a series, and whether there is one.
//!
//! MSER-5 (White 1997; White, Cobb & Spratt 2000): of all positions to cut a series, take the one that makes
//! the mean of the rest most precise. It needs no threshold and no model of the warm-up.
//!
//! ```text
//!  Z ▁▃▅▆▇▇▆▇▇▆▇▇▇▆▇      Z_1..Z_k: means of 5 buckets, below 60 of 2
//!         ╎                MSER(d) = Σ_{i>d} (Z_i − mean of those)² / (k − d)²
//!         d*               d* = the d with the least; cut 5 d* buckets
//! ```
//! Cutting early costs variance, cutting late costs samples: both raise MSER.

use crate::estimate::mean_and_variance_of_it;
use crate::median::median;

/// Buckets averaged into one batch, which removes most of the correlation between neighbours: for long and
/// for short series.
const BATCH: (usize, usize) = (5, 2);
/// Minimum number of buckets for large batches: 12 batches, 6 s of 100 ms buckets.
const LONG: usize = 60;
/// Minimum number of batches after the cut. The variance of fewer is too often small by chance (Hoad,
/// Robinson & Davies 2010).
const KEPT_BATCHES_MIN: usize = 5;
/// Minimum length of a series in which a cut beyond its half is detectable: 12 small batches, 2.4 s of 100 ms
/// buckets.
pub const BUCKETS_MIN: usize = 24;

/// Position at which a series is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// Number of buckets to omit at the start.
    pub buckets: usize,
    /// Whether the rest is steady: the cut is within the first half, and the series is long enough to judge.
    pub steady: bool,
}

/// Returns the MSER-5 truncation of a series of equal buckets (throughput or CPU per request in each 100 ms,
/// any unit).
///
/// Not steady if the best cut is beyond half of the series, if there are fewer than [`BUCKETS_MIN`] buckets,
/// or if a value is not finite. In the last two cases `buckets` is 0. Of equally good cuts the earliest is
/// used. Up to four buckets at the end that fill no batch are ignored. A series of pure noise is reported as
/// not steady in about one of ten cases: see `docs/methodology.md`.
pub fn mser5(series: &[f64]) -> Truncation {
    if series.len() < BUCKETS_MIN || series.iter().any(|value| !value.is_finite()) {
        return Truncation {
            buckets: 0,
            steady: false,
        };
    }
    let size = if series.len() < LONG {
        BATCH.1
    } else {
        BATCH.0
    };
    let batches: Vec<f64> = series
        .chunks_exact(size)
        .map(|batch| batch.iter().sum::<f64>() / size as f64)
        .collect();
    let cut = best_cut(&batches);
    Truncation {
        buckets: cut * size,
        steady: 2 * cut <= batches.len(),
    }
}

/// Relative tolerance of medians around the final level of a series.
const LEVEL_TOLERANCE: f64 = 0.05;

/// Number of standard errors between the second and the last third of a series that count as a change.
const MOVES_Z: f64 = 1.5;

/// Returns the number of buckets after which a series is steady. `None` if it never is.
///
/// If the last two thirds agree, this is at most the first third, because the best cut of noise can be
/// anywhere. Otherwise by [`mser5`], otherwise by medians: CPU time taken by the host in bursts makes a late
/// cut look best, but hardly changes medians. The level is the median of the second half, and both halves of
/// that half must agree with it. The first five buckets whose median is near it are the start of the level,
/// and must begin within the first half.
pub fn steady_after(series: &[f64]) -> Option<usize> {
    let found = mser5(series);
    let is_long = series.len() >= BUCKETS_MIN && series.iter().all(|value| value.is_finite());
    let third = series.len() / 3;
    if is_long && !moves(&series[third..]) {
        return Some(if found.steady {
            found.buckets.min(third)
        } else {
            third
        });
    }
    if found.steady || !is_long {
        return found.steady.then_some(found.buckets);
    }
    let (half, quarter) = (series.len() / 2, series.len() / 4);
    let level = median(series[half..].iter().copied())?;
    let is_near = |of: &[f64]| {
        median(of.iter().copied())
            .is_some_and(|median| (median / level - 1.0).abs() <= LEVEL_TOLERANCE)
    };
    let is_level = is_near(&series[half..half + quarter]) && is_near(&series[half + quarter..]);
    (0..=half).find(|start| is_level && is_near(&series[*start..*start + BATCH.0]))
}

/// Whether the means of the two halves differ by more than the noise between neighbours.
fn moves(series: &[f64]) -> bool {
    let pairs: Vec<f64> = series
        .chunks_exact(BATCH.1)
        .map(|pair| pair.iter().sum())
        .collect();
    let (first, second) = pairs.split_at(pairs.len() / 2);
    let ((one, variance), (other, more)) = (
        mean_and_variance_of_it(first),
        mean_and_variance_of_it(second),
    );
    (one - other).abs() > MOVES_Z * (variance + more).sqrt()
}

/// Number of leading batches whose removal minimizes MSER.
fn best_cut(batches: &[f64]) -> usize {
    let mut best = (f64::INFINITY, 0);
    for cut in 0..=batches.len() - KEPT_BATCHES_MIN {
        let mser = mser(&batches[cut..]);
        if mser < best.0 {
            best = (mser, cut);
        }
    }
    best.1
}

fn mser(rest: &[f64]) -> f64 {
    let n = rest.len() as f64;
    let mean = rest.iter().sum::<f64>() / n;
    rest.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / (n * n)
}
