//! From one log ratio per block to the ratio of two variants with its interval.
//!
//! d_i = ln(y_B / y_A) of block i; the estimate is exp of their mean, the interval exp(mean ± t s/√n). Ratios, because
//! what a setting does to a service is multiplicative; blocks, because requests and seconds of one process are not
//! independent. The critical t comes from the caller, who knows how often the data were looked at.
//!
//! Must not: drop or weigh blocks, or decide anything (see `verdict`).

use crate::{Error, Interval};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Spread of the log ratios, relative to their size, below which it is rounding and not measurement.
const ROUNDING: f64 = 1e-12;

/// The ratio of a variant to its baseline, with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Blocks it rests on.
    pub blocks: u32,
    /// Geometric mean of the blocks' ratios, variant over baseline: 1.1 is ten per cent more.
    pub ratio: f64,
    /// Lower end of the interval, above 0.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Standard deviation of the log ratios between blocks (n − 1 in the denominator).
    pub sd_log: f64,
    /// The critical t the interval was made with.
    pub critical_t: f64,
}

impl Estimate {
    /// The estimate from the blocks' log ratios `d` (natural logarithm, variant over baseline).
    ///
    /// Source: the t interval of paired differences (Student 1908), on the log scale.
    ///
    /// # Errors
    /// [`Error::TooFewBlocks`] below 2, [`Error::NotFinite`] for the first value that is not a finite number,
    /// [`Error::Refused`] unless `critical_t` is positive and finite, [`Error::TooWide`] when an end overflows, and
    /// [`Error::NoSpread`] when all blocks gave the same ratio. The last is no interval of zero width: n equal
    /// numbers mean that the metric is deterministic (bytes per response) or coarser than its noise, and in neither
    /// case does s = 0 tell how far off it may be. The ratio is in the error and may be shown as what all blocks gave.
    pub fn of(d: &[f64], critical_t: f64) -> Result<Self, Error> {
        let blocks = blocks(d, 2)?;
        if !(critical_t.is_finite() && critical_t > 0.0) {
            return Err(Error::outside("critical t", critical_t, "a positive number"));
        }
        let (mean, sd_log) = mean_and_sd(d);
        let ratio = mean.exp();
        if !has_spread(mean, sd_log) {
            return Err(Error::NoSpread { blocks, ratio });
        }
        let half_width = critical_t * sd_log / f64::from(blocks).sqrt();
        let Interval { low, high } = as_ratios(mean, mean - half_width, mean + half_width)?;
        Ok(Self { blocks, ratio, low, high, sd_log, critical_t })
    }
}

/// Lag-1 autocorrelation of the blocks' log ratios in the order they were measured, from −1 to 1.
///
/// Blocks are meant to be independent; above 0.4 the interval is too narrow to be believed. Of n independent blocks it
/// scatters around −1/n with a standard deviation of about 1/√n, so it says little below 15 blocks.
/// `None` below 3 blocks, without spread, or with a value that is not finite.
pub fn lag1(d: &[f64]) -> Option<f64> {
    if d.len() < 3 {
        return None;
    }
    let (mean, sd) = mean_and_sd(d);
    let spread = sd.is_finite() && has_spread(mean, sd);
    let neighbours: f64 = d.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    spread.then(|| neighbours / d.iter().map(|x| (x - mean).powi(2)).sum::<f64>())
}

/// The interval of a ratio from that of its logarithm.
pub(crate) fn as_ratios(mean: f64, low: f64, high: f64) -> Result<Interval, Error> {
    let (low, high) = (low.exp(), high.exp());
    let is_told = low > 0.0 && high.is_finite();
    is_told.then_some(Interval { low, high }).ok_or(Error::TooWide { ratio: mean.exp() })
}

/// How many blocks there are, once there are at least `least` and every value is a finite number.
pub(crate) fn blocks(d: &[f64], least: u32) -> Result<u32, Error> {
    let blocks = u32::try_from(d.len()).unwrap_or(u32::MAX);
    if blocks < least {
        return Err(Error::TooFewBlocks { blocks, least });
    }
    match d.iter().enumerate().find(|(_, value)| !value.is_finite()) {
        Some((index, &value)) => Err(Error::NotFinite { index, value }),
        None => Ok(blocks),
    }
}

/// Whether a standard deviation is more than rounding. Overflow is no sign of blocks that are alike.
pub(crate) fn has_spread(mean: f64, sd: f64) -> bool {
    let rounding = mean.is_finite() && sd <= ROUNDING * (1.0 + mean.abs());
    !rounding
}

/// Mean and standard deviation of at least two numbers, in two passes: exact where the numbers are alike.
pub(crate) fn mean_and_sd(d: &[f64]) -> (f64, f64) {
    let n = d.len() as f64;
    let mean = d.iter().sum::<f64>() / n;
    let squares: f64 = d.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0)).sqrt())
}
