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

/// Structs of which every field may be missing or null.
macro_rules! objects {
    ($($(#[$of_object:meta])* $object:ident { $($(#[$of_field:meta])* $field:ident: $kind:ty,)* })*) => { $(
        $(#[$of_object])*
        #[derive(Debug, Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        pub(super) struct $object { $(
            $(#[$of_field])*
            #[serde(deserialize_with = "null_is_empty")]
            pub $field: $kind,
        )* }
    )* };
}

objects! {
    /// What an API server says in place of an object.
    Status { message: String, details: StatusDetails, }
    StatusDetails {
        /// The resource that it is about: `namespaces`.
        kind: String,
    }
    Metadata {
        name: String,
        uid: String,
        annotations: BTreeMap<String, String>,
        deletion_timestamp: Option<String>,
    }
    /// The response to a SelfSubjectAccessReview.
    AccessReview { status: Access, }
    Access { allowed: bool, }
    Job { spec: JobSpec, }
    JobSpec { backoff_limit_per_index: Option<u32>, }
    Event { message: Option<String>, }
    Pod { metadata: Metadata, spec: PodSpec, status: PodStatus, }
    PodSpec { node_name: String, }
    PodStatus {
        phase: String,
        reason: String,
        message: String,
        conditions: Vec<Condition>,
        container_statuses: Vec<ContainerStatus>,
    }
    Condition {
        #[serde(rename = "type")]
        kind: String,
        status: String,
        reason: String,
        message: String,
    }
    ContainerStatus {
        state: ContainerState,
        restart_count: u32,
        image: String,
        #[serde(rename = "imageID")]
        image_id: String,
    }
    ContainerState {
        running: Option<IgnoredAny>,
        waiting: Option<Waiting>,
        terminated: Option<Terminated>,
    }
    Waiting { reason: String, message: String, }
    Terminated { exit_code: i32, reason: String, message: String, }
    Service { metadata: Metadata, spec: ServiceSpec, }
    ServiceSpec {
        #[serde(rename = "type")]
        kind: String,
        external_name: String,
        #[serde(rename = "clusterIP")]
        cluster_ip: String,
        ports: Vec<ServicePort>,
        selector: BTreeMap<String, String>,
    }
    ServicePort {
        name: Option<String>,
        port: u16,
        /// `None` is TCP.
        protocol: Option<String>,
    }
    EndpointSlice { address_type: String, ports: Vec<EndpointPort>, endpoints: Vec<Endpoint>, }
    EndpointPort { name: Option<String>, port: Option<u16>, }
    Endpoint {
        addresses: Vec<String>,
        node_name: Option<String>,
        target_ref: Option<TargetRef>,
        conditions: EndpointConditions,
    }
    TargetRef { kind: String, name: String, uid: String, }
    EndpointConditions { ready: Option<bool>, }
}
