//! The words of Proofload as types: what a slice of load counted, what happened in a run, which metrics and checks there are.
//!
//! Every other crate speaks in these types. Must not: read files or clocks, judge a measurement, or draw anything.

mod ask;
mod capture;
mod check;
mod counts;
mod digest;
pub mod document;
mod event;
mod failure;
mod finding;
pub mod header;
mod load;
mod metric;
pub mod quantity;
mod silence;
mod slice;
pub mod text;

pub use ask::*;
pub use capture::*;
pub use check::{Check, CheckRow, Subject};
pub use counts::*;
pub use digest::Digest;
pub use event::*;
pub use failure::*;
pub use finding::{Code, Evidence, Finding, Grade, Remedy};
pub use load::*;
pub use metric::{Loop, Metric, MetricRow, Pacing};
pub use quantity::{Quantity, Unit};
pub use silence::{SILENCE_MIN_NS, Silence};
pub use slice::*;
pub use stats::median;

/// Each once, where it first comes.
pub fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    grouped(all.into_iter().map(|one| (one, ()))).into_iter().map(|(one, _)| one).collect()
}

/// Values with the same key together, keys and values in the order in which they come.
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
