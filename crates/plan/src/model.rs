//! The checked plan that the lab runs, with every default filled in.
//!
//! It is only created by [`crate::parse`]. The record contains it as JSON, so every type here is also a
//! format.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use ::model::SAMPLE_EVERY;
use ::model::quantity::many;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::limit::Limit;
use crate::secret::Secrets;
use crate::text_form::Address;

mod against;
mod gate;
mod generators;
mod measure;
mod service;

pub use against::*;
pub use gate::*;
pub use generators::*;
pub use measure::*;
pub use service::*;

pub use crate::rate::PlannedRate;
pub use ::model::{
    ArrivalProcess, Contract, Digest, Metric, Pacing, Protocol, RATE_MAX_PER_S, ResponseField,
    Think,
};

/// A checked experiment: every variant is resolved to plain values.
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
    /// The check of the machine: a baseline variant against a copy of itself, which is the last variant. It
    /// is not in [`Plan::comparisons`], because there is known to be no difference.
    pub aa: Option<Comparison>,
    /// Data that must be made or found before anything starts: the data that services of these variants use,
    /// by name.
    pub prepare: Vec<Preparation>,
    /// How services are built at another commit, if they are compared with one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub building: Building,
    /// The commit with which each variant is compared. `None` if variants are compared with each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
    /// Where the load comes from.
    #[serde(default, skip_serializing_if = "is_default")]
    pub generators: Generators,
    /// How the experiment is run and judged.
    pub design: Design,
    /// A measurement instead of comparisons: one variant, and the keys of `design` about blocks have no
    /// effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure: Option<Measure>,
    /// The limits of its gate, in the order of the file, followed by those from flags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gate: Vec<GateEntry>,
    /// Settings of `tune`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tune: Tune,
    /// Values that must not be stored, and the values of placeholders for secrets. In memory only.
    #[serde(skip)]
    pub secrets: Secrets,
}

/// Settings that `proofload tune` tries, in the notation of the flags with these names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tune {
    /// Settings to try in addition to the catalogue's: NAME=value, NAME=a|b|c, `flag: WORDS`, `before:
    /// WORDS`.
    #[serde(rename = "try")]
    pub tries: Vec<String>,
    /// Names of the catalogue's settings to try. Default: all.
    pub only: Vec<String>,
    /// Names of the catalogue's settings not to try.
    pub without: Vec<String>,
    /// Limits that the advice must keep, such as `memory < +20%`.
    pub keep: Vec<String>,
}

/// A factor, and its levels.
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
    /// The names of its levels joined by ` · `, for example `json · production`. `only` without factors.
    pub name: String,
    /// Maps factor names to level names.
    pub levels: BTreeMap<String, String>,
    /// The services that this variant starts, in the order of their dependencies, the entry last.
    pub services: Vec<Service>,
    /// Name of the service that gets the load.
    pub entry: String,
    /// The load on the entry.
    pub load: Load,
    /// Requirements for a response to count as a success.
    pub expect: Contract,
}

impl Plan {
    /// All names that tables and messages show.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let levels = self.factors.iter().flat_map(|factor| &factor.levels);
        let factors = self.factors.iter().map(|factor| &factor.name).chain(levels);
        let comparisons = self
            .comparisons
            .iter()
            .chain(&self.aa)
            .map(|comparison| &comparison.label);
        let data = self.prepare.iter().map(|step| &step.name);
        let shared = [&self.name]
            .into_iter()
            .chain(factors)
            .chain(comparisons)
            .chain(data);
        shared
            .map(String::as_str)
            .chain(self.variants.iter().flat_map(Variant::names))
    }
}

impl Variant {
    fn names(&self) -> Vec<&str> {
        let services = self.services.iter().map(|service| service.name.as_str());
        let requests = self
            .load
            .requests
            .iter()
            .map(|request| request.name.as_str());
        services
            .chain(requests)
            .chain([self.name.as_str(), &self.entry])
            .collect()
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Data that services need, made once by a command and cached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preparation {
    /// Its name in the file. Services use it as `{prepare.NAME}`.
    pub name: String,
    /// Program and arguments, with the placeholders `{output}` and `{directory}` not yet replaced.
    pub command: Vec<String>,
    /// Absolute path of the working directory.
    pub directory: PathBuf,
    /// Variables added to Proofload's own environment, placeholders not yet replaced.
    pub env: BTreeMap<String, String>,
    /// Files and folders whose content counts, as the file names them: relative to `directory`.
    pub inputs: Vec<String>,
    /// Required free disk space. `None` is not checked.
    pub space_bytes: Option<u64>,
    /// Time limit.
    pub timeout: Duration,
    /// The file that marks the step as done, created when the command has succeeded. `None` if the command
    /// fills the folder `{output}`. Otherwise it changes its directory, as a build does, and fills no folder.
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
    pub label: String,
}

/// How the experiment is run and judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// The metric of the verdict.
    pub metric: Metric,
    /// Further metrics that get their own verdicts, at the price of wider intervals for all.
    pub co_primary: Vec<Metric>,
    /// The request that latency metrics are about. `None` for all requests together.
    pub endpoint: Option<JudgedEndpoint>,
    /// Which processors the services may use.
    pub cpus: Cpus,
    /// The smallest relative difference that matters, as a fraction: 0.03 is 3 %.
    pub margin: f64,
    /// Time from the first start of a service to the verdict.
    pub budget: Duration,
    /// Seed of every random choice. `None` draws one, which the record contains.
    pub seed: Option<u64>,
    /// Length of the warm-up of each trial. `None` measures it in the first block.
    pub warmup: Option<Duration>,
    /// Length of a slice. `None` is the lab's choice.
    pub slice: Option<Duration>,
    /// Slices in a trial. `None` lets the lab choose from measured variances.
    pub slices: Option<u32>,
    /// Maximum number of blocks. `None` is as many as the budget permits.
    pub blocks: Option<u32>,
    /// When the result is analyzed, and so when the run may end.
    pub looks: LookRule,
    /// Whether throughput is judged per core-second if services keep all of their cores busy.
    pub per_core: bool,
    /// Whether quantiles are computed over the responses of all processes together.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pooled: bool,
    /// Whether disturbed blocks are dropped. Has no effect on records, which state what was dropped.
    pub drop_disturbed: bool,
    /// Whether profiles are captured after the last block, in addition to the budget.
    pub explain: bool,
    /// The common rate of all variants in open loop. `None` is closed loop. Always set if the metric is a
    /// latency.
    pub rate: Option<PlannedRate>,
    /// The rate at the end of each slice, reached evenly. `None` for a constant rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramp_to: Option<PlannedRate>,
    /// Distribution of requests in time in open loop. Has no effect in closed loop.
    pub arrivals: ArrivalProcess,
    /// Service level objectives: capacity is the highest rate at which all of them hold. Empty if capacity is
    /// not measured.
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

    /// Every metric that gets a verdict. The variances of the first one determine the number of slices in a
    /// trial.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> {
        std::iter::once(self.metric).chain(self.co_primary.iter().copied())
    }

    /// Average number of requests due per second over a slice. `None` in closed loop, and if it depends on a
    /// capacity.
    pub fn mean_rate_per_s(&self) -> Option<f64> {
        match (self.rate?, self.ramp_to) {
            (PlannedRate::PerSecond(from), Some(PlannedRate::PerSecond(to))) => {
                Some((from + to) / 2.0)
            }
            (PlannedRate::PerSecond(per_s), None) => Some(per_s),
            (PlannedRate::ShareOfCapacity(_), _)
            | (PlannedRate::PerSecond(_), Some(PlannedRate::ShareOfCapacity(_))) => None,
        }
    }

    /// Whether the rate depends on capacities, which are measured first.
    pub fn rate_needs_capacity(&self) -> bool {
        self.rate
            .into_iter()
            .chain(self.ramp_to)
            .any(PlannedRate::is_share)
    }

    /// The metric that needs the most requests in a trial, and their number. If a metric is about one
    /// endpoint, the number is for all endpoints together. See [`Metric::requests_wanted`].
    pub fn most_wanting(&self) -> (Metric, f64) {
        let share = self
            .endpoint
            .as_ref()
            .map_or(1.0, |endpoint| endpoint.share);
        let wanted = self
            .metrics()
            .map(|metric| (metric, (metric.requests_wanted() / share).ceil()));
        wanted
            .max_by(|(_, one), (_, other)| one.total_cmp(other))
            .unwrap_or((self.metric, 0.0))
    }
}

/// When an experiment analyzes its result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LookRule {
    /// After every block. The run ends at the first block at which everything is decided.
    #[default]
    EachBlock,
    /// Only at the end. The intervals are as narrow as possible, and no run ends early.
    Once,
}

impl LookRule {
    /// Whether the result is analyzed only when the run is over.
    pub fn waits_for_end(self) -> bool {
        match self {
            LookRule::Once => true,
            LookRule::EachBlock => false,
        }
    }
}

/// The largest seed. Programs that read the record as JSON may round larger numbers.
pub const SEED_MAX: u64 = (1 << 53) - 1;

/// Maximum number of verdicts of one experiment, comparisons times metrics. The 5 % cannot be divided among
/// more.
pub const VERDICTS_MAX: usize = 64;

/// The processors that services may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cpus {
    /// `Separate` if this leaves every variant as many processors as it keeps busy, else `Shared`. Decided
    /// before anything is measured.
    #[default]
    Auto,
    /// All processors that the generator does not run on. If there is only one processor, it is shared.
    Separate,
    /// All processors, including the generator's.
    Shared,
}

impl Cpus {
    /// All values, in the order of the help.
    pub const ALL: [Cpus; 3] = [Cpus::Auto, Cpus::Separate, Cpus::Shared];

    /// Name in an experiment file and as value of `--cpus`.
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

/// The request whose response times the latency metrics are about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgedEndpoint {
    /// Its name, the same in every variant.
    pub name: String,
    /// Its share of all requests, above 0 and at most 1. If variants differ, the smallest share.
    pub share: f64,
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
