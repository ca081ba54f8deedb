//! The objects of Kubernetes, as far as they are read here. What a cluster leaves out, or gives as null, is empty.

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};

fn null_is_empty<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

#[derive(Debug, Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
pub(super) struct List<T> {
    #[serde(default, deserialize_with = "null_is_empty")]
    pub items: Vec<T>,
}

/// What an API server says in place of an object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    pub message: String,
    pub details: StatusDetails,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StatusDetails {
    /// The resource that it is about: `namespaces`.
    pub kind: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub name: String,
    pub uid: String,
    #[serde(deserialize_with = "null_is_empty")]
    pub annotations: BTreeMap<String, String>,
    pub deletion_timestamp: Option<String>,
}

/// The response to a SelfSubjectAccessReview.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AccessReview {
    pub status: Access,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Access {
    pub allowed: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Job {
    pub spec: JobSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct JobSpec {
    pub backoff_limit_per_index: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    pub message: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Pod {
    pub metadata: Metadata,
    pub spec: PodSpec,
    pub status: PodStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodSpec {
    pub node_name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodStatus {
    pub phase: String,
    pub reason: String,
    pub message: String,
    #[serde(deserialize_with = "null_is_empty")]
    pub conditions: Vec<Condition>,
    #[serde(deserialize_with = "null_is_empty")]
    pub container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub reason: String,
    pub message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ContainerStatus {
    pub state: ContainerState,
    pub restart_count: u32,
    pub image: String,
    #[serde(rename = "imageID")]
    pub image_id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ContainerState {
    pub running: Option<IgnoredAny>,
    pub waiting: Option<Waiting>,
    pub terminated: Option<Terminated>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Waiting {
    pub reason: String,
    pub message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Terminated {
    pub exit_code: i32,
    pub reason: String,
    pub message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Service {
    pub metadata: Metadata,
    pub spec: ServiceSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ServiceSpec {
    #[serde(rename = "type")]
    pub kind: String,
    pub external_name: String,
    #[serde(rename = "clusterIP")]
    pub cluster_ip: String,
    #[serde(deserialize_with = "null_is_empty")]
    pub ports: Vec<ServicePort>,
    #[serde(deserialize_with = "null_is_empty")]
    pub selector: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ServicePort {
    pub name: Option<String>,
    pub port: u16,
    /// `None` is TCP.
    pub protocol: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct EndpointSlice {
    pub address_type: String,
    #[serde(deserialize_with = "null_is_empty")]
    pub ports: Vec<EndpointPort>,
    #[serde(deserialize_with = "null_is_empty")]
    pub endpoints: Vec<Endpoint>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EndpointPort {
    pub name: Option<String>,
    pub port: Option<u16>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Endpoint {
    #[serde(deserialize_with = "null_is_empty")]
    pub addresses: Vec<String>,
    pub node_name: Option<String>,
    pub target_ref: Option<TargetRef>,
    pub conditions: EndpointConditions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TargetRef {
    pub kind: String,
    pub name: String,
    pub uid: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EndpointConditions {
    pub ready: Option<bool>,
}
