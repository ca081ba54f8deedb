//! A second opinion on "there is a difference" that no outlier can deceive, at any time.
//!
//! It takes the signs of the log ratios as fair coins and nothing else: no variance need exist, blocks may differ in width,
//! and it may be read after every block.
//!
//! Must not: be read as an interval or an effect, replace the verdict (it sees less), or be given a scale that was
//! chosen by the data it judges. It does not bear noise that leans to one side, nor blocks that resemble one another.

use crate::Error;
use crate::estimate::blocks;
use crate::student::check_alpha;

/// ρ: roughly how much squared, scaled data there must be before the guard believes anything. Four blocks of one scale each.
pub const GUARD_RHO: f64 = 4.0;

/// What the guard says after some number of blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guard {
    /// Blocks it has seen.
    pub blocks: u32,
    /// Natural logarithm of the evidence against "no difference": 0 is none, ln 20 = 3.0 is what α = 0.05 asks for. May
    /// fall again as blocks come.
    pub ln_evidence: f64,
    /// Whether the evidence exceeds 1/α here: the difference is then no matter of outliers.
    pub rejects: bool,
}

/// The evidence in the log ratios `d` (natural logarithm, variant over baseline, one per block in the order measured) against
/// signs that are fair coins, in units of `scale` (same units as `d`: 0.01 for ratios that scatter by 1 %).
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
///
/// # Errors
/// [`Error::Alpha`] unless 0 < `alpha` < 1, [`Error::NotPositive`] unless `scale` is a positive number, and
/// [`Error::NotFinite`] with the block's index for a value that is not finite or so many scales large that its square is not.
pub fn guard(d: &[f64], scale: f64, alpha: f64) -> Result<Guard, Error> {
    check_alpha(alpha)?;
    if !(scale > 0.0 && scale.is_finite()) {
        return Err(Error::NotPositive { what: "scale", value: scale });
    }
    let blocks = blocks(d, 0)?;
    let (mut sum, mut squares) = (0.0_f64, 0.0_f64);
    for (index, value) in d.iter().enumerate() {
        let scaled = value / scale;
        sum += scaled;
        squares += scaled * scaled;
        if !(sum * sum + squares).is_finite() {
            return Err(Error::NotFinite { index, value: *value });
        }
    }
    let spread = squares + GUARD_RHO;
    let ln_evidence = sum * sum / (2.0 * spread) - (spread / GUARD_RHO).ln() / 2.0;
    Ok(Guard { blocks, ln_evidence, rejects: ln_evidence > -alpha.ln() })
}
