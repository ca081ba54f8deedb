//! Programs on machines that the system's OpenSSH reaches.
//!
//! Each program has one `ssh` process and one connection, whose stdin and stdout are the channel. First the
//! shell of the other machine reports what exists there, and receives the program if it is missing
//! ([`talk`]). Then the program replaces the shell. There is no master connection, no socket and no file of
//! ours on this machine: when this program ends in any way, a pipe closes, and everything on the other
//! machine ends.

mod fault;
mod talk;

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};

use talk::{MarkedLine, Talk, TalkStep};

use crate::channel::last;
use crate::{Blame, Channel, Error, Program};

/// Size of the pieces in which a program is sent, so that progress can be reported.
const PIECE_BYTES: usize = 64 << 10;

/// Progress of copying a program.
#[derive(Debug, Clone, Copy)]
pub struct Copied {
    /// Bytes sent so far.
    pub bytes: u64,
    /// Size of the program in bytes.
    pub of: u64,
}

/// Starts the program on a machine, after copying it there if it is missing. `watch` gets the progress of a
/// copy.
///
/// `destination` is passed to `ssh`, and may also be `ssh://user@host:port`. Arguments are passed unchanged
/// and must not contain line breaks.
///
/// # Errors
/// If the machine cannot be reached, or cannot store or run the program. Nothing is left running there.
pub fn open(
    destination: &str,
    program: &Program,
    arguments: &[&str],
    watch: &mut dyn FnMut(Copied),
) -> Result<Channel, Error> {
    let mut login = Login::to(destination, program)?;
    login.put(watch)?;
    login.start(arguments)
}

/// A shell on another machine that waits for commands about a program.
#[derive(Debug)]
struct Login {
    program: Program,
    talk: Talk,
    facts: RemoteFacts,
}

impl Login {
    /// Logs in and reads the facts about the machine. Nothing is changed there.
    fn to(destination: &str, program: &Program) -> Result<Login, Error> {
        let talk = Talk::begin(Destination::new(destination)?, program)?;
        let mut login = Login {
            program: program.clone(),
            talk,
            facts: RemoteFacts::default(),
        };
        login.receive(TalkStep::Login)?;
        Ok(login)
    }

    /// Copies the program unless it is already there, and verifies its hash.
    fn put(&mut self, watch: &mut dyn FnMut(Copied)) -> Result<(), Error> {
        self.facts.fits(self.destination(), &self.program)?;
        if self.facts.is_program_there {
            return Ok(());
        }
        if !self.facts.has_room(&self.program) {
            return Err(self.facts.full(self.destination(), &self.program));
        }
        let mut file = self.program.open()?;
        self.talk.send(&format!("put {}", self.program.bytes));
        self.receive(TalkStep::Folder)?;
        self.copy(&mut file, watch)
            .map_err(|source| self.program.failed(source))?;
        self.receive(TalkStep::Copy).map(drop)
    }

    /// Sends exactly the announced number of bytes. Stops early if the connection ends. The response then
    /// names the reason.
    fn copy(&mut self, file: &mut File, watch: &mut dyn FnMut(Copied)) -> io::Result<()> {
        let (of, mut bytes, mut piece) = (self.program.bytes, 0, vec![0; PIECE_BYTES]);
        while bytes < of {
            let most = piece
                .len()
                .min(usize::try_from(of - bytes).unwrap_or(usize::MAX));
            let count = file.read(&mut piece[..most])?;
            if count == 0 {
                return Err(io::Error::new(
                    ErrorKind::UnexpectedEof,
                    "the file changed while it was being copied",
                ));
            }
            if !self.talk.send_bytes(&piece[..count]) {
                break;
            }
            bytes += count as u64;
            watch(Copied { bytes, of });
        }
        Ok(())
    }

    /// Starts the program after a trial run. The program must be there.
    fn start(mut self, arguments: &[&str]) -> Result<Channel, Error> {
        self.talk.send("attempt");
        let (said, lines) = self.receive(TalkStep::Try)?;
        if said.text != "attempt 0" {
            let status = said.text.strip_prefix("attempt ").unwrap_or(&said.text);
            let file = format!("{}/{}", self.facts.folder, self.program.file_name());
            return Err(fault::of_try(self.destination(), &file, status, &lines));
        }
        Ok(self.talk.become_program(arguments))
    }

    /// Reads the next response and the output before it.
    fn receive(&mut self, at: TalkStep) -> Result<(MarkedLine, Vec<String>), Error> {
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

    fn put_failed(&self, stage: &str, lines: &[String]) -> Error {
        let full =
            |line: &String| line.contains("No space left") || line.contains("quota exceeded");
        if lines.iter().any(full) {
            return self.facts.full(self.destination(), &self.program);
        }
        let (folder, user, words) = (&self.facts.folder, &self.facts.user, last(lines));
        let (why, hint) = match stage {
            "sum" | "length" => (
                format!("the copy of the program in {folder} is corrupt: its SHA-256 differs"),
                "try again; if it fails again, check the disk and memory of that machine",
            ),
            _ => (
                format!("cannot write the program to {folder} as {user}: {words}"),
                "to use another folder than ~/.cache, set XDG_CACHE_HOME for that account",
            ),
        };
        self.destination().error(why).help(hint)
    }

    fn destination(&self) -> &Destination {
        &self.talk.destination
    }
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

// Destinations of `ssh`. Nothing that could be parsed as an option or by a shell is accepted.

/// Maximum length of a destination. Longer than any user, host and port.
const BYTES_MAX: usize = 512;
const SCHEME: &str = "ssh://";
/// Characters with a meaning in a shell. `ssh` passes names to a shell in `ProxyCommand` and `Match exec`.
const SHELL: &str = "'`\"$;&<>|(){}*?!#~";

/// A destination of `ssh`: `host`, `user@host`, a name of `~/.ssh/config`, or `ssh://user@host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Destination(String);

impl Destination {
    /// # Errors
    /// If the text is not a destination, or may be more than a destination.
    fn new(text: &str) -> Result<Destination, Error> {
        let destination = Destination(text.to_owned());
        let Some(problem) = problem(text) else {
            return Ok(destination);
        };
        Err(destination
            .error(format!("invalid SSH destination: {problem}"))
            .by(Blame::Request)
            .help("use a host of ~/.ssh/config, user@host, or ssh://user@host:port"))
    }

    /// The destination as shown to users, with `ssh://` before it, even if it is invalid.
    fn name(&self) -> String {
        // A password does not belong into a destination, but may be part of an invalid one.
        let shown = model::text::cut_end(&without_password(&self.0), BYTES_MAX);
        let plain: String = shown.chars().flat_map(char::escape_debug).collect();
        if self.0.starts_with(SCHEME) {
            plain
        } else {
            format!("{SCHEME}{plain}")
        }
    }

    /// The destination as typed after `ssh`.
    fn typed(&self) -> String {
        let plain = self.0.strip_prefix(SCHEME).unwrap_or(&self.0);
        if plain.contains(':') {
            self.name()
        } else {
            plain.to_owned()
        }
    }

    fn try_it(&self) -> String {
        format!("check with: ssh {} true", self.typed())
    }

    fn error(&self, message: impl std::fmt::Display) -> Error {
        Error::new(format!("{}: {message}", self.name()))
    }
}

/// A destination with its user and without its password.
fn without_password(text: &str) -> String {
    let begin = if text.starts_with(SCHEME) {
        SCHEME.len()
    } else {
        0
    };
    let user = text[begin..].rfind('@').map(|end| begin..begin + end);
    let password = user.and_then(|user| Some(user.start + text[user.clone()].find(':')?..user.end));
    password.map_or(text.to_owned(), |password| {
        format!("{}:…{}", &text[..password.start], &text[password.end..])
    })
}

fn problem(text: &str) -> Option<String> {
    let is_uri = text.starts_with(SCHEME);
    let rest = text.strip_prefix(SCHEME).unwrap_or(text);
    let (user, host) = match rest.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, rest),
    };
    let unfit = |c: char| c.is_whitespace() || c.is_control() || SHELL.contains(c);
    if text.len() > BYTES_MAX {
        return Some(format!("{} bytes: must be at most {BYTES_MAX}", text.len()));
    }
    if [text, host, user.unwrap_or_default()]
        .iter()
        .any(|part| part.starts_with('-'))
    {
        return Some("it must not begin with `-`".into());
    }
    if let Some(c) = rest.chars().find(|c| unfit(*c)) {
        return Some(format!("{c:?} is not allowed in a user or host name"));
    }
    // A backslash before the @ may separate a domain from a user.
    if host.contains('\\') || user.is_some_and(|user| user.ends_with('\\')) {
        return Some("'\\\\' is not allowed in a host name".into());
    }
    if user == Some("") {
        return Some("the user before the @ is missing".into());
    }
    if host.is_empty() || is_uri && host.starts_with(':') || host.contains('/') {
        let form = if is_uri {
            "ssh://user@host:port"
        } else {
            "user@host"
        };
        return Some(format!("expected {form}"));
    }
    if is_uri { port_problem(host) } else { None }
}

/// Checks the port after the colon. Colons of an address in brackets are ignored.
fn port_problem(host: &str) -> Option<String> {
    let port = match host.rsplit_once(']') {
        Some((_, "")) => return None,
        Some((_, after)) => after.strip_prefix(':')?,
        None => host.rsplit_once(':')?.1,
    };
    let fits = port.parse::<u16>().is_ok_and(|port| port > 0);
    (!fits).then(|| format!("invalid port {port:?}: must be 1 to 65535"))
}

// Facts that the shell of a machine reports, including whether the program is there.

/// Facts about a machine after the login.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct RemoteFacts {
    /// Name of the remote user.
    user: String,
    /// Processor, from `uname -m`.
    machine: String,
    /// Operating system, from `uname -s`.
    system: String,
    /// Folder that programs are copied to.
    folder: String,
    /// Whether the folder contains this program, byte for byte.
    is_program_there: bool,
    /// Last line of `df -Pk` for the file system of the folder.
    room: String,
}

impl RemoteFacts {
    fn learn(&mut self, said: MarkedLine) {
        let MarkedLine { what, text } = said;
        match what.as_str() {
            "user" => self.user = text,
            "machine" => self.machine = text,
            "system" => self.system = text,
            "folder" => self.folder = text,
            "room" => self.room = text.split_whitespace().collect::<Vec<_>>().join(" "),
            "program" => self.is_program_there = text == "there",
            _ => {}
        }
    }

    /// Whether the machine can run the program at all.
    fn fits(&self, to: &Destination, program: &Program) -> Result<(), Error> {
        let RemoteFacts {
            system, machine, ..
        } = self;
        if system != "Linux" {
            return Err(to.error(format!(
                "its system is {system}, but Proofload requires Linux"
            )));
        }
        if !program.runs_on(machine) {
            let ours = program.machine();
            return Err(to
                .error(format!(
                    "its processor is {machine}, but the program is built for {ours}"
                ))
                .help(format!(
                    "set `generators.program` to a program that is built for {machine}"
                )));
        }
        Ok(())
    }

    /// Whether there is room for the program. True if unknown. `df` prints the available space before the
    /// only percentage.
    fn has_room(&self, program: &Program) -> bool {
        let words: Vec<&str> = self.room.split(' ').collect();
        let share = words.iter().rposition(|word| word.ends_with('%'));
        let available_kib = share.and_then(|at| words[..at].last()?.parse::<u64>().ok());
        available_kib.is_none_or(|kib| kib.saturating_mul(1024) >= program.bytes)
    }

    fn full(&self, to: &Destination, program: &Program) -> Error {
        let room = if self.room.is_empty() {
            "df reported nothing".to_owned()
        } else {
            format!("df: {}", self.room)
        };
        let (folder, bytes) = (&self.folder, program.bytes);
        to.error(format!("not enough space in {folder} for the program ({bytes} bytes); {room}")).help(format!(
            "free space there, or set XDG_CACHE_HOME to another folder for that account; to remove earlier versions, run: ssh {} rm -r \
             {folder}",
            to.typed()
        ))
    }
}

#[cfg(test)]
mod tests;
