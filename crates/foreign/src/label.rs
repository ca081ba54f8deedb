//! Labels of runs: as many of their headings as needed to distinguish them. Indistinguishable runs are
//! repeats of one another, and share a label.

use std::collections::{HashMap, HashSet};

use indexmap::IndexSet;
use model::quantity::{many, rate, span};
use model::text::cut_start;

use crate::run::{ToolLoad, ToolRun, parts};
use crate::tools::Meaning;
use crate::words;

/// A multiple of this was asked for, and did not come about.
const ROUND: u64 = 100;
/// Longer labels are truncated.
const LABEL_CHARS_MAX: usize = 80;

/// The identity of a run, equal for repeats: the headings and the settings of the tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Identity {
    path: Vec<String>,
    settings: Vec<String>,
}

/// Assigns a label to every run.
pub fn give(runs: &mut [ToolRun], several_files: bool) {
    let identities: Vec<Identity> = runs
        .iter()
        .map(|run| Identity::of(run, several_files))
        .collect();
    let distinct: IndexSet<&Identity> = identities.iter().collect();
    let labels = labels(&distinct.iter().copied().collect::<Vec<_>>());
    for (run, identity) in runs.iter_mut().zip(&identities) {
        if let Some(label) = distinct.get_index_of(identity).map(|at| &labels[at]) {
            run.label = text(label);
            run.path.clone_from(label);
        }
    }
}

impl Identity {
    fn of(run: &ToolRun, several_files: bool) -> Self {
        // Files and their folders are the outermost level.
        let file = run
            .file
            .split(['/', '\\'])
            .filter(|_| several_files)
            .map(words::file_stem);
        let headings = run
            .headings
            .iter()
            .map(|heading| words::without_repeat(heading));
        let mut path: Vec<String> = file
            .chain(headings)
            .filter(|part| !part.is_empty())
            .collect();
        if path.last().is_none_or(|last| last.starts_with("cd ")) {
            path.push(run.tool.name().to_owned());
        }
        // Every field is named, so that none is forgotten.
        let ToolLoad {
            connections,
            threads,
            duration_s,
            requests,
            rate_per_s,
            keep_alive,
            pipelining,
            accept_encoding,
            timeout_s,
        } = &run.load;
        let count = |value: &Option<u64>, noun: &str| value.map(|value| many(value, noun));
        // Distinguishing settings, most significant first.
        let settings = [
            run.url.as_deref().map(short_url),
            count(connections, "connection"),
            // As requested, or vegeta's achieved rate, which differs in the fourth digit between runs.
            rate_per_s.map(rate),
            accept_encoding
                .clone()
                .map(|coding| format!("Accept-Encoding: {coding}")),
            pipelining
                .filter(|depth| *depth > 1)
                .map(|depth| format!("pipelining {depth}")),
            Some(run.tool.name().to_owned()),
            count(threads, "thread"),
            keep_alive.map(|keep| if keep { "keep-alive" } else { "no keep-alive" }.to_owned()),
            duration_s.map(span),
            count(&requests.or(fixed_requests(run)), "request"),
            run.prompt.clone(),
            Some(run.near.clone()),
            timeout_s.map(|limit| format!("limit {}", span(limit))),
            run.command.clone(),
            run.turn.map(|turn| format!("turn {turn}")),
        ];
        Self {
            path,
            settings: settings
                .into_iter()
                .map(Option::unwrap_or_default)
                .collect(),
        }
    }

    /// The innermost headings, at most `depth`.
    fn named(&self, depth: usize) -> &[String] {
        &self.path[self.path.len().saturating_sub(depth)..]
    }
}

/// The number of requests that was probably asked for, of a tool that takes one: a round one.
fn fixed_requests(run: &ToolRun) -> Option<u64> {
    let takes = |(_, meaning): &(&[&str], Meaning)| *meaning == Meaning::Requests;
    let takes_number = run.tool.row().flags.iter().any(takes);
    let round = |requests: &u64| *requests > 0 && requests.is_multiple_of(ROUND);
    run.requests
        .filter(|requests| takes_number && !run.rounded && round(requests))
}

/// A distinct label for each identity: the headings, followed by settings that distinguish it from others
/// with the same.
fn labels(identities: &[&Identity]) -> Vec<Vec<String>> {
    let depth_max = identities
        .iter()
        .map(|one| one.path.len())
        .max()
        .unwrap_or(1);
    // The minimum number of headings that distinguishes the most identities.
    let distinct = |depth: usize| {
        identities
            .iter()
            .map(|one| one.named(depth))
            .collect::<HashSet<_>>()
            .len()
    };
    let most = distinct(depth_max);
    let depth = (1..=depth_max)
        .find(|depth| distinct(*depth) == most)
        .unwrap_or(depth_max);
    let mut labels: Vec<Vec<String>> = identities
        .iter()
        .map(|one| one.named(depth).to_vec())
        .collect();
    tell_apart_by_settings(identities, &mut labels);
    number_those_alike(&mut labels);
    labels
}

/// Position of the short line before a run among the settings of an identity.
const NEAR: usize = 11;

/// Appends differing settings to equal labels. Short lines come first if each run has one, because they
/// are names.
fn tell_apart_by_settings(identities: &[&Identity], labels: &mut [Vec<String>]) {
    let mut alike: HashMap<Vec<String>, Vec<usize>> = HashMap::new();
    for (index, label) in labels.iter().enumerate() {
        alike.entry(label.clone()).or_default().push(index);
    }
    for indices in alike.into_values().filter(|indices| indices.len() > 1) {
        let all = 0..identities[indices[0]].settings.len();
        let is_named = |index: &usize| !identities[*index].settings[NEAR].is_empty();
        let named = indices.iter().all(is_named);
        let first = named.then_some(NEAR).into_iter();
        for place in first.chain(all.filter(|place| !named || *place != NEAR)) {
            let value = |index: &usize| &identities[*index].settings[place];
            if indices.iter().map(value).collect::<HashSet<_>>().len() < 2 {
                continue;
            }
            for index in indices.iter().filter(|index| !value(index).is_empty()) {
                labels[*index].push(value(index).clone());
            }
            let apart = indices
                .iter()
                .map(|index| &labels[*index])
                .collect::<HashSet<_>>();
            if apart.len() == indices.len() {
                break;
            }
        }
    }
}

/// Numbers labels that are still equal within the maximum length.
fn number_those_alike(labels: &mut [Vec<String>]) {
    let mut taken: HashSet<String> = HashSet::new();
    let mut next: HashMap<String, usize> = HashMap::new();
    for label in labels {
        while !taken.insert(text(label)) {
            let number = next.entry(text(label)).or_insert(1);
            *number += 1;
            if let Some(last) = label.last_mut() {
                *last += &format!(" ({number})");
            }
        }
    }
}

/// A label as text. The end is more significant than the beginning.
fn text(label: &[String]) -> String {
    cut_start(&label.join(" · "), LABEL_CHARS_MAX)
}

fn short_url(url: &str) -> String {
    let (host, path) = parts(url);
    if path == "/" {
        host.to_owned()
    } else {
        format!("{host}{path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Tool;

    #[test]
    fn runs_of_other_lengths_are_no_repeats() {
        let of = |requests| {
            let load = ToolLoad {
                requests: Some(requests),
                ..ToolLoad::default()
            };
            Identity::of(
                &ToolRun {
                    load,
                    ..ToolRun::new(Tool::Autocannon)
                },
                false,
            )
        };
        assert_eq!(of(1000), of(1000));
        assert_ne!(of(1000), of(9000));
    }
}
