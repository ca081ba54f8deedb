//! Values and keys of a file as messages show them: on one line, with limited length, without secrets.

use ::model::text::quoted;

use crate::secret::quotable;

/// Longer values are truncated in messages, which are one line each.
const SHOWN_CHARS_MAX: usize = 60;

/// Formats a value for a message: one line, limited length.
pub(crate) fn clipped(text: &str) -> String {
    if text.is_empty() {
        return "\"\"".to_owned();
    }
    // Secrets are masked before truncation, otherwise a part of a secret could remain.
    quoted(&quotable(text), SHOWN_CHARS_MAX)
}

/// A key in TOML syntax, quoted if necessary.
pub(crate) fn shown_key(key: &str) -> String {
    if key.is_empty() || is_bare(key) {
        clipped(key)
    } else {
        format!("\"{}\"", clipped(key))
    }
}

/// Whether a key needs no quotes: at least one letter, digit, `-` or `_`, and nothing else. The same applies
/// to names in braces.
pub(crate) fn is_bare(key: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !key.is_empty() && key.bytes().all(plain)
}

/// A valid name of a level with limited length. `·` separates levels in names of variants, and control
/// characters could affect a terminal.
pub(crate) fn fitting(text: &str, most: usize) -> String {
    let plain = text.replace(|c: char| c.is_control() || c == '·', " ");
    let plain = plain.trim();
    if plain.chars().count() <= most {
        return plain.to_owned();
    }
    let cut: String = plain.chars().take(most - 1).collect();
    format!("{}…", cut.trim_end())
}
