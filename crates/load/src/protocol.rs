//! Protocols on an open connection: the trait that each implements, and one row of facts for each.
//!
//! A new protocol is a module here, its variant of [`Protocol`] and its [`Row`]. It does no I/O and reads no
//! clock. It receives times and bytes, and the [`Connection`](crate::connection::Connection) that owns it
//! handles sockets and TLS.

mod http1;
pub(crate) mod http2;

use std::sync::Arc;
use std::task::Poll;

use model::Cause;

use crate::Protocol;
use crate::arena::RequestArena;
use crate::in_flight::InFlight;
use crate::recorder::Recorder;
use crate::settings::WorkerSettings;
use crate::user::UserSettings;

/// The effect of received bytes, an end or an error on the connection. Request results are already recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum ConnectionEffect {
    /// No change.
    None,
    /// There may be room for another request, or something to write.
    Free,
    /// The connection is no longer usable.
    Lost,
}

/// Whether only the arena's bytes are ever written and each connection has one request in flight.
pub(crate) fn is_plain(settings: &WorkerSettings) -> bool {
    // Bytes rendered for a user live only as long as their request, but the kernel may read them later.
    let makes = |of: &Arc<UserSettings>| of.users.cookies || !of.users.first.is_empty();
    let is_shared = !settings.users.as_ref().is_some_and(makes);
    let protocol = settings.protocol;
    row(protocol).writes_rendered && protocol.lanes() == 1 && settings.tls.is_none() && is_shared
}

/// A protocol session on one connection, from when bytes can be exchanged until the connection is lost.
pub(crate) trait Session {
    /// Whether requests can be sent as far as there is [`room`](Self::room). Ready at once if the protocol
    /// has no handshake.
    fn handshake(&self) -> Poll<Result<(), Cause>> {
        Poll::Ready(Ok(()))
    }

    /// Number of requests that can begin now.
    fn room(&self) -> usize;

    /// Number of requests that have begun and not ended.
    fn in_flight(&self) -> usize;

    /// Time limit of what the session waits for.
    fn due_ns(&self, settings: &WorkerSettings) -> Option<u64>;

    /// Begins a request. [`output`](Self::output) then returns its bytes.
    fn begin(&mut self, request: InFlight, arena: &RequestArena);

    /// The next bytes to be written, if any.
    fn output<'a>(&'a self, arena: &'a RequestArena) -> Option<&'a [u8]>;

    /// Records that `count` bytes of the output were written: all of them or a part.
    fn wrote(&mut self, count: usize, arena: &RequestArena);

    /// Reverts the last write, which was the rest of the only request. Only if the protocol writes requests
    /// as rendered ([`Row::writes_rendered`]).
    fn unwrote(&mut self) {}

    /// Number of next bytes that the kernel may discard. 0 means they must be read.
    fn skippable(&self) -> u64 {
        0
    }

    /// Records discarded bytes, at most [`skippable`](Self::skippable).
    fn skipped(&mut self, _count: u64, _recorder: &mut Recorder<'_>) -> ConnectionEffect {
        ConnectionEffect::Lost
    }

    /// Handles received bytes.
    fn received(&mut self, bytes: &[u8], recorder: &mut Recorder<'_>) -> ConnectionEffect;

    /// Handles the end of the connection by the peer. `cut` means that TLS did not announce it, so anyone may
    /// have caused it (RFC 9112, section 9.8).
    fn ended(&mut self, cut: bool, recorder: &mut Recorder<'_>) -> ConnectionEffect;

    /// Handles a socket failure: nothing more will arrive.
    fn failed(&mut self, cause: Cause, recorder: &mut Recorder<'_>);

    /// Handles the expiry of [`due_ns`](Self::due_ns).
    fn expired(&mut self, recorder: &mut Recorder<'_>) -> ConnectionEffect;

    /// Ends the slice: requests in flight are recorded as unfinished.
    fn leave(&mut self, recorder: &mut Recorder<'_>);
}

/// Facts about a protocol that are needed before a connection is open.
pub(crate) struct ProtocolRow {
    /// The name for messages.
    pub(crate) name: &'static str,
    /// The name in ALPN.
    pub(crate) alpn: &'static str,
    /// Whether a server over TLS must have chosen it by ALPN.
    pub(crate) needs_alpn: bool,
    /// Whether requests are written byte for byte as in the arena.
    pub(crate) writes_rendered: bool,
    /// The field of a spec with the number of requests in flight per connection, and the name for these.
    pub(crate) lanes: (&'static str, &'static str),
    /// Whether a request of the arena can be sent.
    pub(crate) has_form: fn(&[u8]) -> bool,
    /// Begins a session with a maximum number of requests in flight. The flag means over TLS.
    pub(crate) begin: fn(usize, bool) -> Box<dyn Session>,
}

pub(crate) fn row(protocol: Protocol) -> &'static ProtocolRow {
    match protocol {
        Protocol::Http1 { .. } => &http1::ROW,
        Protocol::Http2 { .. } => &http2::ROW,
    }
}

pub(crate) fn begin(protocol: Protocol, tls: bool) -> Box<dyn Session> {
    (row(protocol).begin)(protocol.lanes() as usize, tls)
}
