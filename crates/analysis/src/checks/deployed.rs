//! Services that were loaded and not started: whether the same pods stood behind them all along, and what cannot be said of them.
//!
//! What is seen of pods belongs to a variant, and a load may bring it about: so a change never drops a block, it voids what was measured.

use std::collections::BTreeSet;

use model::quantity::many;
use record::{Deployed, PodSeen, Trial};

use super::{Run, Seen, Variant, first_few, void, warning};

/// Changes that are told; of more there are only so many.
const TOLD_MAX: usize = 2;
/// Pods that are named; of more there are only so many.
const NAMED_MAX: usize = 4;

/// What stood behind a Service at the begin of a trial, and at its end.
struct Look<'a> {
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

/// Pods that changed behind the Service of a variant.
pub(super) fn pods_changed(_: &Run<'_>, variant: &Variant<'_>) -> Option<Seen> {
    let looks = looks(variant);
    let place = &deployed(variant).next()?.place;
    let Changes { within, between, unseen } = Changes::of(&looks);
    let also = match between.len() {
        0 => String::new(),
        1 => "; and once between trials".to_owned(),
        many => format!("; and {many} times between trials"),
    };
    if !within.is_empty() {
        let (told, hit) = (first_few(&within, TOLD_MAX), within.len());
        let of = looks.iter().filter(|look| look.counts).count();
        return Some(void(
            format!(
                "the pods behind {place} changed while it was loaded: {told}; so it went in {hit} of {of} trials{also}"
            ),
            "what answered was not the same from begin to end, so its figures are those of nothing in particular; see why (kubectl describe \
             pod), let rollouts come to an end, keep the number of pods fixed while you measure (an autoscaler's minimum and maximum \
             alike), and run again",
        ));
    }
    if !between.is_empty() {
        return Some(warning(
            format!("the pods behind {place} changed between trials: {}", first_few(&between, TOLD_MAX)),
            "later blocks measured other pods. If the program is the same, the interval includes the difference; otherwise the figure mixes \
             two programs. Check the deployment and run again",
        ));
    }
    let evidence = format!(
        "the pods behind {place} could not be listed at the end of {unseen} of {} trials",
        looks.len()
    );
    let remedy = "the API server did not answer. A pod that came or went is seen only if that still showed when the next trial began";
    (unseen > 0).then(|| warning(evidence, remedy))
}

/// All looks at what a variant loads, in their order.
fn looks<'a>(variant: &Variant<'a>) -> Vec<Look<'a>> {
    let counting = variant.trials.iter().filter(|trial| trial.measured().next().is_some());
    let counting: BTreeSet<u32> = counting.map(|trial| trial.started.block).collect();
    variant.all_trials.iter().filter_map(|trial| Look::of(trial, &counting)).collect()
}

impl<'a> Look<'a> {
    fn of(trial: &'a Trial, counting: &BTreeSet<u32>) -> Option<Look<'a>> {
        let Trial { started, ended, .. } = trial;
        let begin = started.deployed.as_ref()?.pods.as_slice();
        // One that has no end yet was not looked at, and nothing is wrong with that.
        let end = ended.as_ref().map_or(Some(begin), |ended| ended.pods.as_deref());
        Some(Look { block: started.block, counts: counting.contains(&started.block), begin, end })
    }
}

impl Changes {
    fn of(seen: &[Look<'_>]) -> Changes {
        let mut changes = Changes::default();
        let mut before: Option<&Look<'_>> = None;
        for trial in seen {
            if let Some(last) = before {
                let then = last.end.unwrap_or(last.begin);
                // A cluster tells of a restart seconds later: it is laid at the door of the load before.
                let found = difference(then, trial.begin);
                let restarted = !restarts(then, trial.begin).is_empty();
                let said = found.map(|what| format!("before block {} {what}", trial.block));
                changes.told(restarted && last.counts).extend(said);
            }
            let found = trial.end.and_then(|end| difference(trial.begin, end));
            let said = found.map(|what| format!("in block {} {what}", trial.block));
            changes.told(trial.counts).extend(said);
            changes.unseen += usize::from(trial.end.is_none());
            before = Some(trial);
        }
        changes
    }

    fn told(&mut self, under_load: bool) -> &mut Vec<String> {
        if under_load { &mut self.within } else { &mut self.between }
    }
}

/// What differs between two looks, in words; `None` where nothing does. Pods that got no requests at either are nobody's business.
fn difference(before: &[PodSeen], after: &[PodSeen]) -> Option<String> {
    let gone = before.iter().filter(|pod| pod.ready && same(after, pod).is_none());
    let come = after.iter().filter(|pod| pod.ready && same(before, pod).is_none());
    let turned = |ready: bool| {
        let was_other = move |pod: &&PodSeen| same(before, pod).is_some_and(|then| then.ready != ready);
        after.iter().filter(move |pod| pod.ready == ready).filter(was_other)
    };
    let parts: [(Vec<&PodSeen>, &str); 5] = [
        (gone.collect(), "went"),
        (come.collect(), "came"),
        (restarts(before, after), "was started again"),
        (turned(false).collect(), "was not ready any more"),
        (turned(true).collect(), "became ready"),
    ];
    let told = parts.iter().filter(|(pods, _)| !pods.is_empty());
    let told = told.map(|(pods, what)| format!("{} {what}", names(pods.iter().map(|pod| pod.name.as_str()))));
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// The same pod at another time.
fn same<'a>(pods: &'a [PodSeen], pod: &PodSeen) -> Option<&'a PodSeen> {
    pods.iter().find(|other| identity(other) == identity(pod))
}

/// What tells a pod from others; a mere address has nothing else.
fn identity(pod: &PodSeen) -> &str {
    if pod.uid.is_empty() { &pod.name } else { &pod.uid }
}

/// Pods that are the same and were started again.
fn restarts<'a>(before: &[PodSeen], after: &'a [PodSeen]) -> Vec<&'a PodSeen> {
    let more = |pod: &&PodSeen| {
        let loaded = same(before, pod).filter(|then| then.ready || pod.ready);
        loaded.and_then(|then| then.restarts.zip(pod.restarts)).is_some_and(|(then, now)| now > then)
    };
    after.iter().filter(more).collect()
}

fn names<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(NAMED_MAX);
    let rest = (more > 0).then(|| format!("{more} more"));
    let named: Vec<String> = names.take(NAMED_MAX).map(str::to_owned).chain(rest).collect();
    named.join(", ")
}

/// What a variant loaded, trial by trial, where that was not started.
fn deployed<'a>(variant: &Variant<'a>) -> impl Iterator<Item = &'a Deployed> {
    variant.all_trials.clone().into_iter().filter_map(|trial| trial.started.deployed.as_ref())
}

/// What ran before and goes on running is not what a fresh process is.
pub(super) fn already_running(run: &Run<'_>) -> Option<Seen> {
    let first = |variant: &Variant<'_>| Some((variant.index, deployed(variant).next()?.clone()));
    let (about, all): (Vec<usize>, Vec<Deployed>) = run.variants.iter().filter_map(first).unzip();
    let place = |one: &Deployed| {
        let behind = if one.pods.is_empty() { one.address.clone() } else { pods_in_words(&one.pods) };
        format!("{} ({behind})", one.place)
    };
    let places = model::distinct(all.iter().map(place));
    let were = if places.len() == 1 { "was" } else { "were" };
    let evidence = format!("{} {were} not started by Proofload, but ran already", places.join(" and "));
    let is_unseen = |of: &Variant<'_>| {
        super::is_unseen(of.plan, of.all_trials.iter().copied()) && about.contains(&of.index)
    };
    let unseen = run.variants.iter().any(is_unseen);
    let why = all.iter().find_map(|one| one.unseen.as_ref());
    let known = match unseen {
        false => "CPU time and memory are those of the processes that listen there, with all that they start"
            .to_owned(),
        true => {
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            format!("CPU time and memory are not known, nor whether it was at its limit{why}")
        }
    };
    let remedy = format!(
        "what its processes carried from trial to trial (memory, caches, compiled code) is in every figure, and other users' requests may \
         be; intervals tell how figures vary in time, not how they would with other processes of the same program. {known}"
    );
    (!about.is_empty()).then(|| Seen::note((), evidence, remedy).about(about))
}

/// `3 pods on n1, n2`.
fn pods_in_words(pods: &[PodSeen]) -> String {
    let ready: Vec<&PodSeen> = pods.iter().filter(|pod| pod.ready).collect();
    let nodes: BTreeSet<&str> = ready.iter().filter_map(|pod| pod.node.as_deref()).collect();
    let on = if nodes.is_empty() { String::new() } else { format!(" on {}", names(nodes.into_iter())) };
    format!("{}{on}", many(ready.len() as u64, "pod"))
}

/// Two Services behind which the same pods stand are one service with two names.
pub(super) fn same_pods(baseline: &Variant<'_>, candidate: &Variant<'_>) -> Option<Seen> {
    let (one, other) = (deployed(baseline).next()?, deployed(candidate).next()?);
    // Who loads one Service in two ways knows that it is one.
    let known = one.place == other.place && one.address == other.address;
    let is_there = |pod: &&PodSeen| same(&one.pods, pod).is_some_and(|same| same.ready);
    let ready = || other.pods.iter().filter(|pod| pod.ready);
    let (shared, all) = (ready().filter(is_there).count(), ready().count());
    let evidence =
        format!("{shared} of the {all} pods behind {} stand behind {}, too", other.place, one.place);
    let remedy = "requests to both go to the same processes; see whether one selector says too little (kubectl get services --output wide)";
    let told = shared > 0 && !known && baseline.plan.load == candidate.plan.load;
    told.then(|| warning(evidence, remedy))
}
