//! Texts from outside as they may be shown: cut, without characters that mislead, and without markup.
//!
//! It must not know where a name comes from: all are taken to be hostile.

use std::fmt::{Display, Write as _};

/// Characters of a name that are shown. Some minified or generated names are far longer.
const CHARACTERS_MAX: usize = 300;

/// A name in one line, no longer than can be read. Controls, and characters that turn the direction of what follows, are shown
/// as replacement characters: with them a name could look like another.
pub fn shown(name: &str) -> String {
    cut(name, CHARACTERS_MAX)
}

/// The same with a limit of its own.
pub fn cut(text: &str, characters_max: usize) -> String {
    let mut out: String = text.chars().take(characters_max).map(harmless).collect();
    if text.chars().nth(characters_max).is_some() {
        out.push('…');
    }
    out
}

/// The same as a message quotes it: what would mislead is escaped, so that it can be found where it was typed.
pub fn quoted(text: &str, characters_max: usize) -> String {
    let escaped = |c: char| if harmless(c) == c { vec![c] } else { c.escape_default().collect() };
    let cut_off = text.chars().nth(characters_max).map(|_| '…');
    text.chars().take(characters_max).flat_map(escaped).chain(cut_off).collect()
}

/// With a capital at its begin.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Cuts a text to so many bytes, or a few less where a character stands there: as it is, for it is kept and not shown.
pub fn cut_bytes(text: &mut String, bytes_max: usize) {
    let whole = |at: &usize| text.is_char_boundary(*at);
    let at = (0..=bytes_max.min(text.len())).rev().find(whole).unwrap_or(0);
    text.truncate(at);
}

/// The beginning of a text that is longer, with `…` behind it: as it is, for it may be compared. Whoever masks secrets later sees by the mark
/// that half of one may stand before it.
pub fn cut_end(text: &str, characters_max: usize) -> String {
    match text.char_indices().nth(characters_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Of a text that is longer its end alone, with so many characters: as it is, for it may be compared.
pub fn cut_start(text: &str, characters_max: usize) -> String {
    match text.char_indices().rev().nth(characters_max.saturating_sub(1)) {
        Some((start, _)) if start > 0 => format!("…{}", &text[start..]),
        _ => text.to_owned(),
    }
}

/// The words of a text in small letters, joined by dashes, and of that so many characters: part of a folder's or a host's name.
pub fn slug(text: &str, characters_max: usize) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-").to_lowercase();
    name.chars().take(characters_max).collect::<String>().trim_end_matches('-').to_owned()
}

/// A text as part of a URL (RFC 3986, section 2.1).
pub fn percent_encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// The bytes of a text in which percent signs stand for some (RFC 3986); what is no such sign stays as it is.
pub fn percent_decoded(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
        let byte = digit(0).zip(digit(1)).filter(|_| *first == b'%');
        bytes.push(byte.map_or(*first, |(high, low)| (high * 16 + low) as u8));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    bytes
}

/// A text of any length in one line, with the same care.
pub fn line(text: &str) -> String {
    let one = |c: char| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { harmless(c) };
    text.chars().map(one).collect()
}

/// A text of several lines, with the same care: ends of lines and tabs stay.
pub fn lines(text: &str) -> String {
    text.chars().map(|c| if matches!(c, '\n' | '\t') { c } else { harmless(c) }).collect()
}

/// The same of a text with colours of ours, which stay (ECMA-48: select graphic rendition).
pub fn coloured_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut parts = text.split("\u{1b}[");
    out += &lines(parts.next().unwrap_or_default());
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != ';');
        let is_colour = end.is_some_and(|end| part[end..].starts_with('m'));
        out.push_str(if is_colour { "\u{1b}[" } else { "\u{fffd}[" });
        out += &lines(part);
    }
    out
}

/// A character that does not mislead, in its place.
pub fn harmless(c: char) -> char {
    let misleads = c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' | '\u{180e}')
        || ('\u{200b}'..='\u{200f}').contains(&c)
        || ('\u{2028}'..='\u{202e}').contains(&c)
        || ('\u{2060}'..='\u{206f}').contains(&c);
    if misleads { '\u{fffd}' } else { c }
}

/// A document of JSON in lines, with a newline at its end. What would mislead is escaped: other programs read what it was.
pub fn json(document: impl Display) -> String {
    let mut out = String::new();
    for c in format!("{document:#}\n").chars() {
        if c == '\n' || harmless(c) == c {
            out.push(c);
        } else {
            // All of these are of one unit of UTF-16; writing to a string cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        }
    }
    inert(out)
}

/// JSON that says the same and has no `##[`, which the runner of GitHub Actions takes for a command wherever it stands in a line. Only
/// strings can have it.
pub fn inert(json: String) -> String {
    const COMMAND: &str = "##[";
    if json.contains(COMMAND) { json.replace(COMMAND, "##\\u005b") } else { json }
}

/// A text inside HTML or XML, in an attribute too.
pub fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c => out.push(c),
        }
    }
    out
}

/// The one of `known` that was probably meant by `word`, if any is near enough.
///
/// Transpositions count as one slip (Damerau-Levenshtein), a word cut short (`prod`) or too long as well. About a third of
/// the letters may be wrong: enough for slips of the finger, not so much that unlike words are offered.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let fold = |word: &str| word.to_lowercase().replace('-', "_");
    let folded = fold(word);
    let slips = |candidate: &str| {
        let candidate = fold(candidate);
        let begins = candidate.starts_with(&folded) || folded.starts_with(&candidate);
        let is_cut = begins && folded.len().min(candidate.len()) >= 3;
        if is_cut { 1 } else { strsim::damerau_levenshtein(&folded, &candidate) }
    };
    let allowed = |candidate: &str| (word.chars().count().max(candidate.chars().count()) + 1) / 3;
    known
        .into_iter()
        .filter(|candidate| slips(candidate) <= allowed(candidate))
        .min_by_key(|candidate| slips(candidate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_shows_nothing_that_misleads_and_says_the_same() {
        let hostile = serde_json::json!({ "a": "\x1b[2J\u{9b}31m\u{7f}\u{202e}é😀\n\u{fffd}" });
        let shown = json(&hostile);
        assert_eq!(shown, "{\n  \"a\": \"\\u001b[2J\\u009b31m\\u007f\\u202eé😀\\n\u{fffd}\"\n}\n");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), hostile);
        let command = serde_json::json!({ "a": "\\##[error]" });
        assert!(!json(&command).contains("##["));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json(&command)).unwrap(), command);
    }

    #[test]
    fn a_quoted_text_says_what_cannot_be_seen_in_it() {
        assert_eq!(quoted("a\nb\u{202e}c\u{200b}é😀", 8), "a\\nb\\u{202e}c\\u{200b}é😀");
        assert_eq!(quoted("abc", 2), "ab…");
    }

    #[test]
    fn what_moves_a_cursor_or_turns_a_line_around_is_gone_and_colours_of_ours_stay() {
        // Cursor up, a title, C1's own introducer, and two ways to turn what follows.
        let hostile = "a\x1b[2Ab\x1b]0;t\x07\u{9b}31mc\u{202e}d\u{2066}e\x1b";
        let shown = "a\u{fffd}[2Ab\u{fffd}]0;t\u{fffd}\u{fffd}31mc\u{fffd}d\u{fffd}e\u{fffd}";
        assert_eq!((lines(hostile).as_str(), coloured_lines(hostile).as_str()), (shown, shown));
        let ours = "\x1b[1;31merror\x1b[0m:\n\tx";
        assert_eq!(coloured_lines(ours), ours);
        assert_eq!(lines(ours), "\u{fffd}[1;31merror\u{fffd}[0m:\n\tx");
    }
}
