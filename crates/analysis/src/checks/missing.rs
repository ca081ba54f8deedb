//! Trials that were measured and still have no value of a metric that is judged.
//!
//! Leaving out their blocks would be a choice by outcome: a variant that fails now and then would be judged by its good days.

use plan::Metric;
use record::{Record, Trial};

use crate::metric::{BlockFigures, trial};
use crate::no_success;
use crate::variant::merged;
use model::{Check, Finding, Grade};

/// A finding for each variant and metric without a value in some block.
pub(crate) fn without_value(record: &Record, blocks: &[BlockFigures]) -> Vec<Finding> {
    let plan = &record.header.plan;
    let cases =
        plan.design.metrics().flat_map(|metric| (0..plan.variants.len()).map(move |index| (metric, index)));
    // Of one that never succeeded that is said, and nothing else.
    let cases = cases.filter(|(_, index)| no_success::measured(record, *index).is_none());
    let found = |(metric, index): (Metric, usize)| {
        let finding = missing(&plan.variants[index].name, index, metric, blocks)?;
        Some(late(record, index, metric, &finding).unwrap_or(finding))
    };
    cases.filter_map(found).collect()
}

/// Responses that came after the window: nothing is wrong with them, but they take longer than a slice.
fn late(record: &Record, index: usize, metric: Metric, finding: &Finding) -> Option<Finding> {
    let trials: Vec<&Trial> = record.complete_blocks().filter_map(|block| trial(block, index)).collect();
    let is_late = |trial: &&&Trial| trial.measured().all(|slice| slice.counts.successful_in_window == 0);
    let late: Vec<&&Trial> = trials.iter().filter(is_late).collect();
    let slices = || late.iter().flat_map(|trial| trial.measured());
    if metric != Metric::Throughput || slices().all(|slice| slice.counts.successful == 0) {
        return None;
    }
    let window_s = slices().map(|slice| slice.counts.window_ns).max()? as f64 / 1e9;
    let took_s = merged(slices().map(|slice| &slice.counts.latency)).quantile(0.5)?.ns() as f64 / 1e9;
    Some(Finding {
        evidence: format!(
            "{}: in {} of {} trials no response came within a window of {window_s:.1} s; half of them took {took_s:.1} s or \
             more",
            record.header.plan.variants[index].name,
            late.len(),
            trials.len(),
        ).into(),
        remedy: LATE.into(),
        ..finding.clone()
    })
}

fn missing(name: &str, index: usize, metric: Metric, blocks: &[BlockFigures]) -> Option<Finding> {
    let without: Vec<&BlockFigures> =
        blocks.iter().filter(|block| block.log_ratio(metric, index, index).is_none()).collect();
    let first = without.first()?;
    let (check, why, remedy) = match metric.quantile() {
        Some(q) => {
            let figures = first.variants.get(index).and_then(Option::as_ref);
            let bounded = figures.is_some_and(|figures| figures.sample(metric).is_some());
            let count = figures.map_or(0, |figures| figures.response_times);
            let few = || format!("{count} requests are too few, it wants {:.0}", 10.0 / (1.0 - q));
            let bound = || "requests without an answer leave only a lower bound of it".to_owned();
            let (why, remedy) = if bounded { (bound(), BOUNDED) } else { (few(), FEW) };
            (Check::QuantileUnresolved, why, remedy)
        }
        None => (Check::ValueMissing, "nothing was measured, or nothing succeeded".to_owned(), UNMEASURED),
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
        )
        .into(),
        remedy: remedy.into(),
        variants: vec![index],
    })
}

const UNMEASURED: &str = "blocks are not left out by what came of them; find out in the logs why the variant fails in some, \
                          and run again";
const LATE: &str = "a rate wants several responses of each connection in a window: set design.slice to some times what a response \
                    takes, and load.timeout well above that";
const BOUNDED: &str = "choose a lower quantile, a longer load.timeout, or a lower design.rate";
const FEW: &str =
    "choose a lower quantile or a higher design.rate, or leave out design.slices and design.slice";
