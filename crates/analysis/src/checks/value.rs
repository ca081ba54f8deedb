//! Trials that were measured and still have no value of a metric that is judged.
//!
//! Leaving out their blocks would be a choice by outcome: a variant that fails now and then would be judged by its good days.

use model::{Check, Finding, Metric, Quantity, evidence};
use record::Record;

use super::{Variant, variants};
use crate::metric::BlockFigures;
use crate::no_success;
use crate::variant::merged;

/// No value of a metric that is no quantile.
pub(super) fn value_missing(record: &Record, blocks: &[BlockFigures]) -> Vec<Finding> {
    each_missing(record, blocks, |variant, metric, missing| {
        if metric.quantile().is_some() {
            return None;
        }
        let told = late(variant, metric).unwrap_or_else(|| {
            let evidence = missing.evidence("nothing was measured, or nothing succeeded");
            Finding::void(
                Check::ValueMissing,
                evidence,
                "blocks are not left out by what came of them; find out in the logs why the variant fails in some, and run again",
            )
        });
        Some(told)
    })
}

/// No value of a quantile, because too few requests bear it or it is only bounded.
pub(super) fn quantile_unresolved(record: &Record, blocks: &[BlockFigures]) -> Vec<Finding> {
    each_missing(record, blocks, |variant, metric, missing| {
        let q = metric.quantile()?;
        let figures = missing.first.variants.get(variant.index).and_then(Option::as_ref);
        let bounded = figures.is_some_and(|figures| figures.sample(metric).is_some());
        let count = figures.map_or(0, |figures| figures.response_times);
        let (why, remedy) = if bounded {
            (
                "requests without response leave only a lower bound of it".to_owned(),
                "choose a lower quantile, a longer load.timeout, or a lower design.rate",
            )
        } else {
            (
                format!("{count} requests are too few, it wants {:.0}", 10.0 / (1.0 - q)),
                "choose a lower quantile or a higher design.rate, or leave out design.slices and design.slice",
            )
        };
        Some(Finding::void(Check::QuantileUnresolved, missing.evidence(&why), remedy))
    })
}

/// In how many blocks a variant has no value of a metric.
struct Missing<'a> {
    name: &'a str,
    metric: Metric,
    without: usize,
    blocks: usize,
    first: &'a BlockFigures,
}

impl Missing<'_> {
    fn evidence(&self, why: &str) -> model::Evidence {
        let Missing { name, metric, first, .. } = self;
        evidence!("{name}: {without} of {trials} trials have no {}; in block {} {why}", metric.name(), first.number;
            without = Quantity::count(self.without as u64), trials = Quantity::count(self.blocks as u64))
    }
}

/// A finding for each metric and variant without a value in some block. Of one that never succeeded that is said, and nothing else.
fn each_missing(
    record: &Record,
    blocks: &[BlockFigures],
    check: impl Fn(&Variant<'_>, Metric, Missing<'_>) -> Option<Finding>,
) -> Vec<Finding> {
    let of_metric = |metric: Metric| -> Vec<Finding> {
        let found = |variant: Variant<'_>| {
            let without = blocks.iter().filter(|block| block.value(metric, variant.index).is_none());
            let without: Vec<&BlockFigures> = without.collect();
            if without.is_empty() || no_success::measured(record, variant.index).is_some() {
                return None;
            }
            let (name, first) = (variant.name(), without[0]);
            let missing = Missing { name, metric, without: without.len(), blocks: blocks.len(), first };
            Some(check(&variant, metric, missing)?.about([variant.index]))
        };
        variants(record).filter_map(found).collect()
    };
    record.header.plan.design.metrics().flat_map(of_metric).collect()
}

/// Responses that came after the window: nothing is wrong with them, but they take longer than a slice.
fn late(variant: &Variant<'_>, metric: Metric) -> Option<Finding> {
    let is_late =
        |trial: &&&record::Trial| trial.measured().all(|slice| slice.counts.successful_in_window == 0);
    let late: Vec<_> = variant.trials.iter().filter(is_late).collect();
    let slices = || late.iter().flat_map(|trial| trial.measured());
    if metric != Metric::Throughput || slices().all(|slice| slice.counts.successful == 0) {
        return None;
    }
    let (name, hit, of) = (variant.name(), late.len(), variant.trials.len());
    let window_ns = slices().map(|slice| slice.counts.window_ns).max()?;
    let took_ns = merged(slices().map(|slice| &slice.counts.latency)).quantile(0.5)?.ns();
    Some(Finding::void(
        Check::ValueMissing,
        evidence!("{name}: in {hit} of {of} trials no response came within a window of {window}; half of them took {took} or more";
            window = Quantity::ns(window_ns), took = Quantity::ns(took_ns)),
        "a rate wants several responses of each connection in a window: set design.slice to some times what a response takes, and \
         load.timeout well above that",
    ))
}
