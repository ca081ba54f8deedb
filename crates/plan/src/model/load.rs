//! The load of a variant: its requests, its connections, and the one among several requests whose latencies are judged.
//!
//! Types of the plan, kept as JSON in the record; what is allowed is judged where they are made.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use ::model::{Contract, Protocol, SAMPLE_EVERY};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smart_default::SmartDefault;

use super::is_default;

/// The load on the entry service; `GET /` over 64 kept connections, unless it says otherwise.
#[derive(Debug, Clone, PartialEq, SmartDefault, Serialize, Deserialize)]
#[serde(default)]
pub struct Load {
    /// What is sent, at least one.
    #[serde(flatten, with = "requests")]
    #[default(vec![Request::default()])]
    pub requests: Vec<Request>,
    /// Connections, each with as many requests at a time as its protocol allows.
    #[default(64)]
    pub connections: u32,
    /// Threads of each generator; `None` is one a generator core.
    pub threads: Option<u32>,
    /// Requests due per second, where variants differ in that; otherwise what the design says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// After this long without a complete response a request counts as timed out.
    #[default(Duration::from_secs(5))]
    pub timeout: Duration,
    /// What is spoken.
    #[serde(skip_serializing_if = "is_default")]
    pub protocol: Protocol,
    /// TLS below it; `None` is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Whether connections are kept; otherwise each request opens one of its own.
    #[default(true)]
    pub keep_alive: bool,
    /// Local addresses that connections are opened from, in turn; empty: the kernel chooses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<IpAddr>,
    /// One response in so many is read in full and decoded; 0: none.
    #[default(SAMPLE_EVERY)]
    pub sample_every: u64,
    /// The link between client and entry; `None` is loopback, or whatever there is.
    pub network: Option<Network>,
}

/// What is sent, in JSON; also as older records have it: one request without a list.
mod requests {
    use super::*;

    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Kept {
        requests: Vec<Request>,
        #[serde(flatten)]
        only: Request,
    }

    #[derive(Serialize)]
    struct Written<'a> {
        requests: &'a [Request],
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Request>, D::Error> {
        let kept = Kept::deserialize(deserializer)?;
        Ok(if kept.requests.is_empty() { vec![kept.only] } else { kept.requests })
    }

    pub(super) fn serialize<S: Serializer>(requests: &[Request], serializer: S) -> Result<S::Ok, S::Error> {
        Written { requests }.serialize(serializer)
    }
}

/// A request of a load, `GET /` unless it says otherwise.
#[derive(Debug, Clone, PartialEq, SmartDefault, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// What reports call it, unlike every other of its load; empty for the only one of a load that names none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// How often it is sent, compared with the others; at least 1.
    #[default(1)]
    pub weight: u32,
    /// Request method.
    #[default("GET".to_owned())]
    pub method: String,
    /// Request target, beginning with `/`.
    #[default("/".to_owned())]
    pub path: String,
    /// Header fields in the order of the file, those of the load included.
    pub headers: Vec<(String, String)>,
    /// Request body, empty for none, or where it is that of a file.
    pub body: String,
    /// The file that has the body; absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_file: Option<PathBuf>,
    /// Rows of values that `{column}` in path, headers and body stands for, CSV or JSON lines by the file's name; absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<PathBuf>,
    /// What its responses must be, where that is not what those of the variant must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<Contract>,
}

/// TLS below HTTP, 1.3 or 1.2: whom to trust, and by which name. An https URL has it without being asked.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    /// A file with the certificates, in PEM, of the authorities that are trusted, and no others; relative to the folder of this file.
    /// Without it: those that this system trusts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// The name that the certificate must be for, and that is sent as SNI. Without it: the host of the URL, else localhost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Whether any certificate is trusted, so that nobody's identity is checked.
    pub insecure: bool,
    /// Whether a new connection may take up the session of an earlier one.
    #[default(true)]
    pub resumption: bool,
}

/// The request whose response times the latency metrics are about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Its name, the same in every variant.
    pub name: String,
    /// Its share of all requests, above 0 and at most 1; where variants differ, the smallest.
    pub share: f64,
}

impl Load {
    /// Several requests, or one that has a name.
    pub fn is_mix(&self) -> bool {
        self.requests.len() > 1 || self.requests.first().is_some_and(|request| !request.name.is_empty())
    }

    /// What is requested, in a few words: method and path, or how many requests there are.
    pub fn title(&self) -> String {
        match self.requests.as_slice() {
            [only] => format!("{} {}", only.method, only.path),
            several => format!("{} requests", several.len()),
        }
    }

    /// The share of all requests that those of this name have; `None` where none is called so.
    pub fn share_of(&self, name: &str) -> Option<f64> {
        let total: f64 = self.requests.iter().map(|request| f64::from(request.weight)).sum();
        let named = self.requests.iter().find(|request| request.name == name && !name.is_empty())?;
        Some(f64::from(named.weight) / total)
    }
}

/// A link between client and entry, the same in both directions. At least one of the two is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// What it carries each way, in bits per second, all connections together; `None` is what the machine can do.
    pub rate_bit_per_s: Option<u64>,
    /// How long a packet is under way each way; `None` is next to nothing.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_reads_well() {
        let text = |bits: Option<u64>, us: Option<u64>| {
            Network { rate_bit_per_s: bits, delay: us.map(Duration::from_micros) }.to_string()
        };
        assert_eq!(text(Some(20_000_000), Some(5_000)), "20 Mbit/s, 5 ms each way");
        assert_eq!(text(Some(1_500_000), None), "1.5 Mbit/s each way");
        assert_eq!(text(None, Some(250)), "250 µs each way");
        assert_eq!(text(Some(8_000), Some(0)), "8 kbit/s, 0 ms each way");
    }
}
