//! Cells of a histogram: the values of each cell, and a packed form of the nonempty cells. A long run stores
//! the cells of tens of thousands of slices.
//!
//! ```text
//! cell    0 … 2047    2048 … 3071    3072 … 4095   …      each further 1,024 cells cover twice the range of the previous ones,
//! width       1 ns           2 ns           4 ns   …      from 2,048 ns, 4,096 ns, … on: HdrHistogram's for 1 ns to 1 h, three digits
//!
//! for each cell, ascending:   2 × distance + (is count above 1)     count − 2, if above 1     each as a number of variable length
//! ```
//! The distance is the number of empty cells since the previous cell: 0 for neighbours. Most cells take one
//! or two bytes. Numbers are LEB128 as in HdrHistogram's V2 form: seven bits per byte, lowest first, and a
//! ninth byte is the last and has eight bits.
//!
//! Packing never loses or moves a sample.

/// Total number of cells.
pub(super) const CELLS: u32 = 33_792;
/// Number of cells of the same width, as a power of two.
const ROW_BITS: u32 = 10;
const ROW: u32 = 1 << ROW_BITS;

/// Returns the cell of a value. Values above the range give an index beyond the last cell.
pub(super) fn cell_of(ns: u64) -> u32 {
    let width_bits = (u64::BITS - 1 - ROW_BITS) - (ns | u64::from(2 * ROW - 1)).leading_zeros();
    // At most 2 × ROW for any value.
    width_bits * ROW + (ns >> width_bits) as u32
}

/// Returns the lowest value of a cell.
pub(super) fn lowest(cell: u32) -> u64 {
    let width_bits = (cell >> ROW_BITS).saturating_sub(1);
    u64::from(cell - width_bits * ROW) << width_bits
}

/// Nonempty cells with their sample counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Packed {
    bytes: Box<[u8]>,
    samples: u64,
}

impl Packed {
    /// Total number of samples.
    pub fn len(&self) -> u64 {
        self.samples
    }

    /// Size in memory.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Iterates over the cells in ascending order, each with its sample count.
    pub fn cells(&self) -> PackedCells<'_> {
        PackedCells {
            bytes: &self.bytes,
            next: 0,
        }
    }
}

/// Packs ascending cells, without empty ones. A count above 32 bits saturates, as in all our tables.
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
    /// The index after the last cell.
    next: u32,
}

impl Packer {
    /// Adds a cell, which must be above all earlier ones.
    pub fn push(&mut self, cell: u32, count: u32) {
        debug_assert!(cell >= self.next, "cell {cell} comes after {}", self.next);
        if count == 0 {
            return;
        }
        put(
            &mut self.bytes,
            2 * u64::from(cell - self.next) + u64::from(count > 1),
        );
        if count > 1 {
            put(&mut self.bytes, u64::from(count - 2));
        }
        self.next = cell + 1;
        self.samples += u64::from(count);
    }

    /// Returns the packed cells.
    pub fn finish(self) -> Packed {
        Packed {
            bytes: self.bytes.into_boxed_slice(),
            samples: self.samples,
        }
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
        let head = take(&mut self.bytes)?;
        let count = if head & 1 == 0 {
            1
        } else {
            take(&mut self.bytes)? + 2
        };
        let cell = self.next + (head >> 1) as u32;
        self.next = cell + 1;
        Some((cell, count))
    }
}

/// Maximum length of a number, in bytes.
const BYTES_MAX: u32 = 9;

/// Appends a number.
pub(super) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    for _ in 1..BYTES_MAX {
        if number < 0x80 {
            break;
        }
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Removes and returns the first number. `None` if the input is empty or truncated. The bytes of a truncated
/// number are consumed.
#[inline]
pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..BYTES_MAX {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if byte < 0x80 || place + 1 == BYTES_MAX {
            return Some(number | u64::from(byte) << (7 * place));
        }
        number |= u64::from(byte & 0x7f) << (7 * place);
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::{HIGHEST_NS, table};
    use super::*;

    proptest! {
        #[test]
        fn cells_are_where_the_histogram_has_them(exponent in 0.0f64..41.7) {
            let ns = (exponent.exp2() as u64).min(HIGHEST_NS);
            let mut histogram = table();
            histogram.saturating_record(ns);
            let found = histogram.iter_all().position(|cell| cell.count_at_value() == 1);
            prop_assert_eq!(found, Some(cell_of(ns) as usize));
            prop_assert_eq!(lowest(cell_of(ns)), histogram.lowest_equivalent(ns));
        }

        #[test]
        fn what_was_packed_comes_out(
            cells in proptest::collection::btree_map(0..CELLS, prop_oneof![1u64..5, 1..=u64::from(u32::MAX)], 0..300),
        ) {
            let packed: Packed = cells.clone().into_iter().collect();
            prop_assert_eq!(packed.cells().collect::<BTreeMap<u32, u64>>(), cells.clone());
            prop_assert_eq!(packed.len(), cells.values().sum::<u64>());
        }

        #[test]
        fn numbers_come_out_as_they_went_in(number: u64, shift in 0u32..64) {
            let mut bytes = Vec::new();
            put(&mut bytes, number >> shift);
            let mut rest = bytes.as_slice();
            prop_assert_eq!((take(&mut rest), rest.len()), (Some(number >> shift), 0));
            prop_assert_eq!(take(&mut &bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn every_cell_begins_where_it_says() {
        assert_eq!(table().distinct_values(), CELLS as usize);
        assert!((0..CELLS).all(|cell| cell_of(lowest(cell)) == cell));
        assert!((1..CELLS).all(|cell| cell_of(lowest(cell) - 1) == cell - 1));
        assert!(cell_of(HIGHEST_NS) < CELLS && cell_of(u64::MAX) >= CELLS);
    }

    #[test]
    fn the_ends_are_cells_like_others_and_neighbours_take_a_byte() {
        let ends: Packed = [(0, 1), (CELLS - 1, u64::MAX)].into_iter().collect();
        assert_eq!(
            ends.cells().collect::<Vec<_>>(),
            [(0, 1), (CELLS - 1, u64::from(u32::MAX))]
        );
        let neighbours: Packed = (500..600).map(|cell| (cell, 1)).collect();
        assert_eq!(neighbours.bytes.len(), 101);
        assert_eq!(Packed::default().cells().next(), None);
    }
}
