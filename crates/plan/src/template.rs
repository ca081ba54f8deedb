//! `{{port}}` and its like in template files, such as an `nginx.conf`, whose own braces stay as they are.
//!
//! Pure text to text. `{{` always begins a placeholder, which ends with `}}` in the same line; blanks inside of it do
//! not count.

use std::ops::Range;

use crate::placeholder::{Placeholder, UnknownPlaceholder};

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
    let mut rendered = String::with_capacity(text.len());
    let mut from = 0;
    for Placeholder { name, range } in template_placeholders(text) {
        let value =
            lookup(name).ok_or_else(|| UnknownPlaceholder { name: name.to_owned(), range: range.clone() })?;
        rendered += &text[from..range.start];
        rendered += &value;
        from = range.end;
    }
    rendered += &text[from..];
    Ok(rendered)
}

#[cfg(test)]
mod tests {
    use super::*;

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
