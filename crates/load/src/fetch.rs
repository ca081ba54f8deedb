//! Fetches one complete response, from the first header to the last byte of content: a check before a load.
//!
//! Uses its own connection, HTTP/1.1 without TLS, with blocking calls on the caller's thread. It uses the
//! engine's reader and decoder, so both see the same response. It measures nothing, and should not be called
//! during a measurement.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::content::ContentReader;
use crate::reader::{ReadProgress, ResponseHead, ResponseReader, Sink};
use crate::{Digest, RequestSpec, render};

/// Read size.
const BUFFER_BYTES: usize = 64 * 1024;

/// A complete response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Its status code.
    pub status: u16,
    /// Its header fields in the order of the head, as they were sent. Invalid UTF-8 is replaced.
    pub headers: Vec<(String, String)>,
    /// Bytes of content as they were sent, without the framing of a chunked body.
    pub body_bytes: u64,
    /// Bytes of decoded content, and their SHA-256. `None` if it cannot be decoded.
    pub decoded: Option<(u64, Digest)>,
}

/// Sends `request` (with values, the first row) and waits at most `timeout` for the complete response of any
/// status. Returns `None` if the request cannot be sent, the connection fails, or the response is not
/// HTTP/1.1 or incomplete.
pub fn fetch(address: SocketAddr, request: &RequestSpec, timeout: Duration) -> Option<Fetched> {
    let bytes = render::bytes(request).ok()?;
    let deadline = Instant::now() + timeout;
    let mut stream = TcpStream::connect_timeout(&address, left(deadline)?).ok()?;
    stream.set_nodelay(true).ok()?;
    stream.set_write_timeout(Some(left(deadline)?)).ok()?;
    stream.write_all(&bytes).ok()?;
    let mut reader = ResponseReader::new(request.method == "HEAD");
    let mut look = ResponseSeen::default();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        stream.set_read_timeout(Some(left(deadline)?)).ok()?;
        let is_whole = match stream.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Ok(0) if !reader.end() => return None,
            Ok(0) => true,
            read => matches!(
                reader.read(&buffer[..read.ok()?], &mut look).ok()?,
                ReadProgress::Done { .. }
            ),
        };
        if is_whole {
            return Some(look.fetched(&reader));
        }
    }
}

/// Remaining time until the deadline.
fn left(deadline: Instant) -> Option<Duration> {
    Some(deadline.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
}

/// The parts of a response read so far.
#[derive(Default)]
struct ResponseSeen {
    headers: Vec<(String, String)>,
    content: Option<ContentReader>,
}

impl Sink for ResponseSeen {
    fn head(&mut self, head: &ResponseHead<'_>) {
        let text = |value: &[u8]| String::from_utf8_lossy(value.trim_ascii()).into_owned();
        self.headers = head
            .headers
            .iter()
            .map(|header| (header.name.to_owned(), text(header.value)))
            .collect();
        self.content = Some(ContentReader::of(head));
    }

    fn content(&mut self, bytes: &[u8]) {
        if let Some(content) = &mut self.content {
            content.take(bytes);
        }
    }
}

impl ResponseSeen {
    fn fetched(self, reader: &ResponseReader) -> Fetched {
        // Content that cannot be decoded is unknown.
        let content = self.content.and_then(|content| content.finish().ok());
        let content = content.filter(|content| content.unknown_coding.is_none());
        Fetched {
            status: reader.status,
            headers: self.headers,
            body_bytes: reader.body_bytes,
            decoded: content.map(|content| (content.decoded_bytes, content.digest)),
        }
    }
}
