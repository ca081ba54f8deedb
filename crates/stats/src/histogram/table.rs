//! One histogram, open for recording or packed to be kept: a run keeps those of thousands of slices, each with a few hundred
//! cells of 33,792 hit.
//!
//! Must not: lose or move a sample; packed and open again it has the same cells with the same counts.

use std::borrow::Cow;

use hdrhistogram::Histogram;

use super::{lowest_ends, table};

/// A histogram of our one layout.
#[derive(Clone)]
pub(super) enum Table {
    /// All cells, 132 KiB.
    Open(Histogram<u32>),
    /// The lower ends of the cells that were hit, rising, each with its samples: 16 bytes for each of them.
    Packed(Box<[(u64, u32)]>),
}

impl Table {
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Open(histogram) => histogram.is_empty(),
            Self::Packed(cells) => cells.is_empty(),
        }
    }

    /// Samples in all.
    pub fn len(&self) -> u64 {
        match self {
            Self::Open(histogram) => histogram.len(),
            Self::Packed(cells) => cells.iter().map(|(_, count)| u64::from(*count)).sum(),
        }
    }

    /// The histogram to record in. Allocates where it was packed.
    #[inline]
    pub fn open(&mut self) -> &mut Histogram<u32> {
        if let Self::Packed(_) = self {
            *self = Self::Open(self.full().into_owned());
        }
        match self {
            Self::Open(histogram) => histogram,
            Self::Packed(_) => unreachable!("it was opened above"),
        }
    }

    /// The histogram to read.
    pub fn full(&self) -> Cow<'_, Histogram<u32>> {
        match self {
            Self::Open(histogram) => Cow::Borrowed(histogram),
            Self::Packed(_) => {
                let mut histogram = table();
                self.add_to(&mut histogram);
                Cow::Owned(histogram)
            }
        }
    }

    /// Adds all samples to another histogram.
    pub fn add_to(&self, sum: &mut Histogram<u32>) {
        match self {
            Self::Open(histogram) => sum.add(histogram).expect("all tables have one layout"),
            Self::Packed(cells) => {
                cells.iter().for_each(|(cell, count)| sum.saturating_record_n(*cell, *count));
            }
        }
    }

    /// Keeps only what was hit.
    pub fn pack(&mut self) {
        if let Self::Open(histogram) = self {
            let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
            *self = Self::Packed(lowest_ends(histogram).map(|(cell, n)| (cell, count(n))).collect());
        }
    }
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Packed(one), Self::Packed(other)) => one == other,
            _ => self.full() == other.full(),
        }
    }
}
