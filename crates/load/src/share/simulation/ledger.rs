//! What must become of each request, by its own bytes: the ledger that the share's books are held against.
//!
//! It is told what the driver does and what arrives, knows the server's scripts, and counts bytes; it reads no response
//! and does not look into the share. Requests and responses pair off in order on a line, as HTTP/1.1 has it.

use std::sync::Arc;

use super::TIMEOUT_NS;
use super::book::Book;
use super::line::{Flight, Line, State};
use super::setting::Setting;
use super::timetable::Timetable;
use crate::Until;
use crate::corpus::{Corpus, Deck};
use model::{Cause, Phase};

/// What bytes, an end or an error must have amounted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Nothing,
    Answered,
    Lost,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) lines: Vec<Line>,
    pub(super) book: Book,
    pub(super) timetable: Option<Timetable>,
    pub(super) corpus: Arc<Corpus>,
    deck: Deck,
    pipeline: usize,
    pub(super) fresh: bool,
    connect_timeout_ns: u64,
    sample_every: u64,
    heads: u64,
    /// From when to when requests may be sent.
    window: Option<(u64, u64)>,
    /// Requests that may still be sent, where they are counted.
    left: Option<u64>,
}

impl Ledger {
    pub(super) fn new(setting: &Setting) -> Ledger {
        let terms = &setting.terms;
        Ledger {
            lines: (0..setting.connections).map(|_| Line::new()).collect(),
            book: Book::new(terms.contracts.len()),
            timetable: setting.pacer.clone().map(Timetable::new),
            corpus: terms.corpus.clone(),
            deck: setting.deck.clone(),
            pipeline: terms.protocol.lanes() as usize,
            fresh: terms.fresh,
            connect_timeout_ns: terms.connect_timeout_ns,
            sample_every: terms.sample_every,
            heads: 0,
            window: None,
            left: None,
        }
    }

    pub(super) fn prepare(&mut self) {
        self.book = Book::new(self.book.pages.len());
        self.heads = 0;
        let closed = |line: &&mut Line| matches!(line.state, State::Closed { .. });
        self.lines.iter_mut().filter(closed).for_each(Line::forgive);
    }

    pub(super) fn open_window(&mut self, started_ns: u64, until: Until) {
        let (stop_ns, left) = match until {
            Until::Elapsed(window) => (started_ns + window.as_nanos() as u64, None),
            Until::Requests(total) => (u64::MAX, Some(total)),
        };
        (self.window, self.left) = (Some((started_ns, stop_ns)), left);
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

    /// Whether requests may still be sent.
    pub(super) fn may_send(&self, now_ns: u64) -> bool {
        self.in_window(now_ns) && self.left != Some(0)
    }

    /// Whether an arrival is due and not sent.
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        self.timetable.as_ref().and_then(Timetable::due_ns).is_some_and(|due_ns| due_ns <= now_ns)
    }

    pub(super) fn in_flight(&self) -> usize {
        self.lines.iter().map(|line| line.flights.len()).sum()
    }

    /// Requests that the line could take now.
    pub(super) fn room(&self, index: usize) -> usize {
        let line = &self.lines[index];
        match line.state {
            State::Open if !self.fresh => self.pipeline - line.flights.len(),
            State::Closed { .. } if self.fresh => 1 - line.flights.len(),
            _ => 0,
        }
    }

    /// A request begins on line `index`.
    pub(super) fn begin(&mut self, index: usize, now_ns: u64) {
        assert!(self.room(index) > 0, "more requests than may be under way on connection {index}");
        let due_ns = self.timetable.as_mut().map(|timetable| timetable.depart(now_ns));
        assert!(due_ns.is_some() || self.may_send(now_ns), "nothing is sent after the window");
        self.left = self.left.map(|left| left - 1);
        let choice = self.deck.draw();
        let number = self.book.sent;
        self.book.begin(choice.endpoint, self.in_window(now_ns));
        let flight = Flight { choice, number, sent_ns: now_ns, due_ns, first_byte_ns: None, written: 0 };
        self.lines[index].flights.push_back(flight);
    }

    pub(super) fn connecting(&mut self, index: usize, now_ns: u64) {
        let line = &mut self.lines[index];
        let State::Closed { until_ns, .. } = line.state else { panic!("{line:?} is opened twice") };
        assert!(
            until_ns <= now_ns,
            "opened {} ns too early after {} failures",
            until_ns - now_ns,
            line.failures
        );
        assert!(!self.fresh || line.flights.len() == 1, "a connection for one request: {line:?}");
        line.state = State::Connecting { since_ns: now_ns };
    }

    pub(super) fn opened(&mut self, index: usize) {
        let line = &mut self.lines[index];
        line.state = State::Open;
        self.book.connections_opened += 1;
        self.book.reconnects += u64::from(std::mem::replace(&mut line.opened_before, true));
    }

    /// Bytes of a request were taken by the socket.
    pub(super) fn wrote(&mut self, index: usize, bytes: &[u8]) {
        let line = &mut self.lines[index];
        let flight = line.flights.iter_mut().find(|flight| !flight.is_written()).expect("a request to write");
        let rest = &self.corpus.bytes(flight.choice)[flight.written..];
        assert!(rest.starts_with(bytes), "requests are written in order and in full");
        flight.written += bytes.len();
        self.book.served += u64::from(flight.is_written());
    }

    /// So many bytes have arrived on line `index`.
    pub(super) fn heard(&mut self, index: usize, now_ns: u64, mut count: usize) -> Verdict {
        self.book.wire_bytes += count as u64;
        let mut verdict = Verdict::Nothing;
        while count > 0 {
            let line = &mut self.lines[index];
            let Some(flight) = line.flights.front_mut() else {
                self.book.error(Phase::Idle, Cause::Malformed);
                return self.lose(index, now_ns, Cause::ClosedEarly);
            };
            flight.first_byte_ns.get_or_insert(now_ns);
            let bodiless = flight.choice.bodiless;
            let plan = &line.plans[0];
            let (head_end, flaw, end) = (plan.head_end, plan.flaw, plan.end);
            let all = line.received + count;
            if all >= head_end && !line.head_seen && flaw.is_none_or(|(at, _)| at > head_end) {
                line.head_seen = true;
                if !bodiless {
                    line.sampled = self.sample_every > 0 && self.heads.is_multiple_of(self.sample_every);
                    self.heads += 1;
                }
            }
            if let Some((at, cause)) = flaw
                && all >= at
            {
                return self.lose(index, now_ns, cause);
            }
            let Some(end) = end.filter(|end| all >= *end) else {
                line.received = all;
                return verdict;
            };
            count = all - end;
            verdict = self.answered(index, now_ns);
            if verdict == Verdict::Lost {
                if count > 0 {
                    self.book.error(Phase::Idle, Cause::Malformed);
                }
                return verdict;
            }
        }
        match self.fresh && verdict == Verdict::Answered {
            true => self.lose(index, now_ns, Cause::ClosedEarly),
            false => verdict,
        }
    }

    /// The first request of a line has its response.
    fn answered(&mut self, index: usize, now_ns: u64) -> Verdict {
        let in_window = self.in_window(now_ns);
        let line = &mut self.lines[index];
        let (Some(flight), Some(plan)) = (line.flights.pop_front(), line.plans.pop_front()) else {
            panic!("an answer to no request: {line:?}")
        };
        line.has_answered = true;
        self.book.answered(&flight, &plan, line.sampled, (now_ns, in_window));
        let bytes_seen = flight.first_byte_ns.unwrap_or(now_ns) - flight.sent_ns;
        self.book.first_byte.exact.push(bytes_seen);
        line.turn_over();
        if plan.keeps && flight.is_written() {
            return Verdict::Answered;
        }
        self.lose(index, now_ns, Cause::ClosedEarly)
    }

    /// The peer has closed the connection.
    pub(super) fn ended(&mut self, index: usize, now_ns: u64) -> Verdict {
        let line = &self.lines[index];
        if line.flights.is_empty() {
            self.book.error(Phase::Idle, Cause::Closed);
        } else if line.head_seen && line.plans[0].end.is_none() && line.plans[0].flaw.is_none() {
            return self.answered(index, now_ns);
        }
        self.lose(index, now_ns, Cause::ClosedEarly)
    }

    /// The connection, or the attempt at one, has failed.
    pub(super) fn failed(&mut self, index: usize, now_ns: u64, cause: Cause) -> Verdict {
        let line = &self.lines[index];
        if line.flights.is_empty() {
            let phase = if line.state == State::Open { Phase::Idle } else { Phase::Connect };
            self.book.error(phase, cause);
        }
        self.lose(index, now_ns, cause)
    }

    /// All requests of a line are lost, and the line is.
    fn lose(&mut self, index: usize, now_ns: u64, cause: Cause) -> Verdict {
        let line = &mut self.lines[index];
        for (place, flight) in line.flights.drain(..).enumerate() {
            let phase = match line.state {
                State::Open if place == 0 && line.head_seen => Phase::Body,
                State::Open if flight.is_written() => Phase::Head,
                State::Open => Phase::Send,
                _ => Phase::Connect,
            };
            let cause = if place > 0 && cause == Cause::Timeout { Cause::Abandoned } else { cause };
            match cause {
                Cause::Timeout => self.book.timed_out += 1,
                _ => self.book.broken += 1,
            }
            self.book.error(phase, cause);
            self.book.censor(&flight, now_ns, flight.first_byte_ns);
        }
        line.close(now_ns);
        Verdict::Lost
    }

    /// When the time of a line is up: of its oldest request, of connecting, or of its rest where it could be of use.
    pub(super) fn limit_ns(&self, index: usize, now_ns: u64) -> Option<u64> {
        let line = &self.lines[index];
        let oldest_ns = line.flights.front().map(|flight| flight.sent_ns + TIMEOUT_NS);
        match line.state {
            State::Open => oldest_ns,
            State::Connecting { since_ns } => {
                let limit_ns = since_ns + self.connect_timeout_ns;
                Some(oldest_ns.map_or(limit_ns, |oldest_ns| oldest_ns.min(limit_ns)))
            }
            // An arrival opens a connection of its own when it is due, and not before.
            State::Closed { latest_ns, .. } => {
                (self.may_send(now_ns) && !(self.fresh && self.timetable.is_some())).then_some(latest_ns)
            }
        }
    }

    /// The engine says that something is overdue on a line.
    pub(super) fn overdue(&mut self, index: usize, now_ns: u64) {
        match (self.lines[index].state, self.limit_ns(index, now_ns)) {
            (State::Closed { until_ns, .. }, _) => assert!(until_ns <= now_ns, "rested too short"),
            (_, Some(limit_ns)) if limit_ns <= now_ns => {
                self.failed(index, now_ns, Cause::Timeout);
            }
            (state, limit_ns) => panic!("{state:?} is given up at {now_ns}, to wait until {limit_ns:?}"),
        }
    }

    /// The slice is over: whatever has not ended is left. Returns the lines that the engine must close.
    pub(super) fn finish(&mut self, now_ns: u64) -> Vec<usize> {
        let mut closed = Vec::new();
        for (index, line) in self.lines.iter_mut().enumerate() {
            let busy = !line.flights.is_empty();
            for flight in line.flights.drain(..) {
                self.book.unfinished += 1;
                self.book.censor(&flight, now_ns, flight.first_byte_ns);
            }
            if busy && line.state == State::Open || matches!(line.state, State::Connecting { .. }) {
                line.forgive();
                closed.push(index);
            }
        }
        if let Some(timetable) = &mut self.timetable {
            timetable.give_up(now_ns, &mut self.book);
        }
        closed
    }
}
