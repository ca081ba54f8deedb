//! Figures block by block, for spreadsheets: what a conclusion was drawn from, and not the conclusion.

use plan::Factor;
use record::{Block, Record, Slice};

use crate::csv::{Field, Figures, unit_name};

/// Columns before those of factors, and after them.
const BEFORE: [&str; 2] = ["experiment", "variant"];
const AFTER: [&str; 7] = ["block", "dropped", "metric", "unit", "value", "requests", "failed"];
/// Set before the name of a factor in the heading, so that it is none of the other columns' and no formula.
const FACTOR: &str = "factor.";

/// One row for each variant, block and metric.
pub(super) fn figures(record: &Record) -> Figures {
    let plan = &record.header.plan;
    let factors = plan.factors.iter().map(|factor| format!("{FACTOR}{}", factor.name));
    let headings = BEFORE.map(str::to_owned).into_iter().chain(factors).chain(AFTER.map(str::to_owned));
    let all = analysis::series(record);
    let ended: Vec<&Block> = record.blocks.iter().filter(|block| block.seconds.is_some()).collect();
    let mut rows = Vec::new();
    for (index, variant) in plan.variants.iter().enumerate() {
        let level = |factor: &Factor| variant.levels.get(&factor.name).cloned().unwrap_or_default();
        let names =
            [plan.name.clone(), variant.name.clone()].into_iter().chain(plan.factors.iter().map(level));
        let names: Vec<Field> = names.map(Field::Name).collect();
        for (place, block) in ended.iter().enumerate() {
            let (requests, failed) = counts(block, index);
            for series in &all {
                let figures = vec![
                    Field::Count(block.number.into()),
                    Field::Word(if block.dropped.is_some() { "true" } else { "false" }),
                    Field::Word(series.of.name()),
                    Field::Word(unit_name(series.of.unit())),
                    Field::Figure(series.values[index][place]),
                    Field::Count(requests),
                    Field::Count(failed),
                ];
                rows.push([names.clone(), figures].concat());
            }
        }
    }
    Figures { headings: headings.collect(), rows }
}

/// Requests of a variant in a block, and those of them that did not end in an expected response.
fn counts(block: &Block, variant: usize) -> (u64, u64) {
    let trial = block.trials.iter().find(|trial| trial.variant() == variant);
    let slices = trial.into_iter().flat_map(|trial| trial.measured());
    slices.fold((0, 0), |(due, failed), slice: &Slice| {
        (due + slice.counts.due(), failed + slice.counts.failed())
    })
}
