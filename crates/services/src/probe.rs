//! One look at whether a service is ready: a connection, or a minimal GET and the first line of its answer.
//!
//! It looks once; when to look again, and whose answer it is, is [`crate::Running`]'s business.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use plan::Ready;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

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
pub(crate) enum Seen {
    Ready,
    /// Nobody listens on its port.
    Refused,
    Status(u16),
    /// Something else: in words, and what may be wrong.
    Other(String, String),
}

pub(crate) const MORE_TIME: &str = "raise `ready_timeout` if it only needs more time";

impl Seen {
    /// In words, and what may be wrong.
    pub fn told(self) -> (String, String) {
        let last = |status| format!("last answer: status {status}");
        let (words, hint) = match self {
            // Of one that is ready nobody asks.
            Self::Ready | Self::Refused => {
                let hint = "does it listen on {port}? its environment or arguments have to say so";
                ("but nothing listens there".to_owned(), hint)
            }
            Self::Status(404) => (last(404), "`ready` must be a path that the service has"),
            Self::Status(status) => (last(status), "`ready` must be a path that answers with 2xx once ready"),
            Self::Other(words, hint) => return (words, hint),
        };
        (words, hint.to_owned())
    }

    fn other(words: impl Into<String>) -> Seen {
        Self::Other(words.into(), MORE_TIME.to_owned())
    }

    fn closed() -> Seen {
        Self::other("but it closes connections without an answer")
    }
}

/// What [`look`] waits for, for people.
pub(crate) fn describe(address: SocketAddr, ready: &Ready) -> String {
    match ready {
        Ready::Http(path) => format!("GET http://{address}{path} to answer with 2xx"),
        Ready::Tcp => format!("{address} to accept a connection"),
        Ready::Response => format!("any response to GET http://{address}/"),
    }
}

/// Looks once. `abandoned` is asked while an answer is awaited, and true ends the look early.
pub(crate) fn look(address: SocketAddr, ready: &Ready, abandoned: &mut dyn FnMut() -> bool) -> Seen {
    let stream = match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
        Ok(stream) => stream,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Seen::Refused,
        Err(error) => return Seen::other(format!("but could not connect: {error}")),
    };
    // Where nobody listens, TCP may by chance connect a port of the ephemeral range to itself.
    if stream.local_addr().is_ok_and(|local| local == address) {
        return Seen::Refused;
    }
    match ready {
        Ready::Tcp => Seen::Ready,
        Ready::Http(path) => get(&stream, address, path, abandoned),
        Ready::Response => match get(&stream, address, "/", abandoned) {
            Seen::Status(_) => Seen::Ready,
            seen => seen,
        },
    }
}

/// Whether a socket in the file system is listened on. One that accepts nothing lets nobody wait: such sockets have no time limit.
///
/// # Errors
/// What the system says.
pub fn reach_socket(path: &Path) -> io::Result<()> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&socket, &SocketAddrUnix::new(path)?) {
        // As many wait as may.
        Err(Errno::AGAIN) => Ok(()),
        connected => Ok(connected?),
    }
}

fn get(mut stream: &TcpStream, address: SocketAddr, path: &str, abandoned: &mut dyn FnMut() -> bool) -> Seen {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: proofload\r\nConnection: close\r\n\r\n"
    );
    let sent = stream.set_read_timeout(Some(GLANCE)).and_then(|()| stream.write_all(request.as_bytes()));
    if sent.is_err() {
        return Seen::closed();
    }
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    let (mut answer, mut buffer) = (Vec::new(), [0; 512]);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) if answer.is_empty() => return Seen::closed(),
            Ok(0) => return judge(&answer),
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(error) if is_pause(&error) && Instant::now() < deadline && !abandoned() => continue,
            Err(error) if is_pause(&error) => {
                return Seen::other("but it accepts connections and does not answer");
            }
            Err(_) => return Seen::closed(),
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
        None => Seen::Other(
            format!("last answer was not HTTP/1: {:?}", line.chars().take(80).collect::<String>()),
            "the entry of an experiment has to speak HTTP/1 there".to_owned(),
        ),
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
        assert_eq!(reach_socket(&path).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }

    #[test]
    fn only_2xx_is_ready() {
        assert_eq!(judge(b"HTTP/1.1 204 No Content\r\n"), Seen::Ready);
        assert_eq!(judge(b"HTTP/1.0 200\r\n"), Seen::Ready);
        assert_eq!(judge(b"HTTP/1.1 302 Found\r\n"), Seen::Status(302));
        assert_eq!(judge(b"SSH-2.0-x\r\n").told().0, "last answer was not HTTP/1: \"SSH-2.0-x\"");
        assert_eq!(judge(b"HTTP/1.1").told().0, "last answer was not HTTP/1: \"HTTP/1.1\"");
    }
}
