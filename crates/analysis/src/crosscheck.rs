//! What methods that assume less say to the blocks of an estimate. They qualify it; the verdict is the interval's alone.

use record::Record;
use schemars::JsonSchema;
use serde::Serialize;
use stats::{Estimate, Interval, Resampling};

/// Resamples of the bootstrap.
const RESAMPLES: u32 = 2_000;
/// Level of both intervals that are held against each other.
const LEVEL: f64 = 0.95;

/// Other views of the same blocks.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CrossCheck {
    /// The ratio's interval by bootstrap-t over blocks, which bears skewed noise; 95 %, as if looked at once. `None` where
    /// resamples have no spread.
    pub bootstrap: Option<Interval>,
    /// The same by t: the two differ where noise is skewed.
    pub plain: Option<Interval>,
    /// Whether signs alone, without any trust in how wide noise is, show a difference; it takes ten blocks at least. `None` where
    /// the margin gives it no scale.
    pub guard_rejects: Option<bool>,
    /// Correlation of neighbouring blocks, from −1 to 1.
    pub lag1: Option<f64>,
}

impl CrossCheck {
    /// Whether the bootstrap finds no difference where the estimate's own interval, which is wider than 95 %, finds one.
    pub fn contradicts(&self, estimate: &Estimate) -> bool {
        let finds = estimate.low > 1.0 || estimate.high < 1.0;
        finds && self.bootstrap.as_ref().is_some_and(|interval| interval.low <= 1.0 && interval.high >= 1.0)
    }
}

pub(crate) fn of(d: &[f64], estimate: &Estimate, margin: f64, record: &Record) -> Option<CrossCheck> {
    let resampling = Resampling { seed: record.header.seed, resamples: RESAMPLES };
    let bootstrap = stats::bootstrap_t(d, LEVEL, resampling).ok();
    let plain_t = stats::plain_t(estimate.blocks, LEVEL).ok()?;
    let plain = Estimate::of(d, plain_t).ok().map(|plain| Interval { low: plain.low, high: plain.high });
    // The margin is the one width that is fixed before anything is seen.
    let guard = stats::guard(d, margin.ln_1p(), stats::ALPHA).ok();
    Some(CrossCheck {
        bootstrap,
        plain,
        guard_rejects: guard.map(|guard| guard.rejects),
        lag1: stats::lag1(d),
    })
}
