//! Who shares the chance to err. Comparisons with a verdict have the intervals of the report, which hold together at 95 %. All else
//! that a gate judges, other metrics and amounts, is a family of its own that shares 5 % by the same looks.

use plan::{Figure, LookRule, Metric, Subject};
use record::Record;
use stats::Rule;

use crate::comparison::Comparison;
use crate::{Conclusion, rule};

/// The figures that the report gives no verdict on.
#[derive(Debug, Clone)]
pub(super) struct Family {
    /// By which they are judged; `None` where the blocks settled on allow none.
    pub rule: Option<Rule>,
    /// How many they are, at least 1.
    pub members: u32,
    /// Whether intervals may be shown yet.
    may_look: bool,
}

impl Family {
    pub fn of(record: &Record, conclusion: &Conclusion, figures: &[(Figure, Subject)]) -> Family {
        let plan = &record.header.plan;
        let has_verdict = |(figure, subject): &(Figure, Subject)| match (subject, figure.metric()) {
            (Subject::Comparison(index), Some(metric)) => {
                with_verdict(conclusion, &plan.comparisons[*index], metric).is_some()
            }
            _ => false,
        };
        let mut members: Vec<&(Figure, Subject)> = Vec::new();
        for figure in figures.iter().filter(|figure| !has_verdict(figure)) {
            if !members.contains(&figure) {
                members.push(figure);
            }
        }
        let count = members.len().max(1);
        // Where nothing is compared nothing ends the run but its plan, and it is looked at once.
        let rule = if plan.comparisons.is_empty() {
            let design = plan::Design { looks: LookRule::Once, ..plan.design.clone() };
            rule::rule_of(&design, conclusion.blocks, count)
        } else {
            rule::family(record, count)
        };
        let members = u32::try_from(count).unwrap_or(u32::MAX);
        Family { rule, members, may_look: rule::may_look(record) }
    }

    /// The critical t of each after so many blocks; `None` where there is no interval.
    pub fn critical_t(&self, blocks: usize) -> Option<f64> {
        let blocks = u32::try_from(blocks).ok().filter(|_| self.may_look)?;
        self.rule.as_ref()?.critical_t(blocks)
    }

    /// The level for an interval of each that knows nothing of looks: the chance to err is shared among these too.
    pub fn level(&self, blocks: usize) -> f64 {
        let looks = match &self.rule {
            Some(Rule::Planned(looks)) => looks.looks().len() as f64,
            // Without a last look: shares 1 / (n (n + 1)) of all n add up to 1.
            Some(Rule::Always { .. }) => blocks as f64 * (blocks as f64 + 1.0),
            Some(Rule::Once { .. }) | None => 1.0,
        };
        1.0 - stats::ALPHA / f64::from(self.members) / looks.max(1.0)
    }
}

/// The report's entry of a comparison in a metric, where it gives a verdict on it.
pub(super) fn with_verdict<'a>(
    conclusion: &'a Conclusion,
    asked: &plan::Comparison,
    metric: Metric,
) -> Option<&'a Comparison> {
    let is_asked = |comparison: &&Comparison| {
        comparison.metric == metric
            && (comparison.baseline, comparison.candidate) == (asked.baseline, asked.candidate)
    };
    conclusion.comparisons.iter().find(is_asked)
}
