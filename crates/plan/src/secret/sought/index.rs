//! Index of the bytes of all secrets. It searches a text in one pass, independent of the number of secrets.
//! Most texts contain none.

use std::ops::Range;

use super::PART_BYTES_MIN;

/// Address bits of the table: 8 KiB fit into the L1 cache.
const TABLE_BITS: u32 = 16;
const WINDOW: u64 = (1 << (8 * PART_BYTES_MIN)) - 1;

#[derive(Clone, Default, PartialEq)]
pub(super) struct SecretIndex {
    /// Hashes of the first and last bytes of values. Empty without values.
    ends: Vec<u64>,
    /// The first bytes of each value with its index, sorted.
    starts: Vec<(u64, usize)>,
    /// All windows of bytes of values, sorted.
    parts: Vec<u64>,
}

impl SecretIndex {
    /// Creates the index from values with their indices.
    pub fn of<'v>(values: impl Iterator<Item = (usize, &'v [u8])>) -> SecretIndex {
        let mut index = SecretIndex::default();
        for (place, value) in values {
            index.ends.resize(1 << (TABLE_BITS - 6), 0);
            let windows = || value.windows(PART_BYTES_MIN).map(window);
            for end in windows().next().into_iter().chain(windows().next_back()) {
                let (word, bit) = hashed(end);
                index.ends[word] |= bit;
            }
            index
                .starts
                .extend(windows().next().map(|start| (start, place)));
            index.parts.extend(windows());
        }
        index.starts.sort_unstable();
        index.parts.sort_unstable();
        index.parts.dedup();
        index
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether a text may contain the start or end of a value.
    pub fn ends_are_in(&self, text: &[u8]) -> bool {
        !self.is_empty() && self.ends_in(text).next().is_some()
    }

    /// Whether the bytes at the start of a text may be part of a value.
    pub fn may_begin(&self, text: &[u8]) -> bool {
        let first = text.get(..PART_BYTES_MIN);
        first.is_some_and(|first| self.parts.binary_search(&window(first)).is_ok())
    }

    /// Whether the bytes at the end of a text may be part of a value.
    pub fn may_end(&self, text: &[u8]) -> bool {
        let begin = text.len().checked_sub(PART_BYTES_MIN);
        begin.is_some_and(|begin| self.may_begin(&text[begin..]))
    }

    /// Ranges of complete values with their indices. `value` returns a value by index. Ranges of one value do
    /// not overlap.
    pub fn wholes<'v>(
        &self,
        text: &[u8],
        value: impl Fn(usize) -> &'v [u8],
    ) -> Vec<(Range<usize>, usize)> {
        let mut found: Vec<(Range<usize>, usize)> = Vec::new();
        if self.is_empty() {
            return found;
        }
        let most = self.starts.iter().map(|(_, place)| place + 1).max();
        let mut behind = vec![0; most.unwrap_or(0)];
        for (begin, first) in self.ends_in(text) {
            let from = self.starts.partition_point(|(start, _)| *start < first);
            let same = self.starts[from..]
                .iter()
                .take_while(|(start, _)| *start == first);
            for (_, place) in same {
                let value = value(*place);
                if begin >= behind[*place] && text[begin..].starts_with(value) {
                    behind[*place] = begin + value.len();
                    found.push((begin..begin + value.len(), *place));
                }
            }
        }
        found
    }

    /// Positions of bytes that are probably the start or end of a value. The index must not be empty.
    fn ends_in<'t>(&self, text: &'t [u8]) -> impl Iterator<Item = (usize, u64)> + use<'_, 't> {
        let mut window = 0;
        text.iter().enumerate().filter_map(move |(at, byte)| {
            window = (window << 8 | u64::from(*byte)) & WINDOW;
            let (word, bit) = hashed(window);
            let begin = (at + 1).checked_sub(PART_BYTES_MIN)?;
            (self.ends[word] & bit != 0).then_some((begin, window))
        })
    }
}

/// Bytes as a number.
fn window(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |window, byte| window << 8 | u64::from(*byte))
}

/// Multiplicative hashing (Knuth, The Art of Computer Programming 3, section 6.4).
fn hashed(window: u64) -> (usize, u64) {
    let hash = window.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - TABLE_BITS);
    ((hash >> 6) as usize, 1 << (hash & 63))
}
