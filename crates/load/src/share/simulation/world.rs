//! The simulated driver: virtual time, events in their order, and a ledger of what must come out.
//!
//! It does with a share what the worker and the epoll driver do, and keeps its own books without looking into the
//! share's.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::Ledger;
use super::peer::{self, Fate, TIMEOUT_NS, Wire};
use super::timetable::{self, Timetable};
use crate::share::{Act, Share};
use crate::tally::{self, Part};
use crate::{Cause, Phase, Slice, Until};

const REQUEST_BYTES: usize = 100;
/// How late an event may be seen.
pub(super) const LAG_MAX_NS: u64 = 15_000_000;
/// What is read at once, so that a long body is partly skipped.
const READ_BYTES: usize = 4096;
pub(super) const TICK_NS: u64 = 10_000_000;

/// What happens to a connection at some time.
#[derive(Debug)]
enum Event {
    Connected,
    Refused,
    Writable,
    Arrives(Wire),
}

/// The simulation's own idea of a connection.
#[derive(Debug, Default)]
struct Peer {
    /// Counts sockets: what was sent to an earlier one arrives nowhere.
    socket: u64,
    connecting: bool,
    open: bool,
    sent_ns: Option<u64>,
    due_ns: Option<u64>,
    written: usize,
    fate: Option<Fate>,
    /// The server is about to close it and will not answer.
    leaving: bool,
}

pub(super) struct World {
    pub(super) rng: Pcg64Mcg,
    now_ns: u64,
    share: Share,
    peers: Vec<Peer>,
    /// In open loop.
    timetable: Option<Timetable>,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: BTreeMap<u64, (usize, u64, Event)>,
    pub(super) ledger: Ledger,
    /// Requests that the server got in full.
    pub(super) served: u64,
    /// The window is one without a time limit.
    counting: bool,
    /// Nobody listens.
    pub(super) dead: bool,
}

impl World {
    pub(super) fn new(seed: u64) -> World {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let connections = rng.random_range(1..8);
        let pacer = rng.random_bool(0.5).then(|| timetable::draw(&mut rng));
        let (terms, deck) = super::terms(REQUEST_BYTES);
        World {
            dead: rng.random_bool(0.02),
            rng,
            now_ns: 1_000_000_000,
            share: Share::new(terms, deck, pacer.clone(), connections),
            timetable: pacer.map(Timetable::new),
            peers: (0..connections).map(|_| Peer::default()).collect(),
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            ledger: Ledger::default(),
            served: 0,
            counting: false,
        }
    }

    fn after(&mut self, delay_ns: u64, index: usize, event: Event) {
        let id = self.events.last_key_value().map_or(0, |(id, _)| id + 1);
        self.queue.push(Reverse((self.now_ns + delay_ns, id)));
        self.events.insert(id, (index, self.peers[index].socket, event));
    }

    /// Does what the share wants, as a driver does.
    fn perform(&mut self, index: usize, mut act: Act) {
        loop {
            act = match act {
                Act::Wait => return,
                Act::Free => self.share.start(index, self.now_ns),
                Act::Send => {
                    let now_ns = self.now_ns;
                    let due_ns = self.timetable.as_mut().map(|timetable| timetable.depart(now_ns));
                    assert!(due_ns.is_some() || self.in_window(), "nothing is sent after the window");
                    self.ledger.sent += 1;
                    (self.peers[index].sent_ns, self.peers[index].due_ns) = (Some(now_ns), due_ns);
                    self.write(index)
                }
                Act::Close => return self.close(index),
                Act::Reopen => {
                    self.close(index);
                    self.open(index)
                }
            }
        }
    }

    fn close(&mut self, index: usize) {
        let socket = self.peers[index].socket + 1;
        self.peers[index] = Peer { socket, ..Peer::default() };
    }

    fn open(&mut self, index: usize) -> Act {
        self.share.connecting(index, self.now_ns);
        self.peers[index].connecting = true;
        let delay_ns = self.rng.random_range(0..5_000_000);
        match self.rng.random_range(0..20) {
            _ if self.dead => return self.refuse(index),
            0 => return self.refuse(index),
            1 => self.after(delay_ns, index, Event::Refused),
            // No answer at all: it has to time out.
            2 => {}
            _ => self.after(delay_ns, index, Event::Connected),
        }
        Act::Wait
    }

    /// How many connections are open, on which both must agree.
    fn alive(&self) -> u32 {
        let open = self.peers.iter().filter(|peer| peer.open).count();
        assert_eq!(self.share.alive() as usize, open);
        open as u32
    }

    fn in_window(&self) -> bool {
        self.share.stop_ns().map_or(self.counting, |stop_ns| self.now_ns < stop_ns)
    }

    fn refuse(&mut self, index: usize) -> Act {
        self.error(Phase::Connect, Cause::Refused);
        self.share.failed(index, self.now_ns, Cause::Refused)
    }

    fn error(&mut self, phase: Phase, cause: Cause) {
        *self.ledger.errors.entry((phase, cause)).or_default() += 1;
    }

    pub(super) fn is_open_loop(&self) -> bool {
        self.timetable.is_some()
    }

    /// A request has got no answer.
    fn censor(&mut self, index: usize) {
        let (sent_ns, due_ns) = (self.peers[index].sent_ns.take(), self.peers[index].due_ns.take());
        sent_ns.into_iter().for_each(|sent_ns| self.ledger.latency.censor(self.now_ns - sent_ns));
        due_ns.into_iter().for_each(|due_ns| self.ledger.response.censor(self.now_ns - due_ns));
    }

    fn lost(&mut self, index: usize, phase: Phase, cause: Cause) {
        self.censor(index);
        match cause {
            Cause::Timeout => self.ledger.timed_out += 1,
            _ => self.ledger.broken += 1,
        }
        self.error(phase, cause);
    }

    /// Writes some of the request; the server acts once it has it all, or even before.
    fn write(&mut self, index: usize) -> Act {
        let left = self.share.output(index).unwrap().len();
        let from = REQUEST_BYTES - left;
        assert_eq!(from, self.peers[index].written);
        // Once a response is on its way, how far it is decides the phase.
        if self.peers[index].fate.is_none() && self.rng.random_bool(0.01) {
            self.lost(index, Phase::Send, Cause::Reset);
            return self.share.failed(index, self.now_ns, Cause::Reset);
        }
        let left = REQUEST_BYTES - from;
        let count = if self.rng.random_bool(0.8) { left } else { self.rng.random_range(0..=left) };
        self.share.wrote(index, count);
        self.peers[index].written += count;
        let whole = self.peers[index].written == REQUEST_BYTES;
        if !whole {
            let delay_ns = self.rng.random_range(0..5_000_000);
            self.after(delay_ns, index, Event::Writable);
        }
        self.served += u64::from(whole);
        let hasty = !whole && self.rng.random_bool(0.2);
        if (whole || hasty) && self.peers[index].fate.is_none() && !self.peers[index].leaving {
            self.respond(index, hasty);
        }
        Act::Wait
    }

    fn respond(&mut self, index: usize, hasty: bool) {
        let mut script = peer::script(&mut self.rng);
        // A server that errs before it has the whole request would be filed under another phase.
        while hasty && !matches!(script.fate, Fate::Answered { .. }) {
            script = peer::script(&mut self.rng);
        }
        self.peers[index].fate = Some(script.fate);
        let mut delay_ns = self.rng.random_range(0..20_000_000);
        for (wait_ns, wire) in script.steps {
            delay_ns += wait_ns;
            self.after(delay_ns, index, Event::Arrives(wire));
        }
        if script.closes_later {
            self.peers[index].leaving = true;
            let idle_ns = self.rng.random_range(1..10_000_000);
            self.after(delay_ns + idle_ns, index, Event::Arrives(Wire::End));
        }
    }

    fn happen(&mut self, index: usize, event: Event) {
        let act = match event {
            Event::Connected => {
                (self.peers[index].connecting, self.peers[index].open) = (false, true);
                self.ledger.opened += 1;
                self.share.opened(index, self.now_ns)
            }
            Event::Refused => self.refuse(index),
            Event::Writable => self.write(index),
            Event::Arrives(wire) => self.arrive(index, wire),
        };
        self.perform(index, act);
    }

    fn arrive(&mut self, index: usize, wire: Wire) -> Act {
        let now_ns = self.now_ns;
        let act = match &wire {
            Wire::Bytes(bytes) => self.receive(index, bytes),
            Wire::End => self.share.ended(index, now_ns),
            Wire::Reset => self.share.failed(index, now_ns, Cause::Reset),
        };
        let peer = &self.peers[index];
        match (peer.sent_ns, peer.fate, act) {
            (Some(_), None, _) => {
                // The server left while the next request was on its way.
                let phase = if peer.written < REQUEST_BYTES { Phase::Send } else { Phase::Head };
                self.lost(index, phase, Cause::ClosedEarly);
            }
            (None, _, _) => self.error(Phase::Idle, Cause::Closed),
            (Some(_), Some(_), Act::Wait) => {}
            (Some(_), Some(fate), _) => {
                let answered = matches!(fate, Fate::Answered { .. });
                let wanted = self.share.wants_connections(now_ns);
                assert!(
                    !(answered && wanted && act == Act::Close),
                    "an answering server is not kept waiting"
                );
                self.decide(index, fate);
            }
        }
        act
    }

    /// Shows the bytes as the driver does: what is skippable is not shown.
    fn receive(&mut self, index: usize, mut bytes: &[u8]) -> Act {
        self.ledger.wire_bytes += bytes.len() as u64;
        let mut act = Act::Wait;
        while !bytes.is_empty() {
            let skippable = self.share.skippable(index);
            let limit = if skippable > 0 { skippable as usize } else { READ_BYTES };
            let (shown, rest) = bytes.split_at(limit.min(bytes.len()));
            act = if skippable > 0 {
                self.share.skipped(index, self.now_ns, shown.len() as u64)
            } else {
                self.share.received(index, self.now_ns, shown)
            };
            if matches!(act, Act::Reopen | Act::Close) {
                self.ledger.wire_bytes -= rest.len() as u64;
                break;
            }
            bytes = rest;
        }
        act
    }

    /// The request has ended, as it was meant to.
    fn decide(&mut self, index: usize, fate: Fate) {
        self.peers[index].fate = None;
        match fate {
            Fate::Answered { ok, surplus } => {
                let (sent_ns, due_ns) = (self.peers[index].sent_ns.take(), self.peers[index].due_ns.take());
                self.ledger.latency.record(self.now_ns - sent_ns.expect("an answer to a request"));
                due_ns.into_iter().for_each(|due_ns| self.ledger.response.record(self.now_ns - due_ns));
                self.peers[index].written = 0;
                self.ledger.answered += 1;
                self.ledger.ok += u64::from(ok);
                let in_window = self.in_window();
                self.ledger.ok_in_window += u64::from(ok && in_window);
                if surplus {
                    self.error(Phase::Idle, Cause::Malformed);
                }
            }
            Fate::Lost(phase, cause) => self.lost(index, phase, cause),
            Fate::Stalled(_) => panic!("a request ended that should have stalled"),
        }
    }

    /// Looks at the time limits, as a worker does at each tick.
    fn sweep(&mut self) {
        if self.now_ns < self.share.next_due_ns() {
            return;
        }
        let mut from = 0;
        while let Some((index, act)) = self.share.overdue(from, self.now_ns) {
            from = index + 1;
            let peer = &self.peers[index];
            match (peer.connecting, peer.sent_ns) {
                (true, _) => self.error(Phase::Connect, Cause::Timeout),
                (false, Some(sent_ns)) => {
                    let age_ns = self.now_ns - sent_ns;
                    assert!(
                        (TIMEOUT_NS..TIMEOUT_NS + TICK_NS + LAG_MAX_NS).contains(&age_ns),
                        "timed out at {age_ns}"
                    );
                    let Some(Fate::Stalled(phase)) = peer.fate else { panic!("{peer:?} timed out") };
                    self.lost(index, phase, Cause::Timeout);
                }
                (false, None) => {}
            }
            self.perform(index, act);
        }
    }

    /// Begins what is due: afterwards nothing that is due waits while a connection is free.
    fn start_due(&mut self) {
        while let Some((index, act)) = self.share.start_next(self.now_ns) {
            self.perform(index, act);
        }
        let due_ns = self.timetable.as_ref().and_then(Timetable::due_ns);
        let due = due_ns.is_some_and(|due_ns| due_ns <= self.now_ns);
        let free = self.peers.iter().any(|peer| peer.open && peer.sent_ns.is_none());
        assert!(!(due && free), "due at {due_ns:?}, a connection is free, and nothing is sent");
    }

    /// Lets time pass, to the next event or tick, until `is_over`.
    fn pump(&mut self, is_over: impl Fn(&Share, u64) -> bool) {
        let mut next_tick_ns = self.now_ns;
        loop {
            if self.now_ns >= next_tick_ns {
                next_tick_ns = self.now_ns + TICK_NS;
                self.sweep();
            }
            if is_over(&self.share, self.now_ns) {
                return;
            }
            // A driver may have more to do before it comes to what is due.
            if self.rng.random_bool(0.7) {
                self.start_due();
            }
            let limit_ns = self.share.wake_ns().min(next_tick_ns).max(self.now_ns);
            match self.queue.peek() {
                Some(&Reverse((at_ns, id))) if at_ns <= limit_ns => {
                    self.queue.pop();
                    let (index, socket, event) = self.events.remove(&id).unwrap();
                    self.now_ns = self.now_ns.max(at_ns);
                    // Now and then the engine does not get a core when it should.
                    if self.rng.random_bool(0.02) {
                        self.now_ns += self.rng.random_range(0..LAG_MAX_NS);
                    }
                    if socket == self.peers[index].socket {
                        self.happen(index, event);
                    }
                }
                _ => {
                    self.now_ns = limit_ns
                        + u64::from(self.rng.random_bool(0.02)) * self.rng.random_range(0..LAG_MAX_NS)
                }
            }
        }
    }

    /// Runs one slice, interrupted so long after its start if at all.
    pub(super) fn slice(&mut self, until: Until, interrupt_ns: Option<u64>) -> Slice {
        let allowance = match until {
            Until::Elapsed(_) => None,
            Until::Requests(total) => Some(total),
        };
        self.share.prepare(self.now_ns, allowance);
        self.pump(Share::is_prepared);
        let (started_ns, alive_start) = (self.now_ns, self.alive());
        self.share.open_window(started_ns, until);
        if let Some(timetable) = &mut self.timetable {
            timetable.restart(started_ns, until);
        }
        self.counting = allowance.is_some();
        for index in 0..self.peers.len() {
            self.perform(index, Act::Free);
        }
        let interrupt_ns = interrupt_ns.map(|after_ns| started_ns + after_ns);
        let interrupted = move |now_ns| interrupt_ns.is_some_and(|at_ns| now_ns >= at_ns);
        self.pump(|share, now_ns| interrupted(now_ns) || share.is_window_over(now_ns));
        let limit_ns = if interrupted(self.now_ns) { 10_000_000 } else { TIMEOUT_NS };
        self.counting = false;
        let stopped_ns = self.share.stop_sending(self.now_ns, limit_ns);
        if let Some(timetable) = &mut self.timetable {
            timetable.end_ns = stopped_ns;
        }
        self.pump(Share::is_drained);
        self.sweep();
        if let Some(timetable) = &mut self.timetable {
            timetable.give_up(self.now_ns, &mut self.ledger);
        }
        (0..self.peers.len()).for_each(|index| self.censor(index));
        let mut closed = Vec::new();
        let (tally, contract_failures, contents) = self.share.finish(self.now_ns, |index| closed.push(index));
        closed.into_iter().for_each(|index| self.close(index));
        let alive_end = self.alive();
        let finished_ns = self.now_ns;
        let (cpu_ns, wall_ns, run_delay_ns) = (0, 0, None);
        let part = Part {
            driver: "simulation",
            tally,
            contract_failures,
            contents,
            alive_start,
            alive_end,
            stopped_ns,
            finished_ns,
            cpu_ns,
            wall_ns,
            run_delay_ns,
        };
        tally::slice(started_ns, vec![part], &["fiction".to_string()])
    }
}
