//! A Service that runs already, and the pods that it leads to: found, and looked at whenever somebody asks.
//!
//! Nothing is changed in the cluster. It must not decide what a change among the pods means.

use std::net::SocketAddr;

use super::api::{Namespace, OF_SERVICES};
use super::error::ClusterError;
use super::objects::Service;
use crate::HostError;

mod see;

/// A Service of a cluster, with the rights to look at it.
pub struct Deployed {
    wanted: plan::Deployed,
    namespace: Namespace,
}

/// Where a Service is found, and what stood behind it at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    /// The address of the Service itself, which the cluster passes on.
    pub address: SocketAddr,
    /// All that it knows of, by name, ready or not.
    pub pods: Vec<Pod>,
    /// What chooses them, as kubectl takes it; empty where nothing does, and the addresses were written by hand.
    pub selector: String,
}

/// A pod behind a Service; without one an address that was written down.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pod {
    /// Its name; of a mere address that.
    pub name: String,
    /// What distinguishes it from another pod of this name; empty for a mere address.
    pub uid: String,
    /// Its node, where that is known.
    pub node: Option<String>,
    /// Where it is reached, and on which port: `10.83.101.7:8080`.
    pub address: String,
    /// Whether the cluster sends requests to it.
    pub ready: bool,
    /// How often its containers were started again, all together; `None` where that is unknown.
    pub restarts: Option<u32>,
    /// The images that its containers run, by their digests.
    pub images: Vec<String>,
}

impl Behind {
    /// The pods that requests go to.
    pub fn ready(&self) -> impl Iterator<Item = &Pod> {
        self.pods.iter().filter(|pod| pod.ready)
    }
}

impl std::fmt::Debug for Deployed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deployed").field("place", &self.place()).finish_non_exhaustive()
    }
}

impl Deployed {
    /// Finds a Service's cluster and namespace, and whether all that is needed is allowed there.
    ///
    /// # Errors
    /// If there is no such cluster, or rights are missing.
    pub fn find(wanted: &plan::Deployed) -> Result<Deployed, HostError> {
        let namespace =
            Namespace::find(wanted.context.as_deref(), wanted.namespace.as_deref(), &OF_SERVICES)?;
        Ok(Deployed { wanted: wanted.clone(), namespace })
    }

    /// What it is called: `kubernetes://NAMESPACE/SERVICE`.
    pub fn place(&self) -> String {
        format!("kubernetes://{}/{}", self.namespace.name, self.wanted.service)
    }

    /// Looks at it once: where it is found, and what stands behind it, which may be nothing.
    ///
    /// # Errors
    /// If it is not there, cannot be loaded, or the API server does not answer, also when asked again.
    pub fn look(&self) -> Result<Behind, ClusterError> {
        match self.looked() {
            // A connection that was idle for minutes may have been closed by whatever stands between.
            Err(ClusterError::Unreachable { .. }) => self.looked(),
            looked => looked,
        }
    }

    /// Why a Service cannot be loaded that this was seen of; `None` where it can.
    pub fn refusal(&self, behind: &Behind) -> Option<ClusterError> {
        if behind.ready().next().is_some() {
            return None;
        }
        let names: Vec<&str> = behind.pods.iter().map(|pod| pod.name.as_str()).collect();
        let namespace = &self.namespace.name;
        let (why, hint) = match (&names[..], behind.selector.as_str()) {
            ([], "") => (
                "it leads nowhere: it selects no pods, and has no addresses written down".to_owned(),
                format!("kubectl get endpointslices --namespace {namespace}"),
            ),
            ([], selector) => (
                format!("no pod is behind it: none has {selector}"),
                format!("kubectl get pods --namespace {namespace} --show-labels"),
            ),
            (names, _) => (
                format!("no pod behind it is ready: {}", names.join(", ")),
                format!("kubectl describe pods --namespace {namespace} tells why"),
            ),
        };
        Some(ClusterError::Service { service: self.place(), why, hint })
    }

    fn looked(&self) -> Result<Behind, ClusterError> {
        let name = &self.wanted.service;
        let Some(service) = self.namespace.service(name)? else { return Err(self.missing()) };
        let found = see::address(&self.place(), &service, self.wanted.port.as_ref())?;
        let slices = self.namespace.endpoints(name)?;
        let selector = selector(&service);
        let pods = match selector.as_str() {
            "" => Vec::new(),
            selector => self.namespace.pods_selected(selector)?,
        };
        let pods = see::pods(&found, &slices, &pods);
        Ok(Behind { address: found.address, pods, selector })
    }

    fn missing(&self) -> ClusterError {
        let (name, namespace) = (&self.wanted.service, &self.namespace.name);
        let known = self.namespace.service_names();
        let hint = match &known[..] {
            [] => format!("kubectl get services --namespace {namespace}"),
            known => plan::did_you_mean(name, "Services there", known.iter().map(String::as_str)),
        };
        ClusterError::Service { service: self.place(), why: "there is no such Service".into(), hint }
    }
}

/// `app=shop,tier=web`.
fn selector(service: &Service) -> String {
    let pairs = service.spec.selector.iter().map(|(key, value)| format!("{key}={value}"));
    pairs.collect::<Vec<_>>().join(",")
}
