//! What to load, with what, and what counts as a good answer: the caller's side of the engine.
//!
//! Plain data. It must not open, resolve or measure anything.

use std::net::SocketAddr;
use std::time::Duration;

use crate::Rate;

/// Everything a [`Generator`](crate::Generator) needs to know; fixed for its life.
#[derive(Debug, Clone)]
pub struct LoadSpec {
    /// Where the service listens.
    pub address: SocketAddr,
    /// The one request that is sent again and again.
    pub request: Request,
    /// When requests are sent.
    pub arrivals: Arrivals,
    /// Connections kept open, each with at most one request in flight. Connection `c` belongs to thread `c % threads`.
    pub connections: u32,
    /// Engine threads; at most one for each connection.
    pub threads: u32,
    /// Thread `t` is pinned to `cpus[t % cpus.len()]`; empty: not pinned.
    pub cpus: Vec<usize>,
    /// The longest a request may take from sent to done.
    pub timeout: Duration,
    /// The longest a connection may take to open, and the longest a slice waits for its connections.
    pub connect_timeout: Duration,
    /// What a response must be to count as good.
    pub contract: Contract,
    /// What moves the bytes.
    pub driver: DriverChoice,
}

/// What moves the bytes of a load: two ways of the kernel for the same work. The slice names the one that did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DriverChoice {
    /// The one that costs less: completion where the kernel allows it, for it was cheaper or equal at every body size and
    /// number of connections that was measured.
    #[default]
    Auto,
    /// epoll.
    Readiness,
    /// io_uring; epoll where the kernel refuses it (`kernel.io_uring_disabled`, a container's filter) or is older than
    /// Linux 6.12.
    Completion,
}

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrivals {
    /// Closed loop: each connection sends its next request when the last one is done. Measures capacity.
    Closed,
    /// Open loop: requests are due at times fixed beforehand, whether or not the service keeps up. Measures latency.
    ///
    /// A request that is due while no connection is free waits for one, in the order of arrival, and its response time
    /// counts from when it was due. Arrivals are dealt to threads: one that is due waits for a connection of its own
    /// thread even if another thread has a free one, so that threads should not be more than the rate needs.
    Open {
        /// Requests due per second, over all threads.
        rate: Rate,
        /// How they are spread in time.
        process: Process,
        /// Decides the times of [`Process::Poisson`]; without effect for others.
        seed: u64,
    },
}

/// How arrivals are spread in time. `src/pacer.rs` has the formulas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Process {
    /// Evenly: one every 1 / rate, the first at the start of the window. Where the rate changes, arrival k comes when k were
    /// due.
    Constant,
    /// At random and independent of each other, as from many users: gaps are exponential with mean 1 / rate. Where the rate
    /// changes, a Poisson process that changes with it.
    Poisson,
}

/// An HTTP/1.1 request; it is rendered once.
///
/// `Host`, `User-Agent` and, where there is a body or the method usually has one, `Content-Length` are added unless
/// `headers` has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method, in upper case as it is sent.
    pub method: String,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// Header names and values, sent in this order.
    pub headers: Vec<(String, String)>,
    /// The body; may be empty.
    pub body: Vec<u8>,
    /// The value of the `Host` header.
    pub host: String,
}

/// What a response must be to count as good ("ok"). The default accepts any 2xx.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contract {
    /// The accepted status codes; empty: any 2xx.
    pub status: Vec<u16>,
    /// For each header name the accepted values, compared without regard to case. No value at all: the header must
    /// be there. An empty string among the values: it may be absent.
    pub headers: Vec<(String, Vec<String>)>,
    /// The length of the content (after removal of the chunked coding, before that of a content coding), in bytes.
    pub body_bytes: Option<u64>,
}

/// How long a slice sends. In open loop: which arrivals belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// For this long; what is in flight then is drained. Open loop: what was due by then and found no connection is
    /// still sent while the drain lasts.
    Elapsed(Duration),
    /// Exactly this many requests; the slice lasts until the last of them has ended.
    Requests(u64),
}
