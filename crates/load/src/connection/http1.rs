//! HTTP/1.1 on one connection: requests written one after the other, responses read in the same order.
//!
//! With pipelining several requests are under way; without it there is one, and its bytes go from the corpus to the
//! kernel without a copy.

use std::collections::VecDeque;

use super::flight::Listener;
use super::{Desk, Flight, Heard};
use crate::Protocol;
use crate::corpus::Corpus;
use crate::reader::{Flaw, Progress, ResponseReader};
use crate::share::Terms;
use model::{Cause, Phase};

/// A body beyond this length is better thrown away by the kernel than copied to the engine.
const SKIP_WORTHWHILE_BYTES: u64 = 16 * 1024;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Http1 {
    reader: ResponseReader,
    /// Oldest first: the first one's response comes next.
    flights: VecDeque<Flight>,
    /// How many of them are written in full, and how many bytes of the next one.
    written: usize,
    written_bytes: usize,
    /// From where on the last piece was written.
    piece_from: usize,
}

impl Http1 {
    pub(super) fn new() -> Http1 {
        Http1 {
            reader: ResponseReader::new(false),
            flights: VecDeque::new(),
            written: 0,
            written_bytes: 0,
            piece_from: 0,
        }
    }

    /// A new connection begins.
    pub(super) fn reset(&mut self) {
        debug_assert!(self.flights.is_empty());
        self.clear();
    }

    fn clear(&mut self) {
        self.flights.clear();
        (self.written, self.written_bytes) = (0, 0);
    }

    pub(super) fn room(&self, protocol: Protocol) -> usize {
        let Protocol::Http1 { pipeline } = protocol else { return 1usize.saturating_sub(self.flights.len()) };
        (pipeline as usize).saturating_sub(self.flights.len())
    }

    pub(super) fn under_way(&self) -> usize {
        self.flights.len()
    }

    /// When the time of the oldest request is up.
    pub(super) fn due_ns(&self, terms: &Terms) -> Option<u64> {
        self.flights.front().map(|flight| flight.sent_ns + terms.timeout_ns)
    }

    pub(super) fn begin(&mut self, flight: Flight, _corpus: &Corpus) {
        if self.flights.is_empty() {
            self.reader.restart(flight.choice.bodiless);
        }
        self.flights.push_back(flight);
    }

    pub(super) fn output<'a>(&'a self, corpus: &'a Corpus) -> Option<&'a [u8]> {
        let flight = self.flights.get(self.written)?;
        Some(&corpus.bytes(flight.choice)[self.written_bytes..])
    }

    /// At most what [`output`](Self::output) has shown; all of it or a part.
    pub(super) fn wrote(&mut self, count: usize, corpus: &Corpus) {
        let Some(flight) = self.flights.get(self.written) else { return };
        self.piece_from = self.written_bytes;
        self.written_bytes += count;
        debug_assert!(self.written_bytes <= corpus.bytes(flight.choice).len());
        if self.written_bytes == corpus.bytes(flight.choice).len() {
            self.written += 1;
            self.written_bytes = 0;
        }
    }

    /// The last piece, which was the rest of the only request, was not written after all.
    pub(super) fn unwrote(&mut self) {
        (self.written, self.written_bytes) = (0, self.piece_from);
    }

    pub(super) fn skippable(&self) -> u64 {
        // What follows the end may be the next response, and a sampled one is read in full.
        let alone = self.flights.len() == 1 && !self.flights[0].is_sampled();
        match self.reader.skippable() {
            many if alone && many >= SKIP_WORTHWHILE_BYTES => many,
            _ => 0,
        }
    }

    pub(super) fn received(&mut self, mut bytes: &[u8], desk: &mut Desk<'_>) -> Heard {
        let mut heard = Heard::More;
        loop {
            let Some(flight) = self.flights.front_mut() else { return self.surplus(desk) };
            flight.heard(desk.now_ns);
            let extra = match self.reader.read(bytes, &mut Listener { flight, check: desk.check }) {
                Ok(Progress::More) => return heard,
                Ok(Progress::Done { extra }) => extra,
                Err(Flaw::Malformed) => return self.lose(Cause::Malformed, desk),
                Err(Flaw::TooLarge) => return self.lose(Cause::TooLarge, desk),
            };
            heard = self.answered(desk);
            match (extra, heard) {
                (0, _) => return heard,
                // Bytes after a response that ends the connection.
                (_, Heard::Lost) => return self.surplus(desk),
                _ => {}
            }
            bytes = &bytes[bytes.len() - extra as usize..];
        }
    }

    pub(super) fn skipped(&mut self, count: u64, desk: &mut Desk<'_>) -> Heard {
        if let Some(flight) = self.flights.front_mut() {
            flight.heard(desk.now_ns);
        }
        match self.reader.skip(count) {
            Progress::More => Heard::More,
            Progress::Done { extra } => match self.answered(desk) {
                _ if extra > 0 => self.surplus(desk),
                heard => heard,
            },
        }
    }

    /// Bytes that nobody asked for.
    fn surplus(&self, desk: &mut Desk<'_>) -> Heard {
        desk.spoilt(Phase::Idle, Cause::Malformed);
        Heard::Lost
    }

    /// The first response is complete.
    fn answered(&mut self, desk: &mut Desk<'_>) -> Heard {
        // A response that overtook its request leaves half of it unwritten: nobody could tell what comes next.
        let reusable = self.reader.reusable() && self.written > 0;
        let Some(flight) = self.flights.pop_front() else { return Heard::Lost };
        desk.answered(flight, self.reader.status(), self.reader.body_bytes());
        self.written = self.written.saturating_sub(1);
        if !reusable {
            // Those that were to come after it get no response on this connection.
            self.reader.restart(false);
            return self.lose(Cause::ClosedEarly, desk);
        }
        if let Some(next) = self.flights.front() {
            self.reader.restart(next.choice.bodiless);
        }
        Heard::Free
    }

    pub(super) fn ended(&mut self, desk: &mut Desk<'_>) -> Heard {
        if self.flights.is_empty() {
            desk.spoilt(Phase::Idle, Cause::Closed);
            return Heard::Lost;
        }
        if self.reader.end() {
            return self.answered(desk);
        }
        self.lose(Cause::ClosedEarly, desk)
    }

    /// Nothing more will come.
    pub(super) fn failed(&mut self, cause: Cause, desk: &mut Desk<'_>) {
        if self.flights.is_empty() {
            return desk.spoilt(Phase::Idle, cause);
        }
        let _ = self.lose(cause, desk);
    }

    fn lose(&mut self, cause: Cause, desk: &mut Desk<'_>) -> Heard {
        for (index, flight) in self.flights.iter().enumerate() {
            // The first one's time is up, and takes the connection from the others.
            let cause = if index > 0 && cause == Cause::Timeout { Cause::Abandoned } else { cause };
            desk.lost(flight, self.phase(index), cause);
        }
        self.clear();
        Heard::Lost
    }

    pub(super) fn leave(&mut self, desk: &mut Desk<'_>) {
        self.flights.iter().for_each(|flight| desk.left(flight));
        self.clear();
    }

    fn phase(&self, index: usize) -> Phase {
        match index {
            0 if self.reader.in_body() => Phase::Body,
            unwritten if unwritten >= self.written => Phase::Send,
            _ => Phase::Head,
        }
    }
}
