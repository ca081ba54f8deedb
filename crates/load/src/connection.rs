//! One connection as a state machine: it is fed times and bytes and says what has happened.
//!
//! ```text
//!            open            opened           begin
//!   Closed ───────► Connecting ─────► Idle ─────────► Busy
//!     ▲                 │              │ ▲              │
//!     └──── close ──────┴──────────────┘ └── answered ──┘   (or broken: close)
//! ```
//! It does no I/O, reads no clock and counts nothing: the [`Share`](crate::share::Share) that owns it does the book-keeping, a
//! driver moves the bytes.

use crate::check::{Breach, Check};
use crate::reader::{Flaw, Progress, ResponseReader};
use crate::{Cause, Phase};

/// Waiting time after a first failure to connect.
const BACKOFF_FIRST_NS: u64 = 10_000_000;
/// Waiting time that repeated failures lead to, at most.
const BACKOFF_LAST_NS: u64 = 1_000_000_000;

/// A body beyond this length is better thrown away by the kernel than copied to the engine.
const SKIP_WORTHWHILE_BYTES: u64 = 16 * 1024;

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Without a socket; may be opened from the given time on.
    Closed { retry_ns: u64 },
    /// Opening since the given time.
    Connecting { since_ns: u64 },
    /// Open, nothing owed by either side.
    Idle,
    /// A request is under way.
    Busy,
}

/// What bytes, an end or an error amounted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Nothing has ended yet.
    More,
    /// The response is complete.
    Answered(Answer),
    /// The request is lost and the connection of no use.
    Broken(Loss),
    /// The connection is of no use; no request was lost with it.
    Spoilt(Phase, Cause),
}

/// A complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) ok: bool,
    pub(crate) body_bytes: u64,
    pub(crate) latency_ns: u64,
    /// From intended to done; `None` in closed loop.
    pub(crate) response_ns: Option<u64>,
    pub(crate) first_byte_ns: u64,
    /// The connection can take another request.
    pub(crate) reusable: bool,
    /// Something came after the response's end.
    pub(crate) surplus: bool,
}

/// A request that got no complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) phase: Phase,
    pub(crate) cause: Cause,
    /// How long it had waited: its latency is at least this.
    pub(crate) age_ns: u64,
    /// The same from its intended time; `None` in closed loop.
    pub(crate) response_age_ns: Option<u64>,
    /// From sent to the first byte, if one came.
    pub(crate) first_byte_ns: Option<u64>,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Connection {
    stage: Stage,
    reader: ResponseReader,
    request_bytes: usize,
    written_bytes: usize,
    sent_ns: u64,
    intended_ns: Option<u64>,
    first_byte_ns: Option<u64>,
    breach: Option<Breach>,
    /// The wait after the next failure; 0 after an answer.
    backoff_ns: u64,
    opened_before: bool,
}

impl Connection {
    /// A closed connection for requests of `request_bytes`; `bodiless` where the method is HEAD.
    pub(crate) fn new(request_bytes: usize, bodiless: bool) -> Connection {
        Connection {
            stage: Stage::Closed { retry_ns: 0 },
            reader: ResponseReader::new(bodiless),
            request_bytes,
            written_bytes: 0,
            sent_ns: 0,
            intended_ns: None,
            first_byte_ns: None,
            breach: None,
            backoff_ns: 0,
            opened_before: false,
        }
    }

    pub(crate) fn stage(&self) -> Stage {
        self.stage
    }

    /// When the request under way was sent; of no meaning unless busy.
    pub(crate) fn sent_ns(&self) -> u64 {
        self.sent_ns
    }

    /// The bytes of the request that are written already, while some are not.
    pub(crate) fn unwritten_from(&self) -> Option<usize> {
        (self.stage == Stage::Busy && self.written_bytes < self.request_bytes).then_some(self.written_bytes)
    }

    /// How many of the next bytes the kernel may throw away; 0: they must be read.
    ///
    /// Only while a request is under way: before, the reader stands where the last response left it, which on a connection
    /// that is opened anew may be the middle of a body, and what must not be thrown away is the next head.
    pub(crate) fn skippable(&self) -> u64 {
        match self.reader.skippable() {
            many if many >= SKIP_WORTHWHILE_BYTES && self.stage == Stage::Busy => many,
            _ => 0,
        }
    }

    /// A socket is being connected.
    pub(crate) fn open(&mut self, now_ns: u64) {
        debug_assert!(matches!(self.stage, Stage::Closed { .. }));
        self.stage = Stage::Connecting { since_ns: now_ns };
    }

    /// The socket is connected; true when this connection had been open before.
    pub(crate) fn opened(&mut self) -> bool {
        debug_assert!(matches!(self.stage, Stage::Connecting { .. }));
        self.stage = Stage::Idle;
        std::mem::replace(&mut self.opened_before, true)
    }

    /// The socket is gone. A connection that has answered may be opened again at once; where that fails, or the new
    /// one answers nothing either, the wait doubles from 10 ms to 1 s.
    pub(crate) fn close(&mut self, now_ns: u64) {
        if matches!(self.stage, Stage::Connecting { .. }) {
            self.backoff_ns = self.backoff_ns.max(BACKOFF_FIRST_NS);
        }
        self.stage = Stage::Closed { retry_ns: now_ns + self.backoff_ns };
        self.backoff_ns = (self.backoff_ns * 2).clamp(BACKOFF_FIRST_NS, BACKOFF_LAST_NS);
    }

    /// The engine itself has no more use for the socket, which is no failure: the next attempt may come at once.
    pub(crate) fn abandon(&mut self) {
        self.stage = Stage::Closed { retry_ns: 0 };
        self.backoff_ns = 0;
    }

    /// A request is about to be written, which was due at `intended_ns` (open loop).
    pub(crate) fn begin(&mut self, now_ns: u64, intended_ns: Option<u64>) {
        debug_assert_eq!(self.stage, Stage::Idle);
        self.stage = Stage::Busy;
        self.reader.restart();
        self.written_bytes = 0;
        self.sent_ns = now_ns;
        self.intended_ns = intended_ns;
        self.first_byte_ns = None;
        self.breach = None;
    }

    /// So many more bytes of the request were written.
    pub(crate) fn wrote(&mut self, count: usize) {
        self.written_bytes += count;
        debug_assert!(self.written_bytes <= self.request_bytes);
    }

    /// What was said to be written was not.
    pub(crate) fn unwrote(&mut self) {
        self.written_bytes = 0;
    }

    /// Bytes have arrived.
    pub(crate) fn received(&mut self, now_ns: u64, bytes: &[u8], check: &mut Check) -> Heard {
        if self.stage != Stage::Busy {
            return Heard::Spoilt(Phase::Idle, Cause::Malformed);
        }
        let first_byte_ns = *self.first_byte_ns.get_or_insert(now_ns - self.sent_ns);
        let breach = &mut self.breach;
        match self.reader.read(bytes, &mut |head| *breach = check.head(head)) {
            Ok(Progress::More) => Heard::More,
            Ok(Progress::Done { extra }) => self.answered(now_ns, check, (first_byte_ns, extra)),
            Err(Flaw::Malformed) => self.broken(now_ns, Cause::Malformed),
            Err(Flaw::TooLarge) => self.broken(now_ns, Cause::TooLarge),
        }
    }

    /// So many bytes of body arrived and were thrown away, at most [`skippable`](Self::skippable).
    pub(crate) fn skipped(&mut self, now_ns: u64, count: u64, check: &mut Check) -> Heard {
        let first_byte_ns = *self.first_byte_ns.get_or_insert(now_ns - self.sent_ns);
        match self.reader.skip(count) {
            Progress::More => Heard::More,
            Progress::Done { extra } => self.answered(now_ns, check, (first_byte_ns, extra)),
        }
    }

    /// The peer has ended the connection.
    pub(crate) fn ended(&mut self, now_ns: u64, check: &mut Check) -> Heard {
        match self.stage {
            Stage::Busy if self.reader.end() => {
                let first_byte_ns = self.first_byte_ns.unwrap_or(now_ns - self.sent_ns);
                self.answered(now_ns, check, (first_byte_ns, 0))
            }
            Stage::Busy => self.broken(now_ns, Cause::ClosedEarly),
            Stage::Connecting { .. } => Heard::Spoilt(Phase::Connect, Cause::ClosedEarly),
            Stage::Idle | Stage::Closed { .. } => Heard::Spoilt(Phase::Idle, Cause::Closed),
        }
    }

    /// The socket has failed, or a time limit is over.
    pub(crate) fn failed(&mut self, now_ns: u64, cause: Cause) -> Heard {
        match self.stage {
            Stage::Busy => self.broken(now_ns, cause),
            Stage::Connecting { .. } => Heard::Spoilt(Phase::Connect, cause),
            Stage::Idle | Stage::Closed { .. } => Heard::Spoilt(Phase::Idle, cause),
        }
    }

    /// The request under way as a loss at its present age.
    pub(crate) fn loss(&self, now_ns: u64, cause: Cause) -> Loss {
        let phase = match () {
            () if self.reader.in_body() => Phase::Body,
            () if self.written_bytes < self.request_bytes => Phase::Send,
            () => Phase::Head,
        };
        Loss {
            phase,
            cause,
            age_ns: now_ns - self.sent_ns,
            response_age_ns: self.since_intended(now_ns),
            first_byte_ns: self.first_byte_ns,
        }
    }

    fn since_intended(&self, now_ns: u64) -> Option<u64> {
        self.intended_ns.map(|intended_ns| now_ns - intended_ns)
    }

    fn broken(&self, now_ns: u64, cause: Cause) -> Heard {
        Heard::Broken(self.loss(now_ns, cause))
    }

    fn answered(&mut self, now_ns: u64, check: &mut Check, (first_byte_ns, extra): (u64, u64)) -> Heard {
        self.stage = Stage::Idle;
        self.backoff_ns = 0;
        let body_bytes = self.reader.body_bytes();
        Heard::Answered(Answer {
            status: self.reader.status(),
            ok: check.body(self.breach, body_bytes),
            body_bytes,
            latency_ns: now_ns - self.sent_ns,
            response_ns: self.since_intended(now_ns),
            first_byte_ns,
            // A response that overtook its request leaves half of it unwritten: nobody could tell what comes next.
            reusable: self.reader.reusable() && self.written_bytes == self.request_bytes,
            surplus: extra > 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Contract;

    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n";

    /// Wherever the last response broke off, the head of the next one has to be seen.
    #[test]
    fn a_connection_that_is_opened_anew_throws_nothing_away() {
        let mut connection = Connection::new(1, false);
        for at_ns in [0, 10] {
            connection.open(at_ns);
            connection.opened();
            assert_eq!(connection.skippable(), 0, "opened at {at_ns} ns");
            connection.begin(at_ns, None);
            assert_eq!(connection.skippable(), 0);
            let heard = connection.received(at_ns + 1, HEAD, &mut Check::new(Contract::default()));
            assert_eq!((heard, connection.skippable()), (Heard::More, 300_001));
            connection.close(at_ns + 2);
        }
    }
}
