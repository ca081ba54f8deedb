//! One connection as a state machine: it is fed times and bytes, books what became of its requests, and says what is
//! to be done with it.
//!
//! ```text
//!            open             connected            secured
//!   Closed ───────► Connecting ────────► Securing ────────► Open ◄─► requests under way, as many as the protocol takes
//!     ▲                 │                   │                │
//!     └──── close ──────┴───────────────────┴────────────────┘
//!
//!   bytes of the socket ◄──► Tls (where there is one) ◄──► Session (HTTP/1.1 or HTTP/2) ◄──► Flights
//! ```
//! Without TLS, and with HTTP/1.1, `Securing` takes no time. It does no I/O and reads no clock: the
//! [`Share`](crate::share::Share) that owns it decides what is sent when, a driver moves the bytes.

/// Calls the same method of either protocol.
macro_rules! session {
    ($self:expr, $session:ident => $call:expr) => {
        match $self {
            Session::Http1($session) => $call,
            Session::Http2($session) => $call,
        }
    };
}

mod desk;
mod flight;
mod http1;
mod http2;
mod secure;
#[cfg(test)]
mod tests;
mod tls;

use crate::Protocol;
use crate::corpus::Corpus;
use crate::share::Terms;
pub(crate) use desk::{Answer, Desk, Loss};
pub(crate) use flight::Flight;
use http1::Http1;
use http2::Http2;
pub(crate) use http2::has_form as has_http2_form;
use model::{Cause, Phase};
use tls::Tls;
pub(crate) use tls::TlsTerms;

/// Waiting time after a first failure to connect.
const BACKOFF_FIRST_NS: u64 = 10_000_000;
/// Waiting time that repeated failures lead to, at most.
const BACKOFF_LAST_NS: u64 = 1_000_000_000;

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Without a socket; may be opened from the given time on.
    Closed { retry_ns: u64 },
    /// Opening since the given time.
    Connecting { since_ns: u64 },
    /// Shaking hands since the given time: [`Phase::Tls`], or [`Phase::Connect`] for HTTP/2's settings.
    Securing { since_ns: u64, phase: Phase },
    /// Can carry requests.
    Open,
}

/// What bytes, an end or an error amounted to. What became of requests is booked already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Heard {
    /// Nothing that changes what can be done.
    More,
    /// There may be room for another request, or something to write.
    Free,
    /// The connection is of no use any more.
    Lost,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Connection {
    stage: Stage,
    session: Session,
    tls: Option<Box<Tls>>,
    /// A request that began with its connection, until that is open.
    early: Option<Flight>,
    /// The wait after the next failure; 0 after an answer.
    backoff_ns: u64,
    /// When it was begun to open it last.
    opening_ns: u64,
    opened_before: bool,
}

/// The protocol at work.
#[derive(Debug)]
enum Session {
    Http1(Http1),
    Http2(Box<Http2>),
}

impl Connection {
    /// A closed connection.
    pub(crate) fn new() -> Connection {
        Connection {
            stage: Stage::Closed { retry_ns: 0 },
            session: Session::Http1(Http1::new()),
            tls: None,
            early: None,
            backoff_ns: 0,
            opening_ns: 0,
            opened_before: false,
        }
    }

    pub(crate) fn stage(&self) -> Stage {
        self.stage
    }

    /// Requests that can begin now. One that opens a connection of its own begins on a closed one.
    pub(crate) fn room(&self, now_ns: u64, terms: &Terms) -> usize {
        match self.stage {
            Stage::Open if terms.fresh => 0,
            Stage::Open => session!(&self.session, session => session.room(terms.protocol)),
            Stage::Closed { retry_ns } => {
                usize::from(terms.fresh && retry_ns <= now_ns && self.early.is_none())
            }
            Stage::Connecting { .. } | Stage::Securing { .. } => 0,
        }
    }

    /// Whether a request is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.early.is_some() || session!(&self.session, session => session.under_way() > 0)
    }

    /// When the time of whatever it waits for is up.
    pub(crate) fn due_ns(&self, terms: &Terms) -> Option<u64> {
        match self.stage {
            Stage::Closed { retry_ns } if terms.fresh => (retry_ns > 0).then_some(retry_ns),
            Stage::Closed { retry_ns } => Some(retry_ns),
            Stage::Connecting { .. } | Stage::Securing { .. } => {
                // A request that begins with its connection has no more time than others.
                let early_ns = self.early.as_ref().map_or(u64::MAX, |early| early.sent_ns + terms.timeout_ns);
                Some(early_ns.min(self.opening_ns + terms.connect_timeout_ns))
            }
            Stage::Open => session!(&self.session, session => session.due_ns(terms)),
        }
    }

    /// A socket is being connected.
    pub(crate) fn open(&mut self, now_ns: u64) {
        debug_assert!(matches!(self.stage, Stage::Closed { .. }));
        self.stage = Stage::Connecting { since_ns: now_ns };
        self.opening_ns = now_ns;
    }

    /// The socket is connected.
    pub(crate) fn connected(&mut self, terms: &Terms, desk: &mut Desk<'_>) -> Heard {
        let Stage::Connecting { since_ns } = self.stage else { return Heard::More };
        desk.tally.counts.connect.record(desk.now_ns - since_ns);
        match &terms.tls {
            Some(tls) => {
                self.stage = Stage::Securing { since_ns: desk.now_ns, phase: Phase::Tls };
                match Tls::new(tls) {
                    Ok(tls) => self.tls = Some(Box::new(tls)),
                    Err(flaw) => return self.tls_failed(flaw, desk),
                }
                Heard::Free
            }
            None => self.speak(terms, desk),
        }
    }

    /// Whatever carries the protocol is ready.
    fn speak(&mut self, terms: &Terms, desk: &mut Desk<'_>) -> Heard {
        match (terms.protocol, &mut self.session) {
            (Protocol::Http1 { .. }, Session::Http1(session)) => {
                session.reset();
                self.secured(desk)
            }
            (Protocol::Http1 { .. }, other) => {
                *other = Session::Http1(Http1::new());
                self.secured(desk)
            }
            (Protocol::Http2 { .. }, other) => {
                *other = Session::Http2(Box::new(Http2::new(terms.tls.is_some())));
                self.stage = Stage::Securing { since_ns: desk.now_ns, phase: Phase::Connect };
                Heard::Free
            }
        }
    }

    /// Requests can be sent from now on.
    fn secured(&mut self, desk: &mut Desk<'_>) -> Heard {
        self.stage = Stage::Open;
        desk.tally.counts.connections_opened += 1;
        desk.tally.counts.reconnects += u64::from(std::mem::replace(&mut self.opened_before, true));
        if let Some(flight) = self.early.take() {
            session!(&mut self.session, session => session.begin(flight, desk.corpus));
        }
        Heard::Free
    }

    /// A request begins; what is to be written follows by [`output`](Self::output).
    pub(crate) fn begin(&mut self, flight: Flight, corpus: &Corpus) {
        match self.stage {
            Stage::Open => session!(&mut self.session, session => session.begin(flight, corpus)),
            _ => self.early = Some(flight),
        }
    }

    /// Makes ready whatever there is to write. To be called before [`output`](Self::output) when something has begun or was
    /// received.
    pub(crate) fn flush(&mut self, corpus: &Corpus) {
        if let Session::Http2(session) = &mut self.session {
            session.flush();
        }
        self.encrypt(corpus);
    }

    /// What is to be written next, if anything.
    pub(crate) fn output<'a>(&'a self, corpus: &'a Corpus) -> Option<&'a [u8]> {
        match (&self.tls, self.stage) {
            (Some(tls), _) => tls.output(),
            (None, Stage::Securing { .. } | Stage::Open) => {
                session!(&self.session, session => session.output(corpus))
            }
            (None, _) => None,
        }
    }

    /// So many bytes of the output were written.
    pub(crate) fn wrote(&mut self, count: usize, corpus: &Corpus) {
        match &mut self.tls {
            Some(tls) => {
                tls.wrote(count);
                self.encrypt(corpus);
            }
            None => session!(&mut self.session, session => session.wrote(count, corpus)),
        }
    }

    /// What was said to be written was not.
    pub(crate) fn unwrote(&mut self) {
        if let Session::Http1(session) = &mut self.session {
            session.unwrote();
        }
    }

    /// How many of the next bytes the kernel may throw away; 0: they must be read.
    pub(crate) fn skippable(&self) -> u64 {
        match &self.session {
            Session::Http1(session) if self.tls.is_none() => session.skippable(),
            _ => 0,
        }
    }

    /// Bytes have arrived.
    pub(crate) fn received(&mut self, bytes: &[u8], terms: &Terms, desk: &mut Desk<'_>) -> Heard {
        let Some(mut tls) = self.tls.take() else { return self.read(bytes, terms, desk) };
        let heard = self.decrypt(&mut tls, bytes, terms, desk);
        self.tls = Some(tls);
        heard
    }

    /// Shows the session bytes of its protocol.
    fn read(&mut self, bytes: &[u8], terms: &Terms, desk: &mut Desk<'_>) -> Heard {
        let heard = session!(&mut self.session, session => session.received(bytes, desk));
        self.noted(heard, terms, desk)
    }

    /// What was heard may end the handshake, or the wait after failures.
    fn noted(&mut self, heard: Heard, terms: &Terms, desk: &mut Desk<'_>) -> Heard {
        if desk.has_answer {
            self.backoff_ns = 0;
            if terms.fresh {
                return Heard::Lost;
            }
        }
        if terms.fresh && self.stage == Stage::Open && !self.is_busy() {
            // Its request has ended, in whatever way.
            return Heard::Lost;
        }
        match (&self.session, self.stage) {
            (Session::Http2(session), Stage::Securing { .. }) => match heard {
                Heard::Lost => self.failed(session.ending(), desk),
                _ if session.is_ready() => self.secured(desk),
                heard => heard,
            },
            _ => heard,
        }
    }

    /// So many bytes of body arrived and were thrown away, at most [`skippable`](Self::skippable).
    pub(crate) fn skipped(&mut self, count: u64, terms: &Terms, desk: &mut Desk<'_>) -> Heard {
        let Session::Http1(session) = &mut self.session else { return Heard::Lost };
        let heard = session.skipped(count, desk);
        self.noted(heard, terms, desk)
    }

    /// The peer has ended the connection.
    pub(crate) fn ended(&mut self, terms: &Terms, desk: &mut Desk<'_>) -> Heard {
        if self.stage != Stage::Open {
            return self.failed(Cause::ClosedEarly, desk);
        }
        // An end that TLS has not announced (which would have been heard while it decrypts) is anybody's, and no end of a
        // body (RFC 9112, section 9.8).
        if self.tls.is_some() && matches!(self.session, Session::Http1(_)) && self.is_busy() {
            return self.failed(Cause::ClosedEarly, desk);
        }
        let heard = session!(&mut self.session, session => session.ended(desk));
        self.noted(heard, terms, desk)
    }

    /// The socket has failed, or the time for connecting is up.
    pub(crate) fn failed(&mut self, cause: Cause, desk: &mut Desk<'_>) -> Heard {
        let phase = match self.stage {
            Stage::Open => {
                session!(&mut self.session, session => session.failed(cause, desk));
                return Heard::Lost;
            }
            Stage::Connecting { .. } => Phase::Connect,
            Stage::Securing { phase, .. } => phase,
            Stage::Closed { .. } => Phase::Idle,
        };
        match self.early.take() {
            Some(flight) => desk.lost(&flight, phase, cause),
            None => desk.spoilt(phase, cause),
        }
        Heard::Lost
    }

    /// The time of the oldest request, or of connecting, is up.
    pub(crate) fn expired(&mut self, terms: &Terms, desk: &mut Desk<'_>) -> Heard {
        match &mut self.session {
            Session::Http2(session) if self.stage == Stage::Open => {
                let heard = session.expired(terms, desk);
                self.noted(heard, terms, desk)
            }
            _ => self.failed(Cause::Timeout, desk),
        }
    }

    /// The slice is over: whatever is under way is booked as unfinished. True when there was anything.
    pub(crate) fn leave(&mut self, desk: &mut Desk<'_>) -> bool {
        let early = self.early.take();
        let busy = early.is_some() || session!(&self.session, session => session.under_way() > 0);
        if let Some(flight) = early {
            desk.left(&flight);
        }
        session!(&mut self.session, session => session.leave(desk));
        busy
    }

    /// The socket is gone. A connection that has answered may be opened again at once; where that fails, or the new
    /// one answers nothing either, the wait doubles from 10 ms to 1 s.
    pub(crate) fn close(&mut self, now_ns: u64) {
        if matches!(self.stage, Stage::Connecting { .. } | Stage::Securing { .. }) {
            self.backoff_ns = self.backoff_ns.max(BACKOFF_FIRST_NS);
        }
        self.stage = Stage::Closed { retry_ns: now_ns + self.backoff_ns };
        self.backoff_ns = (self.backoff_ns * 2).clamp(BACKOFF_FIRST_NS, BACKOFF_LAST_NS);
        self.tls = None;
    }

    /// The wait after a failure is over.
    pub(crate) fn rested(&mut self) {
        self.rest_until(0);
    }

    /// It is closed, and stays so until then.
    pub(crate) fn rest_until(&mut self, retry_ns: u64) {
        debug_assert!(matches!(self.stage, Stage::Closed { .. }));
        self.stage = Stage::Closed { retry_ns };
    }

    /// The engine itself has no more use for the socket, which is no failure: the next attempt may come at once.
    pub(crate) fn abandon(&mut self) {
        self.stage = Stage::Closed { retry_ns: 0 };
        self.backoff_ns = 0;
        self.tls = None;
    }
}
