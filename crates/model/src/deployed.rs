//! What was loaded and not started: a Service of a cluster, and the pods behind it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Service that ran already, as it was when a trial began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deployed {
    /// Name of the service in the experiment.
    pub service: String,
    /// Which it is: `kubernetes://NAMESPACE/SERVICE`.
    pub place: String,
    /// Where the load was sent: its own address in the cluster, and its port.
    pub address: String,
    /// The pods behind it, by name, ready or not.
    pub pods: Vec<PodSeen>,
}

/// A pod behind a Service, as the cluster told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PodSeen {
    /// Its name; of an address that somebody wrote down, that.
    pub name: String,
    /// What tells it from another pod of this name; empty for a mere address.
    pub uid: String,
    /// The node that it runs on, where that is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Where it listens, such as `10.83.101.7:8080`.
    pub address: String,
    /// Whether the cluster sent requests to it.
    pub ready: bool,
    /// How often its containers were started again, all together; `None` where nobody told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u32>,
    /// The images of its containers, by their digests where those are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
}
