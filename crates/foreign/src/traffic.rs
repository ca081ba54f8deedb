//! Requests to a service from access logs and browser recordings: a file for each format.
//!
//! Read once, line by line, in limited memory. The choice of requests to replay is [`Mix`](crate::Mix)'s.

mod combined;
mod har;
mod json_lines;

use std::io::{self, BufRead, ErrorKind, Read};

/// A longer line is no request, because servers reject requests of that length.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Number of bytes read to detect the format of a file, regardless of how a pipe splits it.
const HEAD_BYTES: u64 = LINE_BYTES_MAX as u64;

/// A request, as recorded by its receiver or sender.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoggedRequest {
    /// In upper case.
    pub method: String,
    /// Path and query, beginning with `/`.
    pub target: String,
    /// The status of its response, if known.
    pub status: Option<u16>,
    /// Its time in seconds since 1970, if known.
    pub at_s: Option<f64>,
    /// Scheme, host and port, if the file has requests to several origins.
    pub origin: Option<String>,
}

/// An entry of a file: its number, from 1, and a request, or invalid text.
pub(crate) type TrafficEntry<'a> = (u64, Result<LoggedRequest, &'a str>);

/// Parses a line of a log.
type ReadLine = fn(&str) -> Option<LoggedRequest>;

/// Reads a file of any format, passes each entry to `tell`, and returns the name of the format.
///
/// # Errors
/// Returns an error if it cannot be read, has an unknown format, or is invalid in a format that is parsed as
/// a whole.
pub(crate) fn read(
    source: &mut dyn BufRead,
    tell: &mut dyn FnMut(TrafficEntry<'_>),
) -> io::Result<&'static str> {
    let mut begin = Vec::new();
    Read::take(&mut *source, HEAD_BYTES).read_to_end(&mut begin)?;
    // Some editors write a byte order mark first.
    let begin = begin.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&begin);
    let unknown = |words: &str| Err(io::Error::new(ErrorKind::InvalidData, words));
    if begin.starts_with(&[0x1f, 0x8b]) {
        return unknown("it is compressed: `zcat FILE | proofload mix -`");
    }
    let head = String::from_utf8_lossy(begin).trim_start().to_owned();
    let mut source = begin.chain(source);
    // The first line may be no request, because scanners send anything. Later lines decide.
    let has = |read: ReadLine| head.lines().any(|line| read(line).is_some());
    // In a HAR file no line is a complete request.
    if head.starts_with('{') && has(json_lines::asked) {
        read_lines(&mut source, json_lines::asked, tell)?;
        return Ok("access log of JSON lines");
    }
    if head
        .strip_prefix('{')
        .is_some_and(|rest| rest.trim_start().starts_with("\"log\""))
    {
        har::read(&mut source, tell)?;
        return Ok("HAR file");
    }
    if has(combined::asked) {
        read_lines(&mut source, combined::asked, tell)?;
        return Ok("access log");
    }
    unknown("neither an access log (combined, or JSON lines) nor a HAR file")
}

fn read_lines(
    source: &mut dyn BufRead,
    read: ReadLine,
    tell: &mut dyn FnMut(TrafficEntry<'_>),
) -> io::Result<()> {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let length =
            Read::take(&mut *source, LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
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
            text => tell((number, read(text).ok_or(text))),
        }
    }
    Ok(())
}

/// Method and target of `GET /path HTTP/1.1`.
fn request_line(text: &str) -> Option<(&str, &str)> {
    let (rest, protocol) = text.rsplit_once(' ')?;
    let (method, target) = rest.split_once(' ')?;
    protocol
        .starts_with("HTTP/")
        .then_some((method, target))
        .filter(|(method, _)| is_method(method))
}

fn is_method(text: &str) -> bool {
    (1..=20).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte == b'-')
}

/// Origin, and path with query, of an http URL.
fn parts(url: &str) -> Option<(&str, &str)> {
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"))?;
    let path = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let at = url.len() - rest.len() + path;
    Some((&url[..at], &url[at..]))
}

/// RFC 3339, as seconds since 1970.
fn instant(text: &str) -> Option<f64> {
    text.parse::<jiff::Timestamp>()
        .ok()
        .map(|at| at.as_second() as f64)
}
