//! What can go wrong with a connection or a request: in which phase, and for which cause.
//!
//! Every error is counted under one pair of them; nothing here decides what happens next.

use std::fmt;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// What a connection was doing when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Opening the connection. No request is lost by it, unless each has a connection of its own.
    Connect,
    /// Agreeing on TLS, after the connection was opened. No request is lost by it.
    Tls,
    /// Writing the request.
    Send,
    /// The request was written, the response head was not complete.
    Head,
    /// The response head was complete, the body was not.
    Body,
    /// Between two requests. No request is lost by it.
    Idle,
}

/// Why it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Nobody listens there (`ECONNREFUSED`).
    Refused,
    /// The peer reset the connection (`ECONNRESET`, `EPIPE`).
    Reset,
    /// Longer than the spec allows, or the kernel gave up (`ETIMEDOUT`).
    Timeout,
    /// The peer ended an idle connection in good order.
    Closed,
    /// The peer ended the connection though a response was owed.
    ClosedEarly,
    /// What arrived is not a response, or follows one that nobody asked for.
    Malformed,
    /// The response head is longer than 64 KiB or has more than 128 lines.
    TooLarge,
    /// No free local port is left for this address (`EADDRNOTAVAIL`).
    AddressExhausted,
    /// No way to the address (`ENETUNREACH`, `EHOSTUNREACH`, `ENETDOWN`).
    Unreachable,
    /// The server's certificate is not trusted, or not for this name.
    Certificate,
    /// The peers could not agree on TLS, or what came was none.
    Tls,
    /// The server refused the stream without looking at the request (`REFUSED_STREAM`, or `GOAWAY` on its way).
    StreamRefused,
    /// The server reset the stream.
    StreamReset,
    /// The engine gave the connection up because of another request on it.
    Abandoned,
    /// Another error of the operating system, by its number.
    Other(i32),
}

/// How often one kind of error was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ErrorCount {
    /// What the connection was doing.
    pub phase: Phase,
    /// Why it failed.
    pub cause: Cause,
    /// How often.
    pub count: u64,
}

impl Phase {
    /// The name used in records: `connect`, `tls`, `send`, `head`, `body`, `idle`.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Connect => "connect",
            Phase::Tls => "tls",
            Phase::Send => "send",
            Phase::Head => "head",
            Phase::Body => "body",
            Phase::Idle => "idle",
        }
    }
}

impl Cause {
    /// The cause of an error of the operating system.
    pub(crate) fn of(errno: Errno) -> Cause {
        match errno {
            Errno::CONNREFUSED => Cause::Refused,
            Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED => Cause::Reset,
            Errno::TIMEDOUT => Cause::Timeout,
            Errno::ADDRNOTAVAIL => Cause::AddressExhausted,
            Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN => Cause::Unreachable,
            other => Cause::Other(other.raw_os_error()),
        }
    }

    /// The name used in records: `refused`, `closed-early` and so on; `os-error` for [`Cause::Other`].
    pub fn name(self) -> &'static str {
        match self {
            Cause::Refused => "refused",
            Cause::Reset => "reset",
            Cause::Timeout => "timeout",
            Cause::Closed => "closed",
            Cause::ClosedEarly => "closed-early",
            Cause::Malformed => "malformed",
            Cause::TooLarge => "too-large",
            Cause::AddressExhausted => "address-exhausted",
            Cause::Unreachable => "unreachable",
            Cause::Certificate => "certificate",
            Cause::Tls => "tls",
            Cause::StreamRefused => "stream-refused",
            Cause::StreamReset => "stream-reset",
            Cause::Abandoned => "abandoned",
            Cause::Other(_) => "os-error",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Other(errno) => write!(f, "os-error {errno}"),
            named => f.write_str(named.name()),
        }
    }
}
