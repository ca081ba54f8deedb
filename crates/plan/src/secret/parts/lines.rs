//! Values in line-based texts: YAML blocks, and directives of nginx and Redis.
//!
//! ```text
//! password: |            tokens:            proxy_set_header Authorization "Bearer VALUE";
//!   VALUE                  - VALUE          requirepass VALUE
//! ```

use std::ops::Range;

use super::super::Field;
use super::is_likely;
use super::quote::{Quote, quoted};

/// Separators of statements.
const STATEMENT: [char; 4] = ['\n', ';', '{', '}'];

/// Values in the lines below a YAML key, from the colon after the key. `None` if the value is in the line of
/// the key.
pub(super) fn yaml_block(
    text: &str,
    name: Range<usize>,
    colon: usize,
) -> Option<Vec<Range<usize>>> {
    let key = text[..name.start].trim_end_matches(['"', '\'']);
    let lead = &key[key.rfind('\n').map_or(0, |newline| newline + 1)..];
    if !lead.trim_start_matches([' ', '\t', '-']).is_empty() {
        return None;
    }
    let (first, rest) = text[colon + 1..].split_once('\n')?;
    let first = first
        .split_once(" #")
        .map_or(first, |(first, _)| first)
        .trim();
    let is_block = first.starts_with(['|', '>'])
        && first[1..]
            .chars()
            .all(|c| "+-".contains(c) || c.is_ascii_digit());
    if !(is_block || first.is_empty() || first.starts_with('#')) {
        return None;
    }
    let mut at = text.len() - rest.len();
    let mut found = Vec::new();
    for line in rest.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        let is_item = indent == lead.len() && !is_block && line[indent..].starts_with("- ");
        if !line.trim().is_empty() && indent <= lead.len() && !is_item {
            break;
        }
        let content = at + indent..at + line.trim_end().len().max(indent);
        found.extend(if is_block {
            Some(content)
        } else {
            scalar(text, content)
        });
        at += line.len();
    }
    found.retain(|range| !range.is_empty());
    (!found.is_empty()).then_some(found)
}

/// The value in a YAML line: a list item, or the value of a key.
fn scalar(text: &str, mut line: Range<usize>) -> Option<Range<usize>> {
    while let Some(rest) = text[line.clone()].strip_prefix("- ") {
        line.start = line.end - rest.trim_start().len();
    }
    let text = &text[..line.end];
    let content = &text[line.start..];
    if let Some(quote) = Quote::of(content) {
        let inside = quoted(text, line.start, quote);
        // The value follows a quoted key.
        if !text
            .get(inside.end + 1..)
            .is_some_and(|rest| rest.trim_start().starts_with(':'))
        {
            return Some(inside);
        }
    }
    let key = content
        .find(": ")
        .map(|at| at + 2)
        .or_else(|| content.ends_with(':').then_some(content.len()));
    line.start += key.unwrap_or(0);
    line.start = line.end - text[line.start..].trim_start().len();
    let value = &text[line.start..];
    match Quote::of(value) {
        Some(quote) => Some(quoted(text, line.start, quote)),
        // The indicator of a block is not a value.
        None => Some(line).filter(|_| !value.starts_with(['|', '>'])),
    }
}

/// Start of a directive's value. In a configuration file the name may follow any number of words, if a likely secret
/// follows it: `http-request set-header X-Api-Key VALUE`. Elsewhere it is the directive or its first argument.
pub(super) fn directive(text: &str, name: &Range<usize>, field: Field<'_>) -> Option<usize> {
    let rest = &text[name.end..];
    let value = rest.trim_start_matches([' ', '\t']);
    if value.len() == rest.len()
        || value.starts_with(|c: char| c.is_whitespace() || ";{}|&<>=:,#".contains(c))
    {
        return None;
    }
    let begin = text[..name.start].rfind(STATEMENT).map_or(0, |at| at + 1);
    let before = text[begin..name.start].trim_end_matches('$').trim_start();
    let is_comment = before.starts_with(['#', '/']);
    let is_quoted = before.contains(['"', '\'']);
    let words_before = before
        .trim_start_matches(['#', '/', ' ', '\t'])
        .split_whitespace()
        .count();
    if is_quoted {
        return None;
    }
    let mut words = value
        .lines()
        .next()
        .unwrap_or_default()
        .split([' ', '\t', ';']);
    let is_likely = Quote::of(value).is_some() || words.any(is_likely);
    let is_ended = value.contains([';', '\n']) || text[..name.start].contains([';', '\n']);
    let is_directive = match field {
        Field::Template => is_likely || !is_comment && words_before <= 1,
        Field::Word => is_likely && is_ended && words_before <= 1,
        Field::Of(_) | Field::Sent | Field::Text => false,
    };
    is_directive.then_some(text.len() - value.len())
}

/// A value up to the end of its line or statement, the content of its quotes, or a block with its argument, as in
/// nginx's `map $http_x_api_key $client { … }`.
pub(super) fn line_value(text: &str, begin: usize) -> Range<usize> {
    if let Some(quote) = Quote::of(&text[begin..]) {
        return quoted(text, begin, quote);
    }
    let line = text[begin..].lines().next().unwrap_or_default();
    if line.starts_with('$') && line.trim_end().ends_with('{') {
        let block = &text[begin + line.len()..];
        return begin..begin + line.len() + block.find('}').unwrap_or(block.len());
    }
    // A semicolon within a password is followed by another character.
    let ends = line.match_indices(';').map(|(at, _)| at);
    let is_end = |at: &usize| {
        line[at + 1..]
            .chars()
            .next()
            .is_none_or(char::is_whitespace)
    };
    let length = ends.into_iter().find(is_end).unwrap_or(line.len());
    begin..begin + line[..length].trim_end().len()
}
