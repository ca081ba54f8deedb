//! One histogram, open for recording or packed to be kept.
//!
//! Must not: lose or move a sample; packed and open again it has the same cells with the same counts.

use std::borrow::Cow;

use hdrhistogram::Histogram;

use super::packed::{Packed, cell_of, lowest};
use super::table;

/// A histogram of our one layout.
#[derive(Clone)]
pub(super) enum Table {
    /// All cells, 132 KiB.
    Open(Box<Histogram<u32>>),
    /// Those that were hit, a byte or two for each.
    Packed(Packed),
}

impl Table {
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Samples in all.
    pub fn len(&self) -> u64 {
        match self {
            Self::Open(histogram) => histogram.len(),
            Self::Packed(packed) => packed.len(),
        }
    }

    /// The histogram to record in. Allocates where it was packed.
    #[inline]
    pub fn open(&mut self) -> &mut Histogram<u32> {
        if let Self::Packed(_) = self {
            *self = Self::Open(Box::new(self.full().into_owned()));
        }
        match self {
            Self::Open(histogram) => histogram,
            Self::Packed(_) => unreachable!("it was opened above"),
        }
    }

    /// The histogram as the library knows it. Allocates where it is packed; what can be told from its cells alone should be.
    pub fn full(&self) -> Cow<'_, Histogram<u32>> {
        match self {
            Self::Open(histogram) => Cow::Borrowed(histogram.as_ref()),
            Self::Packed(packed) => {
                let mut histogram = table();
                add_packed(&mut histogram, packed);
                Cow::Owned(histogram)
            }
        }
    }

    /// The cells that were hit, rising, each with its samples.
    pub fn cells(&self) -> Box<dyn Iterator<Item = (u32, u64)> + '_> {
        match self {
            Self::Open(histogram) => {
                let all = cell_of(histogram.min())..cell_of(histogram.max()) + 1;
                let counted = all.map(|cell| (cell, u64::from(histogram.count_at(lowest(cell)))));
                Box::new(counted.filter(|(_, count)| *count > 0))
            }
            Self::Packed(packed) => Box::new(packed.cells()),
        }
    }

    /// The same by the lowest value of each cell.
    pub fn lowest_ends(&self) -> impl Iterator<Item = (u64, u64)> {
        self.cells().map(|(cell, count)| (lowest(cell), count))
    }

    /// Takes in the samples of another. Two packed ones stay packed.
    pub fn add(&mut self, more: &Table) {
        match (&mut *self, more) {
            (Self::Packed(sum), Self::Packed(more)) if sum.len() == 0 => sum.clone_from(more),
            (Self::Packed(sum), Self::Packed(more)) => {
                *sum = both(sum.cells().chain(more.cells())).into_iter().collect();
            }
            (_, Self::Packed(more)) => add_packed(self.open(), more),
            (_, Self::Open(more)) => self.open().add(more.as_ref()).expect("all tables have one layout"),
        }
    }

    /// Keeps only what was hit.
    pub fn pack(&mut self) {
        if let Self::Open(_) = self {
            *self = Self::Packed(self.cells().collect());
        }
    }
}

fn add_packed(sum: &mut Histogram<u32>, more: &Packed) {
    for (cell, count) in more.cells() {
        sum.saturating_record_n(lowest(cell), u32::try_from(count).unwrap_or(u32::MAX));
    }
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.cells().eq(other.cells())
    }
}

/// The cells of two tables, rising, those of both once.
pub(super) fn both(cells: impl Iterator<Item = (u32, u64)>) -> Vec<(u32, u64)> {
    let mut cells: Vec<(u32, u64)> = cells.collect();
    // A stable sort merges two rows that rise.
    cells.sort_by_key(|(cell, _)| *cell);
    cells.dedup_by(|(cell, more), (before, count)| {
        if cell == before {
            *count += *more;
        }
        cell == before
    });
    cells
}
