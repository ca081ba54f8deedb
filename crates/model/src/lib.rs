//! Shared data types: request counts of a load slice, events of a run, metrics and findings.
//!
//! All other crates use these types. This crate does not read files or clocks, judge measurements or draw
//! output.

mod ask;
mod capture;
mod counts;
mod digest;
pub mod document;
mod end;
mod event;
pub mod exit_code;
mod failure;
mod finding;
mod grade;
pub mod header;
mod load;
mod metric;
pub mod quantity;
mod rate;
mod silence;
mod slice;
pub mod text;
pub mod thresholds;

pub use ask::*;
pub use capture::*;
pub use counts::*;
pub use digest::Digest;
pub use end::*;
pub use event::*;
pub use failure::*;
pub use finding::{Evidence, Finding, FindingCode, Remedy};
pub use grade::Grade;
pub use load::*;
pub use metric::{Metric, MetricLoop, MetricRow, MetricSource, Pacing, throughput};
pub use quantity::{Quantity, Unit};
pub use rate::*;
pub use silence::{SILENCE_MIN_NS, Silence};
pub use slice::*;
pub use stats::{BLOCKS_MIN, median};

/// Removes duplicates, keeping the first occurrence.
pub fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    grouped(all.into_iter().map(|one| (one, ())))
        .into_iter()
        .map(|(one, _)| one)
        .collect()
}

/// Groups values by key. Keys and values keep their order of first occurrence.
pub fn grouped<K: PartialEq, V>(all: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in all {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}
