//! The answer in one sentence for readers of nothing else: the verdicts in words that need no glossary.
//!
//! It must not claim more than the verdicts, or round differently from the other forms. Invalid results have
//! no number, inconclusive ones are called so, and a failed run is reported first.

use analysis::{
    ComparisonResult, Conclusion, Effect, EffectKind, Grade, MeasuredWindow, Measurement, Outcome,
    VariantFigures,
};
use model::quantity::{NONE, Quantity, change, count, many, rate, share};
use model::text::{capitalised, cut};
use plan::{Factor, Plan};
use record::{EndReason, Record};
use schemars::JsonSchema;
use serde::Serialize;

use super::{answer, capacity, distance};

/// Maximum number of verdicts that are listed. Beyond it only counts by kind, and the largest difference.
const TOLD_MAX: usize = 2;
/// Maximum number of effects and interactions that are listed.
const EFFECTS_TOLD_MAX: usize = 4;
/// Maximum number of variants that are listed if nothing is compared.
const MEASURED_MAX: usize = 3;
/// Maximum number of steps of a ladder of rates that are listed.
const STEPS_TOLD_MAX: usize = 4;
/// Maximum number of characters of external text.
const TEXT_MAX: usize = 300;

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Every comparison has a verdict.
    Decided,
    /// Some have none yet.
    Open,
    /// A finding voids some or all.
    Invalid,
    /// Nothing is compared.
    Measured,
    /// A service or preparation failed, or the run was aborted.
    Broken,
}

/// A sentence or a part of one, and whether it begins with a name, whose first letter is not capitalized.
#[derive(Debug, Clone, PartialEq)]
struct HeadlineClause {
    text: String,
    begins_with_name: bool,
}

impl HeadlineClause {
    fn words(text: String) -> HeadlineClause {
        HeadlineClause {
            text,
            begins_with_name: false,
        }
    }

    fn name(text: String) -> HeadlineClause {
        HeadlineClause {
            text,
            begins_with_name: true,
        }
    }
}

/// State of the run.
pub(crate) fn state(record: &Record, conclusion: &Conclusion) -> RunState {
    let all = &conclusion.comparisons;
    let is = |outcome| all.iter().any(|comparison| comparison.outcome == outcome);
    match () {
        () if record.end().is_none_or(|reason| reason.failure().is_some()) => RunState::Broken,
        () if record.header.plan.measure.is_some()
            && record.end() == Some(&EndReason::Interrupted) =>
        {
            RunState::Broken
        }
        () if is(Outcome::Invalid) || all.is_empty() && conclusion.is_void() => RunState::Invalid,
        () if all.is_empty() => RunState::Measured,
        () if is(Outcome::Inconclusive) => RunState::Open,
        () => RunState::Decided,
    }
}

/// The failure that ended the run, if any.
fn failed(reason: &EndReason) -> Option<String> {
    let (part, what) = reason.failure()?;
    Some(format!("{}: {}", part.words, in_one_line(what)))
}

fn in_one_line(text: &str) -> String {
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    cut(line, TEXT_MAX)
}

/// The sentence, without a full stop.
pub(crate) fn headline(record: &Record, conclusion: &Conclusion) -> String {
    let plan = &record.header.plan;
    let told: Vec<&ComparisonResult> = answer::groups(conclusion).flat_map(answer::told).collect();
    let so_far = || up_to_then(plan, conclusion, &told);
    let leading = conclusion.leading_effects();
    let clause = match (state(record, conclusion), record.end()) {
        (RunState::Broken, Some(EndReason::Interrupted)) => {
            let HeadlineClause { text, .. } = measured(record, conclusion);
            HeadlineClause::words(format!("stopped early: {text}"))
        }
        (RunState::Broken, reason) => {
            let killed =
                || "the run did not end by itself: it was killed, or is still going on".to_owned();
            HeadlineClause::words(format!(
                "{}; {}",
                reason.and_then(failed).unwrap_or_else(killed),
                so_far()
            ))
        }
        (RunState::Invalid, _) if told.iter().all(|one| one.outcome == Outcome::Invalid) => {
            void(conclusion)
        }
        (RunState::Measured, _) => measured(record, conclusion),
        (RunState::Decided | RunState::Open, _) if !leading.is_empty() => {
            effects(plan, conclusion, &leading)
        }
        (RunState::Decided | RunState::Open | RunState::Invalid, _) => {
            sentence(plan, conclusion, &told)
        }
    };
    if clause.begins_with_name {
        clause.text
    } else {
        capitalised(&clause.text)
    }
}

/// Verdicts that were decided when the run was aborted.
fn up_to_then(plan: &Plan, conclusion: &Conclusion, told: &[&ComparisonResult]) -> String {
    let blocks = many(conclusion.blocks.into(), "block");
    let answered: Vec<&ComparisonResult> = told
        .iter()
        .copied()
        .filter(|one| one.outcome.is_decided())
        .collect();
    let answer = || sentence(plan, conclusion, &answered).text;
    match (conclusion.blocks, answered.is_empty()) {
        (0, true) => "nothing had been measured".to_owned(),
        (0, false) => format!("up to then: {}", answer()),
        (_, true) => format!("there was no answer from {blocks}"),
        (_, false) => format!("from {blocks} up to then: {}", answer()),
    }
}

/// All verdicts, or their counts by kind and the largest difference.
fn sentence(plan: &Plan, conclusion: &Conclusion, all: &[&ComparisonResult]) -> HeadlineClause {
    let one = |one: &&ComparisonResult| clause(plan, conclusion, one);
    if all.len() <= TOLD_MAX {
        let clauses: Vec<HeadlineClause> = all.iter().map(one).collect();
        let begins_with_name = clauses.first().is_some_and(|first| first.begins_with_name);
        let texts: Vec<String> = clauses.into_iter().map(|clause| clause.text).collect();
        return HeadlineClause {
            text: texts.join("; "),
            begins_with_name,
        };
    }
    let kinds = model::grouped(all.iter().map(|one| (answer::word_of(one), ())));
    let kinds: Vec<String> = kinds
        .iter()
        .map(|(word, ones)| format!("{} {word}", ones.len()))
        .collect();
    let differs = all
        .iter()
        .filter(|one| one.metric == plan.design.metric && one.outcome.differs());
    let distance = |one: &ComparisonResult| distance(one.estimate.as_ref());
    let greatest = differs.max_by(|one, other| distance(one).total_cmp(&distance(other)));
    let greatest = greatest.map(|of| format!("; the greatest difference: {}", one(of).text));
    HeadlineClause::words(format!(
        "{} verdicts: {}{}",
        all.len(),
        kinds.join(", "),
        greatest.unwrap_or_default()
    ))
}

/// The average effect of each factor over the others, and which two interact.
fn effects(plan: &Plan, conclusion: &Conclusion, leading: &[&Effect]) -> HeadlineClause {
    let clause = |effect: &&Effect| {
        let (value, interval) = change(effect.estimate.as_ref()?);
        let (label, judged) = (&effect.label, answer::judged_by(conclusion, effect));
        Some(match effect.outcome {
            _ if effect.kind == EffectKind::Interaction => {
                let names = effect
                    .terms
                    .iter()
                    .filter_map(|term| plan.factors.get(term.factor));
                let names: Vec<&str> = names.map(|factor| factor.name.as_str()).collect();
                format!("{} interact", names.join(" and "))
            }
            Outcome::Equivalent => {
                format!("{label} makes no difference to {judged} on average ({interval})")
            }
            Outcome::Inconclusive => format!("{label} is inconclusive ({interval})"),
            Outcome::Better | Outcome::Worse => {
                format!("{label} {value} {judged} on average ({interval})")
            }
            // There is no estimate of these.
            Outcome::NoSuccess | Outcome::Invalid => return None,
        })
    };
    let mut told = model::distinct(leading.iter().filter_map(clause));
    let more = told.len().saturating_sub(EFFECTS_TOLD_MAX);
    told.truncate(EFFECTS_TOLD_MAX);
    told.extend((more > 0).then(|| format!("and {more} more")));
    HeadlineClause::name(told.join("; "))
}

fn void(conclusion: &Conclusion) -> HeadlineClause {
    let gravest = conclusion
        .findings
        .iter()
        .find(|finding| finding.grade == Grade::Invalid);
    let gravest =
        gravest.map(|of| format!(": {} ({})", in_one_line(&of.evidence), of.check.number()));
    HeadlineClause::words(format!(
        "no conclusion may be drawn{}",
        gravest.unwrap_or_default()
    ))
}

/// Measured values if nothing is compared.
fn measured(record: &Record, conclusion: &Conclusion) -> HeadlineClause {
    let variants = &conclusion.variants;
    if let Some(told) = capacity::sentence(record, conclusion) {
        return HeadlineClause::words(told);
    }
    if let Some(steps) = analysis::measurement(record).as_ref().and_then(steps) {
        return steps;
    }
    if conclusion.blocks == 0 {
        return HeadlineClause::words("nothing was measured".to_owned());
    }
    if variants.len() > MEASURED_MAX {
        let number = count(variants.len() as u64);
        return HeadlineClause::words(format!(
            "{number} variants were measured, and nothing is compared"
        ));
    }
    let alone = variants.len() == 1;
    let of_one = |variant: &VariantFigures| {
        let name = if alone {
            String::new()
        } else {
            format!("{}: ", variant.name)
        };
        format!("{name}{}", figures(variant))
    };
    let told: Vec<String> = variants.iter().map(of_one).collect();
    HeadlineClause {
        text: format!("{}; nothing is compared", told.join("; ")),
        begins_with_name: !alone,
    }
}

/// Result of each step of a ladder of rates. `None` if only one was planned.
fn steps(of: &Measurement<'_>) -> Option<HeadlineClause> {
    if of.planned < 2 {
        return None;
    }
    let step = |window: &MeasuredWindow<'_>| {
        let rate = window.throughput_per_s().map_or(NONE.to_owned(), rate);
        let response = window.slice.counts.open.as_ref().map(|open| &open.response);
        let p99 = response
            .filter(|times| times.resolves(0.99))
            .and_then(|times| times.quantile(0.99));
        let p99 = p99.map(|p99| {
            let least = if p99.is_exact() { "" } else { "at least " };
            format!(", p99 {least}{}", Quantity::ns(p99.ns()))
        });
        format!(
            "at {}: {rate} successful responses{}",
            window.name,
            p99.unwrap_or_default()
        )
    };
    let mut told: Vec<String> = of.windows.iter().take(STEPS_TOLD_MAX).map(step).collect();
    let more = of.windows.len().saturating_sub(STEPS_TOLD_MAX);
    told.extend((more > 0).then(|| format!("and {}", many(more as u64, "more step"))));
    let not_begun = of.planned.saturating_sub(of.windows.len());
    told.extend(
        (not_begun > 0).then(|| format!("{not_begun} of {} steps did not begin", of.planned)),
    );
    Some(HeadlineClause::words(format!(
        "{}; nothing is compared",
        told.join("; ")
    )))
}

fn figures(variant: &VariantFigures) -> String {
    if let Some(without) = &variant.no_success {
        return without.answer.clone();
    }
    let rate = variant
        .throughput_per_s
        .map(|per_s| format!("{} successful responses", Quantity::per_s(per_s)));
    let times = variant.response_time.iter().map(|found| {
        let least = if found.at_least { "at least " } else { "" };
        format!("{} {least}{}", found.metric.name(), Quantity::us(found.us))
    });
    let cpu = variant
        .cpu_us_per_request
        .map(|us| format!("{} of CPU time for each", Quantity::us(us)));
    let parts: Vec<String> = rate.into_iter().chain(times).chain(cpu).collect();
    if parts.is_empty() {
        "no figures".to_owned()
    } else {
        parts.join(", ")
    }
}

/// One verdict: "production has a higher throughput than development: ×14.1 (×12.3 to ×16.3)".
fn clause(plan: &Plan, conclusion: &Conclusion, of: &ComparisonResult) -> HeadlineClause {
    let HeadlineSides {
        candidate,
        baseline,
        context,
    } = HeadlineSides::of(plan, of);
    let row = of.metric.row();
    let metric = answer::metric_of(of.metric, &plan.design);
    let (side, margin) = (format!("{context}{candidate}"), share(plan.design.margin));
    let seen = of.estimate.as_ref().map(change);
    match (of.outcome, &of.estimate, seen) {
        (Outcome::Invalid, ..) => {
            HeadlineClause::words(format!("no conclusion may be drawn about {}", of.label))
        }
        (Outcome::NoSuccess, ..) => {
            let lost = of.no_success.as_deref().unwrap_or_default();
            HeadlineClause::name(format!("{lost}, so there is nothing to compare"))
        }
        (Outcome::Inconclusive, _, Some((value, interval))) => {
            let than = format!("{} or {} {metric} than {baseline}", row.more, row.less);
            HeadlineClause::words(format!(
                "inconclusive: {side} may have a {than} ({value}, {interval})"
            ))
        }
        (Outcome::Equivalent, _, Some((_, interval))) => HeadlineClause::name(format!(
            "{side} and {baseline} have the same {metric}, within {margin} ({interval})"
        )),
        (Outcome::Better | Outcome::Worse, Some(estimate), Some((value, interval))) => {
            let word = if estimate.ratio > 1.0 {
                row.more
            } else {
                row.less
            };
            let word = if of.is_slight {
                format!("slightly {word}")
            } else {
                word.to_owned()
            };
            HeadlineClause::name(format!(
                "{side} has a {word} {metric} than {baseline}: {value} ({interval})"
            ))
        }
        (Outcome::Equivalent, None, None) if of.without_spread.is_some() => {
            let seen = answer::detail(of, conclusion, &plan.design);
            HeadlineClause::name(format!(
                "{side} and {baseline} have the same {metric}, within {margin}: {seen}"
            ))
        }
        // Decided by a bound alone, or by blocks with identical values.
        (Outcome::Better | Outcome::Worse, _, _) => {
            let is_more =
                of.at_least.is_some() || of.without_spread.is_some_and(|ratio| ratio > 1.0);
            let word = if is_more { row.more } else { row.less };
            let bound = answer::detail(of, conclusion, &plan.design);
            HeadlineClause::name(format!(
                "{side} has a {word} {metric} than {baseline}: {bound}"
            ))
        }
        (Outcome::Inconclusive | Outcome::Equivalent, _, _) => {
            let why = answer::detail(of, conclusion, &plan.design);
            HeadlineClause::words(format!("inconclusive: {}: {why}", of.label))
        }
    }
}

/// The two sides of a comparison, and their common context, such as `json: `.
pub(super) struct HeadlineSides {
    pub candidate: String,
    pub baseline: String,
    pub context: String,
}

impl HeadlineSides {
    /// Names the sides by the levels in which they differ, or by the variants' names if they differ in none.
    pub fn of(plan: &Plan, asked: &ComparisonResult) -> HeadlineSides {
        let variant = |index: usize| plan.variants.get(index);
        let level =
            |index: usize, factor: &Factor| variant(index)?.levels.get(&factor.name).cloned();
        let (differ, alike): (Vec<&Factor>, Vec<&Factor>) = plan
            .factors
            .iter()
            .partition(|factor| level(asked.candidate, factor) != level(asked.baseline, factor));
        let joined = |index: usize, of: &[&Factor]| {
            of.iter()
                .filter_map(|factor| level(index, factor))
                .collect::<Vec<_>>()
                .join(" · ")
        };
        // An edited record may refer to missing variants.
        let name =
            |index: usize| variant(index).map_or_else(|| format!("#{index}"), |of| of.name.clone());
        let called = |index: usize| {
            if differ.is_empty() {
                name(index)
            } else {
                joined(index, &differ)
            }
        };
        let common = if differ.is_empty() {
            String::new()
        } else {
            joined(asked.candidate, &alike)
        };
        let context = if common.is_empty() {
            common
        } else {
            format!("{common}: ")
        };
        HeadlineSides {
            candidate: called(asked.candidate),
            baseline: called(asked.baseline),
            context,
        }
    }
}

#[cfg(test)]
mod tests;
