//! What a service was asked for, by its access logs and by what browsers recorded: one trait, a file for each form.
//!
//! Read once, line by line, in bounded memory. It must not decide which requests are worth sending again; that is [`Mix`](crate::Mix)'s.

mod combined;
mod har;
mod json_lines;

use std::io::{self, BufRead, ErrorKind};

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

/// A form of files with requests.
pub(crate) trait Form: Sync {
    /// As people call it.
    fn name(&self) -> &'static str;

    /// Whether a file that begins so has this form.
    fn begins(&self, head: &str) -> bool;

    /// Tells each entry.
    ///
    /// # Errors
    /// Of the source; or what is wrong with a file that is only understood as a whole.
    fn read(&self, source: &mut dyn BufRead, tell: &mut dyn FnMut(Entry<'_>)) -> io::Result<()>;
}

/// All of them; the first that a file begins like.
static FORMS: [&dyn Form; 3] = [&json_lines::JsonLines, &har::Har, &combined::Combined];

/// Reads a file of any form, and says of which.
///
/// # Errors
/// If it cannot be read, or has no known form.
pub(crate) fn read(source: &mut dyn BufRead, tell: &mut dyn FnMut(Entry<'_>)) -> io::Result<&'static str> {
    let head = source.fill_buf()?;
    if head.starts_with(&[0x1f, 0x8b]) {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            "it is compressed: `zcat FILE | proofload mix -`",
        ));
    }
    let head = String::from_utf8_lossy(head).trim_start_matches('\u{feff}').trim_start().to_owned();
    let form = FORMS.into_iter().find(|form| form.begins(&head)).ok_or_else(|| {
        io::Error::new(
            ErrorKind::InvalidData,
            "neither an access log (combined, or JSON lines) nor a HAR file",
        )
    })?;
    form.read(source, tell)?;
    Ok(form.name())
}

/// Each line with its number; of one that is too long `None`.
fn lines(source: &mut dyn BufRead, mut each: impl FnMut(u64, Option<&str>)) -> io::Result<()> {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = io::Read::take(&mut *source, LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        let is_whole = line.ends_with(b"\n") || read < LINE_BYTES_MAX;
        if !is_whole {
            source.skip_until(b'\n')?;
        }
        let text = String::from_utf8_lossy(&line);
        each(number, is_whole.then(|| text.trim()));
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
