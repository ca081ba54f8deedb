//! Two methods for looking after *every* block without a plan of looks.
//!
//! The confidence sequence consists of intervals that all contain the true value together. Compared with the
//! few looks of a plan of 30 blocks ([`crate::Looks`]), it is no wider up to about 10 blocks and half as wide
//! again at 30. In return, the end of the run need not be known. It must not be used for skewed noise (13 %
//! of runs of 200 blocks of exponential noise err at some time) or noise with few values (coins: 9 %), nor
//! with a `g` chosen after a look at the data. It is exact only for independent normal noise.
//!
//! The guard is a second opinion on "there is a difference" that is robust against outliers. It assumes only
//! that the signs of the log ratios are fair coins: variances need not exist, and blocks may differ in width.
//! It is not an interval or an effect, it does not replace the verdict (it has less power), and its scale
//! must not be chosen from the same data. It is invalid for skewed noise and for autocorrelated blocks.

use crate::student::is_share;

/// Default `g`: the variance, in units of the blocks' variance, of the effects for which the sequence is
/// tuned. 1 is for effects of about one standard deviation of a block.
pub const SEQUENCE_G: f64 = 1.0;

/// Critical t after `blocks` blocks, for [`Estimate::of`](crate::Estimate::of). The interval is mean ± t
/// s/√n, where s is the standard deviation of the log ratios with **n − 1** in the denominator. `None` if the
/// interval is the whole line.
///
/// ```text
/// R = 1 + n g      A = (R/α²)^(1/n)      t = √((n − 1)(A − 1) R / (R − A)),  infinite where A ≥ R
/// ```
/// With the true mean μ and t_n = √n (mean − μ)/s, the likelihood ratio of a standardised effect drawn from
/// N(0, g) against none is R^(−½) ((1 + t_n²/(n − 1)) / (1 + t_n²/(R (n − 1))))^(n/2). It depends on the data
/// only up to their scale, and is a martingale that starts at 1. By Ville's inequality it ever reaches 1/α
/// with a probability of at most α. Solved for t_n it gives the formula above. The n − 1 comes from s² = Σ(d
/// − mean)²/(n − 1) in t_n. For α = 0.05 and g = 1 there is no interval below 5 blocks, and t is 5.45, 3.87,
/// 3.42, 3.35 at 6, 10, 20, 30.
///
/// Source: Wang & Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown
/// variance" (arXiv 2310.03722), 2023, the Gaussian mixture. The likelihood ratio is that of Lai 1976 and of
/// Robbins 1970.
///
/// Several comparisons each use α/m. `None` also unless `g` is a positive number and 0 < `alpha` < 1.
pub fn sequence_t(blocks: u32, g: f64, alpha: f64) -> Option<f64> {
    let in_range = blocks > 0 && g > 0.0 && g.is_finite() && is_share(alpha);
    let n = f64::from(blocks);
    let r = 1.0 + n * g;
    // A − 1, which keeps its digits if A is close to 1.
    let above_one = ((r.ln() - 2.0 * alpha.ln()) / n).exp_m1();
    let room = n * g - above_one;
    let square = (n - 1.0) * above_one * r / room;
    (in_range && room > 0.0 && square.is_finite()).then(|| square.sqrt())
}

/// ρ: roughly the sum of squared, scaled data required before the guard can reject. Equals four blocks of one
/// scale each.
pub const GUARD_RHO: f64 = 4.0;

/// Natural logarithm of the evidence in the log ratios `d` against signs that are fair coins. `d` has the
/// natural logarithm of variant over baseline, one per block in order of measurement. `scale` has the same
/// units as `d`: 0.01 for ratios that scatter by 1 %. Above −ln α (3.0 for α = 0.05) the difference is not
/// explained by outliers. The evidence may decrease with further blocks.
///
/// ```text
/// S = Σ d/scale,  V = Σ (d/scale)²      rejects when  S² > (V + ρ) ln((V + ρ) / (ρ α²)),  ρ = 4
/// ```
/// If each d is as likely to be x as −x given all before it, exp(λS − λ²V/2) is a supermartingale for every
/// λ, and so is its mean over λ from N(0, 1/ρ), which is √(ρ/(V + ρ)) exp(S²/(2 (V + ρ))). By Ville's
/// inequality it ever exceeds 1/α with a probability of at most α, whatever the tails. Source: de la Peña,
/// Klass & Lai, "Self-normalized processes", Annals of Probability 32, 2004; for symmetric variables de la
/// Peña 1999; mixture by Robbins 1970.
///
/// `scale` must be fixed before the data are seen (the plan's guess of the spread is enough). It affects
/// power, not the error rate. With the best scale and blocks that all agree, α = 0.05 takes ten blocks. No
/// blocks give no evidence, and zeros add none. `None` unless `scale` is a positive number, and for a value
/// that is not finite or whose square in units of `scale` overflows.
pub fn guard(d: &[f64], scale: f64) -> Option<f64> {
    let scaled = d.iter().map(|value| value / scale);
    let (sum, squares) = scaled.fold((0.0_f64, 0.0_f64), |(sum, squares), x| (sum + x, squares + x * x));
    let spread = squares + GUARD_RHO;
    let evidence = sum * sum / (2.0 * spread) - (spread / GUARD_RHO).ln() / 2.0;
    (scale > 0.0 && scale.is_finite() && (sum * sum + squares).is_finite()).then_some(evidence)
}
