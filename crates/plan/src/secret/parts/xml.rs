//! Values in XML: the content of an element with the name of a secret, and of elements with such a name in an
//! attribute.
//!
//! ```text
//! <password>VALUE</password>   <api-key value="VALUE"/>   <add key="password" value="VALUE"/>   <param name="token">VALUE</param>
//! ```

use std::ops::Range;

use super::quote::Quote;

/// Attributes that contain values.
const VALUES: [&str; 4] = ["value", "val", "content", "data"];

/// Values of a name that is an element or the value of an attribute. `None` for any other text. An attribute
/// with the name of a secret is an ordinary assignment.
pub(super) fn values(text: &str, name: &Range<usize>) -> Option<Vec<Range<usize>>> {
    let before = &text[..name.start];
    let open = before.rfind('<')?;
    let inside = &before[open + 1..];
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
    let is_element = inside.chars().all(is_part);
    let is_named = || {
        let quote = Quote::before(inside)?;
        inside[..inside.len() - quote.length()]
            .trim_end()
            .ends_with('=')
            .then_some(())
    };
    if inside.contains('>') || !is_element && !inside.starts_with(|c: char| c.is_ascii_alphabetic())
    {
        return None;
    }
    if !is_element {
        is_named()?;
    }
    let tag = open + 1..tag_end(text, name.end)?;
    let mut found = attributes(text, name.end..tag.end);
    if !text[..tag.end].ends_with('/') {
        let length = text[tag.start..].find(|c| !is_part(c)).unwrap_or(0);
        found.extend(content(
            text,
            tag.end + 1,
            &text[tag.start..tag.start + length],
        ));
    }
    (!found.is_empty()).then_some(found)
}

/// Position of the `>` of a tag.
fn tag_end(text: &str, from: usize) -> Option<usize> {
    let mut open: Option<char> = None;
    for (at, c) in text[from..].char_indices() {
        match (c, open) {
            ('>', None) => return Some(from + at),
            // The name itself may be in quotes. Only the second quote is in this range.
            ('"' | '\'', None)
                if text[from..from + at].ends_with('=')
                    || text[from..from + at].ends_with("=\\") =>
            {
                open = Some(c);
            }
            (c, Some(mark)) if c == mark => open = None,
            ('<', None) => return None,
            _ => {}
        }
    }
    None
}

/// Values of the attributes [`VALUES`] in this part of a tag.
fn attributes(text: &str, within: Range<usize>) -> Vec<Range<usize>> {
    let part = &text[within.clone()];
    let signs = part.match_indices('=');
    let value = |(at, _): (usize, &str)| {
        let name = part[..at].trim_end();
        let name = &name[name
            .rfind(|c: char| !c.is_ascii_alphanumeric())
            .map_or(0, |space| space + 1)..];
        VALUES
            .iter()
            .find(|known| known.eq_ignore_ascii_case(name))?;
        let value = part[at + 1..].trim_start();
        let quote = Quote::of(value)?;
        let begin = within.start + part.len() - value.len() + quote.length();
        let end = begin + quote.content(&text[begin..within.end]);
        (begin < end).then_some(begin..end)
    };
    signs.filter_map(value).collect()
}

/// Content of an element with its child elements, without surrounding white space.
fn content(text: &str, begin: usize, tag: &str) -> Option<Range<usize>> {
    let rest = &text[begin..];
    let ends = ["</", "<\\/"]
        .into_iter()
        .filter_map(|mark| rest.find(&format!("{mark}{tag}")));
    let end = ends
        .min()
        .or_else(|| rest.find("</"))
        .or_else(|| rest.find("<\\/"))?;
    let inside = &rest[..end];
    let begin = begin + inside.len() - inside.trim_start().len();
    let end = begin + inside.trim().len();
    (begin < end).then_some(begin..end)
}
