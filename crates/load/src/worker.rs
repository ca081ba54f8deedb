//! The part of the load that one thread does: its connections, what they may still send, and the tally of what happened.
//!
//! Sans I/O. A driver reports each event (opened, received, ended, failed, due) with the time, and does what the
//! returned [`Action`] says; the epoll driver does it with sockets, the simulation in the tests with seeded fictions.
//! Nothing here may depend on how bytes are moved.
//!
//! ```text
//!   Shut ── prepare ──► Opening ── open_window ──► Sending ── stop_sending ──► Draining ── finish ──► Shut
//! ```

mod schedule;
#[cfg(test)]
pub(crate) mod simulation;
mod thinking;

use std::sync::Arc;

use model::{Cause, Counts};

use crate::arena::{RequestArena, RequestSampler};
use crate::check::Check;
use crate::clock::in_ns;
use crate::connection::{Connection, Effect, InFlight, Recorder, Stage, TlsSettings};
use crate::pacer::Pacer;
use crate::tally::Tally;
use crate::user::{User, UserSettings};
use crate::{Contract, Protocol, Until};
use schedule::Schedule;
use thinking::Thinking;

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
#[derive(Clone)]
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
    /// Before a window connections are opened so far apart.
    pub(crate) opening_gap_ns: u64,
    /// Of each endpoint.
    pub(crate) contracts: Vec<Contract>,
    /// One response in so many is looked at in full; 0: none.
    pub(crate) sample_every: u64,
    /// What users have in common, where they are told apart.
    pub(crate) users: Option<Arc<UserSettings>>,
}

impl Settings {
    /// Whether nothing but the arena's bytes is ever written, and a connection has one request under way.
    pub(crate) fn is_plain(&self) -> bool {
        let row = crate::protocol::row(self.protocol);
        // What is made for a user lasts no longer than its request, and the kernel may read it later than that.
        let makes = |of: &Arc<UserSettings>| of.users.cookies || !of.users.first.is_empty();
        let is_shared = !self.users.as_ref().is_some_and(makes);
        row.writes_rendered && self.protocol.lanes() == 1 && self.tls.is_none() && is_shared
    }
}

/// Shortest and longest time that a slice listens at its end, and the part of its window (1/N) that this may take.
const LISTEN_MIN_NS: u64 = 20_000_000;
const LISTEN_MAX_NS: u64 = 1_000_000_000;
const LISTEN_WINDOWS: u64 = 20;

/// Longest time for which a request may be behind its time at the end of a window and still be sent in the drain: this, or the part of the
/// window (1/N) if that is longer. A service that is farther behind cannot keep the rate, and to send the rest would take as long again.
const BEHIND_MAX_NS: u64 = 500_000_000;
const BEHIND_WINDOWS: u64 = 10;

/// Connections that are due within one such step are opened together: nobody looks more often.
const OPENING_STEP_NS: u64 = 10_000_000;

/// The part of a slice that is going on; times are absolute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Shut,
    Opening {
        until_ns: u64,
    },
    Sending {
        started_ns: u64,
        stop_ns: u64,
    },
    /// `sends`: what was due in the window and is not sent yet still goes out.
    Draining {
        stopped_ns: u64,
        until_ns: u64,
        sends: bool,
    },
}

pub(crate) struct Worker {
    settings: Settings,
    /// Open or not; they are named by their index.
    pub(crate) connections: Vec<Connection>,
    /// By connection: whether it has begun a request in this window.
    has_begun: Box<[bool]>,
    /// That of each connection; none where users are not told apart.
    users: Vec<User>,
    thinking: Option<Thinking>,
    sampler: RequestSampler,
    check: Check,
    pub(crate) tally: Tally,
    schedule: Option<Schedule>,
    gate: Gate,
    /// Requests that may still be sent; none are counted off where time is the limit.
    allowance: Option<u64>,
    /// Requests under way, and connections that are open.
    pub(crate) in_flight: u32,
    pub(crate) alive: u32,
    /// Since when no connection has been open, and since when no request has been under way.
    none_alive_since_ns: u64,
    idle_since_ns: u64,
    /// Since when every attempt to open a connection has failed, if the last one has.
    barren_since_ns: Option<u64>,
    /// No time limit of any connection ends before this: [`Worker::overdue`] has nothing to say.
    pub(crate) next_due_ns: u64,
    /// How long requests of each endpoint take, by earlier slices.
    usual_ns: Box<[Option<u64>]>,
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
        let mut check = Check::new(settings.contracts.clone(), settings.sample_every);
        check.has_users = settings.users.is_some();
        let (mut users, mut thinking) = (Vec::new(), None);
        if let Some(common) = &settings.users {
            users.extend((0..connections as usize).map(|index| User::new(common, index)));
            let think = common.users.think;
            thinking = think.map(|think| Thinking::new(think, common.seed, common.lane, connections));
        }
        Worker {
            connections: (0..connections).map(|_| Connection::new(&settings)).collect(),
            has_begun: vec![false; connections as usize].into(),
            users,
            thinking,
            sampler,
            check,
            tally: Tally::new(settings.contracts.len(), pacer.is_some()),
            schedule: pacer.map(|pacer| Schedule::new(pacer, connections, lanes)),
            gate: Gate::Shut,
            allowance: None,
            in_flight: 0,
            alive: 0,
            none_alive_since_ns: 0,
            idle_since_ns: 0,
            barren_since_ns: None,
            next_due_ns: 0,
            usual_ns: vec![None; settings.contracts.len()].into(),
            settings,
        }
    }

    /// Whether requests are due at times of their own.
    pub(crate) fn is_open_loop(&self) -> bool {
        self.schedule.is_some()
    }

    pub(crate) fn is_connecting(&self, index: usize) -> bool {
        self.connections[index].stage == Stage::Connecting
    }

    pub(crate) fn output(&self, index: usize) -> Option<&[u8]> {
        self.connections[index].output(&self.settings.arena)
    }

    /// How many of the next bytes of connection `index` may be thrown away unseen; 0: they must be read.
    pub(crate) fn skippable(&self, index: usize) -> u64 {
        if self.settings.can_skip { self.connections[index].skippable() } else { 0 }
    }

    /// The driver has begun to connect a socket for connection `index`.
    pub(crate) fn connecting(&mut self, index: usize, now_ns: u64) {
        self.connections[index].open(now_ns);
    }

    pub(crate) fn opened(&mut self, index: usize, now_ns: u64) -> Action {
        self.hear(index, now_ns, |connection, recorder| connection.connected(recorder))
    }

    /// Begins what may be sent on connection `index`, as far as there is room: at once in closed loop, if it is due in
    /// open loop. There, [`Worker::start_next`] begins what becomes due while there is room.
    pub(crate) fn start(&mut self, index: usize, now_ns: u64) -> Action {
        if self.schedule.is_some() {
            self.offer(index, now_ns);
        } else if self.thinking.is_some() {
            self.think(index, now_ns);
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
        let mut request = InFlight::new(self.sampler.draw(), now_ns, intended_ns);
        self.tally.silence.begin(request.choice.endpoint, now_ns);
        request.is_first = !std::mem::replace(&mut self.has_begun[index], true);
        if let Some(user) = self.users.get(index) {
            request.own = user.own(request.choice, &self.settings.arena);
        }
        self.connections[index].begin(request, &self.settings.arena);
    }

    /// What has begun on connection `index` goes out: on its way there is a socket to be opened, or something to be written.
    fn push(&mut self, index: usize) -> Action {
        let connection = &mut self.connections[index];
        if matches!(connection.stage, Stage::Closed { .. }) {
            return if connection.is_busy() { Action::Reopen } else { Action::Wait };
        }
        connection.flush(&self.settings.arena);
        if connection.output(&self.settings.arena).is_some() { Action::Send } else { Action::Wait }
    }

    pub(crate) fn wrote(&mut self, index: usize, count: usize) {
        self.connections[index].wrote(count, &self.settings.arena);
    }

    /// The output of connection `index` was reported as written, but could not be.
    pub(crate) fn unwrote(&mut self, index: usize) {
        self.connections[index].unwrote();
    }

    pub(crate) fn received(&mut self, index: usize, now_ns: u64, bytes: &mut [u8]) -> Action {
        self.tally.counts.wire_bytes += bytes.len() as u64;
        self.hear(index, now_ns, |connection, recorder| connection.received(bytes, recorder))
    }

    /// So many bytes have arrived on connection `index` and were thrown away, at most [`Worker::skippable`].
    pub(crate) fn skipped(&mut self, index: usize, now_ns: u64, count: u64) -> Action {
        self.tally.counts.wire_bytes += count;
        self.hear(index, now_ns, |connection, recorder| connection.skipped(count, recorder))
    }

    pub(crate) fn ended(&mut self, index: usize, now_ns: u64) -> Action {
        self.hear(index, now_ns, |connection, recorder| connection.ended(recorder))
    }

    /// Connecting, reading or writing failed on connection `index`.
    pub(crate) fn failed(&mut self, index: usize, now_ns: u64, cause: Cause) -> Action {
        self.hear(index, now_ns, |connection, recorder| connection.failed(cause, recorder))
    }

    /// Lets connection `index` book what has happened to it, and says what to do with it.
    #[inline]
    fn hear(
        &mut self,
        index: usize,
        now_ns: u64,
        tell: impl FnOnce(&mut Connection, &mut Recorder<'_>) -> Effect,
    ) -> Action {
        let since_start_ns = self.since_start(now_ns);
        let connection = &mut self.connections[index];
        let was_open = connection.stage == Stage::Open;
        let was_busy = self.in_flight > 0;
        let mut recorder = Recorder {
            now_ns,
            since_start_ns,
            settings: &self.settings,
            check: &mut self.check,
            tally: &mut self.tally,
            in_flight: &mut self.in_flight,
            user: self.users.get_mut(index),
            has_response: false,
        };
        let effect = tell(connection, &mut recorder);
        let is_open = connection.stage == Stage::Open;
        if was_busy && self.in_flight == 0 {
            self.idle_since_ns = now_ns;
        }
        if is_open && !was_open {
            self.alive += 1;
            self.barren_since_ns = None;
        }
        if let Some(schedule) = &mut self.schedule
            && connection.room(now_ns, &self.settings) < schedule.listed[index] as usize
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
        if connection.stage == Stage::Open {
            self.alive -= 1;
            if self.alive == 0 {
                self.none_alive_since_ns = now_ns;
            }
        } else {
            self.barren_since_ns.get_or_insert(now_ns);
        }
        connection.close(now_ns);
        let Stage::Closed { retry_ns } = connection.stage else { unreachable!("it was closed just now") };
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
        let is_opening = matches!(self.gate, Gate::Opening { .. });
        !self.settings.fresh && (is_opening || self.may_send(now_ns) || self.is_behind())
    }

    /// Whether the window is over and something that was due in it is still to be sent.
    fn is_behind(&self) -> bool {
        matches!(self.gate, Gate::Draining { .. }) && self.next_sendable_ns().is_some()
    }

    /// How far into the window `now_ns` is, or `None` outside of it.
    fn since_start(&self, now_ns: u64) -> Option<u64> {
        match self.gate {
            Gate::Sending { started_ns, stop_ns } if now_ns < stop_ns => Some(now_ns - started_ns),
            _ => None,
        }
    }

    // What time does to a worker: the parts of a slice follow each other, time limits end, closed connections may be opened again.

    /// Begins the connect phase, or begins it again where no window followed. The worker has to send `allowance` requests, or as many as it can (`None`).
    pub(crate) fn prepare(&mut self, now_ns: u64, allowance: Option<u64>) {
        debug_assert!(matches!(self.gate, Gate::Shut | Gate::Opening { .. }));
        let mut apart_ns = 0;
        for connection in &mut self.connections {
            if matches!(connection.stage, Stage::Closed { .. }) {
                connection.abandon();
                if !self.settings.fresh {
                    connection.rest_until(now_ns + apart_ns / OPENING_STEP_NS * OPENING_STEP_NS);
                    apart_ns += self.settings.opening_gap_ns;
                }
            }
        }
        // Logging in takes a request's time, too.
        let more_ns = if self.users.is_empty() { 0 } else { self.settings.timeout_ns };
        self.gate =
            Gate::Opening { until_ns: now_ns + apart_ns + self.settings.connect_timeout_ns + more_ns };
        self.allowance = allowance;
        self.next_due_ns = now_ns;
        if self.alive == 0 {
            self.none_alive_since_ns = now_ns;
        }
        self.barren_since_ns = None;
    }

    /// Whether the connect phase is over: every connection is open, or the time for it is up.
    pub(crate) fn is_prepared(&self, now_ns: u64) -> bool {
        match self.gate {
            Gate::Opening { until_ns } => {
                self.settings.fresh || self.alive as usize == self.connections.len() || now_ns >= until_ns
            }
            _ => true,
        }
    }

    /// Opens the window. In closed loop the driver asks [`Worker::start`] for every connection then.
    pub(crate) fn open_window(&mut self, started_ns: u64, until: Until) {
        let window_ns = match until {
            Until::Elapsed(window) => in_ns(window),
            Until::Requests(_) => u64::MAX,
        };
        self.gate = Gate::Sending { started_ns, stop_ns: started_ns.saturating_add(window_ns) };
        self.check.begin(window_ns);
        self.has_begun.fill(false);
        self.idle_since_ns = started_ns;
        self.tally.silence.open_window(started_ns);
        self.restart_schedule(started_ns);
        self.thinking.iter_mut().for_each(Thinking::restart);
    }

    /// When a driver has to be awake, whatever else happens: the window closes, or a request is due for which a connection is
    /// free. `u64::MAX`: never.
    pub(crate) fn wake_ns(&self) -> u64 {
        let stop_ns = if let Gate::Sending { stop_ns, .. } = self.gate { stop_ns } else { u64::MAX };
        self.next_start_ns().min(stop_ns)
    }

    /// Whether the window is over: its time is up, or all requests were sent and have ended, or none of those left
    /// can be sent because for the time of a connect time-out no connection has been open, or for twice as long none has taken one.
    pub(crate) fn is_window_over(&self, now_ns: u64) -> bool {
        let Gate::Sending { stop_ns, .. } = self.gate else { return true };
        let all_ended = self.allowance == Some(0) && self.in_flight == 0;
        let some_left = self.allowance.is_some_and(|left| left > 0);
        now_ns >= stop_ns || all_ended || some_left && self.is_hopeless(now_ns)
    }

    /// Whether no connection has been open for the time of a connect time-out; where each request opens its own, whether all
    /// attempts of so long a time have failed. Where some are open and take nothing (HTTP/2), whether they were given up and opened anew since.
    fn is_hopeless(&self, now_ns: u64) -> bool {
        let limit_ns = self.settings.connect_timeout_ns;
        let (since_ns, limit_ns) = match self.settings.fresh {
            _ if self.alive > 0 => (self.refused_since_ns(), limit_ns.saturating_mul(2)),
            true => (self.barren_since_ns, limit_ns),
            false => (Some(self.none_alive_since_ns), limit_ns),
        };
        since_ns.is_some_and(|since_ns| now_ns.saturating_sub(since_ns) >= limit_ns)
    }

    /// Closes the window; what is in flight, or was due by now and is still to be sent, has `limit_ns` to end. What is far behind its
    /// time is not sent any more. Returns the time at which the window ended.
    pub(crate) fn stop_sending(&mut self, now_ns: u64, limit_ns: u64) -> u64 {
        let (started_ns, stopped_ns) = match self.gate {
            Gate::Sending { started_ns, stop_ns } => (started_ns, now_ns.min(stop_ns)),
            _ => (now_ns, now_ns),
        };
        let until_ns = stopped_ns.saturating_add(limit_ns);
        self.gate = Gate::Draining { stopped_ns, until_ns, sends: true };
        let behind_ns = self.next_arrival_ns().map_or(0, |due_ns| stopped_ns - due_ns);
        let most_ns = ((stopped_ns - started_ns) / BEHIND_WINDOWS).max(BEHIND_MAX_NS);
        self.gate = Gate::Draining { stopped_ns, until_ns, sends: behind_ns <= most_ns };
        stopped_ns
    }

    /// Shortens the drain to at most `limit_ns` from now.
    pub(crate) fn hurry(&mut self, now_ns: u64, limit_ns: u64) {
        if let Gate::Draining { until_ns, .. } = &mut self.gate {
            *until_ns = (*until_ns).min(now_ns.saturating_add(limit_ns));
        }
    }

    /// Whether nothing is in flight or to be sent any more, or the time for it is up, or it cannot be sent.
    pub(crate) fn is_drained(&self, now_ns: u64) -> bool {
        let done = || self.in_flight == 0 && (!self.is_behind() || self.is_hopeless(now_ns));
        match self.gate {
            Gate::Draining { until_ns, .. } => now_ns >= until_ns || done(),
            _ => true,
        }
    }

    /// How long to listen, after a window of this length is drained, for what nobody asked for.
    ///
    /// A second response to a request is taken for that to the next one, as long as there is a next. After the last request it stands alone. It
    /// comes about as late after the first as the slowest response took. HTTP/2 names the request of each response. Nothing is begun meanwhile:
    /// what is behind its time stays unsent.
    pub(crate) fn listen_ns(&self, window_ns: u64) -> u64 {
        let is_quiet = self.in_flight == 0 && self.alive > 0 && !self.is_behind();
        if !is_quiet || self.settings.protocol.names_requests() {
            return 0;
        }
        let most_ns = (window_ns / LISTEN_WINDOWS).clamp(LISTEN_MIN_NS, LISTEN_MAX_NS);
        self.tally.slowest_ns().saturating_mul(2).clamp(LISTEN_MIN_NS, most_ns)
    }

    /// Ends the slice: what is still in flight is entered as unfinished, what was due and not sent as unsent. Hands out the
    /// counts but for those that its caller alone knows (times, and what the thread used), and calls `close` for each connection whose
    /// socket the driver has to close.
    pub(crate) fn finish(&mut self, now_ns: u64, mut close: impl FnMut(usize)) -> Counts {
        let mut recorder = Recorder {
            now_ns,
            since_start_ns: None,
            settings: &self.settings,
            check: &mut self.check,
            tally: &mut self.tally,
            in_flight: &mut self.in_flight,
            user: None,
            has_response: false,
        };
        for (index, connection) in self.connections.iter_mut().enumerate() {
            let busy = connection.leave(&mut recorder);
            match connection.stage {
                Stage::Open if busy => self.alive -= 1,
                Stage::Connecting | Stage::Securing { .. } | Stage::LoggingIn => {}
                Stage::Open | Stage::Closed { .. } => continue,
            }
            connection.abandon();
            close(index);
        }
        self.leave_unsent(now_ns);
        self.gate = Gate::Shut;
        let fresh = Tally::new(self.settings.contracts.len(), self.schedule.is_some());
        let tally = std::mem::replace(&mut self.tally, fresh);
        debug_assert_eq!(self.in_flight, 0);
        let time = (now_ns, &mut *self.usual_ns);
        let counts = tally.finish(&self.settings.arena.endpoints, self.check.take(), time);
        Counts { connections_alive: self.alive, ..counts }
    }

    /// The first connection from index `from` on whose time is up, and what to do with it. A driver walks over all
    /// of them by `from` = the last one + 1, beginning at 0, whenever `next_due_ns` has come.
    ///
    /// There is no timer for a request: this walk finds when the next one is needed, usually a whole time-out later.
    pub(crate) fn overdue(&mut self, from: usize, now_ns: u64) -> Option<(usize, Action)> {
        if from == 0 {
            self.next_due_ns = now_ns + self.settings.timeout_ns.min(self.settings.connect_timeout_ns);
        }
        for index in from..self.connections.len() {
            let mut due_ns = self.connections[index].due_ns(&self.settings);
            let mut act = Action::Wait;
            if due_ns.is_some_and(|due_ns| due_ns <= now_ns) {
                act = self.expire(index, now_ns);
                // HTTP/2 gives up a request alone: the time of others on its connection may be up soon.
                due_ns = self.connections[index].due_ns(&self.settings);
            }
            if let Some(due_ns) = due_ns.filter(|due_ns| *due_ns > now_ns) {
                self.next_due_ns = self.next_due_ns.min(due_ns);
            }
            if act != Action::Wait {
                return Some((index, act));
            }
        }
        None
    }

    /// A driver that has begun many connections at once leaves connection `index` for its next walk.
    pub(crate) fn put_off_start(&mut self, index: usize, now_ns: u64) {
        if let Stage::Closed { retry_ns } = self.connections[index].stage {
            self.connections[index].rest_until(retry_ns.max(now_ns + 1));
            self.next_due_ns = self.next_due_ns.min(now_ns + 1);
        }
    }

    fn expire(&mut self, index: usize, now_ns: u64) -> Action {
        match self.connections[index].stage {
            Stage::Closed { .. } if self.settings.fresh => {
                self.connections[index].rest_until(0);
                Action::Free
            }
            Stage::Closed { .. } if self.wants_connections(now_ns) => Action::Reopen,
            Stage::Closed { .. } => Action::Wait,
            _ => self.hear(index, now_ns, |connection, recorder| connection.expired(recorder)),
        }
    }
}
