//! Programs on machines that this system's OpenSSH reaches.
//!
//! One `ssh` process and one connection for each program, whose stdin and stdout are the channel. Over them the other machine's shell is
//! first asked what is there, and given the program where it is not ([`talk`]); then it becomes the program. There is no master
//! connection, no socket and no file of ours on this machine: whatever ends us closes a pipe, and with it everything there.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::time::{Duration, Instant};

mod connection;
mod destination;
mod facts;
mod fault;
mod talk;

pub use facts::{Facts, Kept, State};
pub use fault::{Fault, Remedy};

use connection::Output;
use destination::Destination;
use talk::{At, Line, Talk};

use crate::last_lines::last;
use crate::{Channel, HostError, Program};

/// Pieces in which a program is sent, so that its progress can be shown.
const PIECE_BYTES: usize = 64 << 10;
/// Questions, of which the fastest counts as the round trip.
const QUESTIONS: usize = 5;

/// How far the copy of a program is.
#[derive(Debug, Clone, Copy)]
pub struct Copied<'a> {
    /// The machine, as `ssh://` and its destination.
    pub host: &'a str,
    /// How much was sent.
    pub bytes: u64,
    /// Of how much.
    pub of: u64,
    /// Since the first of it.
    pub elapsed: Duration,
}

/// What was taken away from a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removed {
    /// Files that are gone.
    pub gone: Vec<Kept>,
    /// Files that stay, because they run or may not be removed.
    pub kept: Vec<Kept>,
}

/// Starts the program on a machine, and puts it there first where it is not: `open("bench-1", &Program::own()?, &["generate"])`.
///
/// `destination` is what `ssh` takes, also `ssh://user@host:port`. Arguments are passed as they are; they are in one line.
///
/// # Errors
/// If the machine is not reached or cannot have or run the program. Nothing is left running there.
pub fn open(destination: &str, program: &Program, arguments: &[&str]) -> Result<Channel, HostError> {
    open_watched(destination, program, arguments, &mut |_| {})
}

/// The same; `watch` gets the progress of the copy, where there is one.
///
/// # Errors
/// The same.
pub fn open_watched(
    destination: &str,
    program: &Program,
    arguments: &[&str],
    watch: &mut dyn FnMut(Copied<'_>),
) -> Result<Channel, HostError> {
    let mut login = Login::to(destination, program)?;
    login.put(watch)?;
    login.start(arguments)
}

/// A shell on another machine that waits for commands about a program.
#[derive(Debug)]
pub struct Login {
    name: String,
    program: Program,
    talk: Talk,
    facts: Facts,
}

impl Login {
    /// Logs in and looks what is there. Nothing is changed.
    ///
    /// # Errors
    /// If the machine is not reached, lets nobody in, or has no shell.
    pub fn to(destination: &str, program: &Program) -> Result<Login, HostError> {
        let name = destination::name(destination);
        let failed = |fault| HostError::Ssh { host: name.clone(), fault: Box::new(fault) };
        let destination = Destination::new(destination).map_err(failed)?;
        let mut talk = Talk::begin(&destination, program).map_err(failed)?;
        let facts = look(&mut talk).map_err(failed)?;
        Ok(Login { name: destination.name(), program: program.clone(), talk, facts })
    }

    /// What is known of the machine.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The round trip of a line: the fastest of some.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn round_trip(&mut self) -> Result<Duration, HostError> {
        let mut shortest = Duration::MAX;
        for _ in 0..QUESTIONS {
            let asked = Instant::now();
            self.talk.send("echo");
            self.receive(At::Question).map_err(|fault| self.failed(fault))?;
            shortest = shortest.min(asked.elapsed());
        }
        Ok(shortest)
    }

    /// Puts the program there unless it is there already, and checks it by its hash. `true` if it was copied.
    ///
    /// # Errors
    /// If the machine is none for it, has no room or right for it, or the connection is lost.
    pub fn put(&mut self, watch: &mut dyn FnMut(Copied<'_>)) -> Result<bool, HostError> {
        self.facts.fits(&self.program).map_err(|fault| self.failed(fault))?;
        if self.facts.state == State::There {
            return Ok(false);
        }
        if !self.facts.has_room(&self.program) {
            return Err(self.failed(self.facts.full(&self.program)));
        }
        let mut file = self.program.open()?;
        self.talk.send(&format!("put {}", self.program.bytes()));
        self.receive(At::Folder).map_err(|fault| self.failed(fault))?;
        self.copy(&mut file, watch).map_err(|source| self.program.failed(source))?;
        self.receive(At::Copy).map_err(|fault| self.failed(fault))?;
        self.facts.state = State::There;
        Ok(true)
    }

    /// Sends exactly as many bytes as announced, unless they are no longer taken: then the response says why.
    fn copy(&mut self, file: &mut File, watch: &mut dyn FnMut(Copied<'_>)) -> io::Result<()> {
        let (begun, of, mut bytes, mut piece) =
            (Instant::now(), self.program.bytes(), 0, vec![0; PIECE_BYTES]);
        while bytes < of {
            let most = piece.len().min(usize::try_from(of - bytes).unwrap_or(usize::MAX));
            let count = file.read(&mut piece[..most])?;
            if count == 0 {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "it was changed while it was copied"));
            }
            if !self.talk.send_bytes(&piece[..count]) {
                break;
            }
            bytes += count as u64;
            watch(Copied { host: &self.name, bytes, of, elapsed: begun.elapsed() });
        }
        Ok(())
    }

    /// Starts the program, which has to be there, once it has shown that it runs.
    ///
    /// # Errors
    /// If it does not run, or the connection is lost.
    pub fn start(mut self, arguments: &[&str]) -> Result<Channel, HostError> {
        self.facts.fits(&self.program).map_err(|fault| self.failed(fault))?;
        self.talk.send("attempt");
        let (said, lines) = self.receive(At::Attempt).map_err(|fault| self.failed(fault))?;
        if said.text != "attempt 0" {
            let status = said.text.strip_prefix("attempt ").unwrap_or(&said.text);
            let file = format!("{}/{}", self.facts.folder, self.program.file_name());
            return Err(self.failed(Fault::of_try(&file, status, &lines)));
        }
        let (input, stdout, connection, words, rest) = self.talk.become_program(arguments);
        let output = Output::new(rest, stdout, &connection, words);
        Ok(Channel::new(self.name, input, output, connection))
    }

    /// Takes away every program that Proofload has put there and that does not run, and the folder with the last one.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn remove(mut self) -> Result<Removed, HostError> {
        self.talk.send("remove");
        let mut removed = Removed::default();
        loop {
            let said = self.talk.receive(At::Removal).map_err(|fault| self.failed(fault))?;
            match said.what.as_str() {
                "removed" => removed.gone.extend(Kept::of(&said.text)),
                "kept" => removed.kept.extend(Kept::of(&said.text)),
                "done" => return Ok(removed),
                _ => {}
            }
        }
    }

    /// The next response, and the output before it.
    fn receive(&mut self, at: At) -> Result<(Line, Vec<String>), Fault> {
        let mut lines = Vec::new();
        loop {
            let said = self.talk.receive(at)?;
            match said.what.as_str() {
                "done" => return Ok((said, lines)),
                "failed" => return Err(self.put_failed(&said.text, &lines)),
                "words" => lines.push(said.text),
                _ => self.facts.learn(said),
            }
        }
    }

    fn put_failed(&self, stage: &str, lines: &[String]) -> Fault {
        let full = |line: &String| line.contains("No space left") || line.contains("quota exceeded");
        let (folder, user) = (self.facts.folder.clone(), self.facts.user.clone());
        match stage {
            _ if lines.iter().any(full) => self.facts.full(&self.program),
            "sum" | "length" => Fault::Damaged { folder },
            _ => Fault::Unwritable { folder, user, words: last(lines) },
        }
    }

    fn failed(&self, fault: Fault) -> HostError {
        HostError::Ssh { host: self.name.clone(), fault: Box::new(fault) }
    }
}

fn look(talk: &mut Talk) -> Result<Facts, Fault> {
    let mut facts = Facts::default();
    loop {
        let said = talk.receive(At::Login)?;
        if said.what == "done" {
            return Ok(facts);
        }
        facts.learn(said);
    }
}

/// A word that a shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
