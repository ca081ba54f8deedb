//! Critical values of Student's t distribution.
//!
//! Wraps `statrs` with blocks and levels as arguments. When to look is decided in `looks`.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};
use statrs::function::erf::{erfc, erfc_inv};
use std::f64::consts::{PI, SQRT_2};

/// Critical t of a plain two-sided interval of confidence `level` for `blocks` blocks (`blocks − 1` degrees
/// of freedom): 2.571 for 6 blocks at 0.95.
///
/// For exploratory metrics with a single look. It does not account for repeated looks or several comparisons.
/// The primary metric uses the critical values of [`crate::Looks`]. `None` below 2 blocks, and unless 0 <
/// `level` < 1.
pub fn plain_t(blocks: u32, level: f64) -> Option<f64> {
    is_share(level).then(|| two_sided_t(blocks, 1.0 - level))?
}

/// The t for `blocks` blocks with the same two-sided tail probability as `z` under the normal distribution.
///
/// This converts a boundary for known spread to one for estimated spread (Jennison & Turnbull 2000, section
/// 3.8). `None` below 2 blocks, and unless `z` is a positive number.
pub fn critical_t_at(z: f64, blocks: u32) -> Option<f64> {
    let p = two_sided(z);
    (z > 0.0 && p > 0.0).then(|| two_sided_t(blocks, p))?
}

/// Probability of the standard normal distribution outside ±z.
pub(crate) fn two_sided(z: f64) -> f64 {
    erfc(z / SQRT_2)
}

/// Two-sided critical value of the normal distribution: 1.960 for 0.95. `None` unless `level` is in (0, 1).
pub(crate) fn normal_z(level: f64) -> Option<f64> {
    is_share(level).then(|| SQRT_2 * erfc_inv(1.0 - level))
}

/// Quantile `p` of the standard normal distribution. Infinite for 0 and 1.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    -SQRT_2 * erfc_inv(2.0 * p)
}

/// Whether a value is valid as a level or an error rate.
pub(crate) fn is_share(value: f64) -> bool {
    value > 0.0 && value < 1.0
}

/// Probability outside ±t with these degrees of freedom, which need not be an integer. 1 if it is not finite.
pub(crate) fn two_sided_p(t: f64, freedom: f64) -> f64 {
    let below = StudentsT::new(0.0, 1.0, freedom).map(|distribution| distribution.cdf(-t.abs()));
    below.map_or(1.0, |share| {
        if share.is_finite() {
            (2.0 * share).min(1.0)
        } else {
            1.0
        }
    })
}

/// The t with probability `p` outside ±t. `None` below 2 blocks. Computed from the lower tail, where a small
/// `p` keeps its digits.
fn two_sided_t(blocks: u32, p: f64) -> Option<f64> {
    match blocks {
        0 | 1 => None,
        // The Cauchy distribution, in closed form: statrs is off by a factor of five far out in its tails.
        2 => Some(1.0 / (PI * p / 2.0).tan()),
        _ => Some(two_sided_t_of(f64::from(blocks - 1), p)),
    }
}

/// Like [`two_sided_t`], with degrees of freedom that need not be an integer. Fewer than one count as one.
pub(crate) fn two_sided_t_of(freedom: f64, p: f64) -> f64 {
    let distribution = StudentsT::new(0.0, 1.0, freedom.max(1.0))
        .expect("unit scale and at least one degree of freedom");
    -distribution.inverse_cdf(p / 2.0)
}

/// Probability of a larger ratio of two equal variances with these degrees of freedom. 0 if the ratio is not
/// finite.
pub(crate) fn f_above(ratio: f64, above: f64, below: f64) -> f64 {
    let distribution = FisherSnedecor::new(above, below)
        .ok()
        .filter(|_| ratio.is_finite());
    distribution.map_or(0.0, |distribution| distribution.sf(ratio))
}
