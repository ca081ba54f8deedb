//! A confidence sequence: intervals after *every* block that all hold the truth together, with no plan of looks.
//!
//! The price of looking whenever one likes, beside the few looks of a plan of 30 blocks ([`crate::Looks`]): no wider up to
//! about 10 blocks, half as wide again at 30. In return no end of the run need be known.
//!
//! Must not: be used where noise leans to one side (of runs of 200 blocks of exponential noise, 13 % err at some time) or takes few
//! values (coins: 9 %), nor with `g` chosen after a look at the data. It is exact for independent normal noise only; the
//! [`guard`](crate::guard()) asks for less.

use crate::Error;
use crate::student::check_alpha;

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
/// Several comparisons each take α/m.
///
/// # Errors
/// [`Error::TooFewBlocks`] for none, [`Error::NotPositive`] unless `g` is a positive number, [`Error::Alpha`] unless
/// 0 < `alpha` < 1.
pub fn sequence_t(blocks: u32, g: f64, alpha: f64) -> Result<Option<f64>, Error> {
    check_alpha(alpha)?;
    if !(g > 0.0 && g.is_finite()) {
        return Err(Error::NotPositive { what: "g", value: g });
    }
    if blocks < 1 {
        return Err(Error::TooFewBlocks { blocks, least: 1 });
    }
    let n = f64::from(blocks);
    let r = 1.0 + n * g;
    // A − 1, which keeps its digits where A is next to 1.
    let above_one = ((r.ln() - 2.0 * alpha.ln()) / n).exp_m1();
    let room = n * g - above_one;
    let square = (n - 1.0) * above_one * r / room;
    Ok((room > 0.0 && square.is_finite()).then(|| square.sqrt()))
}
