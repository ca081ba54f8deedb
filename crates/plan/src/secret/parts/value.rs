//! Values of a name: their separators, and their ends.

use std::ops::Range;

use super::super::{Field, words};
use super::lines::{directive, line_value, yaml_block};
use super::quote::{Quote, quoted, quoted_lines};
use super::{ENDS, MARK, is_likely, is_list, marks, scheme, xml};

/// Closing brackets of a field's index.
const CLOSING: [&str; 3] = ["]", "%5D", "%5d"];

/// Maximum length of a pair whose value precedes its name.
const PAIR_BYTES_MAX: usize = 4 << 10;

/// Separator between a name and its value.
#[derive(Clone, Copy, PartialEq)]
enum Separator {
    Equals,
    Colon,
    /// White space, after a flag or a directive.
    Space,
}

/// The values of a name.
pub(super) fn values(text: &str, name: &Range<usize>, field: Field<'_>) -> Vec<Range<usize>> {
    let before = paired_before(text, name);
    let behind = values_behind(text, name, field);
    before.into_iter().chain(behind).collect()
}

fn values_behind(text: &str, name: &Range<usize>, field: Field<'_>) -> Vec<Range<usize>> {
    if let Some(values) = xml::values(text, name) {
        return values;
    }
    let closed = Quote::of(&text[name.end..]);
    let is_part = closed.is_some() || ends_with_word(&text[..name.start], "name=");
    if let Some(value) = is_part.then(|| form_part(text, name)).flatten() {
        return vec![value];
    }
    let Some((separator, at)) = separator(text, name, field, closed) else {
        return Vec::new();
    };
    if separator == Separator::Colon
        && let Some(values) = yaml_block(text, name.clone(), at - 1)
    {
        return values;
    }
    let begin = value_start(text, at, closed, separator);
    let found = NamedValue {
        text,
        name,
        field,
        closed,
        separator,
        begin,
    };
    let value = found.value();
    if value.is_empty() || found.is_reference(&value) {
        Vec::new()
    } else {
        vec![value]
    }
}

/// The separator of a name and its value, and the start of the value. `None` if there is no value.
fn separator(
    text: &str,
    name: &Range<usize>,
    field: Field<'_>,
    closed: Option<Quote>,
) -> Option<(Separator, usize)> {
    let rest = &text[name.end + closed.map_or(0, Quote::length)..];
    let indexed = without_index(rest);
    let behind = without_space(indexed, closed);
    let at = |length: usize| text.len() - behind.len() + length;
    let signs = behind.len() - behind.trim_start_matches('=').len();
    if behind.starts_with("::") {
        return None;
    }
    if let Some(arrow) = ["=>", ":=", "?=", "+="]
        .iter()
        .find(|sign| behind.starts_with(**sign))
    {
        return Some((Separator::Equals, at(arrow.len())));
    }
    // Conditions of nginx and VCL.
    let is_template = matches!(field, Field::Template);
    let other = ["!=", "!~*", "!~", "~*", "~"]
        .iter()
        .filter(|sign| is_template || **sign == "!=")
        .find_map(|sign| behind.strip_prefix(sign))
        .map(|other| other.trim_start_matches([' ', '\t']));
    if let Some(other) = other.filter(|other| is_template || Quote::of(other).is_some()) {
        return Some((Separator::Equals, text.len() - other.len()));
    }
    match behind.chars().next() {
        Some('=') => return Some((Separator::Equals, at(signs))),
        Some(':') => return Some((Separator::Colon, at(1))),
        _ => {}
    }
    if let Some(value) = paired(text, name, behind) {
        let is_line = closed.is_none() && text[..value].ends_with(':');
        return Some((
            if is_line {
                Separator::Colon
            } else {
                Separator::Equals
            },
            value,
        ));
    }
    let is_flag = text[name.clone()].starts_with('-');
    // The next word of a JSON list, if the name is a flag, or the next argument of a call: `set('X-Api-Key', 'VALUE')`.
    if let Some(word) = behind.strip_prefix(',').filter(|_| closed.is_some()) {
        let word = word.trim_start();
        let quote = Quote::of(word);
        let plain = match quote {
            Some(quote) => {
                let inside = &word[quote.length()..];
                &inside[..quote.content(inside)]
            }
            None => word,
        };
        let mut words = plain.split(|c: char| c.is_whitespace() || ENDS.contains(c));
        let is_value = match (is_flag, quote) {
            (true, Some(_)) => true,
            (true, None) => words.next().is_some_and(is_likely),
            (false, Some(_)) => words.any(is_likely),
            (false, None) => false,
        };
        return is_value.then(|| (Separator::Equals, text.len() - word.len()));
    }
    let spaced = without_space(rest.trim_start_matches("\\\n"), None);
    let is_spaced = closed.is_none() && spaced.len() < rest.len() && !spaced.is_empty();
    let word = spaced.split(char::is_whitespace).next().unwrap_or_default();
    let is_next = || words::is_flag(word.trim_end_matches(['"', '\'']));
    if is_spaced && (Quote::of(spaced).is_some() || is_flag && !is_next()) {
        return Some((Separator::Space, text.len() - spaced.len()));
    }
    directive(text, name, field)
        .filter(|_| closed.is_none())
        .map(|at| (Separator::Space, at))
}

fn ends_with_word(text: &str, word: &str) -> bool {
    let begin = text.len().checked_sub(word.len());
    begin
        .and_then(|begin| text.get(begin..))
        .is_some_and(|end| end.eq_ignore_ascii_case(word))
}

/// Skips the index of a field before its sign: `user[password]=`, `tokens[]=`, also percent-encoded.
fn without_index(text: &str) -> &str {
    let mut rest = text;
    loop {
        let closed = CLOSING.iter().find_map(|sign| rest.strip_prefix(sign));
        let opened = ["[", "%5B", "%5b"].iter().find_map(|sign| {
            let inside = rest.strip_prefix(sign)?;
            let after =
                inside.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "_-".contains(c));
            CLOSING.iter().find_map(|sign| after.strip_prefix(sign))
        });
        match closed.or(opened) {
            Some(after) => rest = after,
            None => return rest,
        }
    }
}

/// Skips leading white space. After a quoted name it may include line breaks, also as escapes of a JSON
/// string.
fn without_space(text: &str, closed: Option<Quote>) -> &str {
    let Some(quote) = closed else {
        return text.trim_start_matches([' ', '\t']);
    };
    let mut rest = text;
    loop {
        let trimmed = rest.trim_start();
        let escaped = ["\\n", "\\r", "\\t"]
            .iter()
            .find_map(|sign| trimmed.strip_prefix(sign));
        match escaped.filter(|_| quote.escapes > 0) {
            Some(after) => rest = after,
            None => return trimmed,
        }
    }
}

/// Start of the value. On the next line only if it is in quotes or brackets.
fn value_start(text: &str, at: usize, closed: Option<Quote>, separator: Separator) -> usize {
    let value = without_space(&text[at..], closed);
    let below = value.trim_start_matches([' ', '\t', '\r', '\n', '\\']);
    let is_below = value.starts_with(['\r', '\n']) || value.starts_with("\\\n");
    let is_opened = below.starts_with(['"', '\'', '[', '{']);
    let is_taken =
        is_below && (is_opened || value.starts_with('\\') && separator == Separator::Space);
    text.len() - if is_taken { below.len() } else { value.len() }
}

/// Value of a multipart form field (RFC 7578): the text after the empty line that follows its name.
fn form_part(text: &str, name: &Range<usize>) -> Option<Range<usize>> {
    let before = &text[..name.start];
    let line = &before[before.rfind('\n').map_or(0, |newline| newline + 1)..];
    if !line.to_ascii_lowercase().contains("form-data") {
        return None;
    }
    let rest = &text[name.end..];
    let ends = ["\r\n\r\n", "\n\n"]
        .into_iter()
        .filter_map(|end| Some(rest.find(end)? + end.len()));
    let begin = name.end + ends.min()?;
    let length = ["\r\n--", "\n--"]
        .into_iter()
        .filter_map(|end| text[begin..].find(end))
        .min();
    Some(begin..length.map_or(text.len(), |length| begin + length))
}

/// Value of a name that is itself a value: `"name": "token", "value": "abc"`.
fn paired(text: &str, name: &Range<usize>, behind: &str) -> Option<usize> {
    let before = text[..name.start]
        .trim_end_matches(['"', '\'', '\\'])
        .trim_end();
    if !before.ends_with([':', '=']) {
        return None;
    }
    let is_between = |c: char| c.is_whitespace() || ",\"'\\".contains(c);
    let key = behind.trim_start_matches(is_between);
    let value = key
        .get(..5)
        .filter(|key| key.eq_ignore_ascii_case("value"))
        .map(|_| &key[5..])?;
    let sign = value.trim_start_matches(|c: char| "\"'\\ \t".contains(c));
    sign.starts_with([':', '='])
        .then(|| text.len() - sign.len() + 1)
}

/// The same with the value first: `"value": "abc", "name": "token"`.
fn paired_before(text: &str, name: &Range<usize>) -> Option<Range<usize>> {
    let is_quote = |c: char| "\"'\\".contains(c);
    let key = text[..name.start]
        .trim_end_matches(is_quote)
        .trim_end()
        .strip_suffix([':', '='])?
        .trim_end()
        .trim_end_matches(is_quote);
    let is_key = |word: &&str| ends_with_word(key, word);
    let word = ["name", "key"].into_iter().find(is_key)?;
    let key = key[..key.len() - word.len()].trim_end_matches(is_quote);
    let pair = key.trim_end_matches(|c: char| c.is_whitespace() || c == ',');
    if pair.len() == key.len() {
        return None;
    }
    let from = pair.len().saturating_sub(PAIR_BYTES_MAX);
    let from = (from..pair.len()).find(|at| pair.is_char_boundary(*at))?;
    let lower = pair[from..].to_ascii_lowercase();
    let mut keys = lower
        .rmatch_indices("value")
        .map(|(at, key)| from + at + key.len());
    keys.find_map(|end| {
        let sign = pair[end..].trim_start_matches(|c: char| is_quote(c) || " \t".contains(c));
        let value = sign.strip_prefix([':', '='])?.trim_start();
        let begin = pair.len() - value.len();
        let Some(quote) = Quote::of(value) else {
            let is_other = |c: char| c.is_control() || is_quote(c) || "<>{}[],".contains(c);
            let is_word = sign.starts_with(':') || !value.contains(char::is_whitespace);
            return (is_word && !value.is_empty() && !value.contains(is_other))
                .then_some(begin..pair.len());
        };
        let inside = begin + quote.length();
        let end = inside + quote.content(&pair[inside..]);
        (inside < end && end + quote.length() == pair.len()).then_some(inside..end)
    })
}

/// A value that follows a name.
struct NamedValue<'t> {
    text: &'t str,
    name: &'t Range<usize>,
    field: Field<'t>,
    closed: Option<Quote>,
    separator: Separator,
    begin: usize,
}

impl NamedValue<'_> {
    fn before(&self) -> &str {
        &self.text[..self.name.start]
    }

    /// Whether the name is at the start of a line or of a quoted word.
    fn opens_line(&self) -> bool {
        let before = self.before();
        let line = &before[before.rfind('\n').map_or(0, |newline| newline + 1)..];
        // The other key of the pair precedes the value.
        before.ends_with(['"', '\'', '='])
            || line.trim_end().ends_with(':')
            || line.trim_start_matches([' ', '\t', '-', '#']).is_empty()
    }

    /// Whether white space precedes the value. A shell command in backquotes follows the sign directly.
    fn is_spaced(&self) -> bool {
        self.text[..self.begin].ends_with(char::is_whitespace)
    }

    /// Whether it is a whole word of a command, which no shell interprets.
    fn is_whole_word(&self) -> bool {
        let is_flag = self.name.start == 0 && self.text.starts_with('-');
        is_flag && self.separator == Separator::Equals && matches!(self.field, Field::Word)
    }

    fn value(&self) -> Range<usize> {
        let (text, begin) = (self.text, self.begin);
        let value = &text[begin..];
        let is_template = matches!(self.field, Field::Template);
        let is_line = self.opens_line() || is_list(&text[self.name.clone()]);
        if self.separator == Separator::Colon && self.closed.is_none() && is_line {
            let line = value
                .find(['\r', '\n'])
                .unwrap_or(value.len())
                .max(quoted_lines(value));
            let around = Quote::before(self.before());
            return begin..begin + around.map_or(line, |quote| line.min(quote.content(value)));
        }
        if let Some(quote) = Quote::of(value) {
            return quoted(text, begin, quote);
        }
        if let Some(inside) = value.strip_prefix('`').filter(|_| self.is_spaced()) {
            let length = inside.find('`').unwrap_or(0);
            return begin + 1..begin + 1 + length;
        }
        if let Some(length) = structure(value) {
            return begin..begin + length;
        }
        if self.is_whole_word() {
            // It may contain spaces.
            return begin..text.len();
        }
        if is_template
            && self.closed.is_none()
            && (self.separator == Separator::Space || self.opens_line())
        {
            return line_value(text, begin);
        }
        let is_directive =
            self.separator == Separator::Space && !text[self.name.clone()].starts_with('-');
        if is_directive {
            line_value(text, begin)
        } else {
            self.bare()
        }
    }

    fn bare(&self) -> Range<usize> {
        let (text, before) = (self.text, self.before());
        let begin = self.begin + scheme(&text[self.begin..]);
        let in_query = before.ends_with(['?', '&']);
        let is_assigned = self.separator != Separator::Colon;
        let in_word = is_assigned && (self.opens_line() || before.ends_with(char::is_whitespace));
        let ends: &[char] = if in_query {
            &['&', '#', '<', '>', '`']
        } else {
            &['&', '`']
        };
        let is_end = |c: char| {
            if in_query || in_word {
                ends.contains(&c)
            } else {
                ENDS.contains(c)
            }
        };
        let length = bare(text, begin, is_end);
        let trimmed = text[begin..begin + length].trim_end_matches([';', ',']);
        self.begin..begin + if in_word { trimmed.len() } else { length }
    }

    /// Whether the value is a shell variable, whose name is not a secret.
    fn is_reference(&self, value: &Range<usize>) -> bool {
        let in_form = self.before().ends_with(['?', '&']) || {
            let behind = &self.text[value.end..];
            behind.starts_with('&') && !behind.starts_with("&&")
        };
        let is_for_shell = match self.field {
            Field::Of(_) | Field::Word | Field::Text => !self.is_whole_word() && !in_form,
            Field::Sent | Field::Template => false,
        };
        let Some(name) = self.text[value.clone()]
            .strip_prefix('$')
            .filter(|_| is_for_shell)
        else {
            return false;
        };
        let is_variable = |name: &str| {
            let is_part =
                |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
            !name.is_empty() && name.bytes().all(is_part)
        };
        let braced = name
            .strip_prefix('{')
            .map(|name| name.strip_suffix('}').unwrap_or(name));
        let is_command = name.starts_with('(') && self.text[value.start..].contains(')');
        self.separator != Separator::Colon
            && (is_command || is_variable(name) || braced.is_some_and(is_variable))
    }
}

/// Length of an unquoted value from `begin`. Quotes inside it may extend it.
pub(super) fn bare(text: &str, begin: usize, is_end: impl Fn(char) -> bool) -> usize {
    let value = &text[begin..];
    let (mut at, mut open) = (0, 0);
    while let Some(c) = value[at..].chars().next() {
        let next = at + c.len_utf8();
        at = match c {
            '[' => {
                next + marks(&value[at..])
                    .find(|mark| mark.start == 0)
                    .map_or(0, |mark| mark.end - 1)
            }
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
                let quote = Quote {
                    mark: c,
                    escapes: 0,
                };
                (next + quote.content(&value[next..]) + 1).min(value.len())
            }
            c if c.is_whitespace() || is_end(c) => return at,
            _ => next,
        };
    }
    value.len()
}

/// Length of a value that is a list or table, up to its closing bracket and anything joined to it.
fn structure(value: &str) -> Option<usize> {
    let is_table = value.strip_prefix('{').is_some_and(|rest| {
        // Unlike a placeholder.
        let is_assigned = rest
            .find('}')
            .is_some_and(|end| rest[..end].contains(['=', ':']));
        is_assigned || rest.trim_start().starts_with(['"', '\'', '{', '\\'])
    });
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
        // A doubled brace is one brace. Only the last of them counts.
        let is_double = value[at..].starts_with("{{");
        open += i32::from("[{".contains(c) && !is_double) - i32::from("]}".contains(c));
        at += c.len_utf8();
        if open == 0 && "]}".contains(c) {
            let is_end = |c: char| c.is_whitespace() || ENDS.contains(c) || "\"'\\<".contains(c);
            return Some(at + value[at..].find(is_end).unwrap_or(value.len() - at));
        }
    }
    // A truncated list, or another value that begins like one.
    let is_list = is_table
        || value[1..]
            .trim_start()
            .starts_with(['"', '\'', '{', '[', '\\']);
    is_list.then_some(value.len())
}
