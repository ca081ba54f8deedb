//! Draws conclusions from a record: figures of each variant, estimates, verdicts, findings.
//!
//! This crate is pure. The lab calls [`conclude`] after each block to decide whether to stop, and every
//! report calls it on its record, so that the results always agree. It reads nothing but the record.

mod across;
mod assumption;
mod calibration;
mod checks;
mod comparison;
mod effect;
mod essentials;
mod failure;
mod gate;
mod metric;
mod rule;
mod sensitivity;
mod sums;
mod throughput;
mod trend;
mod variant;
mod window;

pub mod capacity;
pub mod measurement;
pub mod tune;
pub mod usage;

pub use across::{Across, SESSIONS_MIN, Shift, across, differences, machine_mark, machines};
pub use assumption::{Assumption, Standing};
pub use calibration::{BudgetReach, Calibration, Copies, Noise, Spread, Steal};
pub use capacity::{Capacity, Erratic, LimitedBy, Overload, RatePoint};
pub use checks::Check;
pub use checks::row::{CheckRow, Subject};
pub use checks::runner::void_for_good;
pub use checks::v01_treatment_not_applied::untreated;
pub use checks::v02_environment_lost::WATCHED_VARIABLES;
pub use checks::v21_warm_up_inside::changing_variants;
pub use checks::v49_generators_apart::{LateBegin, late_begin};
pub use comparison::{
    AaCheck, ComparisonResult, CrossCheck, Difference, Exploratory, Outcome, ratios_by_block,
};
pub use effect::{Effect, EffectKind};
pub use essentials::{ComparedMetric, Conditions, ESSENTIALS_VERSION, Essentials, MetricFigure};
pub use failure::{FailureCount, NoSuccess, all_fruitless, failures};
pub use gate::{Gate, Judgement, MeasuredFigure, Ruling, gated, limits_settled};
pub use measurement::{Bend, Measurement, RateKept, measurement};
pub use metric::{Series, metrics, series};
use model::Metric;
pub use model::{Finding, Grade, Unit};
pub use rule::{BlockPace, POWER, blocks_to_find, budget_s, rule, rule_of};
pub use sensitivity::{NoiseCounters, Sensitivity, SensitivitySource};
pub use throughput::{per_core, throughput_per_s, waiting_variants};
pub use trend::{
    Dated, ExperimentTrend, LineOf, RecordRun, Shifted, TREND_SEED, TrendLine, TrendPoint,
    TrendQuery, trend,
};
pub use variant::{
    EndpointFigures, GeneratorShare, ResponseTime, ServiceCost, VariantFigures, generators,
    latencies, latencies_together, responses, responses_together,
};

pub use window::{MeasuredWindow, SampledContent};

use checks::v41_aa_differs::aa_differs;
use checks::v55_breaks_far_below::breaks_far_below;
use metric::BlockFigures;
use record::{Block, Record};
use schemars::JsonSchema;
use serde::Serialize;

/// All conclusions from a record.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Conclusion {
    /// Number of blocks in which every variant was measured.
    pub blocks: u32,
    /// Discarded blocks with their reasons. They are not included in `blocks`.
    pub blocks_dropped: Vec<DroppedBlock>,
    /// Number of blocks that fit into the time, as estimated after the third.
    pub blocks_planned: Option<u32>,
    /// Whether intervals are withheld until the run ends, because the experiment looks only once.
    pub awaits_look: bool,
    /// The variants of the plan, in its order.
    pub variants: Vec<VariantFigures>,
    /// The comparisons of the plan in its order, once for each metric with a verdict.
    pub comparisons: Vec<ComparisonResult>,
    /// Average effects of factors, and interactions of two factors. Empty with fewer than two factors.
    pub effects: Vec<Effect>,
    /// Capacity of each variant within the limits of `design.slo`. Empty if capacity is not measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capacities: Vec<Capacity>,
    /// Comparison of the baseline with its copy, if the experiment has one.
    pub aa: Option<AaCheck>,
    /// Findings that qualify the result or make it invalid, most severe first.
    pub findings: Vec<Finding<Check>>,
    /// Assumptions of the result, and whether this record supports them.
    pub assumptions: Vec<Assumption>,
    /// Each generator's share of the load, in order. Empty if load came from the run's own process.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorShare>,
}

/// A discarded block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DroppedBlock {
    /// Number of the block.
    pub block: u32,
    /// The cause in the machine or the generators, as text with figures.
    pub why: String,
}

impl DroppedBlock {
    /// `None` if the block was not dropped.
    pub(crate) fn of(block: &Block) -> Option<DroppedBlock> {
        Some(DroppedBlock {
            block: block.number,
            why: block.dropped.clone()?,
        })
    }
}

impl Conclusion {
    /// Whether any finding makes a comparison invalid, or all of them.
    pub fn is_void(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.grade == Grade::Invalid)
    }

    /// Returns the first finding of a check.
    pub fn finding(&self, check: Check) -> Option<&Finding<Check>> {
        self.findings.iter().find(|finding| finding.check == check)
    }

    /// In a comparison of capacities, the variant whose capacity is only a lower bound. The ratio is then at
    /// most a one-sided bound.
    pub fn known_from_below(&self, of: &ComparisonResult) -> Option<&Capacity> {
        let sides = [of.baseline, of.candidate]
            .into_iter()
            .filter(|_| of.metric == Metric::Capacity);
        sides
            .filter_map(|index| self.capacities.get(index))
            .find(|found| found.at_least)
    }

    /// In a comparison of capacities, the variant whose capacity cannot be stated.
    pub fn unknown_capacity(&self, of: &ComparisonResult) -> Option<&Capacity> {
        let sides = [of.baseline, of.candidate]
            .into_iter()
            .filter(|_| of.metric == Metric::Capacity);
        sides
            .filter_map(|index| self.capacities.get(index))
            .find(|found| found.erratic.is_some())
    }

    /// Factor by which the interval of a variant's figure is widened on either side, because windows of a
    /// capacity are finite.
    pub(crate) fn bias(&self, metric: Metric, variant: usize) -> f64 {
        let capacity = self
            .capacities
            .get(variant)
            .filter(|_| metric == Metric::Capacity);
        capacity.map_or(1.0, |of| of.bias)
    }

    /// Whether a finding makes the figures of this variant invalid.
    pub fn voids(&self, variant: usize) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.voids(variant, variant))
    }

    /// Whether every comparison is decided, so that more blocks would not help.
    pub fn is_decided(&self) -> bool {
        let mut comparisons = self.comparisons.iter();
        !self.comparisons.is_empty()
            && comparisons.all(|comparison| comparison.outcome.is_decided())
    }

    /// Whether a comparison of this variant is still undecided.
    pub fn wants(&self, variant: usize) -> bool {
        let its = |of: &&ComparisonResult| of.baseline == variant || of.candidate == variant;
        let mut its = self.comparisons.iter().filter(its).peekable();
        its.peek().is_none() || its.any(|comparison| !comparison.outcome.is_decided())
    }

    /// Difference of the CPU time per request of two variants. `None` if it cannot be given.
    pub fn cpu_difference(&self, baseline: usize, candidate: usize) -> Option<Difference> {
        let pairs = self.comparisons.iter();
        let mut both = pairs.filter(|of| (of.baseline, of.candidate) == (baseline, candidate));
        both.find_map(|of| {
            let other = || {
                of.exploratory
                    .iter()
                    .find(|other| other.metric == Metric::CpuPerRequest)
            };
            if of.metric == Metric::CpuPerRequest {
                of.difference
            } else {
                other()?.difference
            }
        })
    }
}

/// Returns `Some(())` if `so` is true, for early returns: `only_if(…)?`.
fn only_if(so: bool) -> Option<()> {
    so.then_some(())
}

/// Default maximum number of items named in a finding.
pub(crate) const NAMED_MAX: usize = 3;

/// Joins the first few of several items, and the number of the others: `a; b; 3 more`.
pub(crate) fn few(
    all: impl IntoIterator<Item = impl Into<String>>,
    most: usize,
    between: &str,
) -> String {
    let mut all: Vec<String> = all.into_iter().map(Into::into).collect();
    let more = all.len().saturating_sub(most);
    all.truncate(most);
    all.extend((more > 0).then(|| format!("{more} more")));
    all.join(between)
}

/// Whether `word` is in a list of words separated by spaces.
fn is_one_of(words: &str, word: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// Whether a verdict refutes a finding that a setting had no effect.
fn shows_effect(finding: &Finding<Check>, comparisons: &[ComparisonResult]) -> bool {
    let is_of = |of: &ComparisonResult| finding.variants == [of.baseline, of.candidate];
    (finding.check, finding.grade) == (Check::NothingObservable, Grade::Note)
        && comparisons
            .iter()
            .any(|of| is_of(of) && of.outcome.differs())
}

/// Whether the verdicts of all comparisons with this variant stand despite the finding that it waited: a
/// difference is real, and only equal or open results may be those of the wait.
fn stands_despite_waiting(finding: &Finding<Check>, comparisons: &[ComparisonResult]) -> bool {
    let concerns = |variant: &usize| finding.variants.contains(variant);
    let mut concerned = comparisons
        .iter()
        .filter(|of| concerns(&of.baseline) || concerns(&of.candidate))
        .peekable();
    finding.check == Check::ServiceNotSaturated
        && concerned.peek().is_some()
        && concerned.all(|of| of.outcome.differs())
}

/// Draws all conclusions from a record.
pub fn conclude(record: &Record) -> Conclusion {
    let searched = capacity::searched(record);
    let blocks = BlockFigures::with(record, &searched);
    let aa = comparison::aa(record, &blocks);
    let mut findings = match measurement(record) {
        Some(measured) => measured.all_findings(),
        None => checks::runner::all(record, &blocks),
    };
    findings.extend(aa.as_ref().and_then(aa_differs));
    let mut capacities: Vec<Capacity> = searched
        .iter()
        .enumerate()
        .map(|(variant, of)| Capacity::of(record, variant, of))
        .collect();
    findings.extend(
        capacities
            .iter()
            .enumerate()
            .filter_map(|(variant, of)| breaks_far_below(of, variant)),
    );
    findings.sort_by_key(|finding| (finding.grade, finding.check));
    let variants = 0..record.header.plan.variants.len();
    let variants = variants
        .map(|index| VariantFigures::of(record, &blocks, index))
        .collect();
    let comparisons = comparison::all(record, &blocks, &findings);
    findings.retain(|finding| !shows_effect(finding, &comparisons));
    for finding in &mut findings {
        if stands_despite_waiting(finding, &comparisons) {
            finding.grade = Grade::Note;
        }
    }
    findings.sort_by_key(|finding| (finding.grade, finding.check));
    let effects = effect::all(record, &blocks, &findings);
    for (variant, of) in capacities.iter_mut().enumerate() {
        if findings
            .iter()
            .any(|finding| finding.voids(variant, variant))
        {
            of.forget_figures();
        }
    }
    Conclusion {
        blocks: record.blocks_kept(),
        blocks_dropped: record.blocks.iter().filter_map(DroppedBlock::of).collect(),
        blocks_planned: record.blocks_planned,
        awaits_look: !rule::may_look(record),
        variants,
        assumptions: assumption::all(record, &comparisons, aa.as_ref()),
        comparisons,
        effects,
        capacities,
        aa,
        findings,
        generators: generators(record),
    }
}
