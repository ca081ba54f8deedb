//! The completion driver: moves the bytes of one thread through io_uring.
//!
//! One system call hands over all requests of a turn and brings back all that has arrived meanwhile, already in buffers.
//! A receive stays armed over many responses, and a request that fits into a socket's buffer is sent without a
//! completion; with TLS, HTTP/2 or pipelining a copy of what is to be sent is, and completes. It must not decide anything about requests: that is the [`Worker`]'s.
//!
//! What arrives is stamped when the call that brought it returns. With many requests in flight that call holds out up to
//! 20 µs for several responses (up to 100 µs with 400 in flight), 5 µs in open loop. A request is stamped as sent when it is queued, which is before the next call sends it. So a
//! latency may be overstated by that and the work of a turn; it is never understated.

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

use self::ring::{Kind, Patience, Ring, Tag};
use crate::arena::RequestArena;
use crate::clock;
use crate::driver::{self, Driver, Route};
use crate::tally::Means;
use crate::worker::{Action, Worker};

mod ring;

/// A request up to this length fits into an empty send buffer, whose smallest default is 16 KiB (tcp(7), `tcp_wmem`).
const SILENT_BYTES_MAX: usize = 4096;
/// A wait holds out for as many completions as there are times so many requests in flight, so that few connections get
/// each response at once.
const IN_FLIGHT_FOR_ONE: u32 = 4;
/// In open loop, where latency is what is measured, a wait holds out for at most so many completions, and so long.
const OPEN_LOOP: Patience = Patience { several: 8, us: 5 };
/// From this length on a body comes in many pieces.
const LONG_BODY_BYTES: u64 = 32 * 1024;
/// Of what is not the arena's, sent at once.
const COPY_BYTES_MAX: usize = 64 * 1024;
/// After a long response the next ones are taken to be long, too, for so many receives: to change from one kind of receive to the other
/// costs more than a few of the wrong kind.
const LONG_FOR: u32 = 64;
/// Thrown away by one request, at most: what is thrown away when it is cancelled is not counted.
const SKIP_BYTES_MAX: u64 = 1 << 20;

/// In closed loop, with so many requests in flight and such responses so far.
///
/// Without patience every response wakes this thread, at the cost of both sides: the server pays for the interrupt. More of it
/// comes late where more are in flight: a thread makes at most 250,000 requests a second, so that a quarter of a microsecond for each
/// in flight is at most a sixteenth of the mean latency. A long body comes in many pieces, and a piece may wait for more of them for a
/// thirty-second of it. docs/decisions/0006-completions.md links what more and less of it cost.
fn closed_loop(in_flight: u32, so_far: Option<Means>) -> Patience {
    let of_long = so_far.filter(|means| means.body_bytes >= LONG_BODY_BYTES);
    let us = of_long.map_or(0, |means| (means.latency_ns / 32_000) as u32);
    Patience { several: 64, us: us.max(in_flight / 4).clamp(20, 100) }
}

pub(crate) struct Completion {
    // The order matters: the ring is dropped before the memory its requests point to.
    ring: Ring,
    buffers: Buffers,
    /// Outlives the ring, whose requests point to it.
    _corpus: Arc<RequestArena>,
    route: Route,
    /// Outlives the ring, too.
    sockets: Vec<Socket>,
    /// Whether all that is ever sent are the arena's bytes.
    plain: bool,
    /// Sends that were begun since the last wait and will be told.
    told: usize,
    events: Vec<cqueue::Entry>,
    /// When the latest completions were taken.
    now_ns: u64,
    /// For how many more receives responses are taken to be so long that most of each is better thrown away than copied.
    long_for: u32,
}

/// The place of a connection's socket.
#[derive(Default)]
struct Socket {
    file: Option<OwnedFd>,
    /// Counts the sockets that were here.
    generation: u32,
    /// A receive is armed.
    receiving: bool,
    /// There was room for another request while more was there to be read, which comes first.
    has_room: bool,
    /// What is being sent, where that is not the arena's: the kernel reads it until the send has completed.
    sending: Vec<u8>,
    is_sending: bool,
}

/// Whether this machine grants what the completion driver takes: a ring for one connection is set up, and taken down again.
///
/// # Errors
/// The kernel's response, where it has no io_uring, refuses it, or is older than Linux 6.12.
pub fn grants() -> io::Result<()> {
    let buffers = Buffers::new(BYTES)?;
    // Dropped before the memory that it points to.
    Ring::new(1, &buffers)?;
    Ok(())
}

impl Completion {
    /// An error where the kernel has no io_uring, refuses it, or is too old for it.
    pub(crate) fn new(
        route: Route,
        (arena, plain): (Arc<RequestArena>, bool),
        connections: usize,
    ) -> Result<Completion, Errno> {
        let buffers = Buffers::new(if plain { BYTES } else { BYTES_FRAMED })?;
        Ok(Completion {
            ring: Ring::new(connections, &buffers)?,
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

    fn tag(&self, index: usize, kind: Kind) -> Tag {
        Tag { kind, index: index as u32, socket: self.sockets[index].generation }
    }

    fn handle(&mut self, worker: &mut Worker, event: &cqueue::Entry) {
        let tag = Tag::of(event);
        let index = tag.index as usize;
        if tag.socket == self.sockets[index].generation {
            match tag.kind {
                Kind::Connected => self.connected(worker, index),
                Kind::Sent => self.sent(worker, index, event.result()),
                Kind::Received | Kind::Skipped => self.received(worker, tag, event),
                Kind::Cancelled => {}
            }
        }
        if let Some(id) = cqueue::buffer_select(event.flags()) {
            self.buffers.give_back(id);
        }
    }

    /// Connecting has come to an end, good or bad.
    fn connected(&mut self, worker: &mut Worker, index: usize) {
        let Some(socket) = &self.sockets[index].file else { return };
        let act = match driver::end_connect(socket) {
            Ok(()) => {
                let act = worker.opened(index, self.now_ns);
                self.receive(worker, index, act)
            }
            Err(errno) => worker.failed(index, self.now_ns, driver::cause(errno)),
        };
        self.perform(worker, index, act);
    }

    /// A send has completed that was to tell, or one that was not has failed.
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
            // Cut short by an error, which the receive will tell.
            Ok(_) if silent => Action::Wait,
            Ok(count) => {
                worker.wrote(index, count);
                if worker.output(index).is_some() { Action::Send } else { Action::Wait }
            }
            Err(Errno::INTR | Errno::AGAIN) => Action::Send,
            Err(errno) => worker.failed(index, self.now_ns, driver::cause(errno)),
        };
        self.perform(worker, index, act);
    }

    /// The kernel has taken all that was to be sent, or a part.
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
        let tag = self.tag(index, Kind::Sent);
        let socket = &mut self.sockets[index];
        if socket.is_sending {
            return Action::Wait;
        }
        if socket.sending.is_empty() {
            let Some(rest) = worker.output(index) else { return Action::Wait };
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
        let mut act = match (outcome(event.result()), cqueue::buffer_select(event.flags())) {
            (Ok(0), _) => worker.ended(index, now_ns),
            (Ok(count), Some(id)) => worker.received(index, now_ns, self.buffers.bytes(id, count)),
            (Ok(count), None) => worker.skipped(index, now_ns, count as u64),
            // No buffer was left, or this receive gives way to another kind of it.
            (Err(Errno::NOBUFS | Errno::CANCELED | Errno::INTR | Errno::AGAIN), _) => Action::Wait,
            (Err(errno), _) => worker.failed(index, now_ns, driver::cause(errno)),
        };
        // With pipelining the next piece may be half a response, and makes no room of its own.
        let had_room = self.sockets[index].has_room && event.result() > 0;
        if act == Action::Free || act == Action::Wait && had_room {
            // More after the end of a response, or the end of the connection, comes before the next request.
            let dry = !cqueue::sock_nonempty(event.flags());
            self.sockets[index].has_room = !dry;
            act = if dry { worker.start(index, now_ns) } else { Action::Wait };
        }
        act = self.receive(worker, index, act);
        self.perform(worker, index, act);
    }

    /// Sees to it that the right kind of receive is armed before `act`, unless that closes the socket.
    fn receive(&mut self, worker: &mut Worker, index: usize, act: Action) -> Action {
        if matches!(act, Action::Reopen | Action::Close) {
            return act;
        }
        let skippable = worker.skippable(index);
        let armed = match self.sockets[index].receiving {
            true if skippable > 1 && self.long_for == 0 => {
                self.long_for = LONG_FOR;
                self.ring.cancel(self.tag(index, Kind::Received))
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
        self.long_for = if skippable > 0 { LONG_FOR } else { long_for.saturating_sub(1) };
        match skippable {
            0 if long_for == 0 => self.ring.receive_all(self.tag(index, Kind::Received)),
            0 => self.ring.receive(self.tag(index, Kind::Received)),
            many => self.ring.skip(self.tag(index, Kind::Skipped), many.min(SKIP_BYTES_MAX) as u32),
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
        let most =
            if worker.is_open_loop() { OPEN_LOOP } else { closed_loop(in_flight, worker.tally.means()) };
        let several = (in_flight / IN_FLIGHT_FOR_ONE) as usize;
        // Sends complete at once, as a rule: they are no responses.
        let several = several.min(most.several) + std::mem::take(&mut self.told);
        self.ring.wait(wait_ns, Patience { several, ..most }, &mut events);
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
        let tag = self.tag(index, Kind::Sent);
        let Some(rest) = worker.output(index) else { return Action::Wait };
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
        self.ring.connected(self.tag(index, Kind::Connected))
    }

    fn close(&mut self, index: usize) {
        let socket = &mut self.sockets[index];
        if let Some(file) = socket.file.take() {
            socket.generation = (socket.generation + 1) & 0xff_ffff;
            (socket.receiving, socket.has_room) = (false, false);
            if !self.ring.forget(index as u32) && socket.is_sending {
                // The kernel may still read it, and so nobody frees it. It takes a system short of memory, or a signal at that moment.
                std::mem::forget(std::mem::take(&mut socket.sending));
            }
            socket.sending.clear();
            socket.is_sending = false;
            drop(file);
        }
    }

    fn sockets(&self) -> Box<dyn Iterator<Item = &OwnedFd> + '_> {
        Box::new(self.sockets.iter().filter_map(|socket| socket.file.as_ref()))
    }
}

/// The kernel's way of telling a count or an error.
fn outcome(result: i32) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result))
}

// Buffers that the kernel fills as bytes arrive: a ring of them shared with it ("provided buffers").
//
// The kernel takes a buffer for each receive that completes; whoever has looked at it gives it back. It must not hand
// out a buffer's bytes after giving the buffer back.

/// Buffers of a thread, a power of two. They are used in turn, so that more of them would only cool the cache; where they
/// run out, a receive ends early and is begun anew.
const COUNT: u16 = 64;
/// The size of each. What of a body is longer arrives in several.
const BYTES: usize = 16 * 1024;
/// The same where whole records or frames are needed: fewer of them are cut, and have to be put together. With HTTP/2 and 134 kB a
/// request costs 0.76 of what it does with 16 KiB.
const BYTES_FRAMED: usize = 64 * 1024;

struct Buffers {
    /// The ring's entries, a page of their own, then the buffers.
    memory: NonNull<c_void>,
    /// The size of each.
    bytes: usize,
    /// The ring's end, also in memory, where the kernel reads it.
    tail: u16,
}

/// Bytes of the ring itself, rounded up to whole pages of any usual size.
const RING_BYTES: usize = (COUNT as usize * size_of::<BufRingEntry>()).next_multiple_of(64 * 1024);

/// The ring and buffers of so many bytes each.
fn total_bytes(bytes: usize) -> usize {
    RING_BYTES + usize::from(COUNT) * bytes
}

impl Buffers {
    /// Allocates the memory and hands all buffers over, each of so many bytes.
    fn new(bytes: usize) -> Result<Buffers, Errno> {
        let total = total_bytes(bytes);
        let access = ProtFlags::READ.union(ProtFlags::WRITE);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let memory = unsafe { mmap_anonymous(std::ptr::null_mut(), total, access, MapFlags::PRIVATE) }?;
        let memory = NonNull::new(memory).ok_or(Errno::NOMEM)?;
        let mut buffers = Buffers { memory, bytes, tail: 0 };
        for id in 0..COUNT {
            buffers.give_back(id);
        }
        Ok(buffers)
    }

    /// Where the ring begins, as the kernel is told once.
    fn address(&self) -> u64 {
        self.memory.as_ptr() as u64
    }

    /// The first `count` bytes of buffer `id`, which a completion has named.
    fn bytes(&mut self, id: u16, count: usize) -> &mut [u8] {
        assert!(
            id < COUNT && count <= self.bytes,
            "the kernel was given {COUNT} buffers of {} bytes",
            self.bytes
        );
        // SAFETY: within the mapping, initialised by mmap; the kernel does not write to a buffer it has completed
        // until that is given back; both take this value mutably.
        unsafe { std::slice::from_raw_parts_mut(self.buffer(id), count) }
    }

    fn give_back(&mut self, id: u16) {
        let address = self.buffer(id) as u64;
        let ring = self.memory.as_ptr().cast::<BufRingEntry>();
        // SAFETY: the slot is within the ring's pages; the kernel reads slots before the tail only. The entry's last
        // field is left alone, for in slot 0 it is the tail itself.
        let entry = unsafe { &mut *ring.add(usize::from(self.tail % COUNT)) };
        entry.set_addr(address);
        entry.set_len(self.bytes as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail lies in the first entry of the mapping, aligned to 2 bytes; the kernel reads it with acquire.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(ring).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    fn buffer(&self, id: u16) -> *mut u8 {
        // SAFETY: `id` is below COUNT, so that the result lies within the mapping.
        unsafe { self.memory.as_ptr().cast::<u8>().add(RING_BYTES + usize::from(id) * self.bytes) }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, unmapped once. The driver drops its ring first, so that the kernel has no
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
        let places: Vec<_> = (0..COUNT).map(|id| buffers.bytes(id, BYTES).as_ptr_range()).collect();
        assert!(places.windows(2).all(|pair| pair[0].end <= pair[1].start));
        assert!(places[0].start as u64 - buffers.address() >= RING_BYTES as u64);
    }
}
