//! The mean of one number per block with its interval: differences in the unit of what was measured.
//!
//! The t interval (Student 1908) without a logarithm, for amounts that add up. Ratios, by which verdicts are given, are in
//! `estimate`. Must not: drop or weigh blocks, or decide anything.

use crate::estimate::{has_spread, mean_and_sd};

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
}
