//! A Service of a cluster that runs already. Types of the plan, kept as JSON in the record; what is allowed is judged where they are made.

use std::borrow::Cow;
use std::fmt;

use super::{Plan, Service, Variant};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A Service of a Kubernetes cluster that is loaded as it stands: nothing of it is started, and nothing stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deployed {
    /// The context of the kubeconfig; `None` is its current one.
    pub context: Option<String>,
    /// The namespace of the Service; `None` is the context's own.
    pub namespace: Option<String>,
    /// Name of the Service.
    pub service: String,
    /// Which of its ports; `None` where it has only one.
    pub port: Option<ServicePort>,
}

/// A port of a Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ServicePort {
    /// Its number, which is the Service's and not that of its pods.
    Number(u16),
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

impl JsonSchema for ServicePort {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "ServicePort".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let number = json_schema!({ "type": "integer", "minimum": 1, "maximum": 65535 });
        json_schema!({ "anyOf": [number, { "type": "string" }] })
    }
}

/// `Service shop in prod, port http, of the context staging`: as it is asked for, what is left open left out.
impl fmt::Display for Deployed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Service {}", self.service)?;
        self.namespace.iter().try_for_each(|namespace| write!(formatter, " in {namespace}"))?;
        self.port.iter().try_for_each(|port| write!(formatter, ", port {port}"))?;
        self.context.iter().try_for_each(|context| write!(formatter, ", of the context {context}"))
    }
}

impl Variant {
    /// What it loads, where that runs already.
    pub fn deployed(&self) -> Option<&Deployed> {
        self.services.iter().find(|service| service.name == self.entry)?.kubernetes.as_ref()
    }
}

impl Service {
    /// Whether it is a process of this machine.
    pub fn is_here(&self) -> bool {
        self.host.is_none() && self.kubernetes.is_none()
    }
}

impl Plan {
    /// Whether any variant loads what runs already.
    pub fn loads_deployed(&self) -> bool {
        self.variants.iter().any(|variant| variant.deployed().is_some())
    }
}
