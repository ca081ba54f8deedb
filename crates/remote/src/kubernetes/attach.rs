//! The stdin and stdout of a program in a pod, attached to over a WebSocket: what is written and read, and why it ended.
//!
//! Each message begins with the number of its stream (`v5.channel.k8s.io`, and `v4` before it).

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use tungstenite::client::{ClientRequestBuilder, client_with_config};
use tungstenite::handshake::HandshakeError;
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Bytes, Error, Message, WebSocket};

use super::api::Namespace;
use super::error::ClusterError;
use super::http;
use super::pods::{self, Ending};

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
/// Of version 5: what follows is the stream that ends.
const CLOSE: u8 = 255;
const V4: &str = "v4.channel.k8s.io";
const V5: &str = "v5.channel.k8s.io";

const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How long a pod may take nothing in. It reads at once, so one that does not is gone.
const WRITE_MAX: Duration = Duration::from_secs(3);
const PIECE_BYTES: usize = 64 << 10;
/// Nodes send pieces of some kilobytes.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// How much of a program's stderr is kept.
const STDERR_BYTES_MAX: usize = 2048;
/// When we look why a pod ended, each time after the last: its node reports that within a second or two. Few times, because
/// many may end together.
const LOOKS_MS: [u64; 5] = [0, 250, 500, 1000, 2000];
/// Of a pod that ended in good order though we had not ended it.
const CUT_OFF: &str =
    "the connection to it ended, as in a restart of the API server, and its program with that";

/// A program's stdin, which ends when this is dropped.
pub(super) struct Input {
    socket: WebSocket<Wire>,
    /// Whether stdin can end by itself, without the connection.
    half_closes: bool,
}

/// A program's stdout. Where the program is lost, reading is an error with the reason.
pub(super) struct Output {
    socket: WebSocket<Wire>,
    wire: Wire,
    /// What was read of stdout and not passed on.
    piece: Bytes,
    stderr: Vec<u8>,
    namespace: Namespace,
    pod: String,
}

/// What holds the connection. Dropping it ends both.
pub(super) struct Hold(Wire);

/// One connection for reader and writer, each of whom writes whole frames.
#[derive(Clone)]
struct Wire(Arc<Shared>);

struct Shared {
    stream: UnixStream,
    writing: Mutex<()>,
    /// Whether we have ended it.
    closed: AtomicBool,
}

/// Attaches to a pod.
///
/// # Errors
/// If the API server refuses, or does not answer.
pub(super) fn attach(
    namespace: &Namespace,
    pod: &str,
    container: &str,
) -> Result<(Input, Output, Hold), ClusterError> {
    const WHAT: &str = "to be attached to";
    let (stream, path) = namespace.attach_point(pod, container)?;
    let broken = |error: io::Error| namespace.unreachable(format!("{WHAT}: {error}"));
    stream.set_read_timeout(Some(CONNECT_MAX)).map_err(broken)?;
    stream.set_write_timeout(Some(WRITE_MAX)).map_err(broken)?;
    let wire = Wire(Arc::new(Shared { stream, writing: Mutex::new(()), closed: AtomicBool::new(false) }));
    let uri = format!("ws://localhost{path}").parse().map_err(|error| broken(io::Error::other(error)))?;
    let request = ClientRequestBuilder::new(uri).with_sub_protocol(V5).with_sub_protocol(V4);
    let limits = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    let (socket, response) =
        client_with_config(request, wire.clone(), Some(limits)).map_err(|error| match error {
            HandshakeError::Failure(Error::Http(response)) => {
                let body = response.body().as_deref().unwrap_or_default();
                namespace.refused(WHAT, response.status().as_u16(), body)
            }
            HandshakeError::Failure(error) => broken(io::Error::other(error)),
            HandshakeError::Interrupted(_) => broken(http::late()),
        })?;
    wire.0.stream.set_read_timeout(None).map_err(broken)?;
    let half_closes = response.headers().get("sec-websocket-protocol").is_some_and(|protocol| protocol == V5);
    let input =
        Input { socket: WebSocket::from_raw_socket(wire.clone(), Role::Client, Some(limits)), half_closes };
    let (namespace, pod) = (namespace.clone(), pod.to_owned());
    let (piece, stderr) = (Bytes::new(), Vec::new());
    let output = Output { socket, wire: wire.clone(), piece, stderr, namespace, pod };
    Ok((input, output, Hold(wire)))
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.0.stream).read(buffer)
    }
}

impl Write for Wire {
    /// All of it, so that no frame is in another.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _writing = self.0.writing.lock().unwrap_or_else(PoisonError::into_inner);
        (&self.0.stream).write_all(bytes).inspect_err(|_| {
            // What follows half a frame would not be understood.
            let _ = self.0.stream.shutdown(Shutdown::Both);
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Input {
    fn send(&mut self, stream: u8, bytes: &[u8]) -> io::Result<()> {
        let message = [&[stream][..], bytes].concat();
        self.socket.send(Message::Binary(message.into())).map_err(|error| match error {
            Error::Io(error) if error.kind() == io::ErrorKind::WouldBlock => {
                io::Error::new(io::ErrorKind::TimedOut, "it takes nothing in any more")
            }
            Error::Io(error) => error,
            _ => io::ErrorKind::BrokenPipe.into(),
        })
    }
}

impl Write for Input {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(PIECE_BYTES);
        self.send(STDIN, &bytes[..count])?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.socket.get_ref().0.closed.store(true, Ordering::SeqCst);
        // A connection that has ended by now is as good.
        if !self.half_closes || self.send(CLOSE, &[STDIN]).is_err() {
            let _ = self.socket.get_ref().0.stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.0.closed.store(true, Ordering::SeqCst);
        let _ = self.0.0.stream.shutdown(Shutdown::Both);
    }
}

impl Read for Output {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            let message = match self.socket.read() {
                Ok(Message::Binary(message)) => message,
                Ok(Message::Close(_)) | Err(_) => return self.end(),
                Ok(_) => continue,
            };
            match message.first() {
                Some(&STDOUT) => self.piece = message.slice(1..),
                Some(&STDERR) => {
                    self.stderr.extend_from_slice(&message[1..]);
                    self.stderr.drain(..self.stderr.len().saturating_sub(STDERR_BYTES_MAX));
                }
                // How it ended is asked for where it matters.
                _ => {}
            }
        }
        let count = self.piece.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.piece.split_to(count));
        Ok(count)
    }
}

impl Output {
    /// The end, which is an error where we did not ask for it.
    fn end(&self) -> io::Result<usize> {
        let is_closed = || self.wire.0.closed.load(Ordering::SeqCst);
        if is_closed() {
            return Ok(0);
        }
        let ending = explanation(&self.namespace, &self.pod, &is_closed);
        let words = match ending.well {
            true => CUT_OFF.to_owned(),
            false => ending.words(&String::from_utf8_lossy(&self.stderr)),
        };
        Err(io::Error::new(io::ErrorKind::ConnectionAborted, words))
    }
}

/// Why a pod ended, as far as that can be found out.
fn explanation(namespace: &Namespace, pod: &str, is_unwanted: &dyn Fn() -> bool) -> Ending {
    for wait_ms in LOOKS_MS {
        sleep(Duration::from_millis(wait_ms));
        if is_unwanted() {
            break;
        }
        match namespace.pod(pod) {
            Ok(Some(pod)) => {
                if let Some(ending) = pods::ending(&pod) {
                    return ending;
                }
            }
            Ok(None) => return Ending::of("somebody deleted the pod"),
            Err(error) => return Ending::of(format!("the connection to it broke: {error}")),
        }
    }
    Ending::of("the connection to it broke, and as far as the cluster knows it still runs")
}
