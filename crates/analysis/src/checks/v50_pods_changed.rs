//! The pods behind a Service changed
//!
//! **Seen.** `in block 3 shop-canary-7d9f-x2x went`, between the lists of pods at the begin and end of a
//! trial.
//!
//! **Why.** Other or fewer processes served. The block counts, because load may have killed the pod.
//!
//! **What to do.** `kubectl describe pod`. Wait for rollouts, and fix the number of pods.
//!
//! **Threshold.** One pod. Invalid within a trial that counts. A warning between trials, or if the second
//! list failed.

use std::collections::BTreeSet;

use model::quantity::many;
use record::{DeployedSeen, PodSeen};

use super::finding::{CheckFinding, void, warning};
use super::input::{CheckedRun, CheckedTrial, CheckedVariant};
use super::pods::{NAMED_MAX, deployed, same};
use super::row::{CheckRow, EITHER, Maker, Subject, row};
use crate::{few, only_if};

pub(super) static ROW: CheckRow =
    row(Subject::Service, EITHER, &[Maker::Each(pods_changed)]).ending_run();

/// Maximum number of changes described in a finding.
const TOLD_MAX: usize = 2;

/// Changes of the pods of a variant.
#[derive(Default)]
struct PodChanges {
    /// During the load, in trials that count.
    within: Vec<String>,
    /// Between trials, or in trials that do not count.
    between: Vec<String>,
    /// Number of trials whose pods were listed at the start, of those that count, and of those that could not
    /// be listed at the end.
    looks: usize,
    counting: usize,
    unseen: usize,
}

fn pods_changed(run: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    only_if(!run.is_of_url())?;
    let place = &deployed(variant).next()?.place;
    let PodChanges {
        within,
        between,
        looks,
        counting,
        unseen,
    } = PodChanges::of(variant);
    let also = match between.len() {
        0 => String::new(),
        1 => "; and once between trials".to_owned(),
        more => format!("; and {} between trials", many(more as u64, "time")),
    };
    if !within.is_empty() {
        let (hit, counting) = (within.len(), many(counting as u64, "trial"));
        let told = few(within, TOLD_MAX, "; ");
        return Some(void(
            format!(
                "the pods behind {place} changed while it was loaded: {told}; so it went in {hit} of {counting}{also}"
            ),
            "what answered was not the same from begin to end, so its figures are those of nothing in particular; see why (kubectl describe \
             pod), let rollouts come to an end, keep the number of pods fixed while you measure (an autoscaler's minimum and maximum \
             alike), and run again",
        ));
    }
    if !between.is_empty() {
        return Some(warning(
            format!(
                "the pods behind {place} changed between trials: {}",
                few(between, TOLD_MAX, "; ")
            ),
            "later blocks measured other pods. If the program is the same, the interval includes the difference; otherwise the figure mixes \
             two programs. Check the deployment and run again",
        ));
    }
    let looks = many(looks as u64, "trial");
    let evidence =
        format!("the pods behind {place} could not be listed at the end of {unseen} of {looks}");
    let remedy = "the API server did not answer. A pod that came or went is seen only if that still showed when the next trial began";
    (unseen > 0).then(|| warning(evidence, remedy))
}

impl PodChanges {
    fn of(variant: &CheckedVariant<'_>) -> PodChanges {
        let counting = variant
            .trials
            .iter()
            .filter(|trial| trial.measured().next().is_some());
        let counting: BTreeSet<u32> = counting.map(|trial| trial.started.block).collect();
        let mut changes = PodChanges::default();
        // The last known pods, and whether they belong to a trial that counts.
        let mut before: Option<(&[PodSeen], bool)> = None;
        for CheckedTrial { started, ended, .. } in &variant.all_trials {
            let Some(DeployedSeen { pods: begin, .. }) = &started.deployed else {
                continue;
            };
            let (block, counts) = (started.block, counting.contains(&started.block));
            if let Some((then, counts)) = before {
                // A cluster reports a restart seconds later, so it is attributed to the previous load.
                let told = changes.told(counts && !restarts(then, begin).is_empty());
                told.extend(
                    difference(then, begin).map(|what| format!("before block {block} {what}")),
                );
            }
            // A trial without an end was not listed again, which is not an error.
            let end = ended.map_or(Some(begin.as_slice()), |ended| ended.pods.as_deref());
            let said = end.and_then(|end| difference(begin, end));
            changes
                .told(counts)
                .extend(said.map(|what| format!("in block {block} {what}")));
            changes.looks += 1;
            changes.counting += usize::from(counts);
            changes.unseen += usize::from(end.is_none());
            before = Some((end.unwrap_or(begin), counts));
        }
        changes
    }

    fn told(&mut self, under_load: bool) -> &mut Vec<String> {
        if under_load {
            &mut self.within
        } else {
            &mut self.between
        }
    }
}

/// Describes the differences between two lists of pods. `None` if there are none. Pods that got no requests
/// in either are ignored.
fn difference(before: &[PodSeen], after: &[PodSeen]) -> Option<String> {
    let gone = before
        .iter()
        .filter(|pod| pod.ready && same(after, pod).is_none());
    let come = after
        .iter()
        .filter(|pod| pod.ready && same(before, pod).is_none());
    let turned = |ready: bool| {
        let was_other =
            move |pod: &&PodSeen| same(before, pod).is_some_and(|then| then.ready != ready);
        after
            .iter()
            .filter(move |pod| pod.ready == ready)
            .filter(was_other)
    };
    let parts: [(Vec<&PodSeen>, &str); 5] = [
        (gone.collect(), "went"),
        (come.collect(), "came"),
        (restarts(before, after), "was started again"),
        (turned(false).collect(), "was not ready any more"),
        (turned(true).collect(), "became ready"),
    ];
    let told = parts.iter().filter(|(pods, _)| !pods.is_empty());
    let names = |pods: &[&PodSeen]| few(pods.iter().map(|pod| &pod.name), NAMED_MAX, ", ");
    let told: Vec<String> = told
        .map(|(pods, what)| format!("{} {what}", names(pods)))
        .collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// Pods that are the same and were restarted.
fn restarts<'a>(before: &[PodSeen], after: &'a [PodSeen]) -> Vec<&'a PodSeen> {
    let more = |pod: &&PodSeen| {
        let loaded = same(before, pod).filter(|then| then.ready || pod.ready);
        loaded
            .and_then(|then| then.restarts.zip(pod.restarts))
            .is_some_and(|(then, now)| now > then)
    };
    after.iter().filter(more).collect()
}
