//! What each factor does on average over the others, and what two factors do to each other, in a full factorial.

use plan::Metric;
use record::Record;
use schemars::JsonSchema;
use serde::Serialize;
use stats::{Contrast, Estimate, Factor};

use crate::comparison::{Outcome, outcome};
use crate::metric::BlockFigures;
use crate::{Conclusion, rule};
use model::{Finding, Grade};

/// What an effect is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One factor, on average over all others.
    Main,
    /// How much of what one factor does depends on another: a ratio of ratios.
    Interaction,
}

/// A main effect or a two-way interaction.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Effect {
    /// Such as `node_env: production / development`, and two of these with ` × ` in between.
    pub label: String,
    /// The factors that it is of, by their places.
    #[serde(skip)]
    pub factors: Vec<usize>,
    /// Whether a comparison varies one of them.
    #[serde(skip)]
    pub is_compared: bool,
    /// What it is of.
    pub kind: Kind,
    /// The metric, that of the verdict.
    pub metric: Metric,
    /// The multiplicative effect with its interval; the effects of an experiment share 5 % among themselves.
    pub estimate: Option<Estimate>,
    /// The verdict. Of an interaction `better` and `worse` only say that it is there: above or below 1.
    pub outcome: Outcome,
}

impl Effect {
    /// Whether it is an interaction that is there.
    pub fn is_interaction(&self) -> bool {
        self.kind == Kind::Interaction && matches!(self.outcome, Outcome::Better | Outcome::Worse)
    }
}

impl Conclusion {
    /// Whether the factors' effects are the answer, and comparisons of single variants details of it: each factor that these vary does the
    /// same whatever the others are, as far as it is seen.
    pub fn effects_lead(&self) -> bool {
        let forbids = |effect: &Effect| effect.is_interaction() && effect.is_compared;
        let speaks = |effect: &Effect| effect.estimate.is_some() && !forbids(effect);
        !self.effects.is_empty() && self.effects.iter().all(speaks)
    }

    /// Whether a main effect says nothing by itself: an interaction of its factor is there, and at least as large.
    pub fn is_dwarfed(&self, effect: &Effect) -> bool {
        let size = |of: &Effect| of.estimate.as_ref().map_or(0.0, |estimate| estimate.ratio.ln().abs());
        let dwarfs = |other: &Effect| {
            let shares = effect.factors.iter().any(|factor| other.factors.contains(factor));
            other.is_interaction() && shares && size(other) >= size(effect)
        };
        effect.kind == Kind::Main && self.effects.iter().any(dwarfs)
    }
}

/// All main effects and two-way interactions, which share the chance to err; none with fewer than two factors.
pub(crate) fn all(record: &Record, blocks: &[BlockFigures], findings: &[Finding]) -> Vec<Effect> {
    let (plan, design) = (&record.header.plan, &record.header.plan.design);
    if plan.factors.len() < 2 {
        return Vec::new();
    }
    let factors: Vec<Factor> = plan.factors.iter().map(|factor| baseline_first(plan, factor)).collect();
    // A plan's factors have two levels or more, and 64 variants at most; those of a forged record may not.
    let Some(contrasts) = stats::contrasts(&factors) else { return Vec::new() };
    let void = findings.iter().any(|finding| finding.grade == Grade::Invalid);
    let (metric, cells) = (design.metric, cells(plan, &factors));
    let row = |of: &BlockFigures| cells.iter().map(|cell| of.compared(metric, (*cell)?)).collect();
    let rows: Vec<Vec<Option<f64>>> = blocks.iter().map(row).collect();
    let rule = rule::family(record, contrasts.len()).filter(|_| !void && rule::may_look(record));
    let critical_t = rule.and_then(|rule| rule.critical_t(u32::try_from(rows.len()).ok()?));
    let estimate = |contrast: &Contrast| Estimate::of_strata(&contrast.values(&rows)?, critical_t?).ok();
    let is_compared =
        |factor: usize| plan.comparisons.iter().any(|asked| varies(plan, &factors[factor].name, asked));
    let effect = |contrast: &Contrast| {
        let estimate = estimate(contrast);
        let outcome = outcome(void, estimate.as_ref(), metric, design.margin);
        let kind = if contrast.terms.len() == 1 { Kind::Main } else { Kind::Interaction };
        let factors: Vec<usize> = contrast.terms.iter().map(|term| term.factor).collect();
        let is_compared = factors.iter().any(|factor| is_compared(*factor));
        Effect { label: contrast.name.clone(), factors, is_compared, kind, metric, estimate, outcome }
    };
    contrasts.iter().map(effect).collect()
}

fn level<'a>(plan: &'a plan::Plan, variant: usize, factor: &str) -> Option<&'a String> {
    plan.variants.get(variant)?.levels.get(factor)
}

/// Whether the two that are compared have different levels of a factor.
fn varies(plan: &plan::Plan, factor: &str, asked: &plan::Comparison) -> bool {
    level(plan, asked.baseline, factor) != level(plan, asked.candidate, factor)
}

/// A factor whose first level is the one that the plan compares with.
fn baseline_first(plan: &plan::Plan, factor: &plan::Factor) -> Factor {
    let asked = plan.comparisons.iter().find(|asked| varies(plan, &factor.name, asked));
    let baseline = asked.and_then(|asked| level(plan, asked.baseline, &factor.name));
    let mut levels = factor.levels.clone();
    // Stable: the others stay in the order of the file.
    levels.sort_by_key(|level| Some(level) != baseline.or(factor.levels.first()));
    Factor { name: factor.name.clone(), levels }
}

/// The variant of each combination of levels, the last factor changing fastest. A copy of the baseline comes after all of them.
fn cells(plan: &plan::Plan, factors: &[Factor]) -> Vec<Option<usize>> {
    // The levels of the last factor change first.
    let is = |variant: &plan::Variant, mut cell: usize| {
        factors.iter().rev().all(|Factor { name, levels }| {
            let level = &levels[cell % levels.len()];
            cell /= levels.len();
            variant.levels.get(name) == Some(level)
        })
    };
    let combinations: usize = factors.iter().map(|factor| factor.levels.len()).product();
    (0..combinations).map(|cell| plan.variants.iter().position(|variant| is(variant, cell))).collect()
}
