//! The load of one thread: its connections, the requests it may still send, and the tally of results.
//!
//! Sans I/O. A driver reports each event (opened, received, ended, failed, due) with the time, and performs
//! the returned [`Action`]. The epoll driver uses sockets, the simulation in the tests uses seeded fakes.
//! This module does not depend on how bytes are moved.
//!
//! ```text
//!   Shut ── prepare ──► Opening ── open_window ──► Sending ── stop_sending ──► Draining ── finish ──► Shut
//! ```

mod schedule;
#[cfg(test)]
pub(crate) mod simulation;
mod thinking;

use model::{Cause, Counts};

use crate::Until;
use crate::arena::RequestSampler;
use crate::check::ContractCheck;
use crate::clock::in_ns;
use crate::connection::{Connection, Stage};
use crate::in_flight::InFlight;
use crate::pacer::Pacer;
use crate::protocol::ConnectionEffect;
use crate::recorder::Recorder;
use crate::settings::WorkerSettings;
use crate::tally::ThreadTally;
use crate::user::User;
use schedule::ArrivalSchedule;
use thinking::Thinking;

/// The next step a driver takes for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Action {
    /// Nothing before its next event.
    Wait,
    /// Read until the socket is empty, then call [`Worker::start`].
    Free,
    /// Write the [`Worker::output`].
    Send,
    /// Close the socket, if there is one, and reconnect at once.
    Reopen,
    /// Close the socket. [`Worker::overdue`] returns the time to reconnect.
    Close,
}

impl Action {
    /// Combines this action with an `earlier` one: the later action wins unless it is `Wait`.
    pub(crate) fn after(self, earlier: Action) -> Action {
        if self == Action::Wait { earlier } else { self }
    }
}

/// Minimum and maximum time that a slice listens at its end, and the fraction of its window (1/N) this may
/// take.
const LISTEN_MIN_NS: u64 = 20_000_000;
const LISTEN_MAX_NS: u64 = 1_000_000_000;
const LISTEN_WINDOWS: u64 = 20;

/// Maximum delay of a request at the end of a window for it to be sent in the drain. The limit is this or a
/// fraction of the window (1/N), whichever is longer. A service that is farther behind cannot keep the rate,
/// and sending the rest would take as long again.
const BEHIND_MAX_NS: u64 = 500_000_000;
const BEHIND_WINDOWS: u64 = 10;

/// Connections due within the same step are opened together, because the driver polls no more often.
const OPENING_STEP_NS: u64 = 10_000_000;

/// The current phase of a slice. Times are absolute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlicePart {
    Shut,
    Opening {
        until_ns: u64,
    },
    Sending {
        started_ns: u64,
        stop_ns: u64,
    },
    /// `sends`: requests that were due in the window and are not sent yet are still sent.
    Draining {
        stopped_ns: u64,
        until_ns: u64,
        sends: bool,
    },
}

pub(crate) struct Worker {
    settings: WorkerSettings,
    /// All connections, open or closed, identified by index.
    pub(crate) connections: Vec<Connection>,
    /// Whether each connection has begun a request in this window.
    has_begun: Box<[bool]>,
    /// The user of each connection. Empty if the load has no distinct users.
    users: Vec<User>,
    thinking: Option<Thinking>,
    sampler: RequestSampler,
    check: ContractCheck,
    pub(crate) tally: ThreadTally,
    schedule: Option<ArrivalSchedule>,
    gate: SlicePart,
    /// Number of requests that may still be sent. None if the limit is a time.
    allowance: Option<u64>,
    /// Requests in flight, and open connections.
    pub(crate) in_flight: u32,
    pub(crate) alive: u32,
    /// Start of the current period without an open connection, and of the one without a request in flight.
    none_alive_since_ns: u64,
    idle_since_ns: u64,
    /// Start of the current period in which every connection attempt has failed, if the last one failed.
    barren_since_ns: Option<u64>,
    /// No time limit of a connection ends before this time, so [`Worker::overdue`] returns nothing until
    /// then.
    pub(crate) next_due_ns: u64,
    /// Usual latency of each endpoint in earlier slices.
    usual_ns: Box<[Option<u64>]>,
}

impl Worker {
    /// Creates a worker with this number of connections. `sampler` chooses the requests. `pacer` sets their
    /// times, and None means closed loop.
    pub(crate) fn new(
        settings: WorkerSettings,
        sampler: RequestSampler,
        pacer: Option<Pacer>,
        connections: u32,
    ) -> Worker {
        let lanes = settings.protocol.lanes() as usize * connections as usize;
        let mut check = ContractCheck::new(settings.contracts.clone(), settings.sample_every);
        check.has_users = settings.users.is_some();
        let (mut users, mut thinking) = (Vec::new(), None);
        if let Some(common) = &settings.users {
            users.extend((0..connections as usize).map(|index| User::new(common, index)));
            let think = common.users.think;
            thinking =
                think.map(|think| Thinking::new(think, common.seed, common.lane, connections));
        }
        Worker {
            connections: (0..connections)
                .map(|_| Connection::new(&settings))
                .collect(),
            has_begun: vec![false; connections as usize].into(),
            users,
            thinking,
            sampler,
            check,
            tally: ThreadTally::paced(settings.contracts.len(), pacer.as_ref()),
            schedule: pacer.map(|pacer| ArrivalSchedule::new(pacer, connections, lanes)),
            gate: SlicePart::Shut,
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

    /// Whether requests are due on a schedule.
    pub(crate) fn is_open_loop(&self) -> bool {
        self.schedule.is_some()
    }

    pub(crate) fn is_connecting(&self, index: usize) -> bool {
        self.connections[index].stage == Stage::Connecting
    }

    pub(crate) fn output(&self, index: usize) -> Option<&[u8]> {
        self.connections[index].output(&self.settings.arena)
    }

    /// Number of next bytes of connection `index` that may be discarded unread. 0 means they must be read.
    pub(crate) fn skippable(&self, index: usize) -> u64 {
        if self.settings.can_skip {
            self.connections[index].skippable()
        } else {
            0
        }
    }

    /// Records that the driver has begun to connect a socket for connection `index`.
    pub(crate) fn connecting(&mut self, index: usize, now_ns: u64) {
        self.connections[index].open(now_ns);
    }

    pub(crate) fn opened(&mut self, index: usize, now_ns: u64) -> Action {
        self.hear(index, now_ns, |connection, recorder| {
            connection.connected(recorder)
        })
    }

    /// Begins requests on connection `index` as far as there is room: at once in closed loop, only those due
    /// in open loop. In open loop, [`Worker::start_next`] begins requests that become due while there is
    /// room.
    pub(crate) fn start(&mut self, index: usize, now_ns: u64) -> Action {
        if self.schedule.is_some() {
            self.offer(index, now_ns);
        } else if self.thinking.is_some() {
            self.think(index, now_ns);
        } else {
            while self.connections[index].room(now_ns, &self.settings) > 0 && self.may_send(now_ns)
            {
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

    /// Returns the action that sends the begun requests of connection `index`: open a socket or write.
    fn push(&mut self, index: usize) -> Action {
        let connection = &mut self.connections[index];
        if matches!(connection.stage, Stage::Closed { .. }) {
            return if connection.is_busy() {
                Action::Reopen
            } else {
                Action::Wait
            };
        }
        connection.flush(&self.settings.arena);
        if connection.output(&self.settings.arena).is_some() {
            Action::Send
        } else {
            Action::Wait
        }
    }

    pub(crate) fn wrote(&mut self, index: usize, count: usize) {
        self.connections[index].wrote(count, &self.settings.arena);
    }

    /// Reverts a write on connection `index` that was reported but failed.
    pub(crate) fn unwrote(&mut self, index: usize) {
        self.connections[index].unwrote();
    }

    pub(crate) fn received(&mut self, index: usize, now_ns: u64, bytes: &mut [u8]) -> Action {
        self.tally.counts.wire_bytes += bytes.len() as u64;
        self.hear(index, now_ns, |connection, recorder| {
            connection.received(bytes, recorder)
        })
    }

    /// Counts bytes of connection `index` that were discarded unread. At most [`Worker::skippable`].
    pub(crate) fn skipped(&mut self, index: usize, now_ns: u64, count: u64) -> Action {
        self.tally.counts.wire_bytes += count;
        self.hear(index, now_ns, |connection, recorder| {
            connection.skipped(count, recorder)
        })
    }

    pub(crate) fn ended(&mut self, index: usize, now_ns: u64) -> Action {
        self.hear(index, now_ns, |connection, recorder| {
            connection.ended(recorder)
        })
    }

    /// Records that connecting, reading or writing failed on connection `index`.
    pub(crate) fn failed(&mut self, index: usize, now_ns: u64, cause: Cause) -> Action {
        self.hear(index, now_ns, |connection, recorder| {
            connection.failed(cause, recorder)
        })
    }

    /// Lets connection `index` record an event and returns the resulting action.
    #[inline]
    fn hear(
        &mut self,
        index: usize,
        now_ns: u64,
        tell: impl FnOnce(&mut Connection, &mut Recorder<'_>) -> ConnectionEffect,
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
            // A peer may reduce its limit (HTTP/2: `GOAWAY`, fewer streams). The remaining room is offered
            // again.
            schedule.withdraw(index);
        }
        match effect {
            ConnectionEffect::None => Action::Wait,
            ConnectionEffect::Free => Action::Free,
            ConnectionEffect::Lost => self.lose(index, now_ns),
        }
    }

    /// Handles a connection that is no longer usable.
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
        let Stage::Closed { retry_ns } = connection.stage else {
            unreachable!("it was closed just now")
        };
        self.next_due_ns = self.next_due_ns.min(retry_ns);
        if retry_ns > now_ns {
            return Action::Close;
        }
        let reopen = match self.settings.fresh {
            true => self.start(index, now_ns) == Action::Reopen,
            false => self.wants_connections(now_ns),
        };
        if reopen {
            Action::Reopen
        } else {
            Action::Close
        }
    }

    fn may_send(&self, now_ns: u64) -> bool {
        matches!(self.gate, SlicePart::Sending { stop_ns, .. } if now_ns < stop_ns)
            && self.allowance != Some(0)
    }

    /// Whether closed connections are to be opened: in the connect phase and while requests are left to send.
    /// False if each request opens its own.
    fn wants_connections(&self, now_ns: u64) -> bool {
        let is_opening = matches!(self.gate, SlicePart::Opening { .. });
        !self.settings.fresh && (is_opening || self.may_send(now_ns) || self.is_behind())
    }

    /// Whether the window is over and requests that were due in it are still to be sent.
    fn is_behind(&self) -> bool {
        matches!(self.gate, SlicePart::Draining { .. }) && self.next_sendable_ns().is_some()
    }

    /// Time since the start of the window, or `None` outside of it.
    fn since_start(&self, now_ns: u64) -> Option<u64> {
        match self.gate {
            SlicePart::Sending {
                started_ns,
                stop_ns,
            } if now_ns < stop_ns => Some(now_ns - started_ns),
            _ => None,
        }
    }

    // Time-driven transitions: phases of a slice, expired time limits, and reconnects.

    /// Begins the connect phase, or restarts it if no window followed. The worker then sends `allowance`
    /// requests, or any number if `None`.
    pub(crate) fn prepare(&mut self, now_ns: u64, allowance: Option<u64>) {
        debug_assert!(matches!(
            self.gate,
            SlicePart::Shut | SlicePart::Opening { .. }
        ));
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
        // Logging in takes up to the time of a request, too.
        let more_ns = if self.users.is_empty() {
            0
        } else {
            self.settings.timeout_ns
        };
        self.gate = SlicePart::Opening {
            until_ns: now_ns + apart_ns + self.settings.connect_timeout_ns + more_ns,
        };
        self.allowance = allowance;
        self.next_due_ns = now_ns;
        if self.alive == 0 {
            self.none_alive_since_ns = now_ns;
        }
        self.barren_since_ns = None;
    }

    /// Whether the connect phase is over: every connection is open, or its time limit has passed.
    pub(crate) fn is_prepared(&self, now_ns: u64) -> bool {
        match self.gate {
            SlicePart::Opening { until_ns } => {
                self.settings.fresh
                    || self.alive as usize == self.connections.len()
                    || now_ns >= until_ns
            }
            _ => true,
        }
    }

    /// Opens the window. In closed loop the driver then calls [`Worker::start`] for every connection.
    pub(crate) fn open_window(&mut self, started_ns: u64, until: Until) {
        let window_ns = match until {
            Until::Elapsed(window) => in_ns(window),
            Until::Requests(_) => u64::MAX,
        };
        self.gate = SlicePart::Sending {
            started_ns,
            stop_ns: started_ns.saturating_add(window_ns),
        };
        self.check.begin(window_ns);
        self.has_begun.fill(false);
        self.idle_since_ns = started_ns;
        self.tally.silence.open_window(started_ns);
        self.restart_schedule(started_ns);
        self.thinking.iter_mut().for_each(Thinking::restart);
    }

    /// Latest time at which the driver must wake up: the window closes, or a request is due and a connection
    /// is free for it. `u64::MAX` means never.
    pub(crate) fn wake_ns(&self) -> u64 {
        let stop_ns = if let SlicePart::Sending { stop_ns, .. } = self.gate {
            stop_ns
        } else {
            u64::MAX
        };
        self.next_start_ns().min(stop_ns)
    }

    /// Whether the window is over: its time has passed, all requests have ended, or the rest cannot be sent.
    /// The rest cannot be sent if no connection has been open for the connect timeout, or if no open
    /// connection has taken a request for twice that time.
    pub(crate) fn is_window_over(&self, now_ns: u64) -> bool {
        let SlicePart::Sending { stop_ns, .. } = self.gate else {
            return true;
        };
        let all_ended = self.allowance == Some(0) && self.in_flight == 0;
        let some_left = self.allowance.is_some_and(|left| left > 0);
        now_ns >= stop_ns || all_ended || some_left && self.is_hopeless(now_ns)
    }

    /// Whether no connection has been open for the connect timeout. If each request opens its own connection,
    /// whether all attempts within that time have failed. If open connections take no requests (HTTP/2),
    /// whether they have been abandoned and reopened since.
    fn is_hopeless(&self, now_ns: u64) -> bool {
        let limit_ns = self.settings.connect_timeout_ns;
        let (since_ns, limit_ns) = match self.settings.fresh {
            _ if self.alive > 0 => (self.refused_since_ns(), limit_ns.saturating_mul(2)),
            true => (self.barren_since_ns, limit_ns),
            false => (Some(self.none_alive_since_ns), limit_ns),
        };
        since_ns.is_some_and(|since_ns| now_ns.saturating_sub(since_ns) >= limit_ns)
    }

    /// Closes the window and returns the time at which it ended. Requests that are in flight, or were due and
    /// are still to be sent, have `limit_ns` to end. Requests far behind their time are no longer sent.
    pub(crate) fn stop_sending(&mut self, now_ns: u64, limit_ns: u64) -> u64 {
        let (started_ns, stopped_ns) = match self.gate {
            SlicePart::Sending {
                started_ns,
                stop_ns,
            } => (started_ns, now_ns.min(stop_ns)),
            _ => (now_ns, now_ns),
        };
        let until_ns = stopped_ns.saturating_add(limit_ns);
        self.gate = SlicePart::Draining {
            stopped_ns,
            until_ns,
            sends: true,
        };
        let behind_ns = self
            .next_arrival_ns()
            .map_or(0, |due_ns| stopped_ns - due_ns);
        let most_ns = ((stopped_ns - started_ns) / BEHIND_WINDOWS).max(BEHIND_MAX_NS);
        self.gate = SlicePart::Draining {
            stopped_ns,
            until_ns,
            sends: behind_ns <= most_ns,
        };
        stopped_ns
    }

    /// Shortens the drain to at most `limit_ns` from now.
    pub(crate) fn hurry(&mut self, now_ns: u64, limit_ns: u64) {
        if let SlicePart::Draining { until_ns, .. } = &mut self.gate {
            *until_ns = (*until_ns).min(now_ns.saturating_add(limit_ns));
        }
    }

    /// Whether the drain is over: nothing is in flight or left to send, its time has passed, or the rest
    /// cannot be sent.
    pub(crate) fn is_drained(&self, now_ns: u64) -> bool {
        let done = || self.in_flight == 0 && (!self.is_behind() || self.is_hopeless(now_ns));
        match self.gate {
            SlicePart::Draining { until_ns, .. } => now_ns >= until_ns || done(),
            _ => true,
        }
    }

    /// Time to listen for unexpected responses after a window of this length is drained.
    ///
    /// A second response to a request is mistaken for the response to the next request, if there is a next
    /// one. After the last request it is recognisable. It arrives about as late after the first response as
    /// the slowest response took. HTTP/2 names the request of each response. No request begins meanwhile, so
    /// requests behind their time stay unsent.
    pub(crate) fn listen_ns(&self, window_ns: u64) -> u64 {
        let is_quiet = self.in_flight == 0 && self.alive > 0 && !self.is_behind();
        if !is_quiet || self.settings.protocol.names_requests() {
            return 0;
        }
        let most_ns = (window_ns / LISTEN_WINDOWS).clamp(LISTEN_MIN_NS, LISTEN_MAX_NS);
        self.tally
            .slowest_ns()
            .saturating_mul(2)
            .clamp(LISTEN_MIN_NS, most_ns)
    }

    /// Ends the slice. Requests in flight are counted as unfinished, and requests that were due but not sent
    /// as unsent. Returns the counts, except those that only the caller knows (times and the thread's
    /// resource use). Calls `close` for each connection whose socket the driver has to close.
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
        self.gate = SlicePart::Shut;
        let pacer = self.schedule.as_ref().map(|schedule| &schedule.pacer);
        let fresh = ThreadTally::paced(self.settings.contracts.len(), pacer);
        let tally = std::mem::replace(&mut self.tally, fresh);
        debug_assert_eq!(self.in_flight, 0);
        let time = (now_ns, &mut *self.usual_ns);
        let counts = tally.finish(&self.settings.arena.endpoints, self.check.take(), time);
        Counts {
            connections_alive: self.alive,
            ..counts
        }
    }

    /// Returns the first connection from index `from` on whose time limit has passed, and the action for it.
    /// When `next_due_ns` has come, a driver calls this with 0 and then with the last returned index + 1
    /// until there is none.
    ///
    /// Requests have no timers. This scan computes the time of the next scan, usually a full timeout later.
    pub(crate) fn overdue(&mut self, from: usize, now_ns: u64) -> Option<(usize, Action)> {
        if from == 0 {
            self.next_due_ns = now_ns
                + self
                    .settings
                    .timeout_ns
                    .min(self.settings.connect_timeout_ns);
        }
        for index in from..self.connections.len() {
            let mut due_ns = self.connections[index].due_ns(&self.settings);
            let mut act = Action::Wait;
            if due_ns.is_some_and(|due_ns| due_ns <= now_ns) {
                act = self.expire(index, now_ns);
                // HTTP/2 abandons a single request. Others on its connection may expire soon.
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

    /// Defers connection `index` to the next scan, because the driver has begun many connections at once.
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
            _ => self.hear(index, now_ns, |connection, recorder| {
                connection.expired(recorder)
            }),
        }
    }
}
