//! State of a Job's pods as the cluster lists them. Decides when all pods run and when to give up. Pure: the
//! input is lists of pods and the elapsed time.

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

/// The facts about a pod that are used here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodView {
    pub index: u32,
    pub name: String,
    /// Name of its node. Empty until the pod has one.
    pub node: String,
    pub state: PodState,
}

/// Progress of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PodState {
    /// The pod is being created.
    Waiting,
    Running,
    /// No node accepts the pod: message of the scheduler.
    Unscheduled(String),
    /// The image is missing: reason and message.
    ImageMissing(String, String),
    /// The pod cannot be created: reason and message.
    NotCreated(String, String),
    /// The pod has ended: description.
    Ended(String),
}

/// Reasons of waiting containers that concern the image.
const IMAGE_REASONS: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
];

/// Reads a pod. `None` if it does not belong to an Indexed Job.
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

/// Number of bytes that a node keeps from the end of a container's output (Kubernetes, "Determine the Reason
/// for Pod Failure").
const MESSAGE_BYTES: usize = 2048;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodEnding {
    /// Description in the words of the cluster.
    pub how: String,
    /// Last lines of stdout and stderr if the pod failed. Empty if there are none.
    pub last: String,
    /// Whether the pod exited with code 0.
    pub well: bool,
}

impl PodEnding {
    /// Description with the last output, in one line.
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

    /// Creates an ending that was a failure.
    pub(super) fn of(how: impl Into<String>) -> PodEnding {
        PodEnding {
            how: how.into(),
            last: String::new(),
            well: false,
        }
    }
}

/// Returns how a pod ended, in the words of the cluster. `None` if it has not ended.
pub(super) fn ending(pod: &Pod) -> Option<PodEnding> {
    if let Some(message) = condition(pod, "DisruptionTarget", "True") {
        return Some(PodEnding::of(format!(
            "the cluster evicted the pod: {message}"
        )));
    }
    if pod.metadata.deletion_timestamp.is_some() {
        return Some(PodEnding::of("the pod was deleted"));
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
            format!("memory limit exceeded (OOMKilled, exit code {code})")
        }
        (_, 137) => format!("killed (exit code {code})"),
        ("Error" | "Completed" | "", _) => format!("exit code {code}"),
        (reason, _) => format!("{reason}, exit code {code}"),
    }
}

/// State of our container. It is found by name, because a service mesh may have added other containers.
fn container(pod: &Pod) -> Option<&ContainerState> {
    let all = &pod.status.container_statuses;
    all.iter()
        .find(|container| container.name == CONTAINER)
        .map(|container| &container.state)
}

/// Reason and message of a condition with this status.
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

/// Waits for all pods of a Job, and detects when waiting is pointless.
#[derive(Debug)]
pub(super) struct Barrier {
    wanted: u32,
    image: String,
    /// Kind of the current trouble, the number of pods, and the time since both are unchanged.
    trouble: Option<(&'static str, usize, Duration)>,
}

/// The next action.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PodStep {
    /// List the pods again later. The text describes the progress.
    Wait(String),
    /// All pods are running, in the order of their index.
    Open(Vec<PodView>),
    /// Give up.
    Broken(Error),
}

/// Timeout for all pods to run. Large images may be pulled over slow lines, and new nodes may still be
/// joining.
pub(super) const OPEN_MAX: Duration = Duration::from_secs(300);

impl Barrier {
    pub(super) fn new(wanted: u32, image: String) -> Barrier {
        Barrier {
            wanted,
            image,
            trouble: None,
        }
    }

    /// Returns the next action. `now` is the time since the Job was created, and `refusal` is why the cluster
    /// created no more pods.
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
                let error = Error::new(format!("timeout after {} s: {words}", now.as_secs()));
                PodStep::Broken(
                    error.help("for details, run: kubectl get pods, kubectl get events"),
                )
            }
            None => {
                self.trouble = None;
                PodStep::Wait(words)
            }
        }
    }

    /// Whether a trouble has lasted as long as its patience allows, without any progress.
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
        // The Job controller retries after 1, 2, 4 s and so on. A new namespace may not have its service
        // account yet, or a quota may have room again.
        let patience = Duration::from_secs(15);
        let refused = refusal
            .filter(|_| (pods.len() as u64) < u64::from(self.wanted))
            .map(|message| Trouble {
                kind: "refused",
                patience,
                error: refused("create the pods", message),
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
                    "{name} on {node} exited before it received load: {how}"
                )),
            ),
            PodState::ImageMissing(reason, message) => {
                let image = &self.image;
                let error = Error::new(format!(
                    "{name} cannot pull the image {image:?}: {reason}: {message}"
                ));
                let error = error.help(match reason.as_str() {
                    "InvalidImageName" => "expected registry/name:tag, in lower case",
                    _ => "check the image name and the nodes' pull permissions; build the image with the Dockerfile",
                });
                // A registry may be busy for a moment. The node tries again after ten seconds.
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
                    "{name} on {node} cannot be created: {reason}: {message}"
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
                .help("use fewer pods, smaller resources or another node_selector; check with: kubectl describe nodes");
                // A pod that ends may make room, such as a pod of the previous run.
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

/// Error for a request that the cluster rejects. `what` is a verb with its object.
pub(super) fn refused(what: &str, message: &str) -> Error {
    let error = Error::new(format!("the cluster refused to {what}: {message}"));
    match message.contains("exceeded quota") {
        true => {
            error.help("use fewer pods, smaller resources or a larger quota; check with: kubectl describe quota")
        }
        false => error,
    }
}

/// A problem with pods, and how long it may last.
struct Trouble {
    kind: &'static str,
    patience: Duration,
    error: Error,
}

/// `6 of 8 pods running, 1 being created, 1 without a node`.
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
        (made, "being created"),
        (unscheduled, "without a node"),
        (ended, "exited"),
        (missing, "not created yet"),
    ];
    parts.extend(
        others
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}")),
    );
    parts.join(", ")
}

// The Job, which is the only object created in the cluster.
//
// There is one pod for each completion index. Pods are never replaced, because a generator that starts later
// has missed the beginning. A pod that fails does not affect the others (`backoffLimitPerIndex`). Everything
// disappears without our help: a pod ends with its stdin, and the Job is deleted some time after its last pod
// has ended. If either fails, there is a deadline.

/// Name of the container that is attached to.
pub(super) const CONTAINER: &str = "generator";
/// How long a Job stays after all its pods have ended, unless it is deleted earlier.
const KEPT_SECONDS: u32 = 30;
/// Maximum lifetime of pods in any case. Longer than any run, but finite. A node that lost its cluster
/// enforces it, too.
const LIFE_SECONDS_MAX: u32 = 24 * 3600;
/// How long a deleted pod may take to end before it is killed. It ends at once.
const GRACE_SECONDS: u32 = 2;
/// User ID in the image, which has no rights on the nodes.
const USER: u32 = 65532;
/// Maximum number of letters of the run's name in the name of the Job. With prefix, suffix and index this
/// gives a host name of under 63 letters.
const RUN_LETTERS_MAX: usize = 30;

/// Returns a unique name of a Job: `proofload-RUN-RANDOM`. It is a DNS label for every name of a run.
pub(super) fn name(run: &str, random: u32) -> String {
    match slug(run, RUN_LETTERS_MAX).as_str() {
        "" => format!("proofload-{random:08x}"),
        words => format!("proofload-{words}-{random:08x}"),
    }
}

/// Returns the Job as the API takes it. `arguments` are those passed to the program.
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
        // Stdin ends with the first connection and does not wait for another.
        "stdinOnce": true,
        // The last output is reported with the state, so that no permission to read logs is needed.
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
