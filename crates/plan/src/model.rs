//! The checked plan: what the lab runs, with every default filled in and nothing left to doubt.
//!
//! Made only by [`crate::read`]; kept as JSON in the record, so every type here is also a format.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

mod against;
mod deployed;
mod elsewhere;
mod generators;
mod mix;

pub use against::{Against, Building};
pub use deployed::{Deployed, ServicePort};
pub use generators::{Generators, Kubernetes};
pub use mix::{Cpus, Endpoint, Request};

use crate::gate::GateEntry;
use crate::launch::{Launcher, Workers};
pub use crate::network::Network;
pub use ::model::Metric;

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
    #[serde(default)]
    pub aa: Option<Comparison>,
    /// Data to be made, or found made, before anything starts: what services of these variants mention, by name.
    #[serde(default)]
    pub prepare: Vec<Preparation>,
    /// How services are built at another commit, where they are compared with one.
    #[serde(default, skip_serializing_if = "Building::is_default")]
    pub building: Building,
    /// The commit with which each variant is compared; `None`: variants are compared with each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
    /// Where the load comes from.
    #[serde(default, skip_serializing_if = "Generators::is_default")]
    pub generators: Generators,
    /// How the experiment is run and judged.
    pub design: Design,
    /// The limits of its gate, in the order of the file, and behind them those that came from flags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gate: Vec<GateEntry>,
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
    pub expect: Expect,
}

/// A process (group) to start, or what runs already in a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// Name of the service in the file.
    pub name: String,
    /// Program and arguments, with placeholders such as `{port}` not yet filled in.
    pub command: Vec<String>,
    /// Absolute path of the working directory; of a service elsewhere one of its host, where `~/` at the beginning is the home of whoever
    /// logs in.
    pub directory: PathBuf,
    /// The machine that it runs on, as `ssh://user@host:port`; `None` is this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The address that it listens on; `None` is loopback, or where whoever asks for it gets to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Where it runs already; `None`: it is started. Of such a one nothing else counts but its name and when it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<Deployed>,
    /// Variables added to Proofload's own environment, placeholders not yet filled in.
    pub env: BTreeMap<String, String>,
    /// The port it must listen on; `None` lets Proofload choose a free one for each trial.
    pub port: Option<u16>,
    /// When the service counts as ready.
    pub ready: Ready,
    /// How long it may take to become ready.
    pub ready_timeout: Duration,
    /// How long it may take to end after SIGTERM before it is killed.
    pub stop_timeout: Duration,
    /// Services that must be ready before this one starts.
    pub needs: Vec<String>,
    /// How it is started.
    #[serde(default)]
    pub launcher: Launcher,
    /// As how many processes it serves; always there unless it is started as its command says.
    #[serde(default)]
    pub workers: Option<Workers>,
    /// Whether PM2 monitors the process from inside; without effect where PM2 does not start it.
    #[serde(default = "yes")]
    pub pmx: bool,
    /// Files made anew for each trial: name to text, with placeholders such as `{{port}}` not yet filled in.
    #[serde(default)]
    pub templates: BTreeMap<String, String>,
}

fn yes() -> bool {
    true
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<PathBuf>,
}

/// When a service counts as ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ready {
    /// A GET of this path on its port answers with a 2xx status.
    Http(String),
    /// Its port accepts a connection.
    Tcp,
}

/// The load on the entry service, over keep-alive connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Request method.
    pub method: String,
    /// Request target, beginning with `/`.
    pub path: String,
    /// Header fields in the order of the file.
    pub headers: Vec<(String, String)>,
    /// Request body, empty for none.
    pub body: String,
    /// Several requests in place of method, path and body above; empty where there is the one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<Request>,
    /// Connections, each with one request at a time.
    pub connections: u32,
    /// Threads of each generator; `None` is one a generator core.
    pub threads: Option<u32>,
    /// After this long without a complete response a request counts as timed out.
    pub timeout: Duration,
    /// The link between client and entry; `None` is loopback.
    #[serde(default)]
    pub network: Option<Network>,
}

/// What a response must be to count as a success.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expect {
    /// Status codes that are successes.
    pub status: Vec<u16>,
    /// Header name (lower case) to the values one of which it must have.
    pub headers: BTreeMap<String, Vec<String>>,
    /// Length of the body on the wire in bytes, where it is fixed.
    pub body_bytes: Option<u64>,
}

/// One candidate against its baseline, as indices into [`Plan::variants`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// The variant compared with.
    pub baseline: usize,
    /// The variant in question.
    pub candidate: usize,
    /// Reads as "candidate against baseline", for example `production against development (json)`.
    pub label: String,
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
    #[serde(default)]
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
    #[serde(default)]
    pub looks: LookRule,
    /// Whether blocks in which the machine was not ours are dropped; without effect on records, which say what was dropped.
    #[serde(default = "yes")]
    pub drop_disturbed: bool,
    /// Whether profiles are captured after the last block, on top of the budget.
    #[serde(default)]
    pub explain: bool,
    /// The rate common to all variants, in open loop; `None` is closed loop. Always there where the metric is a latency.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// How requests are spread in time in open loop; without effect in closed loop.
    #[serde(default)]
    pub arrivals: Arrivals,
}

impl Design {
    /// Every metric that gets a verdict; the variances of the first decide how many slices a trial gets.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> {
        std::iter::once(self.metric).chain(self.co_primary.iter().copied())
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LookRule {
    /// After numbers of blocks that are fixed beforehand; it ends at the first of them at which all is decided.
    #[default]
    Planned,
    /// After every block, for as long as it takes or as you like; the intervals are wider.
    Always,
    /// Only at the end; the intervals are as narrow as can be, and no run ends early.
    Once,
}

/// How many requests are due per second in open loop, at every variant alike.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// So many, above 0 and at most [`RATE_MAX_PER_S`].
    PerSecond(f64),
    /// This share of what the slowest variant can do in closed loop, above 0 and at most 0.95.
    ShareOfCapacity(f64),
}

/// The highest rate that can be asked for: beyond it requests are not even 100 ns apart.
pub const RATE_MAX_PER_S: f64 = 1e7;

/// Most verdicts of one experiment, comparisons times metrics: among more the 5 % cannot be shared.
pub const VERDICTS_MAX: usize = 64;

/// How requests are spread in time in open loop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// One every 1 / rate.
    Constant,
    /// At random and independent of each other, as from many users.
    #[default]
    Poisson,
}
