//! A request in flight: its endpoint, its times, and the checks of its response.

use crate::arena::{RequestArena, RequestChoice};
use crate::check::{Breach, ContractCheck};
use crate::content::ContentReader;
use crate::reader::{ResponseHead, Sink};
use crate::user::{CONTENT_BYTES_MAX, Own};

/// A request in flight. All times except `first_byte_ns` are absolute.
pub(crate) struct InFlight {
    pub(crate) choice: RequestChoice,
    pub(crate) sent_ns: u64,
    /// The scheduled time in open loop.
    pub(crate) intended_ns: Option<u64>,
    /// Time from sending to the first byte of the response.
    pub(crate) first_byte_ns: Option<u64>,
    pub(crate) breach: Option<Breach>,
    /// Checks the response's content if the response is sampled.
    pub(crate) content: Option<Box<ContentReader>>,
    /// Data of a request that differs between users.
    pub(crate) own: Option<Box<Own>>,
    /// Whether this is the first request of its connection in the window.
    pub(crate) is_first: bool,
}

impl InFlight {
    pub(crate) fn new(choice: RequestChoice, sent_ns: u64, intended_ns: Option<u64>) -> InFlight {
        InFlight {
            choice,
            sent_ns,
            intended_ns,
            first_byte_ns: None,
            breach: None,
            content: None,
            own: None,
            is_first: false,
        }
    }

    pub(crate) fn bytes<'a>(&'a self, arena: &'a RequestArena) -> &'a [u8] {
        match &self.own {
            Some(own) => &own.bytes,
            None => arena.bytes(self.choice),
        }
    }

    pub(crate) fn is_log_in(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.step.is_some())
    }

    pub(crate) fn received(&mut self, now_ns: u64) {
        self.first_byte_ns.get_or_insert(now_ns - self.sent_ns);
    }
}

/// Reads the response of a request and checks it.
impl Sink for (&mut InFlight, &mut ContractCheck) {
    fn head(&mut self, head: &ResponseHead<'_>) {
        let is_log_in = self.0.is_log_in();
        let (
            InFlight {
                choice,
                breach,
                content,
                own,
                ..
            },
            check,
        ) = self;
        *breach = check.head(choice.endpoint, head);
        if own.as_mut().is_some_and(|own| own.note(head)) {
            *content = Some(Box::new(ContentReader::of(head).keeping(CONTENT_BYTES_MAX)));
        } else if !choice.bodiless && breach.is_none() && !is_log_in {
            *content = check.sample(choice.endpoint, head);
        }
    }

    fn content(&mut self, bytes: &[u8]) {
        if let Some(content) = &mut self.0.content {
            content.take(bytes);
        }
    }
}
