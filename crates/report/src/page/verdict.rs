//! Verdicts, effects and findings as the page has them: the sheet's words, with the numbers that bars are drawn from.
//!
//! Must not: conclude, or put a number beside a void.

use std::collections::BTreeSet;

use analysis::{Comparison, Conclusion, Series};
use plan::Metric;
use stats::Estimate;

use super::bounds::{FINDINGS_MAX, NUMBERS_MAX, evenly, rounded};
use super::model::{EffectLine, Effects, Finding, Grade, Outcome, Ratio, Unit, Verdict};
use crate::figure::count;
use crate::sheet::{Answer, Judged, Sheet, comparisons_of_answers};
use crate::validity::paragraphs;

/// Each comparison with its words, once for each verdict that is told.
pub(super) fn judged<'a>(
    conclusion: &'a Conclusion,
    sheet: &'a Sheet,
) -> impl Iterator<Item = (&'a Comparison, &'a Judged)> {
    answered(conclusion, sheet).flat_map(|(group, answer)| group.iter().zip(&answer.judged))
}

fn answered<'a>(
    conclusion: &'a Conclusion,
    sheet: &'a Sheet,
) -> impl Iterator<Item = (&'a [Comparison], &'a Answer)> {
    comparisons_of_answers(conclusion).zip(&sheet.answers)
}

/// All verdicts, in the order of the plan.
pub(super) fn verdicts(
    conclusion: &Conclusion,
    sheet: &Sheet,
    series: &[Series],
    left_out: &mut Vec<String>,
) -> Vec<Verdict> {
    let variants = conclusion.variants.len();
    let ratios_max = NUMBERS_MAX / conclusion.comparisons.len().max(1);
    let mut verdicts = Vec::new();
    let mut thinned = false;
    for (group, answer) in answered(conclusion, sheet) {
        for (index, (comparison, judged)) in group.iter().zip(&answer.judged).enumerate() {
            if comparison.baseline.max(comparison.candidate) >= variants {
                left_out.push(format!("{}: the plan has no such variants", comparison.label));
                continue;
            }
            let ratios = analysis::ratios_by_block(series, comparison);
            thinned |= ratios.len() > ratios_max;
            let also = if index == 0 { answer.also.clone() } else { Vec::new() };
            let blocks = evenly(ratios.len(), ratios_max).into_iter().map(|at| rounded(ratios[at])).collect();
            verdicts.push(Verdict { also, blocks, ..verdict(comparison, judged) });
        }
    }
    if thinned {
        left_out.push(format!(
            "the ratio of each block: of each comparison {} are drawn, evenly spread",
            count(ratios_max as u64)
        ));
    }
    verdicts
}

fn verdict(comparison: &Comparison, judged: &Judged) -> Verdict {
    Verdict {
        comparison: comparison.label.clone(),
        baseline: comparison.baseline,
        candidate: comparison.candidate,
        metric: metric(comparison.metric).0,
        more_is_better: comparison.metric.wants_more(),
        outcome: outcome(judged.outcome),
        word: judged.verdict.clone(),
        detail: judged.detail.clone(),
        ratio: comparison.estimate.as_ref().map(ratio),
        blocks: Vec::new(),
        also: Vec::new(),
    }
}

/// What a metric is called in pictures, as above the columns of tables, and its unit.
pub(super) fn metric(metric: Metric) -> (String, Unit) {
    let unit = match metric.unit() {
        model::Unit::PerS => Unit::PerSecond,
        model::Unit::Us => Unit::Microseconds,
        model::Unit::Bytes => Unit::Bytes,
        model::Unit::Share => Unit::Share,
        model::Unit::Count | model::Unit::Ratio | model::Unit::Number => Unit::Count,
    };
    (metric.row().heading.to_owned(), unit)
}

fn outcome(outcome: analysis::Outcome) -> Outcome {
    match outcome {
        analysis::Outcome::Better => Outcome::Better,
        analysis::Outcome::Worse => Outcome::Worse,
        analysis::Outcome::Equivalent => Outcome::Equivalent,
        analysis::Outcome::Inconclusive => Outcome::Inconclusive,
        analysis::Outcome::NoSuccess => Outcome::NoSuccess,
        analysis::Outcome::Void => Outcome::Void,
    }
}

fn ratio(estimate: &Estimate) -> Ratio {
    Ratio { estimate: estimate.ratio, low: estimate.low, high: estimate.high }
}

/// Main effects and interactions.
pub(super) fn effects(conclusion: &Conclusion, sheet: &Sheet) -> Option<Effects> {
    let of = sheet.effects.as_ref()?;
    let line = |line: &crate::sheet::EffectLine| {
        let effect = conclusion.effects.iter().find(|effect| effect.label == line.label);
        EffectLine {
            label: line.label.clone(),
            interaction: line.kind == analysis::Kind::Interaction,
            outcome: outcome(line.outcome),
            word: line.verdict.clone(),
            detail: line.detail.clone(),
            ratio: effect.and_then(|effect| effect.estimate.as_ref()).map(ratio),
        }
    };
    let lines = of.lines.iter().map(line).collect();
    Some(Effects { heading: of.heading.clone(), lines, note: of.note.clone() })
}

/// Findings, the gravest first, each explained where its number comes first.
pub(super) fn findings(conclusion: &Conclusion, sheet: &Sheet, left_out: &mut Vec<String>) -> Vec<Finding> {
    let mut explained: BTreeSet<&str> = BTreeSet::new();
    let told = sheet.findings.iter().zip(&conclusion.findings).take(FINDINGS_MAX);
    let finding = |(remark, finding): (&crate::sheet::Remark, &analysis::Finding)| {
        let first = remark.number.filter(|number| explained.insert(number));
        Finding {
            grade: grade(remark.grade),
            number: remark.number.map(str::to_owned),
            evidence: remark.evidence.clone(),
            remedy: remark.remedy.clone(),
            variants: finding.variants.clone(),
            explanation: first.map(paragraphs).unwrap_or_default(),
        }
    };
    let all = sheet.findings.len();
    if all > FINDINGS_MAX {
        left_out.push(format!("findings: the gravest {FINDINGS_MAX} of {} are shown", count(all as u64)));
    }
    told.map(finding).collect()
}

fn grade(grade: analysis::Grade) -> Grade {
    match grade {
        analysis::Grade::Void => Grade::Void,
        analysis::Grade::Warning => Grade::Warning,
        analysis::Grade::Note | analysis::Grade::Fine => Grade::Note,
    }
}
