//! How far the pods of a Job are, as the cluster lists them; and when all run, or when it is time to give up. Pure: it takes lists and
//! the time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::error::ClusterError;
use super::objects::{ContainerState, Pod, Terminated};

/// A pod as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodView {
    /// Its completion index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its node; empty while it has none.
    pub node: String,
    /// How far it is.
    pub state: State,
}

/// How far a pod is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// It is being made.
    Waiting,
    /// Its program runs.
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
    Some(PodView { index, name, node, state: state(pod) })
}

fn state(pod: &Pod) -> State {
    if let Some(ending) = ending(pod) {
        return State::Ended(ending.words(&ending.last));
    }
    let container = container(pod);
    if container.is_some_and(|state| state.running.is_some()) {
        return State::Running;
    }
    if let Some(waiting) = container.and_then(|state| state.waiting.as_ref()) {
        let (reason, message) = (waiting.reason.clone(), waiting.message.clone());
        return match reason.as_str() {
            "ContainerCreating" | "PodInitializing" | "" => State::Waiting,
            known if IMAGE_REASONS.contains(&known) => State::ImageMissing(reason, message),
            _ => State::NotCreated(reason, message),
        };
    }
    condition(pod, "PodScheduled", "False").map_or(State::Waiting, State::Unscheduled)
}

/// How a pod ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ending {
    /// In the cluster's words.
    pub how: String,
    /// The last lines of its stdout and stderr, where it failed; empty if there are none.
    pub last: String,
    /// Whether it ended as it should, with exit code 0.
    pub well: bool,
}

impl Ending {
    /// In one line, with its last output.
    pub(super) fn words(&self, last: &str) -> String {
        let lines: Vec<&str> = last.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if lines.is_empty() { self.how.clone() } else { format!("{}: {}", self.how, lines.join("; ")) }
    }

    /// One that was not in order.
    pub(super) fn of(how: impl Into<String>) -> Ending {
        Ending { how: how.into(), last: String::new(), well: false }
    }
}

/// How a pod ended, once it has, in the cluster's words.
pub(super) fn ending(pod: &Pod) -> Option<Ending> {
    if let Some(message) = condition(pod, "DisruptionTarget", "True") {
        return Some(Ending::of(format!("the cluster took it away: {message}")));
    }
    if pod.metadata.deletion_timestamp.is_some() {
        return Some(Ending::of("somebody deleted the pod"));
    }
    if let Some(ended) = container(pod).and_then(|state| state.terminated.as_ref()) {
        return Some(Ending { how: exit(ended), last: ended.message.clone(), well: ended.exit_code == 0 });
    }
    let status = &pod.status;
    (status.phase == "Failed").then(|| Ending::of(joined(&status.reason, &status.message)))
}

fn exit(ended: &Terminated) -> String {
    let code = ended.exit_code;
    match (ended.reason.as_str(), code) {
        ("OOMKilled", _) => format!("it needed more memory than its limit (OOMKilled, exit code {code})"),
        (_, 137) => format!("it was killed (exit code {code})"),
        ("Error" | "Completed" | "", _) => format!("exit code {code}"),
        (reason, _) => format!("{reason}, exit code {code}"),
    }
}

fn container(pod: &Pod) -> Option<&ContainerState> {
    pod.status.container_statuses.first().map(|container| &container.state)
}

/// What a condition says where it has this status.
fn condition(pod: &Pod, kind: &str, status: &str) -> Option<String> {
    let mut conditions = pod.status.conditions.iter();
    let met = conditions.find(|condition| condition.kind == kind && condition.status == status)?;
    Some(joined(&met.reason, &met.message))
}

fn joined(reason: &str, message: &str) -> String {
    [reason, message].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
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
pub(super) enum Step {
    /// Look again; how far it is, in words.
    Wait(String),
    /// All are running, in the order of their index.
    Open(Vec<PodView>),
    /// Give up.
    Broken(ClusterError),
}

/// How long all pods together may take: large images over slow lines, nodes that are only just being added.
pub(super) const OPEN_MAX: Duration = Duration::from_secs(300);

impl Barrier {
    pub(super) fn new(wanted: u32, image: String) -> Barrier {
        Barrier { wanted, image, trouble: None }
    }

    /// What follows from the pods seen `now`, which is the time since the Job was made, and from why the cluster made no more of them.
    pub(super) fn step(&mut self, now: Duration, pods: &[PodView], refusal: Option<&str>) -> Step {
        let running: BTreeMap<u32, &PodView> =
            pods.iter().filter(|pod| pod.state == State::Running).map(|pod| (pod.index, pod)).collect();
        if running.len() as u64 == u64::from(self.wanted) {
            return Step::Open(running.into_values().cloned().collect());
        }
        let words = words(self.wanted, pods);
        match self.worst(pods, refusal) {
            Some(trouble) if self.lasts(&trouble, pods.len(), now) => Step::Broken(trouble.error),
            Some(trouble) => Step::Wait(format!("{words}: {}", trouble.error)),
            None if now > OPEN_MAX => {
                Step::Broken(ClusterError::Late { seconds: now.as_secs(), state: words })
            }
            None => {
                self.trouble = None;
                Step::Wait(words)
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
        let refused =
            refusal.filter(|_| (pods.len() as u64) < u64::from(self.wanted)).map(|message| Trouble {
                kind: "refused",
                patience: Duration::from_secs(3),
                error: ClusterError::Refused { what: "its pods", message: message.to_owned() },
            });
        of_pods.chain(refused).min_by_key(|trouble| trouble.patience)
    }

    fn trouble_of(&self, pod: &PodView, pods: &[PodView]) -> Option<Trouble> {
        let (name, node) = (pod.name.clone(), pod.node.clone());
        let (kind, patience_s, error) = match &pod.state {
            State::Waiting | State::Running => return None,
            State::Ended(how) => ("ended", 0, ClusterError::Ended { pod: name, node, how: how.clone() }),
            State::ImageMissing(reason, message) => {
                let (image, reason, message) = (self.image.clone(), reason.clone(), message.clone());
                // A registry may be busy for once; the node tries again after ten seconds.
                let patience_s =
                    if matches!(reason.as_str(), "InvalidImageName" | "ErrImageNeverPull") { 0 } else { 15 };
                ("image", patience_s, ClusterError::Image { image, pod: name, reason, message })
            }
            State::NotCreated(reason, message) => {
                let (reason, message) = (reason.clone(), message.clone());
                ("not created", 3, ClusterError::Container { pod: name, node, reason, message })
            }
            State::Unscheduled(message) => {
                let count = pods.iter().filter(|pod| matches!(pod.state, State::Unscheduled(_))).count();
                let (wanted, message) = (self.wanted, message.clone());
                // A pod that leaves may make room, such as one of the run before.
                ("unschedulable", 10, ClusterError::Unschedulable { count, wanted, message })
            }
        };
        Some(Trouble { kind, patience: Duration::from_secs(patience_s), error })
    }
}

/// What is wrong, and how long it may be.
struct Trouble {
    kind: &'static str,
    patience: Duration,
    error: ClusterError,
}

/// `6 of 8 pods are running, 1 is being made, 1 has no node`.
fn words(wanted: u32, pods: &[PodView]) -> String {
    let count = |of: fn(&State) -> bool| pods.iter().filter(|pod| of(&pod.state)).count();
    let running = count(|state| *state == State::Running);
    let unscheduled = count(|state| matches!(state, State::Unscheduled(_)));
    let ended = count(|state| matches!(state, State::Ended(_)));
    let made = pods.len() - running - unscheduled - ended;
    let indexes: BTreeSet<u32> = pods.iter().map(|pod| pod.index).collect();
    let missing = (wanted as usize).saturating_sub(indexes.len());
    let mut parts = vec![format!("{running} of {wanted} pods are running")];
    let others =
        [(made, "being made"), (unscheduled, "without a node"), (ended, "ended"), (missing, "not there yet")];
    parts
        .extend(others.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
    parts.join(", ")
}

#[cfg(test)]
mod tests;
