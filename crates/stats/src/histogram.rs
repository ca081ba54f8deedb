//! Latency histograms of constant memory that also record requests without a response.
//!
//! A request that timed out or was unfinished at the end of the window took *at least* its age: a
//! right-censored sample. It counts in every percentile, and no value is invented for it. There are therefore
//! two histograms with the same layout, and a quantile is either exact or only a lower bound.
//!
//! This module does not allocate while recording, does not invent samples ("correction" for coordinated
//! omission), and does not read clocks.

use std::borrow::Cow;

use hdrhistogram::Histogram;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

mod bands;
mod encoding;
mod packed;
mod table;

pub use bands::{Band, quantile_bands};
use packed::{Packed, lowest};
use table::{HistogramLayout, both};

/// Longest latency with its own cell: one hour, in nanoseconds. Longer ones count as "at least one hour".
pub const HIGHEST_NS: u64 = 3_600_000_000_000;
const LOWEST_NS: u64 = 1;
const SIGNIFICANT_DIGITS: u8 = 3;

/// Minimum number of samples above a displayed quantile. See [`Latencies::resolves`].
const TAIL_SAMPLES: f64 = 10.0;

/// A quantile (or extreme, or mean) in nanoseconds, exact or as a lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// Exact to the three digits of the histogram.
    Exact(u64),
    /// Lower bound, because requests without a response may lie anywhere above their own bound.
    AtLeast(u64),
}

impl Quantile {
    /// The value or the bound, in nanoseconds.
    pub fn ns(self) -> u64 {
        match self {
            Self::Exact(ns) | Self::AtLeast(ns) => ns,
        }
    }

    /// Whether the number is the value and not a bound.
    pub fn is_exact(self) -> bool {
        matches!(self, Self::Exact(_))
    }
}

/// Latencies from 1 ns to 1 h with three significant digits. Responses and censored requests are separate.
///
/// Each of the two tables has 33,792 cells of 4 bytes (132 KiB) for any range of values, allocated once by
/// [`Latencies::new`]. Packed histograms ([`Latencies::pack`], [`Latencies::decode`]) take one or two bytes
/// per nonempty cell. A cell is at most 0.1 % wide and is reported by its lower end, so that a bound never
/// exceeds the observed value.
#[derive(Clone, PartialEq)]
pub struct Latencies {
    exact: HistogramLayout,
    censored: HistogramLayout,
}

impl Latencies {
    /// Creates an empty pair of histograms with all cells. Allocates, so that recording does not.
    pub fn new() -> Self {
        Self {
            exact: HistogramLayout::Open(Box::new(table())),
            censored: HistogramLayout::Open(Box::new(table())),
        }
    }

    /// Creates an empty packed pair, for merging a few packed ones. The result stays packed, but each merge
    /// copies all cells so far, so use [`Latencies::new`] to merge many. Recording in it allocates.
    pub fn none() -> Self {
        Self {
            exact: HistogramLayout::Packed(Packed::default()),
            censored: HistogramLayout::Packed(Packed::default()),
        }
    }

    /// Records a response that took `ns` nanoseconds. Does not allocate and takes a handful of instructions.
    ///
    /// A latency above [`HIGHEST_NS`] is recorded as censored at [`HIGHEST_NS`], which is a correct lower
    /// bound.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        if ns > HIGHEST_NS {
            return self.censor(HIGHEST_NS);
        }
        self.exact.open().saturating_record(ns);
    }

    /// Records a request abandoned without a response after `ns` nanoseconds. Does not allocate.
    #[inline]
    pub fn censor(&mut self, ns: u64) {
        self.censored.open().saturating_record(ns);
    }

    /// Adds all samples of `other`, as if they had been recorded here. The sum of two packed histograms is
    /// packed.
    pub fn merge(&mut self, other: &Self) {
        let Self { exact, censored } = other;
        // Most histograms have no censored samples, and adding an empty table takes as long as a full one.
        for (sum, more) in [(&mut self.exact, exact), (&mut self.censored, censored)] {
            if !more.is_empty() {
                sum.add(more);
            }
        }
    }

    /// Keeps only the nonempty cells, in a few KiB instead of 264, for histograms that are only read from now
    /// on. Recording later is possible but allocates.
    pub fn pack(&mut self) {
        self.exact.pack();
        self.censored.pack();
    }

    /// Number of samples, including censored ones.
    pub fn count(&self) -> u64 {
        self.exact.len() + self.censored.len()
    }

    /// Number of censored samples.
    pub fn censored(&self) -> u64 {
        self.censored.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Whether there are enough samples to show quantile `q`: ten beyond it, n ≥ 10/(1 − q), so 1,000 for
    /// p99.
    pub fn resolves(&self, q: f64) -> bool {
        // 1 − 0.99 is slightly more than 0.01 in binary. The tolerance prevents a requirement of 999 or
        // 1,001.
        self.count() as f64 * (1.0 - q) >= TAIL_SAMPLES * (1.0 - 1e-9)
    }

    /// Number of samples that quantile `q` needs: 1,000 for p99.
    pub fn samples_needed(q: f64) -> u64 {
        (TAIL_SAMPLES / (1.0 - q)).round() as u64
    }

    /// The `q` quantile (0 the smallest, 1 the largest), or `None` without samples or if `q` is not in 0..=1.
    ///
    /// With n samples it is the value of rank r = ⌈q n⌉ (at least 1) among the true latencies. The latencies
    /// of censored samples are unknown, so the quantile is bounded by their possible values:
    ///
    /// ```text
    /// low  = r-th smallest if each censored sample took exactly its bound
    /// high = r-th smallest if each censored sample took forever (so: among the responses, else none)
    /// ```
    ///
    /// The true quantile is between `low` and `high`, and can be either. The result is `Exact` if both are in
    /// one cell, which is the case whenever no censored sample lies below the r-th response. Otherwise it is
    /// `AtLeast(low)`. So the largest value is never exact if a sample was censored.
    pub fn quantile(&self, q: f64) -> Option<Quantile> {
        let (low, high) = self.bounds(q)?;
        Some(if high == Some(low) {
            Quantile::Exact(low)
        } else {
            Quantile::AtLeast(low)
        })
    }

    /// Lower and upper bound of the `q` quantile, in nanoseconds. The upper one is `None` if it is unbounded.
    /// `None` as for [`Latencies::quantile`], which explains the bounds.
    pub fn bounds(&self, q: f64) -> Option<(u64, Option<u64>)> {
        if self.is_empty() || !(0.0..=1.0).contains(&q) {
            return None;
        }
        let rank = rank(q, self.count());
        let high = nth(self.exact.cells(), rank);
        if self.censored.is_empty() {
            return Some((high?, high));
        }
        let all = both(self.exact.cells().chain(self.censored.cells()));
        Some((nth(all.into_iter(), rank)?, high))
    }

    /// The largest latency, or `None` without samples. Never exact if a sample was censored.
    pub fn max(&self) -> Option<Quantile> {
        self.quantile(1.0)
    }

    /// The mean, or `None` without samples. With censored samples it is the mean of the lower bounds.
    pub fn mean(&self) -> Option<Quantile> {
        if self.is_empty() {
            return None;
        }
        let count = self.count() as f64;
        if self.censored.is_empty() {
            return Some(Quantile::Exact(self.exact.full().mean().round() as u64));
        }
        let sum = sum_of_low_ends(&self.exact) + sum_of_low_ends(&self.censored);
        Some(Quantile::AtLeast((sum / count) as u64))
    }

    /// Number of responses within each of these times in nanoseconds, which must be ascending.
    pub fn at_most(&self, times_ns: &[u64]) -> Vec<u64> {
        let (mut cells, mut sum) = (self.exact.cells().peekable(), 0);
        let mut until = |ns: &u64| {
            while let Some((_, count)) = cells.next_if(|(cell, _)| lowest(*cell) <= *ns) {
                sum += count;
            }
            sum
        };
        times_ns.iter().map(&mut until).collect()
    }

    /// Encodes responses and censored samples as two strings: base64 of the compressed V2 encoding, which
    /// every HdrHistogram reader accepts. The second is empty without censored samples.
    pub fn encode(&self) -> (String, String) {
        let censored = if self.censored.is_empty() {
            String::new()
        } else {
            encoding::to_text(&self.censored.full())
        };
        (encoding::to_text(&self.exact.full()), censored)
    }

    /// Bytes in memory of the packed histograms. 0 for those that are not packed.
    pub fn packed_bytes(&self) -> usize {
        let bytes = |table: &HistogramLayout| match table {
            HistogramLayout::Packed(packed) => packed.bytes(),
            HistogramLayout::Open(_) => 0,
        };
        bytes(&self.exact) + bytes(&self.censored)
    }

    /// Decodes the output of [`Latencies::encode`]. An empty string means no samples. The result is packed.
    ///
    /// # Errors
    /// Describes a string that is not base64, not a V2 histogram, damaged, or has a different layout.
    pub fn decode(hdr: &str, censored: &str) -> Result<Self, String> {
        let (exact, censored) = (encoding::from_text(hdr)?, encoding::from_text(censored)?);
        Ok(Self {
            exact: HistogramLayout::Packed(exact),
            censored: HistogramLayout::Packed(censored),
        })
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Latencies {
    // The derived form would print 67,584 counters in every failed assertion.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (count, censored, p50, max) = (
            self.count(),
            self.censored(),
            self.quantile(0.5),
            self.max(),
        );
        write!(
            f,
            "Latencies({count}, {censored} of them censored, p50 {p50:?}, max {max:?})"
        )
    }
}

/// HdrHistograms V2 in nanoseconds, compressed, base64.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Encoded {
    /// Requests with a response.
    hdr: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    /// Requests without a response, with lower bounds of their times.
    censored: String,
}

impl JsonSchema for Latencies {
    fn schema_name() -> Cow<'static, str> {
        "Latencies".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Encoded::json_schema(generator)
    }
}

impl Serialize for Latencies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (hdr, censored) = self.encode();
        Encoded { hdr, censored }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Latencies {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Encoded { hdr, censored } = Encoded::deserialize(deserializer)?;
        Self::decode(&hdr, &censored).map_err(serde::de::Error::custom)
    }
}

fn table() -> Histogram<u32> {
    Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, SIGNIFICANT_DIGITS)
        .expect("constants of a valid layout")
}

/// ⌈q n⌉, at least 1. The factor compensates for rounding of products such as 0.07 × 100, which is slightly
/// above 7.
fn rank(q: f64, count: u64) -> u64 {
    let rank = (q * count as f64 * (1.0 - 4.0 * f64::EPSILON)).ceil() as u64;
    rank.clamp(1, count)
}

/// Lower end of the cell with the sample of `rank` (from 1), or `None` if there are fewer samples.
fn nth(mut cells: impl Iterator<Item = (u32, u64)>, rank: u64) -> Option<u64> {
    let mut seen = 0;
    cells.find_map(|(cell, count)| {
        seen += count;
        (seen >= rank).then(|| lowest(cell))
    })
}

fn sum_of_low_ends(table: &HistogramLayout) -> f64 {
    table
        .lowest_ends()
        .map(|(cell, count)| cell as f64 * count as f64)
        .sum()
}

#[cfg(test)]
mod tests;
