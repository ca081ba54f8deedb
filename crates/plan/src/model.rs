//! The checked plan: what the lab runs, with every default filled in and nothing left to doubt.
//!
//! Made only by [`crate::parse`]; kept as JSON in the record, so every type here is also a format.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use ::model::SAMPLE_EVERY;
use ::model::quantity::many;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smart_default::SmartDefault;

use crate::gate::Limit;

mod service;

pub use service::*;

pub use crate::against::{Against, Building, against_flags};
use crate::gate::GateEntry;
pub use crate::generators::{Generators, Kubernetes};
use crate::measure::Measure;
use crate::secret::Secrets;
pub use ::model::{
    Contract, Digest, Metric, Pacing, Process, Protocol, RATE_MAX_PER_S, ResponseField, Think,
};

/// An experiment, checked: every variant resolved to plain values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Short name of the experiment, also the beginning of its records' names.
    pub name: String,
    /// The question the experiment answers, in the author's words.
    pub question: Option<String>,
    /// The factors in the order of the file, each with its levels in the order of the file.
    pub factors: Vec<Factor>,
    /// Every combination of levels, the last factor changing fastest.
    pub variants: Vec<Variant>,
    /// Which variant is compared with which.
    pub comparisons: Vec<Comparison>,
    /// The check of the machine: a baseline variant against a copy of itself, which is the last variant. No part of
    /// [`Plan::comparisons`]: it is known to be without a difference.
    pub aa: Option<Comparison>,
    /// Data to be made, or found made, before anything starts: what services of these variants mention, by name.
    #[serde(default)]
    pub prepare: Vec<Preparation>,
    /// How services are built at another commit, where they are compared with one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub building: Building,
    /// The commit with which each variant is compared; `None`: variants are compared with each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
    /// Where the load comes from.
    #[serde(default, skip_serializing_if = "is_default")]
    pub generators: Generators,
    /// How the experiment is run and judged.
    pub design: Design,
    /// What is measured in place of comparisons: one variant, and what `design` says of blocks is without effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure: Option<Measure>,
    /// The limits of its gate, in the order of the file, and behind them those that came from flags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gate: Vec<GateEntry>,
    /// What `tune` tries.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tune: Tune,
    /// What of it must not be kept, and what its placeholders stand for. In memory alone.
    #[serde(skip)]
    pub secrets: Secrets,
}

/// What `proofload tune` tries, each as its flag of that name takes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tune {
    /// Settings to try beside the catalogue's: NAME=value, NAME=a|b|c, `flag: WORDS`, `before: WORDS`.
    #[serde(rename = "try")]
    pub tries: Vec<String>,
    /// Of the catalogue only these, by name.
    pub only: Vec<String>,
    /// Of the catalogue not these.
    pub without: Vec<String>,
    /// Limits that what is advised must keep, such as `memory < +20%`.
    pub keep: Vec<String>,
}

/// What is varied, and the values it takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Name of the factor, for example `node_env`.
    pub name: String,
    /// Names of its levels, for example `development` and `production`.
    pub levels: Vec<String>,
}

/// One combination of levels: one configuration of the service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// The names of its levels joined by ` · `, for example `json · production`; `only` without factors.
    pub name: String,
    /// Factor name to level name.
    pub levels: BTreeMap<String, String>,
    /// The services that this variant starts, those that are needed first, the entry last.
    pub services: Vec<Service>,
    /// Name of the service that gets the load.
    pub entry: String,
    /// The load it gets.
    pub load: Load,
    /// What a response must be to count as a success.
    pub expect: Contract,
}

fn yes() -> bool {
    true
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Data that services need, made once by a command and kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preparation {
    /// Its name in the file; services mention it as `{prepare.NAME}`.
    pub name: String,
    /// Program and arguments, with the placeholders `{output}` and `{directory}` not yet filled in.
    pub command: Vec<String>,
    /// Absolute path of the working directory.
    pub directory: PathBuf,
    /// Variables added to Proofload's own environment, placeholders not yet filled in.
    pub env: BTreeMap<String, String>,
    /// Files and folders whose content counts, as the file names them: relative to `directory`.
    pub inputs: Vec<String>,
    /// Free disk space that it needs; `None` is not looked at.
    pub space_bytes: Option<u64>,
    /// How long it may take.
    pub timeout: Duration,
    /// The file that tells it was done, made when the command has ended well. `None` where the command fills the folder
    /// `{output}`; otherwise it changes its directory, as a build does, and nothing is filled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<PathBuf>,
}

/// One candidate vs its baseline, as indices into [`Plan::variants`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// The variant compared with.
    pub baseline: usize,
    /// The variant in question.
    pub candidate: usize,
    /// Reads as "candidate vs baseline", for example `production vs development (json)`.
    #[serde(deserialize_with = "label")]
    pub label: String,
}

impl Comparison {
    /// The label as it is written today: earlier versions wrote `production against development`.
    pub(crate) fn label_today(label: &str) -> Cow<'_, str> {
        match label.contains(" vs ") {
            true => label.into(),
            false => label.replacen(" against ", " vs ", 1).into(),
        }
    }
}

fn label<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let label = String::deserialize(deserializer)?;
    Ok(Comparison::label_today(&label).into_owned())
}

/// How the experiment is run and judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// The metric that the verdict is about.
    pub metric: Metric,
    /// Further metrics that get verdicts of their own, at the price of wider intervals for all.
    #[serde(default)]
    pub co_primary: Vec<Metric>,
    /// The request that latency metrics are about; `None`: all requests together.
    pub endpoint: Option<Endpoint>,
    /// Which processors the services may use.
    #[serde(default)]
    pub cpus: Cpus,
    /// The smallest relative difference that matters, as a fraction: 0.03 is 3 %.
    pub margin: f64,
    /// Time from the first start of a service to the verdict.
    pub budget: Duration,
    /// Seed of every random choice; `None` draws one, and the record keeps it.
    pub seed: Option<u64>,
    /// Length of the warm-up of each trial; `None` measures it in the first block.
    pub warmup: Option<Duration>,
    /// Length of a slice; `None` is the lab's choice.
    pub slice: Option<Duration>,
    /// Slices a trial; `None` lets the lab choose from measured variances.
    pub slices: Option<u32>,
    /// At most this many blocks; `None` is as many as the budget allows.
    pub blocks: Option<u32>,
    /// When the result is looked at, and so when the run may end.
    #[serde(default = "planned")]
    pub looks: LookRule,
    /// Whether throughput is judged per core-second where services have all of their cores busy. Records of before have plain throughput.
    #[serde(default)]
    pub per_core: bool,
    /// Whether a quantile is that of the responses of all processes together.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pooled: bool,
    /// Whether blocks in which the machine was not ours are dropped; without effect on records, which say what was dropped.
    #[serde(default = "yes")]
    pub drop_disturbed: bool,
    /// Whether profiles are captured after the last block, on top of the budget.
    #[serde(default)]
    pub explain: bool,
    /// The rate common to all variants, in open loop; `None` is closed loop. Always there where the metric is a latency.
    pub rate: Option<Rate>,
    /// Where the rate goes to, evenly over each slice; `None`: it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramp_to: Option<Rate>,
    /// How requests are spread in time in open loop; without effect in closed loop.
    #[serde(default)]
    pub arrivals: Process,
    /// What users bear: capacity is the highest rate at which all of it holds. Empty where capacity is not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slo: Vec<Limit>,
}

impl Design {
    /// When requests are sent in the slices that count.
    pub fn pacing(&self) -> Pacing {
        match self.rate {
            _ if !self.slo.is_empty() => Pacing::Search,
            Some(_) => Pacing::Open,
            None => Pacing::Closed,
        }
    }

    /// Every metric that gets a verdict; the variances of the first decide how many slices a trial gets.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> {
        std::iter::once(self.metric).chain(self.co_primary.iter().copied())
    }

    /// Requests due per second over a slice, on average; `None` in closed loop, and where that follows from a capacity.
    pub fn mean_rate_per_s(&self) -> Option<f64> {
        match (self.rate?, self.ramp_to) {
            (Rate::PerSecond(from), Some(Rate::PerSecond(to))) => Some((from + to) / 2.0),
            (Rate::PerSecond(per_s), None) => Some(per_s),
            (Rate::ShareOfCapacity(_), _) | (Rate::PerSecond(_), Some(Rate::ShareOfCapacity(_))) => None,
        }
    }

    /// Whether the rate follows from capacities, which are measured first.
    pub fn rate_needs_capacity(&self) -> bool {
        self.rate.into_iter().chain(self.ramp_to).any(Rate::is_share)
    }

    /// The metric among them that asks for most requests in a trial, and how many: of all endpoints together, where it counts
    /// those of one. See [`Metric::requests_wanted`].
    pub fn most_wanting(&self) -> (Metric, f64) {
        let share = self.endpoint.as_ref().map_or(1.0, |endpoint| endpoint.share);
        let wanted = self.metrics().map(|metric| (metric, (metric.requests_wanted() / share).ceil()));
        wanted.max_by(|(_, one), (_, other)| one.total_cmp(other)).unwrap_or((self.metric, 0.0))
    }
}

/// When an experiment looks at its result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LookRule {
    /// After every block; the run ends at the first at which all is decided.
    #[default]
    EachBlock,
    /// Only at the end; the intervals are as narrow as can be, and no run ends early.
    Once,
    /// Of records made before 2026-11-23: after numbers of blocks fixed beforehand. In a file the same as `each_block`.
    Planned,
    /// Of records made before 2026-11-23: a confidence sequence. In a file the same as `each_block`.
    Always,
}

impl LookRule {
    /// Whether the result is looked at only when the run is over.
    pub fn waits_for_end(self) -> bool {
        match self {
            LookRule::Once => true,
            LookRule::EachBlock | LookRule::Planned | LookRule::Always => false,
        }
    }
}

/// The rule of records that name none.
fn planned() -> LookRule {
    LookRule::Planned
}

/// How many requests are due per second in open loop, at every variant alike.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// So many, above 0 and at most [`RATE_MAX_PER_S`]; 0 at an end of a ramp alone.
    PerSecond(f64),
    /// This share of what the slowest variant can do in closed loop, above 0 and at most 0.95.
    ShareOfCapacity(f64),
}

impl Rate {
    /// Whether it is known only when capacities are.
    pub fn is_share(self) -> bool {
        match self {
            Rate::PerSecond(_) => false,
            Rate::ShareOfCapacity(_) => true,
        }
    }
}

/// The largest seed: more a program that reads the record as JSON may round.
pub const SEED_MAX: u64 = (1 << 53) - 1;

/// Most verdicts of one experiment, comparisons times metrics: among more the 5 % cannot be shared.
pub const VERDICTS_MAX: usize = 64;

/// The processors that services may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cpus {
    /// `Separate` if no variant keeps more processors busy than that leaves it, else `Shared`. Decided before anything is measured.
    #[default]
    Auto,
    /// All processors that the generator does not run on. If there is only one processor, it is shared.
    Separate,
    /// All processors, including the generator's.
    Shared,
}

impl Cpus {
    /// All values, in the order in which help lists them.
    pub const ALL: [Cpus; 3] = [Cpus::Auto, Cpus::Separate, Cpus::Shared];

    /// The word for it in an experiment file and behind `--cpus`.
    pub fn name(self) -> &'static str {
        match self {
            Cpus::Auto => "auto",
            Cpus::Separate => "separate",
            Cpus::Shared => "shared",
        }
    }
}

impl FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Cpus, String> {
        let named = Cpus::ALL.into_iter().find(|cpus| cpus.name() == text);
        named.ok_or_else(|| format!("expected one of {}", Cpus::ALL.map(Cpus::name).join(", ")))
    }
}

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
    /// Whether the file or a flag names that number. Where it does not, a search for the capacity chooses it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub connections_typed: bool,
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
    /// Whether each connection keeps the cookies that its responses set, and sends them.
    #[serde(skip_serializing_if = "is_default")]
    pub cookies: bool,
    /// How long each connection waits between a response and its next request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<Think>,
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

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Request>, D::Error> {
        let kept = Kept::deserialize(deserializer)?;
        Ok(if kept.requests.is_empty() { vec![kept.only] } else { kept.requests })
    }

    pub(super) fn serialize<S: Serializer>(requests: &[Request], serializer: S) -> Result<S::Ok, S::Error> {
        BTreeMap::from([("requests", requests)]).serialize(serializer)
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
    /// Each connection sends it before all others, and never again unless it fails. It is no sample then.
    #[serde(skip_serializing_if = "is_default")]
    pub once: bool,
    /// What later requests of the connection are filled with of its response, by the name that stands in braces there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capture: Vec<(String, ResponseField)>,
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
    /// A file with the client certificate, in PEM, for a server that asks for one; relative to the folder of this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert: Option<PathBuf>,
    /// A file with the private key of `cert`, in PEM and not encrypted. Without it: in the file of `cert`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
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

    /// Whether each connection is a user: one who logs in, or has cookies. What a request gets then depends on those before it.
    pub fn has_users(&self) -> bool {
        self.cookies || self.requests.iter().any(|request| request.once)
    }

    /// Names of what has been captured when the request of this index is sent.
    pub fn captured_before(&self, index: usize) -> Vec<&str> {
        let is_once = |index: usize| self.requests.get(index).is_some_and(|request| request.once);
        let before = self.requests.iter().enumerate().filter(|(other, _)| !is_once(index) || *other < index);
        let captured = before.filter(|(_, request)| request.once).flat_map(|(_, request)| &request.capture);
        captured.map(|(name, _)| name.as_str()).collect()
    }

    /// The first request that has a body and does not say of which type.
    pub fn untyped_body(&self) -> Option<&Request> {
        let has_body = |of: &Request| !of.body.is_empty() || of.body_file.is_some();
        let is_typed = |of: &Request| ::model::header::has(&of.headers, "content-type");
        self.requests.iter().find(|request| has_body(request) && !is_typed(request))
    }

    /// What is requested, in a few words: method and path, or how many requests there are.
    pub fn title(&self) -> String {
        match self.requests.as_slice() {
            [only] => format!("{} {}", only.method, only.path),
            several => many(several.len() as u64, "request"),
        }
    }

    /// The share of all requests that those of this name have; `None` where none is called so, or it is sent once.
    pub fn share_of(&self, name: &str) -> Option<f64> {
        let drawn = || self.requests.iter().filter(|request| !request.once);
        let total: f64 = drawn().map(|request| f64::from(request.weight)).sum();
        let named = drawn().find(|request| request.name == name && !name.is_empty())?;
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
