//! Where connections book what became of requests: the thread's tally, with the contract at hand.

use super::Flight;
use crate::check::Check;
use crate::corpus::Corpus;
use crate::tally::Tally;
use model::{Cause, Phase};

/// A complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) endpoint: u16,
    pub(crate) status: u16,
    pub(crate) ok: bool,
    pub(crate) body_bytes: u64,
    pub(crate) latency_ns: u64,
    /// From intended to done; `None` in closed loop.
    pub(crate) response_ns: Option<u64>,
    pub(crate) first_byte_ns: u64,
}

/// A request that got no complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) endpoint: u16,
    pub(crate) phase: Phase,
    pub(crate) cause: Cause,
    /// How long it had waited: its latency is at least this.
    pub(crate) age_ns: u64,
    /// The same from its intended time; `None` in closed loop.
    pub(crate) response_age_ns: Option<u64>,
    /// From sent to the first byte, if one came.
    pub(crate) first_byte_ns: Option<u64>,
}

/// The books, open at one moment.
pub(crate) struct Desk<'a> {
    pub(crate) now_ns: u64,
    /// How far into the window that is; `None` outside of it.
    pub(crate) since_start_ns: Option<u64>,
    pub(crate) corpus: &'a Corpus,
    pub(crate) check: &'a mut Check,
    pub(crate) tally: &'a mut Tally,
    pub(crate) in_flight: &'a mut u32,
    /// A response was complete since the books were opened.
    pub(crate) has_answer: bool,
}

impl Desk<'_> {
    /// A request has its response.
    pub(super) fn answered(&mut self, mut flight: Flight, status: u16, body_bytes: u64) {
        *self.in_flight -= 1;
        self.has_answer = true;
        let latency_ns = self.now_ns - flight.sent_ns;
        let endpoint = flight.choice.endpoint;
        if let Some(content) = flight.content.take() {
            let breach = self.check.content(endpoint, *content);
            flight.breach = flight.breach.or(breach);
        }
        let answer = Answer {
            endpoint,
            status,
            ok: self.check.body(endpoint, flight.breach, body_bytes),
            body_bytes,
            latency_ns,
            response_ns: flight.intended_ns.map(|intended_ns| self.now_ns - intended_ns),
            first_byte_ns: flight.first_byte_ns.unwrap_or(latency_ns),
        };
        self.tally.answer(&answer, self.since_start_ns);
    }

    /// A request will get none.
    pub(super) fn lost(&mut self, flight: &Flight, phase: Phase, cause: Cause) {
        *self.in_flight -= 1;
        self.tally.loss(&self.loss(flight, phase, cause));
    }

    /// A request has none when the slice is over: no error, so that phase and cause are of no meaning.
    pub(super) fn left(&mut self, flight: &Flight) {
        *self.in_flight -= 1;
        self.tally.leave_unfinished(&self.loss(flight, Phase::Head, Cause::Timeout));
    }

    /// Something went wrong that cost no request.
    pub(super) fn spoilt(&mut self, phase: Phase, cause: Cause) {
        self.tally.error(phase, cause);
    }

    fn loss(&self, flight: &Flight, phase: Phase, cause: Cause) -> Loss {
        Loss {
            endpoint: flight.choice.endpoint,
            phase,
            cause,
            age_ns: self.now_ns - flight.sent_ns,
            response_age_ns: flight.intended_ns.map(|intended_ns| self.now_ns - intended_ns),
            first_byte_ns: flight.first_byte_ns,
        }
    }
}
