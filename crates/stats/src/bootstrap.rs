//! Intervals for the mean log ratio that do not take the blocks as normally distributed: bootstrap-t and BCa.
//!
//! Both draw n blocks out of the n there are, with replacement, B times, and learn from how the mean of such a resample
//! scatters. For a fixed number of blocks, looked at once.
//!
//! Must not: carry a verdict at several looks, which is for [`crate::Looks`], nor stand in for more blocks. Of 95 % intervals
//! from normal noise BCa misses the truth in 14 % of runs of 6 blocks, 9 % of 10 and 7 % of 30 (nothing can lie beyond the blocks
//! that were seen), bootstrap-t in 5 %. Against skewed noise bootstrap-t is the one that helps; with heavy symmetric tails the
//! t interval of [`crate::Estimate`] is the better one. `examples/resampling_rates.rs` measures all this.

use crate::estimate::{blocks, has_spread, mean_and_sd};
use crate::looks::BLOCKS_MIN;
use crate::resampling::Draws;
use crate::student::{check_level, normal_below, normal_quantile, normal_z};
use crate::{Error, Interval, Resampling};

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
/// # Errors
/// [`Error::Level`], [`Error::Resamples`], [`Error::TooFewBlocks`] below [`BLOCKS_MIN`], [`Error::NotFinite`] with the
/// block's index, [`Error::NoSpread`] when all blocks gave one ratio, and [`Error::TooWide`] when an end is infinite (many
/// blocks alike, or a level that so few resamples cannot reach).
pub fn bootstrap_t(d: &[f64], level: f64, resampling: Resampling) -> Result<Interval, Error> {
    interval(d, level, resampling, studentised)
}

/// The bias-corrected and accelerated (BCa) interval of the ratio, from the log ratios `d`, one per block.
///
/// The ends are the quantiles Φ(z0 + (z0 + z)/(1 − a (z0 + z))) of the B means, z = ∓ the normal z of the level, where
/// z0 = Φ⁻¹(share of means below the mean, ties by half) and a = Σ(d − mean)³ / (6 (Σ(d − mean)²)^(3/2)), which is what the
/// jackknife gives for a mean. Source: Efron, "Better bootstrap confidence intervals", JASA 82, 1987.
///
/// # Errors
/// As [`bootstrap_t`].
pub fn bca(d: &[f64], level: f64, resampling: Resampling) -> Result<Interval, Error> {
    interval(d, level, resampling, accelerated)
}

/// Both ends of the mean log ratio, from the blocks, the level and the resamples.
type Ends = fn(&[f64], f64, &[Resample]) -> Result<(f64, f64), Error>;

fn interval(d: &[f64], level: f64, resampling: Resampling, ends: Ends) -> Result<Interval, Error> {
    check_level(level)?;
    let mut draws = resampling.draws(PURPOSE)?;
    let blocks = blocks(d, BLOCKS_MIN)?;
    let (mean, sd) = mean_and_sd(d);
    let ratio = mean.exp();
    if !has_spread(mean, sd) {
        return Err(Error::NoSpread { blocks, ratio });
    }
    let resamples = drawn(d, resampling.resamples, &mut draws);
    let (low, high) = ends(d, level, &resamples)?;
    let (low, high) = (low.exp(), high.exp());
    if low > 0.0 && high.is_finite() { Ok(Interval { low, high }) } else { Err(Error::TooWide { ratio }) }
}

/// What is kept of a resample.
#[derive(Clone, Copy)]
struct Resample {
    mean: f64,
    sd: f64,
}

impl Resample {
    fn of(blocks: &[f64]) -> Self {
        let (mean, sd) = mean_and_sd(blocks);
        Self { mean, sd }
    }

    /// (mean* − mean) / (s*/√n). Resamples without spread lie infinitely far out, or at 0.
    fn t(&self, mean: f64, root_n: f64) -> f64 {
        let distance = self.mean - mean;
        if has_spread(self.mean, self.sd) {
            distance / (self.sd / root_n)
        } else if has_spread(mean, distance.abs()) {
            distance.signum() * f64::INFINITY
        } else {
            0.0
        }
    }
}

fn drawn(d: &[f64], count: u32, draws: &mut Draws) -> Vec<Resample> {
    let mut blocks = vec![0.0; d.len()];
    let one = |_| {
        blocks.fill_with(|| d[draws.index(d.len())]);
        Resample::of(&blocks)
    };
    (0..count).map(one).collect()
}

fn studentised(d: &[f64], level: f64, resamples: &[Resample]) -> Result<(f64, f64), Error> {
    let (mean, sd) = mean_and_sd(d);
    let root_n = (d.len() as f64).sqrt();
    let t = sorted(resamples.iter().map(|resample| resample.t(mean, root_n)));
    let tail = (1.0 - level) / 2.0;
    let error = sd / root_n;
    Ok((mean - quantile(&t, 1.0 - tail) * error, mean - quantile(&t, tail) * error))
}

fn accelerated(d: &[f64], level: f64, resamples: &[Resample]) -> Result<(f64, f64), Error> {
    let (mean, _) = mean_and_sd(d);
    let means = sorted(resamples.iter().map(|resample| resample.mean));
    let below = means.partition_point(|&other| other < mean);
    let up_to = means.partition_point(|&other| other <= mean);
    let bias = normal_quantile((below + up_to) as f64 / (2 * means.len()) as f64);
    let acceleration = acceleration(d, mean);
    let z = normal_z(level)?;
    let end = |z: f64| {
        let shrink = 1.0 - acceleration * (bias + z);
        // Not positive only for levels beyond any use: the formula has then turned over.
        let p = normal_below(bias + (bias + z) / shrink);
        (shrink > 0.0 && p.is_finite()).then(|| quantile(&means, p))
    };
    end(-z).zip(end(z)).ok_or(Error::TooWide { ratio: mean.exp() })
}

/// A sixth of the skewness of the mean. Relative to the largest deviation, so that no power overflows.
fn acceleration(d: &[f64], mean: f64) -> f64 {
    let largest = d.iter().map(|x| (x - mean).abs()).fold(0.0, f64::max);
    let power = |exponent| d.iter().map(|x| ((x - mean) / largest).powi(exponent)).sum::<f64>();
    power(3) / (6.0 * power(2).powf(1.5))
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
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
