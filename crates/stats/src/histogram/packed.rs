//! The cells of a histogram that were hit, in few bytes: a long run keeps those of ten thousands of slices.
//!
//! ```text
//! for each cell, rising:   2 × distance + (is count above 1)     count − 2, where it is     each as a number of variable length
//! ```
//! The distance is that to the cell behind the one before: 0 for neighbours. Most cells take one byte, or two.
//!
//! Must not: lose or move a sample.

use super::varint;

/// Cells with their samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Packed {
    bytes: Box<[u8]>,
    samples: u64,
}

impl Packed {
    /// Samples in all.
    pub fn len(&self) -> u64 {
        self.samples
    }

    /// The cells, rising, each with its samples.
    pub fn cells(&self) -> PackedCells<'_> {
        PackedCells { bytes: &self.bytes, next: 0 }
    }
}

/// From rising cells; those without a sample are left out. A count beyond 32 bits stays at their end, as in any of our tables.
impl FromIterator<(u32, u64)> for Packed {
    fn from_iter<I: IntoIterator<Item = (u32, u64)>>(cells: I) -> Packed {
        let mut packer = Packer::default();
        for (cell, count) in cells {
            packer.push(cell, u32::try_from(count).unwrap_or(u32::MAX));
        }
        packer.finish()
    }
}

/// Packs cells one by one.
#[derive(Default)]
pub(super) struct Packer {
    bytes: Vec<u8>,
    samples: u64,
    /// The cell behind the last one.
    next: u32,
}

impl Packer {
    /// Takes in a cell that lies behind all before it.
    pub fn push(&mut self, cell: u32, count: u32) {
        debug_assert!(cell >= self.next, "cell {cell} comes after {}", self.next);
        if count == 0 {
            return;
        }
        varint::put(&mut self.bytes, 2 * u64::from(cell - self.next) + u64::from(count > 1));
        if count > 1 {
            varint::put(&mut self.bytes, u64::from(count - 2));
        }
        self.next = cell + 1;
        self.samples += u64::from(count);
    }

    /// All of them.
    pub fn finish(self) -> Packed {
        Packed { bytes: self.bytes.into_boxed_slice(), samples: self.samples }
    }
}

/// See [`Packed::cells`].
#[derive(Clone)]
pub(super) struct PackedCells<'a> {
    bytes: &'a [u8],
    next: u32,
}

impl Iterator for PackedCells<'_> {
    type Item = (u32, u64);

    fn next(&mut self) -> Option<(u32, u64)> {
        let head = varint::take(&mut self.bytes)?;
        let count = if head & 1 == 0 { 1 } else { varint::take(&mut self.bytes)? + 2 };
        let cell = self.next + (head >> 1) as u32;
        self.next = cell + 1;
        Some((cell, count))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::layout::CELLS;
    use super::*;

    proptest! {
        #[test]
        fn what_was_packed_comes_out(
            cells in proptest::collection::btree_map(0..CELLS, prop_oneof![1u64..5, 1..=u64::from(u32::MAX)], 0..300),
        ) {
            let packed: Packed = cells.clone().into_iter().collect();
            prop_assert_eq!(packed.cells().collect::<BTreeMap<u32, u64>>(), cells.clone());
            prop_assert_eq!(packed.len(), cells.values().sum::<u64>());
        }
    }

    #[test]
    fn the_ends_are_cells_like_others_and_neighbours_take_a_byte() {
        let ends: Packed = [(0, 1), (CELLS - 1, u64::MAX)].into_iter().collect();
        assert_eq!(ends.cells().collect::<Vec<_>>(), [(0, 1), (CELLS - 1, u64::from(u32::MAX))]);
        let neighbours: Packed = (500..600).map(|cell| (cell, 1)).collect();
        assert_eq!(neighbours.bytes.len(), 101);
        assert_eq!(Packed::default().cells().next(), None);
    }
}
