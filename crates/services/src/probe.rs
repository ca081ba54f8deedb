//! A single readiness probe: a connection, or a minimal GET and the beginning of its response.
//!
//! It probes once. [`crate::Running`] decides when to probe again and whose answer it is.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use model::text::cut_end;
use model::{Cause, Protocol};
use plan::{Ready, ReadyResponse};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// Timeout of a connection on loopback.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// Timeout of an answer. A service may do its first work then: compile a template, open a database.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Poll interval for cancellation while waiting for a slow answer.
const GLANCE: Duration = Duration::from_millis(20);
/// Maximum length of a status line.
const LINE_BYTES_MAX: usize = 1024;
/// Maximum number of bytes read of an unexpected response.
const RESPONSE_BYTES_MAX: usize = 4096;
/// Timeout for the rest of such a response.
const REST_TIMEOUT: Duration = Duration::from_millis(200);
/// Maximum number of characters shown of its body.
const BODY_CHARS_MAX: usize = 80;

/// Result of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProbeResult {
    Ready,
    /// No process listens on the port.
    Refused,
    /// A response with this status, and the first words of its body.
    Status(u16, String),
    /// Connections are accepted, and nothing is sent.
    Silent,
    /// The response is HTTP/2.
    Http2,
    /// Anything else: a description, and what may be wrong.
    Other(String, String),
}

/// A readiness condition, resolved for one service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadyCondition<'a> {
    pub ready: &'a Ready,
    pub response: &'a ReadyResponse,
}

pub(crate) const MORE_TIME: &str = "raise `ready_timeout` if it only needs more time";

impl ProbeResult {
    /// Describes the result, and what may be wrong.
    pub fn told(self, wanted: ReadyCondition<'_>) -> (String, String) {
        let last = |status: u16, body: &str| match body {
            "" => format!("last answer: status {status}"),
            body => format!("last answer: status {status}, \"{body}\""),
        };
        let (words, hint) = match self {
            // Not used for a service that is ready.
            Self::Ready | Self::Refused => {
                let hint = "does it listen on {port}? its environment or arguments have to say so";
                ("but nothing listens there".to_owned(), hint)
            }
            Self::Status(status, body) => {
                let hint = match wanted.ready {
                    Ready::Response => ReadyResponse::HINT,
                    _ if status == 404 => "`ready` must be a path that the service has",
                    _ => {
                        "`ready` must be a path that answers with 2xx once ready; raise `ready_timeout` if it only needs more time"
                    }
                };
                (last(status, &body), hint)
            }
            Self::Silent => (
                "but it accepts connections and does not answer".to_owned(),
                MORE_TIME,
            ),
            Self::Http2 => {
                let mut hint = Cause::SpeaksHttp2.remedy().unwrap_or_default().to_owned();
                if matches!(wanted.ready, Ready::Http(_)) {
                    hint += "; `ready` is requested over HTTP/1.1, so leave it out: an open port is enough then";
                }
                return ("last answer was HTTP/2, and not HTTP/1".to_owned(), hint);
            }
            Self::Other(words, hint) => return (words, hint),
        };
        (words, hint.to_owned())
    }

    fn other(words: impl Into<String>) -> ProbeResult {
        Self::Other(words.into(), MORE_TIME.to_owned())
    }

    /// Whether another probe may find the service ready. A port that never will be is no candidate for the
    /// load.
    pub fn may_become_ready(&self) -> bool {
        matches!(self, Self::Status(500.., _) | Self::Silent)
    }

    fn closed() -> ProbeResult {
        Self::other("but it closes connections without an answer")
    }
}

/// Describes what [`look`] waits for.
pub(crate) fn describe(address: SocketAddr, ready: &Ready) -> String {
    match ready {
        Ready::Http(path) => format!("GET http://{address}{path} to answer with 2xx"),
        Ready::Tcp => format!("{address} to accept a connection"),
        Ready::Response => format!("a response to GET http://{address}/ with a status below 500"),
    }
}

/// Probes once. `abandoned` is checked while waiting for an answer, and true ends the probe early.
pub(crate) fn look(
    address: SocketAddr,
    wanted: ReadyCondition<'_>,
    abandoned: &mut dyn FnMut() -> bool,
) -> ProbeResult {
    let path = match wanted.ready {
        Ready::Tcp => return connected(address).err().unwrap_or(ProbeResult::Ready),
        Ready::Http(path) => {
            return get(
                address,
                path,
                |status| (200..300).contains(&status),
                abandoned,
            );
        }
        Ready::Response => &wanted.response.path,
    };
    let accepts = |status| wanted.response.accepts(status);
    match get(address, "/", accepts, abandoned) {
        // A service may have only errors there.
        ProbeResult::Status(..) if path != "/" => get(address, path, accepts, abandoned),
        seen => seen,
    }
}

fn connected(address: SocketAddr) -> Result<TcpStream, ProbeResult> {
    let stream = match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
        Ok(stream) => stream,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            return Err(ProbeResult::Refused);
        }
        Err(error) => {
            return Err(ProbeResult::other(format!(
                "but could not connect: {error}"
            )));
        }
    };
    // If no process listens, TCP may by chance connect a port of the ephemeral range to itself.
    if stream.local_addr().is_ok_and(|local| local == address) {
        return Err(ProbeResult::Refused);
    }
    Ok(stream)
}

/// Checks that a unix socket is listened on. It does not wait for a socket that accepts nothing, because such
/// sockets have no timeout.
///
/// # Errors
/// The error of the system.
pub fn reach_socket(path: &Path) -> io::Result<()> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&socket, &SocketAddrUnix::new(path)?) {
        // The backlog is full.
        Err(Errno::AGAIN) => Ok(()),
        connected => Ok(connected?),
    }
}

fn get(
    address: SocketAddr,
    path: &str,
    accepts: impl Fn(u16) -> bool,
    abandoned: &mut dyn FnMut() -> bool,
) -> ProbeResult {
    let mut stream = match connected(address) {
        Ok(stream) => stream,
        Err(seen) => return seen,
    };
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: proofload\r\nConnection: close\r\n\r\n"
    );
    let sent = stream
        .set_read_timeout(Some(GLANCE))
        .and_then(|()| stream.write_all(request.as_bytes()));
    if sent.is_err() {
        return ProbeResult::closed();
    }
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    let (mut answer, mut buffer) = (Vec::new(), [0; 512]);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) if answer.is_empty() => return ProbeResult::closed(),
            Ok(0) => return judge(&answer, accepts),
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(error) if is_pause(&error) && Instant::now() < deadline && !abandoned() => continue,
            Err(error) if is_pause(&error) => return ProbeResult::Silent,
            Err(_) => return ProbeResult::closed(),
        }
        if answer.contains(&b'\n') || answer.len() >= LINE_BYTES_MAX || Protocol::is_http2(&answer)
        {
            if status(&answer).is_some_and(|status| !accepts(status)) {
                read_rest(&mut stream, &mut answer);
            }
            return judge(&answer, accepts);
        }
    }
}

/// Reads more of a response whose body may explain why a service is not ready.
fn read_rest(stream: &mut TcpStream, answer: &mut Vec<u8>) {
    let (deadline, mut buffer) = (Instant::now() + REST_TIMEOUT, [0; 512]);
    while answer.len() < RESPONSE_BYTES_MAX && Instant::now() < deadline {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(error) if is_pause(&error) => {}
            Err(_) => return,
        }
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

fn status(answer: &[u8]) -> Option<u16> {
    let text = String::from_utf8_lossy(answer);
    text.lines()
        .next()?
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split(' ').nth(1)?.parse().ok())
}

fn judge(answer: &[u8], accepts: impl Fn(u16) -> bool) -> ProbeResult {
    match status(answer) {
        Some(status) if accepts(status) => ProbeResult::Ready,
        Some(status) => ProbeResult::Status(status, first_words(answer)),
        None if Protocol::is_http2(answer) => ProbeResult::Http2,
        None => {
            let text = String::from_utf8_lossy(answer);
            let line = cut_end(text.lines().next().unwrap_or_default(), BODY_CHARS_MAX);
            ProbeResult::Other(
                format!("last answer was not HTTP/1: {line:?}"),
                "the entry of an experiment has to speak HTTP/1 there".to_owned(),
            )
        }
    }
}

/// The beginning of a response's body on one line. Empty if it is not text.
fn first_words(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return String::new();
    };
    let is_chunked = head
        .to_ascii_lowercase()
        .contains("\r\ntransfer-encoding: chunked");
    // The first line of a chunk is its length.
    let body = if is_chunked {
        body.split_once("\r\n").map_or("", |(_, chunk)| chunk)
    } else {
        body
    };
    let line = body.trim().lines().next().unwrap_or_default();
    let is_text = |c: char| !c.is_control() && c != char::REPLACEMENT_CHARACTER;
    if !line.chars().all(is_text) {
        return String::new();
    }
    let is_cut = answer.len() >= RESPONSE_BYTES_MAX && body.trim().lines().nth(1).is_none();
    // Reading may also have stopped in the middle.
    if is_cut {
        cut_end(&format!("{line}…"), BODY_CHARS_MAX)
    } else {
        cut_end(line, BODY_CHARS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn who_listens_in_the_file_system_and_accepts_nothing_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        assert_eq!(reach_socket(&path).unwrap_err().kind(), ErrorKind::NotFound);
        let socket = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&socket, 0).unwrap();
        (0..10).for_each(|_| reach_socket(&path).unwrap());
        drop(socket);
        assert_eq!(
            reach_socket(&path).unwrap_err().kind(),
            ErrorKind::ConnectionRefused
        );
    }

    #[test]
    fn responses_are_accepted_by_status_or_shown() {
        let response = ReadyResponse {
            expected: vec![503],
            ..ReadyResponse::default()
        };
        let any = ReadyCondition {
            ready: &Ready::Response,
            response: &response,
        };
        let judged = |answer: &str| judge(answer.as_bytes(), |status| response.accepts(status));
        for answer in [
            "HTTP/1.1 204 No Content\r\n",
            "HTTP/1.0 404\r\n",
            "HTTP/1.1 503 Busy\r\n",
        ] {
            assert_eq!(judged(answer), ProbeResult::Ready, "{answer}");
        }
        for (answer, shown) in [
            (
                "HTTP/1.1 500 E\r\nA: b\r\n\r\nno database\nx",
                "last answer: status 500, \"no database\"",
            ),
            (
                "HTTP/1.1 502 E\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nstarting\r\n0\r\n\r\n",
                "last answer: status 502, \"starting\"",
            ),
            (
                "HTTP/1.1 500 E\r\n\r\n\u{1f}\u{8b}",
                "last answer: status 500",
            ),
            ("SSH-2.0-x\r\n", "last answer was not HTTP/1: \"SSH-2.0-x\""),
            (
                "\0\0\x06\x04\0\0\0\0\0\0\x04",
                "last answer was HTTP/2, and not HTTP/1",
            ),
            ("HTTP/1.1", "last answer was not HTTP/1: \"HTTP/1.1\""),
        ] {
            assert_eq!(judged(answer).told(any).0, shown);
        }
    }
}
