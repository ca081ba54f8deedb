//! The user's own `kubectl`, as SSH is the user's own `ssh`: it reads the kubeconfig, asks credential plugins, speaks TLS, goes through
//! proxies. One `kubectl proxy` for each context passes our requests on, over a socket that has no name.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::Deserialize;

use super::error::ClusterError;
use crate::last_lines::{LastLines, last};

/// How long `kubectl proxy` may take to say that it listens. It connects to nothing before the first request.
const START_MAX: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };
/// Where a pod finds the namespace that it runs in.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// What a kubeconfig says of a cluster.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cluster {
    /// Address of the API server.
    pub server: String,
    /// Namespace where none is named.
    pub namespace: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Kubeconfig {
    current_context: String,
    contexts: Option<Vec<ContextEntry>>,
    clusters: Option<Vec<ClusterEntry>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContextEntry {
    name: String,
    context: Context,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Context {
    cluster: String,
    namespace: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ClusterEntry {
    name: String,
    cluster: Server,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Server {
    server: String,
}

/// The cluster of a context of the kubeconfig; without a kubeconfig, the cluster whose pod we are.
pub(super) fn cluster(context: Option<&str>) -> Result<Cluster, ClusterError> {
    let view =
        Command::new("kubectl").args(["config", "view", "--output=json"]).stdin(Stdio::null()).output();
    let view = view.map_err(not_started)?;
    if !view.status.success() {
        return Err(ClusterError::Config { why: String::from_utf8_lossy(&view.stderr).trim().to_owned() });
    }
    let config: Kubeconfig = serde_json::from_slice(&view.stdout)
        .map_err(|error| ClusterError::Config { why: format!("kubectl config view: {error}") })?;
    let own = || Cluster {
        server: format!("https://{}", std::env::var("KUBERNETES_SERVICE_HOST").unwrap_or_default()),
        namespace: fs::read_to_string(OWN_NAMESPACE).unwrap_or_else(|_| "default".to_owned()),
    };
    let is_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    match config.cluster(context)? {
        Some(cluster) => Ok(cluster),
        None if is_pod => Ok(own()),
        None => Err(ClusterError::Unknown),
    }
}

impl Kubeconfig {
    /// `None` where it has no contexts at all and none is asked for.
    fn cluster(self, context: Option<&str>) -> Result<Option<Cluster>, ClusterError> {
        let contexts = self.contexts.unwrap_or_default();
        let name = context.unwrap_or(&self.current_context);
        if context.is_none() && contexts.is_empty() {
            return Ok(None);
        }
        let Some(entry) = contexts.iter().find(|entry| entry.name == name) else {
            let known = contexts.into_iter().map(|entry| entry.name).collect();
            return Err(ClusterError::Context { name: name.to_owned(), known });
        };
        let clusters = self.clusters.unwrap_or_default();
        let found = clusters.into_iter().find(|cluster| cluster.name == entry.context.cluster);
        let missing = || ClusterError::Config {
            why: format!(
                "context {name:?} names the cluster {:?}, which it does not have",
                entry.context.cluster
            ),
        };
        let server = found.ok_or_else(missing)?.cluster.server;
        let namespace = entry.context.namespace.clone().unwrap_or_else(|| "default".to_owned());
        Ok(Some(Cluster { server: server.trim_end_matches('/').to_owned(), namespace }))
    }
}

/// A `kubectl proxy`. Dropping it ends the process.
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
    ///
    /// # Errors
    /// If there is no `kubectl`, or it does not start.
    pub fn of(context: Option<&str>) -> Result<Arc<Proxy>, ClusterError> {
        let mut proxies = PROXIES.lock().unwrap_or_else(PoisonError::into_inner);
        let context = context.map(str::to_owned);
        let living = proxies.get(&context).and_then(Weak::upgrade).filter(|proxy| proxy.connect().is_ok());
        let proxy = living.map_or_else(|| Proxy::start(context.as_deref()).map(Arc::new), Ok)?;
        proxies.insert(context, Arc::downgrade(&proxy));
        Ok(proxy)
    }

    fn start(context: Option<&str>) -> Result<Proxy, ClusterError> {
        let folder = Folder::new().map_err(not_started)?;
        let path = folder.0.join("api");
        let (stop, thread, (stdout, stderr)) = spawn(command(context, &path)).map_err(not_started)?;
        let errors = LastLines::of(stderr).map_err(not_started)?;
        let mut stdout = BufReader::new(stdout);
        let ready = poll(&mut [PollFd::new(stdout.get_ref(), PollFlags::IN)], Some(&START_MAX));
        let mut line = String::new();
        if !ready.is_ok_and(|ready| ready > 0) || !stdout.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            drop(stop);
            let why = format!("kubectl proxy does not start: {}", last(&errors.lines()));
            return Err(ClusterError::Config { why });
        }
        let inode = OpenOptions::new().read(true).custom_flags(OFlags::PATH.bits().cast_signed()).open(&path);
        let socket = inode.map_err(not_started)?;
        Ok(Proxy { socket, errors, _stdout: stdout, stop: Some(stop), thread: Some(thread) })
    }

    /// A connection through it to the API server.
    pub fn connect(&self) -> io::Result<UnixStream> {
        let inode = format!("/proc/self/fd/{}", self.socket.as_raw_fd());
        UnixStream::connect(inode).map_err(|error| {
            let words = last(&self.errors.lines());
            io::Error::new(error.kind(), format!("kubectl proxy has ended: {words} ({error})"))
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
    command.args(["proxy", "--reject-paths=^$"]).arg(format!("--unix-socket={}", socket.display()));
    // A Ctrl-C is for us: to end a run in good order takes the cluster.
    command.process_group(0);
    // SAFETY: prctl(2) is async-signal-safe, and the closure does nothing else.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

type Started = (Sender<()>, JoinHandle<()>, (ChildStdout, ChildStderr));

/// Starts a process on a thread that lives as long: the kernel ends it with the thread that started it, and so with us, however we end.
fn spawn(mut command: Command) -> io::Result<Started> {
    let ((started, starts), (stop, stopped)) = (channel(), channel::<()>());
    let thread = std::thread::Builder::new().name("kubectl".into()).spawn(move || {
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return drop(started.send(Err(error))),
        };
        let pipes = child.stdout.take().zip(child.stderr.take());
        let _ = started.send(pipes.ok_or_else(|| io::Error::other("it has no stdout or stderr")));
        // An error is what is waited for: the other end is gone.
        let _ = stopped.recv();
        let _ = child.kill();
        let _ = child.wait();
    })?;
    let pipes = starts.recv().map_err(io::Error::other)??;
    Ok((stop, thread, pipes))
}

/// A folder that only this user may enter, gone when dropped with what is in it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Folder> {
        let name = format!("proofload-{:016x}", rand::random::<u64>());
        let make = |place: &Path| {
            let path = place.join(&name);
            DirBuilder::new().mode(0o700).create(&path).map(|()| Folder(path))
        };
        // A container may have no other place to write to.
        make(&std::env::temp_dir()).or_else(|error| make(Path::new("/dev/shm")).map_err(|_| error))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn not_started(error: io::Error) -> ClusterError {
    match error.kind() {
        io::ErrorKind::NotFound => ClusterError::NoKubectl,
        _ => ClusterError::Config { why: format!("kubectl does not start: {error}") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_leads_to_its_server_and_namespace_and_an_unknown_one_to_those_that_exist() {
        let text = r#"{"kind": "Config", "current-context": "b", "users": null,
            "clusters": [{"name": "c", "cluster": {"server": "https://c:6443/"}}],
            "contexts": [{"name": "a", "context": {"cluster": "c", "namespace": "n"}}, {"name": "b", "context": {"cluster": "x"}}]}"#;
        let of = |text: &str, context| serde_json::from_str::<Kubeconfig>(text).unwrap().cluster(context);
        let found = of(text, Some("a")).unwrap();
        assert_eq!(found, Some(Cluster { server: "https://c:6443".into(), namespace: "n".into() }));
        let error = of(text, None).unwrap_err().to_string();
        assert!(error.contains(r#"context "b" names the cluster "x""#), "{error}");
        let Err(ClusterError::Context { known, .. }) = of(text, Some("prod")) else { panic!("it has none") };
        assert_eq!(known, ["a", "b"]);
        let empty = r#"{"clusters": null, "contexts": null, "current-context": ""}"#;
        assert_eq!(of(empty, None).unwrap(), None);
        assert!(matches!(of(empty, Some("a")), Err(ClusterError::Context { .. })));
    }
}
