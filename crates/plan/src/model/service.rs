//! What a service is: a command that is started, a URL where one runs already, a Service of a cluster.
//!
//! Types of the plan, kept as JSON in the record; what is allowed is judged where they are made.

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

/// What answers requests, or is needed by what does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// Name of the service in the file.
    pub name: String,
    /// Where it comes from. In JSON its fields stand beside the others.
    #[serde(flatten)]
    pub source: ServiceSource,
    /// When the service counts as ready.
    pub ready: Ready,
    /// How long it may take to become ready.
    pub ready_timeout: Duration,
    /// Services that must be ready before this one starts; none of one that is not started.
    pub needs: Vec<String>,
}

/// Where a service comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ServiceSource {
    /// It runs already in a cluster.
    Deployed {
        /// Which Service it is.
        kubernetes: Deployed,
    },
    /// It runs already.
    Url {
        /// Where, and below which path.
        url: Url,
    },
    /// It is started. The last one: anything else in JSON is this.
    Command(ServiceCommand),
}

/// A process (group) to start, or a container.
#[derive(Debug, Clone, PartialEq, SmartDefault, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceCommand {
    /// Program and arguments, with placeholders such as `{port}` not yet filled in.
    pub command: Vec<String>,
    /// Absolute path of the working directory.
    #[default("/".into())]
    pub directory: PathBuf,
    /// The address that it was seen to listen on in this run; `None` before that, and where it listens on the address that it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The container that is started in place of a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
    /// Variables added to Proofload's own environment, placeholders not yet filled in.
    pub env: BTreeMap<String, String>,
    /// The port it must listen on; `None` lets Proofload choose a free one for each trial.
    pub port: Option<u16>,
    /// The port that it was seen to listen on in this run, whatever PORT says; `None` before that, and where it heeds PORT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listens_on: Option<u16>,
    /// Further ports that it was seen to listen on in this run, such as one for metrics.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_ports: Vec<u16>,
    /// How long it may take to end after SIGTERM before it is killed.
    #[default(Duration::from_secs(5))]
    pub stop_timeout: Duration,
    /// How it is started.
    pub launcher: Launcher,
    /// As how many processes it serves; always there unless it is started as its command says.
    pub workers: Option<Workers>,
    /// Whether PM2 monitors the process from inside; without effect where PM2 does not start it.
    #[default(true)]
    pub pmx: bool,
    /// Files made anew for each trial: name to text, with placeholders such as `{{port}}` not yet filled in.
    pub templates: BTreeMap<String, String>,
}

/// What is started by the command of a container engine. The service's `command` is what stands behind the image, its `env` is set in
/// the container, and `{port}` is the port inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// One container of an image, or a project.
    #[serde(flatten)]
    pub of: ContainerOf,
    /// The port that it listens on inside; `None` is the one that it exposes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// By which command; `None` is docker, or podman where that alone is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<Engine>,
}

/// Where a container comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainerOf {
    /// The name of an image, as `docker run` takes it. It must be there: nothing is pulled.
    Image(String),
    /// A project: all that its service needs is started with it.
    Compose {
        /// Absolute path of the file.
        file: PathBuf,
        /// The service in it that gets requests.
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
    /// Its name, as the experiment file has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Cluster => "cluster",
            Self::Pm2Fork => "pm2-fork",
            Self::Pm2Cluster => "pm2-cluster",
        }
    }

    /// Whether PM2 does it.
    pub fn is_pm2(self) -> bool {
        match self {
            Self::Pm2Fork | Self::Pm2Cluster => true,
            Self::Exec | Self::Cluster => false,
        }
    }

    /// Whether it makes processes of a script on Node.js, and so decides how many there are.
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
    /// So many.
    #[serde(untagged)]
    Number(#[schemars(range(min = 1, max = WORKERS_MAX))] u32),
}

/// Most workers of a service: more than any machine gains by.
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

/// The response by which a service that names no `ready` path counts as ready, be it started or running already. A status of 500 or more
/// means that it is still starting, unless the experiment expects it.
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
    /// What to do about a service whose responses are not accepted.
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

/// `Service shop in prod, port http, of the context staging`: as it is asked for, what is left open left out.
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
    /// How it is started; `None` where it runs already.
    pub fn command(&self) -> Option<&ServiceCommand> {
        match &self.source {
            ServiceSource::Command(command) => Some(command),
            ServiceSource::Url { .. } | ServiceSource::Deployed { .. } => None,
        }
    }

    /// The same, to be changed.
    pub fn command_mut(&mut self) -> Option<&mut ServiceCommand> {
        match &mut self.source {
            ServiceSource::Command(command) => Some(command),
            ServiceSource::Url { .. } | ServiceSource::Deployed { .. } => None,
        }
    }

    /// Whether it is started, and nothing says where it will listen.
    pub fn chooses_port(&self) -> bool {
        self.command()
            .is_some_and(|command| command.chooses_port(&self.name))
    }

    /// Where it runs already and is found by a URL.
    pub fn url(&self) -> Option<&Url> {
        match &self.source {
            ServiceSource::Url { url } => Some(url),
            ServiceSource::Command(_) | ServiceSource::Deployed { .. } => None,
        }
    }

    /// Which Service of a cluster it is, where it is one.
    pub fn deployed(&self) -> Option<&Deployed> {
        match &self.source {
            ServiceSource::Deployed { kubernetes } => Some(kubernetes),
            ServiceSource::Command(_) | ServiceSource::Url { .. } => None,
        }
    }

    /// Whether its processes may be seen, so that there are figures of what they use: not in a cluster, nor behind a URL of another
    /// machine.
    pub fn may_be_seen(&self) -> bool {
        match &self.source {
            ServiceSource::Command(_) => true,
            ServiceSource::Url { url } => url.is_local(),
            ServiceSource::Deployed { .. } => false,
        }
    }
}

impl ServiceCommand {
    /// Whether nothing says where it listens before it runs: it has no port, and `{port}` is nowhere. It gets a free one in the
    /// variable PORT all the same.
    fn chooses_port(&self, service: &str) -> bool {
        let own = format!("{service}.port");
        let is_port =
            |placeholder: &Placeholder<'_>| placeholder.name == "port" || placeholder.name == own;
        let is_known = self.port.or(self.listens_on).is_some();
        !is_known && self.container.is_none() && !self.placeholders().iter().any(is_port)
    }

    /// The ports that no other process may have while it runs, as far as they are known before it starts.
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

    /// The texts in which placeholders and secrets may stand.
    pub(crate) fn texts(&self) -> CommandTexts<&[String], &BTreeMap<String, String>> {
        CommandTexts {
            words: &self.command,
            env: &self.env,
            templates: &self.templates,
        }
    }

    /// The same, to be changed. Every field is named, so that a new one does not compile before somebody has decided whether it is such a
    /// text.
    pub(crate) fn texts_mut(
        &mut self,
    ) -> CommandTexts<&mut [String], &mut BTreeMap<String, String>> {
        let ServiceCommand {
            command,
            env,
            templates,
            directory: _,
            address: _,
            // An image and a file are names.
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

/// The texts of a command in which placeholders and secrets may stand; in templates placeholders have two braces.
pub(crate) struct CommandTexts<Words, Texts> {
    /// Program and arguments.
    pub words: Words,
    /// Variables.
    pub env: Texts,
    /// Files made anew for each trial.
    pub templates: Texts,
}

impl Variant {
    /// Records where services without a port of their own were found. They are expected there from now on.
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
        // Without a session a path of users would be refused.
        let path = requests
            .iter()
            .find(is_plain)
            .filter(|_| !self.load.has_users());
        ReadyResponse {
            path: path.map_or("/", |request| &request.path).to_owned(),
            expected: statuses.copied().filter(|status| *status >= 500).collect(),
        }
    }

    /// The service that gets the load; `None` only in plans that nobody has checked.
    pub fn entry_service(&self) -> Option<&Service> {
        self.services
            .iter()
            .find(|service| service.name == self.entry)
    }

    /// The Service of a cluster that it loads, where it loads one.
    pub fn deployed(&self) -> Option<&Deployed> {
        self.entry_service()?.deployed()
    }

    /// Whether what it loads runs already and is neither started nor stopped.
    pub fn runs_already(&self) -> bool {
        self.entry_service()
            .is_some_and(|entry| entry.command().is_none())
    }
}

impl Plan {
    /// Whether any variant loads what runs already.
    pub fn loads_running(&self) -> bool {
        self.variants.iter().any(Variant::runs_already)
    }
}
