//! How far the pods of a Job are, as the cluster lists them; and when all run, or when it is time to give up. Pure: it takes lists and
//! the time.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::quantity::many;
use model::text::slug;
use plan::Kubernetes;
use serde_json::{Value, json};

use crate::Error;
use crate::kubernetes::api::{ContainerState, Pod, Terminated};

/// A pod as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodView {
    pub index: u32,
    pub name: String,
    /// Its node; empty while it has none.
    pub node: String,
    pub state: PodState,
}

/// How far a pod is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PodState {
    /// It is being made.
    Waiting,
    Running,
    /// No node takes it; what the scheduler says.
    Unscheduled(String),
    /// Its image is not there: reason and message.
    ImageMissing(String, String),
    /// It cannot be made: reason and message.
    NotCreated(String, String),
    /// It has ended, in these words.
    Ended(String),
}

/// Reasons for which a container waits and that have to do with its image.
const IMAGE_REASONS: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
];

/// Reads a pod; `None` where it is none of an Indexed Job.
pub(super) fn view(pod: &Pod) -> Option<PodView> {
    const INDEX: &str = "batch.kubernetes.io/job-completion-index";
    let index = pod.metadata.annotations.get(INDEX)?.parse().ok()?;
    let (name, node) = (pod.metadata.name.clone(), pod.spec.node_name.clone());
    Some(PodView {
        index,
        name,
        node,
        state: state(pod),
    })
}

fn state(pod: &Pod) -> PodState {
    if let Some(ending) = ending(pod) {
        return PodState::Ended(ending.words(&ending.last));
    }
    let container = container(pod);
    if container.is_some_and(|state| state.running.is_some()) {
        return PodState::Running;
    }
    if let Some(waiting) = container.and_then(|state| state.waiting.as_ref()) {
        let (reason, message) = (waiting.reason.clone(), waiting.message.clone());
        return match reason.as_str() {
            "ContainerCreating" | "PodInitializing" | "" => PodState::Waiting,
            known if IMAGE_REASONS.contains(&known) => PodState::ImageMissing(reason, message),
            _ => PodState::NotCreated(reason, message),
        };
    }
    condition(pod, "PodScheduled", "False").map_or(PodState::Waiting, PodState::Unscheduled)
}

/// What a node keeps of the end of a container's output (Kubernetes, "Determine the Reason for Pod Failure").
const MESSAGE_BYTES: usize = 2048;

/// How a pod ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodEnding {
    /// In the cluster's words.
    pub how: String,
    /// The last lines of its stdout and stderr, where it failed; empty if there are none.
    pub last: String,
    /// Whether it ended as it should, with exit code 0.
    pub well: bool,
}

impl PodEnding {
    /// In one line, with its last output.
    pub(super) fn words(&self, last: &str) -> String {
        let lines: Vec<&str> = last
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        if lines.is_empty() {
            self.how.clone()
        } else {
            format!("{}: {}", self.how, lines.join("; "))
        }
    }

    /// One that was not in order.
    pub(super) fn of(how: impl Into<String>) -> PodEnding {
        PodEnding {
            how: how.into(),
            last: String::new(),
            well: false,
        }
    }
}

/// How a pod ended, once it has, in the cluster's words.
pub(super) fn ending(pod: &Pod) -> Option<PodEnding> {
    if let Some(message) = condition(pod, "DisruptionTarget", "True") {
        return Some(PodEnding::of(format!(
            "the cluster took it away: {message}"
        )));
    }
    if pod.metadata.deletion_timestamp.is_some() {
        return Some(PodEnding::of("somebody deleted the pod"));
    }
    if let Some(ended) = container(pod).and_then(|state| state.terminated.as_ref()) {
        let begin = if ended.message.len() >= MESSAGE_BYTES {
            "…"
        } else {
            ""
        };
        let last = format!("{begin}{}", ended.message);
        return Some(PodEnding {
            how: exit(ended),
            last,
            well: ended.exit_code == 0,
        });
    }
    let status = &pod.status;
    (status.phase == "Failed").then(|| PodEnding::of(joined(&status.reason, &status.message)))
}

fn exit(ended: &Terminated) -> String {
    let code = ended.exit_code;
    match (ended.reason.as_str(), code) {
        ("OOMKilled", _) => {
            format!("it needed more memory than its limit (OOMKilled, exit code {code})")
        }
        (_, 137) => format!("it was killed (exit code {code})"),
        ("Error" | "Completed" | "", _) => format!("exit code {code}"),
        (reason, _) => format!("{reason}, exit code {code}"),
    }
}

/// Ours: a mesh may have put others into the pod, and they are listed by name.
fn container(pod: &Pod) -> Option<&ContainerState> {
    let all = &pod.status.container_statuses;
    all.iter()
        .find(|container| container.name == CONTAINER)
        .map(|container| &container.state)
}

/// What a condition says where it has this status.
fn condition(pod: &Pod, kind: &str, status: &str) -> Option<String> {
    let mut conditions = pod.status.conditions.iter();
    let met = conditions.find(|condition| condition.kind == kind && condition.status == status)?;
    Some(joined(&met.reason, &met.message))
}

fn joined(reason: &str, message: &str) -> String {
    [reason, message]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(": ")
}

/// Waits for all pods of a Job, and knows when that is in vain.
#[derive(Debug)]
pub(super) struct Barrier {
    wanted: u32,
    image: String,
    /// Which trouble there is, how many pods there were, and since when both are so.
    trouble: Option<(&'static str, usize, Duration)>,
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PodStep {
    /// Look again; how far it is, in words.
    Wait(String),
    /// All are running, in the order of their index.
    Open(Vec<PodView>),
    /// Give up.
    Broken(Error),
}

/// How long all pods together may take: large images over slow lines, nodes that are only just being added.
pub(super) const OPEN_MAX: Duration = Duration::from_secs(300);

impl Barrier {
    pub(super) fn new(wanted: u32, image: String) -> Barrier {
        Barrier {
            wanted,
            image,
            trouble: None,
        }
    }

    /// What follows from the pods seen `now`, which is the time since the Job was made, and from why the cluster made no more of them.
    pub(super) fn step(
        &mut self,
        now: Duration,
        pods: &[PodView],
        refusal: Option<&str>,
    ) -> PodStep {
        let running: BTreeMap<u32, &PodView> = pods
            .iter()
            .filter(|pod| pod.state == PodState::Running)
            .map(|pod| (pod.index, pod))
            .collect();
        if running.len() as u64 == u64::from(self.wanted) {
            return PodStep::Open(running.into_values().cloned().collect());
        }
        let words = words(self.wanted, pods);
        match self.worst(pods, refusal) {
            Some(trouble) if self.lasts(&trouble, pods.len(), now) => {
                PodStep::Broken(trouble.error)
            }
            Some(trouble) => PodStep::Wait(format!("{words}: {}", trouble.error)),
            None if now > OPEN_MAX => {
                let error = Error::new(format!("after {} s {words}", now.as_secs()));
                PodStep::Broken(error.help("kubectl get pods and kubectl get events tell more"))
            }
            None => {
                self.trouble = None;
                PodStep::Wait(words)
            }
        }
    }

    /// Whether a trouble has been there for as long as it may, without anything moving.
    fn lasts(&mut self, trouble: &Trouble, pods: usize, now: Duration) -> bool {
        let since = match self.trouble {
            Some((kind, of, since)) if kind == trouble.kind && of == pods => since,
            _ => now,
        };
        self.trouble = Some((trouble.kind, pods, since));
        now.saturating_sub(since) >= trouble.patience
    }

    fn worst(&self, pods: &[PodView], refusal: Option<&str>) -> Option<Trouble> {
        let of_pods = pods.iter().filter_map(|pod| self.trouble_of(pod, pods));
        // The Job tries again after 1, 2, 4 s and so on: a namespace just made has no service account yet, a quota has room again.
        let patience = Duration::from_secs(15);
        let refused = refusal
            .filter(|_| (pods.len() as u64) < u64::from(self.wanted))
            .map(|message| Trouble {
                kind: "refused",
                patience,
                error: refused("its pods", message),
            });
        of_pods
            .chain(refused)
            .min_by_key(|trouble| trouble.patience)
    }

    fn trouble_of(&self, pod: &PodView, pods: &[PodView]) -> Option<Trouble> {
        let PodView { name, node, .. } = pod;
        let (kind, patience_s, error) = match &pod.state {
            PodState::Waiting | PodState::Running => return None,
            PodState::Ended(how) => (
                "ended",
                0,
                Error::new(format!(
                    "{name} on {node} ended before it got any load: {how}"
                )),
            ),
            PodState::ImageMissing(reason, message) => {
                let image = &self.image;
                let error = Error::new(format!(
                    "the image {image:?} cannot be had by {name}: {reason}: {message}"
                ));
                let error = error.help(match reason.as_str() {
                    "InvalidImageName" => "an image is named as registry/name:tag, in lower case",
                    _ => "is the name right, and may the nodes pull it? The Dockerfile makes it",
                });
                // A registry may be busy for once; the node tries again after ten seconds.
                let patience_s =
                    if matches!(reason.as_str(), "InvalidImageName" | "ErrImageNeverPull") {
                        0
                    } else {
                        15
                    };
                ("image", patience_s, error)
            }
            PodState::NotCreated(reason, message) => (
                "not created",
                3,
                Error::new(format!(
                    "{name} on {node} cannot be made: {reason}: {message}"
                )),
            ),
            PodState::Unscheduled(message) => {
                let count = pods
                    .iter()
                    .filter(|pod| matches!(pod.state, PodState::Unscheduled(_)))
                    .count();
                let error = Error::new(format!(
                    "{count} of {} without a node: {message}",
                    many(self.wanted.into(), "pod")
                ))
                .help("fewer pods, smaller resources, or another node_selector: kubectl describe nodes");
                // A pod that leaves may make room, such as one of the run before.
                ("unschedulable", 10, error)
            }
        };
        Some(Trouble {
            kind,
            patience: Duration::from_secs(patience_s),
            error,
        })
    }
}

/// That the cluster does not take something.
pub(super) fn refused(what: &str, message: &str) -> Error {
    let error = Error::new(format!("the cluster refuses {what}: {message}"));
    match message.contains("exceeded quota") {
        true => {
            error.help("fewer pods or smaller resources, or a larger quota: kubectl describe quota")
        }
        false => error,
    }
}

/// What is wrong, and how long it may be.
struct Trouble {
    kind: &'static str,
    patience: Duration,
    error: Error,
}

/// `6 of 8 pods running, 1 being made, 1 without a node`.
fn words(wanted: u32, pods: &[PodView]) -> String {
    let count = |of: fn(&PodState) -> bool| pods.iter().filter(|pod| of(&pod.state)).count();
    let running = count(|state| *state == PodState::Running);
    let unscheduled = count(|state| matches!(state, PodState::Unscheduled(_)));
    let ended = count(|state| matches!(state, PodState::Ended(_)));
    let made = pods.len() - running - unscheduled - ended;
    let indexes: BTreeSet<u32> = pods.iter().map(|pod| pod.index).collect();
    let missing = (wanted as usize).saturating_sub(indexes.len());
    let mut parts = vec![format!(
        "{running} of {} running",
        many(wanted.into(), "pod")
    )];
    let others = [
        (made, "being made"),
        (unscheduled, "without a node"),
        (ended, "ended"),
        (missing, "not there yet"),
    ];
    parts.extend(
        others
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}")),
    );
    parts.join(", ")
}

// The Job: what is asked of the cluster, and nothing else is made there.
//
// One pod for each completion index, none of which is ever replaced: a generator that comes later has missed the begin. One that fails
// leaves the others alone (`backoffLimitPerIndex`). All of it goes away by itself: a pod ends with its stdin, the Job is deleted some
// time after its last pod has ended, and whatever goes wrong with that, there is a deadline.

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

/// A unique name of a Job: `proofload-RUN-RANDOM`, a DNS label whatever the run is called.
pub(super) fn name(run: &str, random: u32) -> String {
    match slug(run, RUN_LETTERS_MAX).as_str() {
        "" => format!("proofload-{random:08x}"),
        words => format!("proofload-{words}-{random:08x}"),
    }
}

/// The Job as the API takes it: of this name, for a run of that name, with these arguments of the program.
pub(super) fn manifest(name: &str, run: &str, cluster: &Kubernetes, arguments: &[&str]) -> Value {
    let labels = json!({
        "app.kubernetes.io/name": "proofload",
        "app.kubernetes.io/component": "generator",
        "app.kubernetes.io/managed-by": "proofload",
        "app.kubernetes.io/instance": name,
    });
    let kept = json!({
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "karpenter.sh/do-not-disrupt": "true",
    });
    let container = json!({
        "name": CONTAINER,
        "image": cluster.image,
        "args": arguments,
        "stdin": true,
        // Its stdin ends with the first connection, and does not wait for another.
        "stdinOnce": true,
        // Its last output comes with its state, so that no right to read logs is needed.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": { "requests": cluster.resources, "limits": cluster.resources },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        },
    });
    let pod = json!({
        "containers": [container],
        "restartPolicy": "Never",
        "nodeSelector": cluster.node_selector,
        "topologySpreadConstraints": [{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": { "matchLabels": labels },
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
    });
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": name, "labels": labels, "annotations": { "proofload/run": run } },
        "spec": {
            "completionMode": "Indexed",
            "completions": cluster.pods,
            "parallelism": cluster.pods,
            "backoffLimitPerIndex": 0,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "activeDeadlineSeconds": LIFE_SECONDS_MAX,
            "template": { "metadata": { "labels": labels, "annotations": kept }, "spec": pod },
        },
    })
}
