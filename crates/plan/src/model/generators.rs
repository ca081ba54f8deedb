//! Where load comes from. Types of the plan, kept as JSON in the record; what is allowed is judged where they are made.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The generators that load a service together. Connections and rate are divided among them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generators {
    /// Generators on this machine, each a process of its own unless there is only this one.
    pub local: u32,
    /// Destinations as `ssh` takes them, `user@host` or a name of `~/.ssh/config`: one generator each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ssh: Vec<String>,
    /// Generators in a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<Kubernetes>,
    /// The program that is put on hosts, where this machine's own would not run there; absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<PathBuf>,
    /// The address of this machine by which generators elsewhere reach it, on which the entry then listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

/// Generators as pods of one Job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kubernetes {
    /// The context of the kubeconfig; `None` is its current one.
    pub context: Option<String>,
    /// Where the Job is made; `None` is the context's own.
    pub namespace: Option<String>,
    /// One generator each, at least 1.
    pub pods: u32,
    /// The image, whose entry point is `proofload`.
    pub image: String,
    /// Labels that a node must have.
    #[serde(default)]
    pub node_selector: BTreeMap<String, String>,
    /// What each pod is given, request and limit alike, as Kubernetes writes quantities: `cpu` to `2`, `memory` to `512Mi`.
    #[serde(default)]
    pub resources: BTreeMap<String, String>,
}

impl Default for Generators {
    /// One, in this process.
    fn default() -> Generators {
        Generators { local: 1, ssh: Vec::new(), kubernetes: None, program: None, address: None }
    }
}

impl Generators {
    /// Whether load comes from this process alone, as it does unless a plan says otherwise.
    pub fn is_here(&self) -> bool {
        self.local == 1 && self.count() == 1
    }

    /// Whether any of them is on another machine.
    pub fn is_elsewhere(&self) -> bool {
        self.count() > self.local
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        let ssh = u32::try_from(self.ssh.len()).unwrap_or(u32::MAX);
        self.local.saturating_add(ssh).saturating_add(self.pods())
    }

    /// How many of them are pods.
    pub fn pods(&self) -> u32 {
        self.kubernetes.as_ref().map_or(0, |cluster| cluster.pods)
    }

    /// Whether a plan says nothing about them.
    pub(super) fn is_default(&self) -> bool {
        *self == Generators::default()
    }
}
