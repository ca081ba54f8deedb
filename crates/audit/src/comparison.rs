//! One candidate against its baseline: estimate, verdict, and what it would take to know more.

use plan::Metric;
use record::Record;
use serde::Serialize;
use stats::{Estimate, Looks, Verdict};

use crate::finding::Finding;
use crate::metric::{BlockFigures, direction, metrics};

/// What may be said of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The candidate is better by more than chance.
    Better,
    /// The candidate is worse by more than chance.
    Worse,
    /// The difference is smaller than the margin.
    Equivalent,
    /// Neither, with the blocks there are.
    Inconclusive,
    /// A finding forbids any conclusion.
    Void,
}

/// A comparison's result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Reads as "candidate against baseline".
    pub label: String,
    /// Index of the baseline.
    pub baseline: usize,
    /// Index of the candidate.
    pub candidate: usize,
    /// The metric of the verdict.
    pub metric: Metric,
    /// Candidate over baseline with its interval; `None` where it is void or there are fewer than six blocks.
    pub estimate: Option<Estimate>,
    /// Candidate over baseline so far, from the first block on and without an interval: to watch, not to quote.
    pub ratio_so_far: Option<f64>,
    /// The verdict.
    pub outcome: Outcome,
    /// For an inconclusive one: blocks in all that would decide it, with the spread seen so far.
    pub blocks_needed: Option<u32>,
    /// The other metrics: shown, never judged.
    pub exploratory: Vec<Exploratory>,
}

/// An estimate of a metric that the experiment did not choose.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exploratory {
    /// The metric.
    pub metric: Metric,
    /// Candidate over baseline with the same interval's width as the chosen metric has.
    pub estimate: Estimate,
}

/// Every comparison of the plan.
pub(crate) fn all(record: &Record, blocks: &[BlockFigures], findings: &[Finding]) -> Vec<Comparison> {
    let looks = crate::looks(record);
    let plan = &record.header.plan;
    plan.comparisons.iter().map(|asked| one(record, blocks, asked, looks.as_ref(), findings)).collect()
}

fn one(
    record: &Record,
    blocks: &[BlockFigures],
    asked: &plan::Comparison,
    looks: Option<&Looks>,
    findings: &[Finding],
) -> Comparison {
    let design = &record.header.plan.design;
    let estimate = |metric| estimate(blocks, asked, metric, looks);
    let void = findings.iter().any(|finding| finding.voids(asked.baseline, asked.candidate));
    // What is void prints instead of a number, never beside it.
    let primary = if void { None } else { estimate(design.metric) };
    let outcome = match &primary {
        _ if void => Outcome::Void,
        Some(estimate) => judged(stats::judge(estimate, design.margin, direction(design.metric))),
        None => Outcome::Inconclusive,
    };
    let others = metrics(record).iter().copied().filter(|metric| *metric != design.metric && !void);
    Comparison {
        label: asked.label.clone(),
        baseline: asked.baseline,
        candidate: asked.candidate,
        metric: design.metric,
        ratio_so_far: ratios(blocks, asked, design.metric).filter(|_| !void).map(|d| mean(&d).exp()),
        blocks_needed: blocks_needed(primary.as_ref(), outcome, design.margin, looks),
        estimate: primary,
        outcome,
        exploratory: others.filter_map(|m| Some(Exploratory { metric: m, estimate: estimate(m)? })).collect(),
    }
}

/// The log-ratio of each complete block; `None` without blocks, or where any has no value.
fn ratios(blocks: &[BlockFigures], asked: &plan::Comparison, metric: Metric) -> Option<Vec<f64>> {
    let ratio = |block: &BlockFigures| block.log_ratio(metric, asked.baseline, asked.candidate);
    blocks.iter().map(ratio).collect::<Option<Vec<f64>>>().filter(|ratios| !ratios.is_empty())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The estimate over all complete blocks; `None` for fewer than a verdict needs.
fn estimate(
    blocks: &[BlockFigures],
    asked: &plan::Comparison,
    metric: Metric,
    looks: Option<&Looks>,
) -> Option<Estimate> {
    let ratios = ratios(blocks, asked, metric)?;
    let critical_t = looks?.final_critical_t(u32::try_from(ratios.len()).ok()?)?;
    Estimate::of(&ratios, critical_t).ok()
}

fn judged(verdict: Verdict) -> Outcome {
    match verdict {
        Verdict::Better => Outcome::Better,
        Verdict::Worse => Outcome::Worse,
        Verdict::Equivalent => Outcome::Equivalent,
        Verdict::Inconclusive => Outcome::Inconclusive,
    }
}

fn blocks_needed(
    estimate: Option<&Estimate>,
    outcome: Outcome,
    margin: f64,
    looks: Option<&Looks>,
) -> Option<u32> {
    if outcome != Outcome::Inconclusive {
        return None;
    }
    stats::blocks_needed(estimate?, margin, looks?)
}
