//! Estimates the ratio of two variants and its interval from one log ratio per block.
//!
//! d_i = ln(y_B / y_A) of block i. The estimate is exp of their mean, and the interval is exp(mean ± t s/√n).
//! Ratios are used because the effect of a setting on a service is multiplicative. Blocks are used because
//! requests and seconds of one process are not independent. The caller provides the critical t, which depends
//! on the number of looks at the data.
//!
//! This module also computes intervals of a mean in its own unit, of a share (such as failed requests of all
//! requests), and of the ratio of two unpaired sides. The last is Welch's interval, for results of other
//! tools that ran one side after the other. Without blocks, no common effect of both sides may be removed.
//!
//! This module does not pair, drop or weight blocks or runs, and does not decide anything (see `verdict`).

use crate::Error;
use crate::student::{f_above, normal_z, two_sided_p, two_sided_t_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Relative spread of the log ratios below which the spread is rounding error.
const ROUNDING: f64 = 1e-12;

/// Significance level of the test that strata are independent.
const STRATA_ALPHA: f64 = 0.05;

/// Arithmetic mean. `None` without values.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values
        .into_iter()
        .fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Ratio of a variant to its baseline, with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Number of blocks.
    pub blocks: u32,
    /// Geometric mean of the blocks' ratios, variant over baseline: 1.1 is ten per cent more.
    pub ratio: f64,
    /// Lower end of the interval, above 0.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Standard deviation of the log ratios between blocks (n − 1 in the denominator). For an effect of a
    /// factor, from its strata.
    pub sd_log: f64,
    /// Critical t used for the interval.
    pub critical_t: f64,
}

impl Estimate {
    /// Estimates the ratio from the blocks' log ratios `d` (natural logarithm, variant over baseline).
    ///
    /// Source: the t interval of paired differences (Student 1908), on the log scale.
    ///
    /// # Errors
    /// [`Error::TooFewBlocks`] below 2, [`Error::NotFinite`] for the first value that is not a finite number,
    /// [`Error::TooWide`] when an end overflows or `critical_t` is not a positive number, and
    /// [`Error::NoSpread`] when all blocks gave the same ratio. The last is not an interval of zero width: n
    /// equal numbers mean that the metric is deterministic (bytes per response) or coarser than its noise. In
    /// neither case does s = 0 measure the error. The ratio is in the error, for [`crate::judge_constant`].
    pub fn of(d: &[f64], critical_t: f64) -> Result<Self, Error> {
        let blocks = blocks(d, 2)?;
        let (mean, sd_log) = mean_and_sd(d);
        Self::from(blocks, mean, sd_log, critical_t)
    }

    /// Estimates an average over strata with independent noise. `strata` has the log ratios of each stratum
    /// by block. Each stratum has its own variance,
    ///
    /// ```text
    /// mean = Σ mean_j / J       sd_log² = Σ s_j² / J²
    /// ```
    /// and together they estimate the spread of their average better than n averages would. The degrees of
    /// freedom are n − 1 for one stratum and up to J (n − 1) for J strata with equal spread (Satterthwaite
    /// 1946). `critical_t` is for n − 1; the t used has the same probability outside. If the n averages
    /// spread more than chance allows (F test of blocks in a two-way layout, at 5 %), the strata do not vary
    /// independently, and the result is [`Estimate::of`] of the averages. The same applies to a single
    /// stratum.
    ///
    /// # Errors
    /// As for [`Estimate::of`]. All strata must have the same number of blocks as the first.
    pub fn of_strata(strata: &[Vec<f64>], critical_t: f64) -> Result<Self, Error> {
        let mut variances = Vec::new();
        for d in strata {
            let each = f64::from(blocks(d, 2)? - 1);
            variances.push(((mean_and_sd(d).1 / strata.len() as f64).powi(2), each));
        }
        let blocks = blocks(strata.first().map_or(&[], Vec::as_slice), 2)?;
        let average = |block| mean(strata.iter().filter_map(|d| d.get(block as usize).copied()));
        let averages: Vec<f64> = (0..blocks).filter_map(average).collect();
        let (mean, between) = mean_and_sd(&averages);
        let (variance, freedom) = (
            variances.iter().map(|(of, _)| of).sum::<f64>(),
            satterthwaite(&variances),
        );
        let (each, count) = (f64::from(blocks - 1), strata.len() as f64);
        // Compares the spread between blocks with the remaining spread of the strata.
        let of_blocks = count * between * between;
        let left = (count * count * variance - of_blocks) / (count - 1.0);
        let by_chance =
            f_above(of_blocks / left, each, freedom * (count - 1.0) / count) >= STRATA_ALPHA;
        if strata.len() == 1 || !by_chance || critical_t.is_nan() || critical_t <= 0.0 {
            return Self::of(&averages, critical_t);
        }
        let critical_t = two_sided_t_of(freedom, two_sided_p(critical_t, each));
        Self::from(blocks, mean, variance.sqrt(), critical_t)
    }

    /// Distance of the ratio from 1 in either direction, as a logarithm.
    pub fn distance(&self) -> f64 {
        self.ratio.ln().abs()
    }

    fn from(blocks: u32, mean: f64, sd_log: f64, critical_t: f64) -> Result<Self, Error> {
        let ratio = mean.exp();
        if critical_t.is_nan() || critical_t <= 0.0 {
            return Err(Error::TooWide { ratio });
        }
        if !has_spread(mean, sd_log) {
            return Err(Error::NoSpread { ratio });
        }
        let half_width = critical_t * sd_log / f64::from(blocks).sqrt();
        let Interval { low, high } = as_ratios(mean, mean - half_width, mean + half_width)?;
        Ok(Self {
            blocks,
            ratio,
            low,
            high,
            sd_log,
            critical_t,
        })
    }
}

/// Lag-1 autocorrelation of the blocks' log ratios in the order of measurement, from −1 to 1.
///
/// Blocks are meant to be independent. Above 0.4 the interval is too narrow to be valid. For n independent
/// blocks the value scatters around −1/n with a standard deviation of about 1/√n, so it means little below 15
/// blocks. `None` below 3 blocks, without spread, or with a value that is not finite.
pub fn lag1(d: &[f64]) -> Option<f64> {
    if d.len() < 3 {
        return None;
    }
    let (mean, sd) = mean_and_sd(d);
    let spread = sd.is_finite() && has_spread(mean, sd);
    let neighbours: f64 = d
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean))
        .sum();
    spread.then(|| neighbours / d.iter().map(|x| (x - mean).powi(2)).sum::<f64>())
}

/// Converts an interval of a log ratio to an interval of the ratio.
pub(crate) fn as_ratios(mean: f64, low: f64, high: f64) -> Result<Interval, Error> {
    let (low, high) = (low.exp(), high.exp());
    let is_told = low > 0.0 && high.is_finite();
    is_told
        .then_some(Interval { low, high })
        .ok_or(Error::TooWide { ratio: mean.exp() })
}

/// Returns the number of blocks if there are at least `least` and all values are finite.
pub(crate) fn blocks(d: &[f64], least: u32) -> Result<u32, Error> {
    let blocks = u32::try_from(d.len()).unwrap_or(u32::MAX);
    if blocks < least {
        return Err(Error::TooFewBlocks);
    }
    match d.iter().enumerate().find(|(_, value)| !value.is_finite()) {
        Some((index, &value)) => Err(Error::NotFinite { index, value }),
        None => Ok(blocks),
    }
}

/// Whether a standard deviation exceeds rounding error. Overflow does not count as equal blocks.
pub(crate) fn has_spread(mean: f64, sd: f64) -> bool {
    let rounding = mean.is_finite() && sd <= ROUNDING * (1.0 + mean.abs());
    !rounding
}

/// Mean and standard deviation of at least two numbers, in two passes. Exact if the numbers are equal.
pub(crate) fn mean_and_sd(d: &[f64]) -> (f64, f64) {
    let n = d.len() as f64;
    let mean = d.iter().sum::<f64>() / n;
    let squares: f64 = d.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0)).sqrt())
}

/// A confidence interval at the level given by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Wilson's score interval (1927) for a share, from `hits` of `total`, two-sided at `level` such as 0.95.
///
/// The interval is correct at the edges: 0 errors of 1,000 requests give 0 to 0.0038, not "0 ± 0". It assumes
/// independent requests, which failures in bursts are not, so it describes one trial and cannot compare
/// variants. More hits than `total` count as `total`. `None` if `total` is 0, and unless 0 < `level` < 1.
pub fn wilson(hits: u64, total: u64, level: f64) -> Option<Interval> {
    let z = normal_z(level).filter(|_| total > 0)?;
    let n = total as f64;
    let share = hits.min(total) as f64 / n;
    let shrink = 1.0 / (1.0 + z * z / n);
    let centre = shrink * (share + z * z / (2.0 * n));
    let half_width = shrink * z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    // Rounding must not move an end past the observed share: 0 of n has its lower end at 0, n of n its upper
    // end at 1.
    let low = (centre - half_width).clamp(0.0, share);
    let high = (centre + half_width).clamp(share, 1.0);
    Some(Interval { low, high })
}

/// Mean over blocks with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanInterval {
    /// The mean.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl MeanInterval {
    /// Computes mean ± `critical_t` s/√n of the blocks' values.
    ///
    /// `None` below two blocks, for a value or critical t that is not finite, and without spread, because
    /// equal numbers do not measure the error.
    pub fn of(values: &[f64], critical_t: f64) -> Option<MeanInterval> {
        if values.len() < 2 || !(critical_t.is_finite() && critical_t > 0.0) {
            return None;
        }
        let (value, sd) = mean_and_sd(values);
        let half_width = critical_t * sd / (values.len() as f64).sqrt();
        let usable = has_spread(value, sd) && value.is_finite() && half_width.is_finite();
        usable.then_some(MeanInterval {
            value,
            low: value - half_width,
            high: value + half_width,
        })
    }
}

/// Ratio of two unpaired sides with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Welch {
    /// Ratio of the geometric means, second over first: 1.1 is ten per cent more.
    pub ratio: f64,
    /// Lower end of the interval, above 0.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Degrees of freedom (Satterthwaite 1946), from the smaller side's runs less one to all runs less two.
    pub freedom: f64,
}

/// Interval of Welch (1947) for the difference of two means of logarithms, two-sided at `level` such as 0.95.
///
/// `first` and `second` are the natural logarithms of the values of each run. The sides may differ in spread
/// and in number.
///
/// # Errors
/// [`Error::TooFewBlocks`] unless each side has two runs, [`Error::NotFinite`] for a value that is not
/// finite, [`Error::NoSpread`] when the runs of each side are equal, [`Error::TooWide`] when an end
/// overflows.
pub fn welch(first: &[f64], second: &[f64], level: f64) -> Result<Welch, Error> {
    blocks(first, 2)?;
    blocks(second, 2)?;
    let (mean_1, variance_1) = mean_and_variance_of_it(first);
    let (mean_2, variance_2) = mean_and_variance_of_it(second);
    let ratio = (mean_2 - mean_1).exp();
    let standard_error = (variance_1 + variance_2).sqrt();
    if !has_spread(mean_1.abs().max(mean_2.abs()), standard_error) {
        return Err(Error::NoSpread { ratio });
    }
    let part = |variance: f64, runs: &[f64]| (variance, (runs.len() - 1) as f64);
    let freedom = satterthwaite(&[part(variance_1, first), part(variance_2, second)]);
    let half_width = two_sided_t_of(freedom, 1.0 - level) * standard_error;
    let difference = mean_2 - mean_1;
    let Interval { low, high } =
        as_ratios(difference, difference - half_width, difference + half_width)?;
    Ok(Welch {
        ratio,
        low,
        high,
        freedom,
    })
}

/// Degrees of freedom of a sum of independent variances, each given with its degrees of freedom
/// (Satterthwaite 1946). Not finite if all variances are 0.
fn satterthwaite(parts: &[(f64, f64)]) -> f64 {
    let sum: f64 = parts.iter().map(|(variance, _)| variance).sum();
    sum * sum
        / parts
            .iter()
            .map(|(variance, freedom)| variance * variance / freedom)
            .sum::<f64>()
}

/// Mean of at least two numbers, and the variance of that mean.
pub(crate) fn mean_and_variance_of_it(of: &[f64]) -> (f64, f64) {
    let (mean, sd) = mean_and_sd(of);
    (mean, sd.powi(2) / of.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_student() {
        // scipy.stats.t.interval(0.95, 4, loc=2.0, scale=sem([1, 2, 3, 1.5, 2.5])): 2 ± 2.776445 · 0.7905694 / √5.
        let mean = MeanInterval::of(&[1.0, 2.0, 3.0, 1.5, 2.5], 2.776_445).expect("it has spread");
        assert_eq!(mean.value, 2.0);
        assert!(
            (mean.high - 2.981_622).abs() < 1e-5 && (mean.low - 1.018_378).abs() < 1e-5,
            "{mean:?}"
        );
    }

    #[test]
    fn what_has_no_spread_or_is_no_number_has_no_interval() {
        for values in [
            &[][..],
            &[1.0],
            &[2.0, 2.0, 2.0],
            &[1.0, f64::NAN],
            &[1.0, f64::INFINITY],
        ] {
            assert_eq!(MeanInterval::of(values, 2.0), None, "{values:?}");
        }
        assert_eq!(MeanInterval::of(&[1.0, 2.0], f64::NAN), None);
        assert_eq!(MeanInterval::of(&[1e300, -1e308, 1e308], 1e300), None);
    }

    fn logs(values: &[f64]) -> Vec<f64> {
        values.iter().map(|value| value.ln()).collect()
    }

    #[test]
    fn the_interval_is_that_of_scipy() {
        // scipy 1.x: ttest_ind(log b, log a, equal_var=False).confidence_interval(0.95), then exp.
        let a = logs(&[5455.0, 5555.0, 5540.0]);
        let b = logs(&[7982.0, 8236.0, 8430.0]);
        let found = welch(&a, &b, 0.95).unwrap();
        for (value, expected) in [
            (found.ratio, 1.488_980_5),
            (found.freedom, 2.503_485_3),
            (found.low, 1.4022651),
            (found.high, 1.5810584),
        ] {
            assert!(
                (value / expected - 1.0).abs() < 1e-6,
                "{value} is not {expected}"
            );
        }
        let swapped = welch(&b, &a, 0.95).unwrap();
        assert!(
            (swapped.low * found.high - 1.0).abs() < 1e-12,
            "swapping the sides gives the inverse"
        );
    }

    #[test]
    fn too_little_gives_no_interval() {
        let one = [1.0];
        let two = [1.0, 1.0];
        assert_eq!(welch(&one, &two, 0.95), Err(Error::TooFewBlocks));
        assert_eq!(welch(&two, &two, 0.95), Err(Error::NoSpread { ratio: 1.0 }));
        assert!(matches!(
            welch(&two, &[1.0, f64::NAN], 0.95),
            Err(Error::NotFinite { .. })
        ));
    }
}
