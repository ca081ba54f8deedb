//! One request and its whole response, looked at from the first header to the last byte of content: a look before a load, not a load.
//!
//! Over a connection of its own, HTTP/1.1 without TLS, by blocking calls of the thread that asks. It reads and decodes with what the engine
//! reads and decodes with, so that both see the same response. It measures nothing, and must not be called while anything is measured.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::check::values;
use crate::content::{ContentReader, Digest};
use crate::reader::{Head, Progress, ResponseReader, Sink};
use crate::{LoadError, Request, render};

/// Read at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// A whole response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Its status code.
    pub status: u16,
    /// Its header fields in the order of the head, as they were sent; what is not UTF-8 is replaced.
    pub headers: Vec<(String, String)>,
    /// Bytes of content as they were sent, without the framing of a chunked body.
    pub body_bytes: u64,
    /// Bytes of content when its content coding is undone, and their SHA-256; `None` where it cannot be.
    pub decoded: Option<(u64, Digest)>,
}

/// Why there is no whole response.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The request cannot be sent as it is meant.
    #[error(transparent)]
    Request(#[from] LoadError),
    /// The connection failed.
    #[error(transparent)]
    Connection(std::io::Error),
    /// It was not whole in time.
    #[error("no whole response in time")]
    Late,
    /// The connection ended in the middle of it.
    #[error("the connection ended before the response did")]
    CutOff,
    /// It is no HTTP/1.1.
    #[error("the response is not HTTP/1.1")]
    Malformed,
}

/// Sends `request`, of one with values the first row, and waits at most `timeout` for the whole response.
///
/// # Errors
/// Whatever prevents a whole response; a status that nobody wants is none.
pub fn fetch(address: SocketAddr, request: &Request, timeout: Duration) -> Result<Fetched, FetchError> {
    let bytes = render::bytes(request)?;
    let deadline = Instant::now() + timeout;
    let mut stream = TcpStream::connect_timeout(&address, left(deadline)?).map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    stream.set_write_timeout(Some(left(deadline)?)).map_err(failed)?;
    stream.write_all(&bytes).map_err(failed)?;
    read(&mut stream, request.method == "HEAD", deadline)
}

fn read(stream: &mut TcpStream, bodiless: bool, deadline: Instant) -> Result<Fetched, FetchError> {
    let mut reader = ResponseReader::new(bodiless);
    let mut look = Look::default();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        stream.set_read_timeout(Some(left(deadline)?)).map_err(failed)?;
        let count = match stream.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read.map_err(failed)?,
        };
        if count == 0 {
            return if reader.end() { Ok(look.fetched(&reader)) } else { Err(FetchError::CutOff) };
        }
        match reader.read(&buffer[..count], &mut look) {
            Ok(Progress::More) => {}
            Ok(Progress::Done { .. }) => return Ok(look.fetched(&reader)),
            Err(_) => return Err(FetchError::Malformed),
        }
    }
}

/// What is left until then.
fn left(deadline: Instant) -> Result<Duration, FetchError> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(FetchError::Late) } else { Ok(left) }
}

fn failed(error: std::io::Error) -> FetchError {
    match error.kind() {
        // A socket's own time limit shows as either, by the system.
        ErrorKind::WouldBlock | ErrorKind::TimedOut => FetchError::Late,
        _ => FetchError::Connection(error),
    }
}

/// What has been seen of a response.
#[derive(Default)]
struct Look {
    headers: Vec<(String, String)>,
    content: Option<ContentReader>,
}

impl Sink for Look {
    fn head(&mut self, head: &Head<'_>) {
        let text = |value: &[u8]| String::from_utf8_lossy(value.trim_ascii()).into_owned();
        self.headers =
            head.headers.iter().map(|header| (header.name.to_owned(), text(header.value))).collect();
        let codings: Vec<_> = values(head, "content-encoding").collect();
        let codings: Vec<&[u8]> = codings.iter().map(AsRef::as_ref).collect();
        self.content = Some(ContentReader::new(&codings));
    }

    fn content(&mut self, bytes: &[u8]) {
        if let Some(content) = &mut self.content {
            content.take(bytes);
        }
    }
}

impl Look {
    fn fetched(self, reader: &ResponseReader) -> Fetched {
        let content = self.content.and_then(|content| content.finish().ok());
        Fetched {
            status: reader.status(),
            headers: self.headers,
            body_bytes: reader.body_bytes(),
            decoded: content.map(|content| (content.decoded_bytes, content.digest)),
        }
    }
}
