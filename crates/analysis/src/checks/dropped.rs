//! Blocks that the lab dropped for what the machine did in them: told, so that nobody wonders where the time went.
//!
//! Decides nothing: which blocks were dropped is in the record, and none is dropped here.

use record::Record;

use model::{Check, Finding, Grade};

/// Blocks whose reason is told; of more there are only so many.
const TOLD_MAX: usize = 3;

/// A finding if any block was dropped.
pub(super) fn blocks(record: &Record) -> Vec<Finding> {
    let dropped = record.blocks.iter().filter_map(|block| Some((block.number, block.dropped.as_ref()?)));
    let dropped: Vec<(u32, &String)> = dropped.collect();
    if dropped.is_empty() {
        return vec![];
    }
    let complete = record.complete_blocks().count() + dropped.len();
    let told = dropped.iter().take(TOLD_MAX).map(|(number, why)| format!("in block {number} {why}"));
    let told = told.collect::<Vec<_>>().join("; ");
    let more = if dropped.len() > TOLD_MAX { "; and so on" } else { "" };
    vec![Finding {
        check: Check::BlocksDropped,
        grade: Grade::Warning,
        evidence: format!("{} of {complete} blocks were dropped: {told}{more}", dropped.len()).into(),
        remedy: "they count for nothing, by a rule that does not see what was measured, so that the result stands; it rests on fewer \
                 blocks than there was time for, and a quieter machine decides more"
            .into(),
        variants: vec![],
    }]
}
