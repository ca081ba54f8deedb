//! Two ways to look after *every* block, with no plan of looks.
//!
//! The confidence sequence: intervals that all hold the truth together. The price of looking whenever one likes, beside the few looks
//! of a plan of 30 blocks ([`crate::Looks`]): no wider up to about 10 blocks, half as wide again at 30. In return no end of the run
//! need be known. Must not: be used where noise leans to one side (of runs of 200 blocks of exponential noise, 13 % err at some time)
//! or takes few values (coins: 9 %), nor with `g` chosen after a look at the data. It is exact for independent normal noise only.
//!
//! The guard: a second opinion on "there is a difference" that no outlier can deceive. It takes the signs of the log ratios as fair
//! coins and nothing else: no variance need exist, and blocks may differ in width. Must not: be read as an interval or an effect,
//! replace the verdict (it sees less), or be given a scale that was chosen by the data it judges. It does not bear noise that leans
//! to one side, nor blocks that resemble one another.

use crate::student::is_share;

/// The usual `g`: variance, in units of the blocks' own, of the effects for which the sequence is made. 1 is made for
/// effects of about one standard deviation of a block.
pub const SEQUENCE_G: f64 = 1.0;

/// The critical t after `blocks` blocks, for [`Estimate::of`](crate::Estimate::of): the interval is mean ± t s/√n with s the
/// standard deviation of the log ratios with **n − 1** in the denominator. `None` where the interval is the whole line.
///
/// ```text
/// R = 1 + n g      A = (R/α²)^(1/n)      t = √((n − 1)(A − 1) R / (R − A)),  infinite where A ≥ R
/// ```
/// With μ the truth and t_n = √n (mean − μ)/s, the likelihood ratio of a standardised effect drawn from N(0, g) against none is
/// R^(−½) ((1 + t_n²/(n − 1)) / (1 + t_n²/(R (n − 1))))^(n/2). It sees the data up to their scale only, and is a martingale from 1
/// on; by Ville's inequality it ever reaches 1/α with a probability of at most α. Solved for t_n it is the line above: the
/// n − 1 comes in with s² = Σ(d − mean)²/(n − 1) in t_n. For α = 0.05 and g = 1 there is no interval below 5 blocks, and t is 5.45,
/// 3.87, 3.42, 3.35 at 6, 10, 20, 30.
///
/// Source: Wang & Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance"
/// (arXiv 2310.03722), 2023, the Gaussian mixture; the likelihood ratio is that of Lai 1976 and of Robbins 1970.
///
/// Several comparisons each take α/m. `None` also unless `g` is a positive number and 0 < `alpha` < 1.
pub fn sequence_t(blocks: u32, g: f64, alpha: f64) -> Option<f64> {
    let in_range = blocks > 0 && g > 0.0 && g.is_finite() && is_share(alpha);
    let n = f64::from(blocks);
    let r = 1.0 + n * g;
    // A − 1, which keeps its digits where A is next to 1.
    let above_one = ((r.ln() - 2.0 * alpha.ln()) / n).exp_m1();
    let room = n * g - above_one;
    let square = (n - 1.0) * above_one * r / room;
    (in_range && room > 0.0 && square.is_finite()).then(|| square.sqrt())
}

/// ρ: roughly how much squared, scaled data there must be before the guard believes anything. Four blocks of one scale each.
pub const GUARD_RHO: f64 = 4.0;

/// Natural logarithm of the evidence in the log ratios `d` (natural logarithm, variant over baseline, one per block in the order
/// measured) against signs that are fair coins, in units of `scale` (same units as `d`: 0.01 for ratios that scatter by 1 %).
/// Above −ln α the difference is no matter of outliers: 3.0 for α = 0.05. It may fall again as blocks come.
///
/// ```text
/// S = Σ d/scale,  V = Σ (d/scale)²      rejects when  S² > (V + ρ) ln((V + ρ) / (ρ α²)),  ρ = 4
/// ```
/// Where each d is as likely to be x as −x given all before it, exp(λS − λ²V/2) is a supermartingale for every λ, and so is
/// its mean over λ from N(0, 1/ρ), which is √(ρ/(V + ρ)) exp(S²/(2 (V + ρ))). By Ville's inequality it ever exceeds 1/α with a
/// probability of at most α, whatever the tails. Source: de la Peña, Klass & Lai, "Self-normalized processes", Annals of
/// Probability 32, 2004; for symmetric variables de la Peña 1999; mixture by Robbins 1970.
///
/// `scale` must be fixed before the data are seen (a plan's guess at the spread will do): it moves power, not the error. With the
/// best of scales and blocks that all agree, α = 0.05 takes ten blocks. No blocks give no evidence, and zeros add none.
/// `None` unless `scale` is a positive number, and for a value that is not finite, or so many scales large that its square is not.
pub fn guard(d: &[f64], scale: f64) -> Option<f64> {
    let scaled = d.iter().map(|value| value / scale);
    let (sum, squares) = scaled.fold((0.0_f64, 0.0_f64), |(sum, squares), x| (sum + x, squares + x * x));
    let spread = squares + GUARD_RHO;
    let evidence = sum * sum / (2.0 * spread) - (spread / GUARD_RHO).ln() / 2.0;
    (scale > 0.0 && scale.is_finite() && (sum * sum + squares).is_finite()).then_some(evidence)
}
