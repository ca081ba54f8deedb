//! The numbers of cells, and which values a cell holds: HdrHistogram's layout for 1 ns to 1 h with three digits.
//!
//! ```text
//! cell    0 … 2047    2048 … 3071    3072 … 4095   …      each further thousand (1,024) covers twice the range of the one before,
//! width       1 ns           2 ns           4 ns   …      from 2,048 ns, 4,096 ns, … on
//! ```

/// Cells in all.
pub(super) const CELLS: u32 = 33_792;
/// Cells of one width, as a power of two.
const ROW_BITS: u32 = 10;
const ROW: u32 = 1 << ROW_BITS;

/// The cell of a value; beyond the last one where the value is longer than any that has a cell.
pub(super) fn cell_of(ns: u64) -> u32 {
    let width_bits = (u64::BITS - 1 - ROW_BITS) - (ns | u64::from(2 * ROW - 1)).leading_zeros();
    // At most 2 × ROW, however long.
    width_bits * ROW + (ns >> width_bits) as u32
}

/// The lowest value that a cell holds.
pub(super) fn lowest(cell: u32) -> u64 {
    let width_bits = (cell >> ROW_BITS).saturating_sub(1);
    u64::from(cell - width_bits * ROW) << width_bits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{HIGHEST_NS, table};
    use super::*;

    proptest! {
        #[test]
        fn cells_are_where_the_histogram_has_them(exponent in 0.0f64..41.7) {
            let ns = (exponent.exp2() as u64).min(HIGHEST_NS);
            let mut histogram = table();
            histogram.saturating_record(ns);
            prop_assert_eq!(histogram.count_at_index(cell_of(ns) as usize), Some(1));
            prop_assert_eq!(lowest(cell_of(ns)), histogram.lowest_equivalent(ns));
        }
    }

    #[test]
    fn every_cell_begins_where_it_says() {
        assert_eq!(table().distinct_values(), CELLS as usize);
        assert!((0..CELLS).all(|cell| cell_of(lowest(cell)) == cell));
        assert!((1..CELLS).all(|cell| cell_of(lowest(cell) - 1) == cell - 1));
        assert!(cell_of(HIGHEST_NS) < CELLS && cell_of(u64::MAX) >= CELLS);
    }
}
