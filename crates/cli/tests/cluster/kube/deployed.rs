//! Running services in a real cluster: loaded by its pods, by a user with only the shipped roles, with
//! requests counted by the services.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use record::{EndReason, Record};
use serde_json::{Value, json};

use super::cluster::{Namespace, script, within};
use super::run::Run;
use crate::place::get;

/// The image with this machine's Node.js.
const NODE: &str = "localhost/node:test";
/// It responds after DELAY_MS, and counts all requests except for /healthz and /count.
const PROGRAM: &str = "let n = 0; require('node:http').createServer((q, s) => { \
     if (q.url === '/healthz') return s.end('ok'); \
     if (q.url === '/count') return s.end(String(n)); \
     n += 1; setTimeout(() => s.end('x'.repeat(1000)), Number(process.env.DELAY_MS)); \
     }).listen(8080); process.on('SIGTERM', () => process.exit(0));";

/// Loads the image of Node.js to the nodes, once.
fn node_image() {
    static GIVEN: OnceLock<String> = OnceLock::new();
    GIVEN.get_or_init(|| {
        let found = Command::new("sh")
            .args(["-c", "command -v node"])
            .output()
            .expect("a shell");
        let path = PathBuf::from(String::from_utf8_lossy(&found.stdout).trim());
        let path = path.canonicalize().expect("Node.js is installed");
        script(&["image", NODE, &path.display().to_string()])
    });
}

fn deployment(name: &str, replicas: u32, delay_ms: u32) -> Value {
    let labels = json!({"app": "shop", "version": name});
    let container = json!({
        "name": "shop", "image": NODE, "imagePullPolicy": "Never", "args": ["-e", PROGRAM],
        "env": [{"name": "DELAY_MS", "value": delay_ms.to_string()}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1},
    });
    let spec = json!({"containers": [container], "terminationGracePeriodSeconds": 1, "enableServiceLinks": false});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    })
}

/// A Service for the pods with these labels.
fn service(name: &str, selector: Value, more: Value) -> Value {
    let mut spec =
        json!({"selector": selector, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]});
    let fields = more.as_object().expect("fields of a specification").clone();
    spec.as_object_mut().expect("a table").extend(fields);
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

fn all(objects: Vec<Value>) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": objects})
}

/// Two Deployments with a Service each: two fast pods, and a slower one.
fn shops(namespace: &Namespace) {
    node_image();
    let selector = |version: &str| json!({"app": "shop", "version": version});
    namespace.apply(&all(vec![
        deployment("shop", 2, 2),
        deployment("shop-canary", 1, 20),
        service("shop", selector("shop"), json!({})),
        service("shop-canary", selector("shop-canary"), json!({})),
    ]));
    for name in ["deployment/shop", "deployment/shop-canary"] {
        namespace.kubectl(&["rollout", "status", name, "--timeout=90s"]);
    }
}

/// Requests that the pods of a Deployment have counted.
fn counted(namespace: &Namespace, version: &str) -> u64 {
    let path = "{range .items[*]}{.status.podIP} {end}";
    let label = format!("version={version}");
    let addresses = namespace.kubectl(&[
        "get",
        "pods",
        "--selector",
        &label,
        "--output",
        &format!("jsonpath={path}"),
    ]);
    let at = |ip: &str| SocketAddr::new(ip.parse().expect("an address"), 8080);
    let count = |ip: &str| get(at(ip), "/count").parse::<u64>().expect("a count");
    addresses.split_whitespace().map(count).sum()
}

fn experiment(namespace: &Namespace, service: &str, design: &str) -> String {
    let (name, pods) = (&namespace.name, namespace.two_pods());
    format!(
        r#"name = "deployed"
[services.shop]
kubernetes = {{ {service}, namespace = "{name}", context = "guest" }}
ready = "/healthz"
ready_timeout = "20s"
[generators]
local = 0
{pods}
[load]
connections = 4
timeout = "2s"
{design}
"#
    )
}

const VERSIONS: &str = r#"
[factors.version]
stable = { shop.kubernetes.service = "shop" }
canary = { shop.kubernetes.service = "shop-canary" }
[design]
drop_disturbed = false
warmup = "200ms"
slices = 1
slice = "1s"
"#;

fn sent(record: &Record, variant: usize) -> u64 {
    let trials = record.trials().filter(|trial| trial.variant() == variant);
    trials
        .flat_map(|trial| &trial.slices)
        .map(|slice| slice.counts.sent)
        .sum()
}

#[test]
#[ignore = "wants a cluster: make test-cluster"]
fn two_deployed_services_are_compared_and_count_what_we_count() {
    let namespace = Namespace::new("deployed").with_role();
    namespace.give("service-role.yaml", "proofload-service");
    shops(&namespace);
    let text = experiment(
        &namespace,
        r#"service = "shop", port = 80"#,
        &format!("{VERSIONS}budget = \"120s\"\nblocks = 6"),
    );
    let mut run = Run::of(&text);
    let said = run.ended();
    for version in ["shop", "shop-canary"] {
        said.ends(0)
            .says(&[&format!("kubernetes://{}/{version}", namespace.name)]);
    }
    let text = said.to_string();
    assert!(
        text.contains("canary is") || text.contains("canary vs stable"),
        "{said}"
    );
    let record = record::open(&run.record()).expect("the record opens");
    let conclusion = analysis::conclude(&record);
    let found: Vec<&str> = conclusion
        .findings
        .iter()
        .map(|finding| finding.check.number())
        .collect();
    assert!(
        found.contains(&"V51") && !found.contains(&"V50"),
        "{found:?}\n{said}"
    );
    assert_eq!(
        conclusion.comparisons[0].outcome,
        analysis::Outcome::Worse,
        "{said}"
    );
    // The readiness check uses another path: each pod's count equals the requests sent to it exactly.
    for (variant, version) in ["shop", "shop-canary"].into_iter().enumerate() {
        assert_eq!(
            counted(&namespace, version),
            sent(&record, variant),
            "{version}\n{said}"
        );
    }
    let first = &record.blocks[0]
        .trials
        .iter()
        .find(|trial| trial.variant() == 0)
        .expect("it ran")
        .started;
    let deployed = first.deployed.as_ref().expect("it is told");
    assert_eq!(
        (first.services.len(), deployed.pods.len()),
        (0, 2),
        "{deployed:?}"
    );
    for pod in &deployed.pods {
        assert!(
            pod.ready && pod.restarts == Some(0) && pod.name.starts_with("shop-"),
            "{pod:?}"
        );
        assert!(
            pod.node
                .as_deref()
                .is_some_and(|node| ["n1", "n2"].contains(&node)),
            "{pod:?}"
        );
        assert!(!pod.uid.is_empty() && !pod.images.is_empty(), "{pod:?}");
    }
    let variant = &conclusion.variants[0];
    assert_eq!(
        (
            variant.busy_cores,
            variant.peak_rss_bytes,
            variant.cpu_us_per_request
        ),
        (None, None, None)
    );
}

#[test]
#[ignore = "wants a cluster: make test-cluster"]
fn a_pod_of_the_service_that_is_killed_voids_its_variant_and_ends_the_run() {
    let namespace = Namespace::new("pod-killed").with_role();
    namespace.give("service-role.yaml", "proofload-service");
    shops(&namespace);
    // Both variants load it long enough that it is loaded at any time.
    let paths = "[factors.path]\none = { load.path = \"/\" }\nother = { load.path = \"/other\" }\n\
                 [design]\ndrop_disturbed = false\nwarmup = \"200ms\"\nslices = 1\nslice = \"8s\"\nbudget = \"300s\"\n";
    let mut run = Run::of(&experiment(&namespace, r#"service = "shop""#, paths));
    run.measures();
    std::thread::sleep(Duration::from_secs(4));
    let pods = namespace.kubectl(&["get", "pods", "--selector=version=shop", "--output=name"]);
    let victim = pods.lines().next().expect("a pod").to_owned();
    namespace.kubectl(&["delete", &victim, "--wait=false"]);
    let said = run.ended();
    said.ends(4)
        .says(&["V50", victim.trim_start_matches("pod/")]);
    let record = record::open(&run.record()).expect("the record opens");
    let reason = record.ended.as_ref().map(|ended| ended.reason.clone());
    assert!(
        matches!(reason, Some(EndReason::Void(_))),
        "{reason:?}\n{said}"
    );
    assert_eq!(record.blocks.len(), 1, "no other block can heal it");
}

/// Asserts the message and exit code of an experiment that cannot begin. Nothing is created, and there is no
/// record.
fn refused(namespace: &Namespace, text: &str, code: i32, words: &[&str]) {
    let mut run = Run::of(text);
    let said = run.ended();
    said.ends(code).says(words);
    assert!(!run.record().exists(), "{said}");
    assert_eq!(namespace.kubectl(&["get", "jobs", "--output", "name"]), "");
}

#[test]
#[ignore = "wants a cluster: make test-cluster"]
fn what_cannot_be_loaded_is_told_before_anything_starts() {
    let namespace = Namespace::new("unloadable");
    let short = "[design]\nbudget = \"60s\"";
    let of = |service: &str| experiment(&namespace, service, short);
    let rights = [
        "get services",
        "list endpointslices.discovery.k8s.io",
        "list pods",
        "deploy/kubernetes/service-role.yaml",
    ];
    refused(&namespace, &of(r#"service = "shop""#), 3, &rights);
    namespace.give("service-role.yaml", "proofload-service");
    // A user who may not list Services gets a hint.
    refused(
        &namespace,
        &of(r#"service = "shop""#),
        3,
        &["no such Service", "kubectl get services"],
    );
    let nobody = json!({"app": "nobody"});
    namespace.apply(&all(vec![
        service("shop", nobody.clone(), json!({})),
        service("headless", nobody.clone(), json!({"clusterIP": "None"})),
        service(
            "several",
            nobody,
            json!({"ports": [
            {"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]}),
        ),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "alias"},
               "spec": {"type": "ExternalName", "externalName": "shop.example"}}),
    ]));
    let place = format!("kubernetes://{}/shop", namespace.name);
    for (service, words) in [
        (
            r#"service = "shop""#,
            &[place.as_str(), "no pod matches its selector app=nobody"][..],
        ),
        (r#"service = "headless""#, &["it is headless"]),
        (r#"service = "alias""#, &["ExternalName for shop.example"]),
        (
            r#"service = "several""#,
            &["several ports; name one", "http (80), dns (53, UDP)"],
        ),
        (r#"service = "several", port = 53"#, &["port 53 is UDP"]),
        (
            r#"service = "several", port = "htp""#,
            &["no port htp", "did you mean `http`?"],
        ),
        (
            r#"service = "shop", port = 8080"#,
            &["no port 8080", "its ports: http (80)"],
        ),
    ] {
        refused(&namespace, &of(service), 3, words);
    }
    let misspelt = of(r#"service = "shpo""#).replace("guest", "admin");
    refused(
        &namespace,
        &misspelt,
        3,
        &["no such Service", "did you mean `shop`?"],
    );
}

#[test]
#[ignore = "wants a cluster: make test-cluster"]
fn one_service_in_two_words_is_refused_and_so_is_load_that_does_not_get_there() {
    let namespace = Namespace::new("in-two-words");
    namespace.give("service-role.yaml", "proofload-service");
    node_image();
    let pod = json!({"app": "shop", "version": "shop"});
    namespace.apply(&all(vec![
        deployment("shop", 1, 0),
        service("shop", pod, json!({})),
    ]));
    let waits = "[design]\nbudget = \"60s\"";
    let mut unready = || {
        namespace
            .list("endpointslices", "{.endpoints[*].conditions.ready}")
            .contains("true")
    };
    within(Duration::from_secs(60), &mut unready);
    let twice = "[factors.port]\nnumber = { shop.kubernetes.port = 80 }\nname = { shop.kubernetes.port = \"http\" }\n";
    let text = experiment(
        &namespace,
        r#"service = "shop""#,
        &format!("{twice}{waits}"),
    );
    refused(
        &namespace,
        &text,
        2,
        &["variants `number` and `name` are alike", "10.84."],
    );
    // Only the nodes and their pods have routes to Services.
    let text =
        experiment(&namespace, r#"service = "shop""#, waits).replace("local = 0", "local = 1");
    refused(
        &namespace,
        &text,
        3,
        &[
            "this machine cannot connect to it at 10.84.",
            "generators.kubernetes",
        ],
    );
}

#[test]
#[ignore = "wants a cluster: make test-cluster"]
fn a_service_that_is_ready_to_the_cluster_and_answers_nobody_is_told_by_those_who_ask() {
    let namespace = Namespace::new("mute").with_role();
    namespace.give("service-role.yaml", "proofload-service");
    node_image();
    let ports = json!({"ports": [{"port": 80, "targetPort": 9999}]});
    let pod = json!({"app": "shop", "version": "shop"});
    namespace.apply(&all(vec![
        deployment("shop", 1, 0),
        service("shop", pod, ports),
    ]));
    namespace.kubectl(&["rollout", "status", "deployment/shop", "--timeout=90s"]);
    let text = experiment(
        &namespace,
        r#"service = "shop""#,
        "[design]\nbudget = \"60s\"",
    );
    let mut run = Run::of(&text.replace("20s", "2s"));
    let parts = [
        "service shop: not ready after 2s: GET /healthz at 10.84.",
        "got no answer: refused",
    ];
    run.ended().ends(3).says(&parts);
    let jobs = || namespace.kubectl(&["get", "jobs", "--output", "name"]);
    within(Duration::from_secs(10), || jobs().is_empty());
}
