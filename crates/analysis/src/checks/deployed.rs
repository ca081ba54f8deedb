//! Services that were already deployed: whether the same pods were behind them throughout, and which data are
//! unavailable.
//!
//! Pod changes belong to a variant, and its load may cause them. So a change never drops a block, but makes
//! the measurement invalid.

use std::collections::BTreeSet;

use model::quantity::many;
use record::{DeployedSeen, PodSeen};

use super::{CheckFinding, CheckedRun, CheckedTrial, CheckedVariant, void, warning};
use crate::usage::is_unseen;
use crate::{few, only_if};

/// Maximum number of changes described in a finding.
const TOLD_MAX: usize = 2;
/// Maximum number of pods named in a finding.
const NAMED_MAX: usize = 4;

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

pub(super) fn pods_changed(
    run: &CheckedRun<'_>,
    variant: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
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

/// Finds the same pod at another time.
fn same<'a>(pods: &'a [PodSeen], pod: &PodSeen) -> Option<&'a PodSeen> {
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

/// The deployed service of a variant, trial by trial.
fn deployed<'a>(variant: &CheckedVariant<'a>) -> impl Iterator<Item = &'a DeployedSeen> {
    variant
        .all_trials
        .clone()
        .into_iter()
        .filter_map(|trial| trial.started.deployed.as_ref())
}

/// Reports services that were already running, because a running process differs from a fresh one.
pub(super) fn already_running(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let first =
        |variant: &CheckedVariant<'_>| Some((variant.index, deployed(variant).next()?.clone()));
    let (about, all): (Vec<usize>, Vec<DeployedSeen>) =
        run.variants.iter().filter_map(first).unzip();
    let place = |one: &DeployedSeen| {
        let behind = if one.pods.is_empty() {
            one.address.clone()
        } else {
            pods_in_words(&one.pods)
        };
        format!("{} ({behind})", one.place)
    };
    let places = model::distinct(all.iter().map(place));
    let were = if places.len() == 1 { "was" } else { "were" };
    let evidence = format!(
        "{} {were} not started by Proofload, but ran already",
        places.join(" and ")
    );
    let mut told = run.variants.iter().filter(|of| about.contains(&of.index));
    let unseen = told.any(|of| is_unseen(of.plan, of.all_trials.iter().map(|trial| trial.started)));
    let why = all.iter().find_map(|one| one.unseen.as_ref());
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    let known = match unseen {
        false => {
            "CPU time and memory are those of the processes that listen there, with all that they start"
        }
        true => &format!("CPU time and memory are not known, nor whether it was at its limit{why}"),
    };
    let remedy = format!(
        "what its processes carried from trial to trial (memory, caches, compiled code) is in every figure, and other users' requests may \
         be; intervals tell how figures vary in time, not how they would with other processes of the same program. {known}"
    );
    (!about.is_empty()).then(|| CheckFinding::note((), evidence, remedy).about(about))
}

/// Formats `3 pods on n1, n2`.
fn pods_in_words(pods: &[PodSeen]) -> String {
    let ready: Vec<&PodSeen> = pods.iter().filter(|pod| pod.ready).collect();
    let nodes: BTreeSet<&str> = ready.iter().filter_map(|pod| pod.node.as_deref()).collect();
    let on = if nodes.is_empty() {
        String::new()
    } else {
        format!(" on {}", few(nodes, NAMED_MAX, ", "))
    };
    format!("{}{on}", many(ready.len() as u64, "pod"))
}

/// Reports two Services with the same pods, which are one service under two names.
pub(super) fn same_pods(
    baseline: &CheckedVariant<'_>,
    candidate: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
    let (one, other) = (deployed(baseline).next()?, deployed(candidate).next()?);
    // If both variants load the same Service, the user knows that.
    let known = one.place == other.place && one.address == other.address;
    let is_there = |pod: &&PodSeen| same(&one.pods, pod).is_some_and(|same| same.ready);
    let ready = || other.pods.iter().filter(|pod| pod.ready);
    let (shared, all) = (ready().filter(is_there).count(), ready().count());
    let all = many(all as u64, "pod");
    let evidence = format!(
        "{shared} of the {all} behind {} stand behind {}, too",
        other.place, one.place
    );
    let remedy = "requests to both go to the same processes; see whether one selector says too little (kubectl get services --output wide)";
    let told = shared > 0 && !known && baseline.plan.load == candidate.plan.load;
    told.then(|| warning(evidence, remedy))
}
