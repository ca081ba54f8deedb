//! One thread's share of the load: its connections, what they may still send, and the tally of what happened.
//!
//! Sans I/O. A driver reports each event (opened, received, ended, failed, due) with the time, and does what the
//! returned [`Act`] says; the epoll driver does it with sockets, the simulation in the tests with seeded fictions.
//! Nothing here may depend on how bytes are moved.
//!
//! ```text
//!   Shut ── prepare ──► Opening ── open_window ──► Sending ── stop_sending ──► Draining ── finish ──► Shut
//! ```

mod clockwork;
mod schedule;
#[cfg(test)]
mod simulation;

use crate::check::Check;
use crate::connection::{Connection, Heard, Stage};
use crate::pacer::Pacer;
use crate::tally::Tally;
use crate::{Cause, Contract, ContractFailure, Phase, Until};
use schedule::Schedule;

/// What a driver has to do with a connection now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Act {
    /// Nothing before its next event.
    Wait,
    /// Read it dry, then ask [`Share::start`] what comes next.
    Free,
    /// Write the request, from [`Share::unwritten_from`] on.
    Send,
    /// Close the socket, if there is one, and connect anew at once.
    Reopen,
    /// Close the socket. [`Share::overdue`] will say when to connect anew.
    Close,
}

/// What all connections of a share have in common.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub(crate) request_bytes: usize,
    /// The method is HEAD.
    pub(crate) bodiless: bool,
    pub(crate) timeout_ns: u64,
    pub(crate) connect_timeout_ns: u64,
    pub(crate) contract: Contract,
    /// When requests are due; `None` in closed loop.
    pub(crate) pacer: Option<Pacer>,
}

/// The part of a slice that is going on; times are absolute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Shut,
    Opening { until_ns: u64 },
    Sending { started_ns: u64, stop_ns: u64 },
    Draining { stopped_ns: u64, until_ns: u64 },
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Share {
    terms: Terms,
    connections: Vec<Connection>,
    check: Check,
    tally: Tally,
    schedule: Option<Schedule>,
    gate: Gate,
    /// Requests that may still be sent; none are counted off where time is the limit.
    allowance: Option<u64>,
    in_flight: u32,
    alive: u32,
    /// Since when no connection has been open.
    none_alive_since_ns: u64,
    /// No time limit of any connection ends before this.
    next_due_ns: u64,
}

impl Share {
    pub(crate) fn new(mut terms: Terms, connections: u32) -> Share {
        let connection = || Connection::new(terms.request_bytes, terms.bodiless);
        Share {
            connections: (0..connections).map(|_| connection()).collect(),
            check: Check::new(terms.contract.clone()),
            tally: Tally::new(),
            schedule: terms.pacer.take().map(|pacer| Schedule::new(pacer, connections)),
            gate: Gate::Shut,
            allowance: None,
            in_flight: 0,
            alive: 0,
            none_alive_since_ns: 0,
            next_due_ns: 0,
            terms,
        }
    }

    /// How many connections there are, open or not; they are named by their index.
    pub(crate) fn connections(&self) -> usize {
        self.connections.len()
    }

    /// How many connections are open.
    pub(crate) fn alive(&self) -> u32 {
        self.alive
    }

    /// How many requests are under way.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Whether requests are due at times of their own.
    pub(crate) fn is_open_loop(&self) -> bool {
        self.schedule.is_some()
    }

    /// Where connection `index` stands.
    pub(crate) fn stage(&self, index: usize) -> Stage {
        self.connections[index].stage()
    }

    /// From where on the request of connection `index` is still to be written, if it is.
    pub(crate) fn unwritten_from(&self, index: usize) -> Option<usize> {
        self.connections[index].unwritten_from()
    }

    /// How many of the next bytes of connection `index` may be thrown away unseen; 0: they must be read.
    pub(crate) fn skippable(&self, index: usize) -> u64 {
        self.connections[index].skippable()
    }

    /// Complete responses so far in this slice.
    pub(crate) fn answered(&self) -> u64 {
        self.tally.answered
    }

    /// The driver has begun to connect a socket for connection `index`.
    pub(crate) fn connecting(&mut self, index: usize, now_ns: u64) {
        self.connections[index].open(now_ns);
    }

    /// The socket of connection `index` is connected, and free.
    pub(crate) fn opened(&mut self, index: usize) {
        self.tally.opened += 1;
        self.tally.reconnects += u64::from(self.connections[index].opened());
        self.alive += 1;
    }

    /// Begins the next request on connection `index` if it is idle and one may be sent: at once in closed loop, if one is
    /// due in open loop. There, [`Share::start_next`] begins those that find an idle connection.
    pub(crate) fn start(&mut self, index: usize, now_ns: u64) -> Act {
        if self.connections[index].stage() != Stage::Idle {
            return Act::Wait;
        }
        if self.schedule.is_some() {
            return self.offer(index, now_ns);
        }
        if !self.may_send(now_ns) {
            return Act::Wait;
        }
        self.begin(index, now_ns, None);
        Act::Send
    }

    fn begin(&mut self, index: usize, now_ns: u64, intended_ns: Option<u64>) {
        if let Some(left) = &mut self.allowance {
            *left -= 1;
        }
        self.tally.sent += 1;
        self.tally.sent_in_window += u64::from(self.since_start(now_ns).is_some());
        self.in_flight += 1;
        self.connections[index].begin(now_ns, intended_ns);
    }

    /// So many more bytes of the request on connection `index` were written.
    pub(crate) fn wrote(&mut self, index: usize, count: usize) {
        self.connections[index].wrote(count);
    }

    /// The request on connection `index` was reported as written, but could not be.
    pub(crate) fn unwrote(&mut self, index: usize) {
        self.connections[index].unwrote();
    }

    /// Bytes have arrived on connection `index`.
    pub(crate) fn received(&mut self, index: usize, now_ns: u64, bytes: &[u8]) -> Act {
        self.tally.bytes_wire += bytes.len() as u64;
        let heard = self.connections[index].received(now_ns, bytes, &mut self.check);
        self.settle(index, now_ns, heard)
    }

    /// So many bytes have arrived on connection `index` and were thrown away, at most [`Share::skippable`].
    pub(crate) fn skipped(&mut self, index: usize, now_ns: u64, count: u64) -> Act {
        self.tally.bytes_wire += count;
        let heard = self.connections[index].skipped(now_ns, count, &mut self.check);
        self.settle(index, now_ns, heard)
    }

    /// The peer of connection `index` has ended it.
    pub(crate) fn ended(&mut self, index: usize, now_ns: u64) -> Act {
        let heard = self.connections[index].ended(now_ns, &mut self.check);
        self.settle(index, now_ns, heard)
    }

    /// Connecting, reading or writing failed on connection `index`.
    pub(crate) fn failed(&mut self, index: usize, now_ns: u64, cause: Cause) -> Act {
        let heard = self.connections[index].failed(now_ns, cause);
        self.settle(index, now_ns, heard)
    }

    /// Enters in the books what a connection has heard, and says what to do with it.
    fn settle(&mut self, index: usize, now_ns: u64, heard: Heard) -> Act {
        match heard {
            Heard::More => return Act::Wait,
            Heard::Answered(answer) => {
                self.in_flight -= 1;
                self.tally.answer(&answer, self.since_start(now_ns));
                if answer.surplus {
                    self.tally.error(Phase::Idle, Cause::Malformed);
                } else if answer.reusable {
                    return Act::Free;
                }
            }
            Heard::Broken(loss) => {
                self.in_flight -= 1;
                self.tally.loss(&loss);
            }
            Heard::Spoilt(phase, cause) => {
                self.tally.error(phase, cause);
                if let Some(schedule) = &mut self.schedule {
                    schedule.withdraw(index);
                }
            }
        }
        self.lose(index, now_ns)
    }

    /// A connection is of no more use.
    fn lose(&mut self, index: usize, now_ns: u64) -> Act {
        let connection = &mut self.connections[index];
        if !matches!(connection.stage(), Stage::Connecting { .. }) {
            self.alive -= 1;
            if self.alive == 0 {
                self.none_alive_since_ns = now_ns;
            }
        }
        connection.close(now_ns);
        let Stage::Closed { retry_ns } = connection.stage() else { unreachable!("it was closed just now") };
        self.next_due_ns = self.next_due_ns.min(retry_ns);
        if retry_ns <= now_ns && self.wants_connections(now_ns) { Act::Reopen } else { Act::Close }
    }

    fn may_send(&self, now_ns: u64) -> bool {
        matches!(self.gate, Gate::Sending { stop_ns, .. } if now_ns < stop_ns) && self.allowance != Some(0)
    }

    /// While connections are opened, and while there is something to send.
    fn wants_connections(&self, now_ns: u64) -> bool {
        matches!(self.gate, Gate::Opening { .. }) || self.may_send(now_ns) || self.is_behind()
    }

    /// Whether the window is over and something that was due in it is still to be sent.
    fn is_behind(&self) -> bool {
        matches!(self.gate, Gate::Draining { .. }) && self.next_arrival_ns().is_some()
    }

    /// How far into the window `now_ns` is, or `None` outside of it.
    fn since_start(&self, now_ns: u64) -> Option<u64> {
        match self.gate {
            Gate::Sending { started_ns, stop_ns } if now_ns < stop_ns => Some(now_ns - started_ns),
            _ => None,
        }
    }
}
