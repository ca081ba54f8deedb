//! The part of the load that one thread does: its connections, what they may still send, and the tally of what happened.
//!
//! Sans I/O. A driver reports each event (opened, received, ended, failed, due) with the time, and does what the
//! returned [`Action`] says; the epoll driver does it with sockets, the simulation in the tests with seeded fictions.
//! Nothing here may depend on how bytes are moved.
//!
//! ```text
//!   Shut ── prepare ──► Opening ── open_window ──► Sending ── stop_sending ──► Draining ── finish ──► Shut
//! ```

mod clockwork;
mod schedule;
#[cfg(test)]
mod simulation;

use std::sync::Arc;

use model::{Cause, Counts};

use crate::arena::{RequestArena, RequestSampler};
use crate::check::Check;
use crate::connection::{Connection, Effect, InFlight, Recorder, Stage, TlsSettings};
use crate::pacer::Pacer;
use crate::tally::Tally;
use crate::{Contract, Protocol, Until};
use schedule::Schedule;

/// What a driver has to do with a connection now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Action {
    /// Nothing before its next event.
    Wait,
    /// Read it dry, then ask [`Worker::start`] what comes next.
    Free,
    /// Write the [`Worker::output`].
    Send,
    /// Close the socket, if there is one, and connect anew at once.
    Reopen,
    /// Close the socket. [`Worker::overdue`] will say when to connect anew.
    Close,
}

impl Action {
    /// What is to be done when this was said after `earlier`: the later word counts, unless it is none.
    pub(crate) fn after(self, earlier: Action) -> Action {
        if self == Action::Wait { earlier } else { self }
    }
}

/// What all connections of a worker have in common.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) arena: Arc<RequestArena>,
    pub(crate) protocol: Protocol,
    pub(crate) tls: Option<TlsSettings>,
    /// Each request opens a connection of its own, and begins with that.
    pub(crate) fresh: bool,
    /// The kernel can throw received bytes away unseen.
    pub(crate) can_skip: bool,
    pub(crate) timeout_ns: u64,
    pub(crate) connect_timeout_ns: u64,
    /// Of each endpoint.
    pub(crate) contracts: Vec<Contract>,
    /// One response in so many is looked at in full; 0: none.
    pub(crate) sample_every: u64,
}

impl Settings {
    /// Whether nothing but the arena's bytes is ever written, and a connection has one request under way.
    pub(crate) fn is_plain(&self) -> bool {
        let row = crate::protocol::row(self.protocol);
        row.writes_rendered && self.protocol.lanes() == 1 && self.tls.is_none()
    }
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
pub(crate) struct Worker {
    settings: Settings,
    connections: Vec<Connection>,
    sampler: RequestSampler,
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
    /// Since when every attempt to open a connection has failed, if the last one has.
    barren_since_ns: Option<u64>,
    /// No time limit of any connection ends before this.
    next_due_ns: u64,
}

impl Worker {
    /// A worker with so many connections. `sampler` says what is sent, `pacer` when; without it in closed loop.
    pub(crate) fn new(
        settings: Settings,
        sampler: RequestSampler,
        pacer: Option<Pacer>,
        connections: u32,
    ) -> Worker {
        let lanes = settings.protocol.lanes() as usize * connections as usize;
        Worker {
            connections: (0..connections).map(|_| Connection::new(&settings)).collect(),
            sampler,
            check: Check::new(settings.contracts.clone(), settings.sample_every),
            tally: Tally::new(settings.contracts.len(), pacer.is_some()),
            schedule: pacer.map(|pacer| Schedule::new(pacer, connections, lanes)),
            gate: Gate::Shut,
            allowance: None,
            in_flight: 0,
            alive: 0,
            none_alive_since_ns: 0,
            barren_since_ns: None,
            next_due_ns: 0,
            settings,
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

    /// Whether connection `index` is being opened.
    pub(crate) fn is_connecting(&self, index: usize) -> bool {
        matches!(self.connections[index].stage(), Stage::Connecting { .. })
    }

    /// Whether a request is under way on connection `index`.
    pub(crate) fn is_busy(&self, index: usize) -> bool {
        self.connections[index].is_busy()
    }

    /// What is to be written next on connection `index`, if anything.
    pub(crate) fn output(&self, index: usize) -> Option<&[u8]> {
        self.connections[index].output(&self.settings.arena)
    }

    /// How many of the next bytes of connection `index` may be thrown away unseen; 0: they must be read.
    pub(crate) fn skippable(&self, index: usize) -> u64 {
        if self.settings.can_skip { self.connections[index].skippable() } else { 0 }
    }

    /// Complete responses so far in this slice.
    pub(crate) fn completed(&self) -> u64 {
        self.tally.counts.responses
    }

    /// What has been counted so far in this slice.
    pub(crate) fn so_far(&self) -> Counts {
        self.tally.so_far()
    }

    /// The driver has begun to connect a socket for connection `index`.
    pub(crate) fn connecting(&mut self, index: usize, now_ns: u64) {
        self.connections[index].open(now_ns);
    }

    /// The socket of connection `index` is connected.
    pub(crate) fn opened(&mut self, index: usize, now_ns: u64) -> Action {
        self.hear(index, now_ns, |connection, settings, recorder| connection.connected(settings, recorder))
    }

    /// Begins what may be sent on connection `index`, as far as there is room: at once in closed loop, if it is due in
    /// open loop. There, [`Worker::start_next`] begins what becomes due while there is room.
    pub(crate) fn start(&mut self, index: usize, now_ns: u64) -> Action {
        if self.schedule.is_some() {
            self.offer(index, now_ns);
        } else {
            while self.connections[index].room(now_ns, &self.settings) > 0 && self.may_send(now_ns) {
                self.begin(index, now_ns, None);
            }
        }
        self.push(index)
    }

    fn begin(&mut self, index: usize, now_ns: u64, intended_ns: Option<u64>) {
        if let Some(left) = &mut self.allowance {
            *left -= 1;
        }
        self.tally.send(self.since_start(now_ns).is_some());
        self.in_flight += 1;
        let request = InFlight::new(self.sampler.draw(), now_ns, intended_ns);
        self.connections[index].begin(request, &self.settings.arena);
    }

    /// What has begun on connection `index` goes out: on its way there is a socket to be opened, or something to be written.
    fn push(&mut self, index: usize) -> Action {
        let connection = &mut self.connections[index];
        if matches!(connection.stage(), Stage::Closed { .. }) {
            return if connection.is_busy() { Action::Reopen } else { Action::Wait };
        }
        connection.flush(&self.settings.arena);
        if connection.output(&self.settings.arena).is_some() { Action::Send } else { Action::Wait }
    }

    /// So many more bytes of the output of connection `index` were written.
    pub(crate) fn wrote(&mut self, index: usize, count: usize) {
        self.connections[index].wrote(count, &self.settings.arena);
    }

    /// The output of connection `index` was reported as written, but could not be.
    pub(crate) fn unwrote(&mut self, index: usize) {
        self.connections[index].unwrote();
    }

    /// Bytes have arrived on connection `index`.
    pub(crate) fn received(&mut self, index: usize, now_ns: u64, bytes: &mut [u8]) -> Action {
        self.tally.counts.wire_bytes += bytes.len() as u64;
        self.hear(index, now_ns, |connection, settings, recorder| {
            connection.received(bytes, settings, recorder)
        })
    }

    /// So many bytes have arrived on connection `index` and were thrown away, at most [`Worker::skippable`].
    pub(crate) fn skipped(&mut self, index: usize, now_ns: u64, count: u64) -> Action {
        self.tally.counts.wire_bytes += count;
        self.hear(index, now_ns, |connection, settings, recorder| {
            connection.skipped(count, settings, recorder)
        })
    }

    /// The peer of connection `index` has ended it.
    pub(crate) fn ended(&mut self, index: usize, now_ns: u64) -> Action {
        self.hear(index, now_ns, |connection, settings, recorder| connection.ended(settings, recorder))
    }

    /// Connecting, reading or writing failed on connection `index`.
    pub(crate) fn failed(&mut self, index: usize, now_ns: u64, cause: Cause) -> Action {
        self.hear(index, now_ns, |connection, _, recorder| connection.failed(cause, recorder))
    }

    /// Lets connection `index` book what has happened to it, and says what to do with it.
    #[inline]
    fn hear(
        &mut self,
        index: usize,
        now_ns: u64,
        tell: impl FnOnce(&mut Connection, &Settings, &mut Recorder<'_>) -> Effect,
    ) -> Action {
        let since_start_ns = self.since_start(now_ns);
        let connection = &mut self.connections[index];
        let was_open = connection.stage() == Stage::Open;
        let mut recorder = Recorder {
            now_ns,
            since_start_ns,
            arena: &self.settings.arena,
            check: &mut self.check,
            tally: &mut self.tally,
            in_flight: &mut self.in_flight,
            has_response: false,
        };
        let effect = tell(connection, &self.settings, &mut recorder);
        let is_open = connection.stage() == Stage::Open;
        if is_open && !was_open {
            self.alive += 1;
            self.barren_since_ns = None;
        }
        if let Some(schedule) = &mut self.schedule
            && connection.room(now_ns, &self.settings) < schedule.listed(index)
        {
            // A peer may take back what it allowed (HTTP/2: `GOAWAY`, fewer streams). What is left is offered anew.
            schedule.withdraw(index);
        }
        match effect {
            Effect::None => Action::Wait,
            Effect::Free => Action::Free,
            Effect::Lost => self.lose(index, now_ns),
        }
    }

    /// A connection is of no more use.
    fn lose(&mut self, index: usize, now_ns: u64) -> Action {
        if let Some(schedule) = &mut self.schedule {
            schedule.withdraw(index);
        }
        let connection = &mut self.connections[index];
        if connection.stage() == Stage::Open {
            self.alive -= 1;
            if self.alive == 0 {
                self.none_alive_since_ns = now_ns;
            }
        } else {
            self.barren_since_ns.get_or_insert(now_ns);
        }
        connection.close(now_ns);
        let Stage::Closed { retry_ns } = connection.stage() else { unreachable!("it was closed just now") };
        self.next_due_ns = self.next_due_ns.min(retry_ns);
        if retry_ns > now_ns {
            return Action::Close;
        }
        let reopen = match self.settings.fresh {
            true => self.start(index, now_ns) == Action::Reopen,
            false => self.wants_connections(now_ns),
        };
        if reopen { Action::Reopen } else { Action::Close }
    }

    fn may_send(&self, now_ns: u64) -> bool {
        matches!(self.gate, Gate::Sending { stop_ns, .. } if now_ns < stop_ns) && self.allowance != Some(0)
    }

    /// While connections are opened, and while there is something to send. Not where each request opens its own.
    fn wants_connections(&self, now_ns: u64) -> bool {
        !self.settings.fresh && self.has_work(now_ns)
    }

    fn has_work(&self, now_ns: u64) -> bool {
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
