//! Looks for secrets in texts: whole, as anybody writes them, and in parts where a text was cut.
//!
//! ```text
//! no access with hunter2!x       ─► no access with [secret-3f9a1b2c4d5e]
//! no access with hunter2\u0021x  ─► no access with [secret-3f9a1b2c4d5e]
//! no access with hunte…          ─► no access with [secret-3f9a1b2c4d5e]…
//! ```
//! A text is searched as it is and once its escapes are decoded, one kind of them after the other, for one text stands in another.
//! Whoever has a whole text masks it and then cuts. A service's output, a header and other machines' messages may have been cut by
//! others, so that the edges of every text are looked at. A cut of ours is marked by `…`: there five bytes are enough. Elsewhere the end of a
//! line may be the end of a word, so that a part is masked only if it looks like no word.

mod index;
mod pieces;

use std::cmp::Reverse;
use std::ops::Range;

use self::index::SecretIndex;
use self::pieces::{TextPiece, pieces};
use super::escapes::{DecodedText, Escapes};
use super::parts::DECODED_TIMES_MAX;
use crate::placeholder::spliced;

/// Shorter values are masked where their name stands, and not looked for elsewhere: they would be found in every other word.
pub(super) const SOUGHT_BYTES_MIN: usize = 6;
/// A part of a secret at a cut.
const PART_BYTES_MIN: usize = 5;
/// What marks a cut, ours and that of others.
const CUTS: [&str; 2] = ["…", "..."];
/// No value is so short that is all of a longer text, even with every character as an escape, and is not looked for within others.
const SHORT_TEXT_BYTES_MAX: usize = 128;

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
    index: SecretIndex,
}

/// Where a secret or a part of one was found.
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

    /// Whether nothing is looked for.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// What stands in place of a secret that is all of a text.
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

    /// A text without any secret and without parts at its cuts; `None` if it has none.
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

    /// A text without any secret, of which nobody has cut anything.
    pub fn without_whole(&self, text: &str) -> Option<String> {
        self.masked(text, &|text| self.wholes(text))
    }

    /// A text without what is found in it; `None` if that is nothing.
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
        // What overlaps is masked together, for the value of which most is there.
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

    /// The secret that has all of a piece between two cuts in it.
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

    /// The end of a secret that a piece begins with.
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

    /// The beginning of a secret that a piece ends with.
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

/// What is found in a text as it is, and in what it says once its escapes are decoded as often as this, at its places in the text.
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
