//! Sums and means over slices and trials of a record. Pure.

use std::collections::BTreeMap;

use model::RequestOutcome;
use record::{Record, Slice, Trial};
use stats::Latencies;
pub(crate) use stats::mean;

/// Maximum number of histograms merged in packed form. Each merge copies all cells so far.
const FEW: usize = 8;

/// A variant's trials of complete blocks.
pub(crate) fn complete(record: &Record, index: usize) -> impl Iterator<Item = &Trial> {
    record
        .complete_blocks()
        .filter_map(move |block| block.trial(index))
}

/// A variant's measured slices of complete blocks.
pub(crate) fn measured(record: &Record, index: usize) -> impl Iterator<Item = &Slice> {
    complete(record, index).flat_map(Trial::measured)
}

pub(crate) fn total(slices: &[&Slice], of: impl Fn(&Slice) -> u64) -> u64 {
    slices.iter().map(|slice| of(slice)).sum()
}

/// Total outcome of the requests of these slices.
pub(crate) fn outcome(slices: &[&Slice]) -> RequestOutcome {
    slices.iter().map(|slice| slice.counts.outcome()).sum()
}

/// A variant's trials in blocks that were not dropped, including unfinished ones. A run that was stopped
/// early may have no others.
pub(crate) fn trials(record: &Record, variant: usize) -> impl Iterator<Item = &Trial> {
    let blocks = record.blocks.iter().filter(|block| block.dropped.is_none());
    blocks
        .flat_map(|block| &block.trials)
        .filter(move |trial| trial.variant() == variant)
}

/// All slices of [`trials`].
pub(crate) fn slices(record: &Record, variant: usize) -> impl Iterator<Item = &Slice> {
    trials(record, variant).flat_map(|trial| &trial.slices)
}

/// Merges the histograms of a trial. They are packed in the record, and so is the result.
pub(crate) fn few_merged<'a>(histograms: impl Iterator<Item = &'a Latencies>) -> Latencies {
    let histograms: Vec<&Latencies> = histograms.collect();
    let empty = if histograms.len() > FEW {
        Latencies::new()
    } else {
        Latencies::none()
    };
    let mut all = histograms.into_iter().fold(empty, with);
    all.pack();
    all
}

/// Merges the histograms of many trials.
pub(crate) fn merged<'a>(histograms: impl Iterator<Item = &'a Latencies>) -> Latencies {
    histograms.fold(Latencies::new(), with)
}

fn with(mut all: Latencies, more: &Latencies) -> Latencies {
    all.merge(more);
    all
}

/// Geometric mean, for ratios and positive values.
pub(crate) fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    mean(values.into_iter().map(f64::ln)).map(f64::exp)
}

/// Middle count, because a mean of two counts may not be an integer.
pub(crate) fn middle_count(counts: impl Iterator<Item = u32>) -> Option<u32> {
    stats::middle_by(counts, |count| f64::from(*count))
}

/// Sums the counts of each key.
pub(crate) fn counted<K: Ord>(all: impl IntoIterator<Item = (K, u64)>) -> BTreeMap<K, u64> {
    let mut sums = BTreeMap::new();
    all.into_iter()
        .for_each(|(key, count)| *sums.entry(key).or_default() += count);
    sums
}
