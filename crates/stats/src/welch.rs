//! Two sides measured by runs that do not belong together in pairs: the ratio of their means and its interval.
//!
//! This is for results that others made, where one side was run and then the other. Blocks of our own are pairs, and the
//! paired interval of `estimate` takes out what a block's variants have in common; here nothing may be taken out.
//!
//! Must not: pair, drop or weigh runs, or decide anything.

use crate::estimate::{has_spread, mean_and_sd};
use crate::{Error, student};
use serde::{Deserialize, Serialize};

/// The ratio of two sides with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Welch {
    /// Ratio of the geometric means, second over first: 1.1 is ten per cent more.
    pub ratio: f64,
    /// Lower end of the interval, above 0.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Degrees of freedom (Satterthwaite 1946), from the smaller side's runs less one to all runs less two.
    pub freedom: f64,
    /// The critical t the interval was made with.
    pub critical_t: f64,
}

/// The interval of Welch (1947) for the difference of two means of logarithms, two-sided at `level` such as 0.95.
///
/// `first` and `second` are natural logarithms of what each run measured. The sides may differ in spread and in number.
///
/// # Errors
/// [`Error::TooFewBlocks`] unless each side has two runs, [`Error::NotFinite`] for a value that is no finite number,
/// [`Error::NoSpread`] when the runs of both sides are alike, [`Error::TooWide`] when an end overflows, [`Error::Level`]
/// unless 0 < `level` < 1.
pub fn welch(first: &[f64], second: &[f64], level: f64) -> Result<Welch, Error> {
    student::check_level(level)?;
    let (mean_1, variance_1) = mean_and_variance_of_it(first)?;
    let (mean_2, variance_2) = mean_and_variance_of_it(second)?;
    let ratio = (mean_2 - mean_1).exp();
    let standard_error = (variance_1 + variance_2).sqrt();
    if !has_spread(mean_1.abs().max(mean_2.abs()), standard_error) {
        let blocks = u32::try_from(first.len() + second.len()).unwrap_or(u32::MAX);
        return Err(Error::NoSpread { blocks, ratio });
    }
    let part = |variance: f64, runs: usize| variance.powi(2) / (runs - 1) as f64;
    let freedom =
        (variance_1 + variance_2).powi(2) / (part(variance_1, first.len()) + part(variance_2, second.len()));
    let critical_t = student::two_sided_t_of(freedom, 1.0 - level);
    let half_width = critical_t * standard_error;
    let (low, high) = ((mean_2 - mean_1 - half_width).exp(), (mean_2 - mean_1 + half_width).exp());
    if !(low > 0.0 && high.is_finite()) {
        return Err(Error::TooWide { ratio });
    }
    Ok(Welch { ratio, low, high, freedom, critical_t })
}

/// The mean of one side and the variance of that mean.
fn mean_and_variance_of_it(runs: &[f64]) -> Result<(f64, f64), Error> {
    crate::estimate::blocks(runs, 2)?;
    let (mean, sd) = mean_and_sd(runs);
    Ok((mean, sd.powi(2) / runs.len() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

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
