//! One look at whether a service is ready: a connection, or a minimal GET and the first line of its answer.
//!
//! It looks once; when to look again, and whose answer it is, is [`crate::Running`]'s business.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use plan::Ready;

/// How long a connection may take, on loopback.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// How long one answer may take. A service may do its first work then: compile a template, open a database.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a slow answer lets us see whether anyone still waits for it.
const GLANCE: Duration = Duration::from_millis(20);
/// A status line is not longer.
const LINE_BYTES_MAX: usize = 1024;

/// What a look showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// It is ready.
    Ready,
    /// Nobody listens on its port.
    Refused,
    /// Nobody listens where it should, and the service itself does somewhere else.
    Elsewhere {
        /// Where it listens.
        listens: IpAddr,
        /// Whether clients ask for it from another host, over a [`crate::Network`].
        linked: bool,
    },
    /// No connection came about for another reason.
    Unreachable(String),
    /// It answered with this status.
    Status(u16),
    /// It accepted the connection and did not answer in time.
    Silent,
    /// It accepted the connection and closed it without an answer.
    Closed,
    /// It answered something that is not HTTP/1.
    NotHttp(String),
}

impl Seen {
    /// What may be wrong.
    pub(crate) fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Ready => return None,
            Self::Refused => {
                "does it listen on {port}? its environment or arguments have to say so".to_owned()
            }
            Self::Elsewhere { linked: true, .. } => {
                "whoever asks for it is on another host: let it listen on {address}, which its environment \
                 or arguments have to say"
                    .to_owned()
            }
            Self::Elsewhere { .. } => {
                "let it listen on {address}: its environment or arguments have to say so".to_owned()
            }
            Self::Status(404) => "`ready` must be a path that the service has".to_owned(),
            Self::Status(_) => {
                "`ready` must be a path that answers with 2xx once the service is ready".to_owned()
            }
            Self::NotHttp(_) => "leave `ready` out to wait for the port only".to_owned(),
            Self::Unreachable(_) | Self::Silent | Self::Closed => {
                "raise `ready_timeout` if it only needs more time".to_owned()
            }
        })
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("it was ready"),
            Self::Refused => f.write_str("but nothing listens there"),
            Self::Elsewhere { listens, .. } => write!(f, "but it listens on {listens} only"),
            Self::Unreachable(why) => write!(f, "but could not connect: {why}"),
            Self::Status(status) => write!(f, "last answer: status {status}"),
            Self::Silent => f.write_str("but it accepts connections and does not answer"),
            Self::Closed => f.write_str("but it closes connections without an answer"),
            Self::NotHttp(line) => write!(f, "last answer was not HTTP/1: {line:?}"),
        }
    }
}

/// What [`look`] waits for, for people.
pub(crate) fn describe(address: SocketAddr, ready: &Ready) -> String {
    match ready {
        Ready::Http(path) => format!("GET http://{address}{path} to answer with 2xx"),
        Ready::Tcp => format!("{address} to accept a connection"),
    }
}

/// Looks once. `abandoned` is asked while an answer is awaited, and true ends the look early.
pub(crate) fn look(address: SocketAddr, ready: &Ready, abandoned: &mut dyn FnMut() -> bool) -> Seen {
    let stream = match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
        Ok(stream) => stream,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Seen::Refused,
        Err(error) => return Seen::Unreachable(error.to_string()),
    };
    // Where nobody listens, TCP may by chance connect a port of the ephemeral range to itself.
    if stream.local_addr().is_ok_and(|local| local == address) {
        return Seen::Refused;
    }
    match ready {
        Ready::Tcp => Seen::Ready,
        Ready::Http(path) => get(&stream, address, path, abandoned),
    }
}

fn get(mut stream: &TcpStream, address: SocketAddr, path: &str, abandoned: &mut dyn FnMut() -> bool) -> Seen {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: proofload\r\nConnection: close\r\n\r\n"
    );
    let sent = stream.set_read_timeout(Some(GLANCE)).and_then(|()| stream.write_all(request.as_bytes()));
    if sent.is_err() {
        return Seen::Closed;
    }
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    let (mut answer, mut buffer) = (Vec::new(), [0; 512]);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) if answer.is_empty() => return Seen::Closed,
            Ok(0) => return judge(&answer),
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(error) if is_pause(&error) && Instant::now() < deadline && !abandoned() => continue,
            Err(error) if is_pause(&error) => return Seen::Silent,
            Err(_) => return Seen::Closed,
        }
        if answer.contains(&b'\n') || answer.len() >= LINE_BYTES_MAX {
            return judge(&answer);
        }
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Reads a status line.
fn judge(answer: &[u8]) -> Seen {
    let text = String::from_utf8_lossy(answer);
    let line = text.lines().next().unwrap_or_default();
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
    match status {
        Some(200..=299) => Seen::Ready,
        Some(status) => Seen::Status(status),
        None => Seen::NotHttp(line.chars().take(80).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_2xx_is_ready() {
        assert_eq!(judge(b"HTTP/1.1 204 No Content\r\n"), Seen::Ready);
        assert_eq!(judge(b"HTTP/1.0 200\r\n"), Seen::Ready);
        assert_eq!(judge(b"HTTP/1.1 302 Found\r\n"), Seen::Status(302));
        assert_eq!(judge(b"SSH-2.0-x\r\n"), Seen::NotHttp("SSH-2.0-x".to_owned()));
        assert_eq!(judge(b"HTTP/1.1"), Seen::NotHttp("HTTP/1.1".to_owned()));
    }
}
