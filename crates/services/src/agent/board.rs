//! What agents have said so far, and a bell: filled by the thread that listens, asked by whoever captures.
//!
//! It keeps little of each agent, and of agents only so many. It must not wait for any of them.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Agent;
use super::said::{Captured, Said};

/// Notes that are kept: more say nothing new.
const NOTES_MAX: usize = 32;
/// Answers of one agent to an order: that it is armed, and what came of it.
const ANSWERS_MAX: usize = 2;
/// Messages of one agent: a few for each capture, of which there are a few.
const MESSAGES_MAX: u32 = 1000;

/// Shared between the listening thread and those who ask.
#[derive(Debug, Default)]
pub(super) struct Board {
    book: Mutex<Book>,
    changed: Condvar,
}

/// All that is known.
#[derive(Debug, Default)]
pub(super) struct Book {
    /// The process below which all of the service's are; `None` until it is started.
    pub owner: Option<u32>,
    pub peers: Vec<Peer>,
    pub notes: Vec<String>,
    /// Number of the last order.
    pub last_order: u64,
}

/// The other end of a connection.
#[derive(Debug)]
pub(super) struct Peer {
    /// Its process, by the kernel's word.
    pub pid: u32,
    /// `None` before its first message.
    pub agent: Option<Agent>,
    /// `None` once the connection is closed.
    pub stream: Option<UnixStream>,
    /// Its answers to the last order.
    pub answers: Vec<Answer>,
    messages: u32,
}

/// An answer to an order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    Armed,
    Captured(Box<Captured>),
    Failed(String),
}

impl Board {
    pub fn book(&self) -> MutexGuard<'_, Book> {
        // Nobody leaves it half changed.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the book and rings the bell.
    pub fn change<T>(&self, change: impl FnOnce(&mut Book) -> T) -> T {
        let result = change(&mut self.book());
        self.changed.notify_all();
        result
    }

    /// Waits until `done` says so, for at most `patience`, and no longer than `cancelled` allows, which is asked ten times a second.
    /// Whether it was done.
    pub fn wait(
        &self,
        patience: Duration,
        cancelled: &dyn Fn() -> bool,
        mut done: impl FnMut(&Book) -> bool,
    ) -> bool {
        let deadline = Instant::now() + patience;
        let mut book = self.book();
        loop {
            if done(&book) {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now()).min(Duration::from_millis(100));
            if left.is_zero() || cancelled() {
                return false;
            }
            book = match self.changed.wait_timeout(book, left) {
                Ok((book, _)) => book,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}

impl Book {
    /// A new connection: its number.
    pub fn add(&mut self, pid: u32, stream: UnixStream) -> usize {
        self.peers.push(Peer { pid, agent: None, stream: Some(stream), answers: Vec::new(), messages: 0 });
        self.peers.len() - 1
    }

    /// Takes a line of a connection in; whether the connection may stay.
    pub fn take(&mut self, number: usize, line: &[u8]) -> bool {
        let Some(peer) = self.peers.get_mut(number) else { return false };
        peer.messages += 1;
        let outcome = match Said::parse(line) {
            _ if peer.messages > MESSAGES_MAX => Err(format!("sent more than {MESSAGES_MAX} messages")),
            Ok(said) => peer.take(said, self.last_order),
            Err(reason) => Err(reason),
        };
        let stays = peer.messages <= MESSAGES_MAX;
        if let Err(reason) = outcome {
            let pid = peer.pid;
            self.note(format!("what the agent in pid {pid} said was left out: {reason}"));
        }
        stays
    }

    /// The connection of this number has ended.
    pub fn close(&mut self, number: usize) {
        if let Some(peer) = self.peers.get_mut(number) {
            peer.stream = None;
        }
    }

    pub fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

impl Peer {
    fn take(&mut self, said: Said, last_order: u64) -> Result<(), String> {
        match (said, &mut self.agent) {
            (Said::Hello(hello), agent @ None) => *agent = Some(Agent::new(self.pid, *hello)),
            (Said::Hello(_), Some(_)) => return Err("it introduced itself twice".to_owned()),
            (_, None) => return Err("it did not introduce itself first".to_owned()),
            (Said::Role { role }, Some(agent)) => agent.role = role,
            (Said::Armed(armed), Some(agent)) if armed.id == last_order => {
                agent.update(armed);
                self.answer(Answer::Armed)?;
            }
            (Said::Captured(told), _) if told.id == last_order => self.answer(Answer::Captured(told))?,
            (Said::Failed { id, reason }, _) if id == last_order => self.answer(Answer::Failed(reason))?,
            // The answer to an order that nobody waits for any more.
            (Said::Armed(_) | Said::Captured(_) | Said::Failed { .. }, _) => {}
        }
        Ok(())
    }

    fn answer(&mut self, answer: Answer) -> Result<(), String> {
        if self.answers.len() >= ANSWERS_MAX {
            return Err("it answered more than once".to_owned());
        }
        self.answers.push(answer);
        Ok(())
    }

    /// Sends a line, which is short: an agent that reads has room for it.
    ///
    /// # Errors
    /// Why it was not sent, in words.
    pub fn send(&self, line: &str) -> Result<(), String> {
        let mut stream = self.stream.as_ref().ok_or("its connection is closed")?;
        stream.write_all(line.as_bytes()).map_err(|error| format!("it cannot be told: {error}"))
    }

    /// Whether it has armed what the last order asks for, or why not; `None`: it has not answered yet.
    pub fn armed(&self) -> Option<Result<(), String>> {
        let answer = self.answers.first().map(|answer| match answer {
            Answer::Armed => Ok(()),
            Answer::Captured(_) => Err("it ended the capture by itself".to_owned()),
            Answer::Failed(reason) => Err(reason.clone()),
        });
        answer.or_else(|| self.gone())
    }

    /// What came of the last order; `None`: it has not answered yet.
    pub fn captured(&self) -> Option<Result<Captured, String>> {
        let answer = self.answers.iter().find_map(|answer| match answer {
            Answer::Armed => None,
            Answer::Captured(captured) => Some(Ok((**captured).clone())),
            Answer::Failed(reason) => Some(Err(reason.clone())),
        });
        answer.or_else(|| self.gone())
    }

    fn gone<T>(&self) -> Option<Result<T, String>> {
        self.stream.is_none().then(|| Err("it ended in the meantime".to_owned()))
    }
}
