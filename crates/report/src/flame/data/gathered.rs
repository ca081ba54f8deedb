//! From an explanation, or from trees by themselves, to forests with all that belongs to them.
//!
//! It must not leave out or shorten anything.

use explain::{Explanation, Subject, Tree};

use super::{Contents, Grove, Member, lines_of};
use crate::flame::forest::Forest;

/// The measure that people read first.
const CPU: &str = "CPU time";
const HEAP: &str = "memory";

pub(super) fn of_explanation(explanation: &Explanation) -> Contents<'_> {
    let variants = distinct(explanation.subjects.iter().map(|subject| subject.variant.as_str()));
    let services = distinct(explanation.subjects.iter().map(|subject| subject.service.as_str()));
    let per_request = explanation.subjects.iter().any(|subject| subject.requests > 0);
    let (time, bytes) = if per_request { ("µs/request", "B/request") } else { ("ms", "B") };
    let mut groves = Vec::new();
    for service in services {
        let subjects: Vec<&Subject> =
            explanation.subjects.iter().filter(|subject| subject.service == service).collect();
        let cpu = subjects.iter().map(|subject| (*subject, &subject.tree)).collect();
        groves.push(grove(&variants, service, (CPU, time), cpu));
        let heap: Vec<(&Subject, &Tree)> =
            subjects.iter().filter_map(|subject| Some((*subject, subject.heap.as_ref()?))).collect();
        if !heap.is_empty() {
            groves.push(grove(&variants, service, (HEAP, bytes), heap));
        }
    }
    Contents { unit: time.into(), variants, groves, explanation: Some(explanation) }
}

fn grove<'a>(
    variants: &[&str],
    service: &'a str,
    (measure, unit): (&'static str, &str),
    trees: Vec<(&'a Subject, &'a Tree)>,
) -> Grove<'a> {
    let number = |name: &str| variants.iter().position(|variant| *variant == name).unwrap_or_default();
    let members = trees.iter().map(|(subject, tree)| Member {
        variant: number(&subject.variant),
        requests: subject.requests,
        cpu: (measure == CPU).then_some(subject.cpu_us),
        lines: lines_of(tree),
    });
    let members = members.collect();
    let trees: Vec<&Tree> = trees.into_iter().map(|(_, tree)| tree).collect();
    Grove { service, measure, unit: unit.into(), members, forest: Forest::of(&trees) }
}

pub(super) fn of_trees<'a>(trees: &[(&'a str, &'a Tree)], unit: &str) -> Contents<'a> {
    let members = trees.iter().enumerate().map(|(variant, (_, tree))| Member {
        variant,
        requests: 0,
        cpu: None,
        lines: lines_of(tree),
    });
    let forest = Forest::of(&trees.iter().map(|(_, tree)| *tree).collect::<Vec<_>>());
    let grove = Grove { service: "", measure: CPU, unit: unit.into(), members: members.collect(), forest };
    let variants = trees.iter().map(|(name, _)| *name).collect();
    Contents { unit: unit.into(), variants, groves: vec![grove], explanation: None }
}

/// Each name once, in the order in which they first come.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut out = Vec::new();
    for name in names {
        if !out.contains(&name) {
            out.push(name);
        }
    }
    out
}
