//! Words of a command line: which of them are the values of secret flags.

use super::names::is_secret_name;
use super::parts::is_likely;
use super::{Field, TextVisit};

/// Visits each word with its field: the flag whose value it is, or any word of a command.
pub(crate) fn visit_words(words: &mut [String], visit: TextVisit<'_>) {
    let flags = secret_flags(words);
    for (word, flag) in words.iter_mut().zip(&flags) {
        visit(flag.as_deref().map_or(Field::Word, Field::Of), word);
    }
}

/// For each word of a command line, the preceding flag whose secret value it is. Only flags without `=` have
/// their value in the next word.
pub(crate) fn secret_flags<W: AsRef<str>>(words: &[W]) -> Vec<Option<String>> {
    let mut before: Option<String> = None;
    let flag_before = |word: &W| {
        let word = word.as_ref();
        let flag = before
            .take()
            .filter(|name| !is_flag(word) && is_secret_name(name));
        before = flag_name(word)
            .filter(|_| flag.is_none())
            .map(str::to_owned);
        flag
    };
    words.iter().map(flag_before).collect()
}

/// Whether a word is a flag and not a value: `-x`, `--name`, `--name=value`. A base64url token may also begin
/// with a hyphen.
pub(super) fn is_flag(word: &str) -> bool {
    let Some(rest) = word
        .strip_prefix('-')
        .filter(|rest| !rest.contains(char::is_whitespace))
    else {
        return false;
    };
    let Some(long) = rest.strip_prefix('-') else {
        return !is_likely(rest);
    };
    let name = long.split('=').next().unwrap_or_default();
    let has = |is_part: fn(&char) -> bool| name.chars().any(|c| is_part(&c));
    !(has(char::is_ascii_digit) && has(char::is_ascii_uppercase))
}

/// The name of a flag whose value is the next word.
fn flag_name(word: &str) -> Option<&str> {
    word.starts_with('-')
        .then(|| word.trim_start_matches('-'))
        .filter(|name| !name.contains(['=', ' ', ':']))
}
