//! The types of the experiment file: the single source of its keys with their defaults, limits and
//! descriptions.
//!
//! The JSON Schema is generated from these types, with the doc comments as descriptions, and [`crate::check`]
//! validates a file against it. Combinations of keys are checked by the modules that resolve them.
//!
//! A table has the same type in the file and in the plan if its form is the same: [`Generators`], [`Tls`],
//! [`Tune`], [`Deployed`] and [`LoadSettings`]. Other tables are resolved to a type of another form:
//!
//! | table | plan | difference |
//! |---|---|---|
//! | [`ServiceTable`] | `Service` | one source of several possible; templates are read |
//! | [`LoadTable`], [`RequestTable`] | `Load`, `Request` | each request has the load's header fields; paths are absolute |
//! | [`ExpectTable`] | `Contract` | lists instead of single values; header names in lower case |
//! | [`DesignTable`], [`MeasureTable`] | `Design`, `Measure` | metrics, rates and lengths depend on each other |
//! | [`AgainstTable`], [`Prepare`] | `Building`, `Preparation` | paths are absolute |
//!
//! Durations, percentages, sizes and rates are texts in the file and numbers in the record.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::limit::{LimitFigure, LimitText, SloText};
use crate::model::{
    ArrivalProcess, Building, Cpus, Deployed, Engine, Generators, Launcher, Load, LoadSettings,
    LookRule, Metric, RATE_MAX_PER_S, Request, SEED_MAX, ServiceCommand, Tls, Tune, Workers,
};
use crate::rate::RateValue;
use crate::scalar::{Scalar, scalars};
use crate::text_form::{
    Bandwidth, ContentDigest, Delay, FieldText, Name, Percent, Period, RatesText, RequestPath,
    Space,
};
use crate::url::Url;

/// A Proofload experiment: a question, the services and their variations, the load, and the rules of the
/// verdict.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(title = "Proofload experiment", extend("required" = ["name", "services"], "additionalProperties" = false))]
pub(crate) struct ExperimentFile {
    /// Short name of the experiment. The names of its records begin with it.
    pub name: Name,
    /// The question the experiment answers, in your words. Reports begin with it.
    pub question: Option<String>,
    #[serde(flatten)]
    #[expect(
        dead_code,
        reason = "each variant's settings are read from the tree with its levels laid over"
    )]
    pub settings: VariantTable,
    /// Data that services need, made once and cached. A service uses its folder by the placeholder
    /// {prepare.NAME}. Only data that a started service uses is made.
    #[schemars(extend("propertyNames" = { "pattern": "^[A-Za-z0-9_-]{1,40}$" }))]
    pub prepare: BTreeMap<String, Prepare>,
    /// How services are built at the git ref that `--against` names.
    pub against: AgainstTable,
    /// Where the load comes from. Default: this process alone.
    pub generators: Generators,
    /// The factors of the experiment, each with its levels. Every combination of levels is one variant.
    #[schemars(with = "BTreeMap<String, BTreeMap<String, LevelTable>>")]
    pub factors: IgnoredAny,
    /// How the experiment is run and judged.
    pub design: DesignTable,
    /// Measures one variant without a comparison. Replaces the keys of `design` about blocks and verdicts.
    pub measure: Option<MeasureTable>,
    /// Settings that `proofload tune` tries, and limits it must keep. Flags add to it.
    pub tune: Tune,
    /// Limits for `proofload gate`. An amount, such as < 50ms, applies to each variant that is not only a
    /// baseline. A change in per cent, such as > -3%, applies to each comparison.
    #[schemars(schema_with = "gate_schema")]
    pub gate: IgnoredAny,
}

/// The contents of one variant: everything that a level may set.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct VariantTable {
    /// The service that gets the load. Optional if there is only one service.
    pub entry: Option<String>,
    /// The services, each a process (with its children) to start. Only those that the entry needs are started.
    #[schemars(extend("minProperties" = 1, "propertyNames" = { "pattern": "^[A-Za-z0-9_-]{1,40}$" }))]
    pub services: BTreeMap<String, ServiceTable>,
    /// The load on the entry: each connection sends its next request after the last response (closed loop),
    /// unless `design.rate` sets when requests are due.
    pub load: LoadTable,
    /// Requirements for a response to count as a success.
    pub expect: ExpectTable,
}

/// A process (with its children) to start, or a service that is already running: behind a URL, or as a
/// Service of a cluster.
#[derive(Debug, Clone, SmartDefault, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServiceTable {
    /// Program and arguments, each a separate string. No shell is involved. May contain placeholders: {port},
    /// {NAME.port} and {NAME.address} of a service that it needs, {address}, {directory}, {scratch},
    /// {workers}, {prepare.NAME}. A literal brace is written {{.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// Working directory, relative to the folder of this file.
    #[default(".".to_owned())]
    pub directory: String,
    /// URL of a running service, instead of a command. It is loaded as it is, and neither started nor
    /// stopped. Its path is prepended to every `load.path`. https means TLS.
    pub url: Option<Url>,
    /// A running Service of a Kubernetes cluster, instead of a command. It must be the entry, and is loaded
    /// as it is.
    pub kubernetes: Option<Deployed>,
    /// A container that is started instead of a program.
    pub container: Option<ContainerTable>,
    /// A Compose project that is started instead of a program.
    pub compose: Option<Compose>,
    /// Readiness check: a path, requested with GET until the response is a 2xx. Default: a response to GET /
    /// with any status. For a service that another one needs, or that speaks TLS or HTTP/2: an accepted
    /// connection on its port. For a service in a cluster: a ready pod.
    pub ready: Option<RequestPath>,
    /// Maximum time to become ready, 100ms to 10m.
    #[default(Period::seconds(30))]
    pub ready_timeout: Period,
    /// Maximum time to end after SIGTERM before it is killed, 100ms to 10m.
    #[default(Period(ServiceCommand::default().stop_timeout))]
    pub stop_timeout: Period,
    /// Variables added to Proofload's own environment. Values may contain the placeholders of `command`.
    #[serde(deserialize_with = "scalars")]
    #[schemars(with = "BTreeMap<String, Scalar>")]
    pub env: BTreeMap<String, String>,
    /// The port on which it listens. Default: a free port for each trial, passed in the variable PORT and as
    /// {port}. A service without {port} may listen on another port, which is detected.
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<u16>,
    /// Services that must be ready before this one starts.
    pub needs: Vec<String>,
    /// How it is started. All launchers except exec require a command that runs a script on Node.js: node,
    /// its flags, the script, its arguments.
    pub launcher: Launcher,
    /// Number of processes that serve: a number, or "cores" for one on each CPU of the services, which is the
    /// default of cluster and pm2-cluster. With exec it only sets {workers}.
    pub workers: Option<Workers>,
    /// Whether PM2 monitors the process from inside, as it does by default. Only with pm2-fork and
    /// pm2-cluster.
    pub pmx: Option<bool>,
    /// Files written into the folder {scratch} before each start: the name of each file, and its template,
    /// relative to `directory`. Placeholders in a template have double braces: {{port}}.
    pub templates: BTreeMap<String, String>,
}

/// Settings of a level, by dotted name: `entry`, anything below `load`, `expect` or `services`, and anything
/// of a service by the service's own name, such as `api.env.NODE_ENV`. Tables are merged, everything else is
/// replaced.
#[derive(JsonSchema)]
#[schemars(extend("additionalProperties" = { "$ref": "#/$defs/ServiceTable" }))]
#[expect(dead_code, reason = "it says to the schema what levels may contain")]
pub(crate) struct LevelTable {
    /// The service that gets the load at this level.
    pub entry: Option<String>,
    /// Settings of this level for services.
    pub services: Option<BTreeMap<String, ServiceTable>>,
    /// Settings of this level for the load.
    pub load: Option<LoadTable>,
    /// Requirements of this level for responses.
    pub expect: Option<ExpectTable>,
}

/// How services are built at the git ref that `--against` names, before they run there. Has no effect
/// otherwise.
#[derive(Debug, Clone, SmartDefault, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AgainstTable {
    /// Program and arguments, each a separate string, run in the directory of each service at that ref. No
    /// shell is involved, and braces are literal. Default: npm ci if the nearest package.json has a
    /// package-lock.json beside it.
    #[schemars(length(min = 1))]
    pub build: Vec<String>,
    /// Time limit in each directory, 1s to 24h.
    #[default(Period(Building::default().timeout))]
    pub timeout: Period,
    /// Files and folders that git does not keep and the services read, such as ".env", copied from the
    /// working tree. Relative to the folder of this file. Default: files that look like configuration.
    pub copy: Option<Vec<String>>,
}

/// Data that services need, made once by a command and kept in a cache under a hash of command, env and inputs.
#[derive(Debug, Clone, SmartDefault, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["command"]))]
pub(crate) struct Prepare {
    /// Program and arguments, each a separate string. No shell is involved. {output} is the folder to fill,
    /// {directory} the working directory. A literal brace is written {{.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// Working directory, relative to the folder of this file.
    #[default(".".to_owned())]
    pub directory: String,
    /// Variables added to Proofload's own environment. Values may contain the placeholders of `command`.
    #[serde(deserialize_with = "scalars")]
    #[schemars(with = "BTreeMap<String, Scalar>")]
    pub env: BTreeMap<String, String>,
    /// Files and folders, relative to `directory`. Their content, the command and env determine whether
    /// cached data is still valid.
    pub inputs: Vec<String>,
    /// Required free disk space, such as 2GB, checked before the command starts.
    pub space: Option<Space>,
    /// Time limit, 1s to 24h.
    #[default(Period::seconds(600))]
    pub timeout: Period,
}

/// How the experiment is run and judged.
#[derive(Debug, SmartDefault, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DesignTable {
    /// The level of each factor that the others are compared with. Default of each factor: its first level.
    pub baseline: BTreeMap<String, String>,
    /// Name of a factor, or a list of names: variants are compared that differ only in this factor. Default:
    /// every variant with the baseline variant.
    pub compare: Option<OneOrMany<String>>,
    /// The metric of the verdict, or a list of metrics: each gets its own verdict, and the error probability
    /// is divided among them.
    #[schemars(schema_with = "one_or_more::<Metric>")]
    #[default(OneOrMany::One(Metric::Throughput))]
    pub metric: OneOrMany<Metric>,
    /// Name of the request in `load.requests` that latency metrics are about. Default: all requests together.
    pub endpoint: Option<String>,
    /// Whether services leave the generator's CPUs to it, or may use all CPUs. In the second case they
    /// compete with the client for CPU time.
    pub cpus: Cpus,
    /// When the result is analyzed: after every block, or only once at the end (narrower intervals).
    pub looks: LookRule,
    /// Whether throughput is judged per core-second (successful responses per second of the services' CPU
    /// time) if services keep all of their cores busy. It varies less than plain throughput, which is
    /// reported as well.
    #[default(true)]
    pub per_core: bool,
    /// Whether quantiles are computed over all responses of all processes together, as users of a fleet see
    /// them, and not averaged over processes.
    pub pooled: bool,
    /// Whether a copy of the baseline is measured along with the variants. If the two differ, the machine
    /// cannot distinguish variants, and the result is invalid.
    pub aa: bool,
    /// Whether a block is discarded and repeated if more than a fifth of its time was lost to the host, to
    /// other programs, or to a CPU quota. The decision does not depend on the measured values.
    #[default(true)]
    pub drop_disturbed: bool,
    /// Whether profiles are captured after the last block, to explain the verdict. They are captured in
    /// separate trials, never in measured ones, and in addition to the budget.
    pub explain: bool,
    /// The smallest relative difference that matters to you. A difference that is certainly smaller counts as
    /// equivalent.
    #[default(Percent(0.03))]
    pub margin: Percent,
    /// Time from the first start of a service to the verdict, 10s to 24h.
    #[default(Period::seconds(600))]
    pub budget: Period,
    /// Seed of every random choice. Default: a random seed, which the record contains.
    #[schemars(range(min = 0, max = SEED_MAX))]
    pub seed: Option<u64>,
    /// Length of the warm-up of each trial, 0s to 10m. Default: determined in the first block.
    pub warmup: Option<Period>,
    /// Length of a slice (one measurement, made of turns), 20ms to 60s. Default: chosen by the lab.
    pub slice: Option<Period>,
    /// Slices in each trial. Default: chosen after the third block from the variances so far.
    #[schemars(range(min = 1, max = 100))]
    pub slices: Option<u32>,
    /// Maximum number of blocks (random passes over all variants). Default: as many as the budget permits.
    #[schemars(range(min = 4, max = 120))]
    pub blocks: Option<u32>,
    /// Open loop: requests due per second, the same for every variant, whether or not it keeps up. A number
    /// such as 1000, or a share of the slowest variant's capacity, such as "60%", which is then measured
    /// first. "1000..5000" and "20%..60%" rise, or fall, over each slice. Default: "60%" if the metric is a
    /// latency, otherwise closed loop.
    pub rate: Option<RateValue>,
    /// Distribution of requests in time in open loop: like many independent users, or evenly.
    pub arrivals: ArrivalProcess,
    /// Service level objectives, such as ["p99 < 50ms", "failed < 0.1%"]. The metric is then `capacity`, the
    /// highest rate of requests at which all of them hold.
    pub slo: Vec<SloText>,
}

/// A container that is started instead of a program, by the command `docker` or `podman`, and removed after
/// each trial.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ContainerTable {
    /// Name of the image, as `docker run` takes it. It must exist locally: nothing is pulled.
    pub image: Option<String>,
    /// The port on which it listens inside, {port}. Optional if the image exposes only one.
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<u16>,
    /// Variables set in it, in addition to the service's `env`. May contain the placeholders {port} and
    /// {address}.
    #[serde(deserialize_with = "scalars")]
    #[schemars(with = "BTreeMap<String, Scalar>")]
    pub env: BTreeMap<String, String>,
    /// Arguments after the image, replacing its own. May contain the placeholders {port} and {address}.
    pub args: Vec<String>,
    /// The command that starts it. Default: docker, or podman if only podman is installed.
    pub engine: Option<Engine>,
}

/// A Compose project that is started instead of a program, with a unique name, and taken down after each
/// trial with its volumes.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Compose {
    /// The file, relative to the folder of this one.
    pub file: Option<String>,
    /// The service in it that gets the requests. Its dependencies are started with it.
    pub service: Option<String>,
    /// The port on which it listens inside. Optional if it exposes only one.
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<u16>,
    /// The command that starts it. Default: docker, or podman if only podman is installed.
    pub engine: Option<Engine>,
}

/// The load on the entry.
#[derive(Debug, Clone, SmartDefault, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct LoadTable {
    /// The only request, if there are no `requests`.
    #[serde(flatten)]
    pub single: RequestTarget,
    /// Several requests instead of the one of `method`, `path` and `body`, at most 32, each sent in
    /// proportion to its weight.
    #[schemars(length(min = 1, max = 32))]
    pub requests: Vec<RequestTable>,
    #[serde(flatten)]
    pub settings: LoadSettings,
    /// Requests due per second, if levels differ in it: set for all variants or none, instead of
    /// `design.rate`.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = RATE_MAX_PER_S as u64))]
    pub rate: Option<f64>,
    /// Time limit for a complete response, after which a request counts as failed, 10ms to 10m. The default
    /// is long on purpose: a short timeout turns slow responses into errors and so removes them from the
    /// latencies.
    #[default(Period(Load::default().timeout))]
    pub timeout: Period,
    /// Protocol: HTTP/1.1, or HTTP/2, negotiated in TLS and by prior knowledge without it.
    pub protocol: FormatVersion,
    /// Concurrent requests on each HTTP/2 connection, if the server permits. Default: 10.
    #[schemars(range(min = 1, max = 1000))]
    pub streams: Option<u32>,
    /// Requests that each HTTP/1.1 connection sends without waiting for responses. No browser does this.
    /// Default: 1.
    #[schemars(range(min = 1, max = 1000))]
    pub pipeline: Option<u32>,
    /// TLS settings: for a started service, which must then speak TLS, or for an https URL.
    pub tls: Option<Tls>,
    /// A link with limited rate, or with a delay, between client and entry. Default: loopback.
    pub network: Option<NetworkTable>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) enum FormatVersion {
    #[default]
    #[serde(rename = "http/1.1")]
    Http1,
    #[serde(rename = "h2")]
    Http2,
}

/// Requirements for a response to count as a success. Any other response is an error, and enough errors
/// invalidate the measurement.
#[derive(Debug, Clone, SmartDefault, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ExpectTable {
    /// Status code, or a list of them, that count as success.
    #[schemars(schema_with = "one_or_more::<Status>")]
    #[default(OneOrMany::Many(vec![200]))]
    pub status: OneOrMany<u16>,
    /// Required header fields, each with its value or a list of permitted values. An empty list permits any
    /// value.
    pub headers: BTreeMap<String, OneOrMany<String>>,
    /// Length of the response body on the wire in bytes, if it is constant.
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
    #[serde(alias = "bytes")]
    pub body_bytes: Option<u64>,
    /// SHA-256 of the uncompressed body, such as sha256:ba78…. `load.sample_every` sets how many responses
    /// are checked.
    #[serde(alias = "sha256")]
    pub content: Option<ContentDigest>,
}

/// A request.
#[derive(Debug, Clone, SmartDefault, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct RequestTarget {
    /// Request method. Default: GET, and POST for one of `requests` with a body.
    #[schemars(extend("enum" = METHODS))]
    pub method: Option<String>,
    /// Request path with its query, sent unchanged.
    #[default(RequestPath(Request::default().path))]
    pub path: RequestPath,
    /// Request header fields, sent in this order. A list of values sends the field once for each value. The
    /// fields of one of `requests` are added to the fields of the load and replace fields with the same name.
    pub headers: IndexMap<String, OneOrMany<String>>,
    /// Request body. Its length is sent in the header.
    pub body: String,
    /// A file that contains the body, relative to the folder of this file.
    pub body_file: Option<String>,
    /// Rows of values, a .csv or .jsonl file relative to the folder of this file: {column} in path, headers
    /// and body is replaced by the value of a random row.
    pub values: Option<String>,
}

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// One of several requests of a load.
#[derive(Debug, Clone, SmartDefault, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["path"], "additionalProperties" = false))]
pub(crate) struct RequestTable {
    /// Unique name in reports. Default: method and path.
    pub name: Option<String>,
    /// Relative frequency: a request with weight 3 is sent three times as often as one with weight 1.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[default(Request::default().weight)]
    pub weight: u32,
    #[serde(flatten)]
    pub asked: RequestTarget,
    /// Requirements for its responses, instead of the file's `expect`.
    pub expect: Option<ExpectTable>,
    /// Whether each connection sends it once, before all others, to log in. Such requests are sent in the
    /// order of the file, and are not counted unless they fail.
    pub once: bool,
    /// For a request that is sent once: values of its response that later requests of the connection use, by
    /// the name in braces.
    pub capture: IndexMap<String, FieldText>,
}

/// A link between the client and the entry, the same in both directions. Requires root.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NetworkTable {
    /// Rate in each direction, 8kbit to 10gbit, for all connections together. Default: unlimited.
    pub rate: Option<Bandwidth>,
    /// Delay of a packet in each direction, 0ms to 1s. A round trip takes twice that. Default: next to
    /// nothing.
    pub delay: Option<Delay>,
}

/// One variant is measured without a comparison: at its limit, or at several rates in turn.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MeasureTable {
    /// Time to send at each rate. Default: 10s, unless `requests` is set.
    pub duration: Option<Period>,
    /// Number of requests to send, instead of `duration`.
    #[schemars(range(min = 1, max = 9_007_199_254_740_991_u64))]
    pub requests: Option<u64>,
    /// Open loop: requests due per second, whether or not the service keeps up. Default: closed loop.
    pub rate: Option<RatesText>,
    /// Distribution of requests in time in open loop. Default: like many independent users.
    pub arrivals: Option<ArrivalProcess>,
    /// Load before the first rate that is not measured. Default: none.
    pub warmup: Option<Period>,
}

/// Limits by metric, and tables of the same limits, without other keys.
fn gate_schema(generator: &mut SchemaGenerator) -> Schema {
    let limit = generator.subschema_for::<OneOrMany<LimitText>>();
    let limits = LimitFigure::all().map(|figure| {
        let mut schema = limit.clone();
        schema.insert("description".to_owned(), limit_description(figure).into());
        (figure.name().to_owned(), schema.to_value())
    });
    let limits = limits.collect::<serde_json::Map<_, _>>();
    let named = json_schema!({ "type": "object", "properties": limits.clone(), "additionalProperties": false });
    let mut gate =
        json_schema!({ "type": "object", "properties": limits, "additionalProperties": false });
    gate.ensure_object()["properties"]["of"] = serde_json::json!({
        "type": "object",
        "additionalProperties": named,
        "description":
            "Limits of one variant, of one level, or of one comparison by its label, in place of those that are for all.",
    });
    gate
}

fn limit_description(figure: LimitFigure) -> String {
    let Some(metric) = figure.metric() else {
        return "Share of requests that do not end in an expected response, an amount alone: \"< 0.05%\"."
            .to_owned();
    };
    let row = metric.row();
    let example = if metric.wants_more() {
        "> -3%"
    } else {
        "< +5%"
    };
    format!(
        "{}: {}, such as \"{example}\"; a list for several limits.",
        row.title, row.meaning
    )
}

// A value, or a list of values. (No doc comment: it would appear in the schema wherever the type is used.)
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
