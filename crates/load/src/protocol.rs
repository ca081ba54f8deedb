//! What speaks on an open connection: the trait that every protocol implements, and one row of facts for each of them.
//!
//! A new protocol is a module here, its variant of [`Protocol`] and its [`Row`]. It does no I/O and reads no clock: it is fed times
//! and bytes, and the [`Connection`](crate::connection::Connection) that owns it knows of sockets and TLS.

mod http1;
pub(crate) mod http2;

use std::task::Poll;

use model::Cause;

use crate::Protocol;
use crate::arena::RequestArena;
use crate::connection::{Effect, InFlight, Recorder};
use crate::worker::Settings;

/// A protocol on one connection, from when bytes can be exchanged until the connection is lost.
pub(crate) trait Session {
    /// Whether requests can be sent, as far as there is [`room`](Self::room), or will not be. Where the protocol does not shake hands, at once.
    fn handshake(&self) -> Poll<Result<(), Cause>> {
        Poll::Ready(Ok(()))
    }

    /// Requests that can begin now.
    fn room(&self) -> usize;

    /// Requests that have begun and not ended.
    fn in_flight(&self) -> usize;

    /// When the time of whatever it waits for is up.
    fn due_ns(&self, settings: &Settings) -> Option<u64>;

    /// A request begins. What is to be written follows by [`output`](Self::output).
    fn begin(&mut self, request: InFlight, arena: &RequestArena);

    /// What is to be written next, if anything.
    fn output<'a>(&'a self, arena: &'a RequestArena) -> Option<&'a [u8]>;

    /// So many bytes of the output were written: all of them or a part.
    fn wrote(&mut self, count: usize, arena: &RequestArena);

    /// The last piece, which was the rest of the only request, was not written after all. Only where the protocol writes requests as they
    /// were rendered ([`Row::writes_rendered`]).
    fn unwrote(&mut self) {}

    /// How many of the next bytes the kernel may throw away; 0: they must be read.
    fn skippable(&self) -> u64 {
        0
    }

    /// So many bytes were thrown away, at most [`skippable`](Self::skippable).
    fn skipped(&mut self, _count: u64, _recorder: &mut Recorder<'_>) -> Effect {
        Effect::Lost
    }

    /// Bytes have arrived.
    fn received(&mut self, bytes: &[u8], recorder: &mut Recorder<'_>) -> Effect;

    /// The peer has ended the connection; `cut`: below TLS, which did not announce it, so that anybody may have done it (RFC 9112,
    /// section 9.8).
    fn ended(&mut self, cut: bool, recorder: &mut Recorder<'_>) -> Effect;

    /// The socket has failed: nothing more will come.
    fn failed(&mut self, cause: Cause, recorder: &mut Recorder<'_>);

    /// The time of [`due_ns`](Self::due_ns) is up.
    fn expired(&mut self, recorder: &mut Recorder<'_>) -> Effect;

    /// The slice is over: whatever is in flight is recorded as unfinished.
    fn leave(&mut self, recorder: &mut Recorder<'_>);
}

/// What the engine has to know of a protocol before a connection is open.
pub(crate) struct Row {
    /// As people call it.
    pub(crate) name: &'static str,
    /// As ALPN names it.
    pub(crate) alpn: &'static str,
    /// Whether a server over TLS must have chosen it by ALPN.
    pub(crate) needs_alpn: bool,
    /// Whether requests are written byte for byte as the arena has them.
    pub(crate) writes_rendered: bool,
    /// The field of a spec that says how many requests a connection has in flight, and what these are called.
    pub(crate) lanes: (&'static str, &'static str),
    /// Whether a request of the arena can be sent.
    pub(crate) has_form: fn(&[u8]) -> bool,
    /// Begins on a connection, with at most so many requests in flight; the flag: over TLS.
    pub(crate) begin: fn(usize, bool) -> Box<dyn Session>,
}

pub(crate) fn row(protocol: Protocol) -> &'static Row {
    match protocol {
        Protocol::Http1 { .. } => &http1::ROW,
        Protocol::Http2 { .. } => &http2::ROW,
    }
}

pub(crate) fn begin(protocol: Protocol, tls: bool) -> Box<dyn Session> {
    (row(protocol).begin)(protocol.lanes() as usize, tls)
}
