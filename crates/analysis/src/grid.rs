//! A metric for each combination of two factors' levels: what a plot of interactions shows.
//!
//! Must not: judge whether there is an interaction; that is what [`Effect`](crate::Effect)s are for.

use plan::{Metric, Plan};
use record::Record;

use crate::series::Series;

/// A metric over two factors: geometric means over trials, and over the levels of all other factors.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// The metric.
    pub metric: Metric,
    /// Index of one factor in the plan.
    pub across: usize,
    /// Index of another.
    pub lines: usize,
    /// A row for each level of `lines`, with a value for each level of `across`: per second, in microseconds, or in bytes; `None` where
    /// a variant has none.
    pub values: Vec<Vec<Option<f64>>>,
}

/// Each pair of factors once, the first of the plan across, for each of the series; none with fewer than two factors.
pub fn grids(record: &Record, all: &[Series]) -> Vec<Grid> {
    let plan = &record.header.plan;
    let factors = plan.factors.len();
    let pairs = (0..factors).flat_map(|across| (across + 1..factors).map(move |lines| (across, lines)));
    let pairs: Vec<(usize, usize)> = pairs.collect();
    all.iter().flat_map(|series| of_metric(plan, series, &pairs)).collect()
}

fn of_metric(plan: &Plan, series: &Series, pairs: &[(usize, usize)]) -> Vec<Grid> {
    let means: Vec<Option<f64>> = (0..plan.variants.len()).map(|variant| series.mean(variant)).collect();
    let grid = |(across, lines): &(usize, usize)| {
        let row = |line: &String| {
            let cell = |level: &String| cell(plan, &means, [(*across, level), (*lines, line)]);
            plan.factors[*across].levels.iter().map(cell).collect()
        };
        let values = plan.factors[*lines].levels.iter().map(row).collect();
        Grid { metric: series.of, across: *across, lines: *lines, values }
    };
    pairs.iter().map(grid).collect()
}

/// The variants that have both levels, without the copy of the baseline, which would count twice.
fn cell(plan: &Plan, means: &[Option<f64>], levels: [(usize, &String); 2]) -> Option<f64> {
    let copy = plan.aa.as_ref().map(|aa| aa.candidate);
    let has = |variant: &plan::Variant| {
        levels.iter().all(|(factor, level)| variant.levels.get(&plan.factors[*factor].name) == Some(*level))
    };
    let variants = plan.variants.iter().zip(means).enumerate();
    let chosen = variants.filter(|(index, (variant, _))| copy != Some(*index) && has(variant));
    let logs = chosen.map(|(_, (_, mean))| mean.map(f64::ln)).collect::<Option<Vec<f64>>>()?;
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}
