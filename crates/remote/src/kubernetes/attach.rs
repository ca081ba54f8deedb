//! The stdin and stdout of a program in a pod, attached to over a WebSocket: what is written and read, and why it ended.
//!
//! Each message begins with the number of its stream (`v5.channel.k8s.io`, and `v4` before it).

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
const STDERR_BYTES_MAX: usize = 2048;
/// When we look why a pod ended, each time after the last: its node reports that within a second or two. Few times, because
/// many may end together.
const LOOKS_MS: [u64; 5] = [0, 250, 500, 1000, 2000];
/// Of a pod that ended in good order though we had not ended it.
const CUT_OFF: &str =
    "the connection to it ended, as in a restart of the API server, and its program with that";

/// A program's stdin, which ends when this is dropped.
pub(super) struct PodStdin {
    socket: WebSocket<Wire>,
    /// Whether stdin can end by itself, without the connection.
    half_closes: bool,
}

/// A program's stdout. Where the program is lost, reading is an error with the reason.
pub(super) struct PodStdout {
    socket: WebSocket<Wire>,
    /// What was read of stdout and not passed on.
    piece: Bytes,
    stderr: Vec<u8>,
    namespace: Namespace,
    pod: String,
}

/// What holds the connection. Dropping it ends both.
pub(super) struct ConnectionHold(Wire);

/// One connection for reader and writer, each of whom writes whole frames.
#[derive(Clone)]
struct Wire(Arc<AttachShared>);

struct AttachShared {
    stream: UnixStream,
    writing: Mutex<()>,
    /// Whether we have ended it.
    closed: AtomicBool,
}

pub(super) fn attach(
    namespace: &Namespace,
    pod: &str,
) -> Result<(PodStdin, PodStdout, ConnectionHold), Error> {
    const WHAT: &str = "to be attached to";
    let (stream, path) = namespace.attach_point(pod)?;
    let broken = |error: io::Error| namespace.unreachable(format!("{WHAT}: {error}"));
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
    /// All of it, so that no frame is in another.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _writing = self
            .0
            .writing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
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

impl PodStdin {
    fn send(&mut self, stream: u8, bytes: &[u8]) -> io::Result<()> {
        let message = [&[stream][..], bytes].concat();
        self.socket
            .send(Message::Binary(message.into()))
            .map_err(|error| match error {
                SocketError::Io(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    io::Error::new(io::ErrorKind::TimedOut, "it takes nothing in any more")
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
        // A connection that has ended by now is as good.
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
                // How it ended is asked for where it matters.
                _ => {}
            }
        }
        let count = self.piece.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.piece.split_to(count));
        Ok(count)
    }
}

impl PodStdout {
    /// The end, which is an error where we did not ask for it.
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

/// Why a pod ended, as far as that can be found out.
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
            Ok(None) => return PodEnding::of("somebody deleted the pod"),
            Err(error) => return PodEnding::of(format!("the connection to it broke: {error}")),
        }
    }
    PodEnding::of("the connection to it broke, and as far as the cluster knows it still runs")
}

// The user's own `kubectl`, as SSH is the user's own `ssh`: it reads the kubeconfig, asks credential plugins, speaks TLS, goes through
// proxies. One `kubectl proxy` for each context passes our requests on, over a socket that has no name.

/// How long `kubectl proxy` may take to say that it listens. It connects to nothing before the first request.
const START_MAX: Timespec = Timespec {
    tv_sec: 20,
    tv_nsec: 0,
};
/// The same for reading its own configuration, which connects to nothing at all.
const VIEW_PATIENCE: Duration = Duration::from_secs(20);
/// Where a pod finds the namespace that it runs in.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// What a kubeconfig says of a cluster.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cluster {
    /// Address of the API server.
    pub server: String,
    /// Namespace where none is named.
    pub namespace: String,
    /// Name of the context; `None` in a pod without a kubeconfig.
    pub context: Option<String>,
}

/// The cluster of a context of the kubeconfig; without a kubeconfig, the cluster whose pod we are.
pub(super) fn cluster(context: Option<&str>) -> Result<Cluster, Error> {
    let view = machine::run(
        Command::new("kubectl").args(["config", "view", "--output=json"]),
        VIEW_PATIENCE,
    );
    let late = || {
        unusable(format!(
            "kubectl config view: no answer within {} s",
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
    let none =
        "no Kubernetes cluster is known here: the kubeconfig has no context, and this is no pod";
    let hint = "KUBECONFIG names the file, or it is ~/.kube/config; kubectl cluster-info uses the same one";
    let server =
        std::env::var("KUBERNETES_SERVICE_HOST").map_err(|_| Error::new(none).help(hint))?;
    let namespace = fs::read_to_string(OWN_NAMESPACE).unwrap_or_else(|_| "default".to_owned());
    Ok(Cluster {
        server: format!("https://{server}"),
        namespace,
        context: None,
    })
}

/// `None` where it has no contexts at all and none is asked for. What a kubeconfig leaves out, or gives as null, is empty.
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
            true => "it has no contexts at all".to_owned(),
            false => format!("it has {}", known.join(", ")),
        };
        return Err(Error::new(format!("the kubeconfig has no context {name:?}")).help(hint));
    };
    let cluster = text(&entry["context"]["cluster"]);
    let found = all("clusters")
        .iter()
        .find(|one| one["name"] == cluster.as_str());
    let missing = || {
        unusable(format!(
            "context {name:?} names the cluster {cluster:?}, which it does not have"
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

/// A `kubectl proxy`. Dropping it ends the process.
#[derive(Debug)]
pub(super) struct Proxy {
    /// The inode of its socket. The name is gone: nobody else gets in, and nothing stays on disk.
    socket: File,
    errors: LastLines,
    /// Closed, its next line would end it.
    _stdout: BufReader<ChildStdout>,
    /// Dropped, it ends the process.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Those that live, by context.
static PROXIES: Mutex<BTreeMap<Option<String>, Weak<Proxy>>> = Mutex::new(BTreeMap::new());

impl Proxy {
    /// The one of a context, started if there is none.
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
        // Gone with this function.
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
                "kubectl proxy does not start: {}",
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

    /// A connection through it to the API server.
    pub fn connect(&self) -> io::Result<UnixStream> {
        let inode = format!("/proc/self/fd/{}", self.socket.as_raw_fd());
        UnixStream::connect(inode).map_err(|error| {
            let words = last(&self.errors.lines());
            io::Error::new(
                error.kind(),
                format!("kubectl proxy has ended: {words} ({error})"),
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
    // Its own default refuses to attach, because everyone who reaches a port could; this socket is ours alone.
    command
        .args(["proxy", "--reject-paths=^$"])
        .arg(format!("--unix-socket={}", socket.display()));
    // A Ctrl-C is for us: to end a run in good order takes the cluster.
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

/// Starts a process on a thread that lives as long: the kernel ends it with the thread that started it, and so with us, however we end.
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
                started.send(pipes.ok_or_else(|| io::Error::other("it has no stdout or stderr")));
            // An error is what is waited for: the other end is gone.
            let _ = stopped.recv();
            let _ = child.kill();
            let _ = child.wait();
        })?;
    let pipes = starts.recv().map_err(io::Error::other)??;
    Ok((stop, thread, pipes))
}

fn not_started(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::new("kubectl is missing here").help(
            "Proofload reaches clusters by kubectl, as it reaches hosts by ssh: https://kubernetes.io/docs/tasks/tools/",
        ),
        _ => unusable(format!("kubectl does not start: {error}")),
    }
}

fn unusable(why: impl std::fmt::Display) -> Error {
    Error::new(format!("the kubeconfig cannot be used: {why}"))
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
            error.contains(r#"context "b" names the cluster "x""#),
            "{error}"
        );
        let error = of(text, Some("prod")).unwrap_err();
        assert_eq!(error.to_string(), "the kubeconfig has no context \"prod\"");
        assert_eq!(error.hint(), Some("it has a, b"));
        let empty = r#"{"clusters": null, "contexts": null, "current-context": ""}"#;
        assert_eq!(of(empty, None).unwrap(), None);
        assert_eq!(
            of(empty, Some("a")).unwrap_err().hint(),
            Some("it has no contexts at all")
        );
    }
}
