//! What to load, with what, and what counts as a good answer: the caller's side of the engine.
//!
//! Plain data. It must not open, resolve or measure anything.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::Duration;

use crate::Values;

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
        /// Requests due per second, over all threads; above 0 and at most 10 million.
        rate_per_s: f64,
        /// How they are spread in time.
        process: Process,
        /// Decides the times of [`Process::Poisson`]; without effect for others.
        seed: u64,
    },
}

/// How arrivals are spread in time. `src/pacer.rs` has the formulas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Process {
    /// Evenly: one every 1 / rate, the first at the start of the window.
    Constant,
    /// At random and independent of each other, as from many users: gaps are exponential with mean 1 / rate.
    Poisson,
}

/// An HTTP/1.1 request, or with [`values`](Self::values) one for each row of them. Rendered before the load, not
/// during it.
///
/// `Host`, `User-Agent` and, where there is a body or the method usually has one, `Content-Length` are added unless
/// `headers` has them.
///
/// Where `values` are given, `{column}` in the path, in a header's value or in the body stands for the row's value of
/// that column, and a brace that is meant as one is doubled: `{{` is `{` and `}}` is `}`. Without values every text
/// is sent as it is, byte for byte. A value cannot break out of its place:
///
/// - Path and query: letters, digits and `-` `.` `_` `~` stay (RFC 3986, section 2.3), each other byte of its UTF-8
///   becomes `%XX`. `a b/ü` is sent as `a%20b%2F%C3%BC`.
/// - A header's value: as it is. A control character other than the tab is refused.
/// - A body where `Content-Type` is JSON, which is where the media type ends in `json`: escaped as inside of a JSON
///   string, without quotes around it, so that the template decides between a string and a number.
/// - Any other body: as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What reports call it, unlike every other request's of a load. Empty: method and path.
    pub name: String,
    /// How often it is sent compared with the other requests of a load: one of weight 3 three times as often as one of
    /// weight 1. At least 1.
    pub weight: u32,
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
    /// What the placeholders stand for; each time a row is drawn at random. A request without placeholders is the
    /// same for all rows.
    pub values: Option<Values>,
}

impl Request {
    /// What reports call it: its name, or `METHOD path` where it has none.
    pub fn title(&self) -> Cow<'_, str> {
        match self.name.as_str() {
            "" => Cow::Owned(format!("{} {}", self.method, self.path)),
            name => Cow::Borrowed(name),
        }
    }
}

/// `GET /` of no host.
impl Default for Request {
    fn default() -> Request {
        Request {
            name: String::new(),
            weight: 1,
            method: "GET".into(),
            path: "/".into(),
            headers: Vec::new(),
            body: Vec::new(),
            host: String::new(),
            values: None,
        }
    }
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
