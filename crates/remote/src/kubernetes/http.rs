//! One request to the API server over one connection to `kubectl proxy`, with limits of time and size.
//!
//! HTTP/1.0, so that the end of a body is the end of the connection: no chunks, and nothing to keep. Connections to a process of this
//! machine cost nothing; it keeps those to the API server.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long a response may take in all.
const RESPONSE_MAX: Duration = Duration::from_secs(10);
/// A list of thousands of pods is some ten megabytes.
const BODY_BYTES_MAX: usize = 128 << 20;
const HEADERS_MAX: usize = 64;
const PIECE_BYTES: usize = 64 << 10;

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub status: u16,
    pub body: Vec<u8>,
}

/// Sends a request, with a body of JSON if there is one, and reads the whole response.
///
/// # Errors
/// If it does not come in time, is cut off, too large, or no HTTP.
pub(super) fn exchange(
    mut stream: UnixStream,
    method: &str,
    path: &str,
    body: Option<&[u8]>,
) -> io::Result<Response> {
    let deadline = Instant::now() + RESPONSE_MAX;
    stream.set_write_timeout(Some(RESPONSE_MAX))?;
    let body = body.unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/1.0\r\nHost: localhost\r\nAccept: application/json\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let (mut bytes, mut piece) = (Vec::new(), vec![0; PIECE_BYTES]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(late());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            Ok(0) => return parsed(&bytes),
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(late()),
            Err(error) => return Err(error),
        }
        if bytes.len() > BODY_BYTES_MAX {
            return Err(unfit(format!("a response of over {BODY_BYTES_MAX} bytes")));
        }
    }
}

/// That nothing came in time.
pub(super) fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("nothing came within {} s", RESPONSE_MAX.as_secs()))
}

fn parsed(bytes: &[u8]) -> io::Result<Response> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Err(unfit("the response was cut off".into())),
        Err(error) => return Err(unfit(format!("no HTTP: {error}"))),
    };
    let body = bytes[length..].to_vec();
    let lengths = head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("content-length"));
    let announced =
        lengths.filter_map(|header| std::str::from_utf8(header.value).ok()?.parse::<usize>().ok()).next();
    if announced.is_some_and(|announced| body.len() < announced) {
        return Err(unfit("the response was cut off".into()));
    }
    Ok(Response { status: head.code.unwrap_or(0), body })
}

fn unfit(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answered(response: &[u8]) -> io::Result<Response> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(response).unwrap();
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        exchange(ours, "POST", "/api", Some(b"{}"))
    }

    #[test]
    fn a_response_is_whole_or_an_error() {
        let whole = answered(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\n{}").unwrap();
        assert_eq!(whole, Response { status: 403, body: b"{}".to_vec() });
        let without_length = answered(b"HTTP/1.0 200 OK\r\n\r\n[1]").unwrap();
        assert_eq!((without_length.status, without_length.body.as_slice()), (200, &b"[1]"[..]));
        for cut in [&b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\n[1]"[..], b"HTTP/1.0 200", b""] {
            assert!(answered(cut).unwrap_err().to_string().contains("cut off"));
        }
        assert!(answered(b"SSH-2.0-OpenSSH\r\n\r\n").unwrap_err().to_string().contains("no HTTP"));
    }

    proptest! {
        #[test]
        fn nothing_that_comes_is_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parsed(&bytes);
        }
    }
}
