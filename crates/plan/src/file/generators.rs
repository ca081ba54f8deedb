//! Where load comes from, as the experiment file has it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shape::Scalar;

/// Where the load comes from: generators on this machine, on hosts that ssh reaches, and in pods of a cluster. Connections and rate are
/// divided among them.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Generators {
    /// Generators on this machine. One alone is Proofload itself; otherwise each is a process of its own.
    #[schemars(range(min = 0, max = 64))]
    pub local: u32,
    /// Hosts with one generator each, by what `ssh` takes: `user@host`, or a name of ~/.ssh/config.
    pub ssh: Vec<String>,
    /// Generators as pods of one Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<Kubernetes>,
    /// The program that is put on hosts, relative to the folder of this file. Without it: this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The address of this machine by which generators elsewhere reach it. The entry listens on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

impl Default for Generators {
    fn default() -> Self {
        Self { local: 1, ssh: Vec::new(), kubernetes: None, program: None, address: None }
    }
}

/// Generators as pods of one Job.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["pods", "image"]))]
pub(crate) struct Kubernetes {
    /// The context of the kubeconfig. Without it: its current one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Where the Job is made. Without it: in the context's own namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// How many, with one generator each.
    #[schemars(range(min = 1, max = 1000))]
    pub pods: u32,
    /// The image, whose entry point is `proofload`.
    pub image: String,
    /// Labels that a node must have.
    pub node_selector: BTreeMap<String, Scalar>,
    /// What each pod is given, request and limit alike, such as `cpu` and `memory`.
    pub resources: BTreeMap<String, Scalar>,
}
