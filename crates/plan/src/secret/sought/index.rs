//! The bytes of all that is looked for, by which a text is searched in one pass, however many secrets there are. Most texts have none.

use std::ops::Range;

use super::PART_BYTES_MIN;

/// Bits of the table: 8 KiB stay in a processor's first cache.
const TABLE_BITS: u32 = 16;
const WINDOW: u64 = (1 << (8 * PART_BYTES_MIN)) - 1;

#[derive(Clone, Default, PartialEq)]
pub(super) struct SecretIndex {
    /// The first and the last bytes of values, by their hashes. Empty if there are none.
    ends: Vec<u64>,
    /// The first bytes of each value, in order, with its place in the list.
    starts: Vec<(u64, usize)>,
    /// Any bytes of values, in order.
    parts: Vec<u64>,
}

impl SecretIndex {
    /// Values with their places in the list.
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

    /// Whether a text may have the begin or the end of a value.
    pub fn ends_are_in(&self, text: &[u8]) -> bool {
        !self.is_empty() && self.ends_in(text).next().is_some()
    }

    /// Whether these bytes, at the begin of a text, may be of a value.
    pub fn may_begin(&self, text: &[u8]) -> bool {
        let first = text.get(..PART_BYTES_MIN);
        first.is_some_and(|first| self.parts.binary_search(&window(first)).is_ok())
    }

    /// The same at its end.
    pub fn may_end(&self, text: &[u8]) -> bool {
        let begin = text.len().checked_sub(PART_BYTES_MIN);
        begin.is_some_and(|begin| self.may_begin(&text[begin..]))
    }

    /// Where whole values are, and their places in the list, of which `value` has them. Of one value, none within another.
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

    /// Where bytes begin that are probably an end of a value. Not for an empty index.
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
