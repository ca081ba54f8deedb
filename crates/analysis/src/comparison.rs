//! One candidate vs its baseline: estimate, verdict, and what it would take to know more. And the baseline vs its copy: a difference between
//! those two is none, and shows what the machine makes up.

use model::document::Tone;
use model::{Check, Finding, Metric, Unit, evidence, quantity};
use record::Record;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Error, Estimate, Interval, MeanInterval, Resampling, Rule, Verdict};

use crate::failure::{self, NoSuccess};
use crate::metric::{BlockFigures, metrics};
use crate::only_if;
use crate::rule;
use crate::variant::mean;

/// Resamples of the bootstrap.
const RESAMPLES: u32 = 2_000;
/// Level of both intervals that are held against each other.
const LEVEL: f64 = 0.95;
/// Sign flips drawn where several comparisons are looked at once.
const FLIPS: u32 = 9_999;

/// What may be said of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// One side, or both, had not a single success: there is nothing to compare, and that is the answer.
    NoSuccess,
    /// A finding forbids any conclusion.
    #[serde(rename = "void")]
    Invalid,
}

impl Outcome {
    /// Whether there is a difference.
    pub fn differs(self) -> bool {
        match self {
            Outcome::Better | Outcome::Worse => true,
            Outcome::Equivalent | Outcome::Inconclusive | Outcome::NoSuccess | Outcome::Invalid => false,
        }
    }

    /// Whether there can be no ratio, whatever was measured.
    pub fn has_no_ratio(self) -> bool {
        match self {
            Outcome::NoSuccess | Outcome::Invalid => true,
            Outcome::Better | Outcome::Worse | Outcome::Equivalent | Outcome::Inconclusive => false,
        }
    }

    /// Whether it is an answer, so that going on would buy nothing.
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

/// A comparison's result.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// Reads as "candidate vs baseline".
    pub label: String,
    /// Index of the baseline.
    pub baseline: usize,
    /// Index of the candidate.
    pub candidate: usize,
    /// The metric of the verdict.
    pub metric: Metric,
    /// Candidate over baseline with its interval; `None` where it is void or without success, where there are fewer than four blocks or no spread
    /// between them, and before the one look of an experiment that looks once.
    pub estimate: Option<Estimate>,
    /// What the ratio of capacities is at least, where the load generator or its connections were the limit of the candidate alone.
    pub at_least: Option<f64>,
    /// What it is at most, where they were the limit of the baseline alone.
    pub at_most: Option<f64>,
    /// Candidate less baseline in the metric's own unit, where there is an estimate and the metric is a cost.
    pub difference: Option<Difference>,
    /// What became of the side that never succeeded, such as `gzip: no response within 2s (0 of 340)`; of both, where both did not.
    pub no_success: Option<String>,
    /// The ratio, if every block gave the same one: it has no interval, and the verdict is that of the ratio.
    pub without_spread: Option<f64>,
    /// Candidate over baseline so far, from the first block on and without an interval: to watch, not to quote. `None` before the
    /// one look of an experiment that looks once.
    pub ratio_so_far: Option<f64>,
    /// The verdict.
    pub outcome: Outcome,
    /// Whether the interval excludes no difference, but the estimate itself is smaller than the margin: a difference that need not matter.
    pub is_slight: bool,
    /// For an inconclusive one: blocks in all that find a true difference of the margin in 8 of 10 runs, with the spread seen so far; where
    /// there are not as many yet.
    pub blocks_needed: Option<u32>,
    /// Seconds that they take in all; `None` where one run cannot have as many.
    pub seconds_needed: Option<f64>,
    /// What other methods say to the same blocks; `None` where there is no estimate.
    pub cross_check: Option<CrossCheck>,
    /// Of throughput that is judged per core-second: the same per second of the clock. Shown, never judged.
    pub per_second: Option<Estimate>,
    /// The other metrics: shown, never judged.
    pub exploratory: Vec<Exploratory>,
}

/// An estimate of a metric that the experiment did not choose.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Exploratory {
    /// The metric.
    pub metric: Metric,
    /// Candidate over baseline with the same interval's width as the chosen metric has.
    pub estimate: Estimate,
    /// Candidate less baseline, likewise.
    pub difference: Option<Difference>,
}

/// Every comparison of the plan, once for each metric that gets a verdict.
pub(crate) fn all(record: &Record, blocks: &[BlockFigures], findings: &[Finding]) -> Vec<Comparison> {
    let design = &record.header.plan.design;
    let variants = 0..record.header.plan.variants.len();
    let without: Vec<_> = variants.map(|index| failure::measured(record, index)).collect();
    let (rule, joint_t) = (rule::rule(record), joint_t(record, blocks, &without));
    let judge = Judge { record, blocks, findings, without: &without, rule, joint_t };
    let comparisons = record.header.plan.comparisons.iter();
    comparisons.flat_map(|asked| design.metrics().map(|metric| judge.one(asked, metric))).collect()
}

/// What all comparisons of a record share.
struct Judge<'a> {
    record: &'a Record,
    blocks: &'a [BlockFigures],
    findings: &'a [Finding],
    /// By variant: what became of its requests, where none succeeded.
    without: &'a [Option<NoSuccess>],
    rule: Option<Rule>,
    /// Where several are looked at once: the critical t of all together, in place of the rule's.
    joint_t: Option<f64>,
}

impl Judge<'_> {
    fn one(&self, asked: &plan::Comparison, metric: Metric) -> Comparison {
        let design = &self.record.header.plan.design;
        let voids = || self.findings.iter().filter(|found| found.voids(asked.baseline, asked.candidate));
        // What never was what it is called did not fail to succeed either.
        let untreated = voids().any(|found| found.check == Check::TreatmentNotApplied);
        let no_success = self.no_success(asked).filter(|_| !untreated);
        let void = voids().next().is_some() || no_success.is_some();
        // What is void prints instead of a number, never beside it.
        let ratios = ratios(self.blocks, asked, metric).filter(|_| !void);
        let found = ratios.as_deref().and_then(|d| self.estimate(d));
        let primary = found.as_ref().and_then(|found| found.as_ref().ok()).copied();
        let estimate = primary.as_ref();
        let [at_least, at_most] = if void { [None, None] } else { self.bounds(asked, metric) };
        let without_spread = match found {
            Some(Err(Error::NoSpread { ratio })) => Some(ratio),
            _ => None,
        };
        let outcome = match estimate {
            // Whatever else is wrong: that nothing came back needs no second block to be true.
            _ if no_success.is_some() => Outcome::NoSuccess,
            None if at_least.is_some_and(|low| low > 1.0 + design.margin) => Outcome::Better,
            None if at_most.is_some_and(|high| high < 1.0 / (1.0 + design.margin)) => Outcome::Worse,
            None => without_spread.map_or(outcome(void, None, metric, design.margin), |ratio| {
                let blocks = ratios.as_ref().map_or(0, |d| d.len() as u32);
                stats::judge_constant(ratio, blocks, design.margin, metric.row().direction).into()
            }),
            _ => outcome(void, estimate, metric, design.margin),
        };
        let cross = |estimate| cross_check(ratios.as_deref()?, estimate, design.margin, self.record);
        let blocks_needed = self.blocks_needed(estimate, outcome);
        let is_within_margin = |of: &Estimate| of.ratio.ln().abs() < design.margin.ln_1p();
        Comparison {
            label: asked.label.clone(),
            baseline: asked.baseline,
            candidate: asked.candidate,
            metric,
            without_spread,
            ratio_so_far: ratios.clone().filter(|_| rule::may_look(self.record)).and_then(mean).map(f64::exp),
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
            per_second: if void { None } else { self.per_second(asked, metric) },
            exploratory: if void { Vec::new() } else { self.exploratory(asked, metric) },
        }
    }

    /// What a ratio of capacities is at least, and at most, where one of them alone is a lower bound.
    fn bounds(&self, asked: &plan::Comparison, metric: Metric) -> [Option<f64>; 2] {
        let sample = |block: &BlockFigures, index| block.sample(metric, index);
        let is_bound = |index| self.blocks.iter().filter_map(|of| sample(of, index)).any(|of| of.at_least);
        let [baseline, candidate] = [asked.baseline, asked.candidate].map(is_bound);
        if metric != Metric::Capacity || baseline == candidate {
            return [None, None];
        }
        let ratio = |block: &BlockFigures, one, other| {
            Some((sample(block, other)?.value / sample(block, one)?.value).ln())
        };
        let ratios = over(self.blocks, asked, ratio);
        let found = ratios.and_then(|d| self.estimate(&d)).and_then(Result::ok);
        [found.filter(|_| candidate).map(|of| of.low), found.filter(|_| baseline).map(|of| of.high)]
    }

    fn no_success(&self, asked: &plan::Comparison) -> Option<String> {
        let plan = &self.record.header.plan;
        let told = |index: usize| {
            let answer = &self.without.get(index)?.as_ref()?.answer;
            Some(format!("{}: {answer}", plan.variants.get(index)?.name))
        };
        let told: Vec<String> = [asked.baseline, asked.candidate].into_iter().filter_map(told).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// With the critical t of the ratio, so that both hold together or not at all.
    fn difference(&self, asked: &plan::Comparison, metric: Metric, of: &Estimate) -> Option<Difference> {
        let unit = Some(metric.unit()).filter(|unit| *unit != Unit::PerS)?;
        let d = over(self.blocks, asked, |block, one, other| block.difference(metric, one, other))?;
        let MeanInterval { value, low, high } = MeanInterval::of(&d, of.critical_t)?;
        Some(Difference { unit, value, low, high })
    }

    fn per_second(&self, asked: &plan::Comparison, metric: Metric) -> Option<Estimate> {
        self.blocks.first().filter(|first| metric == Metric::Throughput && first.per_core)?;
        let plain = |block: &BlockFigures, one, other| block.plain_log_ratio(metric, one, other);
        self.estimate(&over(self.blocks, asked, plain)?)?.ok()
    }

    /// The metrics without a verdict, once for each comparison: with its first metric.
    fn exploratory(&self, asked: &plan::Comparison, metric: Metric) -> Vec<Exploratory> {
        let design = &self.record.header.plan.design;
        let others = metrics(self.record).filter(|other| design.metrics().all(|m| m != *other));
        let estimate = |metric| {
            let estimate = self.estimate(&ratios(self.blocks, asked, metric)?)?.ok()?;
            let difference = self.difference(asked, metric, &estimate);
            Some(Exploratory { metric, estimate, difference })
        };
        if metric == design.metric { others.filter_map(estimate).collect() } else { Vec::new() }
    }

    /// The estimate over all complete blocks; `None` where there may be none yet.
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

/// The critical t that holds for several comparisons together at one look: from flips of the signs of whole blocks, which knows how
/// alike they are and so asks for less than a share of the 5 % for each.
fn joint_t(record: &Record, blocks: &[BlockFigures], without: &[Option<NoSuccess>]) -> Option<f64> {
    let plan = &record.header.plan;
    let succeeds = |index: usize| without.get(index).is_none_or(Option::is_none);
    let compared = plan.comparisons.iter().filter(|of| succeeds(of.baseline) && succeeds(of.candidate));
    let asked = compared.flat_map(|asked| plan.design.metrics().map(move |metric| (asked, metric)));
    let asked: Vec<(&plan::Comparison, Metric)> = asked.collect();
    only_if(plan.design.looks.waits_for_end() && asked.len() > 1 && rule::may_look(record))?;
    let row = |block: &BlockFigures| {
        let ratios = asked.iter().map(|(of, metric)| block.log_ratio(*metric, of.baseline, of.candidate));
        ratios.collect::<Option<Vec<f64>>>()
    };
    let rows = blocks.iter().map(row).collect::<Option<Vec<Vec<f64>>>>()?;
    stats::joint_t(&rows, Resampling { seed: record.header.seed, resamples: FLIPS })
}

/// The log-ratio of each complete block in which both were measured; `None` without blocks, or where any has no value.
pub(crate) fn ratios(blocks: &[BlockFigures], asked: &plan::Comparison, metric: Metric) -> Option<Vec<f64>> {
    over(blocks, asked, |block, one, other| block.log_ratio(metric, one, other))
}

/// Something of the baseline and the candidate in those blocks: what is decided is measured no further.
fn over(
    blocks: &[BlockFigures],
    asked: &plan::Comparison,
    of: impl Fn(&BlockFigures, usize, usize) -> Option<f64>,
) -> Option<Vec<f64>> {
    let (one, other) = (asked.baseline, asked.candidate);
    let measured = |block: &BlockFigures, index: usize| matches!(block.variants.get(index), Some(Some(_)));
    let shared = blocks.iter().filter(|block| measured(block, one) && measured(block, other));
    let values = shared.map(|block| of(block, one, other)).collect::<Option<Vec<f64>>>();
    values.filter(|values| !values.is_empty())
}

/// What an estimate says, where nothing forbids it.
pub(crate) fn outcome(void: bool, estimate: Option<&Estimate>, metric: Metric, margin: f64) -> Outcome {
    match estimate.map(|estimate| stats::judge(estimate, margin, metric.row().direction)) {
        _ if void => Outcome::Invalid,
        Some(verdict) => verdict.into(),
        None => Outcome::Inconclusive,
    }
}

/// Candidate less baseline, over blocks: what a proxy adds to a request, in microseconds and not in per cent. It tells what the ratio says
/// once more and decides nothing. Of throughput there is none: requests per second do not add up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// What it is counted in.
    pub unit: Unit,
    /// Mean of the blocks' differences.
    pub value: f64,
    /// Lower end of its interval, by t with the critical value of the ratio's.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What methods that assume less say to the blocks of an estimate. They qualify it; the verdict is the interval's alone.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CrossCheck {
    /// The ratio's interval by bootstrap-t over blocks, which bears skewed noise; 95 %, as if looked at once. `None` where
    /// resamples have no spread.
    pub bootstrap: Option<Interval>,
    /// The same by t: the two differ where noise is skewed.
    pub plain: Option<Interval>,
    /// Whether signs alone, without any trust in how wide noise is, show a difference; it takes ten blocks at least. `None` where
    /// the margin gives it no scale.
    pub guard_rejects: Option<bool>,
    /// Correlation of neighbouring blocks, from −1 to 1.
    pub lag1: Option<f64>,
}

impl CrossCheck {
    /// Whether the bootstrap finds no difference where the estimate's own interval, which is wider than 95 %, finds one.
    pub fn contradicts(&self, estimate: &Estimate) -> bool {
        let finds = estimate.low > 1.0 || estimate.high < 1.0;
        finds && self.bootstrap.as_ref().is_some_and(|interval| interval.low <= 1.0 && interval.high >= 1.0)
    }
}

fn cross_check(d: &[f64], estimate: &Estimate, margin: f64, record: &Record) -> Option<CrossCheck> {
    let resampling = Resampling { seed: record.header.seed, resamples: RESAMPLES };
    let bootstrap = stats::bootstrap_t(d, LEVEL, resampling);
    let plain_t = stats::plain_t(estimate.blocks, LEVEL)?;
    let plain = Estimate::of(d, plain_t).ok().map(|plain| Interval { low: plain.low, high: plain.high });
    // The margin is the one width that is fixed before anything is seen.
    let guard_rejects = stats::guard(d, margin.ln_1p()).map(|evidence| evidence > -stats::ALPHA.ln());
    Some(CrossCheck { bootstrap, plain, guard_rejects, lag1: stats::lag1(d) })
}

/// The check errs in 1 of 100 experiments: 5 % shared among this many.
const AA_SHARES: usize = 5;

/// The baseline vs its copy.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AaCheck {
    /// Reads as "X vs itself".
    pub label: String,
    /// The first metric that differs, else that of the first verdict.
    pub metric: Metric,
    /// Copy over baseline, with an interval that holds 1 in 99 of 100 experiments whenever it is looked at. `None` below four blocks.
    pub estimate: Option<Estimate>,
    /// Whether the interval excludes 1.
    pub differs: bool,
}

/// Judges the copy; `None` where the experiment has none.
pub(crate) fn aa(record: &Record, blocks: &[BlockFigures]) -> Option<AaCheck> {
    let plan = &record.header.plan;
    let asked = plan.aa.as_ref()?;
    let metrics = plan.judged_metrics();
    let family = rule::family(record, AA_SHARES * metrics.len());
    let check = |metric: Metric| {
        let d = ratios(blocks, asked, metric);
        let estimate = d.and_then(|d| rule::estimate(record, family.clone(), &d));
        let differs = estimate.as_ref().is_some_and(|estimate| estimate.low > 1.0 || estimate.high < 1.0);
        AaCheck { label: asked.label.clone(), metric, estimate, differs }
    };
    // The first that differs, in whichever metric.
    metrics
        .iter()
        .map(|metric| check(*metric))
        .find(|check| check.differs)
        .or_else(|| Some(check(plan.design.metric)))
}

pub(crate) fn aa_finding(aa: &AaCheck) -> Option<Finding> {
    let estimate = aa.estimate.as_ref().filter(|_| aa.differs)?;
    let (label, metric) = (&aa.label, aa.metric.name());
    Some(Finding::void(
        Check::AaDiffers,
        evidence!(
            "{label}: {metric} differs by {}, and the two are the same",
            quantity::change_told(estimate)
        ),
        "the machine makes up differences of this size, or the copies share something that the one takes from the other (a port, a file, a \
         cache); no difference of this run may be believed",
    ))
}
