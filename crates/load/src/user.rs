//! A virtual user: the values captured from responses to its log-in, and its cookies. It belongs to a
//! connection and to all connections that replace that one.
//!
//! ```text
//!   log_in ──► request of a step ──► response ──► captured, next step (logged in after the last one)
//!                                       └───────► failed: first step again, on another connection
//! ```
//! No I/O and no clock. Captured values and cookies are secret, so no type that contains them can be printed.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use jiff::fmt::rfc2822::DateTimeParser;
use model::{ResponseField, header};
use serde_json::value::RawValue;

use crate::arena::{RequestArena, RequestChoice};
use crate::content::Content;
use crate::reader::ResponseHead;
use crate::reader::unfolded;
use crate::render::{Filling, Hole};
use crate::spec::{FirstRequest, Users};

/// Maximum length of content from which values are captured.
pub(crate) const CONTENT_BYTES_MAX: usize = 1 << 20;
/// RFC 6265, section 6.1: the number of cookies a client should store per host, and the maximum size of one.
const COOKIES_MAX: usize = 50;
const COOKIE_BYTES_MAX: usize = 4096;

/// Settings shared by all users of a load.
pub(crate) struct UserSettings {
    pub(crate) users: Users,
    /// The endpoint of the first step. The endpoints of the other steps follow.
    pub(crate) endpoint: usize,
    /// Determines the users' think times.
    pub(crate) seed: u64,
    /// The thread's number among all threads of the load, and their number.
    pub(crate) lane: (usize, usize),
    /// Start of the load in seconds since 1970. Cookies that expired before it are deleted.
    pub(crate) now_s: i64,
}

/// A request made for one user: its bytes, and the recorded parts of its response.
pub(crate) struct Own {
    pub(crate) bytes: Vec<u8>,
    /// The log-in step, if it is one.
    pub(crate) step: Option<usize>,
    /// Whether a value is captured from the response's content.
    wants_content: bool,
    /// Fields of the response head: all of them for a log-in step, otherwise only `Set-Cookie`.
    fields: Vec<(String, Vec<u8>)>,
}

impl Own {
    /// Records the head of the response. Returns true if the content is to be stored.
    pub(crate) fn note(&mut self, head: &ResponseHead<'_>) -> bool {
        let is_wanted = |name: &str| self.step.is_some() || header::is_same(name, "set-cookie");
        let wanted = head.headers.iter().filter(|header| is_wanted(header.name));
        let field = |header: &httparse::Header<'_>| {
            (
                header.name.to_owned(),
                unfolded(header.value.trim_ascii()).into_owned(),
            )
        };
        self.fields = wanted.map(field).collect();
        self.wants_content
    }
}

pub(crate) struct User {
    settings: Arc<UserSettings>,
    /// Number of the user, unique in the load: the row of values by which it logs in.
    number: usize,
    step: usize,
    /// Captured values in the order of the steps and their captures.
    captured: Vec<String>,
    cookies: Vec<Cookie>,
}

impl User {
    /// Creates the user of a connection, by its index in the thread.
    pub(crate) fn new(settings: &Arc<UserSettings>, index: usize) -> User {
        let (thread, of) = settings.lane;
        let number = thread + index * of;
        let (captured, cookies) = (Vec::new(), Vec::new());
        User {
            settings: settings.clone(),
            number,
            step: 0,
            captured,
            cookies,
        }
    }

    /// The next request of its log-in. `None` if it has logged in.
    pub(crate) fn log_in(&self, arena: &RequestArena) -> Option<(RequestChoice, Box<Own>)> {
        let FirstRequest { capture, .. } = self.settings.users.first.get(self.step)?;
        let choice = arena.row_of(self.settings.endpoint + self.step, self.number);
        let is_of_content = |field: &ResponseField| matches!(field, ResponseField::Json(_));
        let own = Own {
            bytes: self.filled(arena.bytes(choice), arena.holes(choice).unwrap_or_default()),
            step: Some(self.step),
            wants_content: capture.iter().any(|(_, field)| is_of_content(field)),
            fields: Vec::new(),
        };
        Some((choice, Box::new(own)))
    }

    /// The request drawn for this user, if it differs between users.
    pub(crate) fn own(&self, choice: RequestChoice, arena: &RequestArena) -> Option<Box<Own>> {
        let bytes = self.filled(arena.bytes(choice), arena.holes(choice)?);
        Some(Box::new(Own {
            bytes,
            step: None,
            wants_content: false,
            fields: Vec::new(),
        }))
    }

    fn filled(&self, bytes: &[u8], holes: &[Hole]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() + 256);
        let (mut from, mut length_at, mut body_at) = (0, None, 0);
        for Hole { at, what } in holes {
            out.extend_from_slice(&bytes[from..*at]);
            from = *at;
            match what {
                Filling::Value(number, escape) => escape(
                    self.captured.get(*number).map_or("", String::as_str),
                    &mut out,
                ),
                Filling::BodyBytes => length_at = Some(out.len()),
                Filling::Body => body_at = out.len(),
                Filling::Cookies => push_cookies(&self.cookies, (b"Cookie: ", b"\r\n"), &mut out),
                Filling::MoreCookies => push_cookies(&self.cookies, (b"; ", b""), &mut out),
            }
        }
        out.extend_from_slice(&bytes[from..]);
        if let Some(at) = length_at {
            let length = (out.len() - body_at).to_string();
            out.splice(at..at, length.into_bytes());
        }
        out
    }

    /// Stores the cookies of a complete response.
    pub(crate) fn keep_cookies(&mut self, own: &Own) {
        if !self.settings.users.cookies {
            return;
        }
        for value in header::values(&own.fields, "set-cookie") {
            let read = Cookie::read(value, path_of(&own.bytes), self.settings.now_s);
            let Some((cookie, is_over)) = read else {
                continue;
            };
            let is_same =
                |known: &Cookie| (&known.name, &known.path) == (&cookie.name, &cookie.path);
            // An existing cookie keeps its place (RFC 6265, section 5.3).
            match self.cookies.iter().position(is_same) {
                Some(place) if is_over => drop(self.cookies.remove(place)),
                Some(place) => self.cookies[place] = cookie,
                None if !is_over && self.cookies.len() < COOKIES_MAX => self.cookies.push(cookie),
                None => {}
            }
        }
    }

    /// Handles the expected response to a log-in step, and captures its values.
    ///
    /// # Errors
    /// Names the missing part of the response, without quoting the response.
    pub(crate) fn go_on(
        &mut self,
        own: &Own,
        content: Option<Result<Content, String>>,
    ) -> Result<(), String> {
        let content = content.transpose()?.map(|content| content.kept);
        let FirstRequest { capture, .. } = &self.settings.users.first[self.step];
        for (name, field) in capture {
            let value =
                found(field, own, content.as_deref()).map_err(|why| format!("{name}: {why}"))?;
            if value.contains(|c: char| c.is_control() && c != '\t') {
                return Err(format!("{name}: there is a control character in it"));
            }
            self.captured.push(value.into_owned());
        }
        self.step += 1;
        Ok(())
    }

    /// Handles a failed log-in step.
    pub(crate) fn start_over(&mut self) {
        self.step = 0;
        self.captured.clear();
        self.cookies.clear();
    }
}

fn found<'a>(
    field: &ResponseField,
    own: &'a Own,
    content: Option<&[u8]>,
) -> Result<Cow<'a, str>, String> {
    match field {
        ResponseField::Header(wanted) => {
            let value = header::values(&own.fields, wanted).next();
            let value = value.ok_or_else(|| format!("the response has no header {wanted}"))?;
            Ok(String::from_utf8_lossy(value))
        }
        ResponseField::Json(pointer) => {
            let content = content.unwrap_or_default();
            if content.len() > CONTENT_BYTES_MAX {
                let most = format!("{CONTENT_BYTES_MAX} bytes, the most that is read");
                return Err(format!("the body has more than {most}"));
            }
            let json: &RawValue =
                serde_json::from_slice(content).map_err(|_| "the body is not JSON".to_owned())?;
            let value = at_pointer(json, pointer)
                .ok_or_else(|| format!("the body has no {pointer}"))?
                .get();
            match value.as_bytes().first() {
                Some(b'"') => serde_json::from_str::<String>(value)
                    .map(Cow::Owned)
                    .map_err(|_| format!("{pointer} of the body is no text")),
                Some(b'n') => Err(format!("{pointer} of the body is null")),
                Some(b'[' | b'{') => Err(format!("{pointer} of the body is a list or an object")),
                // Numbers keep their text, because a float cannot represent all digits of an identifier.
                _ => Ok(Cow::Owned(value.to_owned())),
            }
        }
    }
}

/// The value at a JSON pointer (RFC 6901), as written.
fn at_pointer<'j>(json: &'j RawValue, pointer: &str) -> Option<&'j RawValue> {
    let mut steps = pointer.split('/');
    if !steps.next()?.is_empty() {
        return None;
    }
    steps
        .map(|step| step.replace("~1", "/").replace("~0", "~"))
        .try_fold(json, |json, step| {
            if json.get().starts_with('[') {
                let is_index = step == "0" || !step.starts_with(['0', '+']);
                let index: usize = step.parse().ok().filter(|_| is_index)?;
                return serde_json::from_str::<Vec<&RawValue>>(json.get())
                    .ok()?
                    .get(index)
                    .copied();
            }
            // For a duplicate name the last value is used.
            serde_json::from_str::<HashMap<Cow<'_, str>, &RawValue>>(json.get())
                .ok()?
                .get(step.as_str())
                .copied()
        })
}

// Cookies of one user and one host, by RFC 6265: paths and expiry are respected, all else is ignored.

struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    path: Vec<u8>,
}

impl Cookie {
    /// Parses a `Set-Cookie` in the response to a request of this path. Returns the cookie and whether it has
    /// expired, which deletes it.
    fn read(text: &[u8], request: &[u8], now_s: i64) -> Option<(Cookie, bool)> {
        let mut parts = text.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let (name, value) = pair(parts.next()?).filter(|(name, _)| !name.is_empty())?;
        // HTTP/2 carries most control characters, but servers reject the field in which the cookie would be
        // returned.
        let has_control = text
            .iter()
            .any(|byte| byte.is_ascii_control() && *byte != b'\t');
        if has_control || name.len() + value.len() > COOKIE_BYTES_MAX {
            return None;
        }
        let (mut path, mut by_age, mut by_date) = (default_path(request), None, false);
        for (key, value) in parts.filter_map(pair) {
            if key.eq_ignore_ascii_case(b"path") && value.starts_with(b"/") {
                path = value;
            } else if key.eq_ignore_ascii_case(b"max-age") {
                let digits = value.strip_prefix(b"-").unwrap_or(value);
                // A value that is not a number is ignored (section 5.2.2).
                if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
                    by_age =
                        Some(value.starts_with(b"-") || digits.iter().all(|digit| *digit == b'0'));
                }
            } else if key.eq_ignore_ascii_case(b"expires") {
                let date = String::from_utf8_lossy(value).replace('-', " ");
                let end = DateTimeParser::new()
                    .relaxed_weekday(true)
                    .parse_timestamp(&date);
                by_date = end.is_ok_and(|end| end.as_second() <= now_s);
            }
        }
        let cookie = Cookie {
            name: name.to_vec(),
            value: value.to_vec(),
            path: path.to_vec(),
        };
        // Max-Age has precedence (section 5.3).
        Some((cookie, by_age.unwrap_or(by_date)))
    }

    /// Path match of section 5.1.4.
    fn is_for(&self, path: &[u8]) -> bool {
        let rest = path.strip_prefix(&*self.path);
        rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || self.path.ends_with(b"/"))
    }
}

fn pair(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|&byte| byte == b'=')?;
    Some((text[..at].trim_ascii(), text[at + 1..].trim_ascii()))
}

/// Section 5.1.4: the request's path up to its last slash.
fn default_path(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(at) if at > 0 => &path[..at],
        _ => b"/",
    }
}

/// The path of a request, without its query.
fn path_of(request: &[u8]) -> &[u8] {
    let target = request
        .split(|&byte| byte == b' ')
        .nth(1)
        .unwrap_or_default();
    target
        .split(|&byte| byte == b'?')
        .next()
        .unwrap_or_default()
}

/// Writes the cookies for the request that `out` begins with, longer paths first (section 5.4), between
/// `before` and `after`. Writes nothing if there are none.
fn push_cookies(cookies: &[Cookie], (mut before, after): (&[u8], &[u8]), out: &mut Vec<u8>) {
    let path = path_of(out);
    let mut sent: Vec<&Cookie> = cookies
        .iter()
        .filter(|cookie| cookie.is_for(path))
        .collect();
    sent.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
    for Cookie { name, value, .. } in &sent {
        for part in [before, name, b"=", value] {
            out.extend_from_slice(part);
        }
        before = b"; ";
    }
    out.extend_from_slice(if sent.is_empty() { b"" } else { after });
}

#[cfg(test)]
mod tests;
