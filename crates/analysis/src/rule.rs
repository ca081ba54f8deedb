//! The stop rule of a record: as settled in its run, or the plan's with a usual number of blocks until then.

use plan::{Design, LookRule};
use record::Record;
use stats::{Looks, Rule};

/// The final number of blocks that is assumed until the run has settled one.
const DEFAULT_BLOCKS: u32 = 30;

/// The rule by which the record's comparisons are judged; `None` where the blocks settled on allow no verdict.
pub fn rule(record: &Record) -> Option<Rule> {
    let plan = &record.header.plan;
    family(record, plan.comparisons.len() * plan.design.metrics().count())
}

/// The same rule for another number of estimates that share the chance to err.
pub(crate) fn family(record: &Record, members: usize) -> Option<Rule> {
    let design = &record.header.plan.design;
    rule_of(design, record.blocks_planned.or(design.blocks).unwrap_or(DEFAULT_BLOCKS), members)
}

/// The stop rule of a design whose last look is taken after so many blocks, where so many estimates share the chance to err;
/// `None` where so few blocks allow no verdict.
pub fn rule_of(design: &Design, blocks: u32, members: usize) -> Option<Rule> {
    let members = u32::try_from(members.max(1)).unwrap_or(u32::MAX);
    match design.looks {
        LookRule::Planned => Looks::plan(blocks, members).map(Rule::Planned).ok(),
        LookRule::Always => Rule::always(members).ok(),
        LookRule::Once => Rule::once(blocks, members).ok(),
    }
}

/// Whether an interval may be shown: with one look only when the run is over, or showing it would be another look.
pub(crate) fn may_look(record: &Record) -> bool {
    record.header.plan.design.looks != LookRule::Once || record.ended.is_some()
}
