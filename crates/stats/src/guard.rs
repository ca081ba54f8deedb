//! The guard: a second opinion on "there is a difference" that is robust against outliers, and valid after every block.
//!
//! It assumes only that the signs of the log ratios are fair coins: variances need not exist, and blocks may differ in width.
//! It is not an interval or an effect, it does not replace the verdict (it has less power), and its scale
//! must not be chosen from the same data. It is invalid for skewed noise and for autocorrelated blocks.

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
    let (sum, squares) = scaled.fold((0.0_f64, 0.0_f64), |(sum, squares), x| {
        (sum + x, squares + x * x)
    });
    let spread = squares + GUARD_RHO;
    let evidence = sum * sum / (2.0 * spread) - (spread / GUARD_RHO).ln() / 2.0;
    (scale > 0.0 && scale.is_finite() && (sum * sum + squares).is_finite()).then_some(evidence)
}
