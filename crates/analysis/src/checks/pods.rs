//! Pods of deployed services, and how they are identified.

use record::{DeployedSeen, PodSeen};

use super::input::CheckedVariant;

/// Maximum number of pods named in a finding.
pub(super) const NAMED_MAX: usize = 4;

/// Finds the same pod at another time.
pub(super) fn same<'a>(pods: &'a [PodSeen], pod: &PodSeen) -> Option<&'a PodSeen> {
    pods.iter().find(|other| identity(other) == identity(pod))
}

/// Identity of a pod. A mere address has only its name.
fn identity(pod: &PodSeen) -> &str {
    if pod.uid.is_empty() {
        &pod.name
    } else {
        &pod.uid
    }
}

/// The deployed service of a variant, trial by trial.
pub(super) fn deployed<'a>(variant: &CheckedVariant<'a>) -> impl Iterator<Item = &'a DeployedSeen> {
    variant
        .all_trials
        .clone()
        .into_iter()
        .filter_map(|trial| trial.started.deployed.as_ref())
}
