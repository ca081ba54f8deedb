//! Tests how a Service, its endpoints and its pods are read, with made-up objects.

use serde_json::{Value, json};

use super::*;

const PLACE: &str = "kubernetes://prod/shop";

fn service(spec: Value) -> Service {
    serde_json::from_value(json!({"metadata": {"name": "shop"}, "spec": spec})).unwrap()
}

fn number(port: u16) -> Option<ServicePort> {
    Some(ServicePort::Number(port))
}

fn name(port: &str) -> Option<ServicePort> {
    Some(ServicePort::Name(port.into()))
}

/// Address and port of the Service, or the error with its hint.
fn found(spec: &Value, wanted: Option<ServicePort>) -> String {
    match address(PLACE, &service(spec.clone()), wanted.as_ref()) {
        Ok(ServiceLookup { address, port }) => format!("{address} {port}"),
        Err(error) => format!("{error} | {}", error.hint().unwrap_or_default()),
    }
}

#[test]
fn a_port_is_found_by_its_number_by_its_name_and_alone() {
    let one = json!({"clusterIP": "10.84.0.7", "ports": [{"port": 80, "targetPort": 8080}]});
    let several = json!({"clusterIP": "fd00::7", "ports": [
        {"name": "http", "port": 80}, {"name": "metrics", "port": 9090, "protocol": "TCP"},
        {"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]});
    let refused = |why: &str| format!("{PLACE}: {why}");
    let all = "its ports: http (80), metrics (9090), dns (53, UDP), dns-tcp (53)";
    for (spec, wanted, expected) in [
        (&one, None, "10.84.0.7:80 ".to_owned()),
        (&one, number(80), "10.84.0.7:80 ".to_owned()),
        (
            &one,
            number(8080),
            refused("it has no port 8080 | its ports: 80"),
        ),
        (
            &one,
            name("http"),
            refused("it has no port http | its ports: 80"),
        ),
        (
            &several,
            name("metrics"),
            "[fd00::7]:9090 metrics".to_owned(),
        ),
        (&several, number(53), "[fd00::7]:53 dns-tcp".to_owned()),
        (
            &several,
            name("metric"),
            refused("it has no port metric | did you mean `metrics`?"),
        ),
        (
            &several,
            name("dns"),
            refused(&format!("port 53 is UDP, but load requires TCP | {all}")),
        ),
        (
            &several,
            None,
            refused(&format!(
                "it has several ports; name one | {all}; set kubernetes = {{ port = … }}"
            )),
        ),
    ] {
        assert_eq!(found(spec, wanted), expected);
    }
    let headless = found(&json!({"clusterIP": "None", "ports": [{"port": 80}]}), None);
    assert!(
        headless.starts_with("kubernetes://prod/shop: it is headless"),
        "{headless}"
    );
    let alias = found(
        &json!({"type": "ExternalName", "externalName": "shop.example"}),
        None,
    );
    assert!(
        alias.contains("an ExternalName for shop.example") && alias.contains("proofload load"),
        "{alias}"
    );
}

fn slice(family: &str, endpoints: Value) -> EndpointSlice {
    let ports = json!([{"name": "metrics", "port": 9000}, {"name": "http", "port": 8080}]);
    let slice =
        json!({"metadata": {}, "addressType": family, "ports": ports, "endpoints": endpoints});
    serde_json::from_value(slice).unwrap()
}

fn endpoint(address: &str, pod: &str, conditions: Value) -> Value {
    let target = json!({"kind": "Pod", "name": pod, "uid": format!("uid-of-{pod}")});
    json!({"addresses": [address], "nodeName": "n1", "targetRef": target, "conditions": conditions})
}

#[test]
fn pods_are_those_of_the_port_and_of_its_family_each_once_with_what_the_cluster_tells_of_them() {
    let found = ServiceLookup {
        address: "10.84.0.7:80".parse().unwrap(),
        port: "http".into(),
    };
    let slices = [
        slice(
            "IPv4",
            json!([
                endpoint("10.83.101.3", "b", json!({"ready": false})),
                endpoint("10.83.101.2", "a", json!({}))
            ]),
        ),
        slice(
            "IPv4",
            json!([endpoint("10.83.101.2", "a", json!({"ready": true})), {"addresses": ["10.0.0.9"]}]),
        ),
        slice("IPv6", json!([endpoint("fd00::2", "a", json!({}))])),
    ];
    let containers = json!([
        {"name": "app", "image": "shop:2", "imageID": "shop@sha256:12", "ready": true, "restartCount": 2},
        {"name": "side", "image": "side:1", "imageID": "sha256:34", "ready": true, "restartCount": 1}]);
    let known = json!({"metadata": {"uid": "uid-of-a"}, "spec": {"containers": []}, "status": {"containerStatuses": containers}});
    let known: Pod = serde_json::from_value(known).unwrap();
    let pods = behind(&found, &slices, &[known]);
    let told: Vec<(&str, &str, bool, Option<u32>)> = pods
        .iter()
        .map(|pod| {
            (
                pod.name.as_str(),
                pod.address.as_str(),
                pod.ready,
                pod.restarts,
            )
        })
        .collect();
    let expected = [
        ("10.0.0.9:8080", "10.0.0.9:8080", true, None),
        ("a", "10.83.101.2:8080", true, Some(3)),
        ("b", "10.83.101.3:8080", false, None),
    ];
    assert_eq!(told, expected);
    assert_eq!(pods[1].images, ["shop@sha256:12", "side:1@sha256:34"]);
    assert_eq!(pods[1].node.as_deref(), Some("n1"));
    assert_eq!(
        (pods[0].uid.as_str(), pods[1].uid.as_str()),
        ("", "uid-of-a")
    );
}
