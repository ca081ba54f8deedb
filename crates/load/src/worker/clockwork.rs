//! What time does to a worker: the parts of a slice follow each other, time limits end, closed connections may be
//! opened again.

use model::Counts;

use super::{Action, Gate, Protocol, Recorder, Stage, Tally, Until, Worker};

/// For so long a slice listens at its end, from and to; and for at most such a part of its window.
const LISTEN_MIN_NS: u64 = 20_000_000;
const LISTEN_MAX_NS: u64 = 1_000_000_000;
const LISTEN_WINDOWS: u64 = 20;

impl Worker {
    /// Begins the connect phase. The worker has to send `allowance` requests, or as many as it can (`None`).
    pub(crate) fn prepare(&mut self, now_ns: u64, allowance: Option<u64>) {
        debug_assert_eq!(self.gate, Gate::Shut);
        self.gate = Gate::Opening { until_ns: now_ns + self.settings.connect_timeout_ns };
        self.allowance = allowance;
        self.next_due_ns = now_ns;
        for connection in &mut self.connections {
            if matches!(connection.stage(), Stage::Closed { .. }) {
                connection.abandon();
            }
        }
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
        let stop_ns = match until {
            Until::Elapsed(window) => started_ns.saturating_add(nanoseconds(window)),
            Until::Requests(_) => u64::MAX,
        };
        self.gate = Gate::Sending { started_ns, stop_ns };
        self.restart_schedule(started_ns);
    }

    /// When a driver has to be awake, whatever else happens: the window closes, or a request is due for which a connection is
    /// free. `u64::MAX`: never.
    pub(crate) fn wake_ns(&self) -> u64 {
        self.next_start_ns().min(self.stop_ns().unwrap_or(u64::MAX))
    }

    /// The time at which the window closes by itself, if it is open and such a time is set.
    pub(crate) fn stop_ns(&self) -> Option<u64> {
        match self.gate {
            Gate::Sending { stop_ns, .. } if stop_ns != u64::MAX => Some(stop_ns),
            _ => None,
        }
    }

    /// Whether the window is over: its time is up, or all requests were sent and have ended, or none of those left
    /// can be sent because no connection has been open for the time of a connect time-out.
    pub(crate) fn is_window_over(&self, now_ns: u64) -> bool {
        let Gate::Sending { stop_ns, .. } = self.gate else { return true };
        let all_ended = self.allowance == Some(0) && self.in_flight == 0;
        let some_left = self.allowance.is_some_and(|left| left > 0);
        now_ns >= stop_ns || all_ended || some_left && self.is_hopeless(now_ns)
    }

    /// Whether no connection has been open for the time of a connect time-out; where each request opens its own, whether all
    /// attempts of so long a time have failed.
    fn is_hopeless(&self, now_ns: u64) -> bool {
        let since_ns = match self.settings.fresh {
            true => self.barren_since_ns,
            false => Some(self.none_alive_since_ns),
        };
        let long = |since_ns| now_ns.saturating_sub(since_ns) >= self.settings.connect_timeout_ns;
        self.alive == 0 && since_ns.is_some_and(long)
    }

    /// Closes the window; what is in flight, or was due by now and is still to be sent, has `limit_ns` to end. Returns the
    /// time at which the window ended.
    pub(crate) fn stop_sending(&mut self, now_ns: u64, limit_ns: u64) -> u64 {
        let stopped_ns = match self.gate {
            Gate::Sending { stop_ns, .. } => now_ns.min(stop_ns),
            _ => now_ns,
        };
        self.gate = Gate::Draining { stopped_ns, until_ns: stopped_ns.saturating_add(limit_ns) };
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
    /// comes about as late after the first as the slowest response took. HTTP/2 names the request of each response.
    pub(crate) fn listen_ns(&self, window_ns: u64) -> u64 {
        if self.in_flight > 0 || self.alive == 0 || !matches!(self.settings.protocol, Protocol::Http1 { .. })
        {
            return 0;
        }
        let slowest_ns = self.tally.counts.latency.max().map_or(0, |slowest| slowest.ns());
        let most_ns = (window_ns / LISTEN_WINDOWS).clamp(LISTEN_MIN_NS, LISTEN_MAX_NS);
        slowest_ns.saturating_mul(2).clamp(LISTEN_MIN_NS, most_ns)
    }

    /// Ends the slice: what is still in flight is entered as unfinished, what was due and not sent as unsent. Hands out the
    /// counts but for those that its caller alone knows (times, and what the thread used), and calls `close` for each connection whose
    /// socket the driver has to close.
    pub(crate) fn finish(&mut self, now_ns: u64, mut close: impl FnMut(usize)) -> Counts {
        let mut recorder = Recorder {
            now_ns,
            since_start_ns: None,
            arena: &self.settings.arena,
            check: &mut self.check,
            tally: &mut self.tally,
            in_flight: &mut self.in_flight,
            has_response: false,
        };
        for (index, connection) in self.connections.iter_mut().enumerate() {
            let busy = connection.leave(&mut recorder);
            match connection.stage() {
                Stage::Open if busy => self.alive -= 1,
                Stage::Connecting { .. } | Stage::Securing { .. } => {}
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
        let counts =
            tally.finish(self.settings.arena.endpoints(), self.check.take(), self.check.take_contents());
        Counts { connections_alive: self.alive, ..counts }
    }

    /// Before this time [`Worker::overdue`] has nothing to say.
    pub(crate) fn next_due_ns(&self) -> u64 {
        self.next_due_ns
    }

    /// The first connection from index `from` on whose time is up, and what to do with it. A driver walks over all
    /// of them by `from` = the last one + 1, beginning at 0, whenever [`Worker::next_due_ns`] has come.
    ///
    /// There is no timer for a request: this walk finds when the next one is needed, usually a whole time-out later.
    pub(crate) fn overdue(&mut self, from: usize, now_ns: u64) -> Option<(usize, Action)> {
        if from == 0 {
            self.next_due_ns = now_ns + self.settings.timeout_ns.min(self.settings.connect_timeout_ns);
        }
        for index in from..self.connections.len() {
            match self.due_ns(index) {
                Some(due_ns) if due_ns > now_ns => self.next_due_ns = self.next_due_ns.min(due_ns),
                Some(_) => match self.expire(index, now_ns) {
                    Action::Wait => {}
                    act => return Some((index, act)),
                },
                None => {}
            }
        }
        None
    }

    /// A driver that has begun many connections at once leaves connection `index` for its next walk.
    pub(crate) fn put_off_start(&mut self, index: usize, now_ns: u64) {
        if let Stage::Closed { retry_ns } = self.connections[index].stage() {
            self.connections[index].rest_until(retry_ns.max(now_ns + 1));
            self.next_due_ns = self.next_due_ns.min(now_ns + 1);
        }
    }

    /// A driver that did not walk to the end says so, and will be asked to go on at `now_ns`.
    pub(crate) fn put_off(&mut self, now_ns: u64) {
        self.next_due_ns = self.next_due_ns.min(now_ns);
    }

    fn due_ns(&self, index: usize) -> Option<u64> {
        self.connections[index].due_ns(&self.settings)
    }

    fn expire(&mut self, index: usize, now_ns: u64) -> Action {
        match self.connections[index].stage() {
            Stage::Closed { .. } if self.settings.fresh => {
                self.connections[index].rested();
                Action::Free
            }
            Stage::Closed { .. } if self.wants_connections(now_ns) => Action::Reopen,
            Stage::Closed { .. } => Action::Wait,
            _ => self
                .hear(index, now_ns, |connection, settings, recorder| connection.expired(settings, recorder)),
        }
    }
}

fn nanoseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
