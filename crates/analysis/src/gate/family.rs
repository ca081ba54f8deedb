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
        let members = model::distinct(figures.iter().filter(|figure| !has_verdict(figure)));
        let count = members.len().max(1);
        // Where nothing is compared nothing ends the run but its plan, and it is looked at once.
        let rule = if plan.comparisons.is_empty() {
            rule::rule_of(LookRule::Once, count)
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
        let alone = || 1.0 - stats::ALPHA / f64::from(self.members);
        self.rule.as_ref().map_or_else(alone, |rule| rule.level(u32::try_from(blocks).unwrap_or(u32::MAX)))
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
