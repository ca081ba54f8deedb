//! The completion driver: moves the bytes of one thread through io_uring.
//!
//! One system call submits all requests of a turn and returns all data received meanwhile, already in
//! buffers. A receive stays armed over many responses. A request that fits into the socket's buffer is sent
//! without a completion. With TLS, HTTP/2 or pipelining, a copy is sent instead, with a completion. This
//! module makes no decisions about requests, which belong to the [`Worker`].
//!
//! Received data is timestamped when the call that returned it returns. With many requests in flight, that
//! call waits up to 20 µs for several responses (up to 100 µs with 400 in flight), and 5 µs in open loop. A
//! request is timestamped when it is queued, which is before the next call sends it. So a latency may be
//! overstated by that and by the work of a turn. It is never understated.

use std::ffi::c_void;
use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::cqueue;
use io_uring::types::BufRingEntry;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use self::ring::{CompletionKind, CompletionRing, Patience, Tag};
use crate::arena::RequestArena;
use crate::clock;
use crate::driver::{self, Driver, Route};
use crate::tally::Means;
use crate::worker::{Action, Worker};

mod ring;

/// A request up to this length fits into an empty send buffer, whose smallest default is 16 KiB (tcp(7), `tcp_wmem`).
const SILENT_BYTES_MAX: usize = 4096;
/// A wait lasts for one completion per n requests in flight, so that with few connections each response is
/// received at once.
const IN_FLIGHT_FOR_ONE: u32 = 4;
/// In open loop, where latency is measured, a wait lasts for at most this many completions and this long.
const OPEN_LOOP: Patience = Patience { several: 8, us: 5 };
/// A body of at least this length arrives in many pieces.
const LONG_BODY_BYTES: u64 = 32 * 1024;
/// Maximum size of one send of data outside the arena.
const COPY_BYTES_MAX: usize = 64 * 1024;
/// After a long response, the next responses are assumed to be long for this number of receives. Switching
/// between the two kinds of receive costs more than a few receives of the wrong kind.
const LONG_FOR: u32 = 64;
/// Maximum bytes discarded by one io_uring request. Bytes that a cancelled one discarded are not counted.
const SKIP_BYTES_MAX: u64 = 1 << 20;

/// The patience in closed loop for this number of requests in flight and these response means.
///
/// Without patience every response wakes this thread, and both sides pay: the server for the interrupt. The
/// wait may be longer when more requests are in flight. A thread makes at most 250,000 requests a second, so
/// a quarter of a microsecond per request in flight is at most a sixteenth of the mean latency. A long body
/// comes in many pieces, and a piece may wait for more of them for 1/32 of the latency.
/// docs/decisions/0006-completions.md links the cost of longer and shorter waits.
fn closed_loop(in_flight: u32, so_far: Option<Means>) -> Patience {
    let of_long = so_far.filter(|means| means.body_bytes >= LONG_BODY_BYTES);
    let us = of_long.map_or(0, |means| (means.latency_ns / 32_000) as u32);
    Patience {
        several: 64,
        us: us.max(in_flight / 4).clamp(20, 100),
    }
}

pub(crate) struct Completion {
    // The order matters: the ring is dropped before the memory its requests point to.
    ring: CompletionRing,
    buffers: Buffers,
    /// Outlives the ring, whose requests point into this memory.
    _corpus: Arc<RequestArena>,
    route: Route,
    /// Also outlives the ring.
    sockets: Vec<Socket>,
    /// Whether only the arena's bytes are ever sent.
    plain: bool,
    /// Sends begun since the last wait that will produce a completion.
    told: usize,
    events: Vec<cqueue::Entry>,
    /// Time at which the latest completions were taken.
    now_ns: u64,
    /// Number of further receives for which responses are assumed to be so long that most of each is better
    /// discarded than copied.
    long_for: u32,
}

/// The slot of a connection's socket.
#[derive(Default)]
struct Socket {
    file: Option<OwnedFd>,
    /// Counts the sockets that have used this slot.
    generation: u32,
    /// A receive is armed.
    receiving: bool,
    /// Another request had room while unread data was left. The data is read first.
    has_room: bool,
    /// Data being sent that is not in the arena. The kernel reads it until the send completes.
    sending: Vec<u8>,
    is_sending: bool,
}

/// Checks whether this machine allows the completion driver, by setting up a ring for one connection and
/// removing it.
///
/// # Errors
/// The kernel's error if it has no io_uring, refuses it, or is older than Linux 6.12.
pub fn grants() -> io::Result<()> {
    let buffers = Buffers::new(BYTES)?;
    // Dropped before the memory that it points to.
    CompletionRing::new(1, &buffers)?;
    Ok(())
}

impl Completion {
    /// Fails if the kernel has no io_uring, refuses it, or is too old for it.
    pub(crate) fn new(
        route: Route,
        (arena, plain): (Arc<RequestArena>, bool),
        connections: usize,
    ) -> Result<Completion, Errno> {
        let buffers = Buffers::new(if plain { BYTES } else { BYTES_FRAMED })?;
        Ok(Completion {
            ring: CompletionRing::new(connections, &buffers)?,
            buffers,
            _corpus: arena,
            route,
            sockets: (0..connections).map(|_| Socket::default()).collect(),
            plain,
            told: 0,
            events: Vec::new(),
            now_ns: 0,
            long_for: 0,
        })
    }

    fn tag(&self, index: usize, kind: CompletionKind) -> Tag {
        Tag {
            kind,
            index: index as u32,
            socket: self.sockets[index].generation,
        }
    }

    fn handle(&mut self, worker: &mut Worker, event: &cqueue::Entry) {
        let tag = Tag::of(event);
        let index = tag.index as usize;
        if tag.socket == self.sockets[index].generation {
            match tag.kind {
                CompletionKind::Connected => self.connected(worker, index),
                CompletionKind::Sent => self.sent(worker, index, event.result()),
                CompletionKind::Received | CompletionKind::Skipped => {
                    self.received(worker, tag, event)
                }
                CompletionKind::Cancelled => {}
            }
        }
        if let Some(id) = cqueue::buffer_select(event.flags()) {
            self.buffers.give_back(id);
        }
    }

    /// Handles the end of a connection attempt, successful or not.
    fn connected(&mut self, worker: &mut Worker, index: usize) {
        let Some(socket) = &self.sockets[index].file else {
            return;
        };
        let act = match driver::end_connect(socket) {
            Ok(()) => {
                let act = worker.opened(index, self.now_ns);
                self.receive(worker, index, act)
            }
            Err(errno) => worker.failed(index, self.now_ns, driver::cause(errno)),
        };
        self.perform(worker, index, act);
    }

    /// Handles a completed send, or the failure of a send without completion.
    fn sent(&mut self, worker: &mut Worker, index: usize, result: i32) {
        if !self.plain {
            return self.sent_copy(worker, index, outcome(result));
        }
        if !worker.connections[index].is_busy() {
            return;
        }
        let silent = worker.output(index).is_none();
        let outcome = outcome(result);
        if silent && outcome.is_err() {
            worker.unwrote(index);
        }
        let act = match outcome {
            // Cut short by an error, which the receive will report.
            Ok(_) if silent => Action::Wait,
            Ok(count) => {
                worker.wrote(index, count);
                if worker.output(index).is_some() {
                    Action::Send
                } else {
                    Action::Wait
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => Action::Send,
            Err(errno) => worker.failed(index, self.now_ns, driver::cause(errno)),
        };
        self.perform(worker, index, act);
    }

    /// Handles a send of a copy: the kernel has taken all of it or a part.
    fn sent_copy(&mut self, worker: &mut Worker, index: usize, outcome: Result<usize, Errno>) {
        let socket = &mut self.sockets[index];
        socket.is_sending = false;
        let act = match outcome {
            Ok(count) => {
                socket.sending.drain(..count);
                Action::Send
            }
            Err(Errno::INTR | Errno::AGAIN) => Action::Send,
            Err(errno) => worker.failed(index, self.now_ns, driver::cause(errno)),
        };
        self.perform(worker, index, act);
    }

    /// Sends a copy of the output, which may change before the kernel has read it.
    fn write_copy(&mut self, worker: &mut Worker, index: usize) -> Action {
        let tag = self.tag(index, CompletionKind::Sent);
        let socket = &mut self.sockets[index];
        if socket.is_sending {
            return Action::Wait;
        }
        if socket.sending.is_empty() {
            let Some(rest) = worker.output(index) else {
                return Action::Wait;
            };
            let piece = &rest[..rest.len().min(COPY_BYTES_MAX)];
            socket.sending.extend_from_slice(piece);
            worker.wrote(index, piece.len());
        }
        socket.is_sending = true;
        self.told += 1;
        match self.ring.send(tag, &socket.sending, false) {
            Ok(()) => Action::Wait,
            Err(errno) => worker.failed(index, clock::monotonic_ns(), driver::cause(errno)),
        }
    }

    fn received(&mut self, worker: &mut Worker, tag: Tag, event: &cqueue::Entry) {
        let (index, now_ns) = (tag.index as usize, self.now_ns);
        self.sockets[index].receiving = cqueue::more(event.flags());
        let mut act = match (
            outcome(event.result()),
            cqueue::buffer_select(event.flags()),
        ) {
            (Ok(0), _) => worker.ended(index, now_ns),
            (Ok(count), Some(id)) => worker.received(index, now_ns, self.buffers.bytes(id, count)),
            (Ok(count), None) => worker.skipped(index, now_ns, count as u64),
            // No buffer was left, or this receive is replaced by another kind of receive.
            (Err(Errno::NOBUFS | Errno::CANCELED | Errno::INTR | Errno::AGAIN), _) => Action::Wait,
            (Err(errno), _) => worker.failed(index, now_ns, driver::cause(errno)),
        };
        // With pipelining the next piece may be half a response, which makes no room itself.
        let had_room = self.sockets[index].has_room && event.result() > 0;
        if act == Action::Free || act == Action::Wait && had_room {
            // Data after the end of a response, or the end of the connection, is handled before the next
            // request.
            let dry = !cqueue::sock_nonempty(event.flags());
            self.sockets[index].has_room = !dry;
            act = if dry {
                worker.start(index, now_ns)
            } else {
                Action::Wait
            };
        }
        act = self.receive(worker, index, act);
        self.perform(worker, index, act);
    }

    /// Ensures that the right kind of receive is armed before `act`, unless `act` closes the socket.
    fn receive(&mut self, worker: &mut Worker, index: usize, act: Action) -> Action {
        if matches!(act, Action::Reopen | Action::Close) {
            return act;
        }
        let skippable = worker.skippable(index);
        let armed = match self.sockets[index].receiving {
            true if skippable > 1 && self.long_for == 0 => {
                self.long_for = LONG_FOR;
                self.ring.cancel(self.tag(index, CompletionKind::Received))
            }
            true => Ok(()),
            false => self.arm(index, skippable),
        };
        match armed {
            Ok(()) => act,
            Err(errno) => worker.failed(index, self.now_ns, driver::cause(errno)),
        }
    }

    fn arm(&mut self, index: usize, skippable: u64) -> Result<(), Errno> {
        self.sockets[index].receiving = true;
        let long_for = self.long_for;
        self.long_for = if skippable > 0 {
            LONG_FOR
        } else {
            long_for.saturating_sub(1)
        };
        match skippable {
            0 if long_for == 0 => self
                .ring
                .receive_all(self.tag(index, CompletionKind::Received)),
            0 => self.ring.receive(self.tag(index, CompletionKind::Received)),
            many => self.ring.skip(
                self.tag(index, CompletionKind::Skipped),
                many.min(SKIP_BYTES_MAX) as u32,
            ),
        }
    }
}

impl Driver for Completion {
    fn name(&self) -> &'static str {
        "completion"
    }

    fn turn(&mut self, worker: &mut Worker, wait_ns: u64) -> bool {
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        let in_flight = worker.in_flight;
        let most = if worker.is_open_loop() {
            OPEN_LOOP
        } else {
            closed_loop(in_flight, worker.tally.means())
        };
        let several = (in_flight / IN_FLIGHT_FOR_ONE) as usize;
        // Sends usually complete at once, and they are not responses.
        let several = several.min(most.several) + std::mem::take(&mut self.told);
        self.ring
            .wait(wait_ns, Patience { several, ..most }, &mut events);
        self.now_ns = clock::monotonic_ns();
        for event in &events {
            self.handle(worker, event);
        }
        let quiet = events.is_empty();
        self.events = events;
        quiet
    }

    fn write(&mut self, worker: &mut Worker, index: usize) -> Action {
        if !self.plain {
            return self.write_copy(worker, index);
        }
        let tag = self.tag(index, CompletionKind::Sent);
        let Some(rest) = worker.output(index) else {
            return Action::Wait;
        };
        let silent = rest.len() <= SILENT_BYTES_MAX;
        match self.ring.send(tag, rest, silent) {
            Ok(()) if silent => {
                let count = rest.len();
                worker.wrote(index, count);
            }
            Ok(()) => {}
            Err(errno) => return worker.failed(index, clock::monotonic_ns(), driver::cause(errno)),
        }
        Action::Wait
    }

    fn connect(&mut self, index: usize) -> Result<(), Errno> {
        let socket = self.route.begin(index)?;
        self.ring.register(index as u32, &socket)?;
        self.sockets[index].file = Some(socket);
        self.ring
            .connected(self.tag(index, CompletionKind::Connected))
    }

    fn close(&mut self, index: usize) {
        let socket = &mut self.sockets[index];
        if let Some(file) = socket.file.take() {
            socket.generation = (socket.generation + 1) & 0xff_ffff;
            (socket.receiving, socket.has_room) = (false, false);
            if !self.ring.forget(index as u32) && socket.is_sending {
                // The kernel may still read it, so it is leaked. This takes a system short of memory, or a
                // signal at that moment.
                std::mem::forget(std::mem::take(&mut socket.sending));
            }
            socket.sending.clear();
            socket.is_sending = false;
            drop(file);
        }
    }

    fn sockets(&self) -> Box<dyn Iterator<Item = &OwnedFd> + '_> {
        Box::new(
            self.sockets
                .iter()
                .filter_map(|socket| socket.file.as_ref()),
        )
    }
}

/// Converts the kernel's result into a count or an error.
fn outcome(result: i32) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result))
}

// Buffers that the kernel fills as bytes arrive: a ring shared with it ("provided buffers").
//
// The kernel takes a buffer for each receive that completes, and the reader gives it back. No bytes of a
// buffer may be handed out after it was given back.

/// Number of buffers per thread, a power of two. They are used in turn, so more of them would only cool the
/// cache. If they run out, a receive ends early and is begun again.
const COUNT: u16 = 64;
/// Size of each buffer. Longer pieces of a body arrive in several buffers.
const BYTES: usize = 16 * 1024;
/// Buffer size if whole records or frames are needed, because fewer of them are then cut and reassembled.
/// With HTTP/2 and 134 kB, a request costs 0.76 of its cost with 16 KiB.
const BYTES_FRAMED: usize = 64 * 1024;

struct Buffers {
    /// The ring's entries on their own page, then the buffers.
    memory: NonNull<c_void>,
    /// The size of each.
    bytes: usize,
    /// The tail of the ring, also in memory where the kernel reads it.
    tail: u16,
}

/// Bytes of the ring itself, rounded up to whole pages of any usual size.
const RING_BYTES: usize = (COUNT as usize * size_of::<BufRingEntry>()).next_multiple_of(64 * 1024);

/// Total size of the ring and its buffers of this size.
fn total_bytes(bytes: usize) -> usize {
    RING_BYTES + usize::from(COUNT) * bytes
}

impl Buffers {
    /// Allocates the memory and hands all buffers, each of this size, to the kernel.
    fn new(bytes: usize) -> Result<Buffers, Errno> {
        let total = total_bytes(bytes);
        let access = ProtFlags::READ.union(ProtFlags::WRITE);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let memory =
            unsafe { mmap_anonymous(std::ptr::null_mut(), total, access, MapFlags::PRIVATE) }?;
        let memory = NonNull::new(memory).ok_or(Errno::NOMEM)?;
        let mut buffers = Buffers {
            memory,
            bytes,
            tail: 0,
        };
        for id in 0..COUNT {
            buffers.give_back(id);
        }
        Ok(buffers)
    }

    /// Address of the ring, as registered with the kernel.
    fn address(&self) -> u64 {
        self.memory.as_ptr() as u64
    }

    /// The first `count` bytes of buffer `id`, as named by a completion.
    fn bytes(&mut self, id: u16, count: usize) -> &mut [u8] {
        assert!(
            id < COUNT && count <= self.bytes,
            "the kernel was given {COUNT} buffers of {} bytes",
            self.bytes
        );
        // SAFETY: within the mapping, initialised by mmap. The kernel does not write to a completed buffer
        // until it is given back, and both functions take this value mutably.
        unsafe { std::slice::from_raw_parts_mut(self.buffer(id), count) }
    }

    fn give_back(&mut self, id: u16) {
        let address = self.buffer(id) as u64;
        let ring = self.memory.as_ptr().cast::<BufRingEntry>();
        // SAFETY: the slot is within the ring's pages, and the kernel reads only slots before the tail. The
        // entry's last field is not written, because in slot 0 it is the tail itself.
        let entry = unsafe { &mut *ring.add(usize::from(self.tail % COUNT)) };
        entry.set_addr(address);
        entry.set_len(self.bytes as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail lies in the first entry of the mapping, aligned to 2 bytes. The kernel reads it
        // with acquire.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(ring).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    fn buffer(&self, id: u16) -> *mut u8 {
        // SAFETY: `id` is below COUNT, so that the result lies within the mapping.
        unsafe {
            self.memory
                .as_ptr()
                .cast::<u8>()
                .add(RING_BYTES + usize::from(id) * self.bytes)
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, unmapped once. The driver drops its ring first, so the kernel has no
        // request left that could write here.
        let _ = unsafe { munmap(self.memory.as_ptr(), total_bytes(self.bytes)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_go_round_and_none_lies_in_another() {
        let mut buffers = Buffers::new(BYTES).unwrap();
        for turn in 0..3 * COUNT {
            let id = turn * 7 % COUNT;
            assert!(buffers.bytes(id, BYTES).ends_with(&[0]));
            buffers.give_back(id);
        }
        assert_eq!(buffers.tail, 4 * COUNT);
        let places: Vec<_> = (0..COUNT)
            .map(|id| buffers.bytes(id, BYTES).as_ptr_range())
            .collect();
        assert!(places.windows(2).all(|pair| pair[0].end <= pair[1].start));
        assert!(places[0].start as u64 - buffers.address() >= RING_BYTES as u64);
    }
}
