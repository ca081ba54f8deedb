//! Tests decisions about pods with made-up lists.

use serde_json::{Value, json};

use super::*;

/// A pod as returned by the API.
fn pod(index: u32, status: Value) -> PodView {
    let name = format!("proofload-x-{index}-abcde");
    let metadata = json!({"name": name, "annotations": {"batch.kubernetes.io/job-completion-index": index.to_string()}});
    let pod: Pod = serde_json::from_value(json!({
        "metadata": metadata, "spec": {"nodeName": "n1", "containers": []}, "status": status,
    }))
    .unwrap();
    view(&pod).unwrap()
}

fn container(state: Value) -> Value {
    let status = json!({"name": "generator", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
    // An injected container that started before ours.
    let other = json!({"name": "daprd", "state": {"running": {}}});
    json!({"phase": "Pending", "containerStatuses": [other, status]})
}

fn waiting(reason: &str, message: &str) -> Value {
    container(json!({"waiting": {"reason": reason, "message": message}}))
}

fn running() -> Value {
    container(json!({"running": {}}))
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn it_opens_when_all_run_in_the_order_of_their_index_and_not_before() {
    let mut barrier = Barrier::new(3, "img".into());
    let two = [
        pod(2, running()),
        pod(0, running()),
        pod(1, waiting("ContainerCreating", "")),
    ];
    for (pods, what) in [(&two[..], "being created"), (&two[..2], "not created yet")] {
        let wait = PodStep::Wait(format!("2 of 3 pods running, 1 {what}"));
        assert_eq!(barrier.step(seconds(1), pods, None), wait);
    }
    let all = [pod(2, running()), pod(0, running()), pod(1, running())];
    let PodStep::Open(pods) = barrier.step(seconds(2), &all, None) else {
        panic!("it is closed")
    };
    assert_eq!(
        pods.iter().map(|pod| pod.index).collect::<Vec<_>>(),
        [0, 1, 2]
    );
}

#[test]
fn an_image_that_does_not_come_is_waited_for_a_little_and_told_in_the_nodes_words() {
    let mut barrier = Barrier::new(1, "nowhere/img:1".into());
    let first = [pod(0, waiting("ErrImagePull", "not found"))];
    let again = [pod(
        0,
        waiting("ImagePullBackOff", "Back-off pulling image"),
    )];
    let PodStep::Wait(words) = barrier.step(seconds(2), &first, None) else {
        panic!("too early")
    };
    assert!(words.contains("ErrImagePull: not found"), "{words}");
    assert!(matches!(
        barrier.step(seconds(12), &again, None),
        PodStep::Wait(_)
    ));
    let PodStep::Broken(error) = barrier.step(seconds(17), &again, None) else {
        panic!("for ever")
    };
    assert!(error.to_string().contains("nowhere/img:1"), "{error}");
    // An error that no retry can fix is reported at once.
    let mut barrier = Barrier::new(1, "Nowhere".into());
    let invalid = [pod(0, waiting("InvalidImageName", "couldn't parse"))];
    let PodStep::Broken(error) = barrier.step(seconds(1), &invalid, None) else {
        panic!("it is waited for")
    };
    assert!(error.hint().unwrap().contains("lower case"), "{error:?}");
}

#[test]
fn trouble_that_passes_is_forgotten_and_progress_begins_it_anew() {
    let mut barrier = Barrier::new(2, "img".into());
    let homeless = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available"}]});
    let placed = [pod(0, running()), pod(1, waiting("ContainerCreating", ""))];
    let one = [pod(0, running()), pod(1, homeless)];
    assert!(matches!(
        barrier.step(seconds(1), &one, None),
        PodStep::Wait(_)
    ));
    assert!(matches!(
        barrier.step(seconds(9), &placed, None),
        PodStep::Wait(_)
    ));
    assert!(matches!(
        barrier.step(seconds(12), &one, None),
        PodStep::Wait(_)
    ));
    let PodStep::Broken(error) = barrier.step(seconds(22), &one, None) else {
        panic!("for ever")
    };
    assert_eq!(
        error.to_string(),
        "1 of 2 pods without a node: Unschedulable: 0/2 nodes are available"
    );
    // A quota admits pods one after the other. It is an error only when no more pods appear.
    let mut barrier = Barrier::new(3, "img".into());
    let quota = Some("exceeded quota: tight");
    assert!(matches!(
        barrier.step(seconds(1), &placed[..1], quota),
        PodStep::Wait(_)
    ));
    assert!(matches!(
        barrier.step(seconds(5), &placed, quota),
        PodStep::Wait(_)
    ));
    assert!(matches!(
        barrier.step(seconds(19), &placed, quota),
        PodStep::Wait(_)
    ));
    let PodStep::Broken(error) = barrier.step(seconds(20), &placed, quota) else {
        panic!("for ever")
    };
    assert_eq!(
        error.to_string(),
        "the cluster refused to create the pods: exceeded quota: tight"
    );
    assert!(error.hint().unwrap().contains("larger quota"));
}

#[test]
fn a_pod_that_ends_is_told_at_once_with_what_is_known_of_it() {
    let ended = |state: Value| {
        let mut barrier = Barrier::new(1, "img".into());
        match barrier.step(seconds(1), &[pod(0, state)], None) {
            PodStep::Broken(error) => error.to_string(),
            step => panic!("{step:?}"),
        }
    };
    let crashed = json!({"terminated": {"exitCode": 2, "reason": "Error", "message": "error: unexpected argument\n"}});
    assert!(ended(container(crashed)).ends_with("exit code 2: error: unexpected argument"));
    let eaten = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
    assert!(ended(container(eaten)).contains("memory limit exceeded"));
    let evicted = json!({"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough resource: cpu"});
    assert!(ended(evicted).ends_with("OutOfcpu: Node didn't have enough resource: cpu"));
    let taken = json!({"phase": "Running", "conditions": [
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "preempting"}]});
    assert!(
        ended(taken).ends_with("the cluster evicted the pod: PreemptionByScheduler: preempting")
    );
}

#[test]
fn nobody_waits_for_ever() {
    let mut barrier = Barrier::new(1, "img".into());
    let made = [pod(0, waiting("ContainerCreating", ""))];
    assert!(matches!(
        barrier.step(OPEN_MAX, &made, None),
        PodStep::Wait(_)
    ));
    let late = barrier.step(OPEN_MAX + seconds(1), &made, None);
    let PodStep::Broken(late) = late else {
        panic!("for ever")
    };
    assert_eq!(
        late.to_string(),
        "timeout after 301 s: 0 of 1 pod running, 1 being created"
    );
}

#[test]
fn names_are_dns_labels_whatever_the_run_is_called() {
    let longest = "x".repeat(300);
    let long = "ends with a long word of letters…";
    for run in [
        "node-env",
        "",
        "Größe & Maß/2",
        "---",
        "ALL_CAPS.toml",
        &longest,
        long,
    ] {
        let name = name(run, 7);
        // The host name of a pod appends an index of up to five digits.
        assert!(name.len() + 6 <= 63, "{name}");
        assert!(
            name.starts_with("proofload-") && name.ends_with("-00000007"),
            "{name}"
        );
        assert!(!name.contains("--"), "{name}");
        assert!(
            name.bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-')),
            "{name}"
        );
    }
    assert_eq!(name("Größe & Maß/2", 0xabc), "proofload-gr-e-ma-2-00000abc");
}
