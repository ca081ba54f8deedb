//! Services: started by a command, running at a URL, or running as a Service of a cluster.
//!
//! Types of the plan, stored as JSON in the record. They are checked where they are created.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::{Plan, Request, Variant};
use crate::placeholder::{Placeholder, placeholders, template_placeholders};
use crate::url::Url;
use ::model::ServiceStarted;

/// A service that gets requests, or that such a service needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// Name of the service in the file.
    pub name: String,
    /// Source of the service. In JSON its fields are beside the others.
    #[serde(flatten)]
    pub source: ServiceSource,
    /// When the service counts as ready.
    pub ready: Ready,
    /// Maximum time to become ready.
    pub ready_timeout: Duration,
    /// Services that must be ready before this one starts. Empty if it is not started.
    pub needs: Vec<String>,
}

/// Source of a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ServiceSource {
    /// It is already running in a cluster.
    Deployed {
        /// The Service.
        kubernetes: Deployed,
    },
    /// It is already running at a URL.
    Url {
        /// The URL.
        url: Url,
    },
    /// It is started. This must be the last variant, because any other JSON is parsed as this.
    Command(ServiceCommand),
}

/// A process (group) to start, or a container.
#[derive(Debug, Clone, PartialEq, SmartDefault, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceCommand {
    /// Program and arguments. Placeholders such as `{port}` are not yet replaced.
    pub command: Vec<String>,
    /// Absolute path of the working directory.
    #[default("/".into())]
    pub directory: PathBuf,
    /// The address on which it was found to listen in this run. `None` before, or if it is the given address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The container that is started instead of a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
    /// Variables added to Proofload's own environment. Placeholders are not yet replaced.
    pub env: BTreeMap<String, String>,
    /// The port it must listen on. `None` is a free port for each trial.
    pub port: Option<u16>,
    /// The port on which it was found to listen in this run instead of PORT. `None` before, or if it uses
    /// PORT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listens_on: Option<u16>,
    /// Other ports on which it was found to listen in this run, such as one for metrics.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_ports: Vec<u16>,
    /// Maximum time to end after SIGTERM before it is killed.
    #[default(Duration::from_secs(5))]
    pub stop_timeout: Duration,
    /// How it is started.
    pub launcher: Launcher,
    /// Number of processes that serve. `None` only with the launcher `Exec`.
    pub workers: Option<Workers>,
    /// Whether PM2 monitors the process from inside. No effect without PM2.
    #[default(true)]
    pub pmx: bool,
    /// Files created for each trial: name to text. Placeholders such as `{{port}}` are not yet replaced.
    pub templates: BTreeMap<String, String>,
}

/// A container or project that a container engine starts. The service's `command` has the arguments after the
/// image, its `env` is set in the container, and `{port}` is the port inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// One container of an image, or a project.
    #[serde(flatten)]
    pub of: ContainerOf,
    /// The port on which it listens inside. `None` is the exposed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The command that starts it. `None` is docker, or podman if only podman is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<Engine>,
}

/// Source of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainerOf {
    /// Name of an image, as `docker run` takes it. It must exist locally: nothing is pulled.
    Image(String),
    /// A Compose project. The dependencies of the service are started with it.
    Compose {
        /// Absolute path of the file.
        file: PathBuf,
        /// The service in it that gets the requests.
        service: String,
    },
}

/// The command that starts containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// `docker`, with a daemon.
    Docker,
    /// `podman`, without one.
    Podman,
}

impl Engine {
    /// The command.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Docker => "docker",
            Engine::Podman => "podman",
        }
    }
}

impl fmt::Display for Container {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.of {
            ContainerOf::Image(image) => write!(formatter, "container {image}"),
            ContainerOf::Compose { file, service } => {
                write!(formatter, "{service} of {}", file.display())
            }
        }
    }
}

/// How a service is started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Launcher {
    /// As the command says.
    #[default]
    Exec,
    /// As several processes of Node.js's own cluster, without a change to the program.
    Cluster,
    /// By PM2, in fork mode.
    Pm2Fork,
    /// By PM2, in cluster mode.
    Pm2Cluster,
}

impl Launcher {
    /// Name in the experiment file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Cluster => "cluster",
            Self::Pm2Fork => "pm2-fork",
            Self::Pm2Cluster => "pm2-cluster",
        }
    }

    /// Whether it uses PM2.
    pub fn is_pm2(self) -> bool {
        match self {
            Self::Pm2Fork | Self::Pm2Cluster => true,
            Self::Exec | Self::Cluster => false,
        }
    }

    /// Whether it starts a configured number of processes of a Node.js script.
    pub fn makes_workers(self) -> bool {
        match self {
            Self::Exec => false,
            Self::Cluster | Self::Pm2Fork | Self::Pm2Cluster => true,
        }
    }
}

/// As how many processes a service serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Workers {
    /// One for each CPU that the services have.
    Cores,
    /// A fixed number.
    #[serde(untagged)]
    Number(#[schemars(range(min = 1, max = WORKERS_MAX))] u32),
}

/// Maximum number of workers of a service. More bring no gain on any machine.
pub const WORKERS_MAX: u32 = 256;

/// When a service counts as ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ready {
    /// A GET of this path on its port gets a response with a 2xx status.
    Http(String),
    /// Its port accepts a connection.
    Tcp,
    /// A GET gets a response that [`ReadyResponse`] accepts.
    Response,
}

/// The response that shows that a service without a `ready` path is ready, whether started or already
/// running. A status of 500 or more means that it is still starting, unless the experiment expects this
/// status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyResponse {
    /// A path of the load, requested if `/` responds with 500 or more.
    pub path: String,
    /// Expected statuses of 500 or more.
    pub expected: Vec<u16>,
}

impl Default for ReadyResponse {
    fn default() -> Self {
        Self {
            path: "/".to_owned(),
            expected: Vec::new(),
        }
    }
}

impl ReadyResponse {
    /// Hint for a service whose responses are not accepted.
    pub const HINT: &str = "raise `ready_timeout` if it is still starting; `ready` (--ready PATH) names a path that answers with 2xx once \
                            it is ready; if this is its proper answer, `expect.status` (--expect-status) must name it";

    /// Whether a response of this status shows that the service is ready.
    pub fn accepts(&self, status: u16) -> bool {
        status < 500 || self.expected.contains(&status)
    }
}

/// A Service of a Kubernetes cluster that runs already: found through the API server, and neither started nor stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Deployed {
    /// The context of the kubeconfig. Without it: its current one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The namespace of the Service. Without it: the context's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the Service.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service: String,
    /// The Service's port, by its number or its name. Not needed where it has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<ServicePort>,
}

/// A port of a Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum ServicePort {
    /// Its number, which is the Service's and not that of its pods.
    Number(#[schemars(range(min = 1, max = 65535))] u16),
    /// Its name.
    Name(String),
}

impl fmt::Display for ServicePort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServicePort::Number(number) => number.fmt(formatter),
            ServicePort::Name(name) => name.fmt(formatter),
        }
    }
}

/// `Service shop in prod, port http, of the context staging`, without the parts that are not specified.
impl fmt::Display for Deployed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Service {}", self.service)?;
        self.namespace
            .iter()
            .try_for_each(|namespace| write!(formatter, " in {namespace}"))?;
        self.port
            .iter()
            .try_for_each(|port| write!(formatter, ", port {port}"))?;
        self.context
            .iter()
            .try_for_each(|context| write!(formatter, ", of the context {context}"))
    }
}

impl Service {
    /// The command. `None` if it is already running.
    pub fn command(&self) -> Option<&ServiceCommand> {
        match &self.source {
            ServiceSource::Command(command) => Some(command),
            ServiceSource::Url { .. } | ServiceSource::Deployed { .. } => None,
        }
    }

    /// The command, mutable. `None` if it is already running.
    pub fn command_mut(&mut self) -> Option<&mut ServiceCommand> {
        match &mut self.source {
            ServiceSource::Command(command) => Some(command),
            ServiceSource::Url { .. } | ServiceSource::Deployed { .. } => None,
        }
    }

    /// Whether it is started and its port is unknown before.
    pub fn chooses_port(&self) -> bool {
        self.command()
            .is_some_and(|command| command.chooses_port(&self.name))
    }

    /// URL of a running service.
    pub fn url(&self) -> Option<&Url> {
        match &self.source {
            ServiceSource::Url { url } => Some(url),
            ServiceSource::Command(_) | ServiceSource::Deployed { .. } => None,
        }
    }

    /// The Service of a cluster, if it is one.
    pub fn deployed(&self) -> Option<&Deployed> {
        match &self.source {
            ServiceSource::Deployed { kubernetes } => Some(kubernetes),
            ServiceSource::Command(_) | ServiceSource::Url { .. } => None,
        }
    }

    /// Whether its processes may be readable, so that their resources can be measured. False in a cluster,
    /// and for a URL of another machine.
    pub fn may_be_seen(&self) -> bool {
        match &self.source {
            ServiceSource::Command(_) => true,
            ServiceSource::Url { url } => url.is_local(),
            ServiceSource::Deployed { .. } => false,
        }
    }
}

impl ServiceCommand {
    /// Whether its port is unknown before it runs: it has no port, and no text contains `{port}`. It still
    /// gets a free port in the variable PORT.
    fn chooses_port(&self, service: &str) -> bool {
        let own = format!("{service}.port");
        let is_port =
            |placeholder: &Placeholder<'_>| placeholder.name == "port" || placeholder.name == own;
        let is_known = self.port.or(self.listens_on).is_some();
        !is_known && self.container.is_none() && !self.placeholders().iter().any(is_port)
    }

    /// Ports that no other process may use while it runs, if they are known before it starts.
    pub fn own_ports(&self) -> impl Iterator<Item = u16> {
        self.port
            .into_iter()
            .chain(self.listens_on)
            .chain(self.other_ports.iter().copied())
    }

    /// The placeholders of its texts.
    pub(crate) fn placeholders(&self) -> Vec<Placeholder<'_>> {
        let CommandTexts {
            words,
            env,
            templates,
        } = self.texts();
        let texts = words
            .iter()
            .chain(env.values())
            .flat_map(|text| placeholders(text));
        texts
            .chain(
                templates
                    .values()
                    .flat_map(|text| template_placeholders(text)),
            )
            .collect()
    }

    /// Texts that may contain placeholders and secrets.
    pub(crate) fn texts(&self) -> CommandTexts<&[String], &BTreeMap<String, String>> {
        CommandTexts {
            words: &self.command,
            env: &self.env,
            templates: &self.templates,
        }
    }

    /// Mutable texts. Every field is named, so that a new one does not compile until it is classified.
    pub(crate) fn texts_mut(
        &mut self,
    ) -> CommandTexts<&mut [String], &mut BTreeMap<String, String>> {
        let ServiceCommand {
            command,
            env,
            templates,
            directory: _,
            address: _,
            // Names of an image and a file.
            container: _,
            port: _,
            listens_on: _,
            other_ports: _,
            stop_timeout: _,
            launcher: _,
            workers: _,
            pmx: _,
        } = self;
        CommandTexts {
            words: command,
            env,
            templates,
        }
    }
}

/// Texts of a command that may contain placeholders and secrets. In templates, placeholders have double
/// braces.
pub(crate) struct CommandTexts<Words, Texts> {
    /// Program and arguments.
    pub words: Words,
    /// Variables.
    pub env: Texts,
    /// Files created for each trial.
    pub templates: Texts,
}

impl Variant {
    /// Stores the ports on which services without a configured port were found. They are expected there from
    /// now on.
    pub fn pin(&mut self, started: &[ServiceStarted]) {
        for seen in started {
            let of_it = self
                .services
                .iter_mut()
                .filter(|service| service.name == seen.service);
            for service in of_it.filter(|service| service.chooses_port() || seen.found.is_some()) {
                let Some(command) = service.command_mut() else {
                    continue;
                };
                command.other_ports.clone_from(&seen.other_ports);
                if let Some(found) = &seen.found {
                    command.address = found.address.or(command.address);
                    command.listens_on = Some(seen.port)
                        .filter(|port| *port != found.given)
                        .or(command.listens_on);
                }
            }
        }
    }

    /// The response that shows that the entry is ready.
    pub fn ready_response(&self) -> ReadyResponse {
        let requests = &self.load.requests;
        let own = requests
            .iter()
            .filter_map(|request| request.expect.as_ref());
        let statuses = std::iter::once(&self.expect)
            .chain(own)
            .flat_map(|contract| &contract.status);
        let is_plain = |request: &&Request| request.method == "GET" && !request.path.contains('{');
        // Without a session, a service would refuse a path for users.
        let path = requests
            .iter()
            .find(is_plain)
            .filter(|_| !self.load.has_users());
        ReadyResponse {
            path: path.map_or("/", |request| &request.path).to_owned(),
            expected: statuses.copied().filter(|status| *status >= 500).collect(),
        }
    }

    /// The service that gets the load. `None` only in unchecked plans.
    pub fn entry_service(&self) -> Option<&Service> {
        self.services
            .iter()
            .find(|service| service.name == self.entry)
    }

    /// The loaded Service of a cluster, if it is one.
    pub fn deployed(&self) -> Option<&Deployed> {
        self.entry_service()?.deployed()
    }

    /// Whether the loaded service is already running, and is neither started nor stopped.
    pub fn runs_already(&self) -> bool {
        self.entry_service()
            .is_some_and(|entry| entry.command().is_none())
    }
}

impl Plan {
    /// Whether any variant loads a service that is already running.
    pub fn loads_running(&self) -> bool {
        self.variants.iter().any(Variant::runs_already)
    }
}
