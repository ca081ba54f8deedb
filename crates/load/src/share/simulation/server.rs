//! The simulated server's end of a connection, with the network before it: which request is answered when, and how what it
//! sends is cut into pieces on its way.

use rand::{Rng, RngExt};

use super::line::Line;
use super::script::{self, Ending};
use super::setting::Nature;

const DELAY_MAX_NS: u64 = 4_000_000;
const THINK_MAX_NS: u64 = 15_000_000;
/// No more than that is delivered byte by byte at once: nobody would wait for a long body.
const BYTEWISE_MAX: usize = 300;

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Peer {
    /// Counts sockets: what was sent to an earlier one arrives nowhere.
    pub(super) socket: u64,
    /// The socket takes no bytes for now.
    pub(super) blocked: bool,
    /// On its way to the engine.
    outbox: Vec<u8>,
    ending: Option<Ending>,
    /// It will answer nothing more.
    silent: bool,
    delivering: bool,
    responding: bool,
}

/// What comes out of the network.
#[derive(Debug)]
pub(super) enum Arrival {
    Bytes(Vec<u8>),
    End,
    Reset,
}

impl Peer {
    pub(super) fn new(socket: u64) -> Peer {
        Peer { socket, ..Peer::default() }
    }

    /// Some of the line's requests have come: when the next one is answered, if it is.
    pub(super) fn consider(&mut self, line: &Line, nature: Nature, rng: &mut impl Rng) -> Option<u64> {
        let next = line.flights.get(line.plans.len())?;
        let can_answer = next.is_written() || nature.hasty && next.written > 0;
        if self.responding || self.silent || !can_answer {
            return None;
        }
        self.responding = true;
        Some(rng.random_range(0..THINK_MAX_NS))
    }

    /// Answers the line's next request, and those that follow it now and then.
    pub(super) fn respond(&mut self, line: &mut Line, nature: Nature, rng: &mut impl Rng) {
        self.responding = false;
        while !self.silent {
            let next = line.flights.get(line.plans.len());
            let Some(flight) =
                next.filter(|flight| flight.is_written() || nature.hasty && flight.written > 0)
            else {
                return;
            };
            let script = script::draw(rng, flight.asked(), nature.trouble);
            self.outbox.extend_from_slice(&script.bytes);
            line.plans.extend(script.plans);
            (self.ending, self.silent) = (script.ending, script.silent);
            if rng.random_bool(0.4) {
                return;
            }
        }
    }

    /// When the next piece arrives, if one is on its way and none is announced.
    pub(super) fn flow(&mut self, nature: Nature, rng: &mut impl Rng) -> Option<u64> {
        if self.delivering || self.outbox.is_empty() && self.ending.is_none() {
            return None;
        }
        self.delivering = true;
        let bytewise = nature.bytewise && !self.outbox.is_empty() && self.outbox.len() < BYTEWISE_MAX;
        Some(rng.random_range(0..if bytewise { 50_000 } else { DELAY_MAX_NS }))
    }

    /// The piece that arrives.
    pub(super) fn deliver(&mut self, nature: Nature, rng: &mut impl Rng) -> Option<Arrival> {
        self.delivering = false;
        let many = self.outbox.len();
        let count = match many {
            0 => {
                return self.ending.take().map(|ending| match ending {
                    Ending::Closes => Arrival::End,
                    Ending::Resets => Arrival::Reset,
                });
            }
            ..BYTEWISE_MAX if nature.bytewise => 1,
            _ if rng.random_bool(0.4) => many,
            // A cut as likely near the beginning as anywhere.
            _ if rng.random_bool(0.3) => rng.random_range(1..=many.min(100)),
            _ => rng.random_range(1..=many),
        };
        Some(Arrival::Bytes(self.outbox.drain(..count).collect()))
    }
}
