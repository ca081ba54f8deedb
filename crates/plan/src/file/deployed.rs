//! A Service of a cluster that runs already, as the experiment file has it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::ServicePort;

/// A Service of a Kubernetes cluster that runs already: found through the API server, and neither started nor stopped.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Deployed {
    /// The context of the kubeconfig. Without it: its current one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The namespace of the Service. Without it: the context's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The Service's port, by its number or its name. Not needed where it has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<ServicePort>,
}
