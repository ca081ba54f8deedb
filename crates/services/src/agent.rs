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

mod board;
mod listen;
mod options;
mod said;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::json;

pub use said::Role;

use crate::marker::Marker;
use crate::message::Scratch;
use crate::scratch::{self, Held};
use board::{Board, Book};
use said::{Armed, Captured, Hello};

/// The agent itself.
const AGENT: &str = include_str!("../../../agent/agent.cjs");
/// Its name in the folder, and the socket's.
const AGENT_NAME: &str = "agent.cjs";
const SOCKET_NAME: &str = "agent.sock";
/// The variable that tells it where the socket is.
const VARIABLE: &str = "PROOFLOAD_AGENT";
/// The variable by which Node.js loads it.
const NODE_OPTIONS: &str = "NODE_OPTIONS";
/// How long an agent may take to answer. To begin a profile stalls a process for 20 ms to 2 s, and one at work answers when it is done.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);

/// What an agent is asked to capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Stacks of JavaScript, one in so many microseconds.
    Cpu {
        /// Microseconds between two.
        interval_us: u32,
    },
    /// What was allocated and still lives, sampled.
    Heap,
    /// Counters of Node.js.
    Counters,
}

impl Wanted {
    fn name(self) -> &'static str {
        match self {
            Self::Cpu { .. } => "cpu",
            Self::Heap => "heap",
            Self::Counters => "counters",
        }
    }

    /// Whether what comes of it is a file.
    fn is_file(self) -> bool {
        !matches!(self, Self::Counters)
    }
}

/// A JavaScript thread with an agent that has introduced itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its process, as the kernel tells.
    pub pid: u32,
    /// Its thread as Node.js numbers it: 0 is the main thread.
    pub thread: u32,
    /// Its thread as the kernel numbers it, where the agent can tell.
    pub thread_id: Option<u32>,
    /// What it is.
    pub role: Role,
    /// Versions of Node.js and what it is made of: `node`, `v8`, `uv`, `openssl`.
    pub versions: BTreeMap<String, String>,
    /// NODE_ENV as the process sees it.
    pub node_env: Option<String>,
    /// UV_THREADPOOL_SIZE as the process sees it.
    pub uv_threadpool_size: Option<String>,
    /// The file that it runs.
    pub main: Option<String>,
}

impl Agent {
    fn new(pid: u32, hello: Hello) -> Self {
        let Hello { thread, thread_id, role, versions, node_env, uv_threadpool_size, main, .. } = hello;
        Self { pid, thread, thread_id, role, versions, node_env, uv_threadpool_size, main }
    }

    fn update(&mut self, armed: Armed) {
        self.node_env = armed.node_env.or(self.node_env.take());
        self.uv_threadpool_size = armed.uv_threadpool_size.or(self.uv_threadpool_size.take());
    }
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
    /// The number of each agent's connection, where its profile goes to, and whether it has begun.
    agents: Vec<(usize, Option<PathBuf>, Result<(), String>)>,
}

/// Where the agents of one service find Proofload. Copies are the same one; the last one dropped removes the folder.
#[derive(Debug, Clone)]
pub struct AgentHost(Arc<Host>);

#[derive(Debug)]
struct Host {
    board: Arc<Board>,
    folder: PathBuf,
    /// Closed, it ends the thread.
    life: Option<UnixStream>,
    listener: Option<JoinHandle<()>>,
    _held: Held,
}

impl Drop for Host {
    fn drop(&mut self) {
        self.life = None;
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

impl PartialEq for AgentHost {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for AgentHost {}

impl AgentHost {
    /// Makes a private folder with the agent and a socket, and listens there.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn new() -> io::Result<Self> {
        let folder = scratch::directory(&Marker::new());
        let files = vec![(AGENT_NAME.to_owned(), AGENT.to_owned())];
        // First of all, so that whatever fails below leaves nothing.
        let held = Held::create(&Scratch { directory: folder.clone(), files })?;
        let socket = UnixListener::bind(folder.join(SOCKET_NAME))?;
        socket.set_nonblocking(true)?;
        let (life, other) = UnixStream::pair()?;
        let board = Arc::new(Board::default());
        let listener = {
            let (board, other) = (Arc::clone(&board), OwnedFd::from(other));
            thread::Builder::new()
                .name("agents".to_owned())
                .spawn(move || listen::listen(&socket, &other, &board))?
        };
        Ok(Self(Arc::new(Host { board, folder, life: Some(life), listener: Some(listener), _held: held })))
    }

    /// Sets the variables by which a service's Node.js processes load the agent and find the way here.
    pub(crate) fn enter(&self, env: &mut Vec<(String, String)>) {
        let of = |name: &str| self.0.folder.join(name).display().to_string();
        let own = env.iter().rev().find(|(name, _)| name == NODE_OPTIONS).map(|(_, value)| value.as_str());
        let options = options::with_require(&of(AGENT_NAME), own);
        env.retain(|(name, _)| name != NODE_OPTIONS && name != VARIABLE);
        env.push((NODE_OPTIONS.to_owned(), options));
        env.push((VARIABLE.to_owned(), of(SOCKET_NAME)));
    }

    /// Says below which process all of the service's are. Others are not listened to.
    pub(crate) fn belongs_to(&self, warden: u32) {
        self.0.board.change(|book| book.owner = Some(warden));
    }

    /// The agents that are there, by process and thread.
    pub fn agents(&self) -> Vec<Agent> {
        let mut agents: Vec<Agent> =
            present(&self.0.board.book()).into_iter().map(|(_, agent)| agent).collect();
        agents.sort_by_key(|agent| (agent.pid, agent.thread));
        agents
    }

    /// Waits until an agent is there that is not a mere tool, for at most so long; whether there is one.
    pub fn wait_for_agents(&self, patience: Duration, cancelled: &dyn Fn() -> bool) -> bool {
        self.0
            .board
            .wait(patience, cancelled, |book| present(book).iter().any(|(_, agent)| agent.role != Role::Tool))
    }

    /// What was odd about what agents said, in words.
    pub fn notes(&self) -> Vec<String> {
        self.0.board.book().notes.clone()
    }

    /// Has all agents but those of tools begin a capture, and waits until they have, for at most 10 s. `file` names the file of each
    /// one's profile, absolute; its folder must exist. What could not be begun is told by [`AgentHost::disarm`].
    pub fn arm(
        &self,
        wanted: Wanted,
        file: &dyn Fn(&Agent) -> PathBuf,
        cancelled: &dyn Fn() -> bool,
    ) -> Arming {
        let (order, mut agents) = self.0.board.change(|book| {
            book.last_order += 1;
            let order = book.last_order;
            let told = present(book).into_iter().filter(|(_, agent)| agent.role != Role::Tool);
            let told: Vec<(usize, Agent)> = told.collect();
            let tell = |(number, agent): (usize, Agent)| {
                let file = wanted.is_file().then(|| file(&agent));
                let peer = &mut book.peers[number];
                peer.answers.clear();
                let sent = arm_line(order, wanted, file.as_deref()).and_then(|line| peer.send(&line));
                (number, file, sent)
            };
            (order, told.into_iter().map(tell).collect::<Vec<_>>())
        });
        let told: Vec<usize> =
            agents.iter().filter(|(.., sent)| sent.is_ok()).map(|(number, ..)| *number).collect();
        self.0.board.wait(ANSWER_PATIENCE, cancelled, |book| {
            told.iter().all(|number| book.peers[*number].armed().is_some())
        });
        let book = self.0.board.book();
        for (number, _, begun) in &mut agents {
            if begun.is_ok() {
                *begun = book.peers[*number].armed().unwrap_or_else(|| Err(silent("begin")));
            }
        }
        Arming { order, wanted, agents }
    }

    /// Ends a capture and waits for what came of it, for at most 10 s: of each agent that was to capture, by process and thread.
    pub fn disarm(&self, arming: Arming, cancelled: &dyn Fn() -> bool) -> Vec<(Agent, Result<Take, String>)> {
        let Arming { order, wanted, agents } = arming;
        let line = format!("{}\n", json!({ "type": "disarm", "id": order }));
        let mut told = Vec::new();
        {
            let book = self.0.board.book();
            for (number, _, begun) in &agents {
                // Also those that never said that they had begun: they may have, later.
                if book.peers[*number].send(&line).is_ok() && begun.is_ok() {
                    told.push(*number);
                }
            }
        }
        self.0.board.wait(ANSWER_PATIENCE, cancelled, |book| {
            told.iter().all(|number| book.peers[*number].captured().is_some())
        });
        let book = self.0.board.book();
        let came = agents.into_iter().filter_map(|(number, file, begun)| {
            let peer = &book.peers[number];
            let end = || peer.captured().unwrap_or_else(|| Err(silent("end")));
            let take = begun.and_then(|()| end()).and_then(|captured| take(wanted, captured, file));
            Some((peer.agent.clone()?, take))
        });
        let mut came: Vec<(Agent, Result<Take, String>)> = came.collect();
        came.sort_by_key(|(agent, _)| (agent.pid, agent.thread));
        came
    }
}

fn silent(what: &str) -> String {
    format!("it did not {what} the capture within {} s", ANSWER_PATIENCE.as_secs())
}

/// Those who have introduced themselves and are still connected, by their connections' numbers.
fn present(book: &Book) -> Vec<(usize, Agent)> {
    let peers = book.peers.iter().enumerate().filter(|(_, peer)| peer.stream.is_some());
    peers.filter_map(|(number, peer)| Some((number, peer.agent.clone()?))).collect()
}

fn arm_line(order: u64, wanted: Wanted, file: Option<&Path>) -> Result<String, String> {
    let mut line = json!({ "type": "arm", "id": order, "kind": wanted.name() });
    if let Wanted::Cpu { interval_us } = wanted {
        line["intervalUs"] = json!(interval_us);
    }
    if let Some(file) = file {
        let text = file.to_str().ok_or_else(|| format!("{}: its path is not UTF-8", file.display()))?;
        line["file"] = json!(text);
    }
    Ok(format!("{line}\n"))
}

/// What an agent says that it captured, as far as it is so.
fn take(wanted: Wanted, captured: Captured, file: Option<PathBuf>) -> Result<Take, String> {
    let file = match file {
        Some(asked) if captured.file.as_deref().map(Path::new) == Some(&*asked) => {
            let bytes = fs::symlink_metadata(&asked).map(|data| if data.is_file() { data.len() } else { 0 });
            match bytes {
                Ok(bytes) if bytes > 0 => Some((asked, bytes)),
                Ok(_) => return Err(format!("{} is empty", asked.display())),
                Err(error) => return Err(format!("{} was not written: {error}", asked.display())),
            }
        }
        Some(_) => return Err("it wrote another file than it was told".to_owned()),
        None => None,
    };
    if wanted == Wanted::Counters && captured.counters.is_none() {
        return Err("it sent no counters".to_owned());
    }
    let Captured { requests, counters, notes, .. } = captured;
    Ok(Take { requests, file, counters, notes })
}

#[cfg(test)]
mod tests;
