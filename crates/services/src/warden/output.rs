//! The pipe through which a service's output comes, emptied into the log without waking up for every line.
//!
//! A service that logs each request would otherwise have the warden run once a request on the service's own CPUs. So
//! after each reading there is a pause, during which the pipe fills; a pipe that is half full gets none. It must never
//! let the pipe run full for long, which would block the service.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

use super::followed::Followed;
use super::log::Log;

/// How much a pipe should hold: what Linux allows everyone.
const PIPE_BYTES: usize = 1 << 20;
const PAUSE: Duration = Duration::from_millis(5);
/// At most this much at a time, so that a flood does not keep the warden from its orders.
const READ_BYTES_MAX: usize = 4 << 20;

/// The reading end, and where it goes.
pub(super) struct Output {
    pipe: Option<OwnedFd>,
    pipe_bytes: usize,
    paused_until: Option<Instant>,
    buffer: Vec<u8>,
    followed: Followed,
    log: Log,
}

impl Output {
    /// With the end that the service writes to. Files that are `followed` are read when all is asked for.
    pub fn open(log: Log, followed: Followed) -> io::Result<(Self, OwnedFd)> {
        let (outlet, inlet) = pipe_with(PipeFlags::CLOEXEC)?;
        // Refused to users who have many large pipes already: then it is a small one, read more often.
        let _ = fcntl_setpipe_size(&outlet, PIPE_BYTES);
        let pipe_bytes = fcntl_getpipe_size(&outlet).unwrap_or(4096);
        rustix::fs::fcntl_setfl(&outlet, OFlags::NONBLOCK)?;
        let output = Self {
            pipe: Some(outlet),
            pipe_bytes,
            paused_until: None,
            buffer: vec![0; 64 << 10],
            followed,
            log,
        };
        Ok((output, inlet))
    }

    /// Reads what is there.
    pub fn pump(&mut self, now: Instant) {
        let read = self.read(READ_BYTES_MAX);
        self.paused_until = (read < self.pipe_bytes / 2).then_some(now + PAUSE);
    }

    /// Reads to the last byte that was written up to now.
    pub fn drain(&mut self) {
        // Others may keep writing, so a pipe's fill is the most that can have been there.
        self.read(self.pipe_bytes);
        self.followed.take(&mut self.log);
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

    /// The descriptor to wait on, when it is time to wait for more.
    pub fn wanted(&self, now: Instant) -> Option<BorrowedFd<'_>> {
        let paused = self.paused_until.is_some_and(|until| now < until);
        self.pipe.as_ref().filter(|_| !paused).map(AsFd::as_fd)
    }

    /// How long the pause still is.
    pub fn pause(&self, now: Instant) -> Option<Duration> {
        let pause = self.paused_until?.saturating_duration_since(now);
        (self.pipe.is_some() && !pause.is_zero()).then_some(pause)
    }

    /// The last lines of all that was written.
    pub fn tail(&mut self) -> String {
        self.drain();
        self.log.tail()
    }

    /// Completes the log: bytes in all, and bytes dropped.
    pub fn finish(self) -> (u64, u64) {
        self.log.finish()
    }
}
