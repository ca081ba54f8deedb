//! Makes external text safe to show: truncated, without misleading characters and without markup.
//!
//! All text is treated as hostile, whatever its source.

use std::fmt::{Display, Write as _};

/// Maximum number of characters shown of a name. Some minified or generated names are far longer.
const CHARACTERS_MAX: usize = 300;

/// Returns a name as one line of limited length. Control characters and characters that change the text
/// direction are shown as replacement characters, because with them a name could look like another.
pub fn shown(name: &str) -> String {
    cut(name, CHARACTERS_MAX)
}

/// Like [`shown`], with a given limit.
pub fn cut(text: &str, characters_max: usize) -> String {
    let mut out: String = text.chars().take(characters_max).map(harmless).collect();
    if text.chars().nth(characters_max).is_some() {
        out.push('…');
    }
    out
}

/// Like [`cut`], for quoting in a message. Misleading characters are escaped, so that the user can find them
/// in the input.
pub fn quoted(text: &str, characters_max: usize) -> String {
    let escaped = |c: char| {
        if harmless(c) == c {
            vec![c]
        } else {
            c.escape_default().collect()
        }
    };
    let cut_off = text.chars().nth(characters_max).map(|_| '…');
    text.chars()
        .take(characters_max)
        .flat_map(escaped)
        .chain(cut_off)
        .collect()
}

/// Capitalizes the first letter.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

/// Truncates a text to at most `bytes_max` bytes, at a character boundary. Misleading characters stay,
/// because the text is stored and not shown.
pub fn cut_bytes(text: &mut String, bytes_max: usize) {
    let whole = |at: &usize| text.is_char_boundary(*at);
    let at = (0..=bytes_max.min(text.len()))
        .rev()
        .find(whole)
        .unwrap_or(0);
    text.truncate(at);
}

/// Truncates a text and appends `…` if it is longer than the limit. Misleading characters stay, because the
/// text may be compared. Code that masks secrets later recognizes by the mark that half of a secret may
/// precede it.
pub fn cut_end(text: &str, characters_max: usize) -> String {
    match text.char_indices().nth(characters_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the last `characters_max` characters of a text, with a leading `…` if it was longer. Misleading
/// characters stay, because the text may be compared.
pub fn cut_start(text: &str, characters_max: usize) -> String {
    match text
        .char_indices()
        .rev()
        .nth(characters_max.saturating_sub(1))
    {
        Some((start, _)) if start > 0 => format!("…{}", &text[start..]),
        _ => text.to_owned(),
    }
}

/// Returns the words of a text in lower case, joined by dashes and truncated, for use in folder and host
/// names.
pub fn slug(text: &str, characters_max: usize) -> String {
    let words = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-").to_lowercase();
    name.chars()
        .take(characters_max)
        .collect::<String>()
        .trim_end_matches('-')
        .to_owned()
}

/// Percent-encodes a text as part of a URL (RFC 3986, section 2.1).
pub fn percent_encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Decodes percent-encoding (RFC 3986). Invalid sequences stay unchanged.
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

/// Returns a text of any length as one line, without misleading characters.
pub fn line(text: &str) -> String {
    let one = |c: char| {
        if matches!(c, '\n' | '\r' | '\t') {
            ' '
        } else {
            harmless(c)
        }
    };
    text.chars().map(one).collect()
}

/// Returns a text of several lines without misleading characters. Newlines and tabs stay.
pub fn lines(text: &str) -> String {
    text.chars()
        .map(|c| {
            if matches!(c, '\n' | '\t') {
                c
            } else {
                harmless(c)
            }
        })
        .collect()
}

/// Like [`lines`], but keeps colour sequences, for text that we coloured (ECMA-48: select graphic rendition).
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

/// Returns the character, or a replacement character if it is misleading.
pub fn harmless(c: char) -> char {
    let misleads = c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' | '\u{180e}'
        )
        || ('\u{200b}'..='\u{200f}').contains(&c)
        || ('\u{2028}'..='\u{202e}').contains(&c)
        || ('\u{2060}'..='\u{206f}').contains(&c);
    if misleads { '\u{fffd}' } else { c }
}

/// Formats a JSON document with indentation and a final newline. Misleading characters are escaped, so that
/// other programs read the original text.
pub fn json(document: impl Display) -> String {
    let mut out = String::new();
    for c in format!("{document:#}\n").chars() {
        if c == '\n' || harmless(c) == c {
            out.push(c);
        } else {
            // All of these characters are one UTF-16 code unit. Writing to a string cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        }
    }
    inert(out)
}

/// Returns equivalent JSON without `##[`, which the runner of GitHub Actions interprets as a command anywhere
/// in a line. It can occur only in strings.
pub fn inert(json: String) -> String {
    const COMMAND: &str = "##[";
    if json.contains(COMMAND) {
        json.replace(COMMAND, "##\\u005b")
    } else {
        json
    }
}

/// Escapes a text for HTML or XML, also in attributes.
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

/// Returns the entry of `known` that is most similar to `word`, if any is similar enough.
///
/// A transposition counts as one edit (Damerau-Levenshtein), and so does a truncated (`prod`) or extended
/// word. About a third of the letters may be wrong, which accepts typing errors but does not offer unrelated
/// words.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let fold = |word: &str| word.to_lowercase().replace('-', "_");
    let folded = fold(word);
    let slips = |candidate: &str| {
        let candidate = fold(candidate);
        let begins = candidate.starts_with(&folded) || folded.starts_with(&candidate);
        let is_cut = begins && folded.len().min(candidate.len()) >= 3;
        if is_cut {
            1
        } else {
            strsim::damerau_levenshtein(&folded, &candidate)
        }
    };
    let allowed = |candidate: &str| (word.chars().count().max(candidate.chars().count()) + 1) / 3;
    known
        .into_iter()
        .filter(|candidate| slips(candidate) <= allowed(candidate))
        .min_by_key(|candidate| slips(candidate))
}

/// Splits prose at pairs of backticks, which mark code in our texts. The second, fourth, ... part is code. A
/// backtick without a partner stays.
pub fn code_spans(text: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        parts.truncate(parts.len() - 2);
        let begun: usize = parts.iter().map(|part| part.len() + 1).sum();
        parts.push(&text[begun..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_shows_nothing_that_misleads_and_says_the_same() {
        let hostile = serde_json::json!({ "a": "\x1b[2J\u{9b}31m\u{7f}\u{202e}é😀\n\u{fffd}" });
        let shown = json(&hostile);
        assert_eq!(
            shown,
            "{\n  \"a\": \"\\u001b[2J\\u009b31m\\u007f\\u202eé😀\\n\u{fffd}\"\n}\n"
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
            hostile
        );
        let command = serde_json::json!({ "a": "\\##[error]" });
        assert!(!json(&command).contains("##["));
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&json(&command)).unwrap(),
            command
        );
    }

    #[test]
    fn a_quoted_text_says_what_cannot_be_seen_in_it() {
        assert_eq!(
            quoted("a\nb\u{202e}c\u{200b}é😀", 8),
            "a\\nb\\u{202e}c\\u{200b}é😀"
        );
        assert_eq!(quoted("abc", 2), "ab…");
    }

    #[test]
    fn what_moves_a_cursor_or_turns_a_line_around_is_gone_and_colours_of_ours_stay() {
        // Cursor up, a title, the C1 introducer, and two characters that change the text direction.
        let hostile = "a\x1b[2Ab\x1b]0;t\x07\u{9b}31mc\u{202e}d\u{2066}e\x1b";
        let shown = "a\u{fffd}[2Ab\u{fffd}]0;t\u{fffd}\u{fffd}31mc\u{fffd}d\u{fffd}e\u{fffd}";
        assert_eq!(
            (lines(hostile).as_str(), coloured_lines(hostile).as_str()),
            (shown, shown)
        );
        let ours = "\x1b[1;31merror\x1b[0m:\n\tx";
        assert_eq!(coloured_lines(ours), ours);
        assert_eq!(lines(ours), "\u{fffd}[1;31merror\u{fffd}[0m:\n\tx");
    }
}
