//! A cable with a length: a thread that carries frames from one tap to the other, each as long after it was sent.
//!
//! ```text
//! tap 0 ──► [frame, due] [frame, due] … ──► tap 1      and the same the other way
//! ```
//! The delay is the same for every frame, so a queue is in the order in which its frames are due. It loses a frame only
//! where more are under way than it has room for, and must not look into any.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};

use super::NetworkError;

/// The largest frame: no offload is asked of the kernel, so it hands out none larger than the device's MTU of 1500.
const FRAME_BYTES_MAX: usize = 1536;
/// Frames under way in one direction at most: a second of 780 Mbit/s in full frames, and about 100 MB of memory.
const FRAMES_MAX: usize = 65_536;
/// Frames read at a time, so that those that are due meanwhile do not wait for long.
const BATCH: usize = 64;

/// A relay that runs. Dropped, it has ended, and its taps are closed.
#[derive(Debug)]
pub(super) struct Relay {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Carries frames between two taps, on these CPUs, or on any if there are none.
    pub fn start(taps: [OwnedFd; 2], delay: Duration, cpus: &[usize]) -> Result<Self, NetworkError> {
        let refused = |error: std::io::Error| NetworkError::refused("a thread that delays packets", error);
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| refused(error.into()))?);
        let told = Arc::clone(&stop);
        let mut set = CpuSet::new();
        cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu));
        let run = move || {
            if set.count() > 0 {
                // Where the generator is, for services are not to be disturbed. Refused, it runs where it may.
                let _ = sched_setaffinity(None, &set);
            }
            // Timers may otherwise be 50 µs late, to save power.
            let _ = set_current_timer_slack(NonZeroU64::new(1));
            carry(&taps, delay, &told);
        };
        let thread = thread::Builder::new().name("relay".to_owned()).spawn(run).map_err(refused)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let told = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take().filter(|_| told.is_ok()) {
            let _ = thread.join();
        }
    }
}

/// Carries until `stop` can be read, or a tap is gone.
fn carry(taps: &[OwnedFd; 2], delay: Duration, stop: &OwnedFd) {
    let mut ways = [Way::new(delay), Way::new(delay)];
    loop {
        let now = Instant::now();
        ways[0].deliver(now, &taps[1]);
        ways[1].deliver(now, &taps[0]);
        let due = ways.iter().filter_map(Way::due).min();
        let timeout = due.map(|due| due.saturating_duration_since(Instant::now()));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let wanted = |way: &Way| if way.has_room() { PollFlags::IN } else { PollFlags::empty() };
        let mut waiting = [
            PollFd::from_borrowed_fd(taps[0].as_fd(), wanted(&ways[0])),
            PollFd::from_borrowed_fd(taps[1].as_fd(), wanted(&ways[1])),
            PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN),
        ];
        match poll(&mut waiting, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return,
        }
        let seen = waiting.map(|descriptor| descriptor.revents());
        if !seen[2].is_empty() {
            return;
        }
        for (way, tap, seen) in [(0, &taps[0], seen[0]), (1, &taps[1], seen[1])] {
            if !seen.is_empty() && !ways[way].take(tap) {
                return;
            }
        }
    }
}

/// Frames under way in one direction.
struct Way {
    delay: Duration,
    frames: VecDeque<(Instant, Vec<u8>)>,
    /// Buffers of frames that have arrived, for others.
    spare: Vec<Vec<u8>>,
}

impl Way {
    fn new(delay: Duration) -> Self {
        Self { delay, frames: VecDeque::new(), spare: Vec::new() }
    }

    fn has_room(&self) -> bool {
        self.frames.len() < FRAMES_MAX
    }

    /// When the next frame is due.
    fn due(&self) -> Option<Instant> {
        self.frames.front().map(|(due, _)| *due)
    }

    /// Reads what was sent; false if the tap is gone.
    fn take(&mut self, tap: &OwnedFd) -> bool {
        for _ in 0..BATCH {
            if !self.has_room() {
                break;
            }
            let mut frame = self.spare.pop().unwrap_or_default();
            frame.resize(FRAME_BYTES_MAX, 0);
            match rustix::io::read(tap, &mut frame) {
                Ok(length) => {
                    frame.truncate(length);
                    self.frames.push_back((Instant::now() + self.delay, frame));
                }
                Err(Errno::AGAIN | Errno::INTR) => {
                    self.spare.push(frame);
                    break;
                }
                Err(_) => return false,
            }
        }
        true
    }

    /// Hands over what is due by `now`. What the other side does not take is lost, as on any cable.
    fn deliver(&mut self, now: Instant, tap: &OwnedFd) {
        while self.due().is_some_and(|due| due <= now) {
            let Some((_, frame)) = self.frames.pop_front() else { return };
            let _ = rustix::io::write(tap, &frame);
            self.spare.push(frame);
        }
    }
}
