//! Generators as pods of a real Kubernetes with two nodes. Loads are small: both nodes and the control plane
//! share this machine.

mod cluster;
mod deployed;
mod run;

use std::time::{Duration, Instant};

use load::{LoadSpec, Until};
use remote::generators::Fleet;
use remote::{Blame, Channel, Error};

use self::cluster::{IMAGE, Namespace, script};
use crate::server::Server;
use crate::{NEVER, window};

/// Time limit for reporting an error of the cluster.
const SOON: Duration = Duration::from_secs(30);

/// Address in the control plane's network for pods (scripts/cluster/place.py).
const CONTROL: &str = "10.83.0.1";

/// This number of pods of our image, as administrator.
fn pods(namespace: &Namespace, pods: u32) -> plan::Kubernetes {
    plan::Kubernetes {
        context: None,
        namespace: Some(namespace.name.clone()),
        pods,
        image: IMAGE.into(),
        node_selector: Default::default(),
        resources: [
            ("cpu".to_owned(), "100m".to_owned()),
            ("memory".to_owned(), "64Mi".to_owned()),
        ]
        .into(),
    }
}

fn open(cluster: &plan::Kubernetes) -> Result<Vec<Channel>, Error> {
    let mut told = Vec::new();
    let mut tell = |words| told.push(words);
    let opened = remote::kubernetes::open(
        cluster,
        "Test: Größe/1",
        &["remote-agent"],
        &mut tell,
        NEVER,
    );
    assert!(
        !told.is_empty() || opened.is_err(),
        "nobody was told how far it is"
    );
    opened
}

/// Asserts that these pods fail soon with this error, and that nothing of them is left.
fn refusal(namespace: &Namespace, cluster: &plan::Kubernetes, words: &[&str]) {
    let began = Instant::now();
    let error = match open(cluster) {
        Err(error) => error,
        other => panic!("{other:?}"),
    };
    assert!(
        began.elapsed() < SOON,
        "{error} after {:?}",
        began.elapsed()
    );
    let text = format!("{error}\n{}", error.hint().unwrap_or_default());
    words
        .iter()
        .for_each(|word| assert!(text.contains(word), "{word:?} is not in {text}"));
    namespace.is_empty_within(Duration::from_secs(10));
}

fn begin(channels: Vec<Channel>, spec: &LoadSpec) -> Fleet {
    let specs = spec.divided(channels.len() as u32, 1);
    crate::begun(channels, specs)
}

fn names(channels: &[Channel]) -> Vec<String> {
    channels
        .iter()
        .map(|channel| channel.name.clone())
        .collect()
}

#[test]
#[ignore = "wants a cluster: make test-cluster"]
fn pods_on_both_nodes_load_a_service_and_both_sides_count_the_same() {
    // Only with the shipped role, in a namespace that only accepts pods without any privileges.
    let namespace = Namespace::new("both").restricted().with_role();
    let service = Server::start(CONTROL);
    let cluster = plan::Kubernetes {
        context: Some("guest".into()),
        ..pods(&namespace, 4)
    };
    let channels = open(&cluster).expect("four pods");
    let where_they_run = names(&channels);
    for (index, name) in where_they_run.iter().enumerate() {
        let start = format!("kubernetes://{}/proofload-test-gr-e-1-", namespace.name);
        assert!(
            name.starts_with(&start) && name.contains(&format!("-{index}-")),
            "{name}"
        );
    }
    for node in ["@n1", "@n2"] {
        let many = where_they_run
            .iter()
            .filter(|name| name.ends_with(node))
            .count();
        assert_eq!(many, 2, "{where_they_run:?}");
    }
    let mut fleet = begin(channels, &service.evenly(8, 201.0));
    let ran = fleet.run(Until::Elapsed(Duration::from_secs(2)), NEVER);
    assert!(ran.lost.is_empty(), "{:?}", ran.lost);
    assert_eq!((ran.counts.due(), ran.parts.len()), (402, 4));
    assert_eq!(service.requests(), ran.counts.sent);
    // A second window of the same pods, after which they are gone.
    let again = fleet.run(Until::Requests(10), NEVER);
    assert_eq!((again.counts.sent, again.parts.len()), (10, 4));
    drop(fleet);
    namespace.is_empty_within(Duration::from_secs(10));
}

#[test]
#[ignore = "wants a cluster: make test-cluster"]
fn a_node_that_is_gone_is_told_within_seconds_and_the_other_counts() {
    let namespace = Namespace::new("crash");
    let service = Server::start(CONTROL);
    let channels = open(&pods(&namespace, 2)).expect("two pods");
    let victim = names(&channels)
        .into_iter()
        .find(|name| name.ends_with("@n2"))
        .expect("one on each node");
    let mut fleet = begin(channels, &service.evenly(4, 40.0));
    let (ran, took) = window(&mut fleet, 4, || drop(script(&["crash", "2"])));
    assert_eq!(ran.parts.len(), 1, "{:?}", ran.lost);
    let [lost] = &ran.lost[..] else {
        panic!("{:?}", ran.lost)
    };
    assert!(
        lost.generator == victim && lost.to_string().contains("did not respond within"),
        "{lost}"
    );
    assert!(took < Duration::from_secs(15), "told after {took:?}");
    assert_eq!(
        ran.counts.sent + ran.counts.open.as_ref().map_or(0, |open| open.unsent),
        80
    );
    drop(fleet);
    script(&["restart", "2"]);
    namespace.is_empty_within(Duration::from_secs(30));
}

#[test]
#[ignore = "wants a cluster: make test-cluster"]
fn what_cannot_be_had_is_told_in_the_clusters_words_and_nothing_stays() {
    let namespace = Namespace::new("refused");
    let one = pods(&namespace, 1);
    let refused = |cluster: plan::Kubernetes, words: &[&str]| refusal(&namespace, &cluster, words);
    let of_image = |image: &str| plan::Kubernetes {
        image: image.into(),
        ..one.clone()
    };
    refused(
        of_image("localhost:1/nobody/has-it:1"),
        &["localhost:1/nobody/has-it:1", "ErrImagePull"],
    );
    refused(
        of_image("Not An Image"),
        &["InvalidImageName", "lower case"],
    );
    let wanting = |cpu: &str| {
        let resources = [("cpu".to_owned(), cpu.to_owned())].into();
        plan::Kubernetes {
            resources,
            ..one.clone()
        }
    };
    refused(
        wanting("1000"),
        &["1 of 1 pod without a node", "Insufficient cpu"],
    );
    refused(
        wanting("plenty"),
        &["refused to create the Job", "quantities must match"],
    );
    let elsewhere = plan::Kubernetes {
        namespace: Some("nowhere".into()),
        ..one.clone()
    };
    refused(
        elsewhere,
        &[
            "has no namespace \"nowhere\"",
            "kubectl create namespace nowhere",
        ],
    );
    let of_context = |context: &str| plan::Kubernetes {
        context: Some(context.into()),
        ..one.clone()
    };
    refused(
        of_context("prod"),
        &["no context \"prod\"", "known contexts: admin, guest"],
    );
    let rights = [
        "create jobs.batch",
        "get pods/attach",
        "list events",
        "deploy/kubernetes/role.yaml",
    ];
    refused(of_context("guest"), &rights);
    namespace.kubectl(&["create", "quota", "tight", "--hard=pods=1"]);
    let two = plan::Kubernetes {
        pods: 2,
        ..one.clone()
    };
    refused(
        two,
        &[
            "refused to create the pods",
            "exceeded quota: tight",
            "fewer pods",
        ],
    );
}

#[test]
#[ignore = "wants a cluster: make test-cluster"]
fn a_program_that_fails_at_once_is_told_with_what_it_said() {
    let namespace = Namespace::new("crashes");
    let opened = remote::kubernetes::open(
        &pods(&namespace, 2),
        "x",
        &["remote-agent-not"],
        &mut |_| {},
        NEVER,
    );
    let error = opened.expect_err("there is no such subcommand").to_string();
    assert!(
        error.contains("exit code 2") && error.contains("remote-agent-not"),
        "{error}"
    );
    namespace.is_empty_within(Duration::from_secs(10));
}

#[test]
#[ignore = "wants a cluster: make test-cluster"]
fn who_does_not_want_them_any_more_waits_for_nothing() {
    let namespace = Namespace::new("cancelled");
    let hungry = [("cpu".to_owned(), "1000".to_owned())].into();
    let cluster = plan::Kubernetes {
        resources: hungry,
        ..pods(&namespace, 1)
    };
    let began = Instant::now();
    let cancelled = || began.elapsed() > Duration::from_secs(3);
    let opened =
        remote::kubernetes::open(&cluster, "x", &["remote-agent"], &mut |_| {}, &cancelled);
    assert!(
        opened
            .as_ref()
            .is_err_and(|error| *error.blame() == Blame::Cancelled),
        "{opened:?}"
    );
    assert!(
        began.elapsed() < Duration::from_secs(8),
        "after {:?}",
        began.elapsed()
    );
    namespace.is_empty_within(Duration::from_secs(10));
}
