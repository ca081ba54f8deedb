//! Average effects of factors over the others, and interactions of two factors, in a full factorial.

use model::{Finding, Grade};
use plan::Metric;
use record::Record;
use schemars::JsonSchema;
use serde::Serialize;
use stats::{Contrast, Estimate, FactorLevels, Term};

use crate::checks::Check;
use crate::comparison::{ComparisonResult, Outcome, outcome};
use crate::metric::BlockFigures;
use crate::{Conclusion, rule};

/// Kind of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    /// One factor, on average over all others.
    Main,
    /// Dependence of one factor's effect on another factor: a ratio of ratios.
    Interaction,
}

/// A main effect or a two-way interaction.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Effect {
    /// Such as `node_env: production / development`, and two of these with ` × ` in between.
    pub label: String,
    /// Factors and levels by index.
    #[serde(skip)]
    pub terms: Vec<Term>,
    /// Whether a comparison varies one of the factors.
    #[serde(skip)]
    pub is_compared: bool,
    /// Kind of the effect.
    pub kind: EffectKind,
    /// The metric of the verdict.
    pub metric: Metric,
    /// Multiplicative effect with its interval. The effects of an experiment share an error rate of 5 %.
    pub estimate: Option<Estimate>,
    /// The verdict. For an interaction `better` and `worse` only mean that it exists: above or below 1.
    pub outcome: Outcome,
}

impl Effect {
    /// Whether the effect is an interaction with a verdict of a difference.
    pub fn interacts(&self) -> bool {
        self.kind == EffectKind::Interaction && self.outcome.differs()
    }

    /// Distance of the ratio from 1.
    fn size(&self) -> f64 {
        self.estimate.as_ref().map_or(0.0, Estimate::distance)
    }
}

impl Conclusion {
    /// The effects that answer the question, with comparisons of single variants as details. Sorted by
    /// whether the factor is compared, whether the effect is decided, and size. Empty if a compared factor
    /// interacts with another, or if a comparison found a difference that its factor does not have on
    /// average.
    pub fn leading_effects(&self) -> Vec<&Effect> {
        let asked = |effect: &Effect| effect.kind == EffectKind::Main && effect.is_compared;
        let told = |of: &ComparisonResult| {
            let alike = |effect: &Effect| !of.outcome.differs() || effect.outcome == of.outcome;
            self.effects
                .iter()
                .any(|effect| asked(effect) && effect.metric == of.metric && alike(effect))
        };
        let speaks = |effect: &Effect| {
            effect.estimate.is_some() && !(effect.interacts() && effect.is_compared)
        };
        if !self.effects.iter().all(speaks) || !self.comparisons.iter().all(told) {
            return Vec::new();
        }
        let leads = |effect: &&Effect| {
            effect.interacts() || effect.kind == EffectKind::Main && !self.is_dwarfed(effect)
        };
        let mut leading: Vec<&Effect> = self.effects.iter().filter(leads).collect();
        leading.sort_by(|one, other| {
            let rank = |of: &Effect| (asked(of), of.outcome.is_decided());
            rank(other)
                .cmp(&rank(one))
                .then(other.size().total_cmp(&one.size()))
        });
        leading
    }

    /// Whether a main effect is meaningless alone, because an interaction with its level exists and is at
    /// least as large.
    pub fn is_dwarfed(&self, effect: &Effect) -> bool {
        let dwarfs = |other: &Effect| {
            let shares = effect.terms.iter().any(|term| other.terms.contains(term));
            other.interacts() && shares && other.size() >= effect.size()
        };
        effect.kind == EffectKind::Main && self.effects.iter().any(dwarfs)
    }
}

/// All main effects and two-way interactions, which share the error rate. Empty with fewer than two factors.
pub(crate) fn all(
    record: &Record,
    blocks: &[BlockFigures],
    findings: &[Finding<Check>],
) -> Vec<Effect> {
    let (plan, design) = (&record.header.plan, &record.header.plan.design);
    if plan.factors.len() < 2 {
        return Vec::new();
    }
    let factors: Vec<FactorLevels> = plan
        .factors
        .iter()
        .map(|factor| baseline_first(plan, factor))
        .collect();
    // A plan's factors have at least two levels, and at most 64 variants. A forged record may violate that.
    let Some(contrasts) = stats::contrasts(&factors) else {
        return Vec::new();
    };
    let void = findings
        .iter()
        .any(|finding| finding.grade == Grade::Invalid);
    let (metric, cells) = (design.metric, cells(plan, &factors));
    let row = |of: &BlockFigures| {
        cells
            .iter()
            .map(|cell| of.compared(metric, (*cell)?))
            .collect()
    };
    let rows: Vec<Vec<Option<f64>>> = blocks.iter().map(row).collect();
    let rule = rule::family(record, contrasts.len()).filter(|_| !void);
    let critical_t = rule::critical_t(record, rule.as_ref(), rows.len());
    let estimate =
        |contrast: &Contrast| Estimate::of_strata(&contrast.values(&rows)?, critical_t?).ok();
    let is_compared = |factor: usize| {
        plan.comparisons
            .iter()
            .any(|asked| varies(plan, &factors[factor].name, asked))
    };
    let effect = |contrast: &Contrast| {
        let estimate = estimate(contrast);
        let outcome = outcome(void, estimate.as_ref(), metric, design.margin);
        let kind = if contrast.terms.len() == 1 {
            EffectKind::Main
        } else {
            EffectKind::Interaction
        };
        let (label, terms) = (contrast.name.clone(), contrast.terms.clone());
        let is_compared = terms.iter().any(|term| is_compared(term.factor));
        Effect {
            label,
            terms,
            is_compared,
            kind,
            metric,
            estimate,
            outcome,
        }
    };
    contrasts.iter().map(effect).collect()
}

fn level<'a>(plan: &'a plan::Plan, variant: usize, factor: &str) -> Option<&'a String> {
    plan.variants.get(variant)?.levels.get(factor)
}

/// Whether the two compared variants have different levels of a factor.
fn varies(plan: &plan::Plan, factor: &str, asked: &plan::Comparison) -> bool {
    level(plan, asked.baseline, factor) != level(plan, asked.candidate, factor)
}

/// Returns a factor with the level that the plan compares with as its first level.
fn baseline_first(plan: &plan::Plan, factor: &plan::Factor) -> FactorLevels {
    let asked = plan
        .comparisons
        .iter()
        .find(|asked| varies(plan, &factor.name, asked));
    let baseline = asked.and_then(|asked| level(plan, asked.baseline, &factor.name));
    let mut levels = factor.levels.clone();
    // The sort is stable, so the others keep the order of the file.
    levels.sort_by_key(|level| Some(level) != baseline.or(factor.levels.first()));
    FactorLevels {
        name: factor.name.clone(),
        levels,
    }
}

/// The variant of each combination of levels, with the last factor changing fastest. A copy of the baseline
/// comes after all of them and is not found.
fn cells(plan: &plan::Plan, factors: &[FactorLevels]) -> Vec<Option<usize>> {
    // The levels of the last factor change first.
    let is = |variant: &plan::Variant, mut cell: usize| {
        factors.iter().rev().all(|FactorLevels { name, levels }| {
            let level = &levels[cell % levels.len()];
            cell /= levels.len();
            variant.levels.get(name) == Some(level)
        })
    };
    let combinations: usize = factors.iter().map(|factor| factor.levels.len()).product();
    (0..combinations)
        .map(|cell| plan.variants.iter().position(|variant| is(variant, cell)))
        .collect()
}
