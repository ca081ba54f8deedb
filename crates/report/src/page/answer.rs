//! The answer in one sentence, for somebody who reads nothing else: what the verdicts say, in words that need no glossary.
//!
//! Must not: say more than the verdicts do. What is void has no number, what is open is called open, and a run that did not end well
//! says so first.

use analysis::{Conclusion, Finding, Grade, Outcome, Variant};
use record::{EndReason, Record};

use super::clause::{Clause, clause};
use super::model::State;
use crate::figure::{count, micros, rate};
use crate::sheet::Sheet;

/// Verdicts that are told one by one; of more only how many there are of a kind, and the greatest difference.
const TOLD_MAX: usize = 2;
/// Variants that are told one by one where nothing is compared.
const MEASURED_MAX: usize = 3;
/// Characters of a text from outside.
const TEXT_MAX: usize = 300;

/// How the run stands.
pub(super) fn state(record: &Record, conclusion: &Conclusion) -> State {
    let is = |outcome| conclusion.comparisons.iter().any(|comparison| comparison.outcome == outcome);
    let broken = match record.ended.as_ref().map(|ended| &ended.reason) {
        None => true,
        Some(reason) => failed(reason).is_some(),
    };
    match () {
        () if broken => State::Broken,
        () if is(Outcome::Void) || (conclusion.comparisons.is_empty() && conclusion.is_void()) => State::Void,
        () if conclusion.comparisons.is_empty() => State::Measured,
        () if is(Outcome::Inconclusive) => State::Open,
        () => State::Decided,
    }
}

/// What failed, where the run ended because of it.
fn failed(reason: &EndReason) -> Option<String> {
    let (what, text) = match reason {
        EndReason::ServiceFailed(text) => ("a service failed", text),
        EndReason::PreparationFailed(text) => ("data that services need could not be made", text),
        EndReason::GeneratorFailed(text) => ("the load generator failed", text),
        EndReason::Decided
        | EndReason::LastLook
        | EndReason::BudgetSpent
        | EndReason::BudgetTooSmall { .. }
        | EndReason::Measured
        | EndReason::Interrupted
        | EndReason::Void(_) => return None,
    };
    Some(format!("{what}: {}", in_one_line(text)))
}

fn in_one_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// The sentence, without a full stop.
pub(super) fn sentence(record: &Record, conclusion: &Conclusion, sheet: &Sheet) -> String {
    let clauses = super::verdict::judged(conclusion, sheet)
        .map(|(comparison, judged)| clause(&record.header.plan, comparison, judged))
        .collect::<Vec<Clause>>();
    let so_far = || up_to_then(conclusion, &clauses);
    let ended = record.ended.as_ref().map(|ended| &ended.reason);
    // A name keeps its own first letter.
    let (text, begins_with_name) = match (state(record, conclusion), ended) {
        (State::Broken, Some(reason)) => {
            (format!("{}; {}", failed(reason).unwrap_or_default(), so_far()), false)
        }
        (State::Broken, None) => (
            format!("the run did not end by itself: it was killed, or is still going on; {}", so_far()),
            false,
        ),
        (State::Void, _) if clauses.iter().all(|clause| clause.outcome == Outcome::Void) => {
            (void(conclusion), false)
        }
        (State::Measured, _) => measured(conclusion),
        _ => (
            told(&clauses),
            clauses.len() <= TOLD_MAX && clauses.first().is_some_and(|one| one.begins_with_name),
        ),
    };
    if begins_with_name { text } else { capitalised(&text) }
}

fn capitalised(sentence: &str) -> String {
    let mut rest = sentence.chars();
    let first = rest.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    first + rest.as_str()
}

/// What had an answer when the run broke off.
fn up_to_then(conclusion: &Conclusion, clauses: &[Clause]) -> String {
    let blocks = conclusion.blocks;
    let plural = if blocks == 1 { "" } else { "s" };
    let open = |clause: &&Clause| matches!(clause.outcome, Outcome::Inconclusive | Outcome::Void);
    let answered: Vec<Clause> = clauses.iter().filter(|clause| !open(clause)).cloned().collect();
    match (blocks, answered.is_empty()) {
        (0, true) => "nothing had been measured".to_owned(),
        (0, false) => format!("up to then: {}", told(&answered)),
        (_, true) => format!("there was no answer from {blocks} block{plural}"),
        (_, false) => format!("from {blocks} block{plural} up to then: {}", told(&answered)),
    }
}

/// All verdicts one by one, or how many there are of a kind and the greatest difference.
fn told(clauses: &[Clause]) -> String {
    if clauses.len() <= TOLD_MAX {
        return clauses.iter().map(|clause| clause.text.as_str()).collect::<Vec<_>>().join("; ");
    }
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for clause in clauses {
        match kinds.iter_mut().find(|(word, _)| *word == clause.word) {
            Some((_, number)) => *number += 1,
            None => kinds.push((&clause.word, 1)),
        }
    }
    let kinds: Vec<String> = kinds.iter().map(|(word, number)| format!("{number} {word}")).collect();
    let greatest = clauses.iter().filter(|clause| clause.of_first_metric && clause.distance > 0.0);
    let greatest = greatest.max_by(|one, other| one.distance.total_cmp(&other.distance));
    let greatest = greatest.map(|clause| format!("; the greatest difference: {}", clause.text));
    format!("of {} verdicts: {}{}", clauses.len(), kinds.join(", "), greatest.unwrap_or_default())
}

fn void(conclusion: &Conclusion) -> String {
    let gravest = conclusion.findings.iter().find(|finding| finding.grade == Grade::Void);
    let told = |finding: &Finding| {
        let number = finding.check.number();
        format!(": {} ({number})", in_one_line(finding.evidence.as_str()))
    };
    format!("no conclusion may be drawn{}", gravest.map(told).unwrap_or_default())
}

/// What was seen where nothing is compared, and whether that begins with a name.
fn measured(conclusion: &Conclusion) -> (String, bool) {
    let variants = &conclusion.variants;
    if conclusion.blocks == 0 {
        return ("nothing was measured".to_owned(), false);
    }
    if variants.len() > MEASURED_MAX {
        let number = count(variants.len() as u64);
        return (format!("{number} variants were measured, and nothing is compared"), false);
    }
    let alone = variants.len() == 1;
    let of_one = |variant: &Variant| {
        let name = if alone { String::new() } else { format!("{}: ", variant.name) };
        format!("{name}{}", figures(variant))
    };
    let told: Vec<String> = variants.iter().map(of_one).collect();
    (format!("{}; nothing is compared", told.join("; ")), !alone)
}

fn figures(variant: &Variant) -> String {
    if let Some(without) = &variant.no_success {
        return without.answer.clone();
    }
    let good = |per_s: f64| format!("{} good responses a second", rate(per_s).trim_end_matches("/s"));
    let times = variant.response_time.iter().map(|found| {
        let least = if found.at_least { "at least " } else { "" };
        format!("{} {least}{}", found.metric.name(), micros(found.us))
    });
    let cpu = variant.cpu_us_per_request.map(|us| format!("{} of CPU time for each", micros(us)));
    let parts: Vec<String> = variant.throughput_per_s.map(good).into_iter().chain(times).chain(cpu).collect();
    if parts.is_empty() { "no figures".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests;
