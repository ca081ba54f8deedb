//! The thread that listens: takes connections in, from processes of the service alone, and reads their lines.
//!
//! It answers nobody, and lets nobody keep it: lines and connections have bounds.

use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::socket_peercred;

use super::board::Board;
use crate::process::Stat;

/// Longest line. A greeting has the flags of its process, which may be long.
const LINE_BYTES_MAX: usize = 256 << 10;
/// Connections over the whole life of a service: as many workers and worker threads.
const CONNECTIONS_MAX: usize = 1024;
/// How long a service may have been started before it is known which it is.
const OWNER_PATIENCE: Duration = Duration::from_secs(5);
/// Generations between a process of the service and its warden.
const GENERATIONS_MAX: usize = 64;

/// An open connection.
struct Connection {
    number: usize,
    stream: UnixStream,
    pending: Vec<u8>,
}

/// Listens until the other end of `life` is closed.
pub(super) fn listen(listener: &UnixListener, life: &OwnedFd, board: &Board) {
    let mut connections: Vec<Connection> = Vec::new();
    loop {
        let mut waiting: Vec<PollFd<'_>> =
            vec![PollFd::new(life, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
        waiting.extend(
            connections.iter().map(|one| PollFd::from_borrowed_fd(one.stream.as_fd(), PollFlags::IN)),
        );
        match poll(&mut waiting, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        let ready: Vec<bool> = waiting.iter().map(|one| !one.revents().is_empty()).collect();
        if ready[0] {
            return;
        }
        let mut spoke = ready[2..].iter();
        connections.retain_mut(|one| !spoke.next().is_some_and(|ready| *ready) || one.read(board));
        if ready[1] {
            connections.extend(accept(listener, board));
        }
    }
}

/// The next connection, if it is one of the service's.
fn accept(listener: &UnixListener, board: &Board) -> Option<Connection> {
    let (stream, _) = listener.accept().ok()?;
    stream.set_nonblocking(true).ok()?;
    let pid = u32::try_from(socket_peercred(&stream).ok()?.pid.as_raw_pid()).ok()?;
    // It may be quicker than who started it.
    board.wait(OWNER_PATIENCE, &|| false, |book| book.owner.is_some());
    let owner = board.book().owner;
    let ours = owner.is_some_and(|owner| descends(pid, owner));
    let writer = stream.try_clone().ok()?;
    board.change(|book| {
        if !ours {
            book.note(format!("pid {pid} is no process of the service, and was not listened to"));
            return None;
        }
        if book.peers.len() >= CONNECTIONS_MAX {
            book.note(format!("more than {CONNECTIONS_MAX} agents came; the others were not listened to"));
            return None;
        }
        Some(Connection { number: book.add(pid, writer), stream, pending: Vec::new() })
    })
}

/// Whether a process is below another. Between two looks a parent may end and hand its children over, so there are three.
fn descends(pid: u32, from: u32) -> bool {
    (0..3).any(|_| {
        let parent = |pid: &u32| Stat::read(*pid).map(|stat| stat.ppid).filter(|parent| *parent > 0);
        std::iter::successors(parent(&pid), parent).take(GENERATIONS_MAX).any(|ancestor| ancestor == from)
    })
}

impl Connection {
    /// Reads what is there; whether the connection stays.
    fn read(&mut self, board: &Board) -> bool {
        let mut buffer = [0; 16 << 10];
        let stays = match self.stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(count) => {
                self.pending.extend_from_slice(&buffer[..count]);
                self.lines(board)
            }
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        };
        if !stays {
            board.change(|book| book.close(self.number));
        }
        stays
    }

    /// Hands whole lines on; whether the connection stays.
    fn lines(&mut self, board: &Board) -> bool {
        let whole = self.pending.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let rest = self.pending.split_off(whole);
        let lines = std::mem::replace(&mut self.pending, rest);
        let mut lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let stays = board.change(|book| lines.all(|line| book.take(self.number, line)));
        if self.pending.len() > LINE_BYTES_MAX {
            board.change(|book| book.note(format!("an agent's line was longer than {LINE_BYTES_MAX} bytes")));
            return false;
        }
        stays
    }
}
