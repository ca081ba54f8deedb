//! Figures block by block as CSV, for spreadsheets and notebooks: what a conclusion was drawn from, and not the conclusion.
//!
//! RFC 4180 with line feeds alone. Numbers are whole: as many digits as it takes to read the same number again.

use model::Unit;
use plan::Variant;
use record::{Block, Record, Slice};

use crate::names::line;

/// Columns before those of factors, and after them.
const BEFORE: [&str; 2] = ["experiment", "variant"];
const AFTER: [&str; 7] = ["block", "dropped", "metric", "unit", "value", "requests", "failed"];
/// Set before the name of a factor in the heading, so that it is none of the other columns' and no formula.
const FACTOR: &str = "factor.";

/// One row for each variant, block and metric.
pub fn csv(record: &Record) -> String {
    let plan = &record.header.plan;
    let mut out = csv::Writer::from_writer(Vec::new());
    let factors: Vec<String> = plan.factors.iter().map(|factor| format!("{FACTOR}{}", factor.name)).collect();
    let heading = BEFORE.into_iter().chain(factors.iter().map(String::as_str)).chain(AFTER);
    // Into memory, and as many fields a row: neither can fail.
    let _ = out.write_record(heading);
    let all = analysis::series(record);
    for (index, variant) in plan.variants.iter().enumerate() {
        let names = names(record, variant);
        for (place, block) in ended(record).enumerate() {
            let (requests, failed) = counts(block, index);
            for series in &all {
                let value = series.values[index][place].map(|value| value.to_string());
                let figures = [
                    block.number.to_string(),
                    block.dropped.is_some().to_string(),
                    series.of.name().to_owned(),
                    unit(series.unit).to_owned(),
                    value.unwrap_or_default(),
                    requests.to_string(),
                    failed.to_string(),
                ];
                let _ = out.write_record(names.iter().chain(&figures));
            }
        }
    }
    let bytes = out.into_inner().unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

/// Of a variant: the experiment's name, its own, and its level of each factor.
fn names(record: &Record, variant: &Variant) -> Vec<String> {
    let plan = &record.header.plan;
    let level =
        |factor: &plan::Factor| variant.levels.get(&factor.name).map(String::as_str).unwrap_or_default();
    let names = [plan.name.as_str(), variant.name.as_str()].into_iter().chain(plan.factors.iter().map(level));
    names.map(harmless).collect()
}

/// The blocks that came to their end, as `analysis::series` has them.
fn ended(record: &Record) -> impl Iterator<Item = &Block> {
    record.blocks.iter().filter(|block| block.seconds.is_some())
}

/// Requests of a variant in a block, and those of them that did not end in an expected response.
fn counts(block: &Block, variant: usize) -> (u64, u64) {
    let trial = block.trials.iter().find(|trial| trial.variant() == variant);
    let slices = trial.into_iter().flat_map(|trial| trial.measured());
    slices.fold((0, 0), |(due, failed), slice: &Slice| {
        (due + slice.counts.due(), failed + slice.counts.failed())
    })
}

pub(crate) fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::PerS => "1/s",
        Unit::Us => "us",
        Unit::Bytes => "bytes",
        Unit::Share => "share",
        Unit::Ratio => "ratio",
        Unit::Count | Unit::Number => "",
    }
}

/// A name that no spreadsheet takes for a formula: an apostrophe before what begins like one, which they hide. Names come from
/// experiment files, and those from anybody; on a terminal control characters could do as they like.
fn harmless(name: &str) -> String {
    let name = line(name);
    match name.trim_start_matches([' ', '\u{a0}', '\u{3000}']).chars().next() {
        Some('=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠') => format!("'{name}"),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn what_a_spreadsheet_would_execute_begins_with_an_apostrophe() {
        for name in ["=1+1", "+1", "-1", "@sum(a)", " =cmd|' /C calc'!A0", "＝1"] {
            assert_eq!(harmless(name), format!("'{name}"));
        }
        assert_eq!(harmless("\t=1\x1b[2J"), "' =1\u{fffd}[2J");
        assert_eq!(harmless("express 5 - json"), "express 5 - json");
    }
}
