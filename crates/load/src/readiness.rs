//! The readiness driver: moves the bytes of one thread through non-blocking sockets and epoll.
//!
//! Each socket is registered once, edge-triggered, and read until it is empty. The next request is written
//! straight from the read handler. So a request costs one send, one receive and its share of a wait, and no
//! `epoll_ctl`. This module makes no decisions about requests, which belong to the [`Worker`].

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::time::Timespec;

use crate::clock;
use crate::driver::{self, Driver, Route};
use crate::worker::{Action, Worker};

/// Maximum events per wait.
const EVENTS_MAX: usize = 256;
/// Read size. One buffer serves all connections of a thread.
///
/// The part of a long body that arrives with its head is copied, the rest is discarded. With 134 KB bodies a
/// larger buffer costs the engine more (16 KiB: 13.6 µs of CPU for a request, 64: 14.6, 128: 17.8). A smaller
/// one costs the *server* more, because many small reads open the window in many small steps (16 KiB: 20.6
/// µs, 64: 19.6).
const BUFFER_BYTES: usize = 32 * 1024;

/// Events after which the socket must be read, including an end or an error.
const READABLE: EventFlags = EventFlags::IN
    .union(EventFlags::RDHUP)
    .union(EventFlags::HUP)
    .union(EventFlags::ERR);
/// The peer sends no more: reading must continue until the end is seen.
const ENDING: EventFlags = EventFlags::RDHUP
    .union(EventFlags::HUP)
    .union(EventFlags::ERR);
const INTEREST: EventFlags = EventFlags::IN
    .union(EventFlags::OUT)
    .union(EventFlags::RDHUP)
    .union(EventFlags::ET);

pub(crate) struct Readiness {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    sockets: Vec<Option<OwnedFd>>,
    buffer: Box<[u8]>,
    route: Route,
}

impl Readiness {
    pub(crate) fn new(route: Route, connections: usize) -> Result<Readiness, Errno> {
        Ok(Readiness {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(EVENTS_MAX),
            sockets: (0..connections).map(|_| None).collect(),
            buffer: vec![0; BUFFER_BYTES].into(),
            route,
        })
    }

    /// Checks that the kernel supports the wait used by a turn. If it failed, a turn would not wait at all.
    pub(crate) fn probe(&self) -> Result<(), Errno> {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        match epoll::wait(
            &self.epoll,
            spare_capacity(&mut Vec::with_capacity(1)),
            Some(&now),
        ) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    fn handle(&mut self, worker: &mut Worker, index: usize, flags: EventFlags) {
        if worker.is_connecting(index) {
            self.connected(worker, index, flags);
            return;
        }
        // A response that has arrived is more informative than a failed write.
        if flags.intersects(READABLE) {
            self.read(worker, index, (Action::Wait, flags));
        }
        // A socket that was reopened meanwhile has nothing to write yet.
        if flags.contains(EventFlags::OUT) && worker.output(index).is_some() {
            self.perform(worker, index, Action::Send);
        }
    }

    /// Handles the end of a connection attempt, successful or not.
    fn connected(&mut self, worker: &mut Worker, index: usize, flags: EventFlags) {
        let Some(socket) = &self.sockets[index] else {
            return;
        };
        match driver::end_connect(socket) {
            Ok(()) if flags.contains(EventFlags::OUT) => {
                let act = worker.opened(index, clock::monotonic_ns());
                if flags.intersects(READABLE) && act == Action::Free {
                    self.read(worker, index, (act, flags));
                } else {
                    self.perform(worker, index, act);
                }
            }
            Ok(()) => {}
            Err(errno) => {
                let act = worker.failed(index, clock::monotonic_ns(), driver::cause(errno));
                self.perform(worker, index, act);
            }
        }
    }

    /// Reads connection `index` until it is empty. A short receive has emptied the socket. Later data makes a
    /// new edge (epoll(7)), except for an end that was announced with this one.
    fn read(&mut self, worker: &mut Worker, index: usize, (mut act, flags): (Action, EventFlags)) {
        let ending = flags.intersects(ENDING);
        let mut now_ns = 0;
        while let Some(socket) = &self.sockets[index] {
            let skippable = worker.skippable(index) as usize;
            let asked = if skippable > 0 {
                skippable
            } else {
                self.buffer.len()
            };
            let got = match skippable {
                0 => rustix::net::recv(socket, &mut self.buffer[..], RecvFlags::empty())
                    .map(|(_, got)| got),
                many => throw_away(socket, many),
            };
            if matches!(got, Err(Errno::AGAIN)) {
                break;
            }
            now_ns = clock::monotonic_ns();
            let next = match got {
                Ok(0) => worker.ended(index, now_ns),
                Ok(got) if skippable > 0 => worker.skipped(index, now_ns, got as u64),
                Ok(got) => worker.received(index, now_ns, &mut self.buffer[..got]),
                Err(Errno::INTR) => continue,
                Err(errno) => worker.failed(index, now_ns, driver::cause(errno)),
            };
            act = next.after(act);
            let dry = got.is_ok_and(|got| got < asked) && !ending;
            if dry || matches!(act, Action::Reopen | Action::Close) {
                break;
            }
        }
        // The completion time of the response is also the sending time of the next request, which saves a
        // clock read.
        if act == Action::Free && now_ns > 0 {
            act = worker.start(index, now_ns);
        }
        self.perform(worker, index, act);
    }

    /// Handles a failed write: the peer may have responded before it left, as with 413 to a long request.
    fn last_words(&mut self, worker: &mut Worker, index: usize, errno: Errno) -> Action {
        while let Some(socket) = &self.sockets[index] {
            let got = rustix::net::recv(socket, &mut self.buffer[..], RecvFlags::empty())
                .map(|(_, got)| got);
            let act = match got {
                Ok(0) | Err(_) => break,
                Ok(got) => worker.received(index, clock::monotonic_ns(), &mut self.buffer[..got]),
            };
            if act != Action::Wait {
                return act;
            }
        }
        worker.failed(index, clock::monotonic_ns(), driver::cause(errno))
    }
}

impl Driver for Readiness {
    fn name(&self) -> &'static str {
        "readiness"
    }

    fn turn(&mut self, worker: &mut Worker, wait_ns: u64) -> bool {
        let wait = Timespec {
            tv_sec: (wait_ns / 1_000_000_000) as i64,
            tv_nsec: (wait_ns % 1_000_000_000) as _,
        };
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        // Without events (interrupted by a signal) the next turn simply waits again.
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&wait));
        for event in &events {
            self.handle(worker, event.data.u64() as usize, event.flags);
        }
        let all = events.len() < EVENTS_MAX;
        self.events = events;
        all
    }

    fn write(&mut self, worker: &mut Worker, index: usize) -> Action {
        let Some(socket) = &self.sockets[index] else {
            return Action::Wait;
        };
        while let Some(bytes) = worker.output(index) {
            match rustix::net::send(socket, bytes, SendFlags::NOSIGNAL) {
                Ok(count) => worker.wrote(index, count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(errno) => return self.last_words(worker, index, errno),
            }
        }
        Action::Wait
    }

    fn connect(&mut self, index: usize) -> Result<(), Errno> {
        let socket = self.route.begin(index)?;
        epoll::add(
            &self.epoll,
            &socket,
            EventData::new_u64(index as u64),
            INTEREST,
        )?;
        self.sockets[index] = Some(socket);
        Ok(())
    }

    fn close(&mut self, index: usize) {
        self.sockets[index] = None;
    }

    fn sockets(&self) -> Box<dyn Iterator<Item = &OwnedFd> + '_> {
        Box::new(self.sockets.iter().flatten())
    }
}

/// Receives up to `count` bytes without copying them.
///
/// Source: tcp(7): "This flag (`MSG_TRUNC`) causes the received bytes of data to be discarded, rather than
/// passed back in a caller-supplied buffer", since Linux 2.4.
fn throw_away(socket: &OwnedFd, count: usize) -> Result<usize, Errno> {
    // SAFETY: with MSG_TRUNC on a TCP socket the kernel writes nothing to the buffer, so none is needed. The
    // descriptor is open as long as the borrow.
    let got = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            std::ptr::null_mut(),
            count,
            libc::MSG_TRUNC,
        )
    };
    match usize::try_from(got) {
        Ok(got) => Ok(got),
        Err(_) => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}
