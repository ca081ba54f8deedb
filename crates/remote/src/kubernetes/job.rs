//! The Job: what is asked of the cluster, and nothing else is made there.
//!
//! One pod for each completion index, none of which is ever replaced: a generator that comes later has missed the begin. One that fails
//! leaves the others alone (`backoffLimitPerIndex`). All of it goes away by itself: a pod ends with its stdin, the Job is deleted some
//! time after its last pod has ended, and whatever goes wrong with that, there is a deadline.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, PodSecurityContext, PodSpec, PodTemplateSpec, ResourceRequirements,
    SeccompProfile, SecurityContext, TopologySpreadConstraint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

/// The name of the container that is attached to.
pub(super) const CONTAINER: &str = "generator";
/// How long a Job stays when all its pods have ended and nobody has deleted it.
const KEPT_SECONDS: i32 = 30;
/// How long pods live at most, whatever happens: longer than any run, and not for ever. A node that lost its cluster keeps to it, too.
const LIFE_SECONDS_MAX: i64 = 24 * 3600;
/// How long a pod that is deleted has to end by itself; it does so at once.
const GRACE_SECONDS: i64 = 2;
/// The user that the image has, which is nobody on the nodes.
const USER: i64 = 65532;
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
    /// What the program is told.
    pub arguments: Vec<String>,
}

/// A name of a Job that nobody else has: `proofload-RUN-RANDOM`, a DNS label whatever the run is called.
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
pub(super) fn manifest(wanted: &Wanted) -> Job {
    let labels = labels(&wanted.name);
    let pods = i32::try_from(wanted.cluster.pods).unwrap_or(i32::MAX);
    let metadata = ObjectMeta {
        name: Some(wanted.name.clone()),
        labels: Some(labels.clone()),
        annotations: Some(pairs(&[("proofload/run", &wanted.run)])),
        ..Default::default()
    };
    let kept = [
        ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
        ("karpenter.sh/do-not-disrupt", "true"),
    ];
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels),
            annotations: Some(pairs(&kept)),
            ..Default::default()
        }),
        spec: Some(pod(wanted)),
    };
    let spec = JobSpec {
        completion_mode: Some("Indexed".into()),
        completions: Some(pods),
        parallelism: Some(pods),
        backoff_limit_per_index: Some(0),
        ttl_seconds_after_finished: Some(KEPT_SECONDS),
        active_deadline_seconds: Some(LIFE_SECONDS_MAX),
        template,
        ..Default::default()
    };
    Job { metadata, spec: Some(spec), status: None }
}

fn pod(wanted: &Wanted) -> PodSpec {
    let spread = TopologySpreadConstraint {
        max_skew: 1,
        topology_key: "kubernetes.io/hostname".into(),
        when_unsatisfiable: "ScheduleAnyway".into(),
        label_selector: Some(LabelSelector {
            match_labels: Some(labels(&wanted.name)),
            ..Default::default()
        }),
        ..Default::default()
    };
    PodSpec {
        containers: vec![container(wanted)],
        restart_policy: Some("Never".into()),
        node_selector: Some(wanted.cluster.node_selector.clone()),
        topology_spread_constraints: Some(vec![spread]),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        active_deadline_seconds: Some(LIFE_SECONDS_MAX),
        termination_grace_period_seconds: Some(GRACE_SECONDS),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(USER),
            run_as_group: Some(USER),
            seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".into(), localhost_profile: None }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn container(wanted: &Wanted) -> Container {
    let resources: BTreeMap<String, Quantity> = wanted
        .cluster
        .resources
        .iter()
        .map(|(what, amount)| (what.clone(), Quantity(amount.clone())))
        .collect();
    Container {
        name: CONTAINER.into(),
        image: Some(wanted.cluster.image.clone()),
        args: Some(wanted.arguments.clone()),
        stdin: Some(true),
        // Its stdin ends when whoever attached is gone, and does not wait for another.
        stdin_once: Some(true),
        // What it said at last comes with its state, so that nobody needs the right to read logs.
        termination_message_policy: Some("FallbackToLogsOnError".into()),
        resources: Some(ResourceRequirements {
            requests: Some(resources.clone()),
            limits: Some(resources),
            ..Default::default()
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".into()]), add: None }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn labels(name: &str) -> BTreeMap<String, String> {
    pairs(&[
        ("app.kubernetes.io/name", "proofload"),
        ("app.kubernetes.io/component", "generator"),
        ("app.kubernetes.io/managed-by", "proofload"),
        ("app.kubernetes.io/instance", name),
    ])
}

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
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
