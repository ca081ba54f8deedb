//! Places where a text may have been cut: pieces of its lines, and characters between a cut and a part of a
//! secret.

use std::ops::Range;

use super::CUTS;

/// Minimum length of a part of a secret at a place without a mark of a cut.
const UNMARKED_BYTES_MIN: usize = 6;
/// Minimum length of a part that cannot be a word.
const UNLIKE_WORDS_BYTES: usize = 16;
/// Minimum length of a line that was cut. A shorter line is a part of a secret by chance.
const CUT_LINE_BYTES_MIN: usize = 40;
/// Characters between a part of a secret and a cut: quotes, and the rest of a character.
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
/// Maximum number of such characters that may belong to the secret.
const AROUND_MAX: usize = 8;
/// Maximum length of a truncated escape.
const ESCAPE_BYTES_MAX: usize = 16;
/// Maximum number of escapes for one character, including nested truncated ones: UTF-8 bytes, UTF-16 units.
const ESCAPES_MAX: usize = 8;

/// A line of a text, or a part of a line between cuts.
pub(super) struct TextPiece {
    pub range: Range<usize>,
    pub is_cut_before: bool,
    pub is_cut_behind: bool,
}

impl TextPiece {
    /// Possible starts of a part of a secret at the start of the piece: after surrounding characters, and
    /// after the rest of an escape.
    pub fn begins(&self, text: &str) -> Vec<usize> {
        let whole = &text[self.range.clone()];
        let inside = whole.trim_start_matches(AROUND);
        let at = |rest: &str| self.range.end - rest.len();
        let around = whole.char_indices().take_while(|(_, c)| AROUND.contains(c));
        let mut begins: Vec<usize> = around
            .take(AROUND_MAX)
            .map(|(length, _)| self.range.start + length)
            .collect();
        let escape = &inside.as_bytes()[..ESCAPE_BYTES_MAX.min(inside.len())];
        let is_rest = |byte: &u8| {
            byte.is_ascii_hexdigit() || b"uUx#%\\{};".contains(byte) || is_of_latin(*byte)
        };
        // The sign of an entity may itself be an entity.
        let signs = escape.iter().enumerate().filter(|(_, byte)| **byte == b';');
        for from in [0].into_iter().chain(signs.map(|(sign, _)| sign + 1)) {
            let rest = escape[from..].iter().take_while(|byte| is_rest(byte));
            begins.extend((0..=rest.count()).map(|length| at(inside) + from + length));
        }
        begins.retain(|begin| text.is_char_boundary(*begin));
        begins.sort_unstable();
        begins.dedup();
        begins
    }

    /// Possible ends of a part of a secret at the end of the piece.
    pub fn ends(&self, text: &str) -> Vec<usize> {
        let whole = &text[self.range.clone()];
        let mut inside = whole.trim_end_matches(AROUND);
        let around = whole
            .char_indices()
            .rev()
            .take_while(|(_, c)| AROUND.contains(c));
        let mut ends = vec![self.range.end];
        ends.extend(
            around
                .take(AROUND_MAX)
                .map(|(length, _)| self.range.start + length),
        );
        ends.push(self.range.start + inside.len());
        for _ in 0..ESCAPES_MAX {
            let Some(rest) = without_escape(inside) else {
                break;
            };
            inside = rest;
            ends.push(self.range.start + inside.len());
        }
        ends.dedup();
        ends
    }

    /// Whether a part of a secret at an edge of the piece is masked.
    pub fn is_told(&self, text: &str, part: Range<usize>, is_marked: bool) -> bool {
        let (is_whole, line) = (part == self.range, self.range.len());
        let part = &text[part];
        // No word, number or address contains both.
        let is_mixed = part.contains(|c: char| c.is_ascii_digit())
            && part.contains(|c: char| c.is_alphabetic());
        let is_unlike_words =
            part.len() >= UNLIKE_WORDS_BYTES || part.len() >= UNMARKED_BYTES_MIN && is_mixed;
        is_marked || is_unlike_words && (!is_whole || line >= CUT_LINE_BYTES_MIN)
    }
}

/// Whether a character is between U+0080 and U+00FF. A single byte of truncated UTF-8 is decoded to such a
/// character.
fn is_of_latin(byte: u8) -> bool {
    (0x80..=0xc3).contains(&byte) && !matches!(byte, 0xc0 | 0xc1)
}

/// The text without a truncated escape at its end. `None` if there is none.
fn without_escape(text: &str) -> Option<&str> {
    // A byte of truncated UTF-8.
    if let Some(rest) = text.strip_suffix(|c| ('\u{80}'..='\u{ff}').contains(&c)) {
        return Some(rest);
    }
    let from = text.len().saturating_sub(ESCAPE_BYTES_MAX);
    let bytes = &text.as_bytes()[from..];
    let sign = bytes.iter().rposition(|byte| b"\\&%".contains(byte))?;
    let (first, rest) = match &bytes[sign + 1..] {
        [] => (b'u', &[][..]),
        [first, rest @ ..] => (*first, rest),
    };
    let are_digits = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
    let is_escape = match bytes[sign] {
        b'\\' if first == b'u' => are_digits(rest.strip_prefix(b"{").unwrap_or(rest)),
        b'\\' => b"Ux0123".contains(&first) && are_digits(rest),
        b'%' if first == b'u' => are_digits(rest),
        b'%' => first.is_ascii_hexdigit() && rest.is_empty(),
        _ => {
            (first == b'#' || first.is_ascii_alphabetic())
                && rest.iter().all(u8::is_ascii_alphanumeric)
        }
    };
    is_escape.then(|| &text[..from + sign])
}

/// The pieces of all lines.
pub(super) fn pieces(text: &str) -> Vec<TextPiece> {
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
            // Some programs write four dots.
            (at, is_cut_before) = (end - rest.trim_start_matches(['.', '…']).len(), true);
        }
        begin += line.len();
    }
    pieces
}
