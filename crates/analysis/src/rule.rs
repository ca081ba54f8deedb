//! The stop rule of a record, and how long it takes to find a difference by it: one forecast, the same in reports, gates, dry runs and
//! calibrations.
//!
//! The forecast is by power: the smallest run at whose end a true difference of that size is found with a chance of 80 %, for blocks that
//! spread as those seen. The difference that was seen does not enter: of a record that is inconclusive it says little. Pure.

use plan::LookRule;
use record::Record;
use stats::{Estimate, Rule};

/// The number of blocks that an old record is taken to have planned which never settled one.
const PLANNED_BLOCKS: u32 = 30;

/// The rule by which the record's comparisons are judged; `None` where there are too many of them, and where the blocks that an old
/// record settled on allow no verdict.
pub fn rule(record: &Record) -> Option<Rule> {
    let plan = &record.header.plan;
    family(record, plan.comparisons.len() * plan.design.metrics().count())
}

/// The same rule for another number of estimates that share the chance to err.
pub(crate) fn family(record: &Record, members: usize) -> Option<Rule> {
    let design = &record.header.plan.design;
    match design.looks {
        LookRule::EachBlock => Rule::each_block(count(members), ended_by_plan(record)),
        LookRule::Once | LookRule::Always => rule_of(design.looks, members),
        LookRule::Planned => {
            let blocks = record.blocks_planned.or(design.blocks).unwrap_or(PLANNED_BLOCKS);
            Rule::planned(blocks, count(members))
        }
    }
}

/// The rule of a run that is still to come, in which so many estimates share the chance to err.
pub fn rule_of(looks: LookRule, members: usize) -> Option<Rule> {
    match looks {
        LookRule::EachBlock | LookRule::Planned => Rule::each_block(count(members), None),
        LookRule::Once => Rule::once(count(members)),
        LookRule::Always => Rule::sequence(count(members)),
    }
}

/// The blocks of a run that ended for a reason that does not depend on what it found.
fn ended_by_plan(record: &Record) -> Option<u32> {
    record.end()?.is_planned().then(|| record.blocks_kept())
}

fn count(members: usize) -> u32 {
    u32::try_from(members.max(1)).unwrap_or(u32::MAX)
}

/// An estimate of these log-ratios by a rule; `None` where there may be none yet.
pub(crate) fn estimate(record: &Record, rule: Option<Rule>, d: &[f64]) -> Option<Estimate> {
    Estimate::of(d, critical_t(record, rule.as_ref(), d.len())?).ok()
}

/// The critical t of a rule after so many blocks; `None` where there is no interval yet, or may be none.
pub(crate) fn critical_t(record: &Record, rule: Option<&Rule>, blocks: usize) -> Option<f64> {
    rule.filter(|_| may_look(record))?.critical_t(u32::try_from(blocks).ok()?)
}

/// Whether an interval may be shown: with one look only when the run is over, or showing it would be another look.
pub(crate) fn may_look(record: &Record) -> bool {
    !record.header.plan.design.looks.waits_for_end() || record.ended.is_some()
}

/// The chance with which a difference is to be found.
pub const POWER: f64 = 0.8;
/// Blocks after so many that count have warm-up, slices and their length as settled.
const SETTLED_AFTER: usize = 3;
/// Budgets are named in steps of so many seconds, and leave a tenth of room.
const BUDGET_STEP_S: f64 = 30.0;
const BUDGET_ROOM: f64 = 1.1;

/// The blocks that it takes to find a true difference (0.03 is 3 %). More than [`stats::BLOCKS_MAX`] is more than one run can have; `None`
/// where even [`stats::BLOCKS_NEEDED_MAX`] are too few.
pub fn blocks_to_find(difference: f64, sd_log: f64, rule: &Rule) -> Option<u32> {
    stats::blocks_for(difference.ln_1p(), sd_log, POWER, rule)
}

/// The budget to ask for where a run takes so many seconds.
pub fn budget_s(run_s: f64) -> f64 {
    (run_s * BUDGET_ROOM / BUDGET_STEP_S).ceil().max(2.0) * BUDGET_STEP_S
}

/// How long blocks take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Seconds of the first block, which watches the warm-up.
    pub first_block_s: f64,
    /// Seconds of each later one, once the lengths of its parts are settled.
    pub block_s: f64,
    /// Variants in a block.
    pub variants: usize,
}

impl Pace {
    /// As a record shows it; `None` where no block is complete.
    pub fn of(record: &Record) -> Option<Pace> {
        let seconds: Vec<f64> = record.complete_blocks().filter_map(|block| block.seconds).collect();
        let settled = stats::mean(seconds.iter().skip(SETTLED_AFTER).copied());
        let block_s = settled.or(seconds.last().copied())?;
        // Dropped or not, it is the one that watched the warm-up.
        let first_block_s = record.blocks.iter().find_map(|block| block.seconds).unwrap_or(block_s);
        Some(Pace { first_block_s, block_s, variants: record.header.plan.variants.len() })
    }

    /// Seconds that a run of so many blocks takes, if it has so many variants.
    pub fn run_s(&self, blocks: u32, variants: usize) -> f64 {
        let all_s = self.first_block_s + f64::from(blocks.saturating_sub(1)) * self.block_s;
        all_s * variants as f64 / self.variants.max(1) as f64
    }
}

/// What blocks take as the record shows it; `None` where one run cannot have as many.
pub(crate) fn seconds(record: &Record, blocks: Option<u32>) -> Option<f64> {
    let blocks = blocks.filter(|blocks| *blocks <= stats::BLOCKS_MAX)?;
    Some(Pace::of(record)?.run_s(blocks, record.header.plan.variants.len()))
}
