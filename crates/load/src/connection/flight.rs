//! A request under way: which one it is, its times, and what its response is held against.

use crate::check::{Breach, Check};
use crate::content::ContentReader;
use crate::corpus::Choice;
use crate::reader::{Head, Sink};

/// See the module's text. Times but `first_byte_ns` are absolute.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) choice: Choice,
    pub(crate) sent_ns: u64,
    /// When it was due: open loop.
    pub(crate) intended_ns: Option<u64>,
    /// From sent to the first byte of the response.
    pub(crate) first_byte_ns: Option<u64>,
    pub(crate) breach: Option<Breach>,
    /// Looks at the response's content, if it is sampled.
    pub(crate) content: Option<Box<ContentReader>>,
}

impl Flight {
    pub(crate) fn new(choice: Choice, sent_ns: u64, intended_ns: Option<u64>) -> Flight {
        Flight { choice, sent_ns, intended_ns, first_byte_ns: None, breach: None, content: None }
    }

    /// Bytes of its response have arrived.
    pub(crate) fn heard(&mut self, now_ns: u64) {
        self.first_byte_ns.get_or_insert(now_ns - self.sent_ns);
    }

    /// Looks at the response's head.
    pub(crate) fn look(&mut self, head: &Head<'_>, check: &mut Check) {
        self.breach = check.head(self.choice.endpoint, head);
        if !self.choice.bodiless {
            self.content = check.sample(head);
        }
    }

    /// Whether its response's content has to be seen.
    pub(crate) fn is_sampled(&self) -> bool {
        self.content.is_some()
    }

    /// Looks at a piece of the response's content.
    pub(crate) fn content(&mut self, bytes: &[u8]) {
        if let Some(content) = &mut self.content {
            content.take(bytes);
        }
    }
}

/// A flight that reads its response.
pub(super) struct Listener<'a> {
    pub(super) flight: &'a mut Flight,
    pub(super) check: &'a mut Check,
}

impl Sink for Listener<'_> {
    fn head(&mut self, head: &Head<'_>) {
        self.flight.look(head, self.check);
    }

    fn content(&mut self, bytes: &[u8]) {
        self.flight.content(bytes);
    }
}
