//! The stop rule of a record, and the forecast of the run time to find a difference. Reports, gates, dry runs
//! and calibrations use the same forecast.
//!
//! The forecast is based on power: the smallest run that finds a true difference of this size with a
//! probability of 80 %, for blocks with the observed spread. It ignores the observed difference, which means
//! little in an inconclusive record. Pure.

use plan::LookRule;
use record::Record;
use stats::{Estimate, Rule};

/// The rule for the record's comparisons. `None` if there are too many comparisons.
pub fn rule(record: &Record) -> Option<Rule> {
    let plan = &record.header.plan;
    family(
        record,
        plan.comparisons.len() * plan.design.metrics().count(),
    )
}

/// The rule of the record for `members` estimates that share the error rate.
pub(crate) fn family(record: &Record, members: usize) -> Option<Rule> {
    match record.header.plan.design.looks {
        LookRule::EachBlock => Rule::each_block(count(members), ended_by_plan(record)),
        LookRule::Once => Rule::once(count(members)),
    }
}

/// The rule of a future run in which `members` estimates share the error rate.
pub fn rule_of(looks: LookRule, members: usize) -> Option<Rule> {
    match looks {
        LookRule::EachBlock => Rule::each_block(count(members), None),
        LookRule::Once => Rule::once(count(members)),
    }
}

/// The number of blocks of a run that ended for a reason independent of its results.
fn ended_by_plan(record: &Record) -> Option<u32> {
    record.end()?.is_planned().then(|| record.blocks_kept())
}

fn count(members: usize) -> u32 {
    u32::try_from(members.max(1)).unwrap_or(u32::MAX)
}

/// Estimates a ratio from log ratios by a rule. `None` if no interval may be shown yet.
pub(crate) fn estimate(record: &Record, rule: Option<Rule>, d: &[f64]) -> Option<Estimate> {
    Estimate::of(d, critical_t(record, rule.as_ref(), d.len())?).ok()
}

/// Critical t of a rule after this number of blocks. `None` if there is no interval yet, or none may be
/// shown.
pub(crate) fn critical_t(record: &Record, rule: Option<&Rule>, blocks: usize) -> Option<f64> {
    rule.filter(|_| may_look(record))?
        .critical_t(u32::try_from(blocks).ok()?)
}

/// Whether an interval may be shown. If the experiment looks once, only after the end of the run, because
/// showing it earlier would be another look.
pub(crate) fn may_look(record: &Record) -> bool {
    !record.header.plan.design.looks.waits_for_end() || record.ended.is_some()
}

/// Probability of finding a true difference.
pub const POWER: f64 = 0.8;
/// Number of complete blocks after which warm-up, slices and their length are settled.
const SETTLED_AFTER: usize = 3;
/// Budgets are suggested in steps of this many seconds, with ten per cent of room.
const BUDGET_STEP_S: f64 = 30.0;
const BUDGET_ROOM: f64 = 1.1;

/// Number of blocks needed to find a true difference (0.03 is 3 %). More than [`stats::BLOCKS_MAX`] exceeds a
/// single run. `None` if even [`stats::BLOCKS_NEEDED_MAX`] are not enough.
pub fn blocks_to_find(difference: f64, sd_log: f64, rule: &Rule) -> Option<u32> {
    stats::blocks_for(difference.ln_1p(), sd_log, POWER, rule)
}

/// The budget to suggest for a run that takes this many seconds.
pub fn budget_s(run_s: f64) -> f64 {
    (run_s * BUDGET_ROOM / BUDGET_STEP_S).ceil().max(2.0) * BUDGET_STEP_S
}

/// Duration of blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockPace {
    /// Seconds of the first block, which observes the warm-up.
    pub first_block_s: f64,
    /// Seconds of each later block, once the lengths of its parts are settled.
    pub block_s: f64,
    /// Number of variants in a block.
    pub variants: usize,
}

impl BlockPace {
    /// Measures the pace in a record. `None` if no block is complete.
    pub fn of(record: &Record) -> Option<BlockPace> {
        let seconds: Vec<f64> = record
            .complete_blocks()
            .filter_map(|block| block.seconds)
            .collect();
        let settled = stats::mean(seconds.iter().skip(SETTLED_AFTER).copied());
        let block_s = settled.or(seconds.last().copied())?;
        // Even if dropped, this block observed the warm-up.
        let first_block_s = record
            .blocks
            .iter()
            .find_map(|block| block.seconds)
            .unwrap_or(block_s);
        Some(BlockPace {
            first_block_s,
            block_s,
            variants: record.header.plan.variants.len(),
        })
    }

    /// Seconds of a run with this number of blocks and variants.
    pub fn run_s(&self, blocks: u32, variants: usize) -> f64 {
        let all_s = self.first_block_s + f64::from(blocks.saturating_sub(1)) * self.block_s;
        all_s * variants as f64 / self.variants.max(1) as f64
    }
}

/// Seconds of a run with this number of blocks, at the pace of the record. `None` if the number exceeds a
/// single run.
pub(crate) fn seconds(record: &Record, blocks: Option<u32>) -> Option<f64> {
    let blocks = blocks.filter(|blocks| *blocks <= stats::BLOCKS_MAX)?;
    Some(BlockPace::of(record)?.run_s(blocks, record.header.plan.variants.len()))
}
