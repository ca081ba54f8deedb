//! Where secrets stand in a text, by the names before them: `TOKEN=abc`, `--token abc`, `Authorization: Bearer abc`, `"password": "abc"`,
//! `?token=abc&`, `postgres://user:password@host`.
//!
//! In doubt more of a text is taken than less.

use std::ops::Range;

use super::{MARK, is_placeholder, is_secret_name, key};
use crate::placeholder::placeholders;

/// Fields whose value may have several words, wherever in a text they stand.
const LINES: [&str; 2] = ["AUTHORIZATION", "COOKIE"];
/// Ways of authorization, which are no secret.
const SCHEMES: [&str; 5] = ["Bearer ", "Basic ", "Digest ", "Token ", "ApiKey "];
/// Punctuation that ends values in most texts.
const ENDS: &str = "&;,`)]}";

/// The places of secrets in a text, in order.
pub(super) fn secret_parts(name: Option<&str>, text: &str) -> Vec<Range<usize>> {
    if name.is_some_and(is_secret_name) {
        return literal(text, 0..text.len());
    }
    let mut found: Vec<Range<usize>> = users(text).chain(assigned(text)).collect();
    found.sort_by_key(|range| (range.start, usize::MAX - range.end));
    found.dedup_by(|later, before| later.start < before.end);
    found.into_iter().flat_map(|range| literal(text, range)).collect()
}

/// The typed parts of a secret value: neither the way of authorization before it, nor placeholders, nor marks, and nothing where a
/// placeholder of a secret stands.
fn literal(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let value = &text[range.clone()];
    let is_scheme =
        |scheme: &&&str| value.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    let begin = range.start + SCHEMES.iter().find(is_scheme).map_or(0, |scheme| scheme.len());
    let value = &text[begin..range.end];
    let simple =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "._-/".contains(c));
    let found: Vec<_> = placeholders(value).into_iter().filter(|found| simple(found.name)).collect();
    if found.iter().any(|found| is_placeholder(found.name)) {
        return Vec::new();
    }
    let mut spared: Vec<Range<usize>> =
        found.into_iter().map(|found| found.range).chain(marks(value)).collect();
    spared.sort_by_key(|range| range.start);
    let ends = spared.iter().map(|range| begin + range.end);
    let starts = spared.iter().map(|range| begin + range.start).chain([range.end]);
    let between = std::iter::once(begin).chain(ends).zip(starts);
    between.filter(|(start, end)| start < end).map(|(start, end)| start..end).collect()
}

/// Marks that stand for secrets already.
fn marks(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices(MARK).filter_map(|(at, mark)| {
        let hash = at + mark.len();
        let end = hash + text[hash..].find(']')?;
        key::is_hash(&text[hash..end]).then_some(at..end + 1)
    })
}

/// User and password of URLs.
fn users(text: &str) -> impl Iterator<Item = Range<usize>> {
    let separators = ["://", ":\\/\\/"].into_iter().flat_map(|separator| text.match_indices(separator));
    separators.filter_map(move |(at, colon)| {
        let begin = at + colon.len();
        let rest = &text[begin..];
        let whole =
            &rest[..rest.find(|c: char| c.is_whitespace() || "\"'`<>".contains(c)).unwrap_or(rest.len())];
        let authority = &whole[..whole.find(['/', '?', '#']).unwrap_or(whole.len())];
        // A password may have such a character; a port and an address have not.
        let is_port =
            |port: &str| port.starts_with(['{', '[']) || port.bytes().all(|byte| byte.is_ascii_digit());
        let is_broken = !authority.contains(['@', '['])
            && authority.rsplit_once(':').is_some_and(|(_, port)| !is_port(port));
        let user = if is_broken { whole } else { authority }.rfind('@').filter(|length| *length > 0)?;
        Some(begin..begin + user)
    })
}

/// Values behind the names of secrets.
fn assigned(text: &str) -> impl Iterator<Item = Range<usize>> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let mut from = 0;
    std::iter::from_fn(move || {
        while let Some(start) = text[from..].find(is_name).map(|at| from + at) {
            let end = text[start..].find(|c| !is_name(c)).map_or(text.len(), |length| start + length);
            from = end;
            let is_secret = is_secret_name(&text[start..end]);
            if let Some(value) = is_secret.then(|| value_behind(text, start..end)).flatten() {
                from = value.end;
                return Some(value);
            }
        }
        None
    })
}

/// The value of a name.
fn value_behind(text: &str, name: Range<usize>) -> Option<Range<usize>> {
    if let Some(content) = element_content(text, &name) {
        return Some(content);
    }
    let (before, rest) = (&text[..name.start], &text[name.end..]);
    let closed = Quote::of(rest);
    let unquoted = &rest[closed.map_or(0, |quote| quote.length())..];
    let unquoted = unquoted.trim_start_matches([' ', '\t']);
    let is_flag = text[name.clone()].starts_with('-');
    let (separator, value) = match unquoted.chars().next() {
        Some(separator @ ('=' | ':')) => (separator, &unquoted[1..]),
        _ if is_flag && rest.starts_with(' ') && !unquoted.starts_with('-') => ('=', unquoted),
        _ => return None,
    };
    if value.starts_with(['=', ':']) {
        return None;
    }
    let value = value.trim_start_matches([' ', '\t']);
    let begin = text.len() - value.len();
    let opens_line = before.is_empty() || before.ends_with(['\n', '"', '\'', '=']);
    let is_line = LINES.iter().any(|line| text[name.clone()].to_ascii_uppercase().contains(line));
    let range = if separator == ':' && closed.is_none() && (opens_line || is_line) {
        let around = before.chars().next_back().filter(|c| "\"'".contains(*c));
        let escapes = before.len().saturating_sub(1)
            - before[..before.len().saturating_sub(1)].trim_end_matches('\\').len();
        let around = around.map(|mark| Quote { mark, escapes });
        let line = value.find(['\r', '\n']).unwrap_or(value.len()).max(quoted_lines(value));
        begin..begin + around.map_or(line, |quote| line.min(quote.content(value)))
    } else if let Some(quote) = Quote::of(value) {
        quoted(text, begin, quote)
    } else if let Some(length) = structure(value) {
        begin..begin + length
    } else if before.is_empty() && is_flag && separator == '=' {
        // One word of a command, however many blanks are in it.
        begin..text.len()
    } else {
        let in_query = before.ends_with(['?', '&']);
        let in_word = separator == '=' && (opens_line || before.ends_with(char::is_whitespace));
        let ends: &[char] = if in_query { &['&', '#', '<', '>', '`'] } else { &['&', '`'] };
        let is_end = |c: char| if in_query || in_word { ends.contains(&c) } else { ENDS.contains(c) };
        let length = bare(text, begin, is_end);
        let trimmed = value[..length].trim_end_matches([';', ',']);
        begin..begin + if in_word { trimmed.len() } else { length }
    };
    let is_value = !(range.is_empty() || separator == '=' && is_variable(&text[range.clone()]));
    is_value.then_some(range)
}

/// The content of an XML element with this name: `<password>abc</password>`. `None` for any other text.
fn element_content(text: &str, name: &Range<usize>) -> Option<Range<usize>> {
    let is_prefix = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
    if !text[..name.start].trim_end_matches(is_prefix).ends_with('<') {
        return None;
    }
    let begin = name.end + text[name.end..].find('>')? + 1;
    let end = begin + text[begin..].find("</")?;
    (begin < end).then_some(begin..end)
}

/// Whether a shell has the value elsewhere: the name of its variable is not a secret.
fn is_variable(value: &str) -> bool {
    let Some(name) = value.strip_prefix('$') else { return false };
    let is_name = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    };
    let braced = name.strip_prefix('{').map(|name| name.strip_suffix('}').unwrap_or(name));
    name.starts_with('(') || is_name(name) || braced.is_some_and(is_name)
}

/// A quote, which may be escaped in a text that is quoted itself.
#[derive(Clone, Copy)]
struct Quote {
    mark: char,
    escapes: usize,
}

impl Quote {
    /// The quote that a text begins with.
    fn of(text: &str) -> Option<Quote> {
        let escapes = text.len() - text.trim_start_matches('\\').len();
        let mark = text[escapes..].chars().next().filter(|c| "\"'".contains(*c))?;
        Some(Quote { mark, escapes })
    }

    fn length(self) -> usize {
        self.escapes + 1
    }

    /// The length of what stands before the quote that closes it; all where none does.
    fn content(self, text: &str) -> usize {
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

/// A value in quotes, without them; with them where a shell would join more to it.
fn quoted(text: &str, begin: usize, quote: Quote) -> Range<usize> {
    let inside = begin + quote.length();
    let end = inside + quote.content(&text[inside..]);
    let behind = (end + quote.length()).min(text.len());
    let is_joined = |c: char| c.is_alphanumeric() || "\"'".contains(c);
    let more = text.get(behind..).unwrap_or_default();
    let joins = quote.escapes == 0 && (more.starts_with("\\'") || more.starts_with(is_joined));
    let is_within = text[..begin].matches(more.chars().next().unwrap_or(' ')).count() % 2 == 1;
    if !joins || more.starts_with(['"', '\'']) && is_within {
        return inside..end;
    }
    begin..behind + bare(text, behind, |c| ENDS.contains(c))
}

/// The length of a value in quotes that may have several lines: its closing quote ends a line. 0 for any other value.
fn quoted_lines(value: &str) -> usize {
    let Some(quote) = Quote::of(value) else { return 0 };
    let inside = quote.length();
    let end = inside + quote.content(&value[inside..]) + quote.length();
    let ends_line = |rest: &str| rest.is_empty() || rest.starts_with(['\r', '\n']);
    if value.get(end..).is_some_and(ends_line) { end } else { 0 }
}

/// The length of a value without quotes around it, from `begin` on; quotes inside of it may have more of it.
fn bare(text: &str, begin: usize, is_end: impl Fn(char) -> bool) -> usize {
    let value = &text[begin..];
    let (mut at, mut open) = (0, 0);
    while let Some(c) = value[at..].chars().next() {
        let next = at + c.len_utf8();
        at = match c {
            '[' => next + marks(&value[at..]).find(|mark| mark.start == 0).map_or(0, |mark| mark.end - 1),
            '\\' => next + value[next..].chars().next().map_or(0, char::len_utf8),
            // A placeholder has its own braces.
            '{' => {
                open += 1;
                next
            }
            '}' if open > 0 => {
                open -= 1;
                next
            }
            '"' | '\'' if text[..begin].matches(c).count() % 2 == 1 => return at,
            '"' | '\'' => {
                let quote = Quote { mark: c, escapes: 0 };
                (next + quote.content(&value[next..]) + 1).min(value.len())
            }
            c if c.is_whitespace() || is_end(c) => return at,
            _ => next,
        };
    }
    value.len()
}

/// The length of a list or table that stands as a value, up to the bracket that closes it.
fn structure(value: &str) -> Option<usize> {
    let is_table = value
        .strip_prefix('{')
        .is_some_and(|rest| rest.trim_start().starts_with(['"', '\'', '{', '\\']) && !rest.starts_with("}"));
    if !is_table && (!value.starts_with('[') || value.starts_with(MARK)) {
        return None;
    }
    let (mut at, mut open) = (0, 0_i32);
    while let Some(c) = value[at..].chars().next() {
        // Brackets in strings are text.
        if let Some(quote) = Quote::of(&value[at..]) {
            let inside = at + quote.length();
            at = (inside + quote.content(&value[inside..]) + quote.length()).min(value.len());
            continue;
        }
        // A brace that is written twice is one; only the last of them counts.
        let is_double = value[at..].starts_with("{{");
        open += i32::from("[{".contains(c) && !is_double) - i32::from("]}".contains(c));
        at += c.len_utf8();
        if open == 0 && "]}".contains(c) {
            return Some(at);
        }
    }
    Some(value.len())
}
