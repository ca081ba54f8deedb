//! Intervals over capture rounds, the one piece of statistics that an explanation needs.
//!
//! **Method.** A figure has one value in each capture round: a fresh start of the variant, which makes a round one observation however
//! many samples a profile has. The estimate is the mean over the rounds, its interval the one of Student at 95 %. What is
//! compared is paired by round: the difference is taken within each round, and the interval is that of the differences, so that what a
//! round's variants have in common falls out. With one round there is no interval: both ends are the estimate, and a doubt says so.
//!
//! These intervals are looked at once and for many functions: they help to read a table and give no verdict.

use stats::MeanInterval;

use crate::Interval;

/// Confidence of every interval here.
pub const LEVEL: f64 = 0.95;

impl Interval {
    /// A value without an interval.
    pub const fn exactly(value: f64) -> Interval {
        Interval { value, low: value, high: value }
    }

    /// The mean of one value a round with its interval; zero of none. Values that are no finite numbers count for nothing.
    pub fn over(values: &[f64]) -> Interval {
        let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let rounds = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let interval =
            stats::plain_t(rounds, LEVEL).ok().and_then(|critical_t| MeanInterval::of(&values, critical_t));
        match interval {
            Some(MeanInterval { value, low, high }) => Interval { value, low, high },
            // One round, or rounds that are all alike.
            None => Interval::exactly(mean(&values)),
        }
    }

    /// Whether it is made of numbers.
    pub fn is_finite(&self) -> bool {
        [self.value, self.low, self.high].into_iter().all(f64::is_finite)
    }

    /// Whether zero lies outside of it.
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// The mean of finite numbers; zero where there are none, or where they are too large to be added.
pub(crate) fn mean(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    if mean.is_finite() { mean } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rounds_have_the_interval_of_student() {
        // scipy.stats.t.interval(0.95, 2, loc=84, scale=stats.sem([80, 84, 88])): 84 ± 4.302653 · 4 / √3.
        let found = Interval::over(&[80.0, 84.0, 88.0]);
        assert_eq!(found.value, 84.0);
        assert!((found.high - 93.936_56).abs() < 1e-4 && (found.low - 74.063_44).abs() < 1e-4, "{found:?}");
        assert!(found.excludes_zero());
    }

    #[test]
    fn one_round_none_and_no_numbers_have_no_interval() {
        assert_eq!(Interval::over(&[7.0]), Interval::exactly(7.0));
        assert_eq!(Interval::over(&[7.0, f64::NAN]), Interval::exactly(7.0));
        assert_eq!(Interval::over(&[f64::INFINITY]), Interval::exactly(0.0));
        assert_eq!(Interval::over(&[]), Interval::exactly(0.0));
        assert_eq!(Interval::over(&[3.0, 3.0, 3.0]), Interval::exactly(3.0));
    }
}
