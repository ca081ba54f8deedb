//! Quoted values. In a text that is itself quoted, the quotes are escaped.

use std::ops::Range;

use super::ENDS;
use super::value::bare;

/// A quote, and the backslashes before it.
#[derive(Clone, Copy)]
pub(super) struct Quote {
    pub mark: char,
    pub escapes: usize,
}

impl Quote {
    /// The quote at the start of a text.
    pub fn of(text: &str) -> Option<Quote> {
        let escapes = text.len() - text.trim_start_matches('\\').len();
        let mark = text[escapes..]
            .chars()
            .next()
            .filter(|c| "\"'".contains(*c))?;
        Some(Quote { mark, escapes })
    }

    /// The quote at the end of a text.
    pub fn before(text: &str) -> Option<Quote> {
        let mark = text.chars().next_back().filter(|c| "\"'".contains(*c))?;
        let rest = &text[..text.len() - 1];
        Some(Quote {
            mark,
            escapes: rest.len() - rest.trim_end_matches('\\').len(),
        })
    }

    pub fn length(self) -> usize {
        self.escapes + 1
    }

    /// Length of the text before the closing quote, or of the whole text without one.
    pub fn content(self, text: &str) -> usize {
        let mut escapes = 0;
        for (at, c) in text.char_indices() {
            let closes = escapes < self.escapes || escapes % (2 * self.escapes + 2) == self.escapes;
            match c {
                '\\' => escapes += 1,
                c if c == self.mark && closes => return at - escapes.min(self.escapes),
                _ => escapes = 0,
            }
        }
        text.len()
    }
}

/// A quoted value without its quotes. They are included if a shell would join more text to it.
pub(super) fn quoted(text: &str, begin: usize, quote: Quote) -> Range<usize> {
    if let Some(inside) = tripled(text, begin, quote) {
        return inside;
    }
    let inside = begin + quote.length();
    let end = inside + quote.content(&text[inside..]);
    let behind = (end + quote.length()).min(text.len());
    let is_joined = |c: char| c.is_alphanumeric() || "\"'".contains(c);
    let more = text.get(behind..).unwrap_or_default();
    let joins = quote.escapes == 0 && (more.starts_with("\\'") || more.starts_with(is_joined));
    let is_within = text[..begin]
        .matches(more.chars().next().unwrap_or(' '))
        .count()
        % 2
        == 1;
    if !joins || more.starts_with(['"', '\'']) && is_within {
        return inside..end;
    }
    begin..behind + bare(text, behind, |c| ENDS.contains(c))
}

/// A value in triple quotes, as in Python and TOML. It may have several lines.
fn tripled(text: &str, begin: usize, quote: Quote) -> Option<Range<usize>> {
    let mark = text[begin..begin + quote.length()].repeat(3);
    let inside = begin + mark.len();
    let rest = text[begin..].strip_prefix(&mark)?;
    Some(
        inside
            ..rest
                .find(&mark)
                .map_or(text.len(), |length| inside + length),
    )
}

/// Length of a quoted value of several lines, whose closing quote ends a line. 0 for any other value.
pub(super) fn quoted_lines(value: &str) -> usize {
    let Some(quote) = Quote::of(value) else {
        return 0;
    };
    let inside = quote.length();
    let end = inside + quote.content(&value[inside..]) + quote.length();
    let ends_line = |rest: &str| rest.is_empty() || rest.starts_with(['\r', '\n']);
    if value.get(end..).is_some_and(ends_line) {
        end
    } else {
        0
    }
}
