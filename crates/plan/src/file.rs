//! The experiment file as it is written: the one source of its keys, their defaults, limits and descriptions.
//!
//! The JSON Schema is generated from these types, the doc comments become its descriptions, and [`crate::check`]
//! holds a file against it. No decision is taken here; what keys mean together is judged by the modules that resolve
//! them.

use std::collections::BTreeMap;

use ::model::SAMPLE_EVERY;
use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use smart_default::SmartDefault;

use crate::Url;
use crate::gate::Figure;
use crate::model::{
    Cpus, Deployed, Engine, Generators, Launcher, LookRule, Metric, Process, RATE_MAX_PER_S, SEED_MAX, Tls,
    Tune, Workers,
};
use crate::text_form::{
    Address, Bandwidth, ContentDigest, Delay, FieldText, Host, LimitText, Name, Percent, Period, RateText,
    RatesText, RequestPath, SloText, Space,
};

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
    #[schemars(with = "BTreeMap<String, BTreeMap<String, Level>>")]
    pub factors: IgnoredAny,
    /// How the experiment is run and judged.
    pub design: Design,
    /// One variant is measured and nothing compared, in place of what `design` says of blocks and verdicts.
    pub measure: Option<Measure>,
    /// What `proofload tune` tries, and within which limits. Flags add to it.
    pub tune: Tune,
    /// Limits for `proofload gate`. An amount, such as < 50ms, is about each variant that is not only a baseline; a change in per
    /// cent, such as > -3%, about each comparison.
    #[schemars(schema_with = "gate_schema")]
    pub gate: IgnoredAny,
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
    /// The load on the entry: each connection sends its next request when the last one is done (closed loop), unless
    /// `design.rate` says when requests are due.
    pub load: Load,
    /// What a response must be to count as a success.
    pub expect: Expect,
}

/// A process (with its children) to start, or what runs already: behind a URL, or as a Service of a cluster.
#[derive(Debug, Clone, SmartDefault, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Service {
    /// Program and arguments, each a string of its own; no shell is involved. May contain placeholders: {port},
    /// {NAME.port} and {NAME.address} of a service that it needs, {address}, {directory}, {scratch}, {workers}, {prepare.NAME}. A
    /// plain brace is written {{.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// Working directory, relative to the folder of this file. On another host: an absolute path there, or one below the home, ~/shop.
    #[default(".".to_owned())]
    pub directory: String,
    /// The machine that it runs on, where that is another one: ssh://HOST as `ssh` knows it, ssh://USER@HOST or ssh://USER@HOST:PORT.
    pub host: Option<Host>,
    /// The IP address that it listens on, {address}. Without it: 127.0.0.1, or the host's where it is asked for from another machine.
    pub address: Option<Address>,
    /// Where it runs already, in place of a command: loaded as it stands, and neither started nor stopped. Its path comes before every
    /// `load.path`; https means TLS.
    pub url: Option<Url>,
    /// A Service of a Kubernetes cluster that runs already, in place of one that is started: the entry, and loaded as it stands.
    pub kubernetes: Option<Deployed>,
    /// A container that is started in place of a program.
    pub container: Option<Container>,
    /// A Compose project that is started in place of a program.
    pub compose: Option<Compose>,
    /// When it counts as ready: a path, requested with GET until the response is a 2xx. Without it: when it responds to GET /, whatever
    /// the status is; a service that another one needs, or that speaks TLS or HTTP/2, when its port accepts a connection, one in a cluster
    /// when a pod behind it is ready.
    pub ready: Option<RequestPath>,
    /// How long it may take to become ready, 100ms to 10m.
    #[default(Period::seconds(30))]
    pub ready_timeout: Period,
    /// How long it may take to end after SIGTERM before it is killed, 100ms to 10m.
    #[default(Period::seconds(5))]
    pub stop_timeout: Period,
    /// Variables added to Proofload's own environment. Values may contain the placeholders of `command`.
    pub env: BTreeMap<String, Scalar>,
    /// The port that it listens on. Without it a free one is chosen for each trial, which the service has in the variable PORT and where
    /// {port} stands; one that has no {port} may listen elsewhere, and is found.
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<u16>,
    /// Services that must be ready before this one starts.
    pub needs: Vec<String>,
    /// How it is started. All but exec take a command that runs a script on Node.js: node, its flags, the script, its
    /// arguments.
    pub launcher: Launcher,
    /// As how many processes it serves: a number, or "cores" for one on each CPU that the services have, which is what
    /// cluster and pm2-cluster do without it. With exec it only gives {workers} its value.
    pub workers: Option<Workers>,
    /// Whether PM2 monitors the process from inside, as it does by default. Only with pm2-fork and pm2-cluster.
    pub pmx: Option<bool>,
    /// Files that are written into the folder {scratch} before each start: the name of each, and the template that it is
    /// made from, relative to `directory`. In a template placeholders have doubled braces: {{port}}.
    pub templates: BTreeMap<String, String>,
}

/// What a level sets, by dotted name: `entry`, anything below `load`, `expect` or `services`, and anything of a service
/// by the service's own name, such as `api.env.NODE_ENV`. Tables are merged, everything else is replaced.
#[derive(JsonSchema)]
#[schemars(extend("additionalProperties" = { "$ref": "#/$defs/Service" }))]
#[expect(dead_code, reason = "it says to the schema what levels may contain")]
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

/// How services are built at the git ref that `--against` names, before they run there. Without effect otherwise.
#[derive(Debug, Clone, SmartDefault, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Against {
    /// Program and arguments, each a string of its own, run in the directory of each service as it is at that ref; no shell is
    /// involved, and braces are plain. Without it: npm ci where the nearest package.json has a package-lock.json beside it.
    #[schemars(length(min = 1))]
    pub build: Vec<String>,
    /// How long it may take in each directory, 1s to 24h.
    #[default(Period::seconds(600))]
    pub timeout: Period,
    /// Files and folders that git does not keep and the services read, such as ".env", copied from the working tree; relative to the
    /// folder of this file. Without it: those that look like configuration.
    pub copy: Option<Vec<String>>,
}

/// Data that services need, made once by a command and kept in a cache under a hash of command, env and inputs.
#[derive(Debug, Clone, SmartDefault, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["command"]))]
pub(crate) struct Prepare {
    /// Program and arguments, each a string of its own; no shell is involved. {output} stands for the folder to fill,
    /// {directory} for the working directory. A plain brace is written {{.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// Working directory, relative to the folder of this file.
    #[default(".".to_owned())]
    pub directory: String,
    /// Variables added to Proofload's own environment. Values may contain the placeholders of `command`.
    pub env: BTreeMap<String, Scalar>,
    /// Files and folders, relative to `directory`, whose content decides with command and env whether data made before
    /// is still right.
    pub inputs: Vec<String>,
    /// Free disk space that it needs, such as 2GB, looked for before it starts.
    pub space: Option<Space>,
    /// How long it may take, 1s to 24h.
    #[default(Period::seconds(600))]
    pub timeout: Period,
}

/// How the experiment is run and judged.
#[derive(Debug, SmartDefault, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Design {
    /// The level of each factor that the others are compared with. A factor left out takes its first level.
    pub baseline: BTreeMap<String, String>,
    /// Name of a factor, or a list of them: variants are compared that differ in it and in nothing else. Without it:
    /// every variant with the baseline variant.
    pub compare: Option<OneOrMany<String>>,
    /// The figure that the verdict is about, or a list of them: each gets a verdict of its own, and the chance to err is
    /// shared among all.
    #[schemars(schema_with = "one_or_more::<Metric>")]
    #[default(OneOrMany::One(Metric::Throughput))]
    pub metric: OneOrMany<Metric>,
    /// Name of the request of `load.requests` that latency metrics count. Without it: all of them together.
    pub endpoint: Option<String>,
    /// Whether services leave the generator's CPUs to it, or may use all CPUs. What the client burns is then taken from them.
    pub cpus: Cpus,
    /// When the result is looked at: after every block, or only once at the end (narrower intervals).
    pub looks: LookRule,
    /// Whether throughput is judged per core-second (successful responses per second of the services' CPU time) where services have all of
    /// their cores busy. It varies less than plain throughput, which the report shows beside it.
    #[default(true)]
    pub per_core: bool,
    /// Whether a quantile is that of all responses of all processes together, as a fleet's users see it, and not the mean of each
    /// process's own.
    pub pooled: bool,
    /// Whether a copy of the baseline is measured along with the variants. Where the two differ the machine cannot tell
    /// variants apart, and the result is invalid.
    pub aa: bool,
    /// Whether a block counts for nothing, and another takes its place, where more than a fifth of the time was taken from it: by the
    /// host, by other programs, or by a quota of CPU time. What was measured in it has no part in that.
    #[default(true)]
    pub drop_disturbed: bool,
    /// Whether profiles are captured after the last block, to explain what the verdict is about. In trials of their own, never in
    /// measured ones, and on top of the budget.
    pub explain: bool,
    /// The smallest relative difference that matters to you. What is surely smaller counts as equivalent.
    #[default(Percent(0.03))]
    pub margin: Percent,
    /// Time from the first start of a service to the verdict, 10s to 24h.
    #[default(Period::seconds(600))]
    pub budget: Period,
    /// Seed of every random choice. Without it one is drawn, and the record keeps it.
    #[schemars(range(min = 0, max = SEED_MAX))]
    pub seed: Option<u64>,
    /// Length of the warm-up of each trial, 0s to 10m. Without it: as long as the first block shows to be needed.
    pub warmup: Option<Period>,
    /// Length of a slice (one measurement, made of turns), 20ms to 60s. Without it: the lab's choice.
    pub slice: Option<Period>,
    /// Slices in each trial. Without it: chosen from the variances of the blocks so far, after the third.
    #[schemars(range(min = 1, max = 100))]
    pub slices: Option<u32>,
    /// At most this many blocks (random passes over all variants). Without it: as many as the budget allows.
    #[schemars(range(min = 4, max = 120))]
    pub blocks: Option<u32>,
    /// Open loop: requests due per second, the same for every variant, whether or not it keeps up. A number such as 1000,
    /// or a share of what the slowest variant can do, such as "60%", which is then measured first; "1000..5000" and "20%..60%" rise, or
    /// fall, over each slice. Without it: "60%" where the metric is a latency, closed loop otherwise.
    pub rate: Option<Rate>,
    /// How requests are spread in time in open loop: as from many independent users, or evenly.
    pub arrivals: Process,
    /// What users bear, such as ["p99 < 50ms", "failed < 0.1%"]: the metric is then `capacity`, the highest rate of requests at which all
    /// of it holds.
    pub slo: Vec<SloText>,
}

/// A container that is started in place of a program, by the command `docker` or `podman`, and removed after each trial.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Container {
    /// Name of the image, as `docker run` takes it. It must be there: nothing is pulled.
    pub image: Option<String>,
    /// The port that it listens on inside, {port}. Not needed where the image exposes only one.
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<u16>,
    /// Variables set in it, besides those of the service's `env`. May contain the placeholders {port} and {address}.
    pub env: BTreeMap<String, Scalar>,
    /// Arguments behind the image, in place of its own. May contain the placeholders {port} and {address}.
    pub args: Vec<String>,
    /// The command that starts it. Without it: docker, or podman where that alone is installed.
    pub engine: Option<Engine>,
}

/// A Compose project that is started in place of a program, with a name of its own, and taken down after each trial with its volumes.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Compose {
    /// The file, relative to the folder of this one.
    pub file: Option<String>,
    /// The service in it that gets the requests. What that depends on is started with it.
    pub service: Option<String>,
    /// The port that it listens on inside. Not needed where it exposes only one.
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<u16>,
    /// The command that starts it. Without it: docker, or podman where that alone is installed.
    pub engine: Option<Engine>,
}

/// The load on the entry.
#[derive(Debug, Clone, SmartDefault, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Load {
    /// The one request, where there are no `requests`.
    #[serde(flatten)]
    pub single: Asked,
    /// Several requests instead of the one of `method`, `path` and `body`, at most 32, each sent as often as its weight says.
    #[schemars(length(min = 1, max = 32))]
    pub requests: Vec<Request>,
    /// Connections, each with one request at a time unless `streams` or `pipeline` says more.
    #[schemars(range(min = 1, max = 100_000))]
    #[default(64)]
    pub connections: u32,
    /// Threads of each generator. Without it: one for each core that the generator is given; elsewhere one for each core of its machine
    /// and 32 of its connections.
    #[schemars(range(min = 1, max = 256))]
    pub threads: Option<u32>,
    /// Requests due per second, where levels differ in that: of all variants or none, in place of `design.rate`.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = RATE_MAX_PER_S as u64))]
    pub rate: Option<f64>,
    /// After this long without a complete response a request counts as failed, 10ms to 10m. The default is long on
    /// purpose: a short one turns slow responses into errors and so takes them out of the latencies.
    #[default(Period::seconds(5))]
    pub timeout: Period,
    /// What is spoken: HTTP/1.1, or HTTP/2, agreed on in TLS and by prior knowledge without it.
    pub protocol: Version,
    /// Requests under way on each connection of HTTP/2, if the server allows as many. Without it: 10.
    #[schemars(range(min = 1, max = 1000))]
    pub streams: Option<u32>,
    /// Requests that each connection of HTTP/1.1 sends without waiting for their responses. No browser does it. Without it: 1.
    #[schemars(range(min = 1, max = 1000))]
    pub pipeline: Option<u32>,
    /// TLS: of a service that is started, which must speak it then, and more about that of an https URL.
    pub tls: Option<Tls>,
    /// Whether connections are kept. If not, each request opens one, and its latency contains that.
    #[default(true)]
    pub keep_alive: bool,
    /// Local addresses that connections are opened from, in turn.
    pub sources: Vec<Address>,
    /// One response in so many is read in full, decoded and hashed, besides what `expect` compares of each; 0: none.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    #[default(SAMPLE_EVERY)]
    pub sample_every: u64,
    /// A link of limited rate, or with a delay, between client and entry. Without it: loopback.
    pub network: Option<Network>,
    /// Whether each connection keeps the cookies that responses set, and sends them.
    pub cookies: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) enum Version {
    #[default]
    #[serde(rename = "http/1.1")]
    Http1,
    #[serde(rename = "h2")]
    Http2,
}

/// What a response must be to count as a success. Anything else is an error, and enough errors void the measurement.
#[derive(Debug, Clone, SmartDefault, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Expect {
    /// Status code, or a list of them, that are successes.
    #[schemars(schema_with = "one_or_more::<Status>")]
    #[default(OneOrMany::Many(vec![200]))]
    pub status: OneOrMany<u16>,
    /// Header fields the response must have, each with its value or a list of values one of which it must have; any, where the list is empty.
    pub headers: BTreeMap<String, OneOrMany<String>>,
    /// Length of the response body on the wire in bytes, where it is always the same.
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
    #[serde(alias = "bytes")]
    pub body_bytes: Option<u64>,
    /// SHA-256 of the body without compression, such as sha256:ba78…, of which `load.sample_every` says how many are looked at.
    #[serde(alias = "sha256")]
    pub content: Option<ContentDigest>,
}

/// What is sent.
#[derive(Debug, Clone, SmartDefault, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Asked {
    /// Request method. Without it: GET; of one of `requests` that has a body, POST.
    #[schemars(extend("enum" = METHODS))]
    pub method: Option<String>,
    /// Request path with its query, sent as it stands.
    #[default(RequestPath("/".to_owned()))]
    pub path: RequestPath,
    /// Request header fields, sent in this order; a list of values sends the field as often. Those of one of `requests` come besides
    /// those of the load, in place of one of the same name.
    pub headers: IndexMap<String, OneOrMany<String>>,
    /// Request body; its length is sent with it.
    pub body: String,
    /// A file whose content is the body, relative to the folder of this file.
    pub body_file: Option<String>,
    /// Rows of values, a .csv or .jsonl file relative to the folder of this file: {column} in path, headers and body stands for the value of
    /// a row drawn at random.
    pub values: Option<String>,
}

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// One of several requests of a load.
#[derive(Debug, Clone, SmartDefault, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["path"], "additionalProperties" = false))]
pub(crate) struct Request {
    /// What reports call it, unlike every other request's. Without it: method and path.
    pub name: Option<String>,
    /// How often it is sent, compared with the others: of weights 3 and 1 three times as often.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[default(1)]
    pub weight: u32,
    #[serde(flatten)]
    pub asked: Asked,
    /// What its responses must be, in place of what `expect` of the file says.
    pub expect: Option<Expect>,
    /// Whether each connection sends it first, once, to log in. Such requests are sent in the order of the file, and count in nothing unless
    /// they fail.
    pub once: bool,
    /// Of a request that is sent once: values of its response that later requests of the connection have, by the name that stands in braces
    /// there.
    pub capture: IndexMap<String, FieldText>,
}

/// A link between the client and the entry, the same in both directions. It takes root.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Network {
    /// What it carries each way, 8kbit to 10gbit, all connections together. Without it: what the machine can do.
    pub rate: Option<Bandwidth>,
    /// How long a packet is under way each way, 0ms to 1s; a round trip takes twice that. Without it: next to nothing.
    pub delay: Option<Delay>,
}

/// One variant is measured, and nothing compared: at its limit, or at one rate after the other.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Measure {
    /// How long to send, at each rate. Without it and without `requests`: 10s.
    pub duration: Option<Period>,
    /// How many requests to send, in place of `duration`.
    #[schemars(range(min = 1, max = 9_007_199_254_740_991_u64))]
    pub requests: Option<u64>,
    /// Open loop: requests due per second, whether or not the service keeps up. Without it: closed loop.
    pub rate: Option<RatesText>,
    /// How requests are spread in time in open loop. Without it: as from many independent users.
    pub arrivals: Option<Process>,
    /// Load before the first rate that is in no figure. Without it: none.
    pub warmup: Option<Period>,
}

/// Limits by the figure that they are about, and tables of the same limits, in which nothing else has a place.
fn gate_schema(generator: &mut SchemaGenerator) -> Schema {
    let limit = generator.subschema_for::<OneOrMany<LimitText>>();
    let limits = Figure::all().map(|figure| {
        let mut schema = limit.clone();
        schema.insert("description".to_owned(), limit_description(figure).into());
        (figure.name().to_owned(), schema.to_value())
    });
    let limits = limits.collect::<serde_json::Map<_, _>>();
    let named =
        json_schema!({ "type": "object", "properties": limits.clone(), "additionalProperties": false });
    let mut gate = json_schema!({ "type": "object", "properties": limits, "additionalProperties": false });
    gate.ensure_object()["properties"]["of"] = serde_json::json!({
        "type": "object",
        "additionalProperties": named,
        "description":
            "Limits of one variant, of one level, or of one comparison by its label, in place of those that are for all.",
    });
    gate
}

fn limit_description(figure: Figure) -> String {
    let Some(metric) = figure.metric() else {
        return "Share of requests that do not end in an expected response, an amount alone: \"< 0.05%\"."
            .to_owned();
    };
    let row = metric.row();
    let example = if metric.wants_more() { "> -3%" } else { "< +5%" };
    format!("{}: {}, such as \"{example}\"; a list for several limits.", row.title, row.meaning)
}

// A value, or a list of values. (No doc comment: it would stand in the schema wherever the type is used.)
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    pub fn as_slice(&self) -> &[T] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}

fn one_or_more<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<T>();
    json_schema!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
}

#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "it says to the schema what a status code is")]
pub(crate) struct Status(#[schemars(range(min = 100, max = 999))] u16);

/// A string, number or boolean, kept as the text that a process sees.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(inline, extend("type" = ["string", "number", "boolean"]))]
pub(crate) struct Scalar(pub String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match toml::Value::deserialize(deserializer)? {
            toml::Value::String(text) => text,
            value => value.to_string(),
        }))
    }
}

/// Names with plain values, as text.
pub(crate) fn scalars<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let scalars = BTreeMap::<String, Scalar>::deserialize(deserializer)?;
    Ok(scalars.into_iter().map(|(name, value)| (name, value.0)).collect())
}

// A rate per second, a share of a capacity, or a ramp.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum Rate {
    PerSecond(#[schemars(extend("exclusiveMinimum" = 0, "maximum" = RATE_MAX_PER_S as u64))] f64),
    Text(RateText),
}
