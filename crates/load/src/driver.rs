//! The interface between an engine thread and its driver, and the choice of the driver.
//!
//! A driver decides nothing: it reports events to the [`Worker`] and performs the returned [`Action`].

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::Address;
use crate::clock;
use crate::worker::{Action, Worker};
use model::{Cause, OsError};

/// Maximum connections begun in one scan. More would overrun a listener's backlog before it is scheduled.
const CONNECTS_MAX: usize = 128;

/// Maximum due requests begun at once. More would delay responses that have arrived already.
const STARTS_MAX: usize = 64;

/// Moves the bytes of one thread.
pub(crate) trait Driver {
    /// Its name in slices.
    fn name(&self) -> &'static str;

    /// Waits for events, at most `wait_ns`, and handles them. Returns false if more may be pending.
    fn turn(&mut self, worker: &mut Worker, wait_ns: u64) -> bool;

    fn write(&mut self, worker: &mut Worker, index: usize) -> Action;

    /// Creates a socket for connection `index` and begins to connect it. Success is reported as an event.
    fn connect(&mut self, index: usize) -> Result<(), Errno>;

    fn close(&mut self, index: usize);

    /// The open sockets.
    fn sockets(&self) -> Box<dyn Iterator<Item = &OwnedFd> + '_>;

    /// Acknowledges received data at once, not with the next request or after 40 ms. A peer with Nagle's
    /// algorithm delays its remaining data until then (RFC 9293, section 3.7.4).
    fn acknowledge(&self) {
        // Unix sockets have neither.
        self.sockets()
            .for_each(|socket| sockopt::set_tcp_quickack(socket, true).unwrap_or_default());
    }

    /// Performs the worker's actions for connection `index` until it has none.
    fn perform(&mut self, worker: &mut Worker, index: usize, mut act: Action) {
        loop {
            act = match act {
                Action::Wait => return,
                Action::Free => worker.start(index, clock::monotonic_ns()),
                Action::Send => self.write(worker, index),
                Action::Close => return self.close(index),
                Action::Reopen => {
                    self.close(index);
                    self.open(worker, index)
                }
            }
        }
    }

    fn open(&mut self, worker: &mut Worker, index: usize) -> Action {
        let now_ns = clock::monotonic_ns();
        worker.connecting(index, now_ns);
        match self.connect(index) {
            Ok(()) => Action::Wait,
            Err(errno) => worker.failed(index, now_ns, cause(errno)),
        }
    }

    /// Begins a request on every idle connection, as far as the worker allows. If each opens a connection,
    /// only a limited number begin at once.
    fn start_all(&mut self, worker: &mut Worker) {
        let mut connects = 0;
        for index in 0..worker.connections.len() {
            if connects == CONNECTS_MAX {
                worker.put_off_start(index, clock::monotonic_ns());
                continue;
            }
            self.perform(worker, index, Action::Free);
            connects += usize::from(worker.is_connecting(index));
        }
    }

    /// Begins due requests on free connections in open loop.
    fn start_due(&mut self, worker: &mut Worker) {
        for _ in 0..STARTS_MAX {
            let Some((index, act)) = worker.start_next(clock::monotonic_ns()) else {
                return;
            };
            self.perform(worker, index, act);
        }
    }

    /// Handles expired time limits.
    fn sweep(&mut self, worker: &mut Worker, now_ns: u64) {
        let mut from = 0;
        let mut connects = 0;
        while let Some((index, act)) = worker.overdue(from, now_ns) {
            let was_connecting = worker.is_connecting(index);
            self.perform(worker, index, act);
            from = index + 1;
            connects += usize::from(worker.is_connecting(index) && !was_connecting);
            if connects == CONNECTS_MAX {
                // The rest is left to the next scan.
                worker.next_due_ns = worker.next_due_ns.min(now_ns);
                return;
            }
        }
    }
}

/// The target of connections and their source addresses.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) address: Address,
    /// Used in turn. If empty, the kernel chooses.
    pub(crate) sources: Vec<IpAddr>,
}

impl Route {
    /// Creates a socket for connection `index` and begins to connect it.
    pub(crate) fn begin(&self, index: usize) -> Result<OwnedFd, Errno> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match &self.address {
            Address::Tcp(address) => {
                let family = if address.is_ipv4() {
                    AddressFamily::INET
                } else {
                    AddressFamily::INET6
                };
                let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
                sockopt::set_tcp_nodelay(&socket, true)?;
                self.bind(&socket, index)?;
                begun(rustix::net::connect(&socket, address), socket)
            }
            Address::Unix(path) => {
                let address = SocketAddrUnix::new(path.as_path())?;
                let socket =
                    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
                match rustix::net::connect(&socket, &address) {
                    // The listener's backlog is full. This is like a TCP port that does not answer, but known
                    // at once.
                    Err(Errno::AGAIN) => Err(Errno::CONNREFUSED),
                    result => begun(result, socket),
                }
            }
        }
    }

    /// Binds a local address. The port is chosen when connecting, so that it may serve several peers.
    fn bind(&self, socket: &OwnedFd, index: usize) -> Result<(), Errno> {
        let Some(&source) = self.sources.get(index % self.sources.len().max(1)) else {
            return Ok(());
        };
        if source.is_ipv4() {
            set_bind_address_no_port(socket)?;
        }
        rustix::net::bind(socket, &SocketAddr::new(source, 0))
    }
}

fn begun(result: Result<(), Errno>, socket: OwnedFd) -> Result<OwnedFd, Errno> {
    match result {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(errno) => Err(errno),
    }
}

/// `IP_BIND_ADDRESS_NO_PORT` of ip(7), Linux 4.2.
fn set_bind_address_no_port(socket: &OwnedFd) -> Result<(), Errno> {
    let on: libc::c_int = 1;
    // SAFETY: the option's value is an int, whose address and size are given. The descriptor is open.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}

/// The cause under which an operating system error is counted.
pub(crate) fn cause(errno: Errno) -> Cause {
    match errno {
        Errno::CONNREFUSED => Cause::Refused,
        Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED => Cause::Reset,
        Errno::TIMEDOUT => Cause::Timeout,
        Errno::ADDRNOTAVAIL => Cause::AddressExhausted,
        Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN => Cause::Unreachable,
        other => Cause::OsError(OsError(other.raw_os_error())),
    }
}

/// The result of a finished connection attempt.
///
/// A local port without a listener may be in the ephemeral range. A socket may then be given the port it
/// calls and connect to itself (a simultaneous open, RFC 9293, section 3.5). This is treated as refused, and
/// the socket is reset. Closed in an orderly way it would keep the service from its port for a minute.
pub(crate) fn end_connect(socket: &OwnedFd) -> Result<(), Errno> {
    sockopt::socket_error(socket)??;
    let here = rustix::net::getsockname(socket)?;
    // The peer is gone if a reset has arrived meanwhile, which the next operation will report.
    let there = rustix::net::getpeername(socket).unwrap_or(None);
    if there == Some(here) {
        let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
        return Err(Errno::CONNREFUSED);
    }
    Ok(())
}
