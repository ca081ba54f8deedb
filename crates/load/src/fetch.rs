//! One request and its whole response, looked at from the first header to the last byte of content: a look before a load, not a load.
//!
//! Over a connection of its own, HTTP/1.1 without TLS, by blocking calls of the thread that asks. It reads and decodes with what the engine
//! reads and decodes with, so that both see the same response. It measures nothing, and must not be called while anything is measured.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::content::ContentReader;
use crate::reader::{Head, Progress, ResponseReader, Sink};
use crate::{Digest, Request, render};

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

/// Sends `request`, of one with values the first row, and waits at most `timeout` for the whole response, of whatever status; `None` where
/// the request cannot be sent, the connection fails, or what comes is not HTTP/1.1 or not whole in time.
pub fn fetch(address: SocketAddr, request: &Request, timeout: Duration) -> Option<Fetched> {
    let bytes = render::bytes(request).ok()?;
    let deadline = Instant::now() + timeout;
    let mut stream = TcpStream::connect_timeout(&address, left(deadline)?).ok()?;
    stream.set_nodelay(true).ok()?;
    stream.set_write_timeout(Some(left(deadline)?)).ok()?;
    stream.write_all(&bytes).ok()?;
    let mut reader = ResponseReader::new(request.method == "HEAD");
    let mut look = Look::default();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        stream.set_read_timeout(Some(left(deadline)?)).ok()?;
        let is_whole = match stream.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Ok(0) if !reader.end() => return None,
            Ok(0) => true,
            read => matches!(reader.read(&buffer[..read.ok()?], &mut look).ok()?, Progress::Done { .. }),
        };
        if is_whole {
            return Some(look.fetched(&reader));
        }
    }
}

/// What is left until then.
fn left(deadline: Instant) -> Option<Duration> {
    Some(deadline.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
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
        self.content = Some(ContentReader::of(head));
    }

    fn content(&mut self, bytes: &[u8]) {
        if let Some(content) = &mut self.content {
            content.take(bytes);
        }
    }
}

impl Look {
    fn fetched(self, reader: &ResponseReader) -> Fetched {
        // Of what nobody here can decode it is not known what it says.
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
