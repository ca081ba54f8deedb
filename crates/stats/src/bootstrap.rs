//! An interval for the mean log ratio that does not take the blocks as normally distributed: bootstrap-t.
//!
//! It draws n blocks out of the n there are, with replacement, B times, and learns from how the mean of such a resample
//! scatters. For a fixed number of blocks, looked at once.
//!
//! Must not: carry a verdict at several looks, which is for [`crate::Looks`], nor stand in for more blocks. Of 95 % intervals
//! from normal noise it misses the truth in 5 % of runs. Against skewed noise it helps; with heavy symmetric tails the
//! t interval of [`crate::Estimate`] is the better one.

use crate::estimate::{as_ratios, blocks, has_spread, mean_and_sd};
use crate::resampling::BLOCKS_MIN;
use crate::student::is_share;
use crate::{Interval, Resampling};

const PURPOSE: [u8; 8] = *b"resample";

/// The studentised bootstrap interval of the ratio: exp of the ends for the mean of the log ratios `d`, one per block.
///
/// ```text
/// t* = (mean* − mean) / (s*/√n)        for each resample, with its own s* (n − 1 in the denominator)
/// ends = mean − t*(1 − α/2) s/√n,  mean − t*(α/2) s/√n        t*(p) the p quantile of the B values
/// ```
/// Source: Efron 1979; Hall, *The Bootstrap and Edgeworth Expansion*, 1992, section 3.6. A resample of nothing but equal
/// blocks has s* = 0 and t* = ±∞, which is kept: leaving it out would make the interval too narrow.
///
/// `None` unless 0 < `level` < 1, for too few or many resamples, below six blocks, with a value that is not finite, when all blocks gave one
/// ratio, and when an end is infinite (many blocks alike, or a level that so few resamples cannot reach).
pub fn bootstrap_t(d: &[f64], level: f64, resampling: Resampling) -> Option<Interval> {
    let mut draws = resampling.draws(PURPOSE)?;
    blocks(d, BLOCKS_MIN).ok()?;
    let (mean, sd) = mean_and_sd(d);
    if !is_share(level) || !has_spread(mean, sd) {
        return None;
    }
    let mut resample = vec![0.0; d.len()];
    let one = |_| {
        resample.fill_with(|| d[draws.index(d.len())]);
        t(&resample, mean)
    };
    let (low, high) = ends(d, level, (0..resampling.resamples).map(one).collect());
    as_ratios(mean, low, high).ok()
}

/// Both ends for the mean log ratio, from t* of all resamples.
fn ends(d: &[f64], level: f64, mut t: Vec<f64>) -> (f64, f64) {
    let (mean, sd) = mean_and_sd(d);
    t.sort_by(f64::total_cmp);
    let (tail, error) = ((1.0 - level) / 2.0, sd / (d.len() as f64).sqrt());
    (mean - quantile(&t, 1.0 - tail) * error, mean - quantile(&t, tail) * error)
}

/// (mean* − mean) / (s*/√n) of a resample. Those without spread lie infinitely far out, or at 0.
fn t(resample: &[f64], mean: f64) -> f64 {
    let root_n = (resample.len() as f64).sqrt();
    let (mean_of_it, sd) = mean_and_sd(resample);
    let distance = mean_of_it - mean;
    if has_spread(mean_of_it, sd) {
        distance / (sd / root_n)
    } else if has_spread(mean, distance.abs()) {
        distance.signum() * f64::INFINITY
    } else {
        0.0
    }
}

/// The `p` quantile with straight lines between the values (type 7 of Hyndman & Fan 1996), which may be infinite.
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let place = p.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let below = sorted[place.floor() as usize];
    let above = sorted[place.ceil() as usize];
    // An infinite neighbour is the answer itself: a share of ∞ − ∞ is no number.
    if below == above || below.is_infinite() || place.fract() == 0.0 {
        below
    } else {
        below + (above - below) * place.fract()
    }
}

#[cfg(test)]
mod tests;
