//! Requests of logs by frequency: requests that differ only in an ID or a number are merged, with rows of the
//! values.
//!
//! ```text
//! GET /item/7?page=2&q=red+shoes  ┐                     GET /item/{id}?page={page}&q=x     weight 2
//! GET /item/12?page=1&q=hats      ┘                     rows: 7,2  12,1
//! ```
//! Values of queries are masked except for small numbers, unless they are requested. Values that look like a
//! secret are always masked. Memory is limited for logs of any length. This module writes no files and does
//! not know the mix format.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead};
use std::mem::take;

use crate::traffic::{self, LoggedRequest};

/// Maximum different requests counted at a time. Beyond it the rarest are dropped (lossy counting, Manku and
/// Motwani 2002).
const KINDS_MAX: usize = 50_000;
/// Maximum stored rows of one request.
const ROWS_MAX: usize = 10_000;
/// Maximum size of all stored rows, in bytes.
const ROWS_BYTES_MAX: usize = 256 << 20;
/// Memory of a value beside its text, in bytes.
const VALUE_BYTES: usize = 48;
/// Targets with more differing values are not requests of people or programs.
const COLUMNS_MAX: usize = 32;
/// Longer targets are not accepted by servers.
const TARGET_BYTES_MAX: usize = 8 << 10;
/// Longer texts that mix letters and digits are treated as tokens.
const TOKEN_CHARS_MIN: usize = 24;
/// Numbers with more digits may be personal data.
const OPEN_DIGITS_MAX: usize = 4;
/// Replacement of a masked value.
const MASK: &str = "x";
/// Statuses of fewer than one in n responses are ignored as accidental.
const STATUS_SHARE: u64 = 100;
/// Maximum number of invalid entries reported with their number.
const BAD_TOLD_MAX: usize = 5;

/// Which parts of the requests to keep.
#[derive(Clone, Copy)]
pub struct MixChoice {
    /// Keep requests with unsafe methods, too.
    pub with_unsafe: bool,
    /// Keep values of queries unmasked, and paths that contain a token.
    pub with_values: bool,
    /// Whether a value with this name is a secret.
    pub is_secret: fn(&str) -> bool,
}

/// Requests that differ only in values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestKind {
    /// In upper case.
    pub method: String,
    /// Path and query. If there are rows, `{column}` stands for a value.
    pub path: String,
    /// Number of requests.
    pub count: u64,
    /// Names of the differing values.
    pub columns: Vec<String>,
    /// Rows of values, one per request, or evenly sampled if there are too many.
    pub rows: Vec<Vec<String>>,
    /// Statuses of its responses, without accidental ones.
    pub statuses: Vec<u16>,
    /// Memory of the rows.
    rows_bytes: usize,
    /// One in n requests is stored as a row.
    stride: u64,
    seen: BTreeMap<u16, u64>,
}

/// The omitted entries, by reason.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LeftOut {
    /// Entries that are not a request.
    pub bad: u64,
    /// The first of them: number and text.
    pub bad_first: Vec<(u64, String)>,
    /// Requests with unsafe methods, by method.
    pub by_method: BTreeMap<String, u64>,
    /// Requests with a likely token in their path.
    pub with_token: u64,
    /// Requests of other origins than that of the first request.
    pub elsewhere: u64,
    /// Requests that are less frequent than the included ones.
    pub rare: u64,
}

/// Requests of files, counted.
pub struct Mix {
    choice: MixChoice,
    kinds: HashMap<String, RequestKind>,
    rows_bytes: usize,
    /// Requests that occurred at most this number of times were dropped.
    forgotten: u64,
    /// Origin of the first request, if it has one.
    origin: Option<String>,
    /// Names of masked query values, and their number.
    pub masked: BTreeMap<String, u64>,
    /// The omitted entries.
    pub left_out: LeftOut,
    /// The times of the requests.
    pub span: TimeSpan,
}

/// Times of requests, in seconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TimeSpan {
    /// The first and the last, if times are known.
    pub ends_s: Option<(f64, f64)>,
    /// Number of requests with a time, including omitted ones.
    pub count: u64,
    /// Maximum in one second.
    pub busiest: u64,
    second: i64,
    in_second: u64,
}

impl Mix {
    /// An empty mix.
    pub fn new(choice: MixChoice) -> Mix {
        Mix {
            choice,
            kinds: HashMap::new(),
            rows_bytes: 0,
            forgotten: 0,
            origin: None,
            masked: BTreeMap::new(),
            left_out: LeftOut::default(),
            span: TimeSpan::default(),
        }
    }

    /// Adds a file, and returns the name of its format.
    ///
    /// # Errors
    /// Returns an error if it cannot be read, or has an unknown format.
    pub fn read(&mut self, source: &mut dyn BufRead) -> io::Result<&'static str> {
        traffic::read(source, &mut |(number, entry)| match entry {
            Ok(asked)
                if asked.target.starts_with('/') && asked.target.len() <= TARGET_BYTES_MAX =>
            {
                self.take_in(number, asked);
            }
            Ok(asked) => self.refuse(number, &asked.target),
            Err(text) => self.refuse(number, text),
        })
    }

    /// The most frequent requests, at most `kinds_max`, sorted by frequency.
    pub fn finish(&mut self, kinds_max: usize) -> Vec<RequestKind> {
        let mut kinds: Vec<RequestKind> = take(&mut self.kinds).into_values().collect();
        kinds.sort_by(|one, other| {
            (other.count, &one.method, &one.path).cmp(&(one.count, &other.method, &other.path))
        });
        let rare = kinds.split_off(kinds_max.min(kinds.len()));
        self.left_out.rare += rare.iter().map(|kind| kind.count).sum::<u64>();
        kinds.into_iter().map(RequestKind::finished).collect()
    }

    fn refuse(&mut self, number: u64, text: &str) {
        self.left_out.bad += 1;
        if self.left_out.bad_first.len() < BAD_TOLD_MAX {
            self.left_out
                .bad_first
                .push((number, model::text::cut(text, 60)));
        }
    }

    fn take_in(&mut self, number: u64, asked: LoggedRequest) {
        let left_out = &mut self.left_out;
        if let Some(origin) = &asked.origin
            && origin != self.origin.get_or_insert_with(|| origin.clone())
        {
            left_out.elsewhere += 1;
            return;
        }
        asked.at_s.iter().for_each(|at_s| self.span.take_in(*at_s));
        let is_safe = ["GET", "HEAD", "OPTIONS"].contains(&asked.method.as_str());
        if !is_safe && !self.choice.with_unsafe || asked.method == "CONNECT" {
            *left_out.by_method.entry(asked.method).or_default() += 1;
            return;
        }
        let Some(template) = TargetTemplate::of(&asked.target, self.choice) else {
            return self.refuse(number, &asked.target);
        };
        if template.has_token && !self.choice.with_values {
            self.left_out.with_token += 1;
            return;
        }
        for name in template.masked {
            // Names come from clients, so their number may be unlimited.
            if self.masked.len() < 100 || self.masked.contains_key(&name) {
                *self.masked.entry(name).or_default() += 1;
            }
        }
        let key = format!("{} {}", asked.method, template.path);
        let kind = self.kinds.entry(key).or_insert_with(|| RequestKind {
            method: asked.method,
            path: template.path,
            columns: template.columns,
            stride: 1,
            ..RequestKind::default()
        });
        let before = kind.rows_bytes;
        let has_room = self.rows_bytes < ROWS_BYTES_MAX;
        kind.take_in(template.values, asked.status, has_room);
        self.rows_bytes = self.rows_bytes + kind.rows_bytes - before;
        if self.kinds.len() > KINDS_MAX {
            self.forget();
        }
    }

    /// Drops the rarest requests until half of the space is free.
    fn forget(&mut self) {
        while self.kinds.len() > KINDS_MAX / 2 {
            self.forgotten += 1;
            let (least, bytes, rare) = (
                self.forgotten,
                &mut self.rows_bytes,
                &mut self.left_out.rare,
            );
            self.kinds.retain(|_, kind| {
                let stays = kind.count > least;
                if !stays {
                    (*bytes, *rare) = (*bytes - kind.rows_bytes, *rare + kind.count);
                }
                stays
            });
        }
    }
}

impl TimeSpan {
    fn take_in(&mut self, at_s: f64) {
        let (first, last) = self.ends_s.unwrap_or((at_s, at_s));
        self.ends_s = Some((first.min(at_s), last.max(at_s)));
        self.count += 1;
        let second = at_s.floor() as i64;
        self.in_second = if second == self.second {
            self.in_second + 1
        } else {
            1
        };
        (self.second, self.busiest) = (second, self.busiest.max(self.in_second));
    }

    /// Mean requests per second. `None` if they came within less than ten seconds.
    pub fn per_s(&self) -> Option<f64> {
        let (first, last) = self.ends_s?;
        (last - first >= 10.0).then(|| self.count as f64 / (last - first + 1.0))
    }
}

impl RequestKind {
    fn take_in(&mut self, values: Vec<String>, status: Option<u16>, has_room: bool) {
        if !self.columns.is_empty()
            && self.count.is_multiple_of(self.stride)
            && (has_room || self.rows.is_empty())
        {
            self.rows_bytes += row_bytes(&values);
            self.rows.push(values);
            if self.rows.len() > ROWS_MAX {
                self.rows = take(&mut self.rows).into_iter().step_by(2).collect();
                self.rows_bytes = self.rows.iter().map(|row| row_bytes(row)).sum();
                self.stride *= 2;
            }
        }
        self.count += 1;
        if let Some(status) = status {
            *self.seen.entry(status).or_default() += 1;
        }
    }

    fn finished(mut self) -> RequestKind {
        let least = self.count.div_ceil(STATUS_SHARE);
        // A list of statuses excludes all others, so a success is included even if it is rare.
        let counts =
            |(status, count): &(&u16, &u64)| **count >= least || (200..300).contains(*status);
        let often = self
            .seen
            .iter()
            .filter(counts)
            .map(|(status, _)| match status {
                // Replayed requests are neither conditional nor for a part.
                206 | 304 => 200,
                status => *status,
            });
        self.statuses = often
            .filter(|status| matches!(status, 200..=399 | 404 | 410))
            .collect();
        self.statuses.sort_unstable();
        self.statuses.dedup();
        // If nothing differs there is nothing to draw.
        if self.rows.windows(2).all(|pair| pair[0] == pair[1]) {
            let row = self.rows.pop().unwrap_or_default();
            for (column, value) in self.columns.drain(..).zip(row) {
                self.path = self
                    .path
                    .replacen(&format!("{{{column}}}"), &escaped(&value), 1);
            }
            self.rows.clear();
        }
        self
    }
}

fn row_bytes(row: &[String]) -> usize {
    row.iter().map(|value| value.len() + VALUE_BYTES).sum()
}

/// A target with its differing parts replaced.
#[derive(Default)]
struct TargetTemplate {
    path: String,
    columns: Vec<String>,
    values: Vec<String>,
    masked: Vec<String>,
    has_token: bool,
}

impl TargetTemplate {
    /// `None` if too many parts may differ.
    fn of(target: &str, choice: MixChoice) -> Option<TargetTemplate> {
        let target = target.split('#').next().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut template = TargetTemplate::default();
        for segment in path.split('/').skip(1) {
            template.path.push('/');
            template.segment(segment);
            if template.columns.len() > COLUMNS_MAX {
                return None;
            }
        }
        for (index, pair) in query.split('&').filter(|pair| !pair.is_empty()).enumerate() {
            template.path.push(if index == 0 { '?' } else { '&' });
            template.parameter(pair, choice);
            if template.columns.len() > COLUMNS_MAX {
                return None;
            }
        }
        Some(template)
    }

    fn segment(&mut self, segment: &str) {
        // The part after a semicolon is a session ID, if anything (RFC 3986, section 3.3).
        let segment = segment.split(';').next().unwrap_or_default();
        let (stem, end) = segment.split_at(segment.find('.').unwrap_or(segment.len()));
        let is_signed =
            decoded(end, false).is_some_and(|end| is_token(end.trim_start_matches('.')));
        match (decoded(stem, false), decoded(segment, false)) {
            (Some(value), _) if is_id(&value) && !is_signed => {
                self.column("id", value);
                self.literal(end);
            }
            (_, Some(value)) if is_signed || is_token(&value) => {
                self.has_token = true;
                self.column("token", value);
            }
            _ => self.literal(segment),
        }
    }

    fn parameter(&mut self, pair: &str, choice: MixChoice) {
        let is_open = |text: &str| {
            text.len() <= OPEN_DIGITS_MAX && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        let Some((name, value)) = pair.split_once('=') else {
            // A word is a flag. Other text without a name may be anything.
            let is_word = pair
                .bytes()
                .all(|byte| byte.is_ascii_alphabetic() || b"-_".contains(&byte));
            let is_kept =
                choice.with_values && decoded(pair, true).is_some_and(|text| !is_token(&text));
            if is_kept || is_open(pair) || is_word && pair.len() < TOKEN_CHARS_MIN {
                return self.literal(pair);
            }
            self.masked.push("a value without a name".to_owned());
            return self.path.push_str(MASK);
        };
        self.literal(name);
        self.path.push('=');
        let is_open = is_open(value);
        let is_secret = decoded(name, true).is_none_or(|name| (choice.is_secret)(&name));
        let is_kept = (is_open || choice.with_values) && !is_secret;
        match decoded(value, true).filter(|_| is_kept) {
            Some(value) => self.column(name, value),
            None if value.is_empty() => {}
            None => {
                self.path.push_str(MASK);
                self.masked.push(model::text::cut(name, 40));
            }
        }
    }

    fn literal(&mut self, text: &str) {
        self.path.push_str(&plain(text));
    }

    fn column(&mut self, name: &str, value: String) {
        let name: String = name
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
            .take(20)
            .collect();
        let name = if name.is_empty() {
            "value".to_owned()
        } else {
            name
        };
        let numbered = (2..).map(|number| format!("{name}{number}"));
        let free = |name: &String| !self.columns.contains(name);
        let name = std::iter::once(name.clone())
            .chain(numbered)
            .find(free)
            .unwrap_or(name);
        self.path.push_str(&format!("{{{name}}}"));
        self.columns.push(name);
        self.values.push(value);
    }
}

/// Whether a text identifies one of many items: a number, a UUID, or a hash.
fn is_id(text: &str) -> bool {
    let hex = || {
        text.bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    };
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    (digits == text.len() && digits > 0)
        || (hex() && text.len() == 36 && text.matches('-').count() == 4)
        || (hex()
            && (12..TOKEN_CHARS_MIN + 1).contains(&text.len())
            && digits > 0
            && !text.contains('-'))
}

/// Whether a text is probably personal: an email address, or a long mixture of upper case, lower case and
/// digits without a file extension.
fn is_token(segment: &str) -> bool {
    let has_ending = segment
        .rsplit_once('.')
        .is_some_and(|(_, end)| end.len() <= 5);
    let is_of = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~=".contains(&byte);
    let class = |byte: u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let pairs = || {
        segment
            .as_bytes()
            .windows(2)
            .filter(|pair| pair.iter().all(u8::is_ascii_alphanumeric))
    };
    let mixed = pairs()
        .filter(|pair| class(pair[0]) != class(pair[1]))
        .count();
    let numbers = pairs()
        .filter(|pair| class(pair[0]).0 != class(pair[1]).0)
        .count();
    // In random letters and digits about half of the neighbours differ in class, in capitalised words a
    // third.
    let is_muddle = numbers >= 4 || mixed * 8 >= segment.len() * 3;
    let is_long = segment.len() >= TOKEN_CHARS_MIN && segment.bytes().all(is_of);
    segment.contains('@') || is_long && is_muddle && !has_ending
}

/// Decodes percent-encoding, such as `%41` to `A`. `None` if the result is not text.
fn decoded(text: &str, in_query: bool) -> Option<String> {
    let text = if in_query {
        text.replace('+', " ")
    } else {
        text.to_owned()
    };
    String::from_utf8(model::text::percent_decoded(&text)).ok()
}

/// A text of a target in sendable form: bytes outside visible ASCII, and braces, which would be placeholders,
/// as `%XX`.
fn plain(text: &str) -> String {
    percent(text, |byte| {
        byte.is_ascii_graphic() && !b"{}\"\\<>^`|".contains(&byte)
    })
}

/// A value as the load engine writes it into a path.
fn escaped(value: &str) -> String {
    percent(value, |byte| {
        byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
    })
}

fn percent(text: &str, stays: impl Fn(u8) -> bool) -> String {
    let one = |byte: u8| {
        if stays(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, with_values: bool) -> (Mix, Vec<RequestKind>) {
        let choice = MixChoice {
            with_unsafe: false,
            with_values,
            is_secret: |name| name == "token",
        };
        let mut mix = Mix::new(choice);
        mix.read(&mut text.as_bytes()).unwrap();
        let kinds = mix.finish(3);
        (mix, kinds)
    }

    fn log(targets: &[&str]) -> String {
        let line = |target: &&str| {
            format!(
                "h - - [25/Nov/2026:13:27:25 +0000] \"GET {target} HTTP/1.1\" 200 5 \"-\" \"x\"\n"
            )
        };
        targets.iter().map(line).collect()
    }

    #[test]
    fn requests_that_differ_in_ids_are_one_and_values_are_masked() {
        let text = log(&[
            "/item/7?q=red+shoes&page=1",
            "/item/12?q=hats&page=2",
            "/a b/%7Bx%7D/{env.HOME}",
            "/fixed/5",
            "/fixed/5;jsessionid=1A2B",
            "/of/me%40example.com",
            "/reset/DKYhQYyrcWBcjopuTwzVWntFUBPymJG",
            "/u/eyJhbGciOiJIUzI1NiJ9x4y8z2?x",
            "/search?token=1234",
        ]);
        let (mix, kinds) = read(&text, false);
        let told: Vec<_> = kinds
            .iter()
            .map(|kind| (kind.path.as_str(), kind.count, kind.rows.len()))
            .collect();
        let expected = [
            ("/fixed/5", 2, 0),
            ("/item/{id}?q=x&page={page}", 2, 2),
            ("/a%20b/%7Bx%7D/%7Benv.HOME%7D", 1, 0),
        ];
        assert_eq!(told, expected);
        assert_eq!(kinds[1].rows, [["7", "1"], ["12", "2"]]);
        assert_eq!((mix.left_out.with_token, mix.left_out.rare), (3, 1));
        assert_eq!(
            mix.masked,
            [("q".to_owned(), 2), ("token".to_owned(), 1)].into()
        );
        // A part without a name may be anything, and so may the text after an ID.
        let (mix, kinds) = read(
            &log(&[
                "/invite?6f1c9aQ7DKYhQYyrcW",
                "/invite?me@example.com",
                "/a?debug",
                "/confirm/1699999999.DKYhQYyrcWBcjopuTwzVWntFUBPymJG",
            ]),
            false,
        );
        assert_eq!(
            [&*kinds[0].path, &*kinds[1].path],
            ["/invite?x", "/a?debug"]
        );
        assert_eq!(
            (
                mix.left_out.with_token,
                mix.masked["a value without a name"]
            ),
            (1, 2)
        );
        // A secret stays masked.
        assert!(
            !is_token("MyVeryLongDocumentationPageName")
                && !is_token("how-to-build-a-house-in-2024")
        );
        let (mix, kinds) = read(
            &log(&["/s?q=a%26b&token=1234", "/s?q=%C3%BC&token=99"]),
            true,
        );
        assert_eq!(kinds[0].path, "/s?q={q}&token=x");
        assert_eq!(kinds[0].rows, [["a&b"], ["ü"]]);
        assert_eq!(mix.masked.len(), 1);
    }

    #[test]
    fn memory_is_bounded_and_the_frequent_ones_stay() {
        let mut targets: Vec<String> = (0..3 * KINDS_MAX)
            .map(|number| format!("/page-{number}-a"))
            .collect();
        targets.extend((0..30_000).map(|number| format!("/item/{number}")));
        for at in (0..targets.len()).step_by(100) {
            targets[at] = "/often".to_owned();
        }
        let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
        let (mix, kinds) = read(&log(&targets), false);
        assert_eq!(
            (kinds[0].path.as_str(), kinds[0].count),
            ("/item/{id}", 29_700)
        );
        assert_eq!((kinds[1].path.as_str(), kinds[1].count), ("/often", 1_800));
        assert!(kinds[0].rows.len() > ROWS_MAX / 3 && kinds[0].rows.len() <= ROWS_MAX);
        assert_eq!(
            kinds.iter().map(|kind| kind.count).sum::<u64>() + mix.left_out.rare,
            180_000
        );
    }
}
