//! Each metric block by block, for pictures and tables of what an estimate rests on. Never for comparing: that is
//! [`conclude`](crate::conclude)'s work.
//!
//! Must not: let a block count that does not, or give a ratio where a comparison may show no number.

use std::collections::BTreeSet;

use model::Metric;
use record::{Block, Record};

use crate::comparison::Comparison;
use crate::metric::{BlockFigures, metrics};
use crate::spread::geometric_mean;

/// One metric's value in each block, for each variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The metric.
    pub of: Metric,
    /// Numbers of the blocks that came to their end, dropped ones among them.
    pub blocks: Vec<u32>,
    /// Those of them that count for nothing.
    pub dropped: Vec<u32>,
    /// `values[variant][block]`, by place in the plan and in `blocks`. `None` where there is no value: nothing succeeded, a quantile
    /// is only bounded, or too few requests bear it.
    pub values: Vec<Vec<Option<f64>>>,
}

/// Every metric that a record has figures of, in the order in which reports have them.
pub fn series(record: &Record) -> Vec<Series> {
    let ended: Vec<&Block> = record.blocks.iter().filter(|block| block.seconds.is_some()).collect();
    let variants = record.header.plan.variants.len();
    let figures = BlockFigures::of(record, ended.iter().copied());
    let of = |metric: Metric| {
        let of_variant =
            |variant: usize| figures.iter().map(|block| block.value(metric, variant)).collect::<Vec<_>>();
        Series {
            of: metric,
            blocks: ended.iter().map(|block| block.number).collect(),
            dropped: ended.iter().filter(|of| of.dropped.is_some()).map(|of| of.number).collect(),
            values: (0..variants).map(of_variant).collect(),
        }
    };
    metrics(record).map(of).collect()
}

impl Series {
    /// For each of the blocks, whether it counts.
    pub fn counts(&self) -> Vec<bool> {
        let dropped: BTreeSet<u32> = self.dropped.iter().copied().collect();
        self.blocks.iter().map(|block| !dropped.contains(block)).collect()
    }

    /// Geometric mean over the blocks that count, and over these variants; `None` where one of them has no value.
    pub fn mean(&self, variants: impl IntoIterator<Item = usize>) -> Option<f64> {
        let of = |variant: usize| {
            let counting = self.values.get(variant)?.iter().zip(self.counts()).filter(|(_, counts)| *counts);
            geometric_mean(counting.map(|(value, _)| *value).collect::<Option<Vec<f64>>>()?)
        };
        geometric_mean(variants.into_iter().map(of).collect::<Option<Vec<f64>>>()?)
    }
}

/// Candidate over baseline in each block that counts, in their order; empty where the comparison may show no number: it is void or
/// without success, waits for its one look, or a block has no value.
pub fn ratios_by_block(all: &[Series], comparison: &Comparison) -> Vec<f64> {
    let series = all.iter().find(|series| series.of == comparison.metric);
    // Where there may be no ratio of all blocks together there is none of one.
    let Some(series) = series.filter(|_| comparison.ratio_so_far.is_some()) else { return Vec::new() };
    let of = |variant: usize| series.values.get(variant).map(Vec::as_slice).unwrap_or_default();
    let pairs = of(comparison.candidate).iter().zip(of(comparison.baseline)).zip(series.counts());
    pairs.filter(|(_, counts)| *counts).filter_map(|((one, other), _)| Some((*one)? / (*other)?)).collect()
}
