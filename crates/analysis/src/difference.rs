//! A comparison's difference in the metric's own unit: what a proxy adds to a request, in microseconds and not in per cent.
//!
//! It tells what the ratio says once more and decides nothing. Of throughput there is none: requests per second do not add up.

use model::{Metric, Unit};
use schemars::JsonSchema;
use serde::Serialize;

use crate::metric::BlockFigures;

/// Candidate less baseline, over blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// What it is counted in.
    pub unit: Unit,
    /// Mean of the blocks' differences.
    pub value: f64,
    /// Lower end of its interval, by t with the critical value of the ratio's.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Difference {
    /// `None` where a block has no value, all differ by the same, or the metric is no cost.
    pub(crate) fn of(
        blocks: &[BlockFigures],
        asked: &plan::Comparison,
        metric: Metric,
        critical_t: f64,
    ) -> Option<Difference> {
        let unit = metric.unit();
        if unit == Unit::PerS {
            return None;
        }
        let of = |block: &BlockFigures| block.difference(metric, asked.baseline, asked.candidate);
        let d = blocks.iter().map(of).collect::<Option<Vec<f64>>>()?;
        let mean = stats::MeanInterval::of(&d, critical_t)?;
        Some(Difference { unit, value: mean.value, low: mean.low, high: mean.high })
    }
}
