//! The dialogue with another machine's shell, over one connection of the system's `ssh`.
//!
//! ```text
//! ssh … HOST  exec sh -c 'eval "$(head -c 4200)"'
//! ──► there.sh, 4200 bytes                ◄── MARK machine x86_64 … MARK done look
//! ──► put 14000000                        ◄── MARK done folder
//! ──► the program, 14000000 bytes         ◄── MARK done put
//! ──► run 'generate'                      from here on stdin and stdout are the program's
//! ```
//! The one command line is a word that every login shell takes apart alike, csh and fish too; everything else goes over stdin. The next
//! thing is said only when the last one was answered, so that no command there can have read too much. Lines without the mark are what
//! start files print, and are passed over.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{ErrorKind, Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::connection::{self, Connection};
use super::destination::Destination;
use super::{Fault, quoted};
use crate::Program;
use crate::last_lines::{LastLines, last, printable};

const SCRIPT: &str = include_str!("there.sh");
/// For a login, and for whatever is asked afterwards.
const PATIENCE: Duration = Duration::from_secs(30);
/// For what is still on its way of a program that is all given, over a slow line, and to check it. A line that is dead ends sooner.
const COPY_PATIENCE: Duration = Duration::from_secs(180);
/// What may be printed that is no answer.
const FOREIGN_BYTES_MAX: usize = 1 << 20;
/// Lines of it that are kept.
const FOREIGN_LINES: usize = 20;

/// A shell there that waits for orders.
#[derive(Debug)]
pub(super) struct Talk {
    // First, so that it is closed before the process is waited for.
    input: ChildStdin,
    output: ChildStdout,
    connection: Connection,
    words: LastLines,
    mark: String,
    /// What was read and is no whole line yet.
    rest: Vec<u8>,
    foreign: Vec<String>,
    foreign_bytes: usize,
}

/// At what an answer is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    Login,
    Question,
    Folder,
    Copy,
    Attempt,
    Removal,
}

impl At {
    fn words(self) -> &'static str {
        match self {
            At::Login => "at the login",
            At::Question => "at a question",
            At::Folder => "before the program was copied",
            At::Copy => "while the program was copied",
            At::Attempt => "when the program was tried",
            At::Removal => "while programs were removed",
        }
    }

    fn patience(self) -> Duration {
        if self == At::Copy { COPY_PATIENCE } else { PATIENCE }
    }
}

/// A line with our mark: its first word, and what follows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) what: String,
    pub(super) text: String,
}

impl Talk {
    /// Logs in and has the script run there. Its first answer is not read yet.
    pub(super) fn begin(destination: &Destination, program: &Program) -> Result<Talk, Fault> {
        let mark = format!("pl{:016x}", RandomState::new().build_hasher().finish());
        let script = format!("mark={mark} name={} sum={}\n{SCRIPT}", program.file_name(), program.sha256());
        let (connection, ends, words) = connection::start(destination, &remote_command(script.len()))?;
        let mut talk = Talk {
            input: ends.0,
            output: ends.1,
            connection,
            words,
            mark,
            rest: Vec::new(),
            foreign: Vec::new(),
            foreign_bytes: 0,
        };
        // Where this fails, the connection has ended, and reading tells how.
        let _ = talk.input.write_all(script.as_bytes());
        Ok(talk)
    }

    /// Gives an order, one line. Where nobody takes it any more, reading the answer tells why.
    pub(super) fn send(&mut self, line: &str) {
        let _ = writeln!(self.input, "{line}");
    }

    /// Gives bytes after an order, as far as they are taken.
    pub(super) fn send_bytes(&mut self, bytes: &[u8]) -> bool {
        self.input.write_all(bytes).is_ok()
    }

    /// The next line with our mark.
    pub(super) fn receive(&mut self, at: At) -> Result<Line, Fault> {
        let deadline = Instant::now() + at.patience();
        loop {
            let Some(line) = self.line(deadline, at)? else { return Err(self.end(at)) };
            if let Some(said) = marked(&line, &self.mark) {
                return Ok(said);
            }
            self.foreign_bytes += line.len();
            let text = printable(&line);
            if !text.is_empty() {
                self.foreign.truncate(FOREIGN_LINES - 1);
                self.foreign.push(text);
            }
            if self.foreign_bytes > FOREIGN_BYTES_MAX {
                return Err(Fault::NoShell { words: last(&self.foreign) });
            }
        }
    }

    /// Has the shell there become the program. What follows on both ends is its own.
    pub(super) fn become_program(
        mut self,
        arguments: &[&str],
    ) -> (ChildStdin, ChildStdout, Connection, LastLines, Vec<u8>) {
        let words: Vec<String> = arguments.iter().map(|argument| quoted(argument)).collect();
        // From now on stderr is the program's, and what the login said belongs to nothing.
        self.words.forget();
        self.send(&format!("run {}", words.join(" ")));
        (self.input, self.output, self.connection, self.words, self.rest)
    }

    /// Why it ended.
    fn end(&self, at: At) -> Fault {
        let lines = self.words.lines();
        match at {
            At::Login => Fault::of_login(&lines, &self.foreign),
            _ => Fault::Ended { at: at.words(), words: last(&lines) },
        }
    }

    /// The next line, without its end; `None` at the end of the output.
    fn line(&mut self, deadline: Instant, at: At) -> Result<Option<Vec<u8>>, Fault> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let after = self.rest.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.rest, after);
                line.pop();
                return Ok(Some(line));
            }
            if self.rest.len() > FOREIGN_BYTES_MAX {
                return Err(Fault::NoShell { words: printable(&self.rest[..200]) });
            }
            if !self.has_output_until(deadline) {
                return Err(Fault::Silent { seconds: at.patience().as_secs(), at: at.words() });
            }
            let mut read = [0; 4096];
            match self.output.read(&mut read) {
                Ok(0) => return Ok(None),
                Ok(count) => self.rest.extend_from_slice(&read[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Ok(None),
            }
        }
    }

    /// Whether there is something to read, be it the end, before the time is up.
    fn has_output_until(&self, deadline: Instant) -> bool {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            match poll(&mut [PollFd::new(&self.output, PollFlags::IN)], Some(&left)) {
                Ok(0) => return false,
                Ok(_) => return true,
                Err(rustix::io::Errno::INTR) => {}
                // Reading says what is wrong.
                Err(_) => return true,
            }
        }
    }
}

/// What the login shell is given.
fn remote_command(script_bytes: usize) -> String {
    format!("exec sh -c 'eval \"$(head -c {script_bytes})\"'")
}

fn marked(line: &[u8], mark: &str) -> Option<Line> {
    // A start file may print without ending its line.
    let text = String::from_utf8_lossy(line);
    let (_, marked) = text.split_once(mark)?;
    let (what, text) = marked.strip_prefix(' ')?.split_once(' ').unwrap_or((marked.trim(), ""));
    Some(Line { what: what.to_owned(), text: text.trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_the_mark_is_an_answer() {
        let is = |line: &str| marked(line.as_bytes(), "pl01").map(|line| (line.what, line.text));
        let some = |what: &str, text: &str| Some((what.to_owned(), text.to_owned()));
        assert_eq!(is("pl01 machine x86_64"), some("machine", "x86_64"));
        assert_eq!(is("Welcome! pl01 host a b \r"), some("host", "a b"));
        assert_eq!(is("pl01 words"), some("words", ""));
        assert_eq!(is("pl01 words "), some("words", ""));
        assert_eq!(is("machine x86_64"), None);
        assert_eq!(is("pl012 machine"), None);
    }
}
