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
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;

use crate::channel::{LastLines, Patient, last, printable};
use crate::ssh::{Destination, fault, quoted};
use crate::{Channel, Error, Program};

const SCRIPT: &str = include_str!("there.sh");
/// For a login, and for whatever is asked afterwards.
const PATIENCE: Duration = Duration::from_secs(30);
/// For what is still on its way of a program that is all given, over a slow line, and to check it. A line that is dead ends sooner.
const COPY_PATIENCE: Duration = Duration::from_secs(180);
/// What may be printed that is no answer.
const FOREIGN_BYTES_MAX: usize = 1 << 20;

/// A shell there that waits for orders.
#[derive(Debug)]
pub(super) struct Talk {
    pub(super) destination: Destination,
    // First, so that it is closed before the process is waited for.
    input: Patient,
    output: ChildStdout,
    connection: SshProcess,
    words: LastLines,
    mark: String,
    /// What was read and is no whole line yet.
    rest: Vec<u8>,
    foreign: Vec<String>,
    foreign_bytes: usize,
}

/// At what an answer is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TalkStep {
    Login,
    Folder,
    Copy,
    Try,
}

impl TalkStep {
    fn words(self) -> &'static str {
        match self {
            TalkStep::Login => "at the login",
            TalkStep::Folder => "before the program was copied",
            TalkStep::Copy => "while the program was copied",
            TalkStep::Try => "when the program was tried",
        }
    }

    fn patience(self) -> Duration {
        if self == TalkStep::Copy {
            COPY_PATIENCE
        } else {
            PATIENCE
        }
    }
}

/// A line with our mark: its first word, and what follows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MarkedLine {
    pub(super) what: String,
    pub(super) text: String,
}

impl Talk {
    /// Logs in and has the script run there. Its first answer is not read yet.
    pub(super) fn begin(destination: Destination, program: &Program) -> Result<Talk, Error> {
        let mark = format!("pl{:016x}", RandomState::new().build_hasher().finish());
        let script = format!(
            "mark={mark} name={} sum={}\n{SCRIPT}",
            program.file_name(),
            program.sha256
        );
        let failed = |source: io::Error| {
            destination
                .error(format!("ssh cannot be started: {source}"))
                .help("install OpenSSH's client, the command ssh")
        };
        let mut child = command(&destination, script.len())
            .spawn()
            .map_err(failed)?;
        let ends = child
            .stdin
            .take()
            .zip(child.stdout.take())
            .zip(child.stderr.take());
        let connection = SshProcess(Arc::new(Mutex::new(child)));
        let missing = || failed(io::Error::other("it has no stdin, stdout or stderr"));
        let ((stdin, output), stderr) = ends.ok_or_else(missing)?;
        let input = Patient::new(stdin).map_err(failed)?;
        let words = LastLines::of(stderr).map_err(failed)?;
        let (rest, foreign) = (Vec::new(), Vec::new());
        let mut talk = Talk {
            destination,
            input,
            output,
            connection,
            words,
            mark,
            rest,
            foreign,
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
    pub(super) fn receive(&mut self, at: TalkStep) -> Result<MarkedLine, Error> {
        let deadline = Instant::now() + at.patience();
        loop {
            let Some(line) = self.line(deadline, at)? else {
                return Err(self.end(at));
            };
            if let Some(said) = marked(&line, &self.mark) {
                return Ok(said);
            }
            self.foreign_bytes += line.len();
            self.foreign
                .extend(Some(printable(&line)).filter(|text| !text.is_empty()));
            if self.foreign_bytes > FOREIGN_BYTES_MAX {
                return Err(fault::no_shell(&self.destination, &last(&self.foreign)));
            }
        }
    }

    /// Has the shell there become the program. What follows on both ends is its own.
    pub(super) fn become_program(mut self, arguments: &[&str]) -> Channel {
        let words: Vec<String> = arguments.iter().map(|argument| quoted(argument)).collect();
        // From now on stderr is the program's, and what the login said belongs to nothing.
        self.words.forget();
        self.send(&format!("run {}", words.join(" ")));
        let Talk {
            destination,
            input,
            output: stdout,
            connection,
            words,
            rest,
            ..
        } = self;
        let output = RemoteStdout {
            rest: io::Cursor::new(rest),
            stdout,
            process: Arc::clone(&connection.0),
            words,
        };
        Channel::new(destination.name(), input, output, connection)
    }

    /// Why it ended.
    fn end(&self, at: TalkStep) -> Error {
        let lines = self.words.lines();
        if at == TalkStep::Login {
            return fault::of_login(&self.destination, &lines, &self.foreign);
        }
        fault::ended(&self.destination, at.words(), &last(&lines))
    }

    /// The next line, without its end; `None` at the end of the output.
    fn line(&mut self, deadline: Instant, at: TalkStep) -> Result<Option<Vec<u8>>, Error> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let after = self.rest.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.rest, after);
                line.pop();
                return Ok(Some(line));
            }
            if self.rest.len() > FOREIGN_BYTES_MAX {
                return Err(fault::no_shell(
                    &self.destination,
                    &format!("{}…", printable(&self.rest[..200])),
                ));
            }
            if !self.has_output_until(deadline) {
                let (to, seconds, at) = (&self.destination, at.patience().as_secs(), at.words());
                return Err(to
                    .error(format!("no answer within {seconds} s {at}"))
                    .help(to.try_it()));
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
        let ready = retry_on_intr(|| {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: left.subsec_nanos().into(),
            };
            poll(&mut [PollFd::new(&self.output, PollFlags::IN)], Some(&left))
        });
        // Where that fails, reading says what is wrong.
        ready != Ok(0)
    }
}

fn marked(line: &[u8], mark: &str) -> Option<MarkedLine> {
    // A start file may print without ending its line.
    let text = String::from_utf8_lossy(line);
    let (_, marked) = text.split_once(mark)?;
    let (what, text) = marked
        .strip_prefix(' ')?
        .split_once(' ')
        .unwrap_or((marked.trim(), ""));
    Some(MarkedLine {
        what: what.to_owned(),
        text: text.trim().to_owned(),
    })
}

// One process of this system's `ssh`: how it is asked, how its end is told, and that it does not stay.

/// What is asked of every connection, whatever `~/.ssh/config` says of the host. Everything else is as it says there.
const OPTIONS: [&str; 12] = [
    // In the middle of a run there is nobody to ask.
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ConnectionAttempts=1",
    // What is dead is noticed after 9 s of silence. The network may be gone for 5 s: TCP then needs up to 2.4 s more to notice that it is
    // back, for it waits twice as long after each attempt.
    "ServerAliveInterval=3",
    "ServerAliveCountMax=2",
    // A connection that the user keeps open is used, which spares a second factor; none is left behind.
    "ControlMaster=no",
    // Nothing listens on a port, and nobody there gets hold of our keys.
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    // Other commands that a host's entry may ask for.
    "RemoteCommand=none",
    "PermitLocalCommand=no",
    // What it says of a lost connection is information to it.
    "LogLevel=INFO",
];
/// How long a connection whose ends are closed may take to end by itself.
const CLOSE_PATIENCE: Duration = Duration::from_secs(1);
/// How long one that has closed its output may take to say how it ended.
const STATUS_PATIENCE: Duration = Duration::from_secs(3);
/// Of `ssh`, where it is the connection that failed, or what ran there was ended by a signal.
const CONNECTION: i32 = 255;

/// The process. Dropped, it has ended.
#[derive(Debug)]
struct SshProcess(Arc<Mutex<Child>>);

/// `ssh` with a command for the login shell of the host that reads so many bytes of a script and runs it.
fn command(destination: &Destination, script_bytes: usize) -> Command {
    let remote = format!("exec sh -c 'eval \"$(head -c {script_bytes})\"'");
    let mut command = Command::new("ssh");
    command
        .arg("-T")
        .args(OPTIONS.iter().flat_map(|option| ["-o", option]));
    command.args(["--", &destination.0, &remote]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // Ctrl-C is for us: whoever ends a run in good order still needs its connections.
    command.process_group(0);
    command
}

/// How it ended, if it does within this time.
fn ended_within(child: &Mutex<Child>, patience: Duration) -> Option<ExitStatus> {
    machine::ended_within(patience, || {
        child
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .try_wait()
    })
}

impl Drop for SshProcess {
    fn drop(&mut self) {
        if ended_within(&self.0, CLOSE_PATIENCE).is_none() {
            let mut child = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Both fail only where it has ended and been waited for.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The stdout of a program there. Its end is an error where it was not meant, with what was said last.
struct RemoteStdout {
    /// What was read before the program had begun; it is its own all the same.
    rest: io::Cursor<Vec<u8>>,
    stdout: ChildStdout,
    process: Arc<Mutex<Child>>,
    words: LastLines,
}

impl Read for RemoteStdout {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match self.rest.read(buffer)? {
            0 => self.stdout.read(buffer)?,
            count => count,
        };
        if count == 0 && !buffer.is_empty() {
            self.end()
        } else {
            Ok(count)
        }
    }
}

impl RemoteStdout {
    fn end(&self) -> io::Result<usize> {
        let status = ended_within(&self.process, STATUS_PATIENCE);
        if status.is_some_and(|status| status.success()) {
            return Ok(0);
        }
        let how = how_it_ended(status, &last(&self.words.lines()));
        Err(io::Error::new(io::ErrorKind::ConnectionAborted, how))
    }
}

fn how_it_ended(status: Option<ExitStatus>, words: &str) -> String {
    let how = match status.and_then(|status| status.code()) {
        Some(CONNECTION) if words.is_empty() => {
            "the program there was ended by a signal".to_owned()
        }
        Some(CONNECTION) => "the connection ended".to_owned(),
        Some(code) => format!("the program there ended with exit code {code}"),
        None => "ssh was ended".to_owned(),
    };
    if words.is_empty() {
        how
    } else {
        format!("{how}: {words}")
    }
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
