//! The pipe for a service's output, copied to the log without a wake-up for every line.
//!
//! If a service logs each request, the warden would otherwise run once for each request on the service's own
//! CPUs. So each read is followed by a pause, during which the pipe fills. There is no pause if the pipe is
//! half full. The pipe must never stay full for long, which would block the service.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::text::{cut_end, harmless};
use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

/// Wanted capacity of a pipe: the maximum that Linux permits every user.
const PIPE_BYTES: usize = 1 << 20;
const PAUSE: Duration = Duration::from_millis(5);
/// Maximum number of bytes of one read, so that a flood does not keep the warden from its orders.
const READ_BYTES_MAX: usize = 4 << 20;

/// The reading end of the pipe, and the log.
pub(super) struct LoggedPipe {
    pipe: Option<OwnedFd>,
    pipe_bytes: usize,
    paused_until: Option<Instant>,
    buffer: Vec<u8>,
    /// Further files to read, and the position up to which each was read.
    followed: Vec<(PathBuf, u64)>,
    pub log: ServiceLog,
}

impl LoggedPipe {
    /// Creates the pipe, and returns the end that the service writes to. `followed` files are read when all
    /// output is requested.
    pub fn open(log: ServiceLog, followed: &[PathBuf]) -> io::Result<(Self, OwnedFd)> {
        let (outlet, inlet) = pipe_with(PipeFlags::CLOEXEC)?;
        // Refused to users who already have many large pipes. Then the pipe is small and read more often.
        let _ = fcntl_setpipe_size(&outlet, PIPE_BYTES);
        let pipe_bytes = fcntl_getpipe_size(&outlet).unwrap_or(4096);
        rustix::fs::fcntl_setfl(&outlet, OFlags::NONBLOCK)?;
        let followed = followed.iter().map(|file| (file.clone(), 0)).collect();
        let (pipe, buffer) = (Some(outlet), vec![0; 64 << 10]);
        let output = Self {
            pipe,
            pipe_bytes,
            paused_until: None,
            buffer,
            followed,
            log,
        };
        Ok((output, inlet))
    }

    /// Reads the available output.
    pub fn pump(&mut self, now: Instant) {
        let read = self.read(READ_BYTES_MAX);
        self.paused_until = (read < self.pipe_bytes / 2).then_some(now + PAUSE);
    }

    /// Reads everything that was written up to now.
    pub fn drain(&mut self) {
        // Other processes may keep writing. The pipe's capacity is the most that can have been there.
        self.read(self.pipe_bytes);
        take_new(&mut self.followed, &mut self.log);
    }

    fn read(&mut self, limit: usize) -> usize {
        let mut total = 0;
        while let Some(pipe) = &self.pipe {
            if total >= limit {
                break;
            }
            match rustix::io::read(pipe, &mut self.buffer) {
                // All writers have closed it.
                Ok(0) => self.pipe = None,
                Ok(count) => {
                    self.log.push(&self.buffer[..count]);
                    total += count;
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        total
    }

    /// The descriptor to poll, if there is no pause at the moment.
    pub fn wanted(&self, now: Instant) -> Option<BorrowedFd<'_>> {
        let paused = self.paused_until.is_some_and(|until| now < until);
        self.pipe.as_ref().filter(|_| !paused).map(AsFd::as_fd)
    }

    /// Remaining time of the pause.
    pub fn pause(&self, now: Instant) -> Option<Duration> {
        let pause = self.paused_until?.saturating_duration_since(now);
        (self.pipe.is_some() && !pause.is_zero()).then_some(pause)
    }

    /// The last lines of all output.
    pub fn tail(&mut self) -> String {
        self.drain();
        self.log.tail()
    }
}

// Files that receive a service's output instead of its standard output, as with PM2. They are read on request
// only, so that nothing runs while requests are measured.
//
// It reads the new part of each file, at most its beginning and end. It must not change the files.

/// Maximum number of bytes read at each end of the new part. The log keeps less of either.
const END_BYTES: u64 = 1 << 20;

/// Moves the new part of each file into the log.
fn take_new(files: &mut [(PathBuf, u64)], log: &mut ServiceLog) {
    for (path, done) in files {
        // A missing or unreadable file has no new part.
        *done = take_from(path, *done, log).unwrap_or(*done);
    }
}

/// Reads a file from `done` on. Returns its end.
fn take_from(path: &Path, done: u64, log: &mut ServiceLog) -> io::Result<u64> {
    let mut file = plan::open_file(path)?;
    let end = file.metadata()?.len();
    // A file that became shorter was truncated and started again.
    let start = if end < done { 0 } else { done };
    let mut at = start;
    let mut read = |from: u64, bytes: u64, log: &mut ServiceLog| {
        file.seek(SeekFrom::Start(from))?;
        let mut buffer = Vec::new();
        Read::by_ref(&mut file)
            .take(bytes)
            .read_to_end(&mut buffer)?;
        log.push(&buffer);
        io::Result::Ok(from + buffer.len() as u64)
    };
    if end - start > 2 * END_BYTES {
        at = read(start, END_BYTES, log)?;
        let rest = end - END_BYTES;
        log.skip(rest - at);
        at = rest;
    }
    read(at, end - at, log)
}

// A service's output on disk: its beginning and its end, so that a flood does not fill the disk.
//
// ```text
// file:  first 1 MiB | ... n bytes not kept ... | last 64 KiB
// ```
// The beginning is written on arrival. The end is kept in memory and written when the log is finished.
// Everything between is only counted. It does not depend on pipes or processes.

/// Bytes kept of the beginning.
pub(super) const HEAD_BYTES: u64 = 1 << 20;
/// Bytes kept of the end.
pub(super) const RING_BYTES: usize = 64 << 10;
/// Maximum number of lines, and of characters in a line, of [`Log::tail`].
const TAIL_LINES: usize = 20;
const TAIL_LINE_CHARS: usize = 300;

pub(super) struct ServiceLog {
    file: File,
    head_bytes: u64,
    ring: VecDeque<u8>,
    total_bytes: u64,
}

impl ServiceLog {
    /// Creates the file, replacing an existing one.
    pub fn create(path: &Path) -> io::Result<Self> {
        // Output is readable by its owner only.
        let file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(path)?;
        Ok(Self {
            file,
            head_bytes: 0,
            ring: VecDeque::with_capacity(RING_BYTES),
            total_bytes: 0,
        })
    }

    /// Appends output. A full disk does not stop the service: bytes that cannot be written count as dropped.
    pub fn push(&mut self, bytes: &[u8]) {
        let space = HEAD_BYTES
            .saturating_sub(self.total_bytes)
            .min(bytes.len() as u64);
        let head = &bytes[..usize::try_from(space).unwrap_or(bytes.len())];
        // After a failed write the file has a gap, and nothing more is appended.
        if self.head_bytes == self.total_bytes && self.file.write_all(head).is_ok() {
            self.head_bytes += head.len() as u64;
        }
        self.total_bytes += bytes.len() as u64;
        let kept = &bytes[bytes.len().saturating_sub(RING_BYTES)..];
        let excess = (self.ring.len() + kept.len()).saturating_sub(RING_BYTES);
        self.ring.drain(..excess);
        self.ring.extend(kept);
    }

    /// Counts output that was not read.
    pub fn skip(&mut self, bytes: u64) {
        self.total_bytes += bytes;
        self.ring.clear();
    }

    /// Completes the file. Returns the total number of bytes, and the number that is not in the file.
    pub fn finish(mut self) -> (u64, u64) {
        let beyond = self.total_bytes - self.head_bytes;
        let kept = beyond.min(self.ring.len() as u64);
        if beyond == 0 {
            return (self.total_bytes, 0);
        }
        let start = self.ring.len() - usize::try_from(kept).unwrap_or(0);
        let end: Vec<u8> = self.ring.range(start..).copied().collect();
        let note = format!("\n[... {} bytes not kept ...]\n", beyond - kept);
        let note = if beyond == kept { "" } else { &note };
        let written = self
            .file
            .write_all(note.as_bytes())
            .and_then(|()| self.file.write_all(&end));
        (
            self.total_bytes,
            if written.is_ok() {
                beyond - kept
            } else {
                beyond
            },
        )
    }

    /// The last lines, without terminal control sequences.
    pub fn tail(&self) -> String {
        let bytes: Vec<u8> = self.ring.iter().copied().collect();
        // The first of these lines may be incomplete.
        let begin = if self.total_bytes > bytes.len() as u64 {
            "…"
        } else {
            ""
        };
        let text = plain(&format!("{begin}{}", String::from_utf8_lossy(&bytes)));
        let lines: Vec<&str> = text.trim_end().lines().collect();
        let last = lines[lines.len().saturating_sub(TAIL_LINES)..].iter();
        last.map(|line| cut_end(line, TAIL_LINE_CHARS))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Removes colours and other control sequences.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' if chars.next_if_eq(&'[').is_some() => {
                // ECMA-48: a control sequence ends with a byte from `@` to `~`.
                while chars
                    .next()
                    .is_some_and(|next| !('@'..='~').contains(&next))
                {}
            }
            '\n' | '\t' => plain.push(char),
            other if other.is_control() => {}
            other => plain.push(harmless(other)),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder, and a log in it.
    fn log() -> (tempfile::TempDir, PathBuf, ServiceLog) {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("kept");
        let log = ServiceLog::create(&kept).unwrap();
        (folder, kept, log)
    }

    #[test]
    fn what_is_new_is_taken_once_and_of_a_flood_both_ends_and_a_pipe_is_not_waited_for() {
        let (folder, kept, mut log) = log();
        let place = |name: &str| folder.path().join(name);
        assert!(
            std::process::Command::new("mkfifo")
                .arg(place("pipe"))
                .status()
                .unwrap()
                .success()
        );
        let mut files = ["missing", "pipe", "app.log"].map(|name| (place(name), 0));
        take_new(&mut files, &mut log);
        assert_eq!(log.tail(), "");
        let mut file = File::create(place("app.log")).unwrap();
        file.write_all(b"first\n").unwrap();
        take_new(&mut files, &mut log);
        take_new(&mut files, &mut log);
        assert_eq!(log.tail(), "first");
        file.write_all(&b"0123456789abcde\n".repeat(300_000))
            .unwrap();
        file.write_all(b"last\n").unwrap();
        take_new(&mut files, &mut log);
        assert!(log.tail().ends_with("abcde\nlast"), "{}", log.tail());
        let (total, dropped) = log.finish();
        assert_eq!(total, 6 + 16 * 300_000 + 5);
        let text = std::fs::read(&kept).unwrap();
        assert!(text.starts_with(b"first\n0123456789") && text.ends_with(b"last\n"));
        assert!(
            dropped > 3_000_000 && (text.len() as u64) < 1_200_000,
            "{dropped}"
        );
    }

    fn finished(chunks: &[&[u8]]) -> (u64, u64, Vec<u8>) {
        let (_folder, kept, mut log) = log();
        chunks.iter().for_each(|chunk| log.push(chunk));
        let (total, dropped) = log.finish();
        (total, dropped, std::fs::read(kept).unwrap())
    }

    #[test]
    fn a_flood_keeps_its_beginning_and_its_end_and_what_fits_is_kept_byte_for_byte() {
        let line = b"0123456789abcde\n";
        let chunk = line.repeat(5000);
        let (total, dropped, kept) = finished(&[chunk.as_slice(); 40]);
        assert_eq!(total, 40 * 80_000);
        assert_eq!(dropped, total - HEAD_BYTES - RING_BYTES as u64);
        let note = format!("\n[... {dropped} bytes not kept ...]\n");
        assert_eq!(kept.len() as u64, total - dropped + note.len() as u64);
        assert!(kept.starts_with(line) && kept.ends_with(line));
        let chunk = vec![7; 700 << 10];
        let (total, dropped, kept) = finished(&[&chunk, &chunk[..(324 << 10) + 5000]]);
        assert_eq!(
            (total, dropped, kept.len()),
            ((1 << 20) + 5000, 0, (1 << 20) + 5000)
        );
    }

    #[test]
    fn a_tail_is_short_and_harmless() {
        let mut output: Vec<u8> = (0..100)
            .flat_map(|n| format!("line {n}\n").into_bytes())
            .collect();
        output.extend(b"\x1b[31mError:\x1b[0m \x07\xff bad\r\n");
        let (_folder, _, mut log) = log();
        log.push(&output);
        let tail = log.tail();
        assert_eq!(tail.lines().count(), TAIL_LINES);
        assert!(
            tail.starts_with("line 81\n") && tail.ends_with("\nError: \u{fffd} bad"),
            "{tail:?}"
        );
    }
}
