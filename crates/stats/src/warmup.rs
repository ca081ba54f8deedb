//! Where a series stops warming up, and whether it ever does.
//!
//! MSER-5 (White 1997; White, Cobb & Spratt 2000): of all places to cut a series, take the one that makes the mean of
//! the rest most certain. It needs no threshold and no model of the warm-up.
//!
//! ```text
//!  Z ▁▃▅▆▇▇▆▇▇▆▇▇▇▆▇      Z_1..Z_k: means of 5 buckets
//!         ╎                MSER(d) = Σ_{i>d} (Z_i − mean of those)² / (k − d)²
//!         d*               d* = the d with the least; cut 5 d* buckets
//! ```
//! Cutting early costs variance, cutting late costs samples: both raise MSER.

use serde::{Deserialize, Serialize};

/// Buckets averaged into one batch, which takes out most of the correlation between neighbours.
const BATCH: usize = 5;
/// Batches at the end that are never cut off to: the variance of fewer is small by chance too often
/// (Hoad, Robinson & Davies 2010).
const KEPT_BATCHES_MIN: usize = 5;
/// Shortest series in which a cut beyond its half can be seen at all: 12 batches, 6 s of 100 ms buckets.
pub const BUCKETS_MIN: usize = 60;

/// Where to cut a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truncation {
    /// Buckets to leave out at the beginning.
    pub buckets: usize,
    /// Whether the rest is steady: the cut lies within the first half, and the series is long enough to tell.
    pub steady: bool,
}

/// The MSER-5 truncation of a series of equal buckets (throughput or CPU per request in each 100 ms, any unit).
///
/// Not steady when the best cut lies beyond half of the series, when there are fewer than [`BUCKETS_MIN`] buckets, or
/// when a value is not finite; in the last two cases `buckets` is 0. Of equally good cuts the earliest counts; up to
/// four buckets at the end that fill no batch are left unseen.
/// A series that is pure noise is called not steady in about one of ten cases: see `docs/methodology.md`.
pub fn mser5(series: &[f64]) -> Truncation {
    if series.len() < BUCKETS_MIN || series.iter().any(|value| !value.is_finite()) {
        return Truncation { buckets: 0, steady: false };
    }
    let batches: Vec<f64> =
        series.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    let cut = best_cut(&batches);
    Truncation { buckets: cut * BATCH, steady: 2 * cut <= batches.len() }
}

/// The number of batches whose removal gives the least MSER.
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
