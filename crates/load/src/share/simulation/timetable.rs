//! The ledger's own timetable of open loop: which arrival a request must be, and what its response time must be.

use std::time::Duration;

use super::book::Book;
use crate::Until;
use crate::pacer::Pacer;

/// Arrivals of one slice after the other.
#[derive(Debug)]
pub(super) struct Timetable {
    pacer: Pacer,
    started_ns: u64,
    /// Arrivals that may still come; none are counted off where time is the limit.
    left: Option<u64>,
    /// Later ones do not belong to the slice.
    pub(super) end_ns: u64,
}

impl Timetable {
    pub(super) fn new(pacer: Pacer) -> Timetable {
        Timetable { pacer, started_ns: 0, left: None, end_ns: 0 }
    }

    pub(super) fn restart(&mut self, started_ns: u64, until: Until) {
        self.pacer.restart();
        self.started_ns = started_ns;
        (self.left, self.end_ns) = match until {
            Until::Elapsed(window) => (None, started_ns + window.as_nanos() as u64),
            Until::Requests(total) => (Some(total), u64::MAX),
        };
    }

    /// When the oldest arrival that was not sent is due.
    pub(super) fn due_ns(&self) -> Option<u64> {
        let due_ns = self.started_ns.saturating_add(self.pacer.due_ns());
        (due_ns < self.end_ns && self.left != Some(0)).then_some(due_ns)
    }

    /// A request is sent: which arrival it is.
    pub(super) fn depart(&mut self, now_ns: u64) -> u64 {
        let due_ns = self.due_ns().expect("nothing is sent that is not due");
        assert!(due_ns <= now_ns, "sent {:?} early", Duration::from_nanos(due_ns - now_ns));
        self.pacer.advance();
        self.left = self.left.map(|left| left - 1);
        due_ns
    }

    /// Everything that was due and never sent.
    pub(super) fn give_up(&mut self, now_ns: u64, book: &mut Book) {
        while self.due_ns().is_some() {
            let due_ns = self.depart(now_ns);
            book.unsent.push(now_ns - due_ns);
        }
    }
}
