//! What to load, with what, and what counts as a successful response: the caller's side of the engine.
//!
//! Plain data. It must not open, resolve or measure anything.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use model::{Contract, Process, Protocol, ResponseField, SAMPLE_EVERY, Think};
use serde::{Deserialize, Serialize};

use crate::{Rate, Values};

/// Everything a [`Generator`](crate::Generator) needs to know; fixed for its life.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadSpec {
    /// Where the service listens.
    pub address: Address,
    /// Local addresses, used in turn by the connections; empty: the kernel chooses. TCP only.
    pub sources: Vec<IpAddr>,
    /// TLS below HTTP.
    pub tls: Option<Tls>,
    /// What is spoken.
    pub protocol: Protocol,
    /// False: each request opens a connection of its own, which is closed after the response. It then begins with connecting, so
    /// that its latency contains that.
    pub keep_alive: bool,
    /// The requests that are sent, each as often as its weight says.
    pub requests: Vec<Request>,
    /// What makes a user of each connection.
    #[serde(default)]
    pub users: Users,
    /// Decides which of several requests is sent when.
    pub seed: u64,
    /// When requests are sent.
    pub arrivals: Arrivals,
    /// Connections kept open; how many requests each takes at once is the protocol's matter. Connection `c` belongs to thread `c % threads`.
    pub connections: u32,
    /// Engine threads; at most one for each connection.
    pub threads: u32,
    /// Which part of a larger load this is; `None`: it is all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes: Option<Lanes>,
    /// Thread `t` is pinned to `cpus[t % cpus.len()]`; empty: not pinned.
    pub cpus: Vec<usize>,
    /// The longest a request may take from sent to done.
    pub timeout: Duration,
    /// The longest a connection may take to open, TLS and HTTP/2's settings included, and the longest a slice waits for its
    /// connections, which are opened within a second; where users log in it waits a [`timeout`](Self::timeout) more.
    pub connect_timeout: Duration,
    /// What a response must be to count as good, unless its request has a contract of its own.
    pub contract: Contract,
    /// One good response in so many, from each thread's first in a slice on, is read in full, its content decoded and hashed; 0: none. Slices
    /// of less than a quarter of a second start over together, once they have lasted so long.
    /// It is the engine's thread that does so (134 KB cost 0.2 ms, a compressed megabyte 5 ms), and other responses of that thread wait
    /// meanwhile: sample seldom where the tail of the latencies is what matters.
    pub sample_every: u64,
    /// What moves the bytes.
    pub driver: DriverChoice,
}

impl LoadSpec {
    /// Requests to an address in closed loop on one connection by one thread, everything else as it usually is: HTTP/1.1 without
    /// TLS and pipelining, connections kept, 5 s for a request or for connecting, any 2xx is good.
    pub fn new(address: Address, requests: Vec<Request>) -> LoadSpec {
        LoadSpec {
            address,
            sources: Vec::new(),
            tls: None,
            protocol: Protocol::default(),
            keep_alive: true,
            requests,
            users: Users::default(),
            seed: 1,
            arrivals: Arrivals::Closed,
            connections: 1,
            threads: 1,
            lanes: None,
            cpus: Vec::new(),
            timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(5),
            contract: Contract::default(),
            sample_every: SAMPLE_EVERY,
            driver: DriverChoice::Auto,
        }
    }

    /// Its requests, and then those that users send first.
    pub(crate) fn all_requests(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().chain(self.users.first.iter().map(|first| &first.request))
    }
}

/// What a user does, and has of its own, where each connection is one. One that is opened anew is the same user's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Users {
    /// Requests that each user sends before all others, in this order. They are in no count but that of log-ins unless they fail: then a
    /// request has failed, and the user begins with the first again. Of one with values each user has a row of its own.
    pub first: Vec<First>,
    /// Whether it keeps the cookies that responses set, and sends them.
    pub cookies: bool,
    /// How long it waits between a response and the next request; closed loop only.
    pub think: Option<Think>,
}

/// A request that a user sends before all others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct First {
    /// It; its weight means nothing.
    pub request: Request,
    /// What is taken from its response, by the name that stands in braces in later requests, as that of a column does.
    pub capture: Vec<(String, ResponseField)>,
}

/// The place of a generator's threads among those of all generators of one load.
///
/// A load is dealt to lanes, and a lane is an engine thread, wherever it runs: arrivals and requests of so many lanes are the same
/// whether they are one machine's threads or those of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lanes {
    /// The lane of this generator's first thread, from 0; the others follow.
    pub first: u32,
    /// Lanes of all generators together.
    pub of: u32,
}

/// Where a service listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Address {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// TLS 1.3 or 1.2 below HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tls {
    /// The name the server's certificate has to be for, also sent as SNI unless it is an IP address.
    pub server_name: String,
    /// Which certificates are trusted.
    pub trust: Trust,
    /// Whether a new connection may take up the session of an earlier one of its thread.
    pub resumption: bool,
    /// Sent to a server that asks for a client certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientCertificate>,
}

/// A client certificate and its private key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCertificate {
    /// The certificate, and those that lead to its authority, in PEM.
    #[serde(with = "as_base64")]
    pub chain: Vec<u8>,
    /// The private key in PEM, not encrypted.
    #[serde(with = "as_base64")]
    pub key: Vec<u8>,
}

impl fmt::Debug for ClientCertificate {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate").finish_non_exhaustive()
    }
}

/// Which certificates are trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Those of the authorities that this system trusts.
    System,
    /// Those of these authorities alone: certificates in PEM.
    Authorities(#[serde(with = "as_base64")] Vec<u8>),
    /// Any at all: nobody is who he says.
    Anything,
}

/// What moves the bytes of a load: two ways of the kernel for the same work. The slice names the one that did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
        /// How they are spread in time. `src/pacer.rs` has the formulas.
        process: Process,
        /// Decides the times of [`Process::Poisson`]; without effect for others.
        seed: u64,
    },
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    #[serde(with = "as_base64")]
    pub body: Vec<u8>,
    /// The value of the `Host` header.
    pub host: String,
    /// What the placeholders stand for; each time a row is drawn at random. A request without placeholders is the
    /// same for all rows.
    pub values: Option<Values>,
    /// What its responses must be, where that is not what those of all others must be.
    pub contract: Option<Contract>,
}

impl Request {
    /// A request without headers of its own and without a body.
    pub fn new(method: &str, path: &str, host: &str) -> Request {
        Request { method: method.into(), path: path.into(), host: host.into(), ..Request::default() }
    }

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
            contract: None,
        }
    }
}

/// Bytes that need not be text, in JSON: base64 as in RFC 4648, section 4.
mod as_base64 {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        STANDARD.decode(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
