//! What each factor does on average over the others, and what two factors do to each other, in a full factorial.

use plan::Metric;
use record::Record;
use serde::Serialize;
use stats::{Contrast, Estimate, Factor};

use crate::comparison::{Outcome, judged};
use crate::finding::{Finding, Grade};
use crate::metric::{BlockFigures, direction};
use crate::rule;

/// What an effect is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One factor, on average over all others.
    Main,
    /// How much of what one factor does depends on another: a ratio of ratios.
    Interaction,
}

/// A main effect or a two-way interaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effect {
    /// Such as `node_env: production / development`, and two of these with ` × ` in between.
    pub label: String,
    /// What it is of.
    pub kind: Kind,
    /// The metric, that of the verdict.
    pub metric: Metric,
    /// The multiplicative effect with its interval; the effects of an experiment share 5 % among themselves.
    pub estimate: Option<Estimate>,
    /// The verdict. Of an interaction `better` and `worse` only say that it is there: above or below 1.
    pub outcome: Outcome,
}

/// All main effects and two-way interactions; none with fewer than two factors.
pub(crate) fn all(record: &Record, blocks: &[BlockFigures], findings: &[Finding]) -> Vec<Effect> {
    let plan = &record.header.plan;
    if plan.factors.len() < 2 {
        return Vec::new();
    }
    let factor = |factor: &plan::Factor| Factor { name: factor.name.clone(), levels: factor.levels.clone() };
    let factors: Vec<Factor> = plan.factors.iter().map(factor).collect();
    // A plan's factors have two levels or more, and 64 variants at most.
    let contrasts = stats::contrasts(&factors).unwrap_or_default();
    let void = findings.iter().any(|finding| finding.grade == Grade::Void);
    let count = contrasts.len();
    contrasts.iter().map(|contrast| effect(record, blocks, contrast, count, void)).collect()
}

fn effect(record: &Record, blocks: &[BlockFigures], contrast: &Contrast, count: usize, void: bool) -> Effect {
    let design = &record.header.plan.design;
    let metric = design.metric;
    let estimate = || {
        // A copy of the baseline comes after all combinations of levels.
        let cells = contrast.coefficients.len();
        let value = |block: &BlockFigures, index: usize| block.variants.get(index)?.as_ref()?.value(metric);
        let row = |block: &BlockFigures| (0..cells).map(|index| value(block, index)).collect();
        let rows: Vec<Vec<Option<f64>>> = blocks.iter().map(row).collect();
        let values = contrast.values(&rows).ok().filter(|values| values.left_out == 0)?;
        let rule = rule::family(record, count)?;
        let critical_t = rule.critical_t(u32::try_from(values.log_ratios.len()).ok()?)?;
        Estimate::of(&values.log_ratios, critical_t).ok()
    };
    let estimate = if void || !rule::may_look(record) { None } else { estimate() };
    let outcome = match &estimate {
        _ if void => Outcome::Void,
        Some(estimate) => judged(stats::judge(estimate, design.margin, direction(metric))),
        None => Outcome::Inconclusive,
    };
    let kind = if contrast.terms.len() == 1 { Kind::Main } else { Kind::Interaction };
    Effect { label: contrast.name.clone(), kind, metric, estimate, outcome }
}
