//! The io_uring instance of a thread: setup, submission of requests, and retrieval of completions.
//!
//! It knows the kernel's data structures and nothing about HTTP, connections or request timeouts.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};
use rustix::io::Errno;

use super::{self as buffers, Buffers};

/// Maximum requests submitted at once. A full queue is submitted early.
const QUEUE_MAX: u32 = 1024;
/// Receive size if most of a response is to be discarded: a head, and as little of the body as possible.
const HEAD_BYTES: u32 = 4096;
/// The only group of provided buffers.
const GROUP: u16 = 0;

/// The kind of request that a completion belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum CompletionKind {
    Connected,
    Sent,
    Received,
    Skipped,
    Cancelled,
}

const KINDS: [CompletionKind; 5] = [
    CompletionKind::Connected,
    CompletionKind::Sent,
    CompletionKind::Received,
    CompletionKind::Skipped,
    CompletionKind::Cancelled,
];

/// Identifies a request: its kind, its connection, and the connection's socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) kind: CompletionKind,
    pub(super) index: u32,
    /// Counts the sockets of a connection, so that late completions of an earlier one are recognised. 24 bits
    /// are used.
    pub(super) socket: u32,
}

/// The number of completions a wait is for, and how long: the maximum delay before one of them is seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) several: usize,
    pub(super) us: u32,
}

pub(super) struct CompletionRing {
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

impl CompletionRing {
    /// Sets up a ring for `connections` sockets. Fails if the kernel has no io_uring, forbids it, or is too
    /// old.
    ///
    /// Source: `io_uring_setup(2)`. Deferred task running (Linux 6.1) lets the kernel complete requests only
    /// while this thread waits for them. The newest feature used is the minimal wait (6.12), so nothing else
    /// needs a probe. Without it this driver would be no cheaper than the other.
    pub(super) fn new(connections: usize, buffers: &Buffers) -> Result<CompletionRing, Errno> {
        let files = u32::try_from(connections).map_err(|_| Errno::INVAL)?;
        let mut builder = IoUring::builder();
        builder
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_clamp()
            .dontfork();
        builder.setup_cqsize((files.saturating_mul(2)).max(QUEUE_MAX * 2));
        let uring = builder.build(QUEUE_MAX).map_err(errno)?;
        let parameters = uring.params();
        if !(parameters.is_feature_min_timeout() && parameters.is_feature_nodrop()) {
            return Err(Errno::NOSYS);
        }
        let submitter = uring.submitter();
        submitter.register_files_sparse(files).map_err(errno)?;
        // SAFETY: the buffers outlive the ring, because the driver drops them after it.
        unsafe {
            submitter.register_buf_ring_with_flags(buffers.address(), buffers::COUNT, GROUP, 0)
        }
        .map_err(errno)?;
        Ok(CompletionRing { uring })
    }

    /// Submits queued requests, waits for a completion for at most `wait_ns`, and takes all completions. The
    /// wait first lasts for several of them, as given by `patience`.
    pub(super) fn wait(
        &mut self,
        wait_ns: u64,
        patience: Patience,
        events: &mut Vec<cqueue::Entry>,
    ) {
        let limit = Timespec::from(Duration::from_nanos(wait_ns));
        let args = SubmitArgs::new().timespec(&limit);
        // The kernel does not check the limit before its patience has run out.
        let patient = patience.several > 1 && wait_ns > u64::from(patience.us) * 1000;
        let (want, args) = if patient {
            (patience.several, args.min_wait_usec(patience.us))
        } else {
            (1, args)
        };
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
        self.uring
            .submitter()
            .register_files_update(index, &files)
            .map(drop)
            .map_err(errno)
    }

    /// Cancels every request on slot `index` and removes its file. Late completions may still arrive. Returns
    /// `false` if a request may continue, so that its memory must stay valid.
    #[must_use]
    pub(super) fn forget(&mut self, index: u32) -> bool {
        // Requests queued for this socket must not run on the slot's next one.
        let handed_over = self.submit();
        let submitter = self.uring.submitter();
        let cancelled = submitter.register_sync_cancel(None, CancelBuilder::fd(Fixed(index)).all());
        // Having nothing to cancel is an error, but harmless.
        let cancelled = matches!(cancelled.map_err(errno), Ok(()) | Err(Errno::NOENT));
        let _ = submitter.register_files_update(index, &[-1]);
        // The requests hold the file until their end is processed, which happens only in a wait.
        let now = Timespec::new();
        let _ = submitter.submit_with_args(1, &SubmitArgs::new().timespec(&now));
        handed_over.is_ok() && cancelled
    }

    /// Requests a completion when slot `index` is connected, or has failed to connect.
    pub(super) fn connected(&mut self, tag: Tag) -> Result<(), Errno> {
        self.push(
            opcode::PollAdd::new(Fixed(tag.index), libc::POLLOUT as u32).build(),
            tag,
        )
    }

    /// Receives all data from now on, each time into a provided buffer.
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

    /// Receives up to `count` bytes without copying them. See `MSG_TRUNC` in tcp(7).
    pub(super) fn skip(&mut self, tag: Tag, count: u32) -> Result<(), Errno> {
        let entry = opcode::Recv::new(Fixed(tag.index), std::ptr::null_mut(), count)
            .flags(libc::MSG_TRUNC)
            .build();
        self.push(entry, tag)
    }

    /// Sends `bytes`, which must not move until the send has completed or was cancelled. If `silent`, there
    /// is a completion only if not all of them could be sent.
    pub(super) fn send(&mut self, tag: Tag, bytes: &[u8], silent: bool) -> Result<(), Errno> {
        let all = if silent { libc::MSG_WAITALL } else { 0 };
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let entry = opcode::Send::new(Fixed(tag.index), bytes.as_ptr(), length)
            .flags(libc::MSG_NOSIGNAL | all)
            .build();
        let flags = if silent {
            Flags::SKIP_SUCCESS
        } else {
            Flags::empty()
        };
        self.push(entry.flags(flags), tag)
    }

    /// Cancels the request `tag`, which then has its own completion.
    pub(super) fn cancel(&mut self, tag: Tag) -> Result<(), Errno> {
        let entry = opcode::AsyncCancel::new(tag.pack())
            .build()
            .flags(Flags::SKIP_SUCCESS);
        self.push(
            entry,
            Tag {
                kind: CompletionKind::Cancelled,
                ..tag
            },
        )
    }

    fn push(&mut self, entry: Entry, tag: Tag) -> Result<(), Errno> {
        let entry = entry.user_data(tag.pack());
        // SAFETY: memory that an entry points to outlives the ring: provided buffers and the request's bytes,
        // which the driver drops after it.
        while unsafe { self.uring.submission().push(&entry) }.is_err() {
            self.submit()?;
        }
        Ok(())
    }
}

impl Drop for CompletionRing {
    fn drop(&mut self) {
        // Closing the ring would end its requests only later, but peers should see the end now.
        let _ = self
            .uring
            .submitter()
            .register_sync_cancel(None, CancelBuilder::any());
    }
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
