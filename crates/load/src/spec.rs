//! The load's target, requests and success criteria: the caller's side of the engine.
//!
//! Plain data. This module opens, resolves and measures nothing.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use model::{ArrivalProcess, Contract, Protocol, ResponseField, SAMPLE_EVERY, Think};
use serde::{Deserialize, Serialize};

use crate::{Rate, Values};

/// The complete configuration of a [`Generator`](crate::Generator), fixed for its life.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadSpec {
    /// The address of the service.
    pub address: Address,
    /// Local addresses, used in turn by the connections. If empty, the kernel chooses. TCP only.
    pub sources: Vec<IpAddr>,
    /// TLS below HTTP.
    pub tls: Option<TlsSpec>,
    /// The protocol of the requests.
    pub protocol: Protocol,
    /// If false, each request opens its own connection, which is closed after the response. Its latency then
    /// includes connecting.
    pub keep_alive: bool,
    /// The requests that are sent, chosen by weight.
    pub requests: Vec<RequestSpec>,
    /// The behaviour of the user of each connection.
    pub users: Users,
    /// Determines the order of the requests.
    pub seed: u64,
    /// When requests are sent.
    pub arrivals: Arrivals,
    /// Number of connections kept open. The protocol limits the requests in flight on each. Connection `c`
    /// belongs to thread `c % threads`.
    pub connections: u32,
    /// Number of engine threads, at most one per connection.
    pub threads: u32,
    /// The part of a larger load that this spec describes. `None` means all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes: Option<Lanes>,
    /// Thread `t` is pinned to `cpus[t % cpus.len()]`. If empty, threads are not pinned.
    pub cpus: Vec<usize>,
    /// Timeout of a request, from sent to done.
    pub timeout: Duration,
    /// Timeout for opening a connection, including TLS and HTTP/2's settings. Also the maximum time that a slice
    /// waits for its connections, which are opened within a second. If users log in, it waits for another
    /// [`timeout`](Self::timeout).
    pub connect_timeout: Duration,
    /// The criteria for a good response, unless its request has its own contract.
    pub contract: Contract,
    /// One in n good responses is read in full, decoded and hashed, from each thread's first in a slice on. 0
    /// means none. Slices of less than a quarter of a second start over together once they have lasted that
    /// long in total. The engine's thread does this work (134 KB cost 0.2 ms, a compressed megabyte 5 ms),
    /// and other responses of that thread wait meanwhile. So sample rarely if the tail of the latencies
    /// matters.
    pub sample_every: u64,
    /// The kernel interface that moves the bytes.
    pub driver: DriverChoice,
}

impl LoadSpec {
    /// Requests to an address in closed loop, on one connection and one thread, with defaults otherwise:
    /// HTTP/1.1 without TLS and pipelining, kept-alive connections, 5 s for a request or for connecting, any
    /// 2xx is good.
    pub fn new(address: Address, requests: Vec<RequestSpec>) -> LoadSpec {
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

    /// Its requests, followed by those that users send first.
    pub(crate) fn all_requests(&self) -> impl Iterator<Item = &RequestSpec> {
        self.requests
            .iter()
            .chain(self.users.first.iter().map(|first| &first.request))
    }
}

/// The behaviour and state of users, if each connection is one. A reopened connection belongs to the same
/// user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Users {
    /// Requests that each user sends first, in this order. They are counted only as log-ins unless they fail.
    /// A failure counts as a failed request, and the user starts over. If a request has values, each user has
    /// its own row.
    pub first: Vec<FirstRequest>,
    /// Whether users store cookies from responses and send them.
    pub cookies: bool,
    /// Time that users wait between a response and the next request. Closed loop only.
    pub think: Option<Think>,
}

/// A request that a user sends before all others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstRequest {
    /// The request. Its weight is ignored.
    pub request: RequestSpec,
    /// Values captured from its response, by the name used in braces in later requests, like a column name.
    pub capture: Vec<(String, ResponseField)>,
}

/// The position of a generator's threads among the threads of all generators of one load.
///
/// A load is distributed to lanes. A lane is an engine thread on any machine. Arrivals and requests depend
/// only on the number of lanes, not on how many machines run them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lanes {
    /// The lane of this generator's first thread, from 0. Its other threads follow.
    pub first: u32,
    /// Total number of lanes of all generators.
    pub of: u32,
}

/// The address of a service.
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
pub struct TlsSpec {
    /// The name that the server's certificate must be valid for. Also sent as SNI unless it is an IP address.
    pub server_name: String,
    /// The certificates that are trusted.
    pub trust: Trust,
    /// Whether a new connection may resume the session of an earlier one of its thread.
    pub resumption: bool,
    /// Sent to a server that requests a client certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientCertificate>,
}

/// A client certificate and its private key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCertificate {
    /// The certificate and its intermediates, in PEM.
    #[serde(with = "as_base64")]
    pub chain: Vec<u8>,
    /// The private key in PEM, not encrypted.
    #[serde(with = "as_base64")]
    pub key: Vec<u8>,
}

impl fmt::Debug for ClientCertificate {
    /// Omits the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate").finish_non_exhaustive()
    }
}

/// The certificates that are trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Certificates of the authorities that this system trusts.
    System,
    /// Certificates of only these authorities, given in PEM.
    Authorities(#[serde(with = "as_base64")] Vec<u8>),
    /// Any certificate, without verification of the server's identity.
    Anything,
}

/// The kernel interface that moves the bytes of a load. The slice names the one that was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverChoice {
    /// The cheaper driver: completion if the kernel allows it, because it was cheaper or equal at every
    /// measured body size and number of connections.
    #[default]
    Auto,
    /// epoll.
    Readiness,
    /// io_uring. Falls back to epoll if the kernel refuses io_uring (`kernel.io_uring_disabled`, a
    /// container's filter) or is older than Linux 6.12.
    Completion,
}

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Closed loop: each connection sends its next request when the last one is done. Measures capacity.
    Closed,
    /// Open loop: requests are due at predetermined times, whether or not the service keeps up. Measures
    /// latency.
    ///
    /// A request that is due while no connection is free waits for one, in the order of arrival. Its response
    /// time counts from its due time. Arrivals are distributed to threads: a due request waits for a
    /// connection of the same thread even if another thread has a free one. So do not use more threads than
    /// the rate needs.
    Open {
        /// Requests due per second, over all threads.
        rate: Rate,
        /// Their distribution in time. `src/pacer.rs` has the formulas.
        process: ArrivalProcess,
        /// Seed for the times of [`Process::Poisson`]. Ignored by other processes.
        seed: u64,
    },
}

/// An HTTP/1.1 request, or with [`values`](Self::values) one for each row of them. Rendered before the load,
/// not during it.
///
/// `Host` and `User-Agent` are added unless `headers` has them. So is `Content-Length`, if there is a body or
/// the method usually has one.
///
/// If `values` are given, `{column}` in the path, in a header's value or in the body stands for the row's
/// value of that column. Literal braces are doubled: `{{` is `{` and `}}` is `}`. Without values every text
/// is sent unchanged. A value cannot break out of its place:
///
/// - Path and query: letters, digits and `-` `.` `_` `~` stay (RFC 3986, section 2.3), each other byte of its UTF-8
///   becomes `%XX`. `a b/ü` is sent as `a%20b%2F%C3%BC`.
/// - A header's value: unchanged. A control character other than the tab is rejected.
/// - A body whose `Content-Type` is JSON (the media type ends in `json`): escaped as inside of a JSON string, without
///   quotes around it, so that the template decides between a string and a number.
/// - Any other body: unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSpec {
    /// Its name in reports, unique in the load. Empty means method and path.
    pub name: String,
    /// Relative frequency among the requests of a load: a weight of 3 is sent three times as often as a
    /// weight of 1. At least 1.
    pub weight: u32,
    /// The method, in upper case as it is sent.
    pub method: String,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// Header names and values, sent in this order.
    pub headers: Vec<(String, String)>,
    /// The body. May be empty.
    #[serde(with = "as_base64")]
    pub body: Vec<u8>,
    /// The value of the `Host` header.
    pub host: String,
    /// The values for the placeholders. A random row is drawn each time. A request without placeholders is
    /// the same for all rows.
    pub values: Option<Values>,
    /// Contract of its responses, if it differs from the general one.
    pub contract: Option<Contract>,
}

impl RequestSpec {
    /// A request without headers and without a body.
    pub fn new(method: &str, path: &str, host: &str) -> RequestSpec {
        RequestSpec {
            method: method.into(),
            path: path.into(),
            host: host.into(),
            ..RequestSpec::default()
        }
    }

    /// Its name in reports: its name, or `METHOD path` if it has none.
    pub fn title(&self) -> Cow<'_, str> {
        match self.name.as_str() {
            "" => Cow::Owned(format!("{} {}", self.method, self.path)),
            name => Cow::Borrowed(name),
        }
    }
}

/// `GET /` without a host.
impl Default for RequestSpec {
    fn default() -> RequestSpec {
        RequestSpec {
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

/// Binary data in JSON: base64 as in RFC 4648, section 4.
mod as_base64 {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        STANDARD
            .decode(String::deserialize(deserializer)?)
            .map_err(D::Error::custom)
    }
}
