//! The Job: what is asked of the cluster, and nothing else is made there.
//!
//! One pod for each completion index, none of which is ever replaced: a generator that comes later has missed the begin. One that fails
//! leaves the others alone (`backoffLimitPerIndex`). All of it goes away by itself: a pod ends with its stdin, the Job is deleted some
//! time after its last pod has ended, and whatever goes wrong with that, there is a deadline.

use serde_json::{Value, json};

/// The name of the container that is attached to.
pub(super) const CONTAINER: &str = "generator";
/// How long a Job stays when all its pods have ended and nobody has deleted it.
const KEPT_SECONDS: u32 = 30;
/// How long pods live at most, whatever happens: longer than any run, and not for ever. A node that lost its cluster keeps to it, too.
const LIFE_SECONDS_MAX: u32 = 24 * 3600;
/// How long a pod that is deleted has to end by itself; it does so at once.
const GRACE_SECONDS: u32 = 2;
/// The user that the image has, which has no rights on the nodes.
const USER: u32 = 65532;
/// What of a run's name becomes part of the Job's; with what stands around it and an index it is a host name of under 63 letters.
const RUN_LETTERS_MAX: usize = 30;

/// What is asked for.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// Of the Job.
    pub name: String,
    /// The run's, as people wrote it.
    pub run: String,
    /// What the pods are.
    pub cluster: plan::Kubernetes,
    /// The program's arguments.
    pub arguments: Vec<String>,
}

/// A unique name of a Job: `proofload-RUN-RANDOM`, a DNS label whatever the run is called.
pub(super) fn name(run: &str, random: u32) -> String {
    let letters = run.chars().map(|letter| letter.to_ascii_lowercase());
    let letters: String =
        letters.map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let words: Vec<&str> = letters.split('-').filter(|word| !word.is_empty()).collect();
    let words: String = words.join("-").chars().take(RUN_LETTERS_MAX).collect();
    match words.trim_end_matches('-') {
        "" => format!("proofload-{random:08x}"),
        words => format!("proofload-{words}-{random:08x}"),
    }
}

/// The Job as the API takes it.
pub(super) fn manifest(wanted: &Wanted) -> Value {
    let labels = labels(&wanted.name);
    let kept = json!({
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "karpenter.sh/do-not-disrupt": "true",
    });
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": wanted.name, "labels": labels, "annotations": { "proofload/run": wanted.run } },
        "spec": {
            "completionMode": "Indexed",
            "completions": wanted.cluster.pods,
            "parallelism": wanted.cluster.pods,
            "backoffLimitPerIndex": 0,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "activeDeadlineSeconds": LIFE_SECONDS_MAX,
            "template": { "metadata": { "labels": labels, "annotations": kept }, "spec": pod(wanted) },
        },
    })
}

fn pod(wanted: &Wanted) -> Value {
    json!({
        "containers": [container(wanted)],
        "restartPolicy": "Never",
        "nodeSelector": wanted.cluster.node_selector,
        "topologySpreadConstraints": [{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": { "matchLabels": labels(&wanted.name) },
        }],
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "activeDeadlineSeconds": LIFE_SECONDS_MAX,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
    })
}

fn container(wanted: &Wanted) -> Value {
    let resources = &wanted.cluster.resources;
    json!({
        "name": CONTAINER,
        "image": wanted.cluster.image,
        "args": wanted.arguments,
        "stdin": true,
        // Its stdin ends with the first connection, and does not wait for another.
        "stdinOnce": true,
        // Its last output comes with its state, so that no right to read logs is needed.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": { "requests": resources, "limits": resources },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        },
    })
}

fn labels(name: &str) -> Value {
    json!({
        "app.kubernetes.io/name": "proofload",
        "app.kubernetes.io/component": "generator",
        "app.kubernetes.io/managed-by": "proofload",
        "app.kubernetes.io/instance": name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_dns_labels_whatever_the_run_is_called() {
        let longest = "x".repeat(300);
        for run in [
            "node-env",
            "",
            "Größe & Maß/2",
            "---",
            "ALL_CAPS.toml",
            &longest,
            "ends with a long word of letters…",
        ] {
            let name = name(run, 7);
            // An index of five digits comes after it, and that is the pod's host name.
            assert!(name.len() + 6 <= 63, "{name}");
            assert!(name.starts_with("proofload-") && name.ends_with("-00000007"), "{name}");
            assert!(!name.contains("--"), "{name}");
            assert!(name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-')), "{name}");
        }
        assert_eq!(name("Größe & Maß/2", 0xabc), "proofload-gr-e-ma-2-00000abc");
    }
}
