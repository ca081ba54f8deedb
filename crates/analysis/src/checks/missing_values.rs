//! Measured trials without a value of a judged metric.

use model::quantity::counted;
use model::{Evidence, Metric, Quantity, evidence};

use super::finding::CheckFinding;
use super::input::{CheckedRun, CheckedVariant};
use crate::metric::BlockFigures;

/// Describes the blocks in which a variant has no value of a metric, given the reason for the first of them.
type MissingBlocks<'a> = &'a dyn Fn(&str) -> Evidence;

/// Makes findings for each metric and variant without a value in some block. A variant that never succeeded
/// is reported separately.
pub(super) fn each_missing(
    run: &CheckedRun<'_>,
    see: impl Fn(&CheckedVariant<'_>, Metric, &BlockFigures, MissingBlocks<'_>) -> Option<CheckFinding>,
) -> Vec<CheckFinding> {
    let of = |metric: Metric, variant: &CheckedVariant<'_>| {
        let measured = run
            .figures
            .iter()
            .filter(|block| block.variants[variant.index].is_some());
        let trials = measured.clone().count();
        let without = measured.filter(|block| block.value(metric, variant.index).is_none());
        let without: Vec<&BlockFigures> = without.collect();
        let first = *without.first().filter(|_| !variant.never_succeeded())?;
        let told = |why: &str| {
            evidence!("{without} of {trials} have no {}; in block {} {why}", metric.name(), first.number;
                without = Quantity::count(without.len() as u64), trials = counted(trials as u64, "trial"))
        };
        Some(variant.told(see(variant, metric, first, &told)?))
    };
    let metrics = run.plan.design.metrics();
    metrics
        .flat_map(|metric| {
            run.variants
                .iter()
                .filter_map(move |variant| of(metric, variant))
        })
        .collect()
}
