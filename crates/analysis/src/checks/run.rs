//! What became of the run itself: its end, its blocks, what it left behind.

use model::{Check, Finding, Quantity, evidence};
use record::{EndReason, Record};

use super::{first_few, trials};

/// Fewer blocks than this allow no verdict.
pub const BLOCKS_MIN: usize = 6;
/// Blocks whose reason is told; of more there are only so many.
const TOLD_MAX: usize = 3;

pub(super) fn damage(record: &Record) -> Vec<Finding> {
    let remedy = "what could be read counts; keep the folder as it is if you want to look further";
    let finding = |text: &String| {
        Finding::warning(Check::Damage, format!("part of the record could not be read: {text}"), remedy)
    };
    record.damage.iter().map(finding).collect()
}

pub(super) fn pointless(record: &Record) -> Vec<Finding> {
    let Some(EndReason::Void(why)) = record.ended.as_ref().map(|ended| &ended.reason) else {
        return vec![];
    };
    vec![Finding::void(
        Check::Pointless,
        format!("the run was stopped because going on was pointless: {why}"),
        "change what it names, then run again; the services' output lies in the record's logs",
    )]
}

pub(super) fn left_over(record: &Record) -> Vec<Finding> {
    let ended = record.blocks.iter().flat_map(|block| &block.trials).filter_map(|t| t.ended.as_ref());
    let leftovers: Vec<&str> = ended.flat_map(|ended| &ended.leftovers).map(String::as_str).collect();
    if leftovers.is_empty() {
        return vec![];
    }
    vec![Finding::void(
        Check::LeftOver,
        format!("processes outlived their trial: {}", leftovers.join(", ")),
        "they ran on beside later trials; end them by hand and run again",
    )]
}

pub(super) fn killed(record: &Record) -> Vec<Finding> {
    let ended = trials(record).filter_map(|trial| trial.ended.as_ref());
    let killed: Vec<&str> = ended.flat_map(|ended| &ended.killed).map(String::as_str).collect();
    let Some(first) = killed.first() else { return vec![] };
    vec![Finding::note(
        Check::Killed,
        evidence!("{first} did not end on SIGTERM in time and was killed ({times} times in all)";
            times = Quantity::count(killed.len() as u64)),
        "let the service end on SIGTERM, or set its stop_timeout longer",
    )]
}

/// Blocks that the lab dropped for what the machine did in them: told, so that nobody wonders where the time went.
pub(super) fn blocks_dropped(record: &Record) -> Vec<Finding> {
    let dropped = record.blocks.iter().filter_map(|block| Some((block.number, block.dropped.as_ref()?)));
    let told: Vec<String> = dropped.map(|(number, why)| format!("in block {number} {why}")).collect();
    if told.is_empty() {
        return vec![];
    }
    let complete = record.complete_blocks().count() + told.len();
    vec![Finding::warning(
        Check::BlocksDropped,
        evidence!("{dropped} of {blocks} blocks were dropped: {}", first_few(&told, TOLD_MAX);
            dropped = Quantity::count(told.len() as u64), blocks = Quantity::count(complete as u64)),
        "they count for nothing, by a rule that does not see what was measured, so that the result stands; it rests on fewer blocks than \
         there was time for, and a quieter machine decides more",
    )]
}

pub(super) fn too_few_blocks(record: &Record) -> Vec<Finding> {
    let blocks = record.complete_blocks().count();
    // A run that goes on may get them yet, and one that was stopped as void has a better reason.
    let excused = matches!(record.ended.as_ref().map(|ended| &ended.reason), None | Some(EndReason::Void(_)));
    if blocks >= BLOCKS_MIN || record.header.plan.comparisons.is_empty() || excused {
        return vec![];
    }
    let remedy = match record.ended.as_ref().map(|ended| &ended.reason) {
        Some(EndReason::BudgetTooSmall { needed_s }) => {
            let (metric, requests) = record.header.plan.design.most_wanting();
            let name = metric.name();
            let latency = metric.quantile().map(|_| {
                format!(
                    ", or choose a lower quantile or a higher design.rate: {name} wants {requests} requests in each trial"
                )
            });
            let latency = latency.unwrap_or_default();
            format!("the budget does not hold them; run it with --budget {needed_s}s or more{latency}")
        }
        Some(EndReason::BudgetSpent) => {
            "`proofload check` says how long the blocks take; set the budget by that".to_owned()
        }
        _ => "it ended too early to say anything; let it run longer".to_owned(),
    };
    let evidence = evidence!("{blocks} complete blocks; no verdict is given from fewer than {BLOCKS_MIN}";
        blocks = Quantity::count(blocks as u64));
    vec![Finding::void(Check::TooFewBlocks, evidence, remedy)]
}
