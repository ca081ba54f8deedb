//! What is asked of the API server: all requests, each with a limit of time, and its answers as errors that say what is wrong.

use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{
    Api, AttachParams, AttachedProcess, DeleteParams, ListParams, PostParams, PropagationPolicy,
};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use super::error::ClusterError;
use super::job::CONTAINER;

mod services;

/// How long an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How long a connection may take.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// What is read from a pod at once.
const CHUNK_BYTES: usize = 64 << 10;

/// What somebody has to be allowed to do in a namespace, and the file that allows it.
pub(super) struct Rights {
    /// Below the folder of the project.
    pub role: &'static str,
    /// Verb, group, resource, subresource: what the file has, and no more.
    all: &'static [(&'static str, &'static str, &'static str, &'static str)],
}

/// All that is done for generators.
pub(super) const OF_GENERATORS: Rights = Rights {
    role: "deploy/kubernetes/role.yaml",
    all: &[
        ("create", "batch", "jobs", ""),
        ("delete", "batch", "jobs", ""),
        ("list", "", "pods", ""),
        ("get", "", "pods", "attach"),
        ("create", "", "pods", "attach"),
        ("list", "", "events", ""),
    ],
};

/// All that is done to load a Service that runs already.
pub(super) const OF_SERVICES: Rights = Rights {
    role: "deploy/kubernetes/service-role.yaml",
    all: &[
        ("get", "", "services", ""),
        ("list", "discovery.k8s.io", "endpointslices", ""),
        ("list", "", "pods", ""),
    ],
};

/// A namespace of a cluster, as somebody who may do something there.
#[derive(Clone)]
pub(super) struct Namespace {
    /// Its name.
    pub name: String,
    server: String,
    rights: &'static Rights,
    client: Client,
    jobs: Api<Job>,
    pods: Api<Pod>,
    events: Api<Event>,
}

impl Namespace {
    /// By the kubeconfig as kubectl finds it, or as the pod that we run in.
    pub(super) fn find(
        name: Option<&str>,
        config: Config,
        rights: &'static Rights,
    ) -> Result<Namespace, ClusterError> {
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let name = name.map_or_else(|| config.default_namespace.clone(), str::to_owned);
        let client =
            Client::try_from(config).map_err(|error| ClusterError::Config { why: deepest(&error) })?;
        let jobs = Api::namespaced(client.clone(), &name);
        let pods = Api::namespaced(client.clone(), &name);
        let events = Api::namespaced(client.clone(), &name);
        Ok(Namespace { name, server, rights, client, jobs, pods, events })
    }

    /// Whether all that will be done here is allowed, asked before anything is made: what may not be deleted must not be made.
    pub(super) async fn check_rights(&self) -> Result<(), ClusterError> {
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let mut missing = Vec::new();
        for (verb, group, resource, subresource) in self.rights.all {
            let attributes = ResourceAttributes {
                namespace: Some(self.name.clone()),
                verb: Some(verb.to_string()),
                group: Some(group.to_string()),
                resource: Some(resource.to_string()),
                subresource: Some(subresource.to_string()),
                ..Default::default()
            };
            let spec =
                SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
            let review = SelfSubjectAccessReview { spec, ..Default::default() };
            let asked = self.ask("who may do what", reviews.create(&PostParams::default(), &review)).await;
            match asked {
                Ok(review) if review.status.as_ref().is_some_and(|status| status.allowed) => {}
                Ok(_) => missing.push(right(verb, group, resource, subresource)),
                // Who may not even ask will hear of it from what is refused.
                Err(ClusterError::Forbidden { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        let (namespace, role) = (self.name.clone(), self.rights.role);
        if missing.is_empty() { Ok(()) } else { Err(ClusterError::Rights { namespace, missing, role }) }
    }

    pub(super) async fn create(&self, job: &Job) -> Result<Job, ClusterError> {
        self.ask("the Job", self.jobs.create(&PostParams::default(), job)).await
    }

    /// Deletes a Job and, in the background, its pods. One that is not there is deleted.
    pub(super) async fn delete(&self, name: &str) -> Result<(), ClusterError> {
        let with_pods =
            DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..Default::default() };
        let deletion = async {
            match self.jobs.delete(name, &with_pods).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
                deleted => deleted.map(drop),
            }
        };
        self.ask("the end of the Job", deletion).await
    }

    pub(super) async fn pods_of(&self, job: &str) -> Result<Vec<Pod>, ClusterError> {
        let of_job = ListParams::default().labels(&format!("batch.kubernetes.io/job-name={job}"));
        Ok(self.ask("a list of its pods", self.pods.list(&of_job)).await?.items)
    }

    /// A pod by its name; `None` where it is gone.
    pub(super) async fn pod(&self, name: &str) -> Result<Option<Pod>, ClusterError> {
        let by_name = ListParams::default().fields(&format!("metadata.name={name}"));
        Ok(self.ask("one of its pods", self.pods.list(&by_name)).await?.items.into_iter().next())
    }

    /// Why the cluster made no more pods for a Job, where it says so.
    pub(super) async fn refusal(&self, job: &str) -> Result<Option<String>, ClusterError> {
        let of_job = format!("involvedObject.kind=Job,involvedObject.name={job},reason=FailedCreate");
        let events = self.ask("events", self.events.list(&ListParams::default().fields(&of_job))).await?;
        Ok(events.items.into_iter().filter_map(|event| event.message).next_back())
    }

    pub(super) async fn attach(&self, pod: &str) -> Result<AttachedProcess, ClusterError> {
        let both = AttachParams::default().container(CONTAINER).stdin(true).stdout(true).stderr(true);
        let both = both.max_stdin_buf_size(CHUNK_BYTES).max_stdout_buf_size(CHUNK_BYTES);
        self.ask("to be attached to", self.pods.attach(pod, &both)).await
    }

    async fn ask<T>(
        &self,
        what: &'static str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, ClusterError> {
        match tokio::time::timeout(ANSWER_MAX, request).await {
            Ok(answer) => answer.map_err(|error| self.told(what, error)),
            Err(_) => Err(ClusterError::Unreachable {
                server: self.server.clone(),
                why: format!("{what}: nothing came within {} s", ANSWER_MAX.as_secs()),
            }),
        }
    }

    /// What an error means here.
    fn told(&self, what: &'static str, error: kube::Error) -> ClusterError {
        let (server, namespace) = (self.server.clone(), self.name.clone());
        let status = match error {
            kube::Error::Api(status) => status,
            error => return ClusterError::Unreachable { server, why: deepest(&error) },
        };
        let message = status.message.clone();
        let of_namespace = status.details.as_ref().is_some_and(|details| details.kind == "namespaces");
        match status.code {
            401 => ClusterError::Unauthorized { server, message },
            // What RBAC says has "cannot" in it; a quota and other admission are 403, too.
            403 if message.contains(" cannot ") => {
                ClusterError::Forbidden { namespace, message, role: self.rights.role }
            }
            // There, and not ready.
            429 | 503 | 504 => ClusterError::Unreachable { server, why: message },
            404 if of_namespace => ClusterError::Namespace { server, namespace },
            _ => ClusterError::Refused { what, message },
        }
    }
}

/// The kubeconfig as kubectl finds it; where there is none, the cluster whose pod we are.
pub(super) async fn config(context: Option<&str>) -> Result<Config, ClusterError> {
    let mut config = match Kubeconfig::read() {
        Ok(file) => of_file(file, context).await?,
        Err(KubeconfigError::FindPath) => inside("HOME is not set".into())?,
        Err(KubeconfigError::ReadConfig(error, path)) => inside(format!("{}: {error}", path.display()))?,
        Err(error) => return Err(ClusterError::Config { why: error.to_string() }),
    };
    config.connect_timeout = Some(CONNECT_MAX);
    Ok(config)
}

async fn of_file(file: Kubeconfig, context: Option<&str>) -> Result<Config, ClusterError> {
    let known: Vec<String> = file.contexts.iter().map(|context| context.name.clone()).collect();
    let asked = context.map(str::to_owned).or_else(|| file.current_context.clone()).unwrap_or_default();
    if !known.contains(&asked) {
        return Err(ClusterError::Context { name: asked, known });
    }
    let options = KubeConfigOptions { context: Some(asked), ..Default::default() };
    let config = Config::from_custom_kubeconfig(file, &options).await;
    config.map_err(|error| ClusterError::Config { why: error.to_string() })
}

fn inside(why: String) -> Result<Config, ClusterError> {
    Config::incluster().map_err(|_| ClusterError::Unknown { why })
}

fn right(verb: &str, group: &str, resource: &str, subresource: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    let slash = if subresource.is_empty() { "" } else { "/" };
    format!("{verb} {resource}{slash}{subresource}{dot}{group}")
}

/// The innermost cause, which is what went wrong; those around it say where in the program.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
