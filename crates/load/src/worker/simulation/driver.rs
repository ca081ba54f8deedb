//! The simulated driver: virtual time, events in their order, and the actions of the worker done as the readiness driver does
//! them. Each step is told to the ledger, and what the worker says of it must be what the ledger says.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::Setting;
use super::ledger::{Ledger, Verdict};
use super::server::{Arrival, Peer};
use super::{LAG_MAX_NS, TICK_NS};
use crate::worker::{Action, Worker};
use model::Cause;

/// What is read at once, so that a long body is partly skipped.
const READ_BYTES: usize = 4096;

/// What happens to a connection at some time.
#[derive(Debug)]
enum Event {
    Connected,
    ConnectFails(Cause),
    Writable,
    Responds,
    Arrives,
}

pub(super) struct Driver {
    pub(super) rng: Pcg64Mcg,
    pub(super) now_ns: u64,
    pub(super) setting: Setting,
    pub(super) worker: Worker,
    pub(super) ledger: Ledger,
    peers: Vec<Peer>,
    /// By time and number; each for one socket of one connection.
    events: BTreeMap<(u64, u64), (usize, u64, Event)>,
    numbers: u64,
}

impl Driver {
    pub(super) fn new(seed: u64) -> Driver {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let setting = Setting::draw(&mut rng);
        let connections = setting.connections;
        Driver {
            worker: Worker::new(
                setting.settings.clone(),
                setting.sampler.clone(),
                setting.pacer.clone(),
                connections,
            ),
            ledger: Ledger::new(&setting),
            peers: (0..connections).map(|_| Peer::default()).collect(),
            events: BTreeMap::new(),
            numbers: 0,
            now_ns: 1_000_000_000,
            rng,
            setting,
        }
    }

    fn after(&mut self, delay_ns: u64, index: usize, event: Event) {
        self.numbers += 1;
        self.events.insert((self.now_ns + delay_ns, self.numbers), (index, self.peers[index].socket, event));
    }

    /// Does what the worker wants, as a driver does.
    pub(super) fn perform(&mut self, index: usize, mut act: Action) {
        loop {
            act = match act {
                Action::Wait => break,
                Action::Free => self.start(index),
                Action::Send => self.write(index),
                Action::Close => {
                    self.close(index);
                    break;
                }
                Action::Reopen => {
                    self.close(index);
                    self.open(index)
                }
            }
        }
        assert_eq!(self.worker.in_flight as usize, self.ledger.in_flight());
        assert_eq!(self.worker.connections[index].is_busy(), !self.ledger.lines[index].requests.is_empty());
        self.server(index);
    }

    /// Lets the server and the network see to connection `index`.
    fn server(&mut self, index: usize) {
        let (peer, line, nature) = (&mut self.peers[index], &self.ledger.lines[index], self.setting.nature);
        let responds_ns = peer.consider(line, nature, &mut self.rng);
        let arrives_ns = peer.flow(nature, &mut self.rng);
        responds_ns.into_iter().for_each(|delay_ns| self.after(delay_ns, index, Event::Responds));
        arrives_ns.into_iter().for_each(|delay_ns| self.after(delay_ns, index, Event::Arrives));
    }

    fn start(&mut self, index: usize) -> Action {
        let act = self.worker.start(index, self.now_ns);
        self.note_begun(index);
        let idle = self.ledger.room(index) > 0;
        let work = match self.worker.is_open_loop() {
            // Where it had room before, whoever begins what is due comes by.
            true => false,
            false => self.ledger.may_send(self.now_ns),
        };
        assert!(!(idle && work), "connection {index} could take more: {:?}", self.ledger.lines[index]);
        act
    }

    /// Tells the ledger of the requests that the worker has begun on a connection.
    fn note_begun(&mut self, index: usize) {
        for _ in self.ledger.in_flight()..self.worker.in_flight as usize {
            self.ledger.begin(index, self.now_ns);
        }
    }

    pub(super) fn close(&mut self, index: usize) {
        self.peers[index] = Peer::new(self.peers[index].socket + 1);
    }

    fn open(&mut self, index: usize) -> Action {
        self.worker.connecting(index, self.now_ns);
        self.ledger.connecting(index, self.now_ns);
        let delay_ns = self.rng.random_range(0..5_000_000);
        match self.rng.random_range(0..30) {
            _ if self.setting.nature.dead => return self.fail(index, Cause::Refused),
            0 => {
                let causes = [Cause::Refused, Cause::Unreachable, Cause::AddressExhausted];
                let cause = causes[self.rng.random_range(0..causes.len())];
                return self.fail(index, cause);
            }
            1 => {
                let cause = if self.rng.random_bool(0.5) { Cause::Refused } else { Cause::Reset };
                self.after(delay_ns, index, Event::ConnectFails(cause));
            }
            // No response at all: it has to time out.
            2 => {}
            3 => {
                let delay_ns = self.rng.random_range(0..800_000_000);
                self.after(delay_ns, index, Event::Connected);
            }
            _ => self.after(delay_ns, index, Event::Connected),
        }
        Action::Wait
    }

    /// Connecting, reading or writing has failed.
    fn fail(&mut self, index: usize, cause: Cause) -> Action {
        let act = self.worker.failed(index, self.now_ns, cause);
        let verdict = self.ledger.failed(index, self.now_ns, cause);
        self.agree(index, act, verdict)
    }

    /// The worker's word on what has happened must be the ledger's.
    fn agree(&mut self, index: usize, act: Action, verdict: Verdict) -> Action {
        let said = match act {
            Action::Close | Action::Reopen => Verdict::Lost,
            Action::Free => Verdict::Answered,
            Action::Wait | Action::Send => Verdict::Nothing,
        };
        assert_eq!(said, verdict, "connection {index}: {act:?}, {:?}", self.ledger.lines[index]);
        if verdict != Verdict::Lost {
            return act;
        }
        self.note_begun(index);
        let answering = self.ledger.lines[index].failures == 0;
        let wanted =
            self.ledger.may_send(self.now_ns) && (!self.ledger.settings.fresh || !self.worker.is_open_loop());
        assert!(!(wanted && answering && act == Action::Close), "an answering server is not kept waiting");
        act
    }

    /// Writes what there is to be written, as far as the socket takes it.
    fn write(&mut self, index: usize) -> Action {
        if self.peers[index].blocked {
            return Action::Wait;
        }
        while let Some(bytes) = self.worker.output(index) {
            let (many, bytes) = (bytes.len(), bytes.to_vec());
            let count = match self.rng.random_range(0..200) {
                0 => return self.fail(index, Cause::Reset),
                1 => 0,
                _ if self.rng.random_bool(self.setting.nature.full) => {
                    self.rng.random_range(0..=many.min(30))
                }
                _ => many,
            };
            self.worker.wrote(index, count);
            self.ledger.wrote(index, &bytes[..count]);
            if count < many {
                self.peers[index].blocked = true;
                // Now and then the server reads no more.
                if self.rng.random_bool(0.97) {
                    let delay_ns = self.rng.random_range(0..3_000_000);
                    self.after(delay_ns, index, Event::Writable);
                }
                break;
            }
        }
        Action::Wait
    }

    fn happen(&mut self, index: usize, event: Event) {
        let act = match event {
            Event::Connected => {
                self.ledger.opened(index);
                let act = self.worker.opened(index, self.now_ns);
                assert_eq!(act, Action::Free);
                act
            }
            Event::ConnectFails(cause) => self.fail(index, cause),
            Event::Writable => {
                self.peers[index].blocked = false;
                if self.worker.output(index).is_some() { Action::Send } else { Action::Wait }
            }
            Event::Responds => {
                let nature = self.setting.nature;
                self.peers[index].respond(&mut self.ledger.lines[index], nature, &mut self.rng);
                Action::Wait
            }
            Event::Arrives => match self.peers[index].deliver(self.setting.nature, &mut self.rng) {
                Some(Arrival::Bytes(bytes)) => self.receive(index, &bytes),
                Some(Arrival::End) => {
                    let act = self.worker.ended(index, self.now_ns);
                    let verdict = self.ledger.ended(index, self.now_ns);
                    self.agree(index, act, verdict)
                }
                Some(Arrival::Reset) => self.fail(index, Cause::Reset),
                None => Action::Wait,
            },
        };
        self.perform(index, act);
    }

    /// Shows the bytes as the driver does: what is skippable is not shown.
    fn receive(&mut self, index: usize, mut bytes: &[u8]) -> Action {
        let mut act = Action::Wait;
        while !bytes.is_empty() && !matches!(act, Action::Close | Action::Reopen) {
            let skippable = self.worker.skippable(index);
            let limit = if skippable > 0 { skippable as usize } else { READ_BYTES };
            let (shown, rest) = bytes.split_at(limit.min(bytes.len()));
            let next = match skippable {
                0 => self.worker.received(index, self.now_ns, &mut shown.to_vec()),
                _ => self.worker.skipped(index, self.now_ns, shown.len() as u64),
            };
            let verdict = self.ledger.effect(index, self.now_ns, shown.len());
            act = self.agree(index, next, verdict).after(act);
            bytes = rest;
        }
        act
    }

    /// Looks at the time limits, as a worker does at each tick. Afterwards nothing is late.
    pub(super) fn sweep(&mut self) {
        if self.now_ns >= self.worker.next_due_ns {
            let mut from = 0;
            while let Some((index, act)) = self.worker.overdue(from, self.now_ns) {
                from = index + 1;
                self.ledger.overdue(index, self.now_ns);
                self.note_begun(index);
                self.perform(index, act);
            }
        }
        for index in 0..self.peers.len() {
            let limit_ns = self.ledger.limit_ns(index, self.now_ns);
            let late = limit_ns.is_some_and(|limit_ns| limit_ns <= self.now_ns);
            assert!(!late, "nobody looked at connection {index}: {limit_ns:?}, now {}", self.now_ns);
        }
    }

    /// Begins what is due: afterwards nothing that is due waits while a connection is free.
    fn start_due(&mut self) {
        while let Some((index, act)) = self.worker.start_next(self.now_ns) {
            self.note_begun(index);
            self.perform(index, act);
        }
        // A connection for one request need not rest when the last one was completed.
        let is_free = |index: &usize| {
            self.ledger.room(*index) > 0
                && (!self.ledger.settings.fresh || self.ledger.lines[*index].failures == 0)
        };
        let free = (0..self.peers.len()).find(is_free);
        let waits = self.ledger.is_due(self.now_ns);
        assert!(!(waits && free.is_some()), "a request is due, connection {free:?} is free, nothing is sent");
    }

    /// Lets time pass, to the next event or tick, until `is_over`.
    pub(super) fn pump(&mut self, mut is_over: impl FnMut(&mut Worker, u64) -> bool) {
        let mut next_tick_ns = self.now_ns;
        loop {
            if self.now_ns >= next_tick_ns {
                next_tick_ns = self.now_ns + TICK_NS;
                self.sweep();
            }
            if is_over(&mut self.worker, self.now_ns) {
                return;
            }
            // A driver may have more to do before it comes to what is due.
            if self.rng.random_bool(0.7) {
                self.start_due();
            }
            // Now and then the engine does not get a core when it should.
            let lag_ns = if self.rng.random_bool(0.02) { self.rng.random_range(0..LAG_MAX_NS) } else { 0 };
            let limit_ns = self.worker.wake_ns().min(next_tick_ns).max(self.now_ns);
            match self.events.first_entry() {
                Some(entry) if entry.key().0 <= limit_ns => {
                    let ((at_ns, _), (index, socket, event)) = entry.remove_entry();
                    self.now_ns = self.now_ns.max(at_ns) + lag_ns;
                    if socket == self.peers[index].socket {
                        self.happen(index, event);
                    }
                }
                _ => self.now_ns = limit_ns + lag_ns,
            }
        }
    }
}
