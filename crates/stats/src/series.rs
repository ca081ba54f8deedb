//! Tests for a series in order of measurement: a trend, a step, autocorrelation.
//!
//! All are for few values (6 to 120 blocks) and small significance levels, for which large-sample
//! approximations are worst. So the p-value of the trend is exact, and the p-values of step and
//! autocorrelation err on the safe side.
//!
//! This module does not decide which size matters, and does not omit values.

use crate::BLOCKS_MAX;
use crate::estimate::{has_spread, mean_and_sd};
use crate::median::median;
use crate::student::{is_share, normal_quantile, two_sided_p};

/// Maximum number of values. A run has no more blocks, and the exact distribution of a trend takes cubic
/// time.
pub const SERIES_MAX: usize = BLOCKS_MAX as usize;
/// Minimum number of values on each side of a step. A single value may be an accident.
pub const STEP_SIDE_MIN: usize = 3;

/// A rising or falling tendency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesTrend {
    /// Rising pairs minus falling pairs, of n (n − 1)/2.
    pub s: i64,
    /// Two-sided p-value of the Mann-Kendall test.
    pub p: f64,
    /// Change from one value to the next: the median slope of all pairs.
    pub slope: f64,
}

/// A shift of a series at one position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelShift {
    /// Number of values before the step.
    pub after: usize,
    /// Mean after minus mean before.
    pub difference: f64,
    /// Two-sided p-value, corrected for the number of possible positions.
    pub p: f64,
}

/// Mann-Kendall test for a trend (Mann 1945; Kendall 1955), with the slope of Theil (1950) and Sen (1968).
///
/// The p-value assumes that all permutations are equally likely and is exact. Normal theory is wrong by a
/// factor in the tails for few values. With ties the p-value errs on the safe side. A single outlier has
/// little effect on p-value and slope. `None` below three values, above [`SERIES_MAX`], or with a value that
/// is not finite.
pub fn mann_kendall(values: &[f64]) -> Option<SeriesTrend> {
    let n = values.len();
    if !(3..=SERIES_MAX).contains(&n) || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let pairs = || (0..n).flat_map(|late| (0..late).map(move |early| (early, late)));
    let s: i64 = pairs()
        .map(|(early, late)| sign(values[late] - values[early]))
        .sum();
    let slope = |(early, late): (usize, usize)| {
        (values[late] - values[early]) / (late as f64 - early as f64)
    };
    let slope = median(pairs().map(slope))?;
    let all = n * (n - 1) / 2;
    // Two orders with the same |S| are reverses of each other. With ties |S| may be impossible for an order
    // without them. The next smaller |S| is then used.
    let fewer = (all - s.unsigned_abs() as usize).div_ceil(2);
    let p = if s == 0 {
        1.0
    } else {
        (2.0 * inversions_at_most(n, fewer)).min(1.0)
    };
    Some(SeriesTrend { s, p, slope })
}

fn sign(difference: f64) -> i64 {
    i64::from(difference > 0.0) - i64::from(difference < 0.0)
}

/// Share of all permutations of `n` items with at most `most` inversions.
///
/// Computed item by item: the last of m items is before 0 to m − 1 others, with equal probability.
fn inversions_at_most(n: usize, most: usize) -> f64 {
    let mut shares = vec![0.0; most + 1];
    shares[0] = 1.0;
    for size in 2..=n {
        let before = shares.clone();
        let mut window = 0.0;
        for (inversions, share) in shares.iter_mut().enumerate() {
            window += before[inversions];
            if inversions >= size {
                window -= before[inversions - size];
            }
            *share = window / size as f64;
        }
    }
    shares.iter().sum::<f64>().clamp(0.0, 1.0)
}

/// The most likely step: of all splits the one with the largest |t| between the means of its sides (Hawkins
/// 1977).
///
/// Its p-value is that of t with n − 2 degrees of freedom times the number of splits, at most 1 (Bonferroni).
/// Worsley 1982 shows that this is close if the p-value is small. `None` unless both sides can have
/// [`STEP_SIDE_MIN`] values, above [`SERIES_MAX`], without spread, or with a value that is not finite.
pub fn step(values: &[f64]) -> Option<LevelShift> {
    let n = values.len();
    let finite = values.iter().all(|value| value.is_finite());
    if !(2 * STEP_SIDE_MIN..=SERIES_MAX).contains(&n) || !finite {
        return None;
    }
    let (mean, sd) = mean_and_sd(values);
    if !has_spread(mean, sd) {
        return None;
    }
    let splits = STEP_SIDE_MIN..=n - STEP_SIDE_MIN;
    let places = (n - 2 * STEP_SIDE_MIN + 1) as f64;
    let at = |after: usize| (after, difference_and_t(&values[..after], &values[after..]));
    let (after, (difference, t)) = splits
        .map(at)
        .max_by(|one, other| one.1.1.total_cmp(&other.1.1))?;
    Some(LevelShift {
        after,
        difference,
        p: (places * two_sided_p(t, (n - 2) as f64)).min(1.0),
    })
}

/// Mean of the second minus mean of the first, and Student's |t| with a common variance. Infinite if neither
/// side varies.
fn difference_and_t(first: &[f64], second: &[f64]) -> (f64, f64) {
    let (mean_1, sd_1) = mean_and_sd(first);
    let (mean_2, sd_2) = mean_and_sd(second);
    let (n_1, n_2) = (first.len() as f64, second.len() as f64);
    let variance = ((n_1 - 1.0) * sd_1.powi(2) + (n_2 - 1.0) * sd_2.powi(2)) / (n_1 + n_2 - 2.0);
    let difference = mean_2 - mean_1;
    let t = difference.abs() / (variance * (1.0 / n_1 + 1.0 / n_2)).sqrt();
    (difference, if t.is_nan() { 0.0 } else { t })
}

/// Lag-1 autocorrelation ([`lag1`](crate::lag1)) that independent blocks exceed with a probability of about
/// `alpha`, one-sided: 0.72 for 10 blocks and 0.001, 0.50 for 30.
///
/// Mean and variance of the autocorrelation are exact for normal noise (Dufour & Roy 1985), and its tail is
/// assumed to be normal. That is safe, because the true tail ends at cos(π/(n + 1)). `None` below 4 blocks,
/// and unless 0 < `alpha` < 1.
pub fn lag1_critical(blocks: u32, alpha: f64) -> Option<f64> {
    if blocks < 4 || !is_share(alpha) {
        return None;
    }
    let n = f64::from(blocks);
    let variance = (n.powi(4) - 4.0 * n.powi(3) + 3.0 * n.powi(2) + 4.0 * n - 4.0)
        / ((n + 1.0) * n.powi(2) * (n - 1.0).powi(2));
    Some((-1.0 / n - normal_quantile(alpha) * variance.sqrt()).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_little_or_no_number_has_no_answer() {
        for values in [
            &[][..],
            &[1.0, 2.0],
            &[1.0, f64::NAN, 2.0, 3.0, 4.0, 5.0, 6.0],
        ] {
            assert_eq!(mann_kendall(values), None, "{values:?}");
            assert_eq!(step(values), None, "{values:?}");
        }
        assert_eq!(step(&[1.0; 9]), None, "without spread there is no step");
        assert_eq!(mann_kendall(&vec![1.0; SERIES_MAX + 1]), None);
        assert_eq!(
            (lag1_critical(3, 0.001), lag1_critical(10, 0.0)),
            (None, None)
        );
    }

    #[test]
    fn values_all_alike_have_no_trend_and_a_clean_step_is_where_it_is() {
        let flat = mann_kendall(&[2.0; 8]).expect("eight values");
        assert_eq!((flat.s, flat.p, flat.slope), (0, 1.0, 0.0));
        // Of the 12 orders of 1, 1, 2, 3 two have as large an |S| as this one.
        assert!(mann_kendall(&[1.0, 1.0, 2.0, 3.0]).expect("four values").p >= 2.0 / 12.0);
        let found = step(&[1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0]).expect("it varies");
        assert_eq!((found.after, found.difference, found.p), (4, 2.0, 0.0));
    }
}
