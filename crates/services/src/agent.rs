//! The agent in the Node.js processes of a service: the file that they load, and Proofload's end of the talk with it.
//!
//! ```text
//! service ──NODE_OPTIONS──► agent.cjs ──hello──►  AgentHost
//!                                    ◄──arm────      │ a socket in a private folder,
//!                                    ──armed──►      │ a thread that listens
//!                                    ◄──disarm─      │
//!                                    ──captured►     ▼
//! ```
//!
//! Nothing here waits without end, and nothing that an agent says is believed without need: it is code in a process that we do not
//! know. What was not had is told in words. It must not know what a capture is for.

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
pub use message::{Agent, Role};
use message::{Captured, Message};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::socket_peercred;
use serde::Serialize;
use serde_json::json;

use crate::link::{Bell, Lasting};
use crate::marker::{Held, Marker, scratch_directory};
use crate::message::{Scratch, Spec};

/// The agent itself.
const AGENT: &str = include_str!("../../../agent/agent.cjs");
/// Its name in the folder, and the socket's.
const AGENT_NAME: &str = "agent.cjs";
const SOCKET_NAME: &str = "agent.sock";
/// The variable that tells it where the socket is.
const VARIABLE: &str = "PROOFLOAD_AGENT";
/// The variable by which Node.js loads it.
const NODE_OPTIONS: &str = "NODE_OPTIONS";
/// How long an agent may take to respond. To begin a profile stalls a process for 20 ms to 2 s, and one at work responds when it is done.
const PATIENCE: Duration = Duration::from_secs(10);

/// What an agent is asked to capture, as the order for it has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[allow(missing_docs)]
pub enum Wanted {
    /// Stacks of JavaScript, one in so many microseconds.
    Cpu { interval_us: u32 },
    /// What was allocated and still lives, sampled.
    Heap,
    /// Counters of Node.js.
    Counters,
}

/// What an agent captured.
#[derive(Debug, Clone, PartialEq)]
pub struct Take {
    /// Requests that were answered in the meantime, where it counts them.
    pub requests: Option<u64>,
    /// The profile's file and its size.
    pub file: Option<(PathBuf, u64)>,
    /// Counters as the agent tells them.
    pub counters: Option<serde_json::Value>,
    /// What the agent could not do, in words.
    pub notes: Vec<String>,
}

/// A capture that is under way, to be ended by [`AgentHost::disarm`].
#[derive(Debug)]
#[must_use = "agents capture until they are disarmed"]
pub struct Arming {
    order: u64,
    wanted: Wanted,
    /// Whether each has begun.
    agents: Vec<Told<()>>,
}

/// The number of an agent's connection, where its profile goes to, and what came of telling it.
type Told<T> = (usize, Option<PathBuf>, Result<T, String>);

/// Where the agents of one service find Proofload. Copies are the same one; the last one dropped removes the folder.
#[derive(Debug, Clone)]
pub struct AgentHost(Arc<Host>);

#[derive(Debug)]
struct Host {
    book: Arc<Bell<Book>>,
    folder: PathBuf,
    /// Before the folder, in which it listens.
    _listener: Lasting,
    _held: Held,
}

impl AgentHost {
    /// Makes a private folder with the agent and a socket, and listens there.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn new() -> io::Result<Self> {
        let folder = scratch_directory(&Marker::new());
        let files = vec![(AGENT_NAME.to_owned(), AGENT.to_owned())];
        // First of all, so that whatever fails below leaves nothing.
        let held = Held::create(&Scratch { directory: folder.clone(), files })?;
        let socket = UnixListener::bind(folder.join(SOCKET_NAME))?;
        socket.set_nonblocking(true)?;
        let book = Arc::new(Bell::default());
        let heard = Arc::clone(&book);
        let listener = Lasting::spawn("agents", move |life| listen(&socket, &life, &heard))?;
        Ok(Self(Arc::new(Host { book, folder, _listener: listener, _held: held })))
    }

    /// Sets the variables by which a service's Node.js processes load the agent and find the way here.
    pub(crate) fn enter(&self, spec: &mut Spec) {
        let of = |name: &str| self.0.folder.join(name).display().to_string();
        let own = spec.env.iter().rev().find(|(name, _)| name == NODE_OPTIONS);
        let own = own.map(|(_, value)| value.as_str());
        spec.set(NODE_OPTIONS, message::with_require(&of(AGENT_NAME), own));
        spec.set(VARIABLE, of(SOCKET_NAME));
    }

    /// Says below which process all of the service's are. Others are not listened to.
    pub(crate) fn belongs_to(&self, warden: u32) {
        self.0.book.change(|book| book.owner = Some(warden));
    }

    /// The agents that are there, by process and thread.
    pub fn agents(&self) -> Vec<Agent> {
        let present = present(&self.0.book.lock());
        let mut agents: Vec<Agent> = present.into_iter().map(|(_, agent)| agent).collect();
        agents.sort_by_key(|agent| (agent.pid, agent.thread));
        agents
    }

    /// Waits until an agent is there that is not a mere tool, for at most so long; whether there is one.
    pub fn wait_for_agents(&self, patience: Duration, cancelled: &dyn Fn() -> bool) -> bool {
        let is_there = |book: &mut Book| present(book).iter().any(|(_, agent)| agent.role != Role::Tool);
        self.0.book.wait(patience, cancelled, |book| is_there(book).then_some(())).is_some()
    }

    /// What was odd about what agents said, in words.
    pub fn notes(&self) -> Vec<String> {
        self.0.book.lock().notes.clone()
    }

    /// Has all agents but those of tools begin a capture, and waits until they have, for at most 10 s. `file` names the file of each
    /// one's profile, absolute; its folder must exist. What could not be begun is told by [`AgentHost::disarm`].
    pub fn arm(
        &self,
        wanted: Wanted,
        file: &dyn Fn(&Agent) -> PathBuf,
        cancelled: &dyn Fn() -> bool,
    ) -> Arming {
        let (order, agents) = self.0.book.change(|book| {
            book.last_order += 1;
            let order = book.last_order;
            let told = present(book).into_iter().filter(|(_, agent)| agent.role != Role::Tool);
            let tell = |(number, agent): (usize, Agent)| {
                let file = (wanted != Wanted::Counters).then(|| file(&agent));
                let peer = &mut book.peers[number];
                peer.responses.clear();
                let sent = arm_line(order, wanted, file.as_deref()).and_then(|line| peer.send(&line));
                (number, file, sent)
            };
            (order, told.map(tell).collect())
        });
        Arming { order, wanted, agents: self.responses("begin", agents, Peer::armed, cancelled) }
    }

    /// Ends a capture and waits for what came of it, for at most 10 s: of each agent that was to capture, by process and thread.
    pub fn disarm(&self, arming: Arming, cancelled: &dyn Fn() -> bool) -> Vec<(Agent, Result<Take, String>)> {
        let Arming { order, wanted, agents } = arming;
        let line = format!("{}\n", json!({ "type": "disarm", "id": order }));
        {
            let book = self.0.book.lock();
            for (number, ..) in &agents {
                // Also those that never said that they had begun: they may have, later. Who cannot be told has ended.
                let _ = book.peers[*number].send(&line);
            }
        }
        let came = self.responses("end", agents, Peer::captured, cancelled);
        let book = self.0.book.lock();
        let come = |(number, file, came): Told<Captured>| {
            let agent = book.peers[number].agent.clone()?;
            Some((agent, came.and_then(|captured| take(wanted, captured, file))))
        };
        let mut came: Vec<(Agent, Result<Take, String>)> = came.into_iter().filter_map(come).collect();
        came.sort_by_key(|(agent, _)| (agent.pid, agent.thread));
        came
    }

    /// Waits for what those respond of whom a response is to be expected, and puts it, or why there is none, in the place of that.
    fn responses<T>(
        &self,
        doing: &str,
        agents: Vec<Told<()>>,
        response: fn(&Peer) -> Response<T>,
        cancelled: &dyn Fn() -> bool,
    ) -> Vec<Told<T>> {
        self.0.book.wait(PATIENCE, cancelled, |book| {
            let is_there = |(number, _, expected): &Told<()>| {
                expected.is_err() || response(&book.peers[*number]).is_some()
            };
            agents.iter().all(is_there).then_some(())
        });
        let book = self.0.book.lock();
        let silent = || Err(format!("it did not {doing} the capture within {} s", PATIENCE.as_secs()));
        let heard = |(number, file, expected): Told<()>| {
            let heard = expected.and_then(|()| response(&book.peers[number]).unwrap_or_else(silent));
            (number, file, heard)
        };
        agents.into_iter().map(heard).collect()
    }
}

/// Those who have introduced themselves and are still connected, by their connections' numbers.
fn present(book: &Book) -> Vec<(usize, Agent)> {
    let peers = book.peers.iter().enumerate().filter(|(_, peer)| peer.stream.is_some());
    peers.filter_map(|(number, peer)| Some((number, peer.agent.clone()?))).collect()
}

fn arm_line(order: u64, wanted: Wanted, file: Option<&Path>) -> Result<String, String> {
    let mut line = json!(wanted);
    (line["type"], line["id"]) = (json!("arm"), json!(order));
    if let Some(file) = file {
        let text = file.to_str().ok_or_else(|| format!("{}: its path is not UTF-8", file.display()))?;
        line["file"] = json!(text);
    }
    Ok(format!("{line}\n"))
}

/// What an agent says that it captured, as far as it is so.
fn take(wanted: Wanted, captured: Captured, file: Option<PathBuf>) -> Result<Take, String> {
    let file = match file {
        None => None,
        Some(asked) if captured.file.as_ref() != Some(&asked) => {
            return Err("it wrote another file than it was told".to_owned());
        }
        Some(asked) => match fs::symlink_metadata(&asked) {
            Ok(data) if data.is_file() && data.len() > 0 => Some((asked, data.len())),
            Ok(_) => return Err(format!("{} is empty", asked.display())),
            Err(error) => return Err(format!("{} was not written: {error}", asked.display())),
        },
    };
    if wanted == Wanted::Counters && captured.counters.is_none() {
        return Err("it sent no counters".to_owned());
    }
    let Captured { requests, counters, notes, .. } = captured;
    Ok(Take { requests, file, counters, notes })
}

// What is known of agents: filled by the thread that listens, asked by whoever captures.
//
// It keeps little of each agent, and of agents only so many. It must not wait for any of them.

/// Notes that are kept: more say nothing new.
const NOTES_MAX: usize = 32;
/// Responses of one agent to an order: that it is armed, and what came of it.
const RESPONSES_MAX: usize = 2;
/// Messages of one agent: a few for each capture, of which there are a few.
const MESSAGES_MAX: u32 = 1000;

/// All that is known.
#[derive(Debug, Default)]
struct Book {
    /// The process below which all of the service's are; `None` until it is started.
    pub owner: Option<u32>,
    pub peers: Vec<Peer>,
    pub notes: Vec<String>,
    /// Number of the last order.
    pub last_order: u64,
}

/// The other end of a connection.
#[derive(Debug, Default)]
struct Peer {
    /// Its process, by the kernel's word.
    pub pid: u32,
    /// `None` before its first message.
    pub agent: Option<Agent>,
    /// `None` once the connection is closed.
    pub stream: Option<Arc<UnixStream>>,
    /// The beginning of a line.
    pending: Vec<u8>,
    /// Its responses to the last order.
    pub responses: Vec<Message>,
    messages: u32,
}

/// What an agent responded, or why it could not do it; `None`: nothing yet.
type Response<T> = Option<Result<T, String>>;

impl Book {
    /// A new connection: its number.
    fn add(&mut self, pid: u32, stream: UnixStream) -> usize {
        self.peers.push(Peer { pid, stream: Some(Arc::new(stream)), ..Peer::default() });
        self.peers.len() - 1
    }

    /// Takes what a connection brought; whether it may stay.
    fn hear(&mut self, number: usize, bytes: &[u8]) -> bool {
        let pending = &mut self.peers[number].pending;
        pending.extend_from_slice(bytes);
        let whole = pending.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let rest = pending.split_off(whole);
        let lines = std::mem::replace(pending, rest);
        let is_endless = pending.len() > LINE_BYTES_MAX;
        let mut lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let stays = lines.all(|line| self.take(number, line));
        if is_endless {
            self.note(format!("an agent's line was longer than {LINE_BYTES_MAX} bytes"));
        }
        stays && !is_endless
    }

    /// Takes a line of a connection in; whether the connection may stay.
    fn take(&mut self, number: usize, line: &[u8]) -> bool {
        let peer = &mut self.peers[number];
        peer.messages += 1;
        let outcome = match Message::parse(line) {
            _ if peer.messages > MESSAGES_MAX => Err(format!("sent more than {MESSAGES_MAX} messages")),
            Ok(message) => peer.take(message, self.last_order),
            Err(reason) => Err(reason),
        };
        let stays = peer.messages <= MESSAGES_MAX;
        if let Err(reason) = outcome {
            let pid = peer.pid;
            self.note(format!("what the agent in pid {pid} said was left out: {reason}"));
        }
        stays
    }

    pub fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

impl Peer {
    fn take(&mut self, message: Message, last_order: u64) -> Result<(), String> {
        match (message, &mut self.agent) {
            (Message::Hello { agent, .. }, unknown @ None) => {
                *unknown = Some(Agent { pid: self.pid, ..*agent });
            }
            (Message::Hello { .. }, Some(_)) => return Err("it introduced itself twice".to_owned()),
            (_, None) => return Err("it did not introduce itself first".to_owned()),
            (Message::Role { role }, Some(agent)) => agent.role = role,
            // The response to an order that nobody waits for any more.
            (message, _) if message.order() != Some(last_order) => {}
            (_, _) if self.responses.len() >= RESPONSES_MAX => {
                return Err("it answered more than once".to_owned());
            }
            (message, Some(agent)) => {
                if let Message::Armed { node_env, uv_threadpool_size, .. } = &message {
                    agent.node_env = node_env.clone().or(agent.node_env.take());
                    agent.uv_threadpool_size = uv_threadpool_size.clone().or(agent.uv_threadpool_size.take());
                }
                self.responses.push(message);
            }
        }
        Ok(())
    }

    /// Sends a line, which is short: an agent that reads has room for it.
    ///
    /// # Errors
    /// Why it was not sent, in words.
    pub fn send(&self, line: &str) -> Result<(), String> {
        let mut stream = self.stream.as_deref().ok_or("its connection is closed")?;
        stream.write_all(line.as_bytes()).map_err(|error| format!("it cannot be told: {error}"))
    }

    /// Whether it has armed what the last order asks for, or why not; `None`: it has not responded yet.
    pub fn armed(&self) -> Response<()> {
        self.response(|message| match message {
            Message::Armed { .. } => Some(Ok(())),
            Message::Captured(_) => Some(Err("it ended the capture by itself".to_owned())),
            Message::Failed { reason, .. } => Some(Err(reason.clone())),
            Message::Hello { .. } | Message::Role { .. } => None,
        })
    }

    /// What came of the last order; `None`: it has not responded yet.
    pub fn captured(&self) -> Response<Captured> {
        self.response(|message| match message {
            Message::Captured(captured) => Some(Ok((**captured).clone())),
            Message::Failed { reason, .. } => Some(Err(reason.clone())),
            Message::Armed { .. } | Message::Hello { .. } | Message::Role { .. } => None,
        })
    }

    /// The first response that is one to a question; one that is gone will not give any.
    fn response<T>(&self, read: impl FnMut(&Message) -> Response<T>) -> Response<T> {
        let gone = || self.stream.is_none().then(|| Err("it ended in the meantime".to_owned()));
        self.responses.iter().find_map(read).or_else(gone)
    }
}

// The thread that listens: takes connections in, from processes of the service alone, and reads their lines.
//
// It answers nobody, and lets nobody keep it: lines and connections have bounds.

/// Longest line. A greeting has variables of its process, which may be long.
const LINE_BYTES_MAX: usize = 256 << 10;
/// Connections over the whole life of a service: as many workers and worker threads.
const CONNECTIONS_MAX: usize = 1024;
/// How long a service may have been started before it is known which it is.
const OWNER_PATIENCE: Duration = Duration::from_secs(5);
/// How long none is taken in after one could not be.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Generations between a process of the service and its warden.
const GENERATIONS_MAX: usize = 64;

/// Listens until the other end of `life` is closed.
fn listen(listener: &UnixListener, life: &OwnedFd, book: &Bell<Book>) {
    loop {
        let stream = |(number, peer): (usize, &Peer)| Some((number, Arc::clone(peer.stream.as_ref()?)));
        let open: Vec<_> = book.lock().peers.iter().enumerate().filter_map(stream).collect();
        let all = [life.as_fd(), listener.as_fd()].into_iter();
        let all = all.chain(open.iter().map(|(_, stream)| stream.as_fd()));
        let mut waiting: Vec<PollFd<'_>> =
            all.map(|one| PollFd::from_borrowed_fd(one, PollFlags::IN)).collect();
        match poll(&mut waiting, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        let ready: Vec<bool> = waiting.iter().map(|one| !one.revents().is_empty()).collect();
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

/// Reads what a connection brought.
fn read(number: usize, mut stream: &UnixStream, book: &Bell<Book>) {
    let mut buffer = [0; 16 << 10];
    let read = stream.read(&mut buffer);
    let passes = |error: &io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
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

/// Takes the next connection in, if it is one of the service's.
fn accept(listener: &UnixListener, book: &Bell<Book>) {
    // Without a descriptor to spare it would be ready again at once, and for as long as that lasts.
    let Ok((stream, _)) = listener.accept() else { return thread::sleep(ACCEPT_PAUSE) };
    let pid = socket_peercred(&stream).ok().and_then(|of| u32::try_from(of.pid.as_raw_pid()).ok());
    let Some(pid) = pid.filter(|_| stream.set_nonblocking(true).is_ok()) else { return };
    // It may be quicker than who started it.
    let owner = book.wait(OWNER_PATIENCE, &|| false, |book| book.owner);
    let ours = owner.is_some_and(|owner| descends(pid, owner));
    book.change(|book| {
        if !ours {
            book.note(format!("pid {pid} is no process of the service, and was not listened to"));
        } else if book.peers.len() >= CONNECTIONS_MAX {
            book.note(format!("more than {CONNECTIONS_MAX} agents came; the others were not listened to"));
        } else {
            book.add(pid, stream);
        }
    });
}

/// Whether a process is below another. Between two looks a parent may end and hand its children over, so there are three.
fn descends(pid: u32, from: u32) -> bool {
    (0..3).any(|_| {
        let parent = |pid: &u32| Stat::read(*pid).map(|stat| stat.ppid).filter(|parent| *parent > 0);
        std::iter::successors(parent(&pid), parent).take(GENERATIONS_MAX).any(|ancestor| ancestor == from)
    })
}

/// Hears these bytes out, as from an agent of the service, and panics where more is kept of them than may be.
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
    assert!(book.notes.iter().all(|note| note.len() < 1000), "{:?}", book.notes);
    let agents = present(&book);
    assert!(agents.iter().all(|(_, agent)| agent.pid == 7), "its process is what the kernel says");
    let captured = peer.captured().and_then(Result::ok);
    let taken = captured.map(|captured| take(Wanted::Heap, captured, Some("/dev/null".into())));
    assert!(taken.is_none_or(|taken| taken.is_err()), "no file is taken that it did not write");
    let _ = peer.armed();
}
