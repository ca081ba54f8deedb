//! `{port}` and similar placeholders in commands and variables: found when the file is checked, replaced when
//! a trial starts.
//!
//! Pure text processing. The rules are simple: `{name}` is a placeholder, `{{` is a literal brace, and `}`
//! outside a placeholder is literal. In JSON, opening braces are therefore doubled.
//!
//! In template files, such as an `nginx.conf`, single braces are literal. `{{` always begins a placeholder,
//! which ends with `}}` in the same line. Spaces inside it are ignored.

use std::ops::Range;

/// A placeholder in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder<'a> {
    /// Text between the braces. An unclosed placeholder keeps its opening brace here, so that it matches no
    /// name.
    pub name: &'a str,
    /// Its bytes in the text, braces included.
    pub range: Range<usize>,
}

/// A placeholder for which the lookup had no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown placeholder `{name}` at byte {}; a plain brace is written {{{{", range.start)]
pub struct UnknownPlaceholder {
    /// Text between the braces.
    pub name: String,
    /// Its bytes in the text, braces included.
    pub range: Range<usize>,
}

/// Finds the placeholders of `text`, in order.
pub fn placeholders(text: &str) -> Vec<Placeholder<'_>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find('{').map(|offset| from + offset) {
        let inside = start + 1;
        if text[inside..].starts_with('{') {
            from = inside + 1;
            continue;
        }
        let (name, end) = match text[inside..]
            .find(['{', '}'])
            .map(|offset| inside + offset)
        {
            Some(close) if text.as_bytes()[close] == b'}' => (inside..close, close + 1),
            Some(next) => (start..next, next),
            None => (start..text.len(), text.len()),
        };
        found.push(Placeholder {
            name: &text[name],
            range: start..end,
        });
        from = end;
    }
    found
}

/// Replaces each placeholder in `text` by the value that `lookup` returns for its name, and `{{` by one
/// brace.
///
/// # Errors
/// The first placeholder for which `lookup` returns `None`.
pub fn fill(
    text: &str,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<String, UnknownPlaceholder> {
    filled(
        text,
        placeholders(text),
        |plain| plain.replace("{{", "{"),
        lookup,
    )
}

/// Finds the placeholders of a template, in order. The name of an unclosed placeholder is the rest of the
/// line, braces included, so that it matches no name.
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

/// Replaces each placeholder in a template by the value that `lookup` returns for its name.
///
/// # Errors
/// The first placeholder for which `lookup` returns `None`.
pub fn render(
    text: &str,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<String, UnknownPlaceholder> {
    filled(text, template_placeholders(text), str::to_owned, lookup)
}

/// Replaces parts of a text, which are in order.
pub(crate) fn spliced(text: &str, parts: impl Iterator<Item = (Range<usize>, String)>) -> String {
    let (mut spliced, mut from) = (String::with_capacity(text.len()), 0);
    for (range, instead) in parts {
        spliced += &text[from..range.start];
        spliced += &instead;
        from = range.end;
    }
    spliced + &text[from..]
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
        let value = lookup(name).ok_or_else(|| UnknownPlaceholder {
            name: name.to_owned(),
            range: range.clone(),
        })?;
        filled += &plain(&text[from..range.start]);
        filled += &value;
        from = range.end;
    }
    Ok(filled + &plain(&text[from..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_replaced_once_and_doubled_braces_become_one() {
        let port = |name: &str| (name == "port").then(|| "8{{80".to_owned());
        for (text, filled) in [
            // Replacements are not parsed again.
            ("a {port} b", Ok("a 8{{80 b")),
            ("{{port}", Ok("{port}")),
            ("{{{port}", Ok("{8{{80")),
            (r#"{{"a":{{"b":1}}"#, Ok(r#"{"a":{"b":1}}"#)),
            ("} é }}", Ok("} é }}")),
            // Unknown names, also unclosed ones.
            ("{prot}", Err("prot")),
            ("{}", Err("")),
            ("x{port", Err("{port")),
            ("{port{port}", Err("{port")),
            ("é{", Err("{")),
        ] {
            let found = fill(text, port).map_err(|error| error.name);
            assert_eq!(found.as_deref().map_err(String::as_str), filled, "{text}");
        }
    }

    #[test]
    fn only_doubled_braces_are_placeholders_of_templates() {
        let port = |name: &str| (name == "port").then(|| "80{{".to_owned());
        for (text, rendered) in [
            (
                "server { listen {{port}}; }\n",
                Ok("server { listen 80{{; }\n"),
            ),
            ("{{ port }}{{port}}é}}", Ok("80{{80{{é}}")),
            ("a {{prot}}", Err("prot")),
            ("{{port\n}}", Err("{{port")),
            ("{{{port}}", Err("{port")),
            ("é{{", Err("{{")),
        ] {
            let found = render(text, port).map_err(|error| error.name);
            assert_eq!(found.as_deref().map_err(String::as_str), rendered, "{text}");
        }
    }
}
