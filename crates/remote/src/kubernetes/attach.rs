//! Stdin and stdout of a program in a pod, attached to over a WebSocket, and the reason why the program
//! ended.
//!
//! Each message begins with its stream number (`v5.channel.k8s.io`, and `v4` before it).

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStderr, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::process::{Signal, set_parent_process_death_signal};
use serde_json::Value;
use tungstenite::client::{ClientRequestBuilder, client_with_config};
use tungstenite::handshake::HandshakeError;
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Bytes, Error as SocketError, Message, WebSocket};

use crate::Error;
use crate::channel::{LastLines, last};
use crate::kubernetes::api::{Namespace, late};
use crate::kubernetes::pods::{self, PodEnding};

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
/// Version 5 only: closes the stream whose number follows.
const CLOSE: u8 = 255;
const V4: &str = "v4.channel.k8s.io";
const V5: &str = "v5.channel.k8s.io";

const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Timeout for a pod to accept data. The program reads at once, so a pod that accepts nothing is gone.
const WRITE_MAX: Duration = Duration::from_secs(3);
const PIECE_BYTES: usize = 64 << 10;
/// Maximum message size. Nodes send messages of a few kilobytes.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
const STDERR_BYTES_MAX: usize = 2048;
/// Pauses before each query of why a pod ended. Its node reports the reason within a second or two. There are
/// few queries, because many pods may end at the same time.
const LOOKS_MS: [u64; 5] = [0, 250, 500, 1000, 2000];
/// Reported if a pod exited with code 0 although this side did not close its stdin.
const CUT_OFF: &str =
    "the connection closed (did the API server restart?), which ended the program in the pod";

/// Stdin of a program. Dropping it closes stdin.
pub(super) struct PodStdin {
    socket: WebSocket<Wire>,
    /// Whether stdin can be closed without closing the connection.
    half_closes: bool,
}

/// Stdout of a program. If the program is lost, reading fails with the reason.
pub(super) struct PodStdout {
    socket: WebSocket<Wire>,
    /// Received stdout that has not been returned to the reader yet.
    piece: Bytes,
    stderr: Vec<u8>,
    namespace: Namespace,
    pod: String,
}

/// Owns the connection. Dropping it closes stdin and stdout.
pub(super) struct ConnectionHold(Wire);

/// A connection shared by reader and writer. Both write whole frames.
#[derive(Clone)]
struct Wire(Arc<AttachShared>);

struct AttachShared {
    stream: UnixStream,
    writing: Mutex<()>,
    /// Whether this side has closed stdin or the connection.
    closed: AtomicBool,
}

pub(super) fn attach(
    namespace: &Namespace,
    pod: &str,
) -> Result<(PodStdin, PodStdout, ConnectionHold), Error> {
    const WHAT: &str = "attach to the pod";
    let (stream, path) = namespace.attach_point(pod)?;
    let broken = |error: io::Error| namespace.unreachable(format!("cannot {WHAT}: {error}"));
    stream.set_read_timeout(Some(CONNECT_MAX)).map_err(broken)?;
    stream.set_write_timeout(Some(WRITE_MAX)).map_err(broken)?;
    let wire = Wire(Arc::new(AttachShared {
        stream,
        writing: Mutex::new(()),
        closed: AtomicBool::new(false),
    }));
    let uri = format!("ws://localhost{path}")
        .parse()
        .map_err(|error| broken(io::Error::other(error)))?;
    let request = ClientRequestBuilder::new(uri)
        .with_sub_protocol(V5)
        .with_sub_protocol(V4);
    let limits = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    let (socket, response) =
        client_with_config(request, wire.clone(), Some(limits)).map_err(|error| match error {
            HandshakeError::Failure(SocketError::Http(response)) => {
                let body = response.body().as_deref().unwrap_or_default();
                namespace.refused(WHAT, response.status().as_u16(), body)
            }
            HandshakeError::Failure(error) => broken(io::Error::other(error)),
            HandshakeError::Interrupted(_) => broken(late()),
        })?;
    wire.0.stream.set_read_timeout(None).map_err(broken)?;
    let half_closes = response
        .headers()
        .get("sec-websocket-protocol")
        .is_some_and(|protocol| protocol == V5);
    let input = PodStdin {
        socket: WebSocket::from_raw_socket(wire.clone(), Role::Client, Some(limits)),
        half_closes,
    };
    let (namespace, pod) = (namespace.clone(), pod.to_owned());
    let (piece, stderr) = (Bytes::new(), Vec::new());
    let output = PodStdout {
        socket,
        piece,
        stderr,
        namespace,
        pod,
    };
    Ok((input, output, ConnectionHold(wire)))
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.0.stream).read(buffer)
    }
}

impl Write for Wire {
    /// Writes all bytes, so that frames are not interleaved.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _writing = self
            .0
            .writing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        (&self.0.stream).write_all(bytes).inspect_err(|_| {
            // The other side could not parse anything after a partial frame.
            let _ = self.0.stream.shutdown(Shutdown::Both);
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl PodStdin {
    fn send(&mut self, stream: u8, bytes: &[u8]) -> io::Result<()> {
        let message = [&[stream][..], bytes].concat();
        self.socket
            .send(Message::Binary(message.into()))
            .map_err(|error| match error {
                SocketError::Io(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    io::Error::new(io::ErrorKind::TimedOut, "it no longer accepts data")
                }
                SocketError::Io(error) => error,
                _ => io::ErrorKind::BrokenPipe.into(),
            })
    }
}

impl Write for PodStdin {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(PIECE_BYTES);
        self.send(STDIN, &bytes[..count])?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for PodStdin {
    fn drop(&mut self) {
        self.socket.get_ref().0.closed.store(true, Ordering::SeqCst);
        // An error is ignored, because the connection has then already ended.
        if !self.half_closes || self.send(CLOSE, &[STDIN]).is_err() {
            let _ = self.socket.get_ref().0.stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for ConnectionHold {
    fn drop(&mut self) {
        self.0.0.closed.store(true, Ordering::SeqCst);
        let _ = self.0.0.stream.shutdown(Shutdown::Both);
    }
}

impl Read for PodStdout {
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
                    self.stderr
                        .drain(..self.stderr.len().saturating_sub(STDERR_BYTES_MAX));
                }
                // Other streams are ignored: `end` queries how the program ended.
                _ => {}
            }
        }
        let count = self.piece.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.piece.split_to(count));
        Ok(count)
    }
}

impl PodStdout {
    /// Returns 0 if this side closed the connection, and an error with the reason otherwise.
    fn end(&self) -> io::Result<usize> {
        let is_closed = || self.socket.get_ref().0.closed.load(Ordering::SeqCst);
        if is_closed() {
            return Ok(0);
        }
        let ending = explanation(&self.namespace, &self.pod, &is_closed);
        let words = match ending.well {
            true => CUT_OFF.to_owned(),
            false => {
                let begin = if self.stderr.len() == STDERR_BYTES_MAX {
                    "…"
                } else {
                    ""
                };
                ending.words(&format!("{begin}{}", String::from_utf8_lossy(&self.stderr)))
            }
        };
        Err(io::Error::new(io::ErrorKind::ConnectionAborted, words))
    }
}

/// Why a pod ended, as far as the cluster reports it.
fn explanation(namespace: &Namespace, pod: &str, is_unwanted: &dyn Fn() -> bool) -> PodEnding {
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
            Ok(None) => return PodEnding::of("the pod was deleted"),
            Err(error) => return PodEnding::of(format!("the connection broke: {error}")),
        }
    }
    PodEnding::of("the connection broke; the cluster reports the pod as still running")
}

// Uses the user's `kubectl`, as the SSH transport uses the user's `ssh`. It reads the kubeconfig, runs
// credential plugins, does TLS and connects through proxies. One `kubectl proxy` for each context forwards
// requests over a Unix socket without a name.

/// Timeout for `kubectl proxy` to report that it listens. It makes no connection before the first request.
const START_MAX: Timespec = Timespec {
    tv_sec: 20,
    tv_nsec: 0,
};
/// Timeout for `kubectl` to print its configuration, which makes no connection at all.
const VIEW_PATIENCE: Duration = Duration::from_secs(20);
/// File in a pod with the namespace that the pod runs in.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// A cluster as configured in a kubeconfig.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cluster {
    /// Address of the API server.
    pub server: String,
    /// Namespace to use if the plan has none.
    pub namespace: String,
    /// Name of the context. `None` in a pod without a kubeconfig.
    pub context: Option<String>,
}

/// Returns the cluster of a context of the kubeconfig. Without a kubeconfig, returns the cluster in which
/// this program runs as a pod.
pub(super) fn cluster(context: Option<&str>) -> Result<Cluster, Error> {
    let view = machine::run(
        Command::new("kubectl").args(["config", "view", "--output=json"]),
        VIEW_PATIENCE,
    );
    let late = || {
        unusable(format!(
            "kubectl config view: no output within {} s",
            VIEW_PATIENCE.as_secs()
        ))
    };
    let view = view.map_err(not_started)?.ok_or_else(late)?;
    if !view.status.success() {
        return Err(unusable(String::from_utf8_lossy(&view.stderr).trim()));
    }
    let config: Value = serde_json::from_slice(&view.stdout)
        .map_err(|error| unusable(format!("kubectl config view: {error}")))?;
    if let Some(cluster) = cluster_of(&config, context)? {
        return Ok(cluster);
    }
    let none = "no Kubernetes cluster found: the kubeconfig has no contexts, and Proofload does not run in a pod";
    let hint = "set KUBECONFIG to the kubeconfig, or create ~/.kube/config; check with: kubectl cluster-info";
    let server =
        std::env::var("KUBERNETES_SERVICE_HOST").map_err(|_| Error::new(none).help(hint))?;
    let namespace = fs::read_to_string(OWN_NAMESPACE).unwrap_or_else(|_| "default".to_owned());
    Ok(Cluster {
        server: format!("https://{server}"),
        namespace,
        context: None,
    })
}

/// Returns `None` if the kubeconfig has no contexts and `context` is `None`. Missing and null fields are read
/// as empty.
fn cluster_of(config: &Value, context: Option<&str>) -> Result<Option<Cluster>, Error> {
    let all = |list: &str| {
        config[list]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
    };
    let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
    let (contexts, current) = (all("contexts"), text(&config["current-context"]));
    let name = context.unwrap_or(&current);
    if context.is_none() && contexts.is_empty() {
        return Ok(None);
    }
    let Some(entry) = contexts.iter().find(|entry| entry["name"] == name) else {
        let known: Vec<String> = contexts.iter().map(|entry| text(&entry["name"])).collect();
        let hint = match known.is_empty() {
            true => "the kubeconfig has no contexts".to_owned(),
            false => format!("known contexts: {}", known.join(", ")),
        };
        return Err(Error::new(format!("the kubeconfig has no context {name:?}")).help(hint));
    };
    let cluster = text(&entry["context"]["cluster"]);
    let found = all("clusters")
        .iter()
        .find(|one| one["name"] == cluster.as_str());
    let missing = || {
        unusable(format!(
            "context {name:?} refers to cluster {cluster:?}, which is not in the kubeconfig"
        ))
    };
    let server = text(&found.ok_or_else(missing)?["cluster"]["server"]);
    let namespace = entry["context"]["namespace"]
        .as_str()
        .unwrap_or("default")
        .to_owned();
    let server = server.trim_end_matches('/').to_owned();
    Ok(Some(Cluster {
        server,
        namespace,
        context: Some(name.to_owned()),
    }))
}

/// A `kubectl proxy` process. Dropping this value ends the process.
#[derive(Debug)]
pub(super) struct Proxy {
    /// Inode of the proxy's socket. Its name has been removed: no other process can connect, and no file
    /// remains.
    socket: File,
    errors: LastLines,
    /// Stays open, because writing its next line to a closed pipe would end `kubectl`.
    _stdout: BufReader<ChildStdout>,
    /// Dropping it ends the process.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Running proxies by context.
static PROXIES: Mutex<BTreeMap<Option<String>, Weak<Proxy>>> = Mutex::new(BTreeMap::new());

impl Proxy {
    /// Returns the running proxy of a context, or starts one.
    pub fn of(context: Option<&str>) -> Result<Arc<Proxy>, Error> {
        let mut proxies = PROXIES.lock().unwrap_or_else(PoisonError::into_inner);
        let context = context.map(str::to_owned);
        let living = proxies
            .get(&context)
            .and_then(Weak::upgrade)
            .filter(|proxy| proxy.connect().is_ok());
        let proxy = living.map_or_else(|| Proxy::start(context.as_deref()).map(Arc::new), Ok)?;
        proxies.insert(context, Arc::downgrade(&proxy));
        Ok(proxy)
    }

    fn start(context: Option<&str>) -> Result<Proxy, Error> {
        // The folder is removed when this function returns.
        let folder = machine::temporary_folder().map_err(not_started)?;
        let path = folder.path().join("api");
        let (stop, thread, (stdout, stderr)) =
            spawn(command(context, &path)).map_err(not_started)?;
        let errors = LastLines::of(stderr).map_err(not_started)?;
        let mut stdout = BufReader::new(stdout);
        let ready = poll(
            &mut [PollFd::new(stdout.get_ref(), PollFlags::IN)],
            Some(&START_MAX),
        );
        let mut line = String::new();
        if !ready.is_ok_and(|ready| ready > 0)
            || !stdout.read_line(&mut line).is_ok_and(|bytes| bytes > 0)
        {
            drop(stop);
            return Err(unusable(format!(
                "kubectl proxy did not start: {}",
                last(&errors.lines())
            )));
        }
        let inode = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::PATH.bits().cast_signed())
            .open(&path);
        let socket = inode.map_err(not_started)?;
        Ok(Proxy {
            socket,
            errors,
            _stdout: stdout,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Connects to the API server through the proxy.
    pub fn connect(&self) -> io::Result<UnixStream> {
        let inode = format!("/proc/self/fd/{}", self.socket.as_raw_fd());
        UnixStream::connect(inode).map_err(|error| {
            let words = last(&self.errors.lines());
            io::Error::new(
                error.kind(),
                format!("kubectl proxy has exited: {words} ({error})"),
            )
        })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop = None;
        self.thread.take().map(JoinHandle::join);
    }
}

fn command(context: Option<&str>, socket: &Path) -> Command {
    let mut command = Command::new("kubectl");
    command.args(context.map(|context| format!("--context={context}")));
    // By default `kubectl proxy` rejects attach requests, because a port is open to everyone who reaches it.
    // This socket is only open to this process.
    command
        .args(["proxy", "--reject-paths=^$"])
        .arg(format!("--unix-socket={}", socket.display()));
    // Keeps Ctrl-C from `kubectl`, because ending a run in good order still needs the cluster.
    command.process_group(0);
    // SAFETY: prctl(2) is async-signal-safe, and the closure does nothing else.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

type StartedChild = (Sender<()>, JoinHandle<()>, (ChildStdout, ChildStderr));

/// Starts a process on a thread that lives as long as the process. The kernel kills the process when that
/// thread ends, and so also when this program ends in any way.
fn spawn(mut command: Command) -> io::Result<StartedChild> {
    let ((started, starts), (stop, stopped)) = (channel(), channel::<()>());
    let thread = std::thread::Builder::new()
        .name("kubectl".into())
        .spawn(move || {
            let mut child = match command.spawn() {
                Ok(child) => child,
                Err(error) => return drop(started.send(Err(error))),
            };
            let pipes = child.stdout.take().zip(child.stderr.take());
            let _ =
                started.send(pipes.ok_or_else(|| io::Error::other("stdout or stderr is missing")));
            // Returns an error when `stop` is dropped, which is the signal to end.
            let _ = stopped.recv();
            let _ = child.kill();
            let _ = child.wait();
        })?;
    let pipes = starts.recv().map_err(io::Error::other)??;
    Ok((stop, thread, pipes))
}

fn not_started(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::new("kubectl not found").help(
            "install kubectl, which Proofload uses to connect to clusters: https://kubernetes.io/docs/tasks/tools/",
        ),
        _ => Error::new(format!("cannot start kubectl: {error}")),
    }
}

fn unusable(why: impl std::fmt::Display) -> Error {
    Error::new(format!("cannot use the kubeconfig: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_leads_to_its_server_and_namespace_and_an_unknown_one_to_those_that_exist() {
        let text = r#"{"kind": "Config", "current-context": "b", "users": null,
            "clusters": [{"name": "c", "cluster": {"server": "https://c:6443/"}}],
            "contexts": [{"name": "a", "context": {"cluster": "c", "namespace": "n"}}, {"name": "b", "context": {"cluster": "x"}}]}"#;
        let of = |text: &str, context| cluster_of(&serde_json::from_str(text).unwrap(), context);
        let found = of(text, Some("a")).unwrap();
        assert_eq!(
            found,
            Some(Cluster {
                server: "https://c:6443".into(),
                namespace: "n".into(),
                context: Some("a".into())
            })
        );
        let error = of(text, None).unwrap_err().to_string();
        assert!(
            error.contains(r#"context "b" refers to cluster "x""#),
            "{error}"
        );
        let error = of(text, Some("prod")).unwrap_err();
        assert_eq!(error.to_string(), "the kubeconfig has no context \"prod\"");
        assert_eq!(error.hint(), Some("known contexts: a, b"));
        let empty = r#"{"clusters": null, "contexts": null, "current-context": ""}"#;
        assert_eq!(of(empty, None).unwrap(), None);
        assert_eq!(
            of(empty, Some("a")).unwrap_err().hint(),
            Some("the kubeconfig has no contexts")
        );
    }
}
