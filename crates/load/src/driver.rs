//! What an engine thread needs of whatever moves its bytes, and which of the drivers it gets.
//!
//! A driver decides nothing: it reports events to the [`Share`] and does what the returned [`Act`] says.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::clock;
use crate::completion::Completion;
use crate::readiness::Readiness;
use crate::share::{Act, Share};
use crate::{Cause, DriverChoice, LoadError};

/// Connections begun in one walk: more would overrun a listener's backlog before it is scheduled.
const CONNECTS_MAX: usize = 128;

/// Requests begun at once that were due: more would keep responses waiting that are there already.
const STARTS_MAX: usize = 64;

/// Moves the bytes of one thread's share.
pub(crate) trait Driver {
    /// As it is called in a slice.
    fn name(&self) -> &'static str;

    /// Waits for events, at most `wait_ns`, and handles them. False when there may be more of them already.
    fn turn(&mut self, share: &mut Share, wait_ns: u64) -> bool;

    /// Writes the request of connection `index`, from where it was left.
    fn write(&mut self, share: &mut Share, index: usize) -> Act;

    /// Makes a socket for connection `index` and begins to connect it; that it is connected shows as an event.
    fn connect(&mut self, index: usize) -> Result<(), Errno>;

    /// Closes the socket of connection `index`.
    fn close(&mut self, index: usize);

    /// Does what the share wants done with connection `index`, and what it wants done then.
    fn perform(&mut self, share: &mut Share, index: usize, mut act: Act) {
        loop {
            act = match act {
                Act::Wait => return,
                Act::Free => share.start(index, clock::monotonic_ns()),
                Act::Send => self.write(share, index),
                Act::Close => return self.close(index),
                Act::Reopen => {
                    self.close(index);
                    self.open(share, index)
                }
            }
        }
    }

    /// Opens connection `index`.
    fn open(&mut self, share: &mut Share, index: usize) -> Act {
        let now_ns = clock::monotonic_ns();
        share.connecting(index, now_ns);
        match self.connect(index) {
            Ok(()) => Act::Wait,
            Err(errno) => share.failed(index, now_ns, Cause::of(errno)),
        }
    }

    /// Begins a request on every idle connection, as far as the share allows.
    fn start_all(&mut self, share: &mut Share) {
        for index in 0..share.connections() {
            self.perform(share, index, Act::Free);
        }
    }

    /// Begins requests that are due on connections that are free: open loop.
    fn start_due(&mut self, share: &mut Share) {
        for _ in 0..STARTS_MAX {
            let Some(index) = share.start_next(clock::monotonic_ns()) else { return };
            self.perform(share, index, Act::Send);
        }
    }

    /// Does what is due by time.
    fn sweep(&mut self, share: &mut Share, now_ns: u64) {
        let mut from = 0;
        let mut connects = 0;
        while let Some((index, act)) = share.overdue(from, now_ns) {
            self.perform(share, index, act);
            from = index + 1;
            connects += usize::from(act == Act::Reopen);
            if connects == CONNECTS_MAX {
                return share.put_off(now_ns);
            }
        }
    }
}

/// Makes the driver that was asked for, or the readiness driver where the kernel refuses the other one.
pub(crate) fn make(
    choice: DriverChoice,
    address: SocketAddr,
    request: Arc<[u8]>,
    connections: usize,
) -> Result<Box<dyn Driver>, LoadError> {
    if choice != DriverChoice::Readiness
        && let Ok(driver) = Completion::new(address, request.clone(), connections)
    {
        return Ok(Box::new(driver));
    }
    let driver =
        Readiness::new(address, request, connections).map_err(|errno| LoadError::Thread(errno.into()))?;
    driver.probe().map_err(|errno| LoadError::Kernel(errno.into()))?;
    Ok(Box::new(driver))
}

/// Makes a socket and begins to connect it.
pub(crate) fn begin_connect(address: &SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    match rustix::net::connect(&socket, address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(errno) => Err(errno),
    }
}

/// How connecting has ended, once it has.
///
/// Where nobody listens on a port of this machine that is also one of those given to clients, a socket may be given the very
/// port it calls, and meets itself (a simultaneous open, RFC 9293, section 3.5). That is nobody, and it is reset: closed in
/// good order it would keep the service from its port for a minute.
pub(crate) fn end_connect(socket: &OwnedFd) -> Result<(), Errno> {
    sockopt::socket_error(socket)??;
    let here = rustix::net::getsockname(socket)?;
    // Nobody is there any more when a reset has come meanwhile, which whatever is done next will tell.
    let there = rustix::net::getpeername(socket).unwrap_or(None);
    if there == Some(here) {
        let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
        return Err(Errno::CONNREFUSED);
    }
    Ok(())
}
