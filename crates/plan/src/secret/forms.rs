//! Forms of a secret in texts: as typed, as decoded by its reader, and as encoded again.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::text::percent_decoded;
use serde_json::Value;

use super::SOUGHT_BYTES_MIN;
use super::escapes::without_entities;
use super::parts::is_likely;

/// Possible values of a typed value: the decoded value, and each part of a composite value (lists, elements,
/// cookies, user and password, fields with parameters).
pub(super) fn values(typed: &str) -> BTreeSet<String> {
    let mut values = decoded(typed);
    for text in values.clone() {
        strings(&text, &mut values);
        values.extend(parameters(&text));
        values.extend(elements(&text));
        let cookies = text.split(';').filter(|_| text.contains('='));
        values
            .extend(cookies.filter_map(|cookie| Some(cookie.split_once('=')?.1.trim().to_owned())));
        if let Some((_, password)) = text.split_once(':') {
            values.extend(String::from_utf8(percent_decoded(password.trim())));
            values.insert(password.trim().to_owned());
        }
        // Punctuation between the value and a placeholder is not part of the value.
        let inside = text.trim_matches(|c: char| "-._:/|,;".contains(c));
        values.extend(
            Some(inside)
                .filter(|inside| is_likely(inside))
                .map(str::to_owned),
        );
        // A brace in the value looks like a placeholder, whose name would be in a message.
        values.extend(
            text.split(['{', '}'])
                .filter(|name| is_likely(name))
                .map(str::to_owned),
        );
        // The first word of a line that continues after the value, such as in a script.
        let word = text.split([' ', '\t', ';']).next().unwrap_or_default();
        values.extend(Some(word).filter(|word| is_likely(word)).map(str::to_owned));
    }
    with_lines(values)
}

/// A value as written and as decoded: from doubled braces, JSON, a URL, a form, XML, a shell, YAML, and
/// credentials. Each line of several is also a value.
pub(super) fn decoded(typed: &str) -> BTreeSet<String> {
    let plain = typed.replace("{{", "{");
    let mut values = BTreeSet::from([typed.to_owned(), plain.clone()]);
    for text in [typed, &plain] {
        let once = from_json(text);
        values.extend(once.as_deref().and_then(from_json));
        values.extend(once);
        values.extend(String::from_utf8(percent_decoded(text)));
        values.extend(String::from_utf8(percent_decoded(&text.replace('+', " "))));
        if text.contains(['\'', '"', '\\']) {
            values.extend(
                shlex::split(text)
                    .filter(|words| words.len() == 1)
                    .into_iter()
                    .flatten(),
            );
        }
        values.insert(from_xml(text));
        // YAML and SQL double apostrophes.
        let quoted = text
            .strip_prefix('\'')
            .and_then(|rest| rest.strip_suffix('\''));
        values.extend(quoted.map(|inside| inside.replace("''", "'")));
        values.extend(credentials(text));
    }
    with_lines(values)
}

/// Adds the lines of each value, and removes values that are not searched for.
fn with_lines(mut values: BTreeSet<String>) -> BTreeSet<String> {
    let lines = |value: &String| {
        value
            .lines()
            .map(|line| line.trim().to_owned())
            .collect::<Vec<_>>()
    };
    let lines: Vec<String> = values.iter().flat_map(lines).collect();
    values.extend(
        lines
            .into_iter()
            .filter(|line| line.len() >= SOUGHT_BYTES_MIN),
    );
    values.remove("");
    values
}

/// User and password of Basic authorization (RFC 7617).
fn credentials(text: &str) -> Option<String> {
    let decoded = String::from_utf8(STANDARD.decode(text).ok()?).ok()?;
    let is_pair = decoded.contains(':') && !decoded.contains(char::is_control);
    is_pair.then_some(decoded)
}

/// The texts of XML elements.
fn elements(text: &str) -> Vec<String> {
    if !text.contains('<') {
        return Vec::new();
    }
    let texts = text.split('<').filter_map(|part| part.split_once('>'));
    texts.map(|(_, text)| from_xml(text.trim())).collect()
}

/// The quoted values of a header field with parameters: `Digest username="u", response="abc"`.
fn parameters(text: &str) -> impl Iterator<Item = String> {
    let starts = text.match_indices("=\"").map(|(at, mark)| at + mark.len());
    starts.filter_map(|start| {
        let ends = text[start..].match_indices('"').map(|(at, _)| start + at);
        // A quote within the value is escaped, or none follows that ends a parameter.
        let is_end = |end: &usize| {
            let behind = text[end + 1..].trim_start();
            behind.is_empty() || behind.starts_with([',', ';'])
        };
        let end = ends.into_iter().find(is_end)?;
        Some(text[start..end].to_owned())
    })
}

fn from_xml(text: &str) -> String {
    let cdata = text
        .trim()
        .strip_prefix("<![CDATA[")
        .and_then(|rest| rest.strip_suffix("]]>"));
    if let Some(plain) = cdata {
        return plain.to_owned();
    }
    without_entities(text)
}

/// Strings of a value that is a list or table.
fn strings(text: &str, values: &mut BTreeSet<String>) {
    fn walk(value: Value, values: &mut BTreeSet<String>) {
        match value {
            Value::String(text) => _ = values.insert(text),
            Value::Number(number) => _ = values.insert(number.to_string()),
            Value::Array(items) => items.into_iter().for_each(|item| walk(item, values)),
            Value::Object(entries) => entries.into_iter().for_each(|(_, item)| walk(item, values)),
            Value::Null | Value::Bool(_) => {}
        }
    }
    if !text.starts_with(['[', '{']) {
        return;
    }
    // TOML tables and lists differ from JSON: they contain `=`, and may end with a comma.
    let of_toml = || toml::from_str::<Value>(&format!("value = {text}")).ok();
    if let Some(value) = serde_json::from_str(text).ok().or_else(of_toml) {
        walk(value, values);
    }
}

/// Encoded forms of a value. Escapes of single characters are not included, because they are decoded before
/// searching.
pub(super) fn forms(value: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::from([
        value.to_owned(),
        value.replace('{', "{{"),
        // In a query or a form.
        value.replace(' ', "+"),
        // For a shell.
        value.replace('\'', "'\\''"),
        value.replace('\'', "'\"'\"'"),
        // In YAML and SQL, and in CSV.
        value.replace('\'', "''"),
        value.replace('"', "\"\""),
    ]);
    forms.extend(shlex::try_quote(value).map(|quoted| unquoted(&quoted).to_owned()));
    forms
}

/// The text inside one pair of quotes. The value itself may end with a quote.
fn unquoted(text: &str) -> &str {
    let inside = |quote: &&str| text.strip_prefix(*quote)?.strip_suffix(*quote);
    ["\"\"\"", "'''", "\"", "'"]
        .iter()
        .find_map(inside)
        .unwrap_or(text)
}

pub(super) fn from_json(text: &str) -> Option<String> {
    serde_json::from_str(&format!("\"{text}\"")).ok()
}
