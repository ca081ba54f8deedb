//! One candidate compared with its baseline: estimate, verdict, and the cost of knowing more. Also the
//! baseline compared with its own copy: any difference between these two is noise of the machine.

use model::document::Tone;
use model::{Finding, Metric, Unit};
use record::Record;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{COMPARISONS_MAX, Error, Estimate, Interval, MeanInterval, Resampling, Rule, Verdict};

use crate::checks::Check;
use crate::failure::{self, NoSuccess};
use crate::metric::{BlockFigures, Series, is_once, metrics};
use crate::only_if;
use crate::rule;
use crate::sums::{geometric_mean, mean};
use crate::throughput::judged_by;

/// Number of resamples of the bootstrap.
const RESAMPLES: u32 = 2_000;
/// Confidence level of the two intervals that are compared with each other.
const LEVEL: f64 = 0.95;
/// Number of sign flips drawn if several comparisons are looked at once.
const FLIPS: u32 = 9_999;

/// Result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The candidate is better by more than chance.
    Better,
    /// The candidate is worse by more than chance.
    Worse,
    /// The difference is smaller than the margin.
    Equivalent,
    /// None of the others, with the current number of blocks.
    Inconclusive,
    /// One or both sides had no success. There is nothing to compare, and that is the result.
    NoSuccess,
    /// A finding makes the comparison invalid.
    Invalid,
}

impl Outcome {
    /// Whether there is a difference.
    pub fn differs(self) -> bool {
        match self {
            Outcome::Better | Outcome::Worse => true,
            Outcome::Equivalent | Outcome::Inconclusive | Outcome::NoSuccess | Outcome::Invalid => {
                false
            }
        }
    }

    /// Whether there is no ratio for any measured values.
    pub fn has_no_ratio(self) -> bool {
        match self {
            Outcome::NoSuccess | Outcome::Invalid => true,
            Outcome::Better | Outcome::Worse | Outcome::Equivalent | Outcome::Inconclusive => false,
        }
    }

    /// Whether the result is final, so that more blocks would not help.
    pub fn is_decided(self) -> bool {
        match self {
            Outcome::Better | Outcome::Worse | Outcome::Equivalent | Outcome::NoSuccess => true,
            Outcome::Inconclusive | Outcome::Invalid => false,
        }
    }
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Outcome {
        match verdict {
            Verdict::Better => Outcome::Better,
            Verdict::Worse => Outcome::Worse,
            Verdict::Equivalent => Outcome::Equivalent,
            Verdict::Inconclusive => Outcome::Inconclusive,
        }
    }
}

impl From<Outcome> for Tone {
    fn from(outcome: Outcome) -> Tone {
        match outcome {
            Outcome::Better => Tone::Good,
            Outcome::Worse | Outcome::Invalid | Outcome::NoSuccess => Tone::Bad,
            Outcome::Equivalent => Tone::Same,
            Outcome::Inconclusive => Tone::Doubtful,
        }
    }
}

/// Result of one comparison in one metric.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparisonResult {
    /// Label of the form "candidate vs baseline".
    pub label: String,
    /// Index of the baseline.
    pub baseline: usize,
    /// Index of the candidate.
    pub candidate: usize,
    /// The metric of the verdict.
    pub metric: Metric,
    /// Candidate over baseline with its interval. `None` if invalid or without success, with fewer than
    /// four blocks or no spread between them, and before the single look of an experiment that looks once.
    pub estimate: Option<Estimate>,
    /// Lower bound of the ratio of capacities, if the load generator or its connections limited only the
    /// candidate.
    pub at_least: Option<f64>,
    /// Upper bound of the ratio of capacities, if they limited only the baseline.
    pub at_most: Option<f64>,
    /// Candidate minus baseline in the metric's own unit, if there is an estimate and the metric is a cost.
    pub difference: Option<Difference>,
    /// Outcome of the side that never succeeded, or of both, such as `gzip: no response within 2s (0 of
    /// 340)`.
    pub no_success: Option<String>,
    /// The ratio, if every block gave the same one. It has no interval, and the verdict is based on the
    /// ratio.
    pub without_spread: Option<f64>,
    /// Candidate over baseline so far, from the first block on and without an interval. For progress display
    /// only. `None` before the single look of an experiment that looks once.
    pub ratio_so_far: Option<f64>,
    /// The verdict.
    pub outcome: Outcome,
    /// Mean of the baseline in the metric's unit, over the blocks that have both variants; per core-second if
    /// throughput is judged so. `None` if invalid, or without a value.
    pub baseline_value: Option<f64>,
    /// The same of the candidate.
    pub candidate_value: Option<f64>,
    /// Whether the interval excludes 1, but the estimate itself is smaller than the margin, so that the
    /// difference may not matter.
    pub is_slight: bool,
    /// For an inconclusive result: total number of blocks that finds a true difference of the margin in 8 of
    /// 10 runs, with the spread observed so far. `None` if there are already that many.
    pub blocks_needed: Option<u32>,
    /// Total seconds of these blocks. `None` if the number exceeds a single run.
    pub seconds_needed: Option<f64>,
    /// Results of other methods for the same blocks. `None` without an estimate.
    pub cross_check: Option<CrossCheck>,
    /// If throughput is judged per core-second: throughput per second of wall time. Shown, never judged.
    pub per_second: Option<Estimate>,
    /// The other metrics. Shown, never judged.
    pub exploratory: Vec<Exploratory>,
}

/// An estimate of a metric that the experiment did not choose.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Exploratory {
    /// The metric.
    pub metric: Metric,
    /// Candidate over baseline, with the same critical t as the chosen metric.
    pub estimate: Estimate,
    /// Candidate minus baseline in the metric's own unit, if the metric is a cost.
    pub difference: Option<Difference>,
}

/// All comparisons of the plan, once for each metric with a verdict.
pub(crate) fn all(
    record: &Record,
    blocks: &[BlockFigures],
    findings: &[Finding<Check>],
) -> Vec<ComparisonResult> {
    let design = &record.header.plan.design;
    let variants = 0..record.header.plan.variants.len();
    let without: Vec<_> = variants
        .map(|index| failure::measured(record, index))
        .collect();
    let (rule, joint_t) = (rule::rule(record), joint_t(record, blocks, &without));
    let judge = Judge {
        record,
        blocks,
        findings,
        without: &without,
        rule,
        joint_t,
    };
    let comparisons = record.header.plan.comparisons.iter();
    comparisons
        .flat_map(|asked| design.metrics().map(|metric| judge.one(asked, metric)))
        .collect()
}

/// Common data of all comparisons of a record.
struct Judge<'a> {
    record: &'a Record,
    blocks: &'a [BlockFigures],
    findings: &'a [Finding<Check>],
    /// By variant: outcome of its requests, if none succeeded.
    without: &'a [Option<NoSuccess>],
    rule: Option<Rule>,
    /// If several comparisons are looked at once: the joint critical t, which replaces the rule's.
    joint_t: Option<f64>,
}

impl Judge<'_> {
    fn one(&self, asked: &plan::Comparison, metric: Metric) -> ComparisonResult {
        let design = &self.record.header.plan.design;
        let voids = || {
            self.findings
                .iter()
                .filter(|found| found.voids(asked.baseline, asked.candidate))
        };
        // For a variant without its treatment, missing success is not a result.
        let untreated = voids().any(|found| found.check == Check::TreatmentNotApplied);
        let no_success = self.no_success(asked).filter(|_| !untreated);
        let void = voids().next().is_some() || no_success.is_some();
        // An invalid comparison has no numbers at all.
        let ratios = ratios(self.blocks, asked, metric).filter(|_| !void);
        let found = ratios.as_deref().and_then(|d| self.estimate(d));
        let primary = found
            .as_ref()
            .and_then(|found| found.as_ref().ok())
            .copied();
        let estimate = primary.as_ref();
        let [at_least, at_most] = if void {
            [None, None]
        } else {
            self.bounds(asked, metric)
        };
        let without_spread = match found {
            Some(Err(Error::NoSpread { ratio })) => Some(ratio),
            _ => None,
        };
        let outcome = match estimate {
            // A missing success is true without a second block, whatever else is wrong.
            _ if no_success.is_some() => Outcome::NoSuccess,
            None if at_least.is_some_and(|low| low > 1.0 + design.margin) => Outcome::Better,
            None if at_most.is_some_and(|high| high < 1.0 / (1.0 + design.margin)) => {
                Outcome::Worse
            }
            None => without_spread.map_or(outcome(void, None, metric, design.margin), |ratio| {
                let blocks = ratios.as_ref().map_or(0, |d| d.len() as u32);
                stats::judge_constant(ratio, blocks, design.margin, metric.row().direction).into()
            }),
            _ => outcome(void, estimate, metric, design.margin),
        };
        let cross =
            |estimate| cross_check(ratios.as_deref()?, estimate, design.margin, self.record);
        let blocks_needed = self.blocks_needed(estimate, outcome);
        let per_second = if void {
            None
        } else {
            self.per_second(asked, metric)
        };
        let amounts = if void {
            None
        } else {
            self.amounts(asked, metric, per_second.is_some())
        };
        let is_within_margin = |of: &Estimate| of.ratio.ln().abs() < design.margin.ln_1p();
        ComparisonResult {
            label: asked.label.clone(),
            baseline: asked.baseline,
            candidate: asked.candidate,
            metric,
            without_spread,
            ratio_so_far: ratios
                .clone()
                .filter(|_| rule::may_look(self.record))
                .and_then(mean)
                .map(f64::exp),
            blocks_needed,
            seconds_needed: rule::seconds(self.record, blocks_needed),
            cross_check: estimate.and_then(cross),
            difference: estimate.and_then(|estimate| self.difference(asked, metric, estimate)),
            no_success,
            estimate: primary,
            at_least,
            at_most,
            outcome,
            is_slight: outcome.differs() && estimate.is_some_and(is_within_margin),
            per_second,
            baseline_value: amounts.map(|(baseline, _)| baseline),
            candidate_value: amounts.map(|(_, candidate)| candidate),
            exploratory: if void {
                Vec::new()
            } else {
                self.exploratory(asked, metric)
            },
        }
    }

    /// Means of both sides over the blocks that have both: a variant may be measured in more blocks than the
    /// other one, when the machine was faster or slower.
    fn amounts(
        &self,
        asked: &plan::Comparison,
        metric: Metric,
        per_core: bool,
    ) -> Option<(f64, f64)> {
        let value = |block: &BlockFigures, index| match per_core {
            true => block.compared(metric, index).map(|per_us| per_us * 1e6),
            false => block.value(metric, index),
        };
        let (one, other) = (asked.baseline, asked.candidate);
        let shared = self
            .blocks
            .iter()
            .filter(|block| block.has(one) && block.has(other));
        let pairs: Vec<Option<(f64, f64)>> = shared
            .map(|block| Some((value(block, one)?, value(block, other)?)))
            .collect();
        // Without a trial's quantile, the mean of the others would be a different quantity.
        if metric.quantile().is_some() && pairs.iter().any(Option::is_none) {
            return None;
        }
        let mean = |side: fn(&(f64, f64)) -> f64| {
            let values = pairs.iter().flatten().map(side);
            if is_once(metric) {
                stats::median(values)
            } else {
                geometric_mean(values)
            }
        };
        Some((mean(|pair| pair.0)?, mean(|pair| pair.1)?))
    }

    /// Lower and upper bound of a ratio of capacities, if exactly one of them is a lower bound.
    fn bounds(&self, asked: &plan::Comparison, metric: Metric) -> [Option<f64>; 2] {
        let sample = |block: &BlockFigures, index| block.sample(metric, index);
        let is_bound = |index| {
            self.blocks
                .iter()
                .filter_map(|of| sample(of, index))
                .any(|of| of.at_least)
        };
        let [baseline, candidate] = [asked.baseline, asked.candidate].map(is_bound);
        if metric != Metric::Capacity || baseline == candidate {
            return [None, None];
        }
        let ratio = |block: &BlockFigures, one, other| {
            Some((sample(block, other)?.value / sample(block, one)?.value).ln())
        };
        let ratios = over(self.blocks, asked, ratio);
        let found = ratios.and_then(|d| self.estimate(&d)).and_then(Result::ok);
        [
            found.filter(|_| candidate).map(|of| of.low),
            found.filter(|_| baseline).map(|of| of.high),
        ]
    }

    fn no_success(&self, asked: &plan::Comparison) -> Option<String> {
        let plan = &self.record.header.plan;
        let told = |index: usize| {
            let answer = &self.without.get(index)?.as_ref()?.answer;
            Some(format!("{}: {answer}", plan.variants.get(index)?.name))
        };
        let told: Vec<String> = [asked.baseline, asked.candidate]
            .into_iter()
            .filter_map(told)
            .collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// Uses the critical t of the ratio, so that both intervals hold together.
    fn difference(
        &self,
        asked: &plan::Comparison,
        metric: Metric,
        of: &Estimate,
    ) -> Option<Difference> {
        let unit = Some(metric.unit()).filter(|unit| *unit != Unit::PerS)?;
        let d = over(self.blocks, asked, |block, one, other| {
            block.difference(metric, one, other)
        })?;
        let MeanInterval { value, low, high } = MeanInterval::of(&d, of.critical_t)?;
        Some(Difference {
            unit,
            value,
            low,
            high,
        })
    }

    fn per_second(&self, asked: &plan::Comparison, metric: Metric) -> Option<Estimate> {
        self.blocks
            .first()
            .filter(|first| metric == Metric::Throughput && first.per_core)?;
        let plain = |block: &BlockFigures, one, other| block.plain_log_ratio(metric, one, other);
        self.estimate(&over(self.blocks, asked, plain)?)?.ok()
    }

    /// Metrics without a verdict, once for each comparison: with its first metric.
    fn exploratory(&self, asked: &plan::Comparison, metric: Metric) -> Vec<Exploratory> {
        let design = &self.record.header.plan.design;
        let others = metrics(self.record).filter(|other| design.metrics().all(|m| m != *other));
        let estimate = |metric| {
            let estimate = self.estimate(&ratios(self.blocks, asked, metric)?)?.ok()?;
            let difference = self.difference(asked, metric, &estimate);
            Some(Exploratory {
                metric,
                estimate,
                difference,
            })
        };
        if metric == design.metric {
            others.filter_map(estimate).collect()
        } else {
            Vec::new()
        }
    }

    /// The estimate over all complete blocks. `None` if it may not be shown yet.
    fn estimate(&self, d: &[f64]) -> Option<Result<Estimate, Error>> {
        let planned = rule::critical_t(self.record, self.rule.as_ref(), d.len())?;
        Some(Estimate::of(d, self.joint_t.unwrap_or(planned)))
    }

    fn blocks_needed(&self, estimate: Option<&Estimate>, outcome: Outcome) -> Option<u32> {
        only_if(outcome == Outcome::Inconclusive)?;
        let (estimate, margin) = (estimate?, self.record.header.plan.design.margin);
        let blocks = rule::blocks_to_find(margin, estimate.sd_log, self.rule.as_ref()?);
        blocks.filter(|blocks| *blocks > estimate.blocks)
    }
}

/// Joint critical t for several comparisons at one look, from sign flips of whole blocks. It accounts for
/// their correlation, so it is smaller than with 5 % split among them.
fn joint_t(record: &Record, blocks: &[BlockFigures], without: &[Option<NoSuccess>]) -> Option<f64> {
    let plan = &record.header.plan;
    let succeeds = |index: usize| without.get(index).is_none_or(Option::is_none);
    let compared = plan
        .comparisons
        .iter()
        .filter(|of| succeeds(of.baseline) && succeeds(of.candidate));
    let asked = compared.flat_map(|asked| plan.design.metrics().map(move |metric| (asked, metric)));
    let asked: Vec<(&plan::Comparison, Metric)> = asked.collect();
    only_if(plan.design.looks.waits_for_end() && asked.len() > 1 && rule::may_look(record))?;
    let row = |block: &BlockFigures| {
        let ratios = asked
            .iter()
            .map(|(of, metric)| block.log_ratio(*metric, of.baseline, of.candidate));
        ratios.collect::<Option<Vec<f64>>>()
    };
    let rows = blocks.iter().map(row).collect::<Option<Vec<Vec<f64>>>>()?;
    stats::joint_t(
        &rows,
        Resampling {
            seed: record.header.seed,
            resamples: FLIPS,
        },
    )
}

/// Log ratio of each complete block in which both were measured. `None` without blocks, or if any has no
/// value.
pub(crate) fn ratios(
    blocks: &[BlockFigures],
    asked: &plan::Comparison,
    metric: Metric,
) -> Option<Vec<f64>> {
    over(blocks, asked, |block, one, other| {
        block.log_ratio(metric, one, other)
    })
}

/// Candidate over baseline in each block that counts, in order. Empty if the comparison may show no number:
/// it is invalid or without success, waits for its single look, or a block has no value.
pub fn ratios_by_block(all: &[Series], comparison: &ComparisonResult) -> Vec<f64> {
    let series = |metric: Metric| all.iter().find(|series| series.of == metric);
    // Without a ratio of all blocks together, single ratios are withheld too.
    let Some(judged) = series(comparison.metric).filter(|_| comparison.ratio_so_far.is_some())
    else {
        return Vec::new();
    };
    let (source, sign) = judged_by(comparison.metric, judged.per_core);
    let Some(series) = series(source) else {
        return Vec::new();
    };
    let (one, other) = (comparison.candidate, comparison.baseline);
    let (above, below) = if sign < 0.0 {
        (other, one)
    } else {
        (one, other)
    };
    let of = |variant: usize| {
        series
            .values
            .get(variant)
            .map(Vec::as_slice)
            .unwrap_or_default()
    };
    let pairs = of(above).iter().zip(of(below)).zip(series.counts());
    pairs
        .filter(|(_, counts)| *counts)
        .filter_map(|((one, other), _)| Some((*one)? / (*other)?))
        .collect()
}

/// Computes a value from baseline and candidate in these blocks. Decided variants are not measured further,
/// so later blocks may lack them.
fn over(
    blocks: &[BlockFigures],
    asked: &plan::Comparison,
    of: impl Fn(&BlockFigures, usize, usize) -> Option<f64>,
) -> Option<Vec<f64>> {
    let (one, other) = (asked.baseline, asked.candidate);
    let measured =
        |block: &BlockFigures, index: usize| matches!(block.variants.get(index), Some(Some(_)));
    let shared = blocks
        .iter()
        .filter(|block| measured(block, one) && measured(block, other));
    let values = shared
        .map(|block| of(block, one, other))
        .collect::<Option<Vec<f64>>>();
    values.filter(|values| !values.is_empty())
}

/// Converts an estimate to an outcome, if nothing makes it invalid.
pub(crate) fn outcome(
    void: bool,
    estimate: Option<&Estimate>,
    metric: Metric,
    margin: f64,
) -> Outcome {
    match estimate.map(|estimate| stats::judge(estimate, margin, metric.row().direction)) {
        _ if void => Outcome::Invalid,
        Some(verdict) => verdict.into(),
        None => Outcome::Inconclusive,
    }
}

/// Candidate minus baseline, over blocks: for example the microseconds that a proxy adds to a request. It
/// presents the ratio in another form and decides nothing. Not available for throughput, because requests per
/// second do not add up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// Unit of the values.
    pub unit: Unit,
    /// Mean of the blocks' differences.
    pub value: f64,
    /// Lower end of the interval, by t with the critical value of the ratio.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Results of methods with weaker assumptions for the same blocks. They qualify the estimate. The verdict
/// depends only on its interval.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CrossCheck {
    /// Interval of the ratio by bootstrap-t over blocks, which is robust against skewed noise: 95 %, for a
    /// single look. `None` if resamples have no spread.
    pub bootstrap: Option<Interval>,
    /// Interval by t at the same level. The two differ for skewed noise.
    pub plain: Option<Interval>,
    /// Whether the signs alone, without assumptions about the width of the noise, show a difference. Needs at
    /// least ten blocks. `None` if the margin gives no scale.
    pub guard_rejects: Option<bool>,
    /// Correlation of neighbouring blocks, from −1 to 1.
    pub lag1: Option<f64>,
}

impl CrossCheck {
    /// Whether the bootstrap finds no difference although the estimate's own interval, which is wider than 95
    /// %, finds one.
    pub fn contradicts(&self, estimate: &Estimate) -> bool {
        let finds = estimate.low > 1.0 || estimate.high < 1.0;
        finds
            && self
                .bootstrap
                .as_ref()
                .is_some_and(|interval| interval.low <= 1.0 && interval.high >= 1.0)
    }
}

fn cross_check(d: &[f64], estimate: &Estimate, margin: f64, record: &Record) -> Option<CrossCheck> {
    let resampling = Resampling {
        seed: record.header.seed,
        resamples: RESAMPLES,
    };
    let bootstrap = stats::bootstrap_t(d, LEVEL, resampling);
    let plain_t = stats::plain_t(estimate.blocks, LEVEL)?;
    let plain = Estimate::of(d, plain_t).ok().map(|plain| Interval {
        low: plain.low,
        high: plain.high,
    });
    // The margin is the only width that is fixed before the data are seen.
    let guard_rejects =
        stats::guard(d, margin.ln_1p()).map(|evidence| evidence > -stats::ALPHA.ln());
    Some(CrossCheck {
        bootstrap,
        plain,
        guard_rejects,
        lag1: stats::lag1(d),
    })
}

/// The check errs in 1 of 100 experiments: 5 % divided by this number.
const AA_SHARES: usize = 5;

/// The baseline compared with its copy.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AaCheck {
    /// Label of the form "X vs itself".
    pub label: String,
    /// The first metric that differs, else that of the first verdict.
    pub metric: Metric,
    /// Copy over baseline, with an interval that contains 1 in 99 of 100 experiments at any number of looks.
    /// `None` below four blocks.
    pub estimate: Option<Estimate>,
    /// Whether the interval excludes 1.
    pub differs: bool,
}

/// Judges the copy. `None` if the experiment has none.
pub(crate) fn aa(record: &Record, blocks: &[BlockFigures]) -> Option<AaCheck> {
    let plan = &record.header.plan;
    let asked = plan.aa.as_ref()?;
    let metrics = plan.judged_metrics();
    let family = rule::family(
        record,
        (AA_SHARES * metrics.len()).min(COMPARISONS_MAX as usize),
    );
    let check = |metric: Metric| {
        let d = ratios(blocks, asked, metric);
        let estimate = d.and_then(|d| rule::estimate(record, family.clone(), &d));
        let differs = estimate
            .as_ref()
            .is_some_and(|estimate| estimate.low > 1.0 || estimate.high < 1.0);
        AaCheck {
            label: asked.label.clone(),
            metric,
            estimate,
            differs,
        }
    };
    // The first that differs, in whichever metric.
    metrics
        .iter()
        .map(|metric| check(*metric))
        .find(|check| check.differs)
        .or_else(|| Some(check(plan.design.metric)))
}
