//! `{port}` and its like in commands and variables: found when the file is checked, filled in when a trial starts.
//!
//! Pure text to text. The rule is small so that it can be kept in mind: `{name}` is a placeholder, `{{` is a brace,
//! and `}` outside a placeholder is itself. JSON is therefore written with its opening braces doubled.
//!
//! In template files, such as an `nginx.conf`, whose own braces stay as they are, `{{` always begins a placeholder, which ends with `}}` in
//! the same line; blanks inside of it do not count.

use std::ops::Range;

/// A placeholder in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder<'a> {
    /// What stands between its braces. One that is never closed keeps its opening brace here, so that no name fits it.
    pub name: &'a str,
    /// Its bytes in the text, braces included.
    pub range: Range<usize>,
}

/// A placeholder that the lookup had no value for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown placeholder `{name}` at byte {}; a plain brace is written {{{{", range.start)]
pub struct UnknownPlaceholder {
    /// What stands between its braces.
    pub name: String,
    /// Its bytes in the text, braces included.
    pub range: Range<usize>,
}

/// The placeholders of `text`, in its order.
pub fn placeholders(text: &str) -> Vec<Placeholder<'_>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find('{').map(|offset| from + offset) {
        let inside = start + 1;
        if text[inside..].starts_with('{') {
            from = inside + 1;
            continue;
        }
        let (name, end) = match text[inside..].find(['{', '}']).map(|offset| inside + offset) {
            Some(close) if text.as_bytes()[close] == b'}' => (inside..close, close + 1),
            Some(next) => (start..next, next),
            None => (start..text.len(), text.len()),
        };
        found.push(Placeholder { name: &text[name], range: start..end });
        from = end;
    }
    found
}

/// `text` with each placeholder replaced by what `lookup` has for its name, and `{{` by one brace.
///
/// # Errors
/// The first placeholder that `lookup` answers with `None`.
pub fn fill(text: &str, lookup: impl Fn(&str) -> Option<String>) -> Result<String, UnknownPlaceholder> {
    filled(text, placeholders(text), |plain| plain.replace("{{", "{"), lookup)
}

/// The placeholders of a template, in its order. One that is not closed in its line is named by all the rest of the line,
/// braces included, so that no name fits it.
pub fn template_placeholders(text: &str) -> Vec<Placeholder<'_>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find("{{").map(|offset| from + offset) {
        let rest = text[start..].lines().next().unwrap_or_default();
        let (name, range): (&str, Range<usize>) = match rest.find("}}") {
            Some(end) => (rest[2..end].trim(), start..start + end + 2),
            None => (rest, start..start + rest.len()),
        };
        from = range.end;
        found.push(Placeholder { name, range });
    }
    found
}

/// A template with each placeholder replaced by what `lookup` has for its name.
///
/// # Errors
/// The first placeholder that `lookup` answers with `None`.
pub fn render(text: &str, lookup: impl Fn(&str) -> Option<String>) -> Result<String, UnknownPlaceholder> {
    filled(text, template_placeholders(text), str::to_owned, lookup)
}

fn filled(
    text: &str,
    found: Vec<Placeholder<'_>>,
    plain: fn(&str) -> String,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<String, UnknownPlaceholder> {
    let mut filled = String::with_capacity(text.len());
    let mut from = 0;
    for Placeholder { name, range } in found {
        let value =
            lookup(name).ok_or_else(|| UnknownPlaceholder { name: name.to_owned(), range: range.clone() })?;
        filled += &plain(&text[from..range.start]);
        filled += &value;
        from = range.end;
    }
    Ok(filled + &plain(&text[from..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<String, String> {
        fill(text, |name| (name == "port").then(|| "8{{80".to_owned())).map_err(|error| error.name)
    }

    #[test]
    fn a_name_is_replaced_once_and_doubled_braces_become_one() {
        assert_eq!(filled("a {port} b").unwrap(), "a 8{{80 b", "what is filled in is not read again");
        assert_eq!(filled("{{port}").unwrap(), "{port}");
        assert_eq!(filled("{{{port}").unwrap(), "{8{{80");
        assert_eq!(filled(r#"{{"a":{{"b":1}}"#).unwrap(), r#"{"a":{"b":1}}"#);
        assert_eq!(filled("} é }}").unwrap(), "} é }}");
    }

    #[test]
    fn what_is_no_known_name_is_an_error_also_where_it_is_never_closed() {
        assert_eq!(filled("{prot}").unwrap_err(), "prot");
        assert_eq!(filled("{}").unwrap_err(), "");
        assert_eq!(filled("x{port").unwrap_err(), "{port");
        assert_eq!(filled("{port{port}").unwrap_err(), "{port");
        assert_eq!(filled("é{").unwrap_err(), "{");
    }

    fn rendered(text: &str) -> Result<String, String> {
        render(text, |name| (name == "port").then(|| "80{{".to_owned())).map_err(|error| error.name)
    }

    #[test]
    fn only_doubled_braces_are_placeholders() {
        assert_eq!(rendered("server { listen {{port}}; }\n").unwrap(), "server { listen 80{{; }\n");
        assert_eq!(rendered("{{ port }}{{port}}é}}").unwrap(), "80{{80{{é}}");
    }

    #[test]
    fn what_is_not_known_or_not_closed_is_named() {
        assert_eq!(rendered("a {{prot}}").unwrap_err(), "prot");
        assert_eq!(rendered("{{port\n}}").unwrap_err(), "{{port");
        assert_eq!(rendered("{{{port}}").unwrap_err(), "{port");
        assert_eq!(rendered("é{{").unwrap_err(), "{{");
    }
}
