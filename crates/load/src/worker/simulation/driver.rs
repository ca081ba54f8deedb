//! The simulated driver: virtual time, ordered events, and the worker's actions performed as the readiness
//! driver does. Each step is reported to the ledger, and the worker's reaction must match the ledger's.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::Setting;
use super::ledger::{Ledger, Verdict};
use super::server::{Arrival, Peer};
use super::{LAG_MAX_NS, TICK_NS};
use crate::worker::{Action, Worker};
use model::Cause;

/// Maximum read size, so that a long body is partly skipped.
const READ_BYTES: usize = 4096;

/// A scheduled event of a connection.
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
    /// Events by time and number, each for one socket of one connection.
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
        self.events.insert(
            (self.now_ns + delay_ns, self.numbers),
            (index, self.peers[index].socket, event),
        );
    }

    /// Performs the worker's action as a driver does.
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
        assert_eq!(
            self.worker.connections[index].is_busy(),
            !self.ledger.lines[index].requests.is_empty()
        );
        self.server(index);
    }

    /// Lets server and network act on connection `index`.
    fn server(&mut self, index: usize) {
        let (peer, line, nature) = (
            &mut self.peers[index],
            &self.ledger.lines[index],
            self.setting.nature,
        );
        let responds_ns = peer.consider(line, nature, &mut self.rng);
        let arrives_ns = peer.flow(nature, &mut self.rng);
        responds_ns
            .into_iter()
            .for_each(|delay_ns| self.after(delay_ns, index, Event::Responds));
        arrives_ns
            .into_iter()
            .for_each(|delay_ns| self.after(delay_ns, index, Event::Arrives));
    }

    fn start(&mut self, index: usize) -> Action {
        let act = self.worker.start(index, self.now_ns);
        self.note_begun(index);
        let idle = self.ledger.room(index) > 0;
        let work = match self.worker.is_open_loop() {
            // If it had room before, the code that begins due requests will handle it.
            true => false,
            false => self.ledger.may_send(self.now_ns),
        };
        assert!(
            !(idle && work),
            "connection {index} could take more: {:?}",
            self.ledger.lines[index]
        );
        act
    }

    /// Records in the ledger the requests that the worker has begun on a connection.
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
                let cause = if self.rng.random_bool(0.5) {
                    Cause::Refused
                } else {
                    Cause::Reset
                };
                self.after(delay_ns, index, Event::ConnectFails(cause));
            }
            // No response at all, so it must time out.
            2 => {}
            3 => {
                let delay_ns = self.rng.random_range(0..800_000_000);
                self.after(delay_ns, index, Event::Connected);
            }
            _ => self.after(delay_ns, index, Event::Connected),
        }
        Action::Wait
    }

    /// Reports a failure of connecting, reading or writing.
    fn fail(&mut self, index: usize, cause: Cause) -> Action {
        let act = self.worker.failed(index, self.now_ns, cause);
        let verdict = self.ledger.failed(index, self.now_ns, cause);
        self.agree(index, act, verdict)
    }

    /// Asserts that the worker and the ledger agree on what happened.
    fn agree(&mut self, index: usize, act: Action, verdict: Verdict) -> Action {
        let said = match act {
            Action::Close | Action::Reopen => Verdict::Lost,
            Action::Free => Verdict::Answered,
            Action::Wait | Action::Send => Verdict::Nothing,
        };
        assert_eq!(
            said, verdict,
            "connection {index}: {act:?}, {:?}",
            self.ledger.lines[index]
        );
        if verdict != Verdict::Lost {
            return act;
        }
        self.note_begun(index);
        let answering = self.ledger.lines[index].failures == 0;
        let wanted = self.ledger.may_send(self.now_ns)
            && (!self.ledger.settings.fresh || !self.worker.is_open_loop());
        assert!(
            !(wanted && answering && act == Action::Close),
            "an answering server is not kept waiting"
        );
        act
    }

    /// Writes pending output as far as the socket accepts it.
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
                // Sometimes the server stops reading.
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
                if self.worker.output(index).is_some() {
                    Action::Send
                } else {
                    Action::Wait
                }
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

    /// Delivers bytes as the driver does: skippable bytes are only counted.
    fn receive(&mut self, index: usize, mut bytes: &[u8]) -> Action {
        let mut act = Action::Wait;
        while !bytes.is_empty() && !matches!(act, Action::Close | Action::Reopen) {
            let skippable = self.worker.skippable(index);
            let limit = if skippable > 0 {
                skippable as usize
            } else {
                READ_BYTES
            };
            let (shown, rest) = bytes.split_at(limit.min(bytes.len()));
            let next = match skippable {
                0 => self
                    .worker
                    .received(index, self.now_ns, &mut shown.to_vec()),
                _ => self.worker.skipped(index, self.now_ns, shown.len() as u64),
            };
            let verdict = self.ledger.effect(index, self.now_ns, shown.len());
            act = self.agree(index, next, verdict).after(act);
            bytes = rest;
        }
        act
    }

    /// Checks the time limits as at each tick, and asserts that nothing is late afterwards.
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
            assert!(
                !late,
                "nobody looked at connection {index}: {limit_ns:?}, now {}",
                self.now_ns
            );
        }
    }

    /// Begins due requests, and asserts that none waits afterwards while a connection is free.
    fn start_due(&mut self) {
        while let Some((index, act)) = self.worker.start_next(self.now_ns) {
            self.note_begun(index);
            self.perform(index, act);
        }
        // A connection for one request needs no backoff if its last request completed.
        let is_free = |index: &usize| {
            self.ledger.room(*index) > 0
                && (!self.ledger.settings.fresh || self.ledger.lines[*index].failures == 0)
        };
        let free = (0..self.peers.len()).find(is_free);
        let waits = self.ledger.is_due(self.now_ns);
        assert!(
            !(waits && free.is_some()),
            "a request is due, connection {free:?} is free, nothing is sent"
        );
    }

    /// Advances time to the next event or tick, until `is_over` returns true.
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
            // A driver may have other work before it begins due requests.
            if self.rng.random_bool(0.7) {
                self.start_due();
            }
            // Sometimes the engine gets its core late.
            let lag_ns = if self.rng.random_bool(0.02) {
                self.rng.random_range(0..LAG_MAX_NS)
            } else {
                0
            };
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
