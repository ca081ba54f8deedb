//! What a Service's objects say: where it is found, and which pods it leads to. Pure.

use std::net::{IpAddr, SocketAddr};

use plan::ServicePort;

use super::Pod;
use crate::kubernetes::error::ClusterError;
use crate::kubernetes::objects::{self, ContainerStatus, Endpoint, EndpointSlice, Service};

/// Where a Service is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub address: SocketAddr,
    /// Name of its port, empty where it has none: endpoints name theirs by it.
    pub port: String,
}

/// The address of a Service and one of its ports.
///
/// # Errors
/// If it has no address of its own, no such port, or one that is not TCP's.
pub(super) fn address(
    place: &str,
    service: &Service,
    wanted: Option<&ServicePort>,
) -> Result<Found, ClusterError> {
    let refused =
        |why: String, hint: String| Err(ClusterError::Service { service: place.to_owned(), why, hint });
    let spec = &service.spec;
    if spec.kind == "ExternalName" {
        let name = &spec.external_name;
        let hint = "load that from outside: proofload load takes any URL".to_owned();
        return refused(format!("it is another name of {name}, and has no address of its own"), hint);
    }
    let Ok(ip) = spec.cluster_ip.parse::<IpAddr>() else {
        let hint =
            "a second Service with the same selector and without `clusterIP: None` can be loaded".to_owned();
        return refused(
            "it is headless: its name leads to its pods, and it has no address of its own".into(),
            hint,
        );
    };
    let ports = &spec.ports;
    let is_wanted = |port: &&objects::ServicePort| match wanted {
        None => ports.len() == 1,
        Some(ServicePort::Number(number)) => port.port == *number,
        Some(ServicePort::Name(name)) => port.name.as_ref() == Some(name),
    };
    let named: Vec<&objects::ServicePort> = ports.iter().filter(is_wanted).collect();
    let all: Vec<String> = ports.iter().map(name_and_number).collect();
    // One number may be that of TCP and of UDP.
    let Some(port) = named.iter().find(|port| is_tcp(port)) else {
        let hint =
            format!("it has {}", if all.is_empty() { "no ports at all".into() } else { all.join(", ") });
        return match (named.first(), wanted) {
            (Some(port), _) => {
                let protocol = port.protocol.as_deref().unwrap_or_default();
                refused(format!("its port {} is of {protocol}, and load goes over TCP", port.port), hint)
            }
            (None, Some(wanted)) => {
                refused(format!("it has no port {wanted}"), port_hint(wanted, ports).unwrap_or(hint))
            }
            (None, None) => refused(
                "which of its ports is meant is not said".into(),
                format!("{hint}: kubernetes = {{ port = … }}"),
            ),
        };
    };
    Ok(Found { address: SocketAddr::new(ip, port.port), port: port.name.clone().unwrap_or_default() })
}

fn is_tcp(port: &objects::ServicePort) -> bool {
    port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP")
}

/// The one that was probably meant.
fn port_hint(wanted: &ServicePort, ports: &[objects::ServicePort]) -> Option<String> {
    let ServicePort::Name(name) = wanted else { return None };
    let known: Vec<&str> = ports.iter().filter_map(|port| port.name.as_deref()).collect();
    (!known.is_empty()).then(|| plan::did_you_mean(name, "its ports", known))
}

/// `http (80)`, `53 (UDP)`.
fn name_and_number(port: &objects::ServicePort) -> String {
    let protocol = if is_tcp(port) {
        String::new()
    } else {
        format!(", {}", port.protocol.as_deref().unwrap_or_default())
    };
    match &port.name {
        Some(name) => format!("{name} ({}{protocol})", port.port),
        None => format!("{}{protocol}", port.port),
    }
}

/// The pods that a Service's port leads to, by name.
pub(super) fn pods(found: &Found, slices: &[EndpointSlice], known: &[objects::Pod]) -> Vec<Pod> {
    let family = if found.address.is_ipv4() { "IPv4" } else { "IPv6" };
    let mut pods: Vec<Pod> = Vec::new();
    for slice in slices.iter().filter(|slice| slice.address_type == family) {
        let port = slice.ports.iter().filter(|port| port.name.as_deref().unwrap_or_default() == found.port);
        let Some(port) = port.filter_map(|port| port.port).next() else { continue };
        pods.extend(slice.endpoints.iter().filter_map(|endpoint| pod(endpoint, port, known)));
    }
    pods.sort();
    // While endpoints move from one slice to another they are in both.
    pods.dedup_by(|one, other| (&one.uid, &one.name) == (&other.uid, &other.name));
    pods
}

fn pod(endpoint: &Endpoint, port: u16, known: &[objects::Pod]) -> Option<Pod> {
    let ip: IpAddr = endpoint.addresses.first()?.parse().ok()?;
    let address = SocketAddr::new(ip, port).to_string();
    let target = endpoint.target_ref.as_ref().filter(|target| target.kind == "Pod");
    let uid = target.map(|target| target.uid.clone()).unwrap_or_default();
    let of_uid = known.iter().find(|pod| pod.metadata.uid == uid && !uid.is_empty());
    let containers = of_uid.map(|pod| &pod.status.container_statuses);
    let mut images: Vec<String> = containers.into_iter().flatten().map(image).collect();
    images.sort();
    images.dedup();
    Some(Pod {
        name: target.map_or_else(|| address.clone(), |target| target.name.clone()),
        uid,
        node: endpoint.node_name.clone(),
        // Without that it is ready, says the specification.
        ready: endpoint.conditions.ready.unwrap_or(true),
        restarts: containers.map(|all| all.iter().map(|one| one.restart_count).sum()),
        images,
        address,
    })
}

/// By its name and its digest, where the node knows that: it gives both for images that were pulled, and the digest alone for others.
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
