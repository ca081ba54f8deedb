//! Critical values of Student's t, the one distribution the estimates need.
//!
//! Wraps `statrs` so that callers speak of blocks and levels; decides nothing about when to look (see `looks`).

use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};
use statrs::function::erf::{erfc, erfc_inv};
use std::f64::consts::{PI, SQRT_2};

/// The t that a plain two-sided interval of confidence `level` uses for `blocks` blocks (`blocks − 1` degrees of
/// freedom): 2.571 for 6 blocks at 0.95.
///
/// For exploratory metrics, looked at once. It knows nothing of repeated looks or several comparisons: the primary
/// metric takes its critical values from [`crate::Looks`]. `None` below 2 blocks, and unless 0 < `level` < 1.
pub fn plain_t(blocks: u32, level: f64) -> Option<f64> {
    is_share(level).then(|| two_sided_t(blocks, 1.0 - level))?
}

/// The t with the same two-sided tail probability for `blocks` blocks as `z` has under the normal distribution.
///
/// This carries a boundary made for known spread over to an estimated one (Jennison & Turnbull 2000, section 3.8). `None` below 2
/// blocks, and unless `z` is a positive number.
pub fn critical_t_at(z: f64, blocks: u32) -> Option<f64> {
    let p = two_sided(z);
    (z > 0.0 && p > 0.0).then(|| two_sided_t(blocks, p))?
}

/// Share of the standard normal distribution outside ±z.
pub(crate) fn two_sided(z: f64) -> f64 {
    erfc(z / SQRT_2)
}

/// Two-sided critical value of the normal distribution: 1.960 for 0.95. `None` unless `level` lies in (0, 1).
pub(crate) fn normal_z(level: f64) -> Option<f64> {
    is_share(level).then(|| SQRT_2 * erfc_inv(1.0 - level))
}

/// The z below which a share `p` of the standard normal distribution lies; infinite for 0 and 1.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    -SQRT_2 * erfc_inv(2.0 * p)
}

/// Whether it can be a level or an error rate.
pub(crate) fn is_share(value: f64) -> bool {
    value > 0.0 && value < 1.0
}

/// Probability outside ±t with so many degrees of freedom, which need not be whole; 1 for what is no number.
pub(crate) fn two_sided_p(t: f64, freedom: f64) -> f64 {
    let below = StudentsT::new(0.0, 1.0, freedom).map(|distribution| distribution.cdf(-t.abs()));
    below.map_or(1.0, |share| if share.is_finite() { (2.0 * share).min(1.0) } else { 1.0 })
}

/// t with probability `p` outside ±t; `None` below 2 blocks. The lower tail is asked for, where a small `p` keeps its digits.
fn two_sided_t(blocks: u32, p: f64) -> Option<f64> {
    match blocks {
        0 | 1 => None,
        // The Cauchy distribution, in closed form: statrs is off by a factor of five far out in its tails.
        2 => Some(1.0 / (PI * p / 2.0).tan()),
        _ => Some(two_sided_t_of(f64::from(blocks - 1), p)),
    }
}

/// The same for degrees of freedom that need not be whole. Fewer than one count as one.
pub(crate) fn two_sided_t_of(freedom: f64, p: f64) -> f64 {
    let distribution =
        StudentsT::new(0.0, 1.0, freedom.max(1.0)).expect("unit scale and at least one degree of freedom");
    -distribution.inverse_cdf(p / 2.0)
}

/// The chance of a larger ratio of two variances with so many degrees of freedom, where both are one; 0 for what is no number.
pub(crate) fn f_above(ratio: f64, above: f64, below: f64) -> f64 {
    let distribution = FisherSnedecor::new(above, below).ok().filter(|_| ratio.is_finite());
    distribution.map_or(0.0, |distribution| distribution.sf(ratio))
}
