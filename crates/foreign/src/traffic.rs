//! What a service was asked for, by its access logs and by what browsers recorded.
//!
//! Read once, line by line, in bounded memory. It must not decide which requests are worth sending again; that is [`Mix`](crate::Mix)'s.

use std::io::{self, BufRead, ErrorKind, Read};

use serde::Deserialize;
use serde_json::Value;

/// A longer line is no request: servers refuse such long ones themselves.
const LINE_BYTES_MAX: usize = 64 << 10;

/// A request, as whoever received or sent it has written it down.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asked {
    /// In capitals.
    pub method: String,
    /// Path and query, beginning with `/`.
    pub target: String,
    /// The status of its response, where that is known.
    pub status: Option<u16>,
    /// When, in seconds since 1970, where that is known.
    pub at_s: Option<f64>,
    /// Of whom, where the file has requests of several: scheme, host and port.
    pub origin: Option<String>,
}

/// An entry of a file: its number, from 1, and a request, or the text that is none.
pub(crate) type Entry<'a> = (u64, Result<Asked, &'a str>);

/// Reads a line of a log; the clock keeps the time of the one before.
type ReadLine = fn(&str, &mut Clock) -> Option<Asked>;

/// Reads a file of any form, tells each entry, and says of which form it is.
///
/// # Errors
/// If it cannot be read, or has no known form; or what is wrong with a file that is only understood as a whole.
pub(crate) fn read(source: &mut dyn BufRead, tell: &mut dyn FnMut(Entry<'_>)) -> io::Result<&'static str> {
    let head = source.fill_buf()?;
    let unknown = |words: &str| Err(io::Error::new(ErrorKind::InvalidData, words));
    if head.starts_with(&[0x1f, 0x8b]) {
        return unknown("it is compressed: `zcat FILE | proofload mix -`");
    }
    let head = String::from_utf8_lossy(head).trim_start_matches('\u{feff}').trim_start().to_owned();
    // The first request may be none: scanners send anything. Later ones tell.
    let has = |read: ReadLine| head.lines().any(|line| read(line, &mut Clock::default()).is_some());
    let is_har = head.strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with("\"log\""));
    // Of a HAR file no line is a whole request.
    if head.starts_with('{') && has(json_line) {
        read_lines(source, json_line, tell)?;
        return Ok("access log of JSON lines");
    }
    if is_har {
        read_har(source, tell)?;
        return Ok("HAR file");
    }
    if has(plain_line) {
        read_lines(source, plain_line, tell)?;
        return Ok("access log");
    }
    unknown("neither an access log (combined, or JSON lines) nor a HAR file")
}

fn read_lines(source: &mut dyn BufRead, read: ReadLine, tell: &mut dyn FnMut(Entry<'_>)) -> io::Result<()> {
    let (mut line, mut clock) = (Vec::new(), Clock::default());
    for number in 1.. {
        line.clear();
        let length = Read::take(&mut *source, LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
        if length == 0 {
            break;
        }
        if length == LINE_BYTES_MAX && !line.ends_with(b"\n") {
            source.skip_until(b'\n')?;
            tell((number, Err("a line of more than 64 KiB")));
            continue;
        }
        let text = String::from_utf8_lossy(&line);
        match text.trim() {
            "" => {}
            text => tell((number, read(text, &mut clock).ok_or(text))),
        }
    }
    Ok(())
}

/// Method and target of `GET /path HTTP/1.1`.
fn request_line(text: &str) -> Option<(&str, &str)> {
    let (rest, protocol) = text.rsplit_once(' ')?;
    let (method, target) = rest.split_once(' ')?;
    protocol.starts_with("HTTP/").then_some((method, target)).filter(|(method, _)| is_method(method))
}

fn is_method(text: &str) -> bool {
    (1..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
}

/// Origin, and path with query, of an http URL.
fn parts(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    let path = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let at = url.len() - rest.len() + path;
    Some((&url[..at], &url[at..]))
}

/// RFC 3339, as seconds since 1970.
fn instant(text: &str) -> Option<f64> {
    text.parse::<jiff::Timestamp>().ok().map(|at| at.as_second() as f64)
}

// Access logs as Apache and nginx write them unless told otherwise: common, combined, and what has more fields around these.
//
// ```text
// 127.0.0.1 - - [25/Nov/2026:13:27:25 +0000] "GET /item/7?page=2 HTTP/1.1" 200 512 "-" "curl/8.5"
// ```

fn plain_line(line: &str, clock: &mut Clock) -> Option<Asked> {
    let mut rest = line;
    // Fields of one's own may stand in quotes before the request.
    loop {
        let (_, after) = rest.split_once('"')?;
        let end = closing_quote(after)?;
        rest = &after[end + 1..];
        if let Some((method, target)) = request_line(&after[..end]) {
            let time = line.split_once('[').and_then(|(_, after)| after.split_once(']'));
            return Some(Asked {
                method: method.to_owned(),
                // nginx and Apache write as \xNN what is no plain text, nginx a quote and a backslash too.
                target: target.replace("\\x", "%"),
                status: rest.split_whitespace().next().and_then(|status| status.parse().ok()),
                at_s: time.and_then(|(time, _)| clock.at_s(time)),
                origin: None,
            });
        }
    }
}

/// Where a text in quotes ends.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let is_end = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        is_end
    })
}

/// The time of the line before: most lines have the same.
#[derive(Default)]
struct Clock {
    text: String,
    at_s: Option<f64>,
}

impl Clock {
    fn at_s(&mut self, text: &str) -> Option<f64> {
        if self.text != text {
            text.clone_into(&mut self.text);
            let read = jiff::fmt::strtime::parse("%d/%b/%Y:%H:%M:%S %z", text);
            self.at_s = read.and_then(|time| time.to_timestamp()).ok().map(|at| at.as_second() as f64);
        }
        self.at_s
    }
}

// HAR 1.2: what a browser sent, as its developer tools, Playwright and proxies save it (<http://www.softwareishard.com/blog/har-12-spec/>).
//
// One JSON document with the bodies of all responses. Of those nothing is kept, and of each entry four short fields.

/// Longer ones are given up: a browser does not write such.
const HAR_BYTES_MAX: u64 = 4 << 30;

#[derive(Deserialize)]
struct Document {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<Recorded>,
}

#[derive(Deserialize)]
struct Recorded {
    #[serde(rename = "startedDateTime")]
    started: Option<String>,
    request: Request,
    response: Option<Response>,
}

#[derive(Deserialize)]
struct Request {
    method: String,
    url: String,
}

#[derive(Deserialize)]
struct Response {
    status: i32,
}

fn read_har(source: &mut dyn BufRead, tell: &mut dyn FnMut(Entry<'_>)) -> io::Result<()> {
    let document: Document = serde_json::from_reader(source.take(HAR_BYTES_MAX))?;
    for (number, recorded) in (1..).zip(document.log.entries) {
        let Recorded { started, request: Request { method, url }, response } = recorded;
        let asked = parts(&url).filter(|_| is_method(&method)).map(|(origin, target)| Asked {
            method,
            target: if target.starts_with('/') { target.to_owned() } else { format!("/{target}") },
            // 0 where none came.
            status: response
                .and_then(|response| u16::try_from(response.status).ok())
                .filter(|status| *status > 0),
            at_s: started.as_deref().and_then(instant),
            origin: Some(origin.to_owned()),
        });
        tell((number, asked.ok_or(&url)));
    }
    Ok(())
}

// Access logs with a JSON object in each line, by the names that servers and loggers give their fields: nginx's variables, Caddy, Traefik,
// Envoy, pino and morgan in Node.js, Google's load balancers.

/// Objects within the line that may have the fields.
const WITHIN: [&str; 5] = ["request", "req", "httpRequest", "response", "res"];
const METHOD: [&str; 5] = ["method", "request_method", "requestMethod", "RequestMethod", "verb"];
/// Those with the query before those that may be without.
const TARGET: [&str; 7] = ["request_uri", "requestUrl", "RequestPath", "url", "uri", "path", "target"];
const QUERY: [&str; 3] = ["args", "query_string", "query"];
const STATUS: [&str; 6] =
    ["status", "statusCode", "status_code", "response_code", "responseStatus", "DownstreamStatus"];
const TIME: [&str; 8] =
    ["time", "ts", "timestamp", "@timestamp", "time_iso8601", "msec", "StartUTC", "start_time"];
/// Seconds since 1970 are fewer for millennia, and milliseconds have been more since 1973.
const SECONDS_MAX: f64 = 1e11;

fn json_line(line: &str, _: &mut Clock) -> Option<Asked> {
    let object: Value = serde_json::from_str(line).ok()?;
    let objects = || std::iter::once(&object).chain(WITHIN.iter().filter_map(|name| object.get(name)));
    let field = |names: &[&str]| names.iter().find_map(|name| objects().find_map(|object| object.get(name)));
    let text = |names: &[&str]| field(names).and_then(Value::as_str);
    let whole = object.get("request").and_then(Value::as_str).and_then(request_line);
    let (method, target) = match whole {
        Some(whole) => whole,
        None => (text(&METHOD).filter(|method| is_method(method))?, text(&TARGET)?),
    };
    let mut target = parts(target).map_or(target, |(_, path)| path).to_owned();
    if let Some(query) = text(&QUERY).filter(|query| !query.is_empty() && !target.contains('?')) {
        target = target + "?" + query.trim_start_matches('?');
    }
    let at_s = field(&TIME).and_then(|time| match number(time) {
        Some(number) if number > SECONDS_MAX => Some(number / 1e3),
        Some(number) => Some(number),
        None => instant(time.as_str()?),
    });
    let status = field(&STATUS).and_then(number).map(|status| status as u16);
    Some(Asked { method: method.to_owned(), target, status, at_s, origin: None })
}

/// A number, also where it stands in quotes.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}
