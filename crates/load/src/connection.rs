//! One connection as a state machine. It receives times and bytes, records the results of its requests, and
//! returns the next action.
//!
//! ```text
//!            open             connected            secured
//!   Closed ───────► Connecting ────────► Securing ────────► Open ◄─► requests in flight, up to the protocol's limit
//!     ▲                 │                   │    LoggingIn ──▲ │
//!     └──── close ──────┴───────────────────┴────────┴─────────┘
//!
//!   bytes of the socket ◄──► Tls (where there is one) ◄──► Session (HTTP/1.1 or HTTP/2) ◄──► requests
//! ```
//! Without TLS and with HTTP/1.1, `Securing` takes no time. `LoggingIn` is for users who are not logged in
//! yet. This module does no I/O and reads no clock. The [`Worker`](crate::worker::Worker) chooses the
//! requests and their times, and a driver moves the bytes.

use std::task::Poll;

use model::{Cause, Phase};
use rustls::HandshakeKind;

use crate::arena::RequestArena;
use crate::in_flight::InFlight;
use crate::protocol::{self, ConnectionEffect, Session};
use crate::recorder::Recorder;
use crate::settings::WorkerSettings;
use crate::tls::{TlsError, TlsSession};

/// Delay after the first failure to connect.
const BACKOFF_FIRST_NS: u64 = 10_000_000;
/// Maximum delay after repeated failures.
const BACKOFF_LAST_NS: u64 = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No socket. May be opened from this time on.
    Closed {
        retry_ns: u64,
    },
    Connecting,
    /// Handshake since this time: [`Phase::Tls`], or [`Phase::Connect`] for HTTP/2's settings.
    Securing {
        since_ns: u64,
        phase: Phase,
    },
    LoggingIn,
    /// Ready for requests.
    Open,
}

pub(crate) struct Connection {
    pub(crate) stage: Stage,
    /// The protocol session. Idle until the connection opens for the first time.
    session: Box<dyn Session>,
    tls: Option<Box<TlsSession>>,
    /// A request that began with its connection, until the connection is open.
    early: Option<InFlight>,
    /// Delay after the next failure. 0 after a response.
    backoff_ns: u64,
    /// Start of the last connection attempt.
    opening_ns: u64,
    opened_before: bool,
}

impl Connection {
    pub(crate) fn new(settings: &WorkerSettings) -> Connection {
        Connection {
            stage: Stage::Closed { retry_ns: 0 },
            session: protocol::begin(settings.protocol, settings.tls.is_some()),
            tls: None,
            early: None,
            backoff_ns: 0,
            opening_ns: 0,
            opened_before: false,
        }
    }

    /// Number of requests that can begin now. A request that opens its own connection begins on a closed one.
    pub(crate) fn room(&self, now_ns: u64, settings: &WorkerSettings) -> usize {
        match self.stage {
            Stage::Open if settings.fresh => 0,
            Stage::Open => self.session.room(),
            Stage::Closed { retry_ns } => {
                usize::from(settings.fresh && retry_ns <= now_ns && self.early.is_none())
            }
            Stage::Connecting | Stage::Securing { .. } | Stage::LoggingIn => 0,
        }
    }

    fn carries_requests(&self) -> bool {
        matches!(self.stage, Stage::LoggingIn | Stage::Open)
    }

    /// Whether a request is in flight.
    pub(crate) fn is_busy(&self) -> bool {
        self.early.is_some() || self.session.in_flight() > 0
    }

    pub(crate) fn due_ns(&self, settings: &WorkerSettings) -> Option<u64> {
        match self.stage {
            Stage::Closed { retry_ns } if settings.fresh => (retry_ns > 0).then_some(retry_ns),
            Stage::Closed { retry_ns } => Some(retry_ns),
            Stage::Connecting | Stage::Securing { .. } => {
                // A request that begins with its connection has the same timeout as others.
                let early_ns = self
                    .early
                    .as_ref()
                    .map_or(u64::MAX, |early| early.sent_ns + settings.timeout_ns);
                Some(early_ns.min(self.opening_ns + settings.connect_timeout_ns))
            }
            Stage::Open | Stage::LoggingIn => self.session.due_ns(settings),
        }
    }

    /// Records that a socket is being connected.
    pub(crate) fn open(&mut self, now_ns: u64) {
        debug_assert!(matches!(self.stage, Stage::Closed { .. }));
        self.stage = Stage::Connecting;
        self.opening_ns = now_ns;
    }

    pub(crate) fn connected(&mut self, recorder: &mut Recorder<'_>) -> ConnectionEffect {
        if self.stage != Stage::Connecting {
            return ConnectionEffect::None;
        }
        recorder
            .tally
            .counts
            .connect
            .record(recorder.now_ns - self.opening_ns);
        match &recorder.settings.tls {
            Some(tls) => {
                self.stage = Stage::Securing {
                    since_ns: recorder.now_ns,
                    phase: Phase::Tls,
                };
                match TlsSession::new(tls) {
                    Ok(tls) => self.tls = Some(Box::new(tls)),
                    Err(error) => return self.tls_failed(error, recorder),
                }
                ConnectionEffect::Free
            }
            None => self.speak(recorder),
        }
    }

    /// Starts the protocol session once the transport is ready.
    fn speak(&mut self, recorder: &mut Recorder<'_>) -> ConnectionEffect {
        let WorkerSettings { protocol, tls, .. } = recorder.settings;
        self.session = protocol::begin(*protocol, tls.is_some());
        if self.session.handshake() == Poll::Ready(Ok(())) {
            return self.log_in(recorder);
        }
        self.stage = Stage::Securing {
            since_ns: recorder.now_ns,
            phase: Phase::Connect,
        };
        ConnectionEffect::Free
    }

    /// Starts the user's log-in once the protocol is ready.
    fn log_in(&mut self, recorder: &mut Recorder<'_>) -> ConnectionEffect {
        let arena = &recorder.settings.arena;
        let Some((choice, own)) = recorder.user.as_ref().and_then(|user| user.log_in(arena)) else {
            return self.secured(recorder);
        };
        self.stage = Stage::LoggingIn;
        *recorder.in_flight += 1;
        recorder
            .tally
            .silence
            .begin(choice.endpoint, recorder.now_ns);
        let request = InFlight::new(choice, recorder.now_ns, Some(recorder.now_ns));
        self.session.begin(
            InFlight {
                own: Some(own),
                ..request
            },
            arena,
        );
        ConnectionEffect::Free
    }

    /// Marks the connection as ready for requests.
    fn secured(&mut self, recorder: &mut Recorder<'_>) -> ConnectionEffect {
        self.stage = Stage::Open;
        recorder.tally.counts.connections_opened += 1;
        recorder.tally.counts.reconnects +=
            u64::from(std::mem::replace(&mut self.opened_before, true));
        if let Some(request) = self.early.take() {
            self.session.begin(request, &recorder.settings.arena);
        }
        ConnectionEffect::Free
    }

    pub(crate) fn begin(&mut self, request: InFlight, arena: &RequestArena) {
        match self.stage {
            Stage::Open => self.session.begin(request, arena),
            _ => self.early = Some(request),
        }
    }

    pub(crate) fn output<'a>(&'a self, arena: &'a RequestArena) -> Option<&'a [u8]> {
        match (&self.tls, self.stage) {
            (Some(tls), _) => tls.output(),
            (None, Stage::Securing { .. } | Stage::LoggingIn | Stage::Open) => {
                self.session.output(arena)
            }
            (None, _) => None,
        }
    }

    pub(crate) fn wrote(&mut self, count: usize, arena: &RequestArena) {
        match &mut self.tls {
            Some(tls) => {
                tls.wrote(count);
                self.flush(arena);
            }
            None => self.session.wrote(count, arena),
        }
    }

    pub(crate) fn unwrote(&mut self) {
        self.session.unwrote();
    }

    pub(crate) fn skippable(&self) -> u64 {
        if self.tls.is_none() {
            self.session.skippable()
        } else {
            0
        }
    }

    pub(crate) fn received(
        &mut self,
        bytes: &mut [u8],
        recorder: &mut Recorder<'_>,
    ) -> ConnectionEffect {
        let Some(mut tls) = self.tls.take() else {
            return self.read(bytes, recorder);
        };
        let effect = self.decrypt(&mut tls, bytes, recorder);
        self.tls = Some(tls);
        effect
    }

    /// Passes bytes to the protocol session.
    fn read(&mut self, bytes: &[u8], recorder: &mut Recorder<'_>) -> ConnectionEffect {
        let effect = self.session.received(bytes, recorder);
        self.noted(effect, recorder)
    }

    /// Applies the effect of received bytes, which may end the handshake or reset the backoff.
    fn noted(&mut self, effect: ConnectionEffect, recorder: &mut Recorder<'_>) -> ConnectionEffect {
        // Otherwise a log-in of several steps that fails at the last one would be retried at once.
        if recorder.has_response && self.stage != Stage::LoggingIn {
            self.backoff_ns = 0;
            if recorder.settings.fresh {
                return ConnectionEffect::Lost;
            }
        }
        if recorder.settings.fresh && self.stage == Stage::Open && !self.is_busy() {
            // The only request of this connection has ended.
            return ConnectionEffect::Lost;
        }
        match (self.stage, effect, self.session.handshake()) {
            (Stage::Securing { .. }, _, Poll::Ready(Err(cause))) => self.failed(cause, recorder),
            (Stage::Securing { .. }, ConnectionEffect::Lost, _) => {
                self.failed(Cause::ClosedEarly, recorder)
            }
            (Stage::Securing { .. }, _, Poll::Ready(Ok(()))) => self.log_in(recorder),
            (Stage::LoggingIn, ConnectionEffect::None | ConnectionEffect::Free, _)
                if !self.is_busy() =>
            {
                // After a failed log-in the connection is reopened with the usual backoff.
                if recorder.has_response {
                    self.log_in(recorder)
                } else {
                    ConnectionEffect::Lost
                }
            }
            _ => effect,
        }
    }

    pub(crate) fn skipped(&mut self, count: u64, recorder: &mut Recorder<'_>) -> ConnectionEffect {
        let effect = self.session.skipped(count, recorder);
        self.noted(effect, recorder)
    }

    pub(crate) fn ended(&mut self, recorder: &mut Recorder<'_>) -> ConnectionEffect {
        if !self.carries_requests() {
            return self.failed(Cause::ClosedEarly, recorder);
        }
        // While TLS decrypts an announced end, `self.tls` is taken out. If it is present, the end was cut off.
        let effect = self.session.ended(self.tls.is_some(), recorder);
        self.noted(effect, recorder)
    }

    /// Handles a socket error or a connect timeout.
    pub(crate) fn failed(&mut self, cause: Cause, recorder: &mut Recorder<'_>) -> ConnectionEffect {
        let phase = match self.stage {
            Stage::Open | Stage::LoggingIn => {
                self.session.failed(cause, recorder);
                return ConnectionEffect::Lost;
            }
            Stage::Connecting => Phase::Connect,
            Stage::Securing { phase, .. } => phase,
            Stage::Closed { .. } => Phase::Idle,
        };
        match self.early.take() {
            Some(request) => recorder.fail(&request, phase, cause),
            None => recorder.tally.error(phase, cause),
        }
        ConnectionEffect::Lost
    }

    /// Handles the timeout of the oldest request or of connecting.
    pub(crate) fn expired(&mut self, recorder: &mut Recorder<'_>) -> ConnectionEffect {
        if !self.carries_requests() {
            return self.failed(Cause::Timeout, recorder);
        }
        let effect = self.session.expired(recorder);
        self.noted(effect, recorder)
    }

    /// Ends the slice: requests in flight are recorded as unfinished. Returns whether there were any.
    pub(crate) fn leave(&mut self, recorder: &mut Recorder<'_>) -> bool {
        let busy = self.is_busy();
        if let Some(request) = self.early.take() {
            recorder.leave_unfinished(&request);
        }
        self.session.leave(recorder);
        busy
    }

    /// Handles the loss of the socket. A connection that has received a response may be reopened at once. If
    /// that fails, or the new connection receives no response, the delay doubles from 10 ms to 1 s.
    pub(crate) fn close(&mut self, now_ns: u64) {
        if matches!(self.stage, Stage::Connecting | Stage::Securing { .. }) {
            self.backoff_ns = self.backoff_ns.max(BACKOFF_FIRST_NS);
        }
        self.stage = Stage::Closed {
            retry_ns: now_ns + self.backoff_ns,
        };
        self.backoff_ns = (self.backoff_ns * 2).clamp(BACKOFF_FIRST_NS, BACKOFF_LAST_NS);
        self.tls = None;
    }

    /// Keeps a closed connection closed until the given time.
    pub(crate) fn rest_until(&mut self, retry_ns: u64) {
        debug_assert!(matches!(self.stage, Stage::Closed { .. }));
        self.stage = Stage::Closed { retry_ns };
    }

    /// Closes the connection without a failure, because the engine no longer needs the socket. The next
    /// attempt may come at once.
    pub(crate) fn abandon(&mut self) {
        self.stage = Stage::Closed { retry_ns: 0 };
        self.backoff_ns = 0;
        self.tls = None;
    }

    // TLS below the protocol: received bytes are decrypted, bytes to be written are encrypted. This part does
    // not depend on the protocol.

    fn decrypt(
        &mut self,
        tls: &mut TlsSession,
        bytes: &mut [u8],
        recorder: &mut Recorder<'_>,
    ) -> ConnectionEffect {
        let securing = tls.session.is_handshaking();
        let (mut effect, mut early) = (ConnectionEffect::Free, Vec::new());
        // Bytes before an error are processed, regardless of how the bytes were split.
        let received = tls.received(bytes, |plain| {
            match securing {
                true => early.extend_from_slice(plain),
                false => effect = self.read(plain, recorder),
            }
            effect != ConnectionEffect::Lost
        });
        if securing && !tls.session.is_handshaking() {
            let row = protocol::row(recorder.settings.protocol);
            if row.needs_alpn && tls.session.alpn_protocol() != Some(row.alpn.as_bytes()) {
                let text = format!("the server does not offer {} (ALPN)", row.name);
                return self.tls_failed(
                    TlsError {
                        cause: Cause::Tls,
                        text,
                    },
                    recorder,
                );
            }
            if let Stage::Securing { since_ns, .. } = self.stage {
                // The handshake resumed an earlier session, which saves both sides most of the work.
                let is_resumed = tls.session.handshake_kind() == Some(HandshakeKind::Resumed);
                recorder
                    .tally
                    .counts
                    .handshake
                    .record(recorder.now_ns - since_ns);
                recorder.tally.counts.tls_resumed += u64::from(is_resumed);
            }
            let _ = self.speak(recorder);
            if !early.is_empty() {
                effect = self.read(&early, recorder);
            }
        }
        if effect == ConnectionEffect::Lost {
            return effect;
        }
        if let Err(error) = received {
            return self.tls_failed(error, recorder);
        }
        if tls.ended {
            return self.ended(recorder);
        }
        // A response of the handshake or of the protocol may be waiting to be written.
        ConnectionEffect::Free
    }

    /// Prepares pending output. Must be called before [`output`](Self::output) when a request has begun or
    /// bytes were received.
    ///
    /// With TLS, a limited part is encrypted at a time, and the rest follows once that is written. So a
    /// request counts as written only when it is, and a long one is not buffered twice.
    pub(crate) fn flush(&mut self, arena: &RequestArena) {
        let Some(tls) = &mut self.tls else { return };
        if !tls.session.is_handshaking() && tls.output().is_none() {
            while let Some(bytes) = self.session.output(arena) {
                let count = tls.write(bytes);
                if count == 0 {
                    break;
                }
                self.session.wrote(count, arena);
            }
        }
    }

    fn tls_failed(&mut self, error: TlsError, recorder: &mut Recorder<'_>) -> ConnectionEffect {
        recorder.tally.counts.tls_error.get_or_insert(error.text);
        self.failed(error.cause, recorder)
    }
}

#[cfg(test)]
mod tests;
