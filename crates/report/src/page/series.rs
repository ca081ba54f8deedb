//! Figures block by block and over two factors: what pictures of the evidence are drawn from.
//!
//! Must not: show over two factors what effects may not show.

use analysis::{Conclusion, Grid, Outcome, Series};
use plan::{Factor, Plan};
use record::Record;

use super::bounds::{NUMBERS_MAX, evenly, rounded, shown};
use super::model::{BlockSeries, Interaction};
use model::quantity::count;

/// Each metric block by block, in at most so many blocks that all variants together stay within bounds.
pub(super) fn by_block(all: &[Series], left_out: &mut Vec<String>) -> Vec<BlockSeries> {
    let variants = all.first().map_or(0, |series| series.values.len());
    let blocks_max = NUMBERS_MAX / variants.max(1);
    let blocks = all.first().map_or(0, |series| series.blocks.len());
    let kept = evenly(blocks, blocks_max);
    if kept.len() < blocks {
        left_out.push(format!(
            "figures by block: {} of {} blocks are drawn, evenly spread",
            count(kept.len() as u64),
            count(blocks as u64)
        ));
    }
    all.iter().map(|series| thinned(series, &kept)).collect()
}

fn thinned(series: &Series, kept: &[usize]) -> BlockSeries {
    let metric = series.of.row().heading.to_owned();
    let unit = series.of.unit().into();
    let blocks: Vec<u32> = kept.iter().map(|at| series.blocks[*at]).collect();
    let counts = series.counts();
    let dropped = kept.iter().filter(|at| !counts[**at]).map(|at| series.blocks[*at]).collect();
    let values = |of: &Vec<Option<f64>>| kept.iter().map(|at| of[*at].map(rounded)).collect();
    let values = series.values.iter().map(values).collect();
    BlockSeries { metric, unit, blocks, dropped, values }
}

/// Every metric over each pair of factors; nothing where effects are void, or wait for the one look.
pub(super) fn interactions(record: &Record, conclusion: &Conclusion, all: &[Series]) -> Vec<Interaction> {
    let void = conclusion.effects.iter().any(|effect| effect.outcome == Outcome::Void);
    if conclusion.effects.is_empty() || void || conclusion.awaits_look {
        return Vec::new();
    }
    let plan = &record.header.plan;
    analysis::grids(record, all).iter().filter_map(|grid| interaction(plan, grid)).collect()
}

/// `None` where there is nothing to draw.
fn interaction(plan: &Plan, grid: &Grid) -> Option<Interaction> {
    let values = |row: &Vec<Option<f64>>| row.iter().map(|value| shown(*value)).collect();
    let named = |factor: &Factor| (factor.name.clone(), factor.levels.clone());
    let any = grid.values.iter().flatten().any(Option::is_some);
    any.then(|| Interaction {
        metric: grid.metric.row().heading.to_owned(),
        unit: grid.metric.unit().into(),
        across: named(&plan.factors[grid.across]),
        lines: named(&plan.factors[grid.lines]),
        values: grid.values.iter().map(values).collect(),
    })
}
