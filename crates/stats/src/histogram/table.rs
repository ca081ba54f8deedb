//! One histogram, open for recording or packed for storage.
//!
//! Packing never loses or moves a sample: a histogram that is packed and opened again has the same cells and
//! counts.

use std::borrow::Cow;

use hdrhistogram::Histogram;

use super::packed::{Packed, cell_of, lowest};
use super::table;

/// A histogram with the common layout.
#[derive(Clone)]
pub(super) enum HistogramLayout {
    /// All cells, 132 KiB.
    Open(Box<Histogram<u32>>),
    /// Only the nonempty cells, one or two bytes each.
    Packed(Packed),
}

impl HistogramLayout {
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Total number of samples.
    pub fn len(&self) -> u64 {
        match self {
            Self::Open(histogram) => histogram.len(),
            Self::Packed(packed) => packed.len(),
        }
    }

    /// Returns the histogram for recording. Allocates if it was packed.
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

    /// Returns the histogram as the library's type. Allocates if it is packed, so prefer methods that use
    /// only the cells.
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

    /// Iterates over the nonempty cells in ascending order, each with its sample count.
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

    /// Like [`Table::cells`], with the lowest value of each cell.
    pub fn lowest_ends(&self) -> impl Iterator<Item = (u64, u64)> {
        self.cells().map(|(cell, count)| (lowest(cell), count))
    }

    /// Adds the samples of another table. The sum of two packed tables stays packed.
    pub fn add(&mut self, more: &HistogramLayout) {
        match (&mut *self, more) {
            (Self::Packed(sum), Self::Packed(more)) if sum.len() == 0 => sum.clone_from(more),
            (Self::Packed(sum), Self::Packed(more)) => {
                *sum = both(sum.cells().chain(more.cells())).into_iter().collect();
            }
            (_, Self::Packed(more)) => add_packed(self.open(), more),
            (_, Self::Open(more)) => self
                .open()
                .add(more.as_ref())
                .expect("all tables have one layout"),
        }
    }

    /// Keeps only the nonempty cells.
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

impl PartialEq for HistogramLayout {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.cells().eq(other.cells())
    }
}

/// Merges the cells of two tables in ascending order. Cells in both are summed.
pub(super) fn both(cells: impl Iterator<Item = (u32, u64)>) -> Vec<(u32, u64)> {
    let mut cells: Vec<(u32, u64)> = cells.collect();
    // A stable sort merges two ascending sequences.
    cells.sort_by_key(|(cell, _)| *cell);
    cells.dedup_by(|(cell, more), (before, count)| {
        if cell == before {
            *count += *more;
        }
        cell == before
    });
    cells
}
