//! One connection in the ledger: its requests and the responses that the server has for them, in order, and when it may be
//! opened again.
//!
//! It holds; what happens to it is for the ledger to say.

use std::collections::VecDeque;

use super::script::{Asked, Plan};
use crate::corpus::Choice;

const BACKOFF_FIRST_NS: u64 = 10_000_000;
const BACKOFF_LAST_NS: u64 = 1_000_000_000;

/// A request under way.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) choice: Choice,
    pub(super) number: u64,
    pub(super) sent_ns: u64,
    pub(super) due_ns: Option<u64>,
    pub(super) first_byte_ns: Option<u64>,
    pub(super) written: usize,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) state: State,
    /// Oldest first.
    pub(super) flights: VecDeque<Flight>,
    /// Responses, the next one first; of them so many bytes have come.
    pub(super) plans: VecDeque<Plan>,
    pub(super) received: usize,
    pub(super) head_seen: bool,
    pub(super) sampled: bool,
    /// Whether this socket has brought an answer.
    pub(super) has_answered: bool,
    /// How many sockets in a row have brought none.
    pub(super) failures: u32,
    pub(super) opened_before: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Not to be opened before the one time, and to be opened by the other where there is work.
    Closed {
        until_ns: u64,
        latest_ns: u64,
    },
    Connecting {
        since_ns: u64,
    },
    Open,
}

impl Flight {
    pub(super) fn is_written(&self) -> bool {
        self.written == self.choice.length as usize
    }

    pub(super) fn asked(&self) -> Asked {
        Asked { endpoint: self.choice.endpoint, bodiless: self.choice.bodiless, number: self.number }
    }
}

impl Line {
    pub(super) fn new() -> Line {
        Line {
            state: State::Closed { until_ns: 0, latest_ns: 0 },
            flights: VecDeque::new(),
            plans: VecDeque::new(),
            received: 0,
            head_seen: false,
            sampled: false,
            has_answered: false,
            failures: 0,
            opened_before: false,
        }
    }

    /// The next response begins.
    pub(super) fn turn_over(&mut self) {
        (self.received, self.head_seen, self.sampled) = (0, false, false);
    }

    /// The socket is gone. What is begun on the line from now on is for the next one.
    pub(super) fn close(&mut self, now_ns: u64) {
        let never_open = self.state != State::Open;
        self.failures = if self.has_answered { 0 } else { self.failures + 1 };
        let backoff_ns = |doublings: u32| (BACKOFF_FIRST_NS << doublings.min(20)).min(BACKOFF_LAST_NS);
        let (least_ns, most_ns) = match self.failures {
            0 => (0, 0),
            1 => (u64::from(never_open) * BACKOFF_FIRST_NS, BACKOFF_FIRST_NS),
            many => (backoff_ns(many - 2), backoff_ns(many - 1)),
        };
        self.reset(now_ns + least_ns, now_ns + most_ns);
    }

    /// The engine has closed it, or begins anew: it need not wait.
    pub(super) fn forgive(&mut self) {
        self.failures = 0;
        self.reset(0, 0);
    }

    fn reset(&mut self, until_ns: u64, latest_ns: u64) {
        self.state = State::Closed { until_ns, latest_ns };
        self.plans.clear();
        self.turn_over();
        self.has_answered = false;
    }
}
