//! Where a text may have been cut: the pieces of its lines, and what may stand between a cut and the rest of a secret.

use std::ops::Range;

use super::CUTS;

/// A part of a secret where no mark says that something was cut off.
const UNMARKED_BYTES_MIN: usize = 6;
/// A part of so many bytes is no word.
const UNLIKE_WORDS_BYTES: usize = 16;
/// A shorter line is a part of a secret as a whole by chance: nobody cuts to so little.
const CUT_LINE_BYTES_MIN: usize = 40;
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
/// So many of them may be of the secret itself.
const AROUND_MAX: usize = 8;
/// Most bytes that a cut leaves of an escape.
const ESCAPE_BYTES_MAX: usize = 16;
/// So many escapes, begun ones of one in another included, may be one character: bytes of UTF-8, units of UTF-16.
const ESCAPES_MAX: usize = 8;

/// A line of a text, or what is left of it between cuts.
pub(super) struct TextPiece {
    pub range: Range<usize>,
    pub is_cut_before: bool,
    pub is_cut_behind: bool,
}

impl TextPiece {
    /// A part of a secret that it begins with may begin at any of these: behind what stands around it, and behind the rest of an escape.
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
        // An entity is a word with its sign, which may be one, too.
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

    /// A part of a secret that it ends with may end at any of these.
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

    /// Whether a part of a secret at an edge of it is masked.
    pub fn is_told(&self, text: &str, part: Range<usize>, is_marked: bool) -> bool {
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

/// Whether a byte is of a character between U+0080 and U+00FF: as such, a byte of UTF-8 is read whose others were cut off.
fn is_of_latin(byte: u8) -> bool {
    (0x80..=0xc3).contains(&byte) && !matches!(byte, 0xc0 | 0xc1)
}

/// A text without what a cut left of an escape at its end; `None` if that ends with no such thing.
fn without_escape(text: &str) -> Option<&str> {
    // A byte of UTF-8 whose others were cut off.
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
            // Some write four dots.
            (at, is_cut_before) = (end - rest.trim_start_matches(['.', '…']).len(), true);
        }
        begin += line.len();
    }
    pieces
}
