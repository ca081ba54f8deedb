//! Finds secrets in a text by their names: `TOKEN=abc`, `--token abc`, `Authorization: Bearer abc`,
//! `"password": "abc"`, `?token=abc&`, `postgres://user:password@host`.
//!
//! One scanner for all texts, because texts are nested: JSON in a JSON string in a shell word. `value` has
//! separators between name and value, and the ends of values. `quote`, `xml` and `lines` have grammars with
//! longer separators. `encoded` decodes. In doubt, the longer range is a secret.

mod encoded;
mod lines;
mod quote;
mod value;
mod xml;

use std::ops::Range;

pub(super) use self::encoded::DECODED_TIMES_MAX;
use self::encoded::{encoded, escaped_names};
use super::names::{is_count, is_secret_name};
use super::words::is_flag;
use super::{Field, MARK, is_placeholder, key};
use crate::placeholder::{Placeholder, placeholders, template_placeholders};

/// Fields whose values may have several words, anywhere in a text. Their values are lists of pairs.
const LINES: [&str; 2] = ["AUTHORIZATION", "COOKIE"];
/// Authorization schemes, which are not secret.
const SCHEMES: [&str; 5] = ["Bearer ", "Basic ", "Digest ", "Token ", "ApiKey "];
/// Minimum length of a word with a digit that looks like a secret without a name.
const LIKELY_BYTES_MIN: usize = 6;
/// Minimum length of such a word without a digit.
const LONG_BYTES_MIN: usize = 16;
/// Maximum length of user and password before a host without a scheme.
const USER_BYTES_MAX: usize = 256;
/// Punctuation that ends values in most texts.
const ENDS: &str = "&;,`)]}";

/// Ranges of secrets in a text, in order.
pub(crate) fn secret_parts(field: Field<'_>, text: &str) -> Vec<Range<usize>> {
    parts_within(field, text, DECODED_TIMES_MAX)
}

/// The same, with the number of times that nested texts are decoded.
fn parts_within(field: Field<'_>, text: &str, times: usize) -> Vec<Range<usize>> {
    if let Field::Of(name) = field
        && is_secret_name(name)
    {
        return if is_count(name, text) {
            Vec::new()
        } else {
            literal(text, 0..text.len(), field, is_list(name))
        };
    }
    let mut found = assigned(text, field);
    let others = users(text)
        .chain(users_alone(text))
        .chain(private_keys(text))
        .chain(encoded(field, text, times));
    found.extend(others.map(|range| (range, false)));
    found.sort_by_key(|(range, _)| (range.start, usize::MAX - range.end));
    found.dedup_by(|(later, _), (before, _)| {
        let is_same = later.start < before.end;
        if is_same {
            before.end = before.end.max(later.end);
        }
        is_same
    });
    found
        .into_iter()
        .flat_map(|(range, is_list)| literal(text, range, field, is_list))
        .collect()
}

/// Whether the value of a field is a list of pairs.
fn is_list(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    LINES.iter().any(|line| name.contains(line))
}

/// Typed parts of a secret value, without the authorization scheme, placeholders, marks, and separators
/// between them.
fn literal(text: &str, range: Range<usize>, field: Field<'_>, is_list: bool) -> Vec<Range<usize>> {
    let begin = range.start + scheme(&text[range.clone()]);
    let value = &text[begin..range.end];
    let placed = if matches!(field, Field::Template) {
        template_placeholders(value)
    } else {
        placeholders(value)
    };
    let is_name = |c: char| c.is_alphanumeric() || "._-/".contains(c);
    let is_placed =
        |found: &Placeholder<'_>| !found.name.is_empty() && found.name.chars().all(is_name);
    let placed = placed
        .into_iter()
        .filter(is_placed)
        .map(|found| found.range);
    let mut spared: Vec<Range<usize>> = placed.chain(marks(value)).collect();
    spared.sort_by_key(|range| range.start);
    let ends = spared.iter().map(|range| range.end);
    let starts = spared.iter().map(|range| range.start).chain([value.len()]);
    let between = std::iter::once(0).chain(ends).zip(starts);
    let piece = |(start, end): (usize, usize)| {
        let piece = value.get(start..end)?;
        let length = if is_list && end < value.len() {
            without_last_name(piece)
        } else {
            piece.len()
        };
        let is_value = spared.is_empty() || piece[..length].contains(char::is_alphanumeric);
        (length > 0 && is_value).then_some(begin + start..begin + start + length)
    };
    between.filter_map(piece).collect()
}

/// Length of a part of a list of pairs without the name at its end, which belongs to the following
/// placeholder.
fn without_last_name(piece: &str) -> usize {
    let last = piece.rfind([';', ',']).map_or(0, |sign| sign + 1);
    let name = piece[last..].trim_start().trim_end_matches('"');
    let is_token = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let is_name = name
        .strip_suffix('=')
        .is_some_and(|name| !name.is_empty() && name.chars().all(is_token));
    if is_name {
        piece[..last].trim_end_matches([';', ',', ' ']).len()
    } else {
        piece.len()
    }
}

/// Length of the authorization scheme at the start of a value.
fn scheme(value: &str) -> usize {
    let is_scheme = |scheme: &&&str| {
        value
            .get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    SCHEMES
        .iter()
        .find(is_scheme)
        .map_or(0, |scheme| scheme.len())
}

/// Ranges of marks.
fn marks(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices(MARK).filter_map(|(at, mark)| {
        let hash = at + mark.len();
        let end = hash + text[hash..].find(']')?;
        key::is_hash(&text[hash..end]).then_some(at..end + 1)
    })
}

/// User and password of URLs. Only the password if one of them contains a placeholder.
fn users(text: &str) -> impl Iterator<Item = Range<usize>> {
    let separators = ["://", ":\\/\\/"]
        .into_iter()
        .flat_map(|separator| text.match_indices(separator));
    separators.filter_map(move |(at, colon)| {
        let begin = at + colon.len();
        let rest = &text[begin..];
        let whole = &rest[..rest
            .find(|c: char| c.is_whitespace() || "\"'`<>".contains(c))
            .unwrap_or(rest.len())];
        let authority = &whole[..whole.find(['/', '?', '#']).unwrap_or(whole.len())];
        // A password may contain such a character. A port or an address may not.
        let is_port = |port: &str| {
            port.starts_with(['{', '[']) || port.bytes().all(|byte| byte.is_ascii_digit())
        };
        let is_broken = !authority.contains(['@', '['])
            && authority
                .rsplit_once(':')
                .is_some_and(|(_, port)| !is_port(port));
        let user = if is_broken { whole } else { authority }
            .rfind('@')
            .filter(|length| *length > 0)?;
        let is_placed = placeholders(&rest[..user])
            .iter()
            .any(|found| is_placeholder(found.name));
        let password = rest[..user]
            .find(':')
            .filter(|_| is_placed)
            .map_or(0, |colon| colon + 1);
        Some(begin + password..begin + user)
    })
}

/// User and password in a URL without scheme: `user:password@host:80`, `//user:password@host`, and as Go's database
/// drivers have it, `user:password@tcp(host)`. Other texts also contain both signs: an image with its digest, a
/// package with its version, a mail address.
fn users_alone(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices('@').filter_map(|(at, _)| {
        let is_end = |c: char| c.is_whitespace() || "\"'`<>=,;()[]{}/@".contains(c);
        let from = at.saturating_sub(USER_BYTES_MAX);
        let from = (from..at).find(|at| text.is_char_boundary(*at))?;
        let before = &text[from..at];
        let user = before.rsplit(is_end).next().unwrap_or_default();
        let (name, password) = user.split_once(':')?;
        let is_behind_slashes = before[..before.len() - user.len()].ends_with("//");
        let rest = &text[at + 1..];
        let (host, rest) = rest.split_at(
            rest.find(|c: char| c.is_whitespace() || "\"'`<>,;()/?#".contains(c))
                .unwrap_or(rest.len()),
        );
        let port = host.rsplit_once(':').map(|(_, port)| port);
        let has_port = port.is_some_and(|port| {
            !port.is_empty() && port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit())
        });
        let is_here = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok();
        let is_name = host.starts_with(|c: char| c.is_ascii_alphabetic());
        let is_host = is_name && (host.contains('.') || rest.starts_with('/')) && port.is_none();
        let is_network = is_name && rest.starts_with('(');
        let is_other = ["npm", "mailto"].contains(&name);
        let is_user = !name.is_empty() && !password.is_empty() && !is_other;
        let may_be_host = is_host || host.is_empty();
        (is_user
            && (is_behind_slashes
                || has_port
                || is_here
                || is_network
                || may_be_host && is_likely(password)))
        .then_some(at - user.len()..at)
    })
}

/// Private keys in PEM (RFC 7468), without the lines around them.
fn private_keys(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices("PRIVATE KEY-----")
        .filter_map(|(at, label)| {
            let begin = at + label.len();
            let is_begin = text[..at]
                .rfind("-----")
                .is_some_and(|dashes| text[dashes..at].starts_with("-----BEGIN"));
            let length = text[begin..].find("-----END").unwrap_or(text.len() - begin);
            let key = text[begin..begin + length].trim();
            let start = begin + text[begin..].find(key).unwrap_or(0);
            (is_begin && !key.is_empty()).then_some(start..start + key.len())
        })
}

/// Words that look like a secret after the name of a secret or an authorization scheme, with anything in
/// between. For text with wrong syntax.
pub(super) fn loose_parts(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut at, mut behind): (Vec<Range<usize>>, usize, Option<&str>) =
        (Vec::new(), 0, None);
    for word in text.split(char::is_whitespace) {
        if let Some(range) = password_as_port(word).filter(|_| behind.is_none()) {
            found.push(at + range.start..at + range.end);
        }
        let plain = word.trim_matches(|c: char| "\"'`:=,;-".contains(c));
        let is_scheme = SCHEMES
            .iter()
            .any(|scheme| scheme.trim_end().eq_ignore_ascii_case(plain));
        let is_mark = marks(word).next().is_some();
        let is_flag = is_flag(word.trim_matches(['"', '\'', '`']));
        let is_value = behind.is_some_and(|name| !is_count(name, plain)) && is_likely(plain);
        if is_value && !is_scheme && !is_mark && !is_flag {
            let begin = at + word.find(plain).unwrap_or(0);
            found.push(begin..begin + plain.len());
        }
        let is_name = plain
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
            && is_secret_name(plain);
        behind = (is_scheme || is_name).then_some(plain);
        // White space is one character of one or more bytes.
        at += word.len()
            + text[at + word.len()..]
                .chars()
                .next()
                .map_or(0, char::len_utf8);
    }
    found
}

/// Text in place of a URL's port that is not a number: a password in a URL without host.
fn password_as_port(word: &str) -> Option<Range<usize>> {
    let begin = word.find("://")? + "://".len();
    let end = word[begin..]
        .find(['/', '?', '#'])
        .map_or(word.len(), |length| begin + length);
    let colon = begin + word[begin..end].rfind(':')?;
    let port = &word[colon + 1..end];
    let is_other =
        port.contains(['@', ']', '{', '$']) || port.bytes().all(|byte| byte.is_ascii_digit());
    (!is_other).then_some(colon + 1..end)
}

/// Whether a word is unlikely in a language: it contains a digit, or is long.
pub(super) fn is_likely(word: &str) -> bool {
    let has_digit = word.contains(|c: char| c.is_ascii_digit());
    word.len() >= LIKELY_BYTES_MIN && has_digit || word.len() >= LONG_BYTES_MIN
}

/// Directives of nginx for upstreams.
const PASSES_ON: [&str; 6] = [
    "proxy_pass",
    "fastcgi_pass",
    "uwsgi_pass",
    "scgi_pass",
    "grpc_pass",
    "memcached_pass",
];

/// Values with the names of secrets, and whether each is a list of pairs.
fn assigned(text: &str, field: Field<'_>) -> Vec<(Range<usize>, bool)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(start) = text[from..].find(is_name).map(|at| from + at) {
        let end = text[start..]
            .find(|c| !is_name(c))
            .map_or(text.len(), |length| start + length);
        from = end;
        let name = &text[start..end];
        if is_secret_name(name) && !PASSES_ON.contains(&name) {
            let mut values = value::values(text, &(start..end), field);
            values.retain(|value| !is_count(name, &text[value.clone()]));
            from = values.last().map_or(end, |value| value.end.max(end));
            found.extend(values.into_iter().map(|value| (value, is_list(name))));
        }
    }
    let escaped = escaped_names(text).flat_map(|name| value::values(text, &name, field));
    found.extend(escaped.map(|value| (value, false)));
    found
}
