//! The stop rule of a record.

use plan::LookRule;
use record::{EndReason, Record};
use stats::{PlannedLooks, Rule};

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
        LookRule::EachBlock => Rule::each_block(count(members), ended_by_plan(record)).ok(),
        LookRule::Once | LookRule::Always => rule_of(design.looks, members),
        LookRule::Planned => {
            let blocks = record.blocks_planned.or(design.blocks).unwrap_or(PLANNED_BLOCKS);
            PlannedLooks::plan(blocks, count(members)).map(Rule::Planned).ok()
        }
    }
}

/// The rule of a run that is still to come, in which so many estimates share the chance to err.
pub fn rule_of(looks: LookRule, members: usize) -> Option<Rule> {
    match looks {
        LookRule::EachBlock | LookRule::Planned => Rule::each_block(count(members), None).ok(),
        LookRule::Once => Rule::once(count(members)).ok(),
        LookRule::Always => Rule::sequence(count(members)).ok(),
    }
}

/// The blocks of a run that ended for a reason that does not depend on what it found.
fn ended_by_plan(record: &Record) -> Option<u32> {
    let by_plan =
        matches!(record.end(), Some(EndReason::BudgetSpent | EndReason::LastLook | EndReason::Measured));
    by_plan.then(|| record.blocks_kept())
}

fn count(members: usize) -> u32 {
    u32::try_from(members.max(1)).unwrap_or(u32::MAX)
}

/// Whether an interval may be shown: with one look only when the run is over, or showing it would be another look.
pub(crate) fn may_look(record: &Record) -> bool {
    record.header.plan.design.looks != LookRule::Once || record.ended.is_some()
}
