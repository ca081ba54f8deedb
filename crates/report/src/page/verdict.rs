//! Verdicts, effects and findings as the page has them: the words of the other forms, with the numbers that bars are drawn from.
//!
//! Must not: conclude, or put a number beside what is invalid.

use std::collections::BTreeSet;

use analysis::{Check, Comparison, Conclusion, Effect, Kind, Series};
use model::quantity::{change, count};
use plan::Design;

use super::bounds::{FINDINGS_MAX, NUMBERS_MAX, evenly, rounded};
use super::model::{EffectLine, Effects, Finding, Verdict};
use crate::experiment::{answer, tables};
use crate::validity::paragraphs;

/// All verdicts, in the order of the plan.
pub(super) fn verdicts(
    conclusion: &Conclusion,
    design: &Design,
    series: &[Series],
    left_out: &mut Vec<String>,
) -> Vec<Verdict> {
    let variants = conclusion.variants.len();
    let ratios_max = NUMBERS_MAX / conclusion.comparisons.len().max(1);
    let mut verdicts = Vec::new();
    let mut thinned = false;
    for group in answer::groups(conclusion) {
        let mut also = answer::also(group, design);
        for comparison in answer::told(group) {
            if comparison.baseline.max(comparison.candidate) >= variants {
                left_out.push(format!("{}: the plan has no such variants", comparison.label));
                continue;
            }
            let ratios = analysis::ratios_by_block(series, comparison);
            thinned |= ratios.len() > ratios_max;
            let blocks = evenly(ratios.len(), ratios_max).into_iter().map(|at| rounded(ratios[at])).collect();
            let verdict = verdict(comparison, conclusion, design);
            verdicts.push(Verdict { also: std::mem::take(&mut also), blocks, ..verdict });
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

fn verdict(comparison: &Comparison, conclusion: &Conclusion, design: &Design) -> Verdict {
    Verdict {
        comparison: comparison.label.clone(),
        baseline: comparison.baseline,
        candidate: comparison.candidate,
        metric: comparison.metric.row().heading.to_owned(),
        more_is_better: comparison.metric.wants_more(),
        outcome: comparison.outcome,
        word: answer::word(comparison.outcome, comparison.metric).to_owned(),
        detail: answer::detail(comparison, conclusion, design),
        ratio: comparison.estimate.as_ref().map(Into::into),
        blocks: Vec::new(),
        also: Vec::new(),
    }
}

/// Main effects and interactions.
pub(super) fn effects(conclusion: &Conclusion) -> Option<Effects> {
    let heading = tables::effects_heading(conclusion)?;
    let (shown, note) = tables::shown_effects(conclusion);
    let line = |effect: &Effect| {
        let seen = effect.estimate.as_ref().map(change);
        EffectLine {
            label: effect.label.clone(),
            interaction: effect.kind == Kind::Interaction,
            outcome: effect.outcome,
            word: answer::effect_word(effect).to_owned(),
            detail: seen
                .map_or_else(|| "no estimate".to_owned(), |(value, ends)| format!("{value} ({ends})")),
            ratio: effect.estimate.as_ref().map(Into::into),
        }
    };
    Some(Effects { heading, lines: shown.into_iter().map(line).collect(), note })
}

/// Findings, the gravest first, each explained where its number comes first.
pub(super) fn findings(conclusion: &Conclusion, left_out: &mut Vec<String>) -> Vec<Finding> {
    let mut explained: BTreeSet<Check> = BTreeSet::new();
    let finding = |finding: &analysis::Finding| {
        let first = explained.insert(finding.check);
        Finding {
            grade: finding.grade,
            number: Some(finding.check.number().to_owned()),
            evidence: finding.evidence.to_string(),
            remedy: finding.remedy.to_string(),
            variants: finding.variants.clone(),
            explanation: if first { paragraphs(finding.check) } else { Vec::new() },
        }
    };
    let all = conclusion.findings.len();
    if all > FINDINGS_MAX {
        left_out.push(format!("findings: the gravest {FINDINGS_MAX} of {} are shown", count(all as u64)));
    }
    conclusion.findings.iter().take(FINDINGS_MAX).map(finding).collect()
}
