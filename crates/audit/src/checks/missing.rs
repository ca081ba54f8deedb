//! Trials that were measured and still have no value of a metric that is judged.
//!
//! Leaving out their blocks would be a choice by outcome: a variant that fails now and then would be judged by its good days.

use plan::Metric;
use record::Record;
use stats::Latencies;

use crate::finding::{Finding, Grade};
use crate::metric::BlockFigures;

/// A finding for each variant and metric without a value in some block.
pub(crate) fn without_value(record: &Record, blocks: &[BlockFigures]) -> Vec<Finding> {
    let plan = &record.header.plan;
    let cases =
        plan.design.metrics().flat_map(|metric| (0..plan.variants.len()).map(move |index| (metric, index)));
    cases.filter_map(|(metric, index)| missing(&plan.variants[index].name, index, metric, blocks)).collect()
}

fn missing(name: &str, index: usize, metric: Metric, blocks: &[BlockFigures]) -> Option<Finding> {
    let without: Vec<&BlockFigures> =
        blocks.iter().filter(|block| block.log_ratio(metric, index, index).is_none()).collect();
    let first = without.first()?;
    let (check, why, remedy) = match metric.quantile() {
        Some(q) => {
            let figures = first.variants.get(index).and_then(Option::as_ref);
            let response = figures.and_then(|figures| figures.response.as_ref());
            let bounded = response.is_some_and(|response| response.resolves(q));
            let count = response.map_or(0, Latencies::count);
            let few = || format!("{count} requests are too few, it wants {:.0}", 10.0 / (1.0 - q));
            let bound = || "requests without an answer leave only a lower bound of it".to_owned();
            let (why, remedy) = if bounded { (bound(), BOUNDED) } else { (few(), FEW) };
            ("quantile_unresolved", why, remedy)
        }
        None => ("value_missing", "nothing was measured, or nothing succeeded".to_owned(), UNMEASURED),
    };
    Some(Finding {
        check,
        grade: Grade::Void,
        evidence: format!(
            "{name}: {} of {} trials have no {}; in block {} {why}",
            without.len(),
            blocks.len(),
            metric.name(),
            first.number
        ),
        remedy: remedy.into(),
        variants: vec![index],
    })
}

const UNMEASURED: &str = "blocks are not left out by what came of them; find out in the logs why the variant fails in some, \
                          and run again";
const BOUNDED: &str = "choose a lower quantile, a longer load.timeout, or a lower design.rate";
const FEW: &str =
    "choose a lower quantile or a higher design.rate, or leave out design.slices and design.slice";
