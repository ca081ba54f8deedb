//! The io_uring instance of a thread: set up or refused, requests put in, completions taken out.
//!
//! It knows the kernel's forms and nothing about HTTP, connections or time limits of requests.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};
use rustix::io::Errno;

use super::{self as buffers, Buffers};

/// Requests that are handed over at once, at most; a full queue is handed over early.
const QUEUE_MAX: u32 = 1024;
/// Received at once where most of a response is to be thrown away: a head, and no more of the body than need be.
const HEAD_BYTES: u32 = 4096;
/// The one group of provided buffers.
const GROUP: u16 = 0;

/// What a completion is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Connected,
    Sent,
    Received,
    Skipped,
    Cancelled,
}

const KINDS: [Kind; 5] = [Kind::Connected, Kind::Sent, Kind::Received, Kind::Skipped, Kind::Cancelled];

/// Names a request: what it does, on which connection, on which of that connection's sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) kind: Kind,
    pub(super) index: u32,
    /// Counts the sockets of a connection, so that what comes late from an earlier one can be told; 24 bits are used.
    pub(super) socket: u32,
}

/// For how many completions a wait holds out, and how long: the most by which one of them is seen late.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) several: usize,
    pub(super) us: u32,
}

pub(super) struct Ring {
    uring: IoUring,
}

impl Tag {
    fn pack(self) -> u64 {
        u64::from(self.index) | u64::from(self.socket & 0xff_ffff) << 32 | (self.kind as u64) << 56
    }

    pub(super) fn of(event: &cqueue::Entry) -> Tag {
        let packed = event.user_data();
        Tag {
            kind: KINDS[(packed >> 56) as usize % KINDS.len()],
            index: packed as u32,
            socket: (packed >> 32) as u32 & 0xff_ffff,
        }
    }
}

impl Ring {
    /// Sets up a ring for `connections` sockets; an error where the kernel has none, forbids it, or is too old.
    ///
    /// Source: `io_uring_setup(2)`. Deferred task running (Linux 6.1) lets the kernel complete requests only while this
    /// thread waits for them. What is youngest of all that is used is the minimal wait (6.12), so that nothing else needs a
    /// probe; without it this driver would be no cheaper than the other.
    pub(super) fn new(connections: usize, buffers: &Buffers) -> Result<Ring, Errno> {
        let files = u32::try_from(connections).map_err(|_| Errno::INVAL)?;
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun().setup_submit_all().setup_clamp().dontfork();
        builder.setup_cqsize((files.saturating_mul(2)).max(QUEUE_MAX * 2));
        let uring = builder.build(QUEUE_MAX).map_err(errno)?;
        let parameters = uring.params();
        if !(parameters.is_feature_min_timeout() && parameters.is_feature_nodrop()) {
            return Err(Errno::NOSYS);
        }
        let submitter = uring.submitter();
        submitter.register_files_sparse(files).map_err(errno)?;
        // SAFETY: the buffers outlive the ring: the driver drops them after it.
        unsafe { submitter.register_buf_ring_with_flags(buffers.address(), buffers::COUNT, GROUP, 0) }
            .map_err(errno)?;
        Ok(Ring { uring })
    }

    /// Hands over what is queued, waits for a completion, at most `wait_ns`, and takes out all there are. At first it
    /// holds out for several of them, as `patience` says.
    pub(super) fn wait(&mut self, wait_ns: u64, patience: Patience, events: &mut Vec<cqueue::Entry>) {
        let limit = Timespec::from(Duration::from_nanos(wait_ns));
        let args = SubmitArgs::new().timespec(&limit);
        // The kernel does not look at the limit before its patience is over.
        let patient = patience.several > 1 && wait_ns > u64::from(patience.us) * 1000;
        let (want, args) =
            if patient { (patience.several, args.min_wait_usec(patience.us)) } else { (1, args) };
        // Interrupted, timed out or short of memory: the next turn tries again.
        let _ = self.uring.submitter().submit_with_args(want, &args);
        events.extend(self.uring.completion());
    }

    pub(super) fn submit(&mut self) -> Result<(), Errno> {
        self.uring.submitter().submit().map(drop).map_err(errno)
    }

    /// Makes `socket` the file of slot `index`.
    pub(super) fn register(&mut self, index: u32, socket: &OwnedFd) -> Result<(), Errno> {
        let files = [socket.as_raw_fd()];
        self.uring.submitter().register_files_update(index, &files).map(drop).map_err(errno)
    }

    /// Ends every request on slot `index` and forgets its file. Late completions are still to come. `false`: one may go on, and what it
    /// points to has to stay.
    #[must_use]
    pub(super) fn forget(&mut self, index: u32) -> bool {
        // What is queued for this socket must not go out on the slot's next one.
        let handed_over = self.submit();
        let submitter = self.uring.submitter();
        let cancelled = submitter.register_sync_cancel(None, CancelBuilder::fd(Fixed(index)).all());
        // Nothing to cancel is an error, and fine.
        let cancelled = matches!(cancelled.map_err(errno), Ok(()) | Err(Errno::NOENT));
        let _ = submitter.register_files_update(index, &[-1]);
        // They hold the file until their end has been worked off, which happens in a wait only.
        let now = Timespec::new();
        let _ = submitter.submit_with_args(1, &SubmitArgs::new().timespec(&now));
        handed_over.is_ok() && cancelled
    }

    /// Asks to be told when slot `index` is connected, or has failed to.
    pub(super) fn connected(&mut self, tag: Tag) -> Result<(), Errno> {
        self.push(opcode::PollAdd::new(Fixed(tag.index), libc::POLLOUT as u32).build(), tag)
    }

    /// Receives whatever arrives from now on, each time into a provided buffer.
    pub(super) fn receive_all(&mut self, tag: Tag) -> Result<(), Errno> {
        self.push(opcode::RecvMulti::new(Fixed(tag.index), GROUP).build(), tag)
    }

    /// Receives once into a provided buffer.
    pub(super) fn receive(&mut self, tag: Tag) -> Result<(), Errno> {
        let entry = opcode::Recv::new(Fixed(tag.index), std::ptr::null_mut(), HEAD_BYTES)
            .buf_group(GROUP)
            .build()
            .flags(Flags::BUFFER_SELECT);
        self.push(entry, tag)
    }

    /// Receives up to `count` bytes without copying them anywhere; see `MSG_TRUNC` in tcp(7).
    pub(super) fn skip(&mut self, tag: Tag, count: u32) -> Result<(), Errno> {
        let entry =
            opcode::Recv::new(Fixed(tag.index), std::ptr::null_mut(), count).flags(libc::MSG_TRUNC).build();
        self.push(entry, tag)
    }

    /// Sends `bytes`, which must stay where they are until that has completed or was cancelled. When `silent`, there is a
    /// completion only if not all of them could be sent.
    pub(super) fn send(&mut self, tag: Tag, bytes: &[u8], silent: bool) -> Result<(), Errno> {
        let all = if silent { libc::MSG_WAITALL } else { 0 };
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let entry = opcode::Send::new(Fixed(tag.index), bytes.as_ptr(), length)
            .flags(libc::MSG_NOSIGNAL | all)
            .build();
        let flags = if silent { Flags::SKIP_SUCCESS } else { Flags::empty() };
        self.push(entry.flags(flags), tag)
    }

    /// Ends the request `tag`, which says so in a completion of its own.
    pub(super) fn cancel(&mut self, tag: Tag) -> Result<(), Errno> {
        let entry = opcode::AsyncCancel::new(tag.pack()).build().flags(Flags::SKIP_SUCCESS);
        self.push(entry, Tag { kind: Kind::Cancelled, ..tag })
    }

    fn push(&mut self, entry: Entry, tag: Tag) -> Result<(), Errno> {
        let entry = entry.user_data(tag.pack());
        // SAFETY: memory that an entry points to outlives the ring: provided buffers and the request's bytes, which the
        // driver drops after it.
        while unsafe { self.uring.submission().push(&entry) }.is_err() {
            self.submit()?;
        }
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Closing the ring would end its requests only some time later; peers are to see their end now.
        let _ = self.uring.submitter().register_sync_cancel(None, CancelBuilder::any());
    }
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
