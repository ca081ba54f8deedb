//! From a record to what may be concluded: figures of each variant, estimates, verdicts, findings.
//!
//! Pure: the lab calls [`conclude`] after each block to decide whether to stop, and every report calls it
//! on the record it is made from, so that no two of them can disagree. It reads nothing but the record.

mod aa;
mod across;
mod assumption;
mod calibration;
mod comparison;
mod effect;
mod essentials;
mod failure;
mod forecast;
mod gate;
mod generators;
mod metric;
mod no_success;
mod pointless;
mod rule;
mod service;
mod spread;
mod trend;
mod variant;

pub mod capacity;
pub mod checks;
pub mod measurement;
pub mod series;
pub mod tune;

pub use aa::AaCheck;
pub use across::{
    Across, MEMORY_TOLERANCE, SESSIONS_MIN, Shift, across, differences, machine_mark, machines, other_machine,
};
pub use assumption::{Assumption, Standing};
pub use calibration::{Calibration, Copies, Found, Noise, Steal};
pub use capacity::{Capacity, LimitedBy, Overload, RatePoint};
pub use checks::{per_core, waiting_variants};
pub use comparison::{Comparison, CrossCheck, Difference, Exploratory, Outcome};
pub use effect::{Effect, Kind};
pub use essentials::{Compared, Conditions, ESSENTIALS_VERSION, Essentials, Figure, plan_mark};
pub use failure::{Failure, failures};
pub use forecast::{POWER, Pace, blocks_to_find, budget_s};
pub use gate::{Gate, Judgement, Measured, Ruling, Unfit, gated, limits_settled};
pub use generators::{GeneratorShare, generators};
pub use measurement::{Bend, Kept, Measurement, Sampled, Window, measurement};
pub use metric::metrics;
use model::Metric;
pub use model::{Check, Finding, Grade, Unit};
pub use no_success::NoSuccess;
pub use pointless::{fruitless, untreated, void_for_good};
pub use rule::{rule, rule_of};
pub use series::{Series, ratios_by_block, series};
pub use service::{SERVING_SHARE_MIN, ServiceCost};
pub use spread::Spread;
pub use trend::{Asked, Dated, Line, LineOf, Point, Shifted, Stretch, TREND_SEED, Trend, trend};
pub use variant::{
    Endpoint, ResponseTime, Variant, latencies, latencies_together, responses, responses_together,
};

use metric::BlockFigures;
use record::Record;
use schemars::JsonSchema;
use serde::Serialize;

/// All that may be said of a record.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Conclusion {
    /// Blocks in which every variant was measured.
    pub blocks: u32,
    /// Blocks besides them that count for nothing, for what the machine did meanwhile.
    pub blocks_dropped: Vec<DroppedBlock>,
    /// Blocks that fit the time, as estimated after the third; of old records those at which the last look was to be taken.
    pub blocks_planned: Option<u32>,
    /// Whether intervals are withheld until the run ends, because the experiment looks once.
    pub awaits_look: bool,
    /// Each variant of the plan, in its order.
    pub variants: Vec<Variant>,
    /// Each comparison of the plan in its order, once for each metric that gets a verdict.
    pub comparisons: Vec<Comparison>,
    /// What each factor does on average over the others, and what two of them do to each other; empty unless there are two
    /// factors or more.
    pub effects: Vec<Effect>,
    /// What each variant bears within the limits of `design.slo`; empty where capacity is not measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capacities: Vec<Capacity>,
    /// The baseline vs its copy, where the experiment has one.
    pub aa: Option<AaCheck>,
    /// What qualifies or voids the result, the gravest first.
    pub findings: Vec<Finding>,
    /// The assumptions of the result, and what this record shows of them.
    pub assumptions: Vec<Assumption>,
    /// Each generator's share of the load, in their order; none where load came from the run's own process.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorShare>,
}

/// A block that counts for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DroppedBlock {
    /// Its number.
    pub block: u32,
    /// What machine or generators did meanwhile, in words with figures.
    pub why: String,
}

impl Conclusion {
    /// Whether any finding voids a comparison, or all of them.
    pub fn is_void(&self) -> bool {
        self.findings.iter().any(|finding| finding.grade == Grade::Invalid)
    }

    /// The first finding of a check.
    pub fn finding(&self, check: Check) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.check == check)
    }

    /// Whether one forbids conclusions about this variant.
    pub fn voids(&self, variant: usize) -> bool {
        self.findings.iter().any(|finding| finding.voids(variant, variant))
    }

    /// Whether every comparison has an answer, so that going on would buy nothing.
    pub fn is_decided(&self) -> bool {
        let mut comparisons = self.comparisons.iter();
        !self.comparisons.is_empty() && comparisons.all(|comparison| comparison.outcome.is_decided())
    }

    /// Whether a variant has to be measured further for any of its comparisons.
    pub fn wants(&self, variant: usize) -> bool {
        let mut its =
            self.comparisons.iter().filter(|of| of.baseline == variant || of.candidate == variant).peekable();
        its.peek().is_none() || its.any(|comparison| !comparison.outcome.is_decided())
    }

    /// Whether the factors' effects are the answer, and comparisons of single variants details of it: no factor changes what another does.
    pub fn effects_lead(&self) -> bool {
        effect::lead(&self.effects)
    }

    /// Whether a main effect says nothing by itself, for what its factor does depends on another one at least as much.
    pub fn is_dwarfed(&self, effect: &Effect) -> bool {
        effect::is_dwarfed(effect, &self.effects)
    }

    /// By how much the CPU time per request of these two variants differs; `None` where no such figure is allowed.
    pub fn cpu_difference(&self, baseline: usize, candidate: usize) -> Option<Difference> {
        let mut both =
            self.comparisons.iter().filter(|of| (of.baseline, of.candidate) == (baseline, candidate));
        both.find_map(|of| {
            let other = || of.exploratory.iter().find(|other| other.metric == Metric::CpuPerRequest);
            if of.metric == Metric::CpuPerRequest { of.difference } else { other()?.difference }
        })
    }
}

/// Draws every conclusion that a record allows.
pub fn conclude(record: &Record) -> Conclusion {
    let blocks = BlockFigures::all(record);
    let aa = aa::check(record, &blocks);
    let mut findings = match measurement(record) {
        Some(measured) => measured.all_findings(),
        None => checks::all(record, &blocks),
    };
    findings.extend(aa.as_ref().and_then(aa::finding));
    findings.sort_by_key(|finding| (finding.grade, finding.check));
    let variants = 0..record.header.plan.variants.len();
    let variants = variants.map(|index| Variant::of(record, &blocks, index)).collect();
    let dropped = record
        .blocks
        .iter()
        .filter_map(|block| Some(DroppedBlock { block: block.number, why: block.dropped.clone()? }));
    let comparisons = comparison::all(record, &blocks, &findings);
    let effects = effect::all(record, &blocks, &findings);
    Conclusion {
        blocks: u32::try_from(record.complete_blocks().count()).unwrap_or(u32::MAX),
        blocks_dropped: dropped.collect(),
        blocks_planned: record.blocks_planned,
        awaits_look: !rule::may_look(record),
        variants,
        assumptions: assumption::all(record, &comparisons, aa.as_ref()),
        comparisons,
        effects,
        capacities: capacity::all(record),
        aa,
        findings,
        generators: generators::generators(record),
    }
}
