//! How values and kinds of values are called in a problem's text.
//!
//! Words only; whether something is a problem is decided by the caller.

use super::Wanted;
use crate::text_form::{LimitText, TextForm};
use crate::tree::{Node, Value};

/// What a limit is called.
const LIMIT: &str = LimitText::WANTED;
/// Longer values are cut in messages, which are one line each.
const SHOWN_CHARS_MAX: usize = 60;

/// A value as it is shown inside a message: one line, not too long.
pub(crate) fn clipped(text: &str) -> String {
    if text.is_empty() {
        return "\"\"".to_owned();
    }
    let mut shown: String = text.chars().take(SHOWN_CHARS_MAX).flat_map(shown_char).collect();
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// Control characters would break the line or the terminal.
fn shown_char(c: char) -> Vec<char> {
    if c.is_control() { c.escape_default().collect() } else { vec![c] }
}

/// A key as TOML writes it: quoted where it has to be.
pub(crate) fn shown_key(key: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    match key {
        "" => "\"\"".to_owned(),
        key if key.bytes().all(bare) => clipped(key),
        key => format!("\"{}\"", clipped(key)),
    }
}

/// "a, b or c".
pub(super) fn alternatives(kinds: &[String]) -> String {
    match kinds {
        [] => "nothing".to_owned(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// The beginning of a description, small and without its full stop, as it follows a colon.
pub(super) fn first_sentence(description: &str) -> String {
    let sentence = description.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let mut letters = sentence.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

pub(super) fn kind(node: &Node) -> &'static str {
    match node.value {
        Value::String(_) => "a string",
        Value::Integer(_) => "an integer",
        Value::Float(_) => "a number",
        Value::Boolean(_) => "a boolean",
        Value::Unusable(what) => what,
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}

pub(super) fn kind_of_type(name: &str) -> &'static str {
    match name {
        "string" => "a string",
        "integer" => "an integer",
        "number" => "a number",
        "boolean" => "a boolean",
        "array" => "a list",
        _ => "a table",
    }
}

/// How the value would have to be written, where that can be seen from it.
pub(super) fn type_hint(node: &Node, wanted: &Wanted) -> Option<String> {
    let wants =
        |kind: &str| wanted.text.split(" or ").flat_map(|part| part.split(", ")).any(|part| part == kind);
    match &node.value {
        Value::String(text) if wants("an integer") && text.parse::<i64>().is_ok() => {
            Some(format!("without quotes: {text}"))
        }
        Value::String(text) if wants("a list") => {
            let words: Vec<String> = text.split_whitespace().map(clipped).collect();
            Some(format!("a list stands in brackets: {words:?}"))
        }
        Value::Integer(number) => match wanted.form.map(|form| form.name) {
            Some("Duration") => Some(format!("with its unit, in quotes: \"{number}s\"")),
            Some("Percent") => Some(format!("with its sign, in quotes: \"{number}%\"")),
            Some("Space") => Some(format!("with its unit, in quotes: \"{number}MB\"")),
            Some("Bandwidth") => Some(format!("with its unit, in quotes: \"{number}mbit\"")),
            Some("Delay") => Some(format!("with its unit, in quotes: \"{number}ms\"")),
            _ if wants(LIMIT) => {
                Some("with its relation and its unit, in quotes: \"< 50ms\" or \"> -3%\"".to_owned())
            }
            _ if wants("a string") => Some(format!("in quotes: \"{number}\"")),
            _ => None,
        },
        // `p99.9 = …` without quotes is a table `p99`.
        Value::Table(table) if wants(LIMIT) && table.get("9").is_some() => {
            Some("a key with a dot in it stands in quotes: \"p99.9\" = \"< 80ms\"".to_owned())
        }
        _ => None,
    }
}
