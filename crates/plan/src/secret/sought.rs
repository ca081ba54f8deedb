//! Searches texts for secrets: complete ones in any encoding, and parts at places where a text was cut.
//!
//! ```text
//! no access with hunter2!x       ─► no access with [secret-3f9a1b2c4d5e]
//! no access with hunter2\u0021x  ─► no access with [secret-3f9a1b2c4d5e]
//! no access with hunte…          ─► no access with [secret-3f9a1b2c4d5e]…
//! ```
//! A text is searched as written and after decoding its escapes, one kind after the other, because texts are
//! nested. Complete texts are masked before they are truncated. The output of services, headers and messages
//! of other machines may have been truncated before, so the edges of every text are checked. Proofload marks
//! a cut by `…`, where five bytes of a secret are enough. Elsewhere the end of a line may be the end of a
//! word, and a part is only masked if it does not look like a word.

mod index;
mod pieces;

use std::cmp::Reverse;
use std::ops::Range;

use self::index::SecretIndex;
use self::pieces::{TextPiece, pieces};
use super::escapes::{DecodedText, Escapes};
use super::parts::DECODED_TIMES_MAX;
use crate::placeholder::spliced;

/// Minimum length of secrets that are searched for. Shorter values would be found in many words and are only
/// masked after their names.
pub(super) const SOUGHT_BYTES_MIN: usize = 6;
/// Minimum length of a part of a secret at a cut.
const PART_BYTES_MIN: usize = 5;
/// Marks of cuts, by Proofload and by others.
const CUTS: [&str; 2] = ["…", "..."];
/// Maximum length of a text that is decoded before it is compared with whole values. A value too short to be
/// searched for is never longer, even with every character escaped.
const SHORT_TEXT_BYTES_MAX: usize = 128;

/// A secret in one of its forms, and its replacement.
#[derive(Clone, PartialEq)]
pub(super) struct Hidden {
    pub value: String,
    pub instead: String,
    /// Whether it is searched for within other texts.
    pub is_sought: bool,
}

/// All secrets in all forms.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Sought {
    /// Longest first.
    all: Vec<Hidden>,
    index: SecretIndex,
}

/// Range of a secret or a part of one.
type FoundSecret<'h> = (Range<usize>, &'h Hidden);

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
        let sought = all.iter().enumerate().filter(|(_, of)| of.is_sought);
        let index = SecretIndex::of(sought.map(|(place, of)| (place, of.value.as_bytes())));
        Sought { all, index }
    }

    pub fn join(&mut self, other: &Sought) {
        *self = Sought::new([&self.all[..], &other.all].concat());
    }

    /// Whether there are no secrets.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Replacement of a secret that is the whole text.
    pub fn whole(&self, text: &str) -> Option<&str> {
        let is_all = |text: &str| {
            let hidden = self.all.iter().find(|hidden| hidden.value == text);
            hidden.map(|hidden| (0..text.len(), hidden))
        };
        let times = if text.len() <= SHORT_TEXT_BYTES_MAX {
            DECODED_TIMES_MAX
        } else {
            0
        };
        let found = readings(text, times, &|text| is_all(text).into_iter().collect());
        found.first().map(|(_, hidden)| hidden.instead.as_str())
    }

    /// The text without secrets and parts of secrets at cuts. `None` if there are none.
    pub fn without(&self, text: &str) -> Option<String> {
        self.masked(text, &|text| {
            let has_ends = self.index.ends_are_in(text.as_bytes());
            if !has_ends && !CUTS.iter().any(|cut| text.contains(cut)) {
                return Vec::new();
            }
            let mut found = self.wholes(text);
            found.extend(self.parts(text));
            found
        })
    }

    /// The text without complete secrets. `None` if there are none.
    pub fn without_whole(&self, text: &str) -> Option<String> {
        self.masked(text, &|text| self.wholes(text))
    }

    /// The text without the secrets that `find` returns. `None` if there are none.
    fn masked<'h>(
        &'h self,
        text: &str,
        find: &impl Fn(&str) -> Vec<FoundSecret<'h>>,
    ) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let mut found = readings(text, DECODED_TIMES_MAX, find);
        found.sort_by_key(|(range, hidden)| {
            (range.start, Reverse(range.end), Reverse(hidden.value.len()))
        });
        // Overlapping ranges are masked together, with the replacement of the longest part.
        let mut masked: Vec<(FoundSecret<'_>, usize)> = Vec::new();
        for (range, hidden) in found {
            let length = range.len();
            match masked.last_mut() {
                Some(((before, of), longest)) if range.start < before.end => {
                    before.end = before.end.max(range.end);
                    if length > *longest {
                        (*of, *longest) = (hidden, length);
                    }
                }
                _ => masked.push(((range, hidden), length)),
            }
        }
        let parts = masked
            .into_iter()
            .map(|((range, hidden), _)| (range, hidden.instead.clone()));
        (parts.len() > 0).then(|| spliced(text, parts))
    }

    fn wholes(&self, text: &str) -> Vec<FoundSecret<'_>> {
        let value = |place: usize| self.all[place].value.as_bytes();
        let found = self.index.wholes(text.as_bytes(), value);
        let hidden = |(range, place): (Range<usize>, usize)| (range, &self.all[place]);
        found.into_iter().map(hidden).collect()
    }

    fn sought(&self) -> impl Iterator<Item = &Hidden> {
        self.all.iter().filter(|hidden| hidden.is_sought)
    }

    /// Parts of secrets at the edges of lines and at cuts.
    fn parts(&self, text: &str) -> Vec<FoundSecret<'_>> {
        let mut found = Vec::new();
        for piece in pieces(text) {
            if let Some(around) = self.around(text, &piece) {
                found.push((piece.range, around));
                continue;
            }
            let first = self.last_part(text, &piece);
            let begin = first
                .as_ref()
                .map_or(piece.range.start, |(range, _)| range.end);
            let last = self
                .first_part(text, &piece)
                .filter(|(range, _)| range.start >= begin);
            found.extend(first.into_iter().chain(last));
        }
        found
    }

    /// The secret that contains a whole piece between two cuts.
    fn around(&self, text: &str, piece: &TextPiece) -> Option<&Hidden> {
        if !(piece.is_cut_before && piece.is_cut_behind) {
            return None;
        }
        let ends = piece.ends(text);
        piece.begins(text).into_iter().find_map(|begin| {
            let may_begin = self
                .index
                .may_begin(&text.as_bytes()[begin..piece.range.end]);
            let ends = ends
                .iter()
                .filter(|end| **end >= begin + PART_BYTES_MIN && may_begin);
            ends.into_iter().find_map(|end| {
                self.sought()
                    .find(|hidden| hidden.value.contains(&text[begin..*end]))
            })
        })
    }

    /// The end of a secret at the start of a piece.
    fn last_part(&self, text: &str, piece: &TextPiece) -> Option<FoundSecret<'_>> {
        for begin in piece.begins(text) {
            let inside = &text.as_bytes()[begin..piece.range.end];
            if !self.index.may_begin(inside) {
                continue;
            }
            let part = |hidden: &Hidden| {
                let value = hidden.value.as_bytes();
                let most = value.len().min(inside.len());
                let is_part = |length: &usize| inside.starts_with(&value[value.len() - length..]);
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

    /// The beginning of a secret at the end of a piece.
    fn first_part(&self, text: &str, piece: &TextPiece) -> Option<FoundSecret<'_>> {
        for end in piece.ends(text) {
            let inside = &text.as_bytes()[piece.range.start..end];
            if !self.index.may_end(inside) {
                continue;
            }
            let part = |hidden: &Hidden| {
                let value = hidden.value.as_bytes();
                let most = value.len().min(inside.len());
                let is_part = |length: &usize| inside.ends_with(&value[..*length]);
                (PART_BYTES_MIN..=most).rev().find(is_part)
            };
            match longest(self.sought(), part) {
                // A complete secret is not a part. Without its last quote it would look like one.
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

/// The secret with the longest part, and the length of this part.
fn longest<'h>(
    all: impl Iterator<Item = &'h Hidden>,
    part: impl Fn(&Hidden) -> Option<usize>,
) -> Option<(usize, &'h Hidden)> {
    all.filter_map(|hidden| Some((part(hidden)?, hidden)))
        .max_by_key(|(length, _)| *length)
}

/// Secrets in a text as written and after decoding its escapes up to this many times, at their ranges in the
/// text.
fn readings<'h>(
    text: &str,
    times: usize,
    find: &impl Fn(&str) -> Vec<FoundSecret<'h>>,
) -> Vec<FoundSecret<'h>> {
    let mut found = find(text);
    let kinds = Escapes::ALL.into_iter().filter(|_| times > 0);
    for decoded in kinds.filter_map(|kind| DecodedText::of(text, kind)) {
        let inside = readings(&decoded.text, times - 1, find);
        found.extend(
            inside
                .into_iter()
                .map(|(range, hidden)| (decoded.written(&range), hidden)),
        );
    }
    found
}
