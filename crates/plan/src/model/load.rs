//! The load of a variant: its requests, connections and protocol.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use ::model::quantity::many;
use ::model::{Contract, Protocol, ResponseField, SAMPLE_EVERY, Think};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::is_default;
use crate::text_form::Address;

/// Settings of a load that are the same in the file and in the plan.
#[derive(Debug, Clone, PartialEq, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LoadSettings {
    /// Number of connections, each with one request at a time unless `streams` or `pipeline` sets more.
    #[schemars(range(min = 1, max = 100_000))]
    #[default(64)]
    pub connections: u32,
    /// Threads of each generator. Default: one for each core of the generator. On another machine: one for
    /// each of its cores and for each 32 of its connections, whichever is less.
    #[schemars(range(min = 1, max = 256))]
    pub threads: Option<u32>,
    /// Whether connections are kept open. If not, each request opens one, and its latency includes that.
    #[default(true)]
    pub keep_alive: bool,
    /// Local addresses that connections are opened from, in turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Address>")]
    pub sources: Vec<IpAddr>,
    /// One response in n is read in full, decoded and hashed, in addition to the checks of `expect` on each.
    /// 0: none.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    #[default(SAMPLE_EVERY)]
    pub sample_every: u64,
    /// Whether each connection stores the cookies that responses set, and sends them.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    pub cookies: bool,
}

/// The load on the entry service. Default: `GET /` over 64 kept connections.
#[derive(Debug, Clone, PartialEq, SmartDefault, Serialize, Deserialize)]
#[serde(default)]
pub struct Load {
    /// The requests, at least one.
    #[default(vec![Request::default()])]
    pub requests: Vec<Request>,
    /// Settings as in the file. In JSON they are beside the other fields.
    #[serde(flatten)]
    pub settings: LoadSettings,
    /// Whether the file or a flag sets the number of connections. If not, a search for the capacity chooses it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub connections_typed: bool,
    /// Requests due per second, if variants differ in it. Otherwise the design sets the rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// After this long without a complete response a request counts as timed out.
    #[default(Duration::from_secs(5))]
    pub timeout: Duration,
    /// The protocol.
    #[serde(skip_serializing_if = "is_default")]
    pub protocol: Protocol,
    /// TLS settings. `None` without TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// The link between client and entry. `None` is loopback, or the existing network.
    pub network: Option<Network>,
    /// Pause of each connection between a response and its next request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<Think>,
}

/// A request of a load. Default: `GET /`.
#[derive(Debug, Clone, PartialEq, SmartDefault, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// Unique name in reports. Empty if a load's only request has no name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Relative frequency, at least 1.
    #[default(1)]
    pub weight: u32,
    /// Request method.
    #[default("GET".to_owned())]
    pub method: String,
    /// Request target, beginning with `/`.
    #[default("/".to_owned())]
    pub path: String,
    /// Header fields in the order of the file, including the load's.
    pub headers: Vec<(String, String)>,
    /// Request body. Empty for none, or if it comes from a file.
    pub body: String,
    /// The file that contains the body, absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_file: Option<PathBuf>,
    /// Rows of values for `{column}` in path, headers and body, CSV or JSON lines by the file's name.
    /// Absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<PathBuf>,
    /// Requirements for its responses, if they differ from the variant's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<Contract>,
    /// Whether each connection sends it once before all others, and again only if it fails. Such requests are
    /// not sampled.
    #[serde(skip_serializing_if = "is_default")]
    pub once: bool,
    /// Values of its response that later requests of the connection use, by the name in braces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capture: Vec<(String, ResponseField)>,
}

/// TLS, version 1.3 or 1.2: trusted authorities and the expected name. An https URL uses TLS without this
/// table.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    /// A file with the certificates, in PEM, of the only trusted authorities. Relative to the folder of this
    /// file. Default: the authorities that this system trusts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// The name that the certificate must be valid for, also sent as SNI. Default: the host of the URL, else
    /// localhost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Whether any certificate is accepted, without checking the server's identity.
    pub insecure: bool,
    /// A file with the client certificate, in PEM, for a server that requests one. Relative to the folder of
    /// this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert: Option<PathBuf>,
    /// A file with the private key of `cert`, in PEM and not encrypted. Default: the file of `cert`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// Whether a new connection may resume the session of an earlier one.
    #[default(true)]
    pub resumption: bool,
}

impl Load {
    /// Whether there are several requests, or one with a name.
    pub fn is_mix(&self) -> bool {
        self.requests.len() > 1
            || self
                .requests
                .first()
                .is_some_and(|request| !request.name.is_empty())
    }

    /// Whether each connection is a user who logs in or has cookies. Responses then depend on earlier
    /// requests.
    pub fn has_users(&self) -> bool {
        self.settings.cookies || self.requests.iter().any(|request| request.once)
    }

    /// Names of the values that have been captured before the request of this index is sent.
    pub fn captured_before(&self, index: usize) -> Vec<&str> {
        let is_once = |index: usize| self.requests.get(index).is_some_and(|request| request.once);
        let before = self
            .requests
            .iter()
            .enumerate()
            .filter(|(other, _)| !is_once(index) || *other < index);
        let captured = before
            .filter(|(_, request)| request.once)
            .flat_map(|(_, request)| &request.capture);
        captured.map(|(name, _)| name.as_str()).collect()
    }

    /// The first request that has a body without a content type.
    pub fn untyped_body(&self) -> Option<&Request> {
        let has_body = |of: &Request| !of.body.is_empty() || of.body_file.is_some();
        let is_typed = |of: &Request| ::model::header::has(&of.headers, "content-type");
        self.requests
            .iter()
            .find(|request| has_body(request) && !is_typed(request))
    }

    /// A short description: method and path, or the number of requests.
    pub fn title(&self) -> String {
        match self.requests.as_slice() {
            [only] => format!("{} {}", only.method, only.path),
            several => many(several.len() as u64, "request"),
        }
    }

    /// Share of all requests with this name. `None` if there is none, or it is sent once.
    pub fn share_of(&self, name: &str) -> Option<f64> {
        let drawn = || self.requests.iter().filter(|request| !request.once);
        let total: f64 = drawn().map(|request| f64::from(request.weight)).sum();
        let named = drawn().find(|request| request.name == name && !name.is_empty())?;
        Some(f64::from(named.weight) / total)
    }
}

/// A link between client and entry, the same in both directions. At least one of the two is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Rate in each direction, in bits per second, for all connections together. `None` for unlimited.
    pub rate_bit_per_s: Option<u64>,
    /// Delay of a packet in each direction. `None` for no added delay.
    pub delay: Option<Duration>,
}

impl fmt::Display for Network {
    /// `20 Mbit/s, 5 ms each way`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.rate_bit_per_s.map(rate_text);
        let parts: Vec<String> = rate.into_iter().chain(self.delay.map(delay_text)).collect();
        write!(formatter, "{} each way", parts.join(", "))
    }
}

fn rate_text(bit_per_s: u64) -> String {
    match bit_per_s as f64 {
        bits if bits >= 1e9 => format!("{} Gbit/s", bits / 1e9),
        bits if bits >= 1e6 => format!("{} Mbit/s", bits / 1e6),
        bits => format!("{} kbit/s", bits / 1e3),
    }
}

fn delay_text(delay: Duration) -> String {
    if delay >= Duration::from_millis(1) || delay.is_zero() {
        format!("{} ms", delay.as_secs_f64() * 1e3)
    } else {
        format!("{} µs", delay.as_micros())
    }
}
