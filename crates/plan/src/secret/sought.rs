//! Looks for secrets in texts: whole, in each of their forms, and in parts where a text was cut.
//!
//! ```text
//! no access with hunter2!x      ─► no access with [secret-3f9a1b2c4d5e]
//! no access with hunte…         ─► no access with [secret-3f9a1b2c4d5e]…
//! ```
//! Whoever has a whole text masks it and then cuts. A service's output, a header and other machines' messages may have been cut by
//! others, so that the edges of every text are looked at. A cut of ours is marked by `…`: there five bytes are enough. Elsewhere the end of a
//! line may be the end of a word, so that a part is masked only if it looks like no word.

use std::cmp::Reverse;
use std::ops::Range;

use crate::placeholder::spliced;

/// Shorter values are masked where their name stands, and not looked for elsewhere: they would be found in every other word.
pub(super) const SOUGHT_BYTES_MIN: usize = 6;
/// A part of a secret at a cut.
const PART_BYTES_MIN: usize = 5;
/// The same where no mark says that something was cut off.
const UNMARKED_BYTES_MIN: usize = 6;
/// A part of so many bytes is no word.
const UNLIKE_WORDS_BYTES: usize = 16;
/// A shorter line is a part of a secret as a whole by chance: nobody cuts to so little.
const CUT_LINE_BYTES_MIN: usize = 40;
/// What marks a cut, ours and that of others.
const CUTS: [&str; 2] = ["…", "..."];
/// What stands between a part of a secret and a cut: quotes, and what is left of a character.
const AROUND: [char; 10] = [
    '"',
    '\'',
    '`',
    ')',
    ']',
    '}',
    '>',
    '\\',
    ' ',
    char::REPLACEMENT_CHARACTER,
];

/// A secret in one of its forms, and what stands in its place.
#[derive(Clone, PartialEq)]
pub(super) struct Hidden {
    pub value: String,
    pub instead: String,
    /// Whether it is looked for within other texts.
    pub is_sought: bool,
}

/// All secrets in all forms.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Sought {
    /// The longest first.
    all: Vec<Hidden>,
    ends: SecretEnds,
}

impl Sought {
    pub fn new(mut all: Vec<Hidden>) -> Sought {
        all.sort_by_cached_key(|of| {
            (
                Reverse(of.value.len()),
                of.value.clone(),
                Reverse(of.is_sought),
                of.instead.clone(),
            )
        });
        all.dedup_by(|one, other| one.value == other.value);
        let ends = SecretEnds::of(
            all.iter()
                .filter(|of| of.is_sought)
                .map(|of| of.value.as_bytes()),
        );
        Sought { all, ends }
    }

    pub fn join(&mut self, other: &Sought) {
        *self = Sought::new([&self.all[..], &other.all].concat());
    }

    /// Whether nothing is looked for.
    pub fn is_empty(&self) -> bool {
        self.ends.0.is_empty()
    }

    /// What stands in place of a secret that is all of a text.
    pub fn whole(&self, text: &str) -> Option<&str> {
        self.all
            .iter()
            .find(|hidden| hidden.value == text)
            .map(|hidden| hidden.instead.as_str())
    }

    /// A text without any secret and without parts at its cuts; `None` if it has none.
    pub fn without(&self, text: &str) -> Option<String> {
        let has_ends = self.ends.are_in(text.as_bytes());
        if self.is_empty() || !has_ends && !CUTS.iter().any(|cut| text.contains(cut)) {
            return None;
        }
        // Parts first: a secret may have another one in it, without which its own part would not be known.
        let parts = self.parts(text);
        let without = (!parts.is_empty()).then(|| spliced(text, parts.into_iter()));
        self.without_whole(without.as_deref().unwrap_or(text))
            .or(without)
    }

    /// A text without any secret, of which nobody has cut anything.
    pub fn without_whole(&self, text: &str) -> Option<String> {
        if !self.ends.are_in(text.as_bytes()) {
            return None;
        }
        let mut without: Option<String> = None;
        for Hidden { value, instead, .. } in self.sought() {
            let text = without.as_deref().unwrap_or(text);
            if text.contains(value.as_str()) {
                without = Some(text.replace(value.as_str(), instead));
            }
        }
        without
    }

    fn sought(&self) -> impl Iterator<Item = &Hidden> {
        self.all.iter().filter(|hidden| hidden.is_sought)
    }

    /// Parts of secrets at the edges of lines and at cuts, with what stands in their place.
    fn parts(&self, text: &str) -> Vec<(Range<usize>, String)> {
        let mut found = Vec::new();
        for piece in pieces(text) {
            let inside = text[piece.range.clone()].trim_matches(AROUND);
            let is_middle =
                piece.is_cut_before && piece.is_cut_behind && inside.len() >= PART_BYTES_MIN;
            if let Some(around) = self
                .sought()
                .find(|hidden| is_middle && hidden.value.contains(inside))
            {
                found.push((piece.range, around.instead.clone()));
                continue;
            }
            let first = self.last_part(text, &piece);
            let begin = first
                .as_ref()
                .map_or(piece.range.start, |(range, _)| range.end);
            let last = self
                .first_part(text, &piece)
                .filter(|(range, _)| range.start >= begin);
            found.extend(
                [first, last]
                    .into_iter()
                    .flatten()
                    .map(|(range, hidden)| (range, hidden.instead.clone())),
            );
        }
        found
    }

    /// The end of a secret that a piece begins with.
    fn last_part(&self, text: &str, piece: &TextPiece) -> Option<(Range<usize>, &Hidden)> {
        let whole = &text[piece.range.clone()];
        for inside in [whole, whole.trim_start_matches(AROUND)] {
            let begin = piece.range.end - inside.len();
            let part = |hidden: &Hidden| {
                let (value, most) = (
                    hidden.value.as_bytes(),
                    hidden.value.len().min(inside.len()),
                );
                let is_part = |length: &usize| {
                    inside
                        .as_bytes()
                        .starts_with(&value[value.len() - length..])
                };
                (PART_BYTES_MIN..=most).rev().find(is_part)
            };
            match longest(self.sought(), part) {
                Some((length, hidden)) if length == hidden.value.len() => return None,
                Some((length, hidden))
                    if piece.is_told(text, begin..begin + length, piece.is_cut_before) =>
                {
                    return Some((begin..begin + length, hidden));
                }
                _ => {}
            }
        }
        None
    }

    /// The beginning of a secret that a piece ends with.
    fn first_part(&self, text: &str, piece: &TextPiece) -> Option<(Range<usize>, &Hidden)> {
        let whole = &text[piece.range.clone()];
        for inside in [whole, whole.trim_end_matches(AROUND)] {
            let end = piece.range.start + inside.len();
            let part = |hidden: &Hidden| {
                let (value, most) = (
                    hidden.value.as_bytes(),
                    hidden.value.len().min(inside.len()),
                );
                let is_part = |length: &usize| inside.as_bytes().ends_with(&value[..*length]);
                (PART_BYTES_MIN..=most).rev().find(is_part)
            };
            match longest(self.sought(), part) {
                // All of it is no part: without its last quote, it would seem to be one.
                Some((length, hidden)) if length == hidden.value.len() => return None,
                Some((length, hidden))
                    if piece.is_told(text, end - length..end, piece.is_cut_behind) =>
                {
                    return Some((end - length..end, hidden));
                }
                _ => {}
            }
        }
        None
    }
}

/// The secret of which the longest part is there, and the part's length.
fn longest<'h>(
    all: impl Iterator<Item = &'h Hidden>,
    part: impl Fn(&Hidden) -> Option<usize>,
) -> Option<(usize, &'h Hidden)> {
    all.filter_map(|hidden| Some((part(hidden)?, hidden)))
        .max_by_key(|(length, _)| *length)
}

/// A line of a text, or what is left of it between cuts.
struct TextPiece {
    range: Range<usize>,
    is_cut_before: bool,
    is_cut_behind: bool,
}

impl TextPiece {
    /// Whether a part of a secret at an edge of it is masked.
    fn is_told(&self, text: &str, part: Range<usize>, is_marked: bool) -> bool {
        let (is_whole, line) = (part == self.range, self.range.len());
        let part = &text[part];
        // No word, no number and no address has both.
        let is_mixed = part.contains(|c: char| c.is_ascii_digit())
            && part.contains(|c: char| c.is_alphabetic());
        let is_unlike_words =
            part.len() >= UNLIKE_WORDS_BYTES || part.len() >= UNMARKED_BYTES_MIN && is_mixed;
        is_marked || is_unlike_words && (!is_whole || line >= CUT_LINE_BYTES_MIN)
    }
}

/// The pieces of all lines.
fn pieces(text: &str) -> Vec<TextPiece> {
    let mut pieces = Vec::new();
    let mut begin = 0;
    for line in text.split_inclusive('\n') {
        let end = begin + line.trim_end_matches(['\r', '\n']).len();
        let (mut at, mut is_cut_before) = (begin, false);
        loop {
            let cuts = CUTS
                .iter()
                .filter_map(|cut| Some((text[at..end].find(cut)?, *cut)));
            let cut = cuts.min();
            let to = cut.map_or(end, |(length, _)| at + length);
            pieces.push(TextPiece {
                range: at..to,
                is_cut_before,
                is_cut_behind: cut.is_some(),
            });
            let Some((_, cut)) = cut else { break };
            let rest = &text[to + cut.len()..end];
            // Some write four dots.
            (at, is_cut_before) = (end - rest.trim_start_matches(['.', '…']).len(), true);
        }
        begin += line.len();
    }
    pieces
}

/// The first and the last bytes of all that is looked for, by their hashes: a text without any of them needs no closer look, and most have
/// none. One pass, however many secrets there are.
#[derive(Clone, Default, PartialEq)]
struct SecretEnds(Vec<u64>);

/// Bits of the table: 8 KiB stay in a processor's first cache.
const TABLE_BITS: u32 = 16;
const WINDOW: u64 = (1 << (8 * PART_BYTES_MIN)) - 1;

impl SecretEnds {
    fn of<'v>(values: impl Iterator<Item = &'v [u8]>) -> SecretEnds {
        let mut table = Vec::new();
        for value in values {
            table.resize(1 << (TABLE_BITS - 6), 0);
            for end in [
                &value[..PART_BYTES_MIN],
                &value[value.len() - PART_BYTES_MIN..],
            ] {
                let window = end
                    .iter()
                    .fold(0, |window, byte| window << 8 | u64::from(*byte));
                let (word, bit) = SecretEnds::place(window);
                table[word] |= bit;
            }
        }
        SecretEnds(table)
    }

    fn place(window: u64) -> (usize, u64) {
        // Multiplicative hashing (Knuth, The Art of Computer Programming 3, section 6.4).
        let hash = (window & WINDOW).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - TABLE_BITS);
        ((hash >> 6) as usize, 1 << (hash & 63))
    }

    fn are_in(&self, text: &[u8]) -> bool {
        let mut window = 0;
        let mut is_end = |(at, byte): (usize, &u8)| {
            window = window << 8 | u64::from(*byte);
            let (word, bit) = SecretEnds::place(window);
            at + 1 >= PART_BYTES_MIN && self.0[word] & bit != 0
        };
        !self.0.is_empty() && text.iter().enumerate().any(&mut is_end)
    }
}
