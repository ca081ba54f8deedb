//! A Service that already runs, and the pods behind it. The cluster is queried on each call.
//!
//! This module changes nothing in the cluster. It does not decide what a change of pods means.

use std::net::{IpAddr, SocketAddr};

use model::PodSeen;
use plan::ServicePort;

use crate::kubernetes::api::{
    ContainerStatus, Endpoint, EndpointSlice, Namespace, OF_SERVICES, Pod, Service,
    ServicePort as Port,
};
use crate::{Blame, Error};

/// A Service of a cluster, with the permissions to read it.
#[derive(Debug)]
pub struct DeployedAccess {
    wanted: plan::Deployed,
    namespace: Namespace,
}

/// Address of a Service, and the pods behind it at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodsBehind {
    /// Address of the Service itself, which the cluster forwards to pods.
    pub address: SocketAddr,
    /// All pods behind the Service, ready or not, sorted by name.
    pub pods: Vec<PodSeen>,
    /// Selector of the pods in the format of `kubectl`. Empty if there is no selector and the addresses are
    /// configured by hand.
    pub selector: String,
}

impl DeployedAccess {
    /// Finds the cluster and namespace of a Service, and checks that the required permissions exist.
    ///
    /// # Errors
    /// If there is no such cluster, or permissions are missing.
    pub fn find(wanted: &plan::Deployed) -> Result<DeployedAccess, Error> {
        let namespace = Namespace::find(
            wanted.context.as_deref(),
            wanted.namespace.as_deref(),
            &OF_SERVICES,
        )?;
        Ok(DeployedAccess {
            wanted: wanted.clone(),
            namespace,
        })
    }

    /// Name of the Service: `kubernetes://NAMESPACE/SERVICE`.
    pub fn place(&self) -> String {
        format!(
            "kubernetes://{}/{}",
            self.namespace.name, self.wanted.service
        )
    }

    /// Name of the Service with its cluster: `kubernetes://NAMESPACE/SERVICE of the context NAME`.
    pub fn described(&self) -> String {
        let context = self.namespace.context.as_ref().map_or_else(
            || "of the cluster that this pod runs in".to_owned(),
            |context| format!("of the context {context}"),
        );
        format!("{} {context}", self.place())
    }

    /// Queries the Service once: its address, and the pods behind it, if any.
    ///
    /// # Errors
    /// If the Service does not exist or cannot be loaded, or if the API server does not answer two attempts.
    pub fn look(&self) -> Result<PodsBehind, Error> {
        match self.looked() {
            // A connection that was idle for minutes may have been closed by a component in between.
            Err(error) if *error.blame() == Blame::Away => self.looked(),
            looked => looked,
        }
    }

    /// Why a Service with these pods cannot be loaded. `None` if it can.
    pub fn refusal(&self, behind: &PodsBehind) -> Option<Error> {
        if behind.pods.iter().any(|pod| pod.ready) {
            return None;
        }
        let names: Vec<&str> = behind.pods.iter().map(|pod| pod.name.as_str()).collect();
        let namespace = &self.namespace.name;
        let (why, hint) = match (&names[..], behind.selector.as_str()) {
            ([], "") => (
                "it has no endpoints: no selector and no manual addresses".to_owned(),
                format!("check with: kubectl get endpointslices --namespace {namespace}"),
            ),
            ([], selector) => (
                format!("no pod matches its selector {selector}"),
                format!("check with: kubectl get pods --namespace {namespace} --show-labels"),
            ),
            (names, _) => (
                format!("none of its pods is ready: {}", names.join(", ")),
                format!("for the reason, run: kubectl describe pods --namespace {namespace}"),
            ),
        };
        Some(Error::new(format!("{}: {why}", self.place())).help(hint))
    }

    fn looked(&self) -> Result<PodsBehind, Error> {
        let name = &self.wanted.service;
        let Some(service) = self.namespace.service(name)? else {
            return Err(self.missing());
        };
        let found = address(&self.place(), &service, self.wanted.port.as_ref())?;
        let slices = self.namespace.endpoints(name)?;
        let selector = selector(&service);
        let pods = match selector.as_str() {
            "" => Vec::new(),
            selector => self.namespace.pods_selected(selector)?,
        };
        let pods = behind(&found, &slices, &pods);
        Ok(PodsBehind {
            address: found.address,
            pods,
            selector,
        })
    }

    fn missing(&self) -> Error {
        let (name, namespace) = (&self.wanted.service, &self.namespace.name);
        let known = self.namespace.service_names();
        let hint = match &known[..] {
            [] => format!("check with: kubectl get services --namespace {namespace}"),
            known => plan::did_you_mean(
                name,
                "Services in this namespace",
                known.iter().map(String::as_str),
            ),
        };
        Error::new(format!("{}: no such Service", self.place())).help(hint)
    }
}

/// `app=shop,tier=web`.
fn selector(service: &Service) -> String {
    let pairs = service
        .spec
        .selector
        .iter()
        .map(|(key, value)| format!("{key}={value}"));
    pairs.collect::<Vec<_>>().join(",")
}

// Evaluates the objects of a Service: its address, and the pods behind it. Pure.

/// Address of a Service, and the name of its port.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ServiceLookup {
    pub address: SocketAddr,
    /// Name of the port, which endpoints refer to. Empty if the port has no name.
    pub port: String,
}

/// Returns the address of a Service with the wanted port.
fn address(
    place: &str,
    service: &Service,
    wanted: Option<&ServicePort>,
) -> Result<ServiceLookup, Error> {
    let refused = |why: String, hint: String| Err(Error::new(format!("{place}: {why}")).help(hint));
    let spec = &service.spec;
    if spec.kind == "ExternalName" {
        let name = &spec.external_name;
        let hint = "use its URL instead: `url`, or proofload load URL".to_owned();
        return refused(
            format!("it is an ExternalName for {name} and has no cluster address"),
            hint,
        );
    }
    let Ok(ip) = spec.cluster_ip.parse::<IpAddr>() else {
        let why = "it is headless (clusterIP: None) and has no cluster address";
        let hint = "create a second Service with the same selector and without `clusterIP: None`";
        return refused(why.to_owned(), hint.to_owned());
    };
    let ports = &spec.ports;
    let is_wanted = |port: &&Port| match wanted {
        None => ports.len() == 1,
        Some(ServicePort::Number(number)) => port.port == *number,
        Some(ServicePort::Name(name)) => port.name.as_ref() == Some(name),
    };
    let named: Vec<&Port> = ports.iter().filter(is_wanted).collect();
    let all: Vec<String> = ports.iter().map(name_and_number).collect();
    // TCP and UDP may use the same number.
    let Some(port) = named.iter().find(|port| is_tcp(port)) else {
        if all.is_empty() {
            let hint = "the Service needs a TCP port: `spec.ports`";
            return refused("it has no ports".to_owned(), hint.to_owned());
        }
        let hint = format!("its ports: {}", all.join(", "));
        return match (named.first(), wanted) {
            (Some(port), _) => {
                let protocol = port.protocol.as_deref().unwrap_or_default();
                refused(
                    format!("port {} is {protocol}, but load requires TCP", port.port),
                    hint,
                )
            }
            (None, Some(wanted)) => refused(
                format!("it has no port {wanted}"),
                port_hint(wanted, ports).unwrap_or(hint),
            ),
            (None, None) => refused(
                "it has several ports; name one".into(),
                format!("{hint}; set kubernetes = {{ port = … }}"),
            ),
        };
    };
    Ok(ServiceLookup {
        address: SocketAddr::new(ip, port.port),
        port: port.name.clone().unwrap_or_default(),
    })
}

fn is_tcp(port: &Port) -> bool {
    port.protocol
        .as_deref()
        .is_none_or(|protocol| protocol == "TCP")
}

/// Suggests the port that was probably meant.
fn port_hint(wanted: &ServicePort, ports: &[Port]) -> Option<String> {
    let ServicePort::Name(name) = wanted else {
        return None;
    };
    let known: Vec<&str> = ports
        .iter()
        .filter_map(|port| port.name.as_deref())
        .collect();
    (!known.is_empty()).then(|| plan::did_you_mean(name, "its ports", known))
}

/// `http (80)`, `53 (UDP)`.
fn name_and_number(port: &Port) -> String {
    let protocol = port
        .protocol
        .iter()
        .filter(|_| !is_tcp(port))
        .map(|protocol| format!(", {protocol}"));
    let protocol: String = protocol.collect();
    match &port.name {
        Some(name) => format!("{name} ({}{protocol})", port.port),
        None => format!("{}{protocol}", port.port),
    }
}

/// The pods behind a port of a Service, sorted by name.
fn behind(found: &ServiceLookup, slices: &[EndpointSlice], known: &[Pod]) -> Vec<PodSeen> {
    let family = if found.address.is_ipv4() {
        "IPv4"
    } else {
        "IPv6"
    };
    let mut pods: Vec<PodSeen> = Vec::new();
    for slice in slices.iter().filter(|slice| slice.address_type == family) {
        let port = slice
            .ports
            .iter()
            .filter(|port| port.name.as_deref().unwrap_or_default() == found.port);
        let Some(port) = port.filter_map(|port| port.port).next() else {
            continue;
        };
        pods.extend(
            slice
                .endpoints
                .iter()
                .filter_map(|endpoint| pod(endpoint, port, known)),
        );
    }
    pods.sort_by_key(|pod| {
        (
            pod.name.clone(),
            pod.uid.clone(),
            pod.address.clone(),
            pod.ready,
        )
    });
    // An endpoint that moves to another slice is in both for a while.
    pods.dedup_by(|one, other| (&one.uid, &one.name) == (&other.uid, &other.name));
    pods
}

fn pod(endpoint: &Endpoint, port: u16, known: &[Pod]) -> Option<PodSeen> {
    let ip: IpAddr = endpoint.addresses.first()?.parse().ok()?;
    let address = SocketAddr::new(ip, port).to_string();
    let target = endpoint
        .target_ref
        .as_ref()
        .filter(|target| target.kind == "Pod");
    let uid = target.map(|target| target.uid.clone()).unwrap_or_default();
    let of_uid = known
        .iter()
        .find(|pod| pod.metadata.uid == uid && !uid.is_empty());
    let containers = of_uid.map(|pod| &pod.status.container_statuses);
    let mut images: Vec<String> = containers.into_iter().flatten().map(image).collect();
    images.sort();
    images.dedup();
    Some(PodSeen {
        name: target.map_or_else(|| address.clone(), |target| target.name.clone()),
        uid,
        node: endpoint.node_name.clone(),
        // The specification says that a missing value means ready.
        ready: endpoint.conditions.ready.unwrap_or(true),
        restarts: containers.map(|all| all.iter().map(|one| one.restart_count).sum()),
        images,
        address,
    })
}

/// Image with its name and its digest, if the node knows the digest. A node reports both for images that were
/// pulled, and the digest alone for others.
fn image(container: &ContainerStatus) -> String {
    let (name, id) = (&container.image, &container.image_id);
    match id.as_str() {
        "" => name.clone(),
        digest if digest.starts_with("sha256:") => format!("{name}@{digest}"),
        both => both.to_owned(),
    }
}

#[cfg(test)]
mod tests;
