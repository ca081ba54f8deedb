//! The experiment file as it is written: the one source of its keys, their defaults, limits and descriptions.
//!
//! The JSON Schema is generated from these types, the doc comments become its descriptions, and [`crate::check`]
//! holds a file against it. No decision is taken here; what keys mean together is judged by the modules that resolve
//! them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::launch::{Launcher, Workers};
use crate::model::{Arrivals, Cpus, LookRule, Metric};
use crate::shape::{Entries, OneOrMany, RateOrShare, Scalar};
use crate::text_form::{Address, Host, Name, Percent, Period, RequestPath};

mod against;
mod deployed;
mod gate;
mod generators;
mod mix;
mod network;
mod prepare;

pub(crate) use against::Against;
pub(crate) use deployed::Deployed;
pub(crate) use gate::Gate;
pub(crate) use generators::{Generators, Kubernetes};
pub(crate) use mix::Request;
pub(crate) use network::Network;
pub(crate) use prepare::Prepare;

/// A Proofload experiment: a question, the services and what is varied about them, the load, and how to judge.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(title = "Proofload experiment", extend("required" = ["name", "services"], "additionalProperties" = false))]
pub(crate) struct File {
    /// Short name of the experiment; its records are named after it.
    pub name: Name,
    /// The question the experiment answers, in your words. Reports begin with it.
    pub question: Option<String>,
    #[serde(flatten)]
    #[expect(dead_code, reason = "each variant's settings are read from the tree with its levels laid over")]
    pub settings: Settings,
    /// Data that services need, each made once and kept; a service names its folder with {prepare.NAME}. Only what a
    /// started service names is made.
    #[schemars(extend("propertyNames" = { "pattern": "^[A-Za-z0-9_-]{1,40}$" }))]
    pub prepare: BTreeMap<String, Prepare>,
    /// How services are built at the git ref that `--against` names.
    pub against: Against,
    /// Where the load comes from. Without it: from this process alone.
    pub generators: Generators,
    /// What is varied: the name of each factor, and its levels. Every combination of levels is one variant.
    pub factors: Entries<Factor>,
    /// How the experiment is run and judged.
    pub design: Design,
    /// Limits that a change has to keep.
    pub gate: Gate,
}

/// What one variant is made of: everything that a level may set.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Settings {
    /// The service that gets the load. Not needed where there is only one service.
    pub entry: Option<String>,
    /// The services, each a process (with its children) to start. Only those that the entry needs are started.
    #[schemars(extend("minProperties" = 1, "propertyNames" = { "pattern": "^[A-Za-z0-9_-]{1,40}$" }))]
    pub services: BTreeMap<String, Service>,
    /// The load on the entry: each connection sends its next request when the last one is answered (closed loop), unless
    /// `design.rate` says when requests are due.
    pub load: Load,
    /// What a response must be to count as a success.
    pub expect: Expect,
}

/// A process (with its children) to start, or a Service of a cluster that runs already.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Service {
    /// Program and arguments, each a string of its own; no shell is involved. May contain placeholders: {port},
    /// {NAME.port} and {NAME.address} of a service that it needs, {address}, {directory}, {scratch}, {workers}, {prepare.NAME}. A
    /// plain brace is written {{.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// Working directory, relative to the folder of this file. On another host: an absolute path there, or one below the home, ~/shop.
    pub directory: String,
    /// The machine that it runs on, where that is another one: ssh://HOST as `ssh` knows it, ssh://USER@HOST or ssh://USER@HOST:PORT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// The IP address that it listens on, {address}. Without it: 127.0.0.1, or the host's where it is asked for from another machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// A Service of a Kubernetes cluster that runs already, in place of one that is started: the entry, and loaded as it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<Deployed>,
    /// When it counts as ready: a path, requested with GET until the answer is a 2xx. Without it: when its port
    /// accepts a connection, or in a cluster when a pod behind it is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<RequestPath>,
    /// How long it may take to become ready, 100ms to 10m.
    pub ready_timeout: Period,
    /// How long it may take to end after SIGTERM before it is killed, 100ms to 10m.
    pub stop_timeout: Period,
    /// Variables added to Proofload's own environment. Values may contain the placeholders of `command`.
    pub env: BTreeMap<String, Scalar>,
    /// The port that it listens on. Without it a free one is chosen for each trial; hand that to the service with
    /// the placeholder {port}.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<u16>,
    /// Services that must be ready before this one starts.
    pub needs: Vec<String>,
    /// How it is started. All but exec take a command that runs a script on Node.js: node, its flags, the script, its
    /// arguments.
    pub launcher: Launcher,
    /// As how many processes it serves: a number, or "cores" for one on each CPU that the services have, which is what
    /// cluster and pm2-cluster do without it. With exec it only gives {workers} its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<Workers>,
    /// Whether PM2 monitors the process from inside, as it does by default. Only with pm2-fork and pm2-cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pmx: Option<bool>,
    /// Files that are written into the folder {scratch} before each start: the name of each, and the template that it is
    /// made from, relative to `directory`. In a template placeholders have doubled braces: {{port}}.
    pub templates: BTreeMap<String, String>,
}

impl Default for Service {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            directory: ".".to_owned(),
            host: None,
            address: None,
            kubernetes: None,
            ready: None,
            ready_timeout: Period::seconds(30),
            stop_timeout: Period::seconds(5),
            env: BTreeMap::new(),
            port: None,
            needs: Vec::new(),
            launcher: Launcher::Exec,
            workers: None,
            pmx: None,
            templates: BTreeMap::new(),
        }
    }
}

/// What is varied: the name of each level, and what it sets.
pub(crate) type Factor = Entries<Level>;

/// What a level sets, by dotted name: `entry`, anything below `load`, `expect` or `services`, and anything of a service
/// by the service's own name, such as `api.env.NODE_ENV`. Tables are merged, everything else is replaced.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("additionalProperties" = { "$ref": "#/$defs/Service" }))]
#[expect(dead_code, reason = "levels are laid over the file as trees; this type says what they may contain")]
pub(crate) struct Level {
    /// The service that gets the load at this level.
    pub entry: Option<String>,
    /// What this level sets about services.
    pub services: Option<BTreeMap<String, Service>>,
    /// What this level sets about the load.
    pub load: Option<Load>,
    /// What this level expects of a response.
    pub expect: Option<Expect>,
}

/// The load on the entry, over keep-alive connections.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Load {
    /// Request method.
    pub method: Method,
    /// Request path with its query, sent as it stands.
    pub path: RequestPath,
    /// Request header fields, sent in this order.
    pub headers: Entries<String>,
    /// Request body; its length is sent with it.
    pub body: String,
    /// Several requests instead of the one of `method`, `path` and `body`, at most 32, each sent as often as its weight says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32))]
    pub requests: Vec<Request>,
    /// Connections, each with one request at a time.
    #[schemars(range(min = 1, max = 100_000))]
    pub connections: u32,
    /// Threads of each generator. Without it: one for each core that the generator is given; elsewhere one for each core of its machine
    /// and 32 of its connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 256))]
    pub threads: Option<u32>,
    /// After this long without a complete response a request counts as failed, 10ms to 10m. The default is long on
    /// purpose: a short one turns slow responses into errors and so takes them out of the latencies.
    pub timeout: Period,
    /// A link of limited rate, or with a delay, between client and entry. Without it: loopback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            method: Method::Get,
            path: RequestPath("/".to_owned()),
            headers: Entries::default(),
            body: String::new(),
            requests: Vec::new(),
            connections: 64,
            threads: None,
            timeout: Period::seconds(5),
            network: None,
        }
    }
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
pub(crate) enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
}

impl Method {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
        }
    }
}

/// What a response must be to count as a success. Anything else is an error, and enough errors void the measurement.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Expect {
    /// Status code, or a list of them, that are successes.
    #[schemars(schema_with = "status_schema")]
    pub status: OneOrMany<u16>,
    /// Header fields the response must have, each with its value or a list of values one of which it must have.
    pub headers: BTreeMap<String, OneOrMany<String>>,
    /// Length of the response body on the wire in bytes, where it is always the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
    pub body_bytes: Option<u64>,
}

impl Default for Expect {
    fn default() -> Self {
        Self { status: OneOrMany::Many(vec![200]), headers: BTreeMap::new(), body_bytes: None }
    }
}

fn status_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let status = serde_json::json!({ "type": "integer", "minimum": 200, "maximum": 599 });
    schemars::json_schema!({ "anyOf": [status, { "type": "array", "items": status, "minItems": 1 }] })
}

fn metric_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let metric = generator.subschema_for::<Metric>();
    schemars::json_schema!({ "anyOf": [metric, { "type": "array", "items": metric, "minItems": 1 }] })
}

/// How the experiment is run and judged.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Design {
    /// The level of each factor that the others are compared with. A factor left out takes its first level.
    pub baseline: BTreeMap<String, String>,
    /// Name of a factor, or a list of them: variants are compared that differ in it and in nothing else. Without it:
    /// every variant with the baseline variant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compare: Option<OneOrMany<String>>,
    /// The figure that the verdict is about, or a list of them: each gets a verdict of its own, and the chance to err is
    /// shared among all.
    #[schemars(schema_with = "metric_schema")]
    pub metric: OneOrMany<Metric>,
    /// Name of the request of `load.requests` that latency metrics count. Without it: all of them together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Whether services leave the generator's CPUs to it, or may use all CPUs. What the client burns is then taken from them.
    pub cpus: Cpus,
    /// When the result is looked at: at blocks fixed beforehand, after every block (wider intervals), or only once at the end.
    pub looks: LookRule,
    /// Whether a copy of the baseline is measured along with the variants. Where the two differ the machine cannot tell
    /// variants apart, and the result is void.
    pub aa: bool,
    /// Whether a block counts for nothing, and another takes its place, where more than a fifth of the time was taken from it: by the
    /// host, by other programs, or by a quota of CPU time. What was measured in it has no part in that.
    pub drop_disturbed: bool,
    /// Whether profiles are captured after the last block, to explain what the verdict is about. In trials of their own, never in
    /// measured ones, and on top of the budget.
    pub explain: bool,
    /// The smallest relative difference that matters to you. What is surely smaller counts as equivalent.
    pub margin: Percent,
    /// Time from the first start of a service to the verdict, 10s to 24h.
    pub budget: Period,
    /// Seed of every random choice. Without it one is drawn, and the record keeps it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 9_007_199_254_740_991_u64))]
    pub seed: Option<u64>,
    /// Length of the warm-up of each trial, 0s to 10m. Without it: as long as the first block shows to be needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Period>,
    /// Length of a slice (one uninterrupted measurement), 20ms to 60s. Without it: the lab's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<Period>,
    /// Slices in each trial. Without it: chosen from the variances of the first block.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub slices: Option<u32>,
    /// At most this many blocks (random passes over all variants). Without it: as many as the budget allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 6, max = 120))]
    pub blocks: Option<u32>,
    /// Open loop: requests due per second, the same for every variant, whether or not it keeps up. A number such as 1000,
    /// or a share of what the slowest variant can do, such as "60%", which is then measured first. Without it: "60%" where
    /// the metric is a latency, closed loop otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateOrShare>,
    /// How requests are spread in time in open loop: as from many independent users, or evenly.
    pub arrivals: Arrivals,
}

impl Default for Design {
    fn default() -> Self {
        Self {
            baseline: BTreeMap::new(),
            compare: None,
            metric: OneOrMany::One(Metric::Throughput),
            endpoint: None,
            cpus: Cpus::default(),
            looks: LookRule::default(),
            aa: false,
            drop_disturbed: true,
            explain: false,
            margin: Percent(0.03),
            budget: Period::seconds(600),
            seed: None,
            warmup: None,
            slice: None,
            slices: None,
            blocks: None,
            rate: None,
            arrivals: Arrivals::default(),
        }
    }
}
