//! The agent in the Node.js processes of a service: the file that they load, and Proofload's side of the
//! protocol.
//!
//! ```text
//! service ──NODE_OPTIONS──► agent.cjs ──hello──►  AgentHost
//!                                    ◄──arm────      │ a socket in a private folder,
//!                                    ──armed──►      │ a thread that listens
//!                                    ◄──disarm─      │
//!                                    ──captured►     ▼
//! ```
//!
//! Every wait has a timeout, and agents are not trusted: they are code in unknown processes. Failures are
//! reported as text. This module does not know what a capture is for.

mod message;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use machine::process::Stat;
use message::{AgentMessage, Captured};
pub use message::{Role, ThreadAgent};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::socket_peercred;
use serde::Serialize;
use serde_json::json;

use crate::bell::Bell;
use crate::link::Lasting;
use crate::marker::{HeldFolder, Marker, scratch_directory};
use crate::message::{Scratch, WardenSpec};

/// Source code of the agent.
const AGENT: &str = include_str!("../../../agent/agent.cjs");
/// File names of the agent and the socket in the folder.
const AGENT_NAME: &str = "agent.cjs";
const SOCKET_NAME: &str = "agent.sock";
/// The variable with the socket's path.
const VARIABLE: &str = "PROOFLOAD_AGENT";
/// The variable by which Node.js loads the agent.
const NODE_OPTIONS: &str = "NODE_OPTIONS";
/// Timeout for an agent's response. Starting a profile stalls a process for 20 ms to 2 s, and a busy process
/// responds only when its work is done.
const PATIENCE: Duration = Duration::from_secs(10);

/// Requested kind of capture, as serialized in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
#[allow(missing_docs)]
pub enum CaptureOrder {
    /// JavaScript stacks, sampled at this interval.
    Cpu { interval_us: u32 },
    /// Sampled allocations that are still alive.
    Heap,
    /// Counters of Node.js.
    Counters,
}

/// Result of a capture.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentTake {
    /// Requests that were answered during the capture, if the agent counts them.
    pub requests: Option<u64>,
    /// File of the profile, and its size.
    pub file: Option<(PathBuf, u64)>,
    /// Counters as the agent reports them.
    pub counters: Option<serde_json::Value>,
    /// Reasons why the agent could not do something.
    pub notes: Vec<String>,
}

/// A capture in progress. [`AgentHost::disarm`] ends it.
#[derive(Debug)]
#[must_use = "agents capture until they are disarmed"]
pub struct Arming {
    order: u64,
    wanted: CaptureOrder,
    /// For each agent, whether its capture has started.
    agents: Vec<AgentTold<()>>,
}

/// Number of an agent's connection, the file of its profile, and the result of an order.
type AgentTold<T> = (usize, Option<PathBuf>, Result<T, String>);

/// Proofload's endpoint for the agents of one service. Clones share it, and dropping the last clone removes
/// the folder.
#[derive(Debug, Clone)]
pub struct AgentHostFolder(Arc<AgentFolder>);

#[derive(Debug)]
struct AgentFolder {
    book: Arc<Bell<Book>>,
    folder: PathBuf,
    /// Declared before the folder in which it listens, to be dropped first.
    _listener: Lasting,
    _held: HeldFolder,
}

impl AgentHostFolder {
    /// Creates a private folder with the agent and a socket, and listens on it.
    ///
    /// # Errors
    /// Any error of the system.
    pub fn new() -> io::Result<Self> {
        let folder = scratch_directory(&Marker::new());
        let files = vec![(AGENT_NAME.to_owned(), AGENT.to_owned())];
        // Created first, so that a later failure leaves nothing behind.
        let held = HeldFolder::create(&Scratch {
            directory: folder.clone(),
            files,
        })?;
        let socket = UnixListener::bind(folder.join(SOCKET_NAME))?;
        socket.set_nonblocking(true)?;
        let book = Arc::new(Bell::default());
        let heard = Arc::clone(&book);
        let listener = Lasting::spawn("agents", move |life| listen(&socket, &life, &heard))?;
        Ok(Self(Arc::new(AgentFolder {
            book,
            folder,
            _listener: listener,
            _held: held,
        })))
    }

    /// Sets the variables by which a service's Node.js processes load the agent and find the socket.
    pub(crate) fn enter(&self, spec: &mut WardenSpec) {
        let of = |name: &str| self.0.folder.join(name).display().to_string();
        let own = spec.env.iter().rev().find(|(name, _)| name == NODE_OPTIONS);
        let own = own.map(|(_, value)| value.as_str());
        spec.set(NODE_OPTIONS, message::with_require(&of(AGENT_NAME), own));
        spec.set(VARIABLE, of(SOCKET_NAME));
    }

    /// Sets the process below which the service's processes are. Other processes are ignored.
    pub(crate) fn belongs_to(&self, warden: u32) {
        self.0.book.change(|book| book.owner = Some(warden));
    }

    /// Connected agents, by process and thread.
    pub fn agents(&self) -> Vec<ThreadAgent> {
        let present = present(&self.0.book.lock());
        let mut agents: Vec<ThreadAgent> = present.into_iter().map(|(_, agent)| agent).collect();
        agents.sort_by_key(|agent| (agent.pid, agent.thread));
        agents
    }

    /// Waits at most `patience` for an agent that is not a tool. Returns whether there is one.
    pub fn wait_for_agents(&self, patience: Duration, cancelled: &dyn Fn() -> bool) -> bool {
        let is_there = |book: &mut Book| {
            present(book)
                .iter()
                .any(|(_, agent)| agent.role != Role::Tool)
        };
        self.0
            .book
            .wait(patience, cancelled, |book| is_there(book).then_some(()))
            .is_some()
    }

    /// Descriptions of unexpected messages from agents.
    pub fn notes(&self) -> Vec<String> {
        self.0.book.lock().notes.clone()
    }

    /// Starts a capture in all agents except tools, and waits for it at most 10 s. `file` returns the
    /// absolute path of each agent's profile, in an existing folder. [`AgentHost::disarm`] reports captures
    /// that could not be started.
    pub fn arm(
        &self,
        wanted: CaptureOrder,
        file: &dyn Fn(&ThreadAgent) -> PathBuf,
        cancelled: &dyn Fn() -> bool,
    ) -> Arming {
        let (order, agents) = self.0.book.change(|book| {
            book.last_order += 1;
            let order = book.last_order;
            let told = present(book)
                .into_iter()
                .filter(|(_, agent)| agent.role != Role::Tool);
            let tell = |(number, agent): (usize, ThreadAgent)| {
                let file = (wanted != CaptureOrder::Counters).then(|| file(&agent));
                let peer = &mut book.peers[number];
                peer.responses.clear();
                let sent =
                    arm_line(order, wanted, file.as_deref()).and_then(|line| peer.send(&line));
                (number, file, sent)
            };
            (order, told.map(tell).collect())
        });
        Arming {
            order,
            wanted,
            agents: self.responses("begin", agents, AgentPeer::armed, cancelled),
        }
    }

    /// Ends a capture and waits for the results at most 10 s. Returns one result for each agent of the
    /// capture, by process and thread.
    pub fn disarm(
        &self,
        arming: Arming,
        cancelled: &dyn Fn() -> bool,
    ) -> Vec<(ThreadAgent, Result<AgentTake, String>)> {
        let Arming {
            order,
            wanted,
            agents,
        } = arming;
        let line = format!("{}\n", json!({ "type": "disarm", "id": order }));
        {
            let book = self.0.book.lock();
            for (number, ..) in &agents {
                // Sent also to agents that never confirmed the start, because they may have started later. An
                // agent that cannot be reached has ended.
                let _ = book.peers[*number].send(&line);
            }
        }
        let came = self.responses("end", agents, AgentPeer::captured, cancelled);
        let book = self.0.book.lock();
        let come = |(number, file, came): AgentTold<Captured>| {
            let agent = book.peers[number].agent.clone()?;
            Some((
                agent,
                came.and_then(|captured| take(wanted, captured, file)),
            ))
        };
        let mut came: Vec<(ThreadAgent, Result<AgentTake, String>)> =
            came.into_iter().filter_map(come).collect();
        came.sort_by_key(|(agent, _)| (agent.pid, agent.thread));
        came
    }

    /// Waits for the expected responses, and replaces each entry with the response or the reason why there is
    /// none.
    fn responses<T>(
        &self,
        doing: &str,
        agents: Vec<AgentTold<()>>,
        response: fn(&AgentPeer) -> AgentReply<T>,
        cancelled: &dyn Fn() -> bool,
    ) -> Vec<AgentTold<T>> {
        self.0.book.wait(PATIENCE, cancelled, |book| {
            let is_there = |(number, _, expected): &AgentTold<()>| {
                expected.is_err() || response(&book.peers[*number]).is_some()
            };
            agents.iter().all(is_there).then_some(())
        });
        let book = self.0.book.lock();
        let silent = || {
            Err(format!(
                "it did not {doing} the capture within {} s",
                PATIENCE.as_secs()
            ))
        };
        let heard = |(number, file, expected): AgentTold<()>| {
            let heard =
                expected.and_then(|()| response(&book.peers[number]).unwrap_or_else(silent));
            (number, file, heard)
        };
        agents.into_iter().map(heard).collect()
    }
}

/// Agents that have introduced themselves and are still connected, with the numbers of their connections.
fn present(book: &Book) -> Vec<(usize, ThreadAgent)> {
    let peers = book
        .peers
        .iter()
        .enumerate()
        .filter(|(_, peer)| peer.stream.is_some());
    peers
        .filter_map(|(number, peer)| Some((number, peer.agent.clone()?)))
        .collect()
}

fn arm_line(order: u64, wanted: CaptureOrder, file: Option<&Path>) -> Result<String, String> {
    let mut line = json!(wanted);
    (line["type"], line["id"]) = (json!("arm"), json!(order));
    if let Some(file) = file {
        let text = file
            .to_str()
            .ok_or_else(|| format!("{}: its path is not UTF-8", file.display()))?;
        line["file"] = json!(text);
    }
    Ok(format!("{line}\n"))
}

/// Validates what an agent reports about its capture.
fn take(
    wanted: CaptureOrder,
    captured: Captured,
    file: Option<PathBuf>,
) -> Result<AgentTake, String> {
    let file = match file {
        None => None,
        Some(asked) if captured.file.as_ref() != Some(&asked) => {
            return Err("it wrote a different file than requested".to_owned());
        }
        Some(asked) => match fs::symlink_metadata(&asked) {
            Ok(data) if data.is_file() && data.len() > 0 => Some((asked, data.len())),
            Ok(_) => return Err(format!("{} is empty", asked.display())),
            Err(error) => return Err(format!("{} was not written: {error}", asked.display())),
        },
    };
    if wanted == CaptureOrder::Counters && captured.counters.is_none() {
        return Err("it sent no counters".to_owned());
    }
    let Captured {
        requests,
        counters,
        notes,
        ..
    } = captured;
    Ok(AgentTake {
        requests,
        file,
        counters,
        notes,
    })
}

// Shared state of all agents: filled by the listening thread, read by captures.
//
// It stores little of each agent and of a limited number of agents. It never waits for an agent.

/// Maximum number of notes. Further notes would repeat earlier ones.
const NOTES_MAX: usize = 32;
/// Maximum number of responses of one agent to an order: that it is armed, and the result.
const RESPONSES_MAX: usize = 2;
/// Maximum number of messages of one agent. Each capture takes a few messages, and there are few captures.
const MESSAGES_MAX: u32 = 1000;

/// State of all agents.
#[derive(Debug, Default)]
struct Book {
    /// The process below which the service's processes are. `None` until it is started.
    pub owner: Option<u32>,
    pub peers: Vec<AgentPeer>,
    pub notes: Vec<String>,
    /// Number of the last order.
    pub last_order: u64,
}

/// A connection to an agent.
#[derive(Debug, Default)]
struct AgentPeer {
    /// Process number as the kernel reports it.
    pub pid: u32,
    /// `None` before its first message.
    pub agent: Option<ThreadAgent>,
    /// `None` once the connection is closed.
    pub stream: Option<Arc<UnixStream>>,
    /// An incomplete line.
    pending: Vec<u8>,
    /// Responses to the last order.
    pub responses: Vec<AgentMessage>,
    messages: u32,
}

/// An agent's response, or why it failed. `None` if there is no response yet.
type AgentReply<T> = Option<Result<T, String>>;

impl Book {
    /// Adds a connection, and returns its number.
    fn add(&mut self, pid: u32, stream: UnixStream) -> usize {
        self.peers.push(AgentPeer {
            pid,
            stream: Some(Arc::new(stream)),
            ..AgentPeer::default()
        });
        self.peers.len() - 1
    }

    /// Handles received bytes. Returns whether the connection may stay open.
    fn hear(&mut self, number: usize, bytes: &[u8]) -> bool {
        let pending = &mut self.peers[number].pending;
        pending.extend_from_slice(bytes);
        let whole = pending
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |last| last + 1);
        let rest = pending.split_off(whole);
        let lines = std::mem::replace(pending, rest);
        let is_endless = pending.len() > LINE_BYTES_MAX;
        let mut lines = lines
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let stays = lines.all(|line| self.take(number, line));
        if is_endless {
            self.note(format!(
                "an agent's line was longer than {LINE_BYTES_MAX} bytes"
            ));
        }
        stays && !is_endless
    }

    /// Handles a line. Returns whether the connection may stay open.
    fn take(&mut self, number: usize, line: &[u8]) -> bool {
        let peer = &mut self.peers[number];
        peer.messages += 1;
        let outcome = match AgentMessage::parse(line) {
            _ if peer.messages > MESSAGES_MAX => {
                Err(format!("sent more than {MESSAGES_MAX} messages"))
            }
            Ok(message) => peer.take(message, self.last_order),
            Err(reason) => Err(reason),
        };
        let stays = peer.messages <= MESSAGES_MAX;
        if let Err(reason) = outcome {
            let pid = peer.pid;
            self.note(format!(
                "what the agent in pid {pid} said was left out: {reason}"
            ));
        }
        stays
    }

    pub fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

impl AgentPeer {
    fn take(&mut self, message: AgentMessage, last_order: u64) -> Result<(), String> {
        match (message, &mut self.agent) {
            (AgentMessage::Hello { agent, .. }, unknown @ None) => {
                *unknown = Some(ThreadAgent {
                    pid: self.pid,
                    ..*agent
                });
            }
            (AgentMessage::Hello { .. }, Some(_)) => {
                return Err("it introduced itself twice".to_owned());
            }
            (_, None) => return Err("it did not introduce itself first".to_owned()),
            (AgentMessage::Role { role }, Some(agent)) => agent.role = role,
            // A response to an order that no caller waits for any more.
            (message, _) if message.order() != Some(last_order) => {}
            (_, _) if self.responses.len() >= RESPONSES_MAX => {
                return Err("it answered more than once".to_owned());
            }
            (message, Some(agent)) => {
                if let AgentMessage::Armed {
                    node_env,
                    uv_threadpool_size,
                    ..
                } = &message
                {
                    agent.node_env = node_env.clone().or(agent.node_env.take());
                    agent.uv_threadpool_size = uv_threadpool_size
                        .clone()
                        .or(agent.uv_threadpool_size.take());
                }
                self.responses.push(message);
            }
        }
        Ok(())
    }

    /// Sends a short line, which fits into the socket's buffer if the agent reads at all.
    ///
    /// # Errors
    /// The reason why it was not sent.
    pub fn send(&self, line: &str) -> Result<(), String> {
        let mut stream = self.stream.as_deref().ok_or("its connection is closed")?;
        stream
            .write_all(line.as_bytes())
            .map_err(|error| format!("it cannot be told: {error}"))
    }

    /// Whether the agent has armed the last order's capture, or why not. `None` if it has not responded yet.
    pub fn armed(&self) -> AgentReply<()> {
        self.response(|message| match message {
            AgentMessage::Armed { .. } => Some(Ok(())),
            AgentMessage::Captured(_) => Some(Err("it ended the capture by itself".to_owned())),
            AgentMessage::Failed { reason, .. } => Some(Err(reason.clone())),
            AgentMessage::Hello { .. } | AgentMessage::Role { .. } => None,
        })
    }

    /// The result of the last order. `None` if the agent has not responded yet.
    pub fn captured(&self) -> AgentReply<Captured> {
        self.response(|message| match message {
            AgentMessage::Captured(captured) => Some(Ok((**captured).clone())),
            AgentMessage::Failed { reason, .. } => Some(Err(reason.clone())),
            AgentMessage::Armed { .. } | AgentMessage::Hello { .. } | AgentMessage::Role { .. } => {
                None
            }
        })
    }

    /// The first response that `read` accepts. A disconnected agent will give none.
    fn response<T>(&self, read: impl FnMut(&AgentMessage) -> AgentReply<T>) -> AgentReply<T> {
        let gone = || {
            self.stream
                .is_none()
                .then(|| Err("it exited before the capture ended".to_owned()))
        };
        self.responses.iter().find_map(read).or_else(gone)
    }
}

// The listening thread: accepts connections from the service's processes only, and reads their lines.
//
// It answers nothing and never blocks on a connection. Lines and connections are limited.

/// Maximum length of a line. A greeting contains variables of its process, which may be long.
const LINE_BYTES_MAX: usize = 256 << 10;
/// Maximum number of connections during a service's life: the same number of workers and worker threads.
const CONNECTIONS_MAX: usize = 1024;
/// Time after which the service's process must be known.
const OWNER_PATIENCE: Duration = Duration::from_secs(5);
/// Pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of generations between a process of the service and its warden.
const GENERATIONS_MAX: usize = 64;

/// Listens until the other end of `life` is closed.
fn listen(listener: &UnixListener, life: &OwnedFd, book: &Bell<Book>) {
    loop {
        let stream =
            |(number, peer): (usize, &AgentPeer)| Some((number, Arc::clone(peer.stream.as_ref()?)));
        let open: Vec<_> = book
            .lock()
            .peers
            .iter()
            .enumerate()
            .filter_map(stream)
            .collect();
        let all = [life.as_fd(), listener.as_fd()].into_iter();
        let all = all.chain(open.iter().map(|(_, stream)| stream.as_fd()));
        let mut waiting: Vec<PollFd<'_>> = all
            .map(|one| PollFd::from_borrowed_fd(one, PollFlags::IN))
            .collect();
        match poll(&mut waiting, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        let ready: Vec<bool> = waiting
            .iter()
            .map(|one| !one.revents().is_empty())
            .collect();
        if ready[0] {
            return;
        }
        let spoke = open.iter().zip(&ready[2..]).filter(|(_, ready)| **ready);
        spoke.for_each(|((number, stream), _)| read(*number, stream, book));
        if ready[1] {
            accept(listener, book);
        }
    }
}

/// Reads from a connection.
fn read(number: usize, mut stream: &UnixStream, book: &Bell<Book>) {
    let mut buffer = [0; 16 << 10];
    let read = stream.read(&mut buffer);
    let passes =
        |error: &io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
    if read.as_ref().is_err_and(passes) {
        return;
    }
    book.change(|book| {
        let count = read.unwrap_or(0);
        if count == 0 || !book.hear(number, &buffer[..count]) {
            let peer = &mut book.peers[number];
            (peer.stream, peer.pending) = (None, Vec::new());
        }
    });
}

/// Accepts the next connection if it comes from the service.
fn accept(listener: &UnixListener, book: &Bell<Book>) {
    // Without a spare descriptor the listener would be ready again at once, in a busy loop.
    let Ok((stream, _)) = listener.accept() else {
        return thread::sleep(ACCEPT_PAUSE);
    };
    let pid = socket_peercred(&stream)
        .ok()
        .and_then(|of| u32::try_from(of.pid.as_raw_pid()).ok());
    let Some(pid) = pid.filter(|_| stream.set_nonblocking(true).is_ok()) else {
        return;
    };
    // The agent may connect before the starting thread has set the owner.
    let owner = book.wait(OWNER_PATIENCE, &|| false, |book| book.owner);
    let ours = owner.is_some_and(|owner| descends(pid, owner));
    book.change(|book| {
        if !ours {
            book.note(format!(
                "pid {pid} is not a process of the service; its connection was rejected"
            ));
        } else if book.peers.len() >= CONNECTIONS_MAX {
            book.note(format!(
                "more than {CONNECTIONS_MAX} agents connected; the others were rejected"
            ));
        } else {
            book.add(pid, stream);
        }
    });
}

/// Whether a process is a descendant of another. A parent may end between two reads and hand its children
/// over, so there are three attempts.
fn descends(pid: u32, from: u32) -> bool {
    (0..3).any(|_| {
        let parent = |pid: &u32| {
            Stat::read(*pid)
                .map(|stat| stat.ppid)
                .filter(|parent| *parent > 0)
        };
        std::iter::successors(parent(&pid), parent)
            .take(GENERATIONS_MAX)
            .any(|ancestor| ancestor == from)
    })
}

/// Handles these bytes as if an agent of the service had sent them. Panics if more of them is stored than
/// permitted.
#[cfg(fuzzing)]
pub fn hears_anything(bytes: &[u8]) {
    let (mut theirs, stream) = UnixStream::pair().expect("a pair of sockets");
    stream.set_nonblocking(true).expect("a socket of ours");
    let book = Bell::default();
    let number = book.change(|book: &mut Book| {
        book.last_order = 3;
        book.add(7, stream)
    });
    for piece in bytes.chunks(5000) {
        let stream = book.lock().peers[number].stream.clone();
        if let Some(stream) = stream.filter(|_| theirs.write_all(piece).is_ok()) {
            read(number, &stream, &book);
        }
    }
    let book = book.lock();
    let peer = &book.peers[number];
    assert!(peer.responses.len() <= RESPONSES_MAX && book.notes.len() <= NOTES_MAX);
    assert!(
        book.notes.iter().all(|note| note.len() < 1000),
        "{:?}",
        book.notes
    );
    let agents = present(&book);
    assert!(
        agents.iter().all(|(_, agent)| agent.pid == 7),
        "its process is what the kernel says"
    );
    let captured = peer.captured().and_then(Result::ok);
    let taken =
        captured.map(|captured| take(CaptureOrder::Heap, captured, Some("/dev/null".into())));
    assert!(
        taken.is_none_or(|taken| taken.is_err()),
        "no file is taken that it did not write"
    );
    let _ = peer.armed();
}
