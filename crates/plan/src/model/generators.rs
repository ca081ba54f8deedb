//! Generators of the load. The types are used in the file and in the plan, and stored as JSON in the record.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::scalar::{Scalar, scalars};
use crate::text_form::Address;

/// Where the load comes from: generators on this machine, on hosts that ssh reaches, and in pods of a
/// cluster. Connections and rate are divided among them.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Generators {
    /// Generators on this machine. A single one is Proofload itself, otherwise each is a separate process.
    #[schemars(range(min = 0, max = 64))]
    #[default(1)]
    pub local: u32,
    /// Hosts with one generator each, as `ssh` takes them: `user@host`, or a name of ~/.ssh/config.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ssh: Vec<String>,
    /// Generators as pods of one Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<Kubernetes>,
    /// The program that is copied to hosts, relative to the folder of this file. Default: this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<PathBuf>,
    /// The address of this machine by which generators on other machines reach it. The entry listens on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Address>")]
    pub address: Option<IpAddr>,
}

/// Generators as pods of one Job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["pods", "image"]))]
pub struct Kubernetes {
    /// The context of the kubeconfig. Default: its current one.
    pub context: Option<String>,
    /// Namespace of the Job. Default: the context's namespace.
    pub namespace: Option<String>,
    /// Number of pods, with one generator each.
    #[schemars(range(min = 1, max = 1000))]
    pub pods: u32,
    /// The image, whose entry point is `proofload`.
    pub image: String,
    /// Labels that a node must have.
    #[serde(deserialize_with = "scalars")]
    #[schemars(with = "BTreeMap<String, Scalar>")]
    pub node_selector: BTreeMap<String, String>,
    /// Resources of each pod, as both request and limit, such as `cpu` and `memory`.
    #[serde(deserialize_with = "scalars")]
    #[schemars(with = "BTreeMap<String, Scalar>")]
    pub resources: BTreeMap<String, String>,
}

impl Generators {
    /// Whether the load comes from this process alone, which is the default.
    pub fn is_here(&self) -> bool {
        self.local == 1 && self.count() == 1
    }

    /// Whether any of them is on another machine.
    pub fn is_elsewhere(&self) -> bool {
        self.count() > self.local
    }

    /// Number of generators.
    pub fn count(&self) -> u32 {
        let ssh = u32::try_from(self.ssh.len()).unwrap_or(u32::MAX);
        self.local.saturating_add(ssh).saturating_add(self.pods())
    }

    /// Number of pods.
    pub fn pods(&self) -> u32 {
        self.kubernetes.as_ref().map_or(0, |cluster| cluster.pods)
    }
}
