//! One process of this system's `ssh`: how it is asked, how its end is told, and that it does not stay.

use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Fault;
use super::destination::Destination;
use crate::last_lines::{LastLines, last};

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
const PATIENCE: Duration = Duration::from_secs(1);
/// How long one that has closed its output may take to say how it ended.
const STATUS_PATIENCE: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// Of `ssh`, where it is the connection that failed, or what ran there was ended by a signal.
const CONNECTION: i32 = 255;

/// The process. Dropped, it has ended.
#[derive(Debug)]
pub(super) struct Connection(Arc<Process>);

/// The same for whoever only wants to know how it ended.
#[derive(Debug)]
struct Process(Mutex<Child>);

/// Starts `ssh` with this command for the login shell of the host.
pub(super) fn start(
    destination: &Destination,
    remote: &str,
) -> Result<(Connection, (ChildStdin, ChildStdout), LastLines), Fault> {
    let failed = |source| Fault::NoSsh { source };
    let mut command = Command::new("ssh");
    command.arg("-T");
    for option in OPTIONS {
        command.args(["-o", option]);
    }
    command.arg("--").args([destination.as_str(), remote]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Ctrl-C is for us: whoever ends a run in good order still needs its connections.
    command.process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    let missing = || failed(io::Error::other("it has no stdin, stdout or stderr"));
    let ends = child.stdin.take().zip(child.stdout.take());
    let stderr = child.stderr.take();
    let connection = Connection(Arc::new(Process(Mutex::new(child))));
    let (ends, stderr) = ends.zip(stderr).ok_or_else(missing)?;
    let words = LastLines::of(stderr).map_err(failed)?;
    Ok((connection, ends, words))
}

impl Process {
    /// How it ended, if it does within this time.
    fn ended_within(&self, patience: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            let status = self.0.lock().unwrap_or_else(PoisonError::into_inner).try_wait();
            match status {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => sleep(LOOK_AGAIN),
                Ok(None) | Err(_) => return None,
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.0.ended_within(PATIENCE).is_none() {
            let mut child = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Both fail only where it has ended and been waited for.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The stdout of a program there. Its end is an error where it was not meant, with what was said last.
#[derive(Debug)]
pub(super) struct Output {
    /// What was read before the program had begun; it is its own all the same.
    rest: io::Cursor<Vec<u8>>,
    stdout: ChildStdout,
    process: Arc<Process>,
    words: LastLines,
}

impl Read for Output {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match self.rest.read(buffer)? {
            0 => self.stdout.read(buffer)?,
            count => count,
        };
        if count == 0 && !buffer.is_empty() { self.end() } else { Ok(count) }
    }
}

impl Output {
    /// What comes on `stdout` after `rest`; `words` is what was said beside it.
    pub(super) fn new(
        rest: Vec<u8>,
        stdout: ChildStdout,
        connection: &Connection,
        words: LastLines,
    ) -> Output {
        Output { rest: io::Cursor::new(rest), stdout, process: connection.0.clone(), words }
    }

    fn end(&self) -> io::Result<usize> {
        let status = self.process.ended_within(STATUS_PATIENCE);
        if status.is_some_and(|status| status.success()) {
            return Ok(0);
        }
        Err(io::Error::new(
            io::ErrorKind::ConnectionAborted,
            how_it_ended(status, &last(&self.words.lines())),
        ))
    }
}

fn how_it_ended(status: Option<ExitStatus>, words: &str) -> String {
    match status.and_then(|status| status.code()) {
        Some(CONNECTION) if words.is_empty() => "the program there was ended by a signal".to_owned(),
        Some(CONNECTION) => format!("the connection ended: {words}"),
        Some(code) if words.is_empty() => format!("the program there ended with exit code {code}"),
        Some(code) => format!("the program there ended with exit code {code}: {words}"),
        None if words.is_empty() => "ssh was ended".to_owned(),
        None => format!("ssh was ended: {words}"),
    }
}
