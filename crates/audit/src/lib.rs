//! From a record to what may be concluded: figures of each variant, estimates, verdicts, findings.
//!
//! Pure: the lab calls [`conclude`] after each block to decide whether to stop, and every report calls it
//! on the record it is made from, so that no two of them can disagree. It reads nothing but the record.

mod comparison;
mod finding;
mod metric;
mod variant;

pub mod checks;

pub use comparison::{Comparison, Exploratory, Outcome};
pub use finding::{Finding, Grade};
pub use metric::{direction, metrics};
pub use variant::{ResponseTime, Variant, latency, response};

use metric::BlockFigures;
use record::Record;
use serde::Serialize;
use stats::Looks;

/// All that may be said of a record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conclusion {
    /// Blocks in which every variant was measured.
    pub blocks: u32,
    /// Blocks at which the last look is, or was to be, taken.
    pub blocks_planned: Option<u32>,
    /// Each variant of the plan, in its order.
    pub variants: Vec<Variant>,
    /// Each comparison of the plan, in its order.
    pub comparisons: Vec<Comparison>,
    /// What qualifies or voids the result, the gravest first.
    pub findings: Vec<Finding>,
}

impl Conclusion {
    /// Whether any finding voids a comparison, or all of them.
    pub fn is_void(&self) -> bool {
        self.findings.iter().any(|finding| finding.grade == Grade::Void)
    }

    /// Whether every comparison has an answer, so that going on would buy nothing.
    pub fn is_decided(&self) -> bool {
        let decided = |comparison: &Comparison| {
            matches!(comparison.outcome, Outcome::Better | Outcome::Worse | Outcome::Equivalent)
        };
        !self.comparisons.is_empty() && self.comparisons.iter().all(decided)
    }
}

/// The looks of a record's stop rule: as settled in the run, or as the budget-independent default.
pub fn looks(record: &Record) -> Option<Looks> {
    let comparisons = record.header.plan.comparisons.len().max(1);
    let blocks = record.blocks_planned.or(record.header.plan.design.blocks).unwrap_or(DEFAULT_BLOCKS);
    Looks::plan(blocks, u32::try_from(comparisons).unwrap_or(u32::MAX)).ok()
}

/// The final number of blocks that is assumed until the run has settled one.
const DEFAULT_BLOCKS: u32 = 30;

/// Draws every conclusion that a record allows.
pub fn conclude(record: &Record) -> Conclusion {
    let blocks = BlockFigures::all(record);
    let mut findings = checks::all(record);
    findings.extend(checks::unresolved(record, &blocks));
    findings.sort_by_key(|finding| finding.grade);
    let variants = 0..record.header.plan.variants.len();
    let variants = variants.map(|index| Variant::of(record, &blocks, index)).collect();
    Conclusion {
        blocks: u32::try_from(record.complete_blocks().count()).unwrap_or(u32::MAX),
        blocks_planned: record.blocks_planned,
        variants,
        comparisons: comparison::all(record, &blocks, &findings),
        findings,
    }
}
