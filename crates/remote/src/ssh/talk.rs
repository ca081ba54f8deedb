//! The dialogue with the shell of another machine, over one connection of the system's `ssh`.
//!
//! ```text
//! ssh … HOST  exec sh -c 'eval "$(head -c 4200)"'
//! ──► there.sh, 4200 bytes                ◄── MARK machine x86_64 … MARK done look
//! ──► put 14000000                        ◄── MARK done folder
//! ──► the program, 14000000 bytes         ◄── MARK done put
//! ──► run 'generate'                      from here on stdin and stdout are the program's
//! ```
//! The command line is quoted so that every login shell parses it the same way, including csh and fish.
//! Everything else is sent over stdin. The next message is sent only after the last one was answered, so that
//! no remote command can have read too much. Lines without the mark are output of start files, and are
//! skipped.

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
/// Timeout for the login, and for each later answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Timeout for the end of a copy: the last bytes of the program may still be on their way over a slow line,
/// and are then checked. A dead connection ends sooner.
const COPY_PATIENCE: Duration = Duration::from_secs(180);
/// Maximum size of output that is not an answer.
const FOREIGN_BYTES_MAX: usize = 1 << 20;

/// A remote shell that waits for commands.
#[derive(Debug)]
pub(super) struct Talk {
    pub(super) destination: Destination,
    // First, so that it is closed before waiting for the process.
    input: Patient,
    output: ChildStdout,
    connection: SshProcess,
    words: LastLines,
    mark: String,
    /// Bytes received after the last complete line.
    rest: Vec<u8>,
    foreign: Vec<String>,
    foreign_bytes: usize,
}

/// The step whose answer is awaited.
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
            TalkStep::Login => "during login",
            TalkStep::Folder => "before the program was copied",
            TalkStep::Copy => "while the program was being copied",
            TalkStep::Try => "during the trial run of the program",
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

/// A line with our mark: its first word, and the rest.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MarkedLine {
    pub(super) what: String,
    pub(super) text: String,
}

impl Talk {
    /// Logs in and starts the script. Its first answer is not read yet.
    pub(super) fn begin(destination: Destination, program: &Program) -> Result<Talk, Error> {
        let mark = format!("pl{:016x}", RandomState::new().build_hasher().finish());
        let script = format!(
            "mark={mark} name={} sum={}\n{SCRIPT}",
            program.file_name(),
            program.sha256
        );
        let failed = |source: io::Error| {
            destination
                .error(format!("cannot start ssh: {source}"))
                .help("install the OpenSSH client")
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
        let missing = || failed(io::Error::other("stdin, stdout or stderr is missing"));
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
        // An error means that the connection has ended. Reading then returns the reason.
        let _ = talk.input.write_all(script.as_bytes());
        Ok(talk)
    }

    /// Sends a command as one line. Errors are ignored, because reading the answer then returns the reason.
    pub(super) fn send(&mut self, line: &str) {
        let _ = writeln!(self.input, "{line}");
    }

    /// Sends the data of a command. Returns false if the connection has ended.
    pub(super) fn send_bytes(&mut self, bytes: &[u8]) -> bool {
        self.input.write_all(bytes).is_ok()
    }

    /// Reads the next line with our mark.
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

    /// Replaces the remote shell with the program. From then on stdin and stdout belong to the program.
    pub(super) fn become_program(mut self, arguments: &[&str]) -> Channel {
        let words: Vec<String> = arguments.iter().map(|argument| quoted(argument)).collect();
        // From now on stderr belongs to the program. Messages of the login are discarded.
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

    /// Error for a connection that has ended.
    fn end(&self, at: TalkStep) -> Error {
        let lines = self.words.lines();
        if at == TalkStep::Login {
            return fault::of_login(&self.destination, &lines, &self.foreign);
        }
        fault::ended(&self.destination, at.words(), &last(&lines))
    }

    /// Reads the next line without its newline. Returns `None` at the end of the output.
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
                    .error(format!("no response within {seconds} s {at}"))
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

    /// Whether data or the end of the output is available before the deadline.
    fn has_output_until(&self, deadline: Instant) -> bool {
        let ready = retry_on_intr(|| {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: left.subsec_nanos().into(),
            };
            poll(&mut [PollFd::new(&self.output, PollFlags::IN)], Some(&left))
        });
        // If polling fails, reading returns the error.
        ready != Ok(0)
    }
}

fn marked(line: &[u8], mark: &str) -> Option<MarkedLine> {
    // A start file may print a line without a newline.
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

// One process of the system's `ssh`: its options, its exit status, and its end.

/// Options of every connection, which override `~/.ssh/config`. Everything else is as configured there.
const OPTIONS: [&str; 12] = [
    // There is no user to answer prompts during a run.
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ConnectionAttempts=1",
    // A dead connection is detected after 9 s of silence. After an outage of 5 s, TCP needs up to 2.4 s more
    // to detect that the network is back, because it doubles the pause after each attempt.
    "ServerAliveInterval=3",
    "ServerAliveCountMax=2",
    // Uses a connection that the user keeps open, which saves a second factor, and leaves none behind.
    "ControlMaster=no",
    // Opens no port, and gives the other machine no access to our keys.
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    // Other commands that the configuration of a host may run.
    "RemoteCommand=none",
    "PermitLocalCommand=no",
    // `ssh` logs the reason for a lost connection at this level.
    "LogLevel=INFO",
];
/// How long a connection may take to end after its stdin and stdout are closed.
const CLOSE_PATIENCE: Duration = Duration::from_secs(1);
/// How long a connection may take to exit after it has closed its output.
const STATUS_PATIENCE: Duration = Duration::from_secs(3);
/// Exit code of `ssh` if the connection failed, or if a signal ended the remote program.
const CONNECTION: i32 = 255;

/// An `ssh` process. Dropping this value ends the process.
#[derive(Debug)]
struct SshProcess(Arc<Mutex<Child>>);

/// Command line of `ssh`. The login shell of the host reads a script of `script_bytes` bytes and runs it.
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
    // Keeps Ctrl-C from `ssh`, because ending a run in good order still needs its connections.
    command.process_group(0);
    command
}

/// Exit status of the process, if it ends within this time.
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
            // Both fail only if the process has already ended and been waited for.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Stdout of a remote program. An unexpected end is an error with the last lines of stderr.
struct RemoteStdout {
    /// Bytes that were read before the program started and that belong to the program.
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
            "the remote program was killed by a signal".to_owned()
        }
        Some(CONNECTION) => "the connection closed".to_owned(),
        Some(code) => format!("the remote program exited with code {code}"),
        None => "ssh was killed".to_owned(),
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
