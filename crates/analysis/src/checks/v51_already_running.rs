//! A service that was not started
//!
//! **Seen.** `kubernetes://prod/shop (3 pods on n1, n2) was not started by Proofload, but ran already`.
//!
//! **Why.** All blocks share its processes, and perhaps other users' requests. The interval does not cover
//! differences between processes.
//!
//! **What to do.** For fresh processes, use `command`.
//!
//! **Threshold.** None.

use std::collections::BTreeSet;

use model::quantity::many;
use record::{DeployedSeen, PodSeen};

use super::finding::CheckFinding;
use super::input::{CheckedRun, CheckedVariant};
use super::pods::{NAMED_MAX, deployed};
use super::row::{CheckRow, Maker, NOTE, OFF, Subject, row};
use crate::few;
use crate::usage::is_unseen;

pub(super) static ROW: CheckRow =
    row(Subject::Service, NOTE, &[Maker::Whole(already_running)]).alone(OFF);

/// Reports services that were already running, because a running process differs from a fresh one.
fn already_running(run: &CheckedRun<'_>) -> Option<CheckFinding> {
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
