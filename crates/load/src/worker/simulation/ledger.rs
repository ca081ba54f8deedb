//! The expected result of each request, derived from its bytes. The worker's counts are compared with this
//! ledger.
//!
//! It receives the driver's actions and arrivals, knows the server's scripts, and counts bytes. It parses no
//! response and does not read the worker's state. Requests and responses on a line pair off in order, as in
//! HTTP/1.1.

use std::collections::VecDeque;
use std::time::Duration;

use model::{Cause, Phase};

use super::Setting;
use super::TIMEOUT_NS;
use super::book::{Book, Outcome};
use super::server::Plan;
use crate::Until;
use crate::arena::{RequestChoice, RequestSampler};
use crate::check::FIRST_EVERY_NS;
use crate::pacer::Pacer;
use crate::settings::WorkerSettings;

/// The expected effect of bytes, an end or an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Nothing,
    Answered,
    Lost,
}

pub(super) struct Ledger {
    pub(super) lines: Vec<Line>,
    pub(super) book: Book,
    pub(super) timetable: Option<Timetable>,
    pub(super) settings: WorkerSettings,
    sampler: RequestSampler,
    /// Heads by endpoint.
    heads: Vec<u64>,
    /// Total planned length of slices since the first response of a slice was sampled.
    lasted_ns: u64,
    /// Start and end of the period in which requests may be sent.
    window: Option<(u64, u64)>,
    /// Number of requests that may still be sent, if they are counted.
    left: Option<u64>,
}

impl Ledger {
    pub(super) fn new(setting: &Setting) -> Ledger {
        Ledger {
            lines: (0..setting.connections).map(|_| Line::default()).collect(),
            book: Book::new(setting.settings.contracts.len()),
            timetable: setting.pacer.clone().map(Timetable::new),
            settings: setting.settings.clone(),
            sampler: setting.sampler.clone(),
            heads: vec![0; setting.settings.contracts.len()],
            lasted_ns: 0,
            window: None,
            left: None,
        }
    }

    pub(super) fn prepare(&mut self) {
        self.book = Book::new(self.book.contents.len());
        let closed = |line: &&mut Line| matches!(line.state, State::Closed { .. });
        self.lines.iter_mut().filter(closed).for_each(Line::forgive);
    }

    pub(super) fn open_window(&mut self, started_ns: u64, until: Until) {
        let (window_ns, left) = match until {
            Until::Elapsed(window) => (window.as_nanos() as u64, None),
            Until::Requests(total) => (u64::MAX, Some(total)),
        };
        (self.window, self.left) = (
            Some((started_ns, started_ns.saturating_add(window_ns))),
            left,
        );
        self.lasted_ns = self.lasted_ns.saturating_add(window_ns);
        if self.lasted_ns >= FIRST_EVERY_NS {
            self.lasted_ns = 0;
            self.heads.fill(0);
        }
        if let Some(timetable) = &mut self.timetable {
            timetable.restart(started_ns, until);
        }
    }

    pub(super) fn close_window(&mut self, stopped_ns: u64) {
        self.window = None;
        if let Some(timetable) = &mut self.timetable {
            timetable.end_ns = stopped_ns;
        }
    }

    fn in_window(&self, now_ns: u64) -> bool {
        self.window.is_some_and(|(_, stop_ns)| now_ns < stop_ns)
    }

    pub(super) fn may_send(&self, now_ns: u64) -> bool {
        self.in_window(now_ns) && self.left != Some(0)
    }

    /// Whether an arrival is due and not sent.
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        self.timetable
            .as_ref()
            .and_then(Timetable::due_ns)
            .is_some_and(|due_ns| due_ns <= now_ns)
    }

    pub(super) fn in_flight(&self) -> usize {
        self.lines.iter().map(|line| line.requests.len()).sum()
    }

    /// Number of requests that the line could take now.
    pub(super) fn room(&self, index: usize) -> usize {
        let line = &self.lines[index];
        match line.state {
            State::Open if !self.settings.fresh => {
                self.settings.protocol.lanes() as usize - line.requests.len()
            }
            State::Closed { .. } if self.settings.fresh => 1 - line.requests.len(),
            _ => 0,
        }
    }

    /// Begins a request on line `index`.
    pub(super) fn begin(&mut self, index: usize, now_ns: u64) {
        assert!(
            self.room(index) > 0,
            "more requests than may be under way on connection {index}"
        );
        let due_ns = self
            .timetable
            .as_mut()
            .map(|timetable| timetable.depart(now_ns));
        assert!(
            due_ns.is_some() || self.may_send(now_ns),
            "nothing is sent after the window"
        );
        self.left = self.left.map(|left| left - 1);
        let choice = self.sampler.draw();
        let number = self.book.sent;
        self.book.sent += 1;
        self.book.sent_in_window += u64::from(self.in_window(now_ns));
        let request = InFlight {
            choice,
            number,
            sent_ns: now_ns,
            due_ns,
            first_byte_ns: None,
            written: 0,
        };
        self.lines[index].requests.push_back(request);
    }

    pub(super) fn connecting(&mut self, index: usize, now_ns: u64) {
        let line = &mut self.lines[index];
        let State::Closed { until_ns, .. } = line.state else {
            panic!("{line:?} is opened twice")
        };
        assert!(
            until_ns <= now_ns,
            "opened {} ns too early after {} failures",
            until_ns - now_ns,
            line.failures
        );
        assert!(
            !self.settings.fresh || line.requests.len() == 1,
            "a connection for one request: {line:?}"
        );
        line.state = State::Connecting { since_ns: now_ns };
    }

    pub(super) fn opened(&mut self, index: usize) {
        let line = &mut self.lines[index];
        line.state = State::Open;
        self.book.connections_opened += 1;
        self.book.reconnects += u64::from(std::mem::replace(&mut line.opened_before, true));
    }

    /// Records bytes of a request that the socket took.
    pub(super) fn wrote(&mut self, index: usize, bytes: &[u8]) {
        let line = &mut self.lines[index];
        let request = line
            .requests
            .iter_mut()
            .find(|request| !request.is_written())
            .expect("a request to write");
        let rest = &self.settings.arena.bytes(request.choice)[request.written..];
        assert!(
            rest.starts_with(bytes),
            "requests are written in order and in full"
        );
        request.written += bytes.len();
        self.book.served += u64::from(request.is_written());
    }

    /// Records `count` bytes that arrived on line `index`.
    pub(super) fn effect(&mut self, index: usize, now_ns: u64, mut count: usize) -> Verdict {
        self.book.wire_bytes += count as u64;
        let mut verdict = Verdict::Nothing;
        while count > 0 {
            let line = &mut self.lines[index];
            let Some(request) = line.requests.front_mut() else {
                self.book.error(Phase::Idle, Cause::Malformed);
                return self.lose(index, now_ns, Cause::ClosedEarly);
            };
            request.first_byte_ns.get_or_insert(now_ns);
            let RequestChoice {
                endpoint, bodiless, ..
            } = request.choice;
            let plan = &line.plans[0];
            let (head_end, error, end) = (plan.head_end, plan.error, plan.end);
            let all = line.received + count;
            if all >= head_end && !line.head_seen && error.is_none_or(|(at, _)| at > head_end) {
                line.head_seen = true;
                if !bodiless && plan.is_good(endpoint) {
                    let heads = &mut self.heads[usize::from(endpoint)];
                    line.sampled = self.settings.sample_every > 0
                        && heads.is_multiple_of(self.settings.sample_every);
                    *heads += 1;
                }
            }
            if let Some((at, cause)) = error
                && all >= at
            {
                return self.lose(index, now_ns, cause);
            }
            let Some(end) = end.filter(|end| all >= *end) else {
                line.received = all;
                return verdict;
            };
            count = all - end;
            verdict = self.completed(index, now_ns);
            if verdict == Verdict::Lost {
                if count > 0 {
                    self.book.error(Phase::Idle, Cause::Malformed);
                }
                return verdict;
            }
        }
        match self.settings.fresh && verdict == Verdict::Answered {
            true => self.lose(index, now_ns, Cause::ClosedEarly),
            false => verdict,
        }
    }

    /// Records the response to the first request of a line.
    fn completed(&mut self, index: usize, now_ns: u64) -> Verdict {
        let in_window = self.in_window(now_ns);
        let line = &mut self.lines[index];
        let (Some(request), Some(plan)) = (line.requests.pop_front(), line.plans.pop_front())
        else {
            panic!("a response to no request: {line:?}")
        };
        line.has_answered = true;
        self.book
            .completed(&request, &plan, line.sampled, (now_ns, in_window));
        line.turn_over();
        if plan.keeps && request.is_written() {
            return Verdict::Answered;
        }
        self.lose(index, now_ns, Cause::ClosedEarly)
    }

    /// Records that the peer closed the connection.
    pub(super) fn ended(&mut self, index: usize, now_ns: u64) -> Verdict {
        let line = &self.lines[index];
        if line.requests.is_empty() {
            self.book.error(Phase::Idle, Cause::Closed);
        } else if line.head_seen && line.plans[0].end.is_none() && line.plans[0].error.is_none() {
            return self.completed(index, now_ns);
        }
        self.lose(index, now_ns, Cause::ClosedEarly)
    }

    /// Records a failure of the connection or of a connection attempt.
    pub(super) fn failed(&mut self, index: usize, now_ns: u64, cause: Cause) -> Verdict {
        let line = &self.lines[index];
        if line.requests.is_empty() {
            let phase = if line.state == State::Open {
                Phase::Idle
            } else {
                Phase::Connect
            };
            self.book.error(phase, cause);
        }
        self.lose(index, now_ns, cause)
    }

    /// Records the loss of a line and of all its requests.
    fn lose(&mut self, index: usize, now_ns: u64, cause: Cause) -> Verdict {
        let line = &mut self.lines[index];
        for (place, request) in line.requests.drain(..).enumerate() {
            let phase = match line.state {
                State::Open if place == 0 && line.head_seen => Phase::Body,
                State::Open if request.is_written() => Phase::Head,
                State::Open => Phase::Send,
                _ => Phase::Connect,
            };
            let cause = if place > 0 && cause == Cause::Timeout {
                Cause::Abandoned
            } else {
                cause
            };
            self.book.error(phase, cause);
            self.book.end(&request, now_ns, Outcome::Lost(cause));
        }
        line.close(now_ns);
        Verdict::Lost
    }

    /// Time limit of a line: of its oldest request, of connecting, or of its backoff if the line is needed.
    pub(super) fn limit_ns(&self, index: usize, now_ns: u64) -> Option<u64> {
        let line = &self.lines[index];
        let oldest_ns = line
            .requests
            .front()
            .map(|request| request.sent_ns + TIMEOUT_NS);
        match line.state {
            State::Open => oldest_ns,
            State::Connecting { since_ns } => {
                let limit_ns = since_ns + self.settings.connect_timeout_ns;
                Some(oldest_ns.map_or(limit_ns, |oldest_ns| oldest_ns.min(limit_ns)))
            }
            // An arrival opens its own connection when it is due, not before.
            State::Closed { latest_ns, .. } => (self.may_send(now_ns)
                && !(self.settings.fresh && self.timetable.is_some()))
            .then_some(latest_ns),
        }
    }

    /// Records that the engine reported a timeout on a line.
    pub(super) fn overdue(&mut self, index: usize, now_ns: u64) {
        match (self.lines[index].state, self.limit_ns(index, now_ns)) {
            (State::Closed { until_ns, .. }, _) => assert!(until_ns <= now_ns, "rested too short"),
            (_, Some(limit_ns)) if limit_ns <= now_ns => {
                self.failed(index, now_ns, Cause::Timeout);
            }
            (state, limit_ns) => {
                panic!("{state:?} is given up at {now_ns}, to wait until {limit_ns:?}")
            }
        }
    }

    /// Ends the slice: requests that have not ended are left. Returns the lines that the engine must close.
    pub(super) fn finish(&mut self, now_ns: u64) -> Vec<usize> {
        let mut closed = Vec::new();
        for (index, line) in self.lines.iter_mut().enumerate() {
            let busy = !line.requests.is_empty();
            for request in line.requests.drain(..) {
                self.book.end(&request, now_ns, Outcome::Left);
            }
            if busy && line.state == State::Open || matches!(line.state, State::Connecting { .. }) {
                line.forgive();
                closed.push(index);
            }
        }
        if let Some(timetable) = &mut self.timetable {
            timetable.give_up(now_ns, &mut self.sampler, &mut self.book);
        }
        closed
    }
}

// One connection in the ledger: its requests, the server's responses for them in order, and the time at which
// it may be reopened.
//
// It only stores state. The ledger decides the transitions.

const BACKOFF_FIRST_NS: u64 = 10_000_000;
const BACKOFF_LAST_NS: u64 = 1_000_000_000;

/// A request in flight.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) choice: RequestChoice,
    pub(super) number: u64,
    pub(super) sent_ns: u64,
    pub(super) due_ns: Option<u64>,
    pub(super) first_byte_ns: Option<u64>,
    pub(super) written: usize,
}

/// One connection.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) state: State,
    /// Requests in flight, oldest first.
    pub(super) requests: VecDeque<InFlight>,
    /// Responses, next one first.
    pub(super) plans: VecDeque<Plan>,
    pub(super) received: usize,
    pub(super) head_seen: bool,
    pub(super) sampled: bool,
    /// Whether this socket has returned a response.
    pub(super) has_answered: bool,
    /// Number of consecutive sockets without a response.
    pub(super) failures: u32,
    pub(super) opened_before: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Must not be opened before `until_ns`, and must be opened by `latest_ns` if there is work.
    Closed {
        until_ns: u64,
        latest_ns: u64,
    },
    Connecting {
        since_ns: u64,
    },
    Open,
}

impl Default for State {
    fn default() -> State {
        State::Closed {
            until_ns: 0,
            latest_ns: 0,
        }
    }
}

impl InFlight {
    pub(super) fn is_written(&self) -> bool {
        self.written == self.choice.length as usize
    }
}

impl Line {
    /// Begins the next response.
    pub(super) fn turn_over(&mut self) {
        (self.received, self.head_seen, self.sampled) = (0, false, false);
    }

    /// Handles the loss of the socket. Requests that begin on the line from now on use the next one.
    pub(super) fn close(&mut self, now_ns: u64) {
        let never_open = self.state != State::Open;
        self.failures = if self.has_answered {
            0
        } else {
            self.failures + 1
        };
        let backoff_ns =
            |doublings: u32| (BACKOFF_FIRST_NS << doublings.min(20)).min(BACKOFF_LAST_NS);
        let (least_ns, most_ns) = match self.failures {
            0 => (0, 0),
            1 => (u64::from(never_open) * BACKOFF_FIRST_NS, BACKOFF_FIRST_NS),
            many => (backoff_ns(many - 2), backoff_ns(many - 1)),
        };
        self.reset(now_ns + least_ns, now_ns + most_ns);
    }

    /// Clears the backoff, because the engine closed the line itself or starts over.
    pub(super) fn forgive(&mut self) {
        self.failures = 0;
        self.reset(0, 0);
    }

    fn reset(&mut self, until_ns: u64, latest_ns: u64) {
        self.state = State::Closed {
            until_ns,
            latest_ns,
        };
        self.plans.clear();
        self.turn_over();
        self.has_answered = false;
    }
}

// The ledger's own open-loop timetable: which arrival a request must be, and its expected response time.

/// Arrivals of consecutive slices.
#[derive(Debug)]
pub(super) struct Timetable {
    pacer: Pacer,
    started_ns: u64,
    /// Number of arrivals that may still come. None if the limit is a time.
    left: Option<u64>,
    /// Arrivals after this time do not belong to the slice.
    pub(super) end_ns: u64,
}

impl Timetable {
    pub(super) fn new(pacer: Pacer) -> Timetable {
        Timetable {
            pacer,
            started_ns: 0,
            left: None,
            end_ns: 0,
        }
    }

    pub(super) fn restart(&mut self, started_ns: u64, until: Until) {
        self.pacer.restart();
        self.started_ns = started_ns;
        (self.left, self.end_ns) = match until {
            Until::Elapsed(window) => (None, started_ns + window.as_nanos() as u64),
            Until::Requests(total) => (Some(total), u64::MAX),
        };
    }

    /// Due time of the oldest arrival that was not sent.
    pub(super) fn due_ns(&self) -> Option<u64> {
        let due_ns = self.started_ns.saturating_add(self.pacer.due_ns());
        (due_ns < self.end_ns && self.left != Some(0)).then_some(due_ns)
    }

    /// Records that a request is sent, and returns the due time of its arrival.
    pub(super) fn depart(&mut self, now_ns: u64) -> u64 {
        let due_ns = self.due_ns().expect("nothing is sent that is not due");
        assert!(
            due_ns <= now_ns,
            "sent {:?} early",
            Duration::from_nanos(due_ns - now_ns)
        );
        self.pacer.advance();
        self.left = self.left.map(|left| left - 1);
        due_ns
    }

    /// Records all arrivals that were due and never sent.
    pub(super) fn give_up(&mut self, now_ns: u64, sampler: &mut RequestSampler, book: &mut Book) {
        while self.due_ns().is_some() {
            let due_ns = self.depart(now_ns);
            book.unsent.push((sampler.draw().endpoint, now_ns - due_ns));
        }
    }
}
