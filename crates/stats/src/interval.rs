//! Intervals beside the one of `estimate`, by which verdicts are given: of a mean in its own unit, of the ratio of two sides that do
//! not belong together in pairs, and of a share such as failed requests of all requests.
//!
//! Welch's is for results that others made, where one side was run and then the other: nothing of a block that its sides have in
//! common may be taken out there. Must not: pair, drop or weigh blocks or runs, or decide anything.

use crate::Error;
use crate::estimate::{as_ratios, blocks, has_spread, mean_and_sd};
use crate::student::{check_share, normal_z, two_sided_t_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Two ends with the truth in between, at the level the caller asked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Wilson's score interval (1927) for a share of which `hits` of `total` were seen, two-sided at `level` such as 0.95.
///
/// Honest at the edges: 0 errors of 1,000 requests give 0 to 0.0038, not "0 ± 0". It takes requests as
/// independent, which failures in bursts are not: it describes one trial and makes no comparison of variants.
/// `Ok(None)` when `total` is 0.
///
/// # Errors
/// [`Error::Refused`] unless 0 < `level` < 1. More hits than `total` count as `total`.
pub fn wilson(hits: u64, total: u64, level: f64) -> Result<Option<Interval>, Error> {
    let z = normal_z(level)?;
    if total == 0 {
        return Ok(None);
    }
    let n = total as f64;
    let share = hits.min(total) as f64 / n;
    let shrink = 1.0 / (1.0 + z * z / n);
    let centre = shrink * (share + z * z / (2.0 * n));
    let half_width = shrink * z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    // Rounding must not move an end past a share that was seen: 0 of n has its low end at 0, n of n its high at 1.
    let low = (centre - half_width).clamp(0.0, share);
    let high = (centre + half_width).clamp(share, 1.0);
    Ok(Some(Interval { low, high }))
}

/// A mean over blocks with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanInterval {
    /// The mean.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl MeanInterval {
    /// mean ± `critical_t` s/√n of the blocks' values.
    ///
    /// `None` below two blocks, for a value or critical t that is no finite number, and without spread: equal numbers do not
    /// tell how far off they may be.
    pub fn of(values: &[f64], critical_t: f64) -> Option<MeanInterval> {
        if values.len() < 2 || !(critical_t.is_finite() && critical_t > 0.0) {
            return None;
        }
        let (value, sd) = mean_and_sd(values);
        let half_width = critical_t * sd / (values.len() as f64).sqrt();
        let usable = has_spread(value, sd) && value.is_finite() && half_width.is_finite();
        usable.then_some(MeanInterval { value, low: value - half_width, high: value + half_width })
    }
}

/// The ratio of two sides with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
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

/// The interval of Welch (1947) for the difference of two means of logarithms, two-sided at `level` such as 0.95.
///
/// `first` and `second` are natural logarithms of what each run measured. The sides may differ in spread and in number.
///
/// # Errors
/// [`Error::TooFewBlocks`] unless each side has two runs, [`Error::NotFinite`] for a value that is no finite number,
/// [`Error::NoSpread`] when the runs of both sides are alike, [`Error::TooWide`] when an end overflows, [`Error::Refused`]
/// unless 0 < `level` < 1.
pub fn welch(first: &[f64], second: &[f64], level: f64) -> Result<Welch, Error> {
    check_share("confidence level", level)?;
    let (mean_1, variance_1) = mean_and_variance_of_it(first)?;
    let (mean_2, variance_2) = mean_and_variance_of_it(second)?;
    let ratio = (mean_2 - mean_1).exp();
    let standard_error = (variance_1 + variance_2).sqrt();
    if !has_spread(mean_1.abs().max(mean_2.abs()), standard_error) {
        let runs = u32::try_from(first.len() + second.len()).unwrap_or(u32::MAX);
        return Err(Error::NoSpread { blocks: runs, ratio });
    }
    let part = |variance: f64, runs: usize| variance.powi(2) / (runs - 1) as f64;
    let freedom =
        (variance_1 + variance_2).powi(2) / (part(variance_1, first.len()) + part(variance_2, second.len()));
    let half_width = two_sided_t_of(freedom, 1.0 - level) * standard_error;
    let difference = mean_2 - mean_1;
    let Interval { low, high } = as_ratios(difference, difference - half_width, difference + half_width)?;
    Ok(Welch { ratio, low, high, freedom })
}

/// The mean of one side and the variance of that mean.
fn mean_and_variance_of_it(runs: &[f64]) -> Result<(f64, f64), Error> {
    blocks(runs, 2)?;
    let (mean, sd) = mean_and_sd(runs);
    Ok((mean, sd.powi(2) / runs.len() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_student() {
        // scipy.stats.t.interval(0.95, 4, loc=2.0, scale=sem([1, 2, 3, 1.5, 2.5])): 2 ± 2.776445 · 0.7905694 / √5.
        let mean = MeanInterval::of(&[1.0, 2.0, 3.0, 1.5, 2.5], 2.776_445).expect("it has spread");
        assert_eq!(mean.value, 2.0);
        assert!((mean.high - 2.981_622).abs() < 1e-5 && (mean.low - 1.018_378).abs() < 1e-5, "{mean:?}");
    }

    #[test]
    fn what_has_no_spread_or_is_no_number_has_no_interval() {
        for values in [&[][..], &[1.0], &[2.0, 2.0, 2.0], &[1.0, f64::NAN], &[1.0, f64::INFINITY]] {
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
            assert!((value / expected - 1.0).abs() < 1e-6, "{value} is not {expected}");
        }
        let swapped = welch(&b, &a, 0.95).unwrap();
        assert!((swapped.low * found.high - 1.0).abs() < 1e-12, "swapping the sides gives the inverse");
    }

    #[test]
    fn too_little_gives_no_interval() {
        let one = [1.0];
        let two = [1.0, 1.0];
        assert!(matches!(welch(&one, &two, 0.95), Err(Error::TooFewBlocks { .. })));
        assert!(matches!(welch(&two, &two, 0.95), Err(Error::NoSpread { .. })));
        assert!(matches!(welch(&two, &[1.0, f64::NAN], 0.95), Err(Error::NotFinite { .. })));
    }
}
