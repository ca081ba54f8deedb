//! One program, usually on another machine: its stdin and stdout, and the owner of its resources.

use std::any::Any;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use model::text::harmless;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::Error;

/// Stdin and stdout of a program on any machine.
///
/// The program ends when `input` is closed. `keeper` owns everything else that must live as long as the
/// program (a child process, a connection, a Job). Dropping it removes whatever is left.
pub struct Channel {
    /// Location as shown to users: `local`, `ssh://bench-1`, `kubernetes://bench/proofload-x7k2-3`.
    pub name: String,
    /// Stdin of the program.
    pub input: Box<dyn Write + Send>,
    /// Stdout of the program.
    pub output: Box<dyn Read + Send>,
    /// Owner of everything else that must live as long as the program.
    pub keeper: Box<dyn Any + Send>,
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Channel {
    /// Creates a channel from stdin, stdout and a keeper.
    pub fn new(
        name: impl Into<String>,
        input: impl Write + Send + 'static,
        output: impl Read + Send + 'static,
        keeper: impl Any + Send,
    ) -> Channel {
        let name = name.into();
        Channel {
            name,
            input: Box::new(input),
            output: Box::new(output),
            keeper: Box::new(keeper),
        }
    }

    /// Process ID of the program, if it is a child of this process.
    pub fn process(&self) -> Option<u32> {
        self.keeper
            .downcast_ref::<EndedChild>()
            .map(|child| child.0.id())
    }
}

/// Starts a program on this machine as a child process. It inherits our stderr.
///
/// # Errors
/// If the program cannot be started.
pub fn here(name: impl Into<String>, mut command: Command) -> Result<Channel, Error> {
    let name = name.into();
    let failed = |source: io::Error| Error::new(format!("{name}: cannot be started: {source}"));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let missing = || failed(io::Error::other("stdin or stdout is missing"));
    let (input, output) = child
        .stdin
        .take()
        .zip(child.stdout.take())
        .ok_or_else(missing)?;
    let input = Patient::new(input).map_err(failed)?;
    Ok(Channel::new(name, input, output, EndedChild(child)))
}

/// A child process that is killed when dropped, unless the end of its stdin has already ended it.
struct EndedChild(Child);

impl Drop for EndedChild {
    fn drop(&mut self) {
        // Both fail only if the child has already ended and been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

// A pipe to a process that may not read any more: it is stopped, or its network accepts no data.

/// How long a reader may accept no data.
const WRITE_PATIENCE: Timespec = Timespec {
    tv_sec: 20,
    tv_nsec: 0,
};

/// The writing end of a pipe with a timeout for its reader. After a timeout all writes fail.
#[derive(Debug)]
pub(crate) struct Patient {
    end: OwnedFd,
    patience: Timespec,
    lost: bool,
}

impl Patient {
    pub(crate) fn new(end: impl Into<OwnedFd>) -> io::Result<Patient> {
        let end = end.into();
        rustix::io::ioctl_fionbio(&end, true)?;
        Ok(Patient {
            end,
            patience: WRITE_PATIENCE,
            lost: false,
        })
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        while !self.lost {
            match rustix::io::write(&self.end, bytes) {
                Err(Errno::AGAIN) => {}
                other => return Ok(other?),
            }
            let mut room = [PollFd::new(&self.end, PollFlags::OUT)];
            self.lost = poll(&mut room, Some(&self.patience)) == Ok(0);
            if self.lost {
                let message = format!("it accepted no data for {} s", self.patience.tv_sec);
                return Err(io::Error::new(ErrorKind::TimedOut, message));
            }
        }
        Err(ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// The last lines that a process wrote to stderr. They are part of the error when it ends unexpectedly.

/// Number of lines that are kept. OpenSSH needs about as many for a changed host key.
const LINES: usize = 20;
const LINE_BYTES: u64 = 500;
/// Number of lines that an error shows.
const SHOWN: usize = 3;
/// How long the last lines may take to arrive after the process has ended.
const PATIENCE: Duration = Duration::from_millis(500);
/// Stack size of the reading thread. There is one for each host, and it does little work.
const STACK_BYTES: usize = 64 << 10;

/// The last lines of a stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastLines(Arc<(Mutex<KeptChannel>, Condvar)>);

#[derive(Debug, Default)]
struct KeptChannel {
    lines: VecDeque<String>,
    ended: bool,
}

impl LastLines {
    /// Collects lines of `stream` on a thread that ends with the stream.
    pub(crate) fn of(stream: impl Read + Send + 'static) -> io::Result<LastLines> {
        let all = LastLines::default();
        let kept = all.clone();
        let named = std::thread::Builder::new()
            .name("last lines".into())
            .stack_size(STACK_BYTES);
        named.spawn(move || kept.keep(BufReader::new(stream)))?;
        Ok(all)
    }

    /// Returns the collected lines. Waits a moment for the stream to end.
    pub(crate) fn lines(&self) -> Vec<String> {
        let (kept, ended) = &*self.0;
        let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = ended.wait_timeout_while(kept, PATIENCE, |kept| !kept.ended);
        let (kept, _) = waited.unwrap_or_else(PoisonError::into_inner);
        kept.lines.iter().cloned().collect()
    }

    pub(crate) fn forget(&self) {
        self.0
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .lines
            .clear();
    }

    fn keep(&self, mut stream: impl BufRead) {
        let (kept, ended) = &*self.0;
        let (mut line, mut is_cut) = (Vec::new(), false);
        loop {
            line.clear();
            let read = stream
                .by_ref()
                .take(LINE_BYTES)
                .read_until(b'\n', &mut line);
            let begin = if is_cut { "…" } else { "" };
            is_cut = line.len() as u64 == LINE_BYTES && !line.ends_with(b"\n");
            let end = if is_cut { "…" } else { "" };
            let text = Some(printable(&line)).filter(|text| !text.is_empty());
            let text = text
                .map(|text| format!("{begin}{text}{end}"))
                .unwrap_or_default();
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(read, Err(_) | Ok(0)) {
                kept.ended = true;
                ended.notify_all();
                return;
            }
            if !text.is_empty() {
                kept.lines.push_back(text);
            }
            if kept.lines.len() > LINES {
                kept.lines.pop_front();
            }
        }
    }
}

/// Joins the last of the lines into one.
pub(crate) fn last(lines: &[String]) -> String {
    lines[lines.len().saturating_sub(SHOWN)..].join("; ")
}

/// Returns a line without characters that would move the cursor of a terminal.
pub(crate) fn printable(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let shown = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { harmless(c) });
    shown.collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_stands_still_is_given_up_and_one_that_is_slow_gets_all() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut patient = Patient::new(writer).unwrap();
        let much = vec![7; 1 << 20];
        let (written, read) = std::thread::scope(|scope| {
            let read = scope.spawn(|| {
                let mut all = vec![0; much.len()];
                reader.read_exact(&mut all).map(|()| all)
            });
            (
                scope.spawn(|| patient.write_all(&much)).join().unwrap(),
                read.join().unwrap().unwrap(),
            )
        });
        written.unwrap();
        assert_eq!(read, much);
        // There is no reader any more.
        patient.patience = Timespec {
            tv_sec: 0,
            tv_nsec: 50_000_000,
        };
        assert_eq!(
            patient.write_all(&much).unwrap_err().kind(),
            ErrorKind::TimedOut
        );
        assert_eq!(
            patient.write_all(b"end").unwrap_err().kind(),
            ErrorKind::BrokenPipe
        );
    }

    #[test]
    fn the_last_lines_stay_whatever_came_before() {
        let mut text = (0..50).map(|n| format!("line {n}\r\n")).collect::<String>();
        text.push_str("\n\x1b[31mend without a line's end");
        let words = LastLines::of(io::Cursor::new(text)).unwrap();
        let lines = words.lines();
        assert_eq!((lines.len(), lines[0].as_str()), (LINES, "line 31"));
        assert_eq!(
            last(&lines),
            "line 48; line 49; [31mend without a line's end"
        );
        let endless = LastLines::of(io::Cursor::new("x".repeat(5_000))).unwrap();
        assert_eq!(
            endless.lines().concat().replace('…', "").len(),
            5_000.min(LINES * LINE_BYTES as usize)
        );
        words.forget();
        assert_eq!(last(&words.lines()), "");
    }
}
