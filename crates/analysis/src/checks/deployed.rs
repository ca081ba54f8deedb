//! Services that were loaded and not started: whether the same pods stood behind them all along, and what cannot be said of them.
//!
//! What is seen of pods belongs to a variant, and a load may bring it about: so a change never drops a block, it voids what was measured.

use std::collections::{BTreeMap, BTreeSet};

use model::{Check, Finding, Grade};
use record::{Deployed, PodSeen, Record, Trial};

use super::{first_few, trials};

/// Changes that are told; of more there are only so many.
const TOLD_MAX: usize = 2;
/// Pods that are named; of more there are only so many.
const NAMED_MAX: usize = 4;

/// What stood behind a Service at the begin of a trial, and at its end.
struct Seen<'a> {
    block: u32,
    /// Whether it is one whose figures count.
    counts: bool,
    begin: &'a [PodSeen],
    /// `None`: nobody could look.
    end: Option<&'a [PodSeen]>,
}

/// What changed at the pods of a variant.
#[derive(Default)]
struct Changes {
    /// While it was loaded, in trials that count.
    within: Vec<String>,
    /// Between trials, or in those that do not count.
    between: Vec<String>,
    /// Trials at whose end nobody could look.
    unseen: usize,
}

/// A finding for each variant behind whose Service pods changed.
pub(super) fn pods_changed(record: &Record) -> Vec<Finding> {
    let variants = record.header.plan.variants.iter().enumerate();
    variants.filter_map(|(index, variant)| changed(record, index, &variant.name)).collect()
}

fn changed(record: &Record, index: usize, name: &str) -> Option<Finding> {
    let seen = seen(record, index);
    let place = &deployed(record, index).next()?.place;
    let changes = Changes::of(&seen);
    let finding = |grade, evidence: String, remedy: &'static str| {
        Finding::new(Check::PodsChanged, grade, format!("{name}: {evidence}"), remedy).about([index])
    };
    let also = match changes.between.len() {
        0 => String::new(),
        1 => "; and once between trials".to_owned(),
        many => format!("; and {many} times between trials"),
    };
    if !changes.within.is_empty() {
        return Some(finding(
            Grade::Void,
            format!(
                "the pods behind {place} changed while it was loaded: {}; so it went in {} of {} trials{also}",
                first_few(&changes.within, TOLD_MAX),
                changes.within.len(),
                seen.iter().filter(|seen| seen.counts).count()
            ),
            "what answered was not the same from begin to end, so its figures are those of nothing in particular; see why (kubectl describe \
             pod), let rollouts come to an end, keep the number of pods fixed while you measure (an autoscaler's minimum and maximum \
             alike), and run again",
        ));
    }
    if !changes.between.is_empty() {
        return Some(finding(
            Grade::Warning,
            format!(
                "the pods behind {place} changed between trials: {}",
                first_few(&changes.between, TOLD_MAX)
            ),
            "blocks before that and after it are of other processes: where those are the same program the interval has it in it, and where \
             they are not the figure is a mixture of two; look at what was deployed, and run again while nobody does",
        ));
    }
    (changes.unseen > 0).then(|| {
        finding(
            Grade::Warning,
            format!(
                "at the end of {} of {} trials nobody could look at the pods behind {place}",
                changes.unseen,
                seen.len()
            ),
            "the API server did not answer then; whether a pod ended or came meanwhile is seen only as far as it was still so at the next \
             trial's begin",
        )
    })
}

/// All looks at what a variant loads, in their order.
fn seen(record: &Record, index: usize) -> Vec<Seen<'_>> {
    let counting: BTreeSet<u32> = trials(record)
        .filter(|trial| trial.variant() == index && trial.measured().next().is_some())
        .map(|trial| trial.started.block)
        .collect();
    let all = record.blocks.iter().flat_map(|block| &block.trials).filter(|trial| trial.variant() == index);
    all.filter_map(|trial| Seen::of(trial, &counting)).collect()
}

impl<'a> Seen<'a> {
    fn of(trial: &'a Trial, counting: &BTreeSet<u32>) -> Option<Seen<'a>> {
        let Trial { started, ended, .. } = trial;
        let begin = started.deployed.as_ref()?.pods.as_slice();
        // One that has no end yet was not looked at, and nothing is wrong with that.
        let end = ended.as_ref().map_or(Some(begin), |ended| ended.pods.as_deref());
        Some(Seen { block: started.block, counts: counting.contains(&started.block), begin, end })
    }
}

impl Changes {
    fn of(seen: &[Seen<'_>]) -> Changes {
        let mut changes = Changes::default();
        let mut before: Option<&Seen<'_>> = None;
        for trial in seen {
            if let Some(last) = before {
                let then = last.end.unwrap_or(last.begin);
                // A cluster tells of a restart seconds later: it is laid at the door of the load before.
                let found = difference(then, trial.begin);
                let restarted = !restarts(then, trial.begin).is_empty();
                let said = found.map(|what| format!("before block {} {what}", trial.block));
                if restarted && last.counts {
                    changes.within.extend(said)
                } else {
                    changes.between.extend(said)
                }
            }
            let found = trial.end.and_then(|end| difference(trial.begin, end));
            let said = found.map(|what| format!("in block {} {what}", trial.block));
            if trial.counts {
                changes.within.extend(said)
            } else {
                changes.between.extend(said)
            }
            changes.unseen += usize::from(trial.end.is_none());
            before = Some(trial);
        }
        changes
    }
}

/// What differs between two looks, in words; `None` where nothing does. Pods that got no requests at either are nobody's business.
fn difference(before: &[PodSeen], after: &[PodSeen]) -> Option<String> {
    let by_identity = |pods: &'_ [PodSeen]| -> BTreeMap<String, PodSeen> {
        pods.iter().map(|pod| (identity(pod).to_owned(), pod.clone())).collect()
    };
    let (then, now) = (by_identity(before), by_identity(after));
    let named = |pods: Vec<&PodSeen>| -> Option<String> {
        (!pods.is_empty()).then(|| names(pods.iter().map(|pod| pod.name.as_str())))
    };
    let gone = named(
        then.iter().filter(|(id, pod)| pod.ready && !now.contains_key(*id)).map(|(_, pod)| pod).collect(),
    );
    let come = named(
        now.iter().filter(|(id, pod)| pod.ready && !then.contains_key(*id)).map(|(_, pod)| pod).collect(),
    );
    let both = || then.iter().filter_map(|(id, pod)| Some((pod, now.get(id)?)));
    let unready = named(both().filter(|(then, now)| then.ready && !now.ready).map(|(_, now)| now).collect());
    let ready = named(both().filter(|(then, now)| !then.ready && now.ready).map(|(_, now)| now).collect());
    let restarted = restarts(before, after);
    let restarted = (!restarted.is_empty()).then(|| names(restarted.into_iter()));
    let parts = [
        gone.map(|names| format!("{names} went")),
        come.map(|names| format!("{names} came")),
        restarted.map(|names| format!("{names} was started again")),
        unready.map(|names| format!("{names} was not ready any more")),
        ready.map(|names| format!("{names} became ready")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What tells a pod from others; a mere address has nothing else.
fn identity(pod: &PodSeen) -> &str {
    if pod.uid.is_empty() { &pod.name } else { &pod.uid }
}

/// Names of pods that are the same and were started again.
fn restarts<'a>(before: &[PodSeen], after: &'a [PodSeen]) -> Vec<&'a str> {
    let more = |pod: &&PodSeen| {
        let same = before.iter().find(|then| identity(then) == identity(pod));
        let loaded = same.filter(|then| then.ready || pod.ready);
        loaded.and_then(|then| then.restarts.zip(pod.restarts)).is_some_and(|(then, now)| now > then)
    };
    after.iter().filter(more).map(|pod| pod.name.as_str()).collect()
}

fn names<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(NAMED_MAX);
    let rest = (more > 0).then(|| format!("{more} more"));
    let named: Vec<String> = names.take(NAMED_MAX).map(str::to_owned).chain(rest).collect();
    named.join(", ")
}

/// What a variant loaded, trial by trial, where that was not started.
fn deployed(record: &Record, index: usize) -> impl Iterator<Item = &Deployed> {
    let trials = record.blocks.iter().flat_map(|block| &block.trials);
    let trials = trials.filter(move |trial| trial.variant() == index);
    trials.filter_map(|trial| trial.started.deployed.as_ref())
}

/// What ran before and goes on running is not what a fresh process is.
pub(super) fn already_running(record: &Record) -> Vec<Finding> {
    let plan = &record.header.plan;
    let mut places: Vec<String> = Vec::new();
    let mut variants = Vec::new();
    for index in 0..plan.variants.len() {
        let Some(one) = deployed(record, index).next() else { continue };
        variants.push(index);
        let told = format!("{} ({})", one.place, pods_in_words(&one.pods));
        if !places.contains(&told) {
            places.push(told);
        }
    }
    if places.is_empty() {
        return vec![];
    }
    let evidence = format!(
        "{} {} not started by Proofload, but ran already",
        places.join(" and "),
        if places.len() == 1 { "was" } else { "were" }
    );
    let remedy = "what its processes carried from trial to trial (memory, caches, compiled code) is in every figure, and other users' requests \
                  may be; intervals tell how figures vary in time, not how they would with other processes of the same program. CPU time \
                  and memory are not known, nor whether it was at its limit";
    vec![Finding::note(Check::AlreadyRunning, evidence, remedy).about(variants)]
}

/// `3 pods on n1, n2`.
fn pods_in_words(pods: &[PodSeen]) -> String {
    let ready: Vec<&PodSeen> = pods.iter().filter(|pod| pod.ready).collect();
    let nodes: BTreeSet<&str> = ready.iter().filter_map(|pod| pod.node.as_deref()).collect();
    let on = if nodes.is_empty() { String::new() } else { format!(" on {}", names(nodes.into_iter())) };
    format!("{} pod{}{on}", ready.len(), if ready.len() == 1 { "" } else { "s" })
}

/// Two Services behind which the same pods stand are one service with two names.
pub(super) fn same_pods(record: &Record) -> Vec<Finding> {
    let plan = &record.header.plan;
    let check = |comparison: &plan::Comparison| {
        let (one, other) =
            (deployed(record, comparison.baseline).next()?, deployed(record, comparison.candidate).next()?);
        let (first, second) =
            (plan.variants.get(comparison.baseline)?, plan.variants.get(comparison.candidate)?);
        // Who loads one Service in two ways knows that it is one.
        if one.place == other.place && one.address == other.address || first.load != second.load {
            return None;
        }
        let is_there =
            |pod: &&PodSeen| one.pods.iter().any(|same| same.ready && identity(same) == identity(pod));
        let ready = || other.pods.iter().filter(|pod| pod.ready);
        let (shared, all) = (ready().filter(is_there).count(), ready().count());
        if shared == 0 {
            return None;
        }
        let label = &comparison.label;
        let finding = Finding::warning(
            Check::NothingObservable,
            format!(
                "{label}: {shared} of the {all} pods behind {} stand behind {}, too",
                other.place, one.place
            ),
            "requests to both go to the same processes; see whether one selector says too little (kubectl get services --output wide)",
        );
        Some(finding.about([comparison.baseline, comparison.candidate]))
    };
    plan.comparisons.iter().filter_map(check).collect()
}
