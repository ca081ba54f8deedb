//! Intervals for shares, such as failed requests of all requests, and for the difference of two.

use crate::{Error, student::normal_z};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Two ends with the truth in between, at the level the caller asked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Wilson's score interval (1927) for a share of which `hits` of `total` were seen, two-sided at `level` such as 0.95.
///
/// Honest at the edges: 0 errors of 1,000 requests give 0 to 0.0038, not "0 ± 0". It takes requests as
/// independent, which failures in bursts are not: it describes one trial and makes no comparison of variants.
/// `Ok(None)` when `total` is 0.
///
/// # Errors
/// [`Error::Level`] unless 0 < `level` < 1. More hits than `total` count as `total`.
pub fn wilson(hits: u64, total: u64, level: f64) -> Result<Option<Interval>, Error> {
    let z = normal_z(level)?;
    if total == 0 {
        return Ok(None);
    }
    let n = total as f64;
    let share = share((hits, total));
    let shrink = 1.0 / (1.0 + z * z / n);
    let centre = shrink * (share + z * z / (2.0 * n));
    let half_width = shrink * z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    // Rounding must not move an end past a share that was seen: 0 of n has its low end at 0, n of n its high at 1.
    let low = (centre - half_width).clamp(0.0, share);
    let high = (centre + half_width).clamp(share, 1.0);
    Ok(Some(Interval { low, high }))
}

/// Newcombe's hybrid score interval (1998, his method 10) for the difference first − second of two shares, each as hits of a
/// total, from −1 to 1 and two-sided at `level`.
///
/// ```text
/// low  = p1 − p2 − √((p1 − l1)² + (u2 − p2)²)      l, u the ends of Wilson's interval of each share
/// high = p1 − p2 + √((u1 − p1)² + (p2 − l2)²)
/// ```
/// For error rates side by side in one trial each. Like [`wilson`] it takes requests as independent: no verdict may rest on
/// it, and totals of several blocks must not be pooled into it. `Ok(None)` when either total is 0.
///
/// # Errors
/// [`Error::Level`] unless 0 < `level` < 1. More hits than their total count as the total.
pub fn newcombe(first: (u64, u64), second: (u64, u64), level: f64) -> Result<Option<Interval>, Error> {
    let (first_ends, second_ends) = (wilson(first.0, first.1, level)?, wilson(second.0, second.1, level)?);
    let Some((one, other)) = first_ends.zip(second_ends) else { return Ok(None) };
    let (p1, p2) = (share(first), share(second));
    let low = p1 - p2 - (p1 - one.low).hypot(other.high - p2);
    let high = p1 - p2 + (one.high - p1).hypot(p2 - other.low);
    Ok(Some(Interval { low: low.max(-1.0), high: high.min(1.0) }))
}

fn share((hits, total): (u64, u64)) -> f64 {
    hits.min(total) as f64 / total as f64
}
