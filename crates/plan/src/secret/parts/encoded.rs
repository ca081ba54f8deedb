//! Secrets with encoded names: JSON and other texts in a field of a query or form, percent-encoded names, and
//! JSON keys with escapes.
//!
//! ```text
//! /a?variables=%7B%22password%22%3A%22VALUE%22%7D   api%5Fkey=VALUE   {"\u0070assword": "VALUE"}
//! ```

use std::ops::Range;

use ::model::text::percent_decoded;

use super::super::forms::from_json;
use super::super::names::is_secret_name;
use super::{Field, parts_within};

/// A URL in the query of a URL has a query itself. JSON may be in a JSON string.
pub(in super::super) const DECODED_TIMES_MAX: usize = 2;
/// Maximum length of a JSON key that is decoded, and maximum distance of an escape from its start.
const KEY_BYTES_MAX: usize = 200;
/// Characters that no field of a query or form contains.
const ENDS: [char; 7] = ['&', '#', '"', '<', '>', '`', '\\'];

/// Fields that contain secrets after percent-decoding, up to this many times. The whole field is a secret.
pub(super) fn encoded(field: Field<'_>, text: &str, times: usize) -> Vec<Range<usize>> {
    let (mut found, mut from, mut apostrophes) = (Vec::new(), 0, 0);
    while let Some(percent) = text[from..]
        .find('%')
        .map(|at| from + at)
        .filter(|_| times > 0)
    {
        let is_begin = |c: char| is_end(c) || c == '?' || c == '\'';
        let start = percent
            - text[from..percent]
                .rsplit(is_begin)
                .next()
                .unwrap_or_default()
                .len();
        apostrophes += text[from..start].matches('\'').count();
        let one = EncodedText::of(text, start, apostrophes % 2 == 1);
        from = one.value.end;
        apostrophes += text[start..from].matches('\'').count();
        found.extend(one.secret(field, text, times));
    }
    found
}

fn is_end(c: char) -> bool {
    c.is_whitespace() || ENDS.contains(&c)
}

/// A field of a query or form. It may have no name, such as a segment of a path.
struct EncodedText {
    name: Range<usize>,
    value: Range<usize>,
}

impl EncodedText {
    /// The field that begins at `start`. If `is_quoted`, an apostrophe ends it.
    fn of(text: &str, start: usize, is_quoted: bool) -> EncodedText {
        let ends = |c: char| is_end(c) || is_quoted && c == '\'';
        let length = text[start..]
            .find(|c| ends(c) || "=?".contains(c))
            .unwrap_or(text.len() - start);
        let end = start + length;
        if !text[end..].starts_with('=') {
            return EncodedText {
                name: start..start,
                value: start..end,
            };
        }
        let length = text[end + 1..].find(ends).unwrap_or(text.len() - end - 1);
        EncodedText {
            name: start..end,
            value: end + 1..end + 1 + length,
        }
    }

    fn secret(&self, field: Field<'_>, text: &str, times: usize) -> Option<Range<usize>> {
        // Only if it is not a secret before decoding. The password of a URL is found without decoding.
        let has_secret = |range: &Range<usize>| {
            let written = &text[range.clone()];
            let found = |text: &str, times: usize| parts_within(field, text, times).len();
            decoded(written).is_some_and(|plain| found(&plain, times - 1) > found(written, 0))
        };
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.[]".contains(c);
        let is_named = decoded(&text[self.name.clone()])
            .is_some_and(|name| name.chars().all(is_part) && is_secret_name(&name));
        match () {
            () if is_named || has_secret(&self.value) => Some(self.value.clone()),
            // The sign may belong to the value, as at the end of base64.
            () if has_secret(&self.name) => Some(self.name.start..self.value.end),
            () => None,
        }
    }
}

/// The decoded text. `None` if nothing in it is encoded.
fn decoded(text: &str) -> Option<String> {
    let decoded = text
        .contains('%')
        .then(|| percent_decoded(&text.replace('+', " ")))?;
    let decoded = String::from_utf8_lossy(&decoded).into_owned();
    (decoded != text).then_some(decoded)
}

/// JSON keys that are names of secrets with escaped letters.
pub(super) fn escaped_names(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    text.match_indices("\\u").filter_map(move |(at, _)| {
        let from = at.saturating_sub(KEY_BYTES_MAX);
        let start = from + bytes[from..at].iter().rposition(|byte| *byte == b'"')? + 1;
        let to = bytes.len().min(at + KEY_BYTES_MAX);
        let end = at + bytes[at..to].iter().position(|byte| *byte == b'"')?;
        let name = from_json(&text[start..end])?;
        is_secret_name(&name).then_some(start..end)
    })
}
