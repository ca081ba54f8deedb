//! Latencies of many requests in a fixed amount of memory, with those that were never answered kept in.
//!
//! A request that timed out or was unfinished when the window closed is known only to have taken *at least* so long:
//! a right-censored sample. It belongs into every percentile, and no value may be made up for it. So there are two
//! histograms of one layout, and a quantile says whether it is known or only bounded.
//!
//! Must not: allocate while recording, invent samples ("correction" for coordinated omission), know about time.

use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

mod bands;
mod encoding;
mod packed;
mod table;

pub use bands::{Band, quantile_bands};
use packed::{Packed, lowest};
use table::{Table, both};

/// Longest latency a cell exists for: one hour, in nanoseconds. Anything longer counts as "at least one hour".
pub const HIGHEST_NS: u64 = 3_600_000_000_000;
const LOWEST_NS: u64 = 1;
const SIGNIFICANT_DIGITS: u8 = 3;

/// Samples a quantile must leave above itself to be worth showing: see [`Latencies::resolves`].
const TAIL_SAMPLES: f64 = 10.0;

/// A quantile (or extreme, or mean) in nanoseconds, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// Known, to the histogram's three digits.
    Exact(u64),
    /// Only bounded from below, because unanswered requests may lie anywhere above their bound.
    AtLeast(u64),
}

impl Quantile {
    /// The number alone, in nanoseconds: the value, or the bound.
    pub fn ns(self) -> u64 {
        match self {
            Self::Exact(ns) | Self::AtLeast(ns) => ns,
        }
    }

    /// Whether the number is the value itself.
    pub fn is_exact(self) -> bool {
        matches!(self, Self::Exact(_))
    }
}

/// Latencies from 1 ns to 1 h with three significant digits: answered requests, and censored ones apart.
///
/// Each of the two tables has 33,792 cells of 4 bytes (132 KiB) for every range of values, allocated once by
/// [`Latencies::new`]. What is kept for long is packed ([`Latencies::pack`]) and then takes a byte or two for each cell hit; so is what
/// was read ([`Latencies::decode`]).
/// A cell is at most 0.1 % wide and always reported by its lower end, so that a bound never claims more than was seen.
#[derive(Clone, PartialEq)]
pub struct Latencies {
    exact: Table,
    censored: Table,
}

impl Latencies {
    /// An empty pair of histograms with all their cells. Allocates, so that recording does not.
    pub fn new() -> Self {
        Self { exact: Table::Open(Box::new(table())), censored: Table::Open(Box::new(table())) }
    }

    /// An empty pair that is packed: to merge a few packed ones in, for which it stays so. With each of them all cells so far are copied,
    /// so that [`Latencies::new`] is for many. Recording in it allocates.
    pub fn none() -> Self {
        Self { exact: Table::Packed(Packed::default()), censored: Table::Packed(Packed::default()) }
    }

    /// Adds an answered request that took `ns` nanoseconds. No allocation, a handful of instructions.
    ///
    /// Longer than [`HIGHEST_NS`] is kept as censored at [`HIGHEST_NS`], which is what is still known of it.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        if ns > HIGHEST_NS {
            return self.censor(HIGHEST_NS);
        }
        self.exact.open().saturating_record(ns);
    }

    /// Adds a request that had waited `ns` nanoseconds without an answer when it was given up. No allocation.
    #[inline]
    pub fn censor(&mut self, ns: u64) {
        self.censored.open().saturating_record(ns);
    }

    /// Adds all samples of `other`: the same as if they had been recorded here. Of two packed ones the sum is packed.
    pub fn merge(&mut self, other: &Self) {
        let Self { exact, censored } = other;
        // Most have nothing censored, and an empty table takes as long as a full one.
        for (sum, more) in [(&mut self.exact, exact), (&mut self.censored, censored)] {
            if !more.is_empty() {
                sum.add(more);
            }
        }
    }

    /// Keeps only what was hit, in a few KiB instead of 264: for histograms that are only read from now on. Recording in one
    /// again is possible, and allocates.
    pub fn pack(&mut self) {
        self.exact.pack();
        self.censored.pack();
    }

    /// All samples, censored ones included.
    pub fn count(&self) -> u64 {
        self.exact.len() + self.censored.len()
    }

    /// Censored samples alone.
    pub fn censored(&self) -> u64 {
        self.censored.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Whether there are enough samples to show quantile `q`: ten beyond it, n ≥ 10/(1 − q), so 1,000 for p99.
    pub fn resolves(&self, q: f64) -> bool {
        // The tolerance keeps 1 − 0.99, which is a little more than 0.01 in binary, from asking for 999 or 1,001.
        self.count() as f64 * (1.0 - q) >= TAIL_SAMPLES * (1.0 - 1e-9)
    }

    /// The `q` quantile (0 the smallest, 1 the largest), or `None` when there are no samples or `q` is not in 0..=1.
    ///
    /// With n samples it is the value of rank r = ⌈q n⌉ (at least 1) among the true latencies. Those of the censored
    /// samples are unknown, so the rule is to ask what they *could* be:
    ///
    /// ```text
    /// low  = r-th smallest when each censored sample took no longer than its bound
    /// high = r-th smallest when each censored sample took for ever (so: among the answered ones, else none)
    /// ```
    ///
    /// The true quantile lies from `low` to `high`, and can be either. `Exact` when they are one cell, which is the
    /// case whenever no censored sample lies below the r-th answered one; else `AtLeast(low)`.
    /// The largest value is therefore never exact when something was censored.
    pub fn quantile(&self, q: f64) -> Option<Quantile> {
        let (low, high) = self.bounds(q)?;
        Some(if high == Some(low) { Quantile::Exact(low) } else { Quantile::AtLeast(low) })
    }

    /// Both ends between which the `q` quantile lies, in nanoseconds; the upper one is `None` where nothing bounds it.
    /// `None` as for [`Latencies::quantile`], which tells the rule.
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

    /// The largest latency, or `None` when there are no samples; never exact when something was censored.
    pub fn max(&self) -> Option<Quantile> {
        self.quantile(1.0)
    }

    /// The mean, or `None` when there are no samples. With censored samples it is the mean of what each took at least.
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

    /// How many answered samples are at most so long, for each of these times in nanoseconds, which rise.
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

    /// Answered and censored samples as two texts: base64 of the compressed V2 encoding, which every HdrHistogram
    /// reader takes. The second is empty when nothing was censored.
    pub fn encode(&self) -> (String, String) {
        let censored =
            if self.censored.is_empty() { String::new() } else { encoding::to_text(&self.censored.full()) };
        (encoding::to_text(&self.exact.full()), censored)
    }

    /// Reads what [`Latencies::encode`] wrote; an empty text stands for no samples. What is read is packed.
    ///
    /// # Errors
    /// When a text is not base64, not a V2 histogram, damaged, or of another layout than ours: what is wrong with it.
    pub fn decode(hdr: &str, censored: &str) -> Result<Self, String> {
        let (exact, censored) = (encoding::from_text(hdr)?, encoding::from_text(censored)?);
        Ok(Self { exact: Table::Packed(exact), censored: Table::Packed(censored) })
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Latencies {
    // The derived form would print 67,584 counters into every failed assertion.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (count, censored, p50, max) = (self.count(), self.censored(), self.quantile(0.5), self.max());
        write!(f, "Latencies({count}, {censored} of them censored, p50 {p50:?}, max {max:?})")
    }
}

/// The form of a record: `{ "hdr": "...", "censored": "..." }`, the second left out when empty.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Encoded {
    hdr: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    censored: String,
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

/// ⌈q n⌉, at least 1. The factor takes back the rounding of products such as 0.07 × 100, a hair above 7.
fn rank(q: f64, count: u64) -> u64 {
    let rank = (q * count as f64 * (1.0 - 4.0 * f64::EPSILON)).ceil() as u64;
    rank.clamp(1, count)
}

/// Lower end of the cell that holds the sample of `rank` (from 1), or `None` when there are fewer samples.
fn nth(mut cells: impl Iterator<Item = (u32, u64)>, rank: u64) -> Option<u64> {
    let mut seen = 0;
    cells.find_map(|(cell, count)| {
        seen += count;
        (seen >= rank).then(|| lowest(cell))
    })
}

fn sum_of_low_ends(table: &Table) -> f64 {
    table.lowest_ends().map(|(cell, count)| cell as f64 * count as f64).sum()
}

#[cfg(test)]
mod tests;
