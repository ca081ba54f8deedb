//! Too few blocks for a verdict
//!
//! **Seen.** `3 complete blocks; no verdict is given from fewer than 4`.
//!
//! **Why.** Their spread is too uncertain.
//!
//! **What to do.** The finding names a sufficient `--budget`.
//!
//! **Threshold.** Four, each with fresh processes of every variant. With fewer, the verdict is
//! *inconclusive*.

use model::quantity::many;
use model::{Quantity, evidence};
use record::EndReason;

use super::finding::{CheckFinding, warning};
use super::input::CheckedRun;
use super::row::{CheckRow, Maker, OFF, Subject, WARNING, row};
use crate::only_if;

pub(super) static ROW: CheckRow =
    row(Subject::Design, WARNING, &[Maker::Whole(too_few_blocks)]).alone(OFF);

/// Minimum number of blocks for a verdict.
pub(super) const BLOCKS_MIN: usize = stats::BLOCKS_MIN as usize;

fn too_few_blocks(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let blocks = run.complete_blocks().count();
    only_if(blocks < BLOCKS_MIN && !run.plan.comparisons.is_empty())?;
    let (metric, requests) = run.plan.design.most_wanting();
    let lower = ", or choose a lower quantile or a higher design.rate";
    let latency = metric.quantile().map(|_| {
        format!(
            "{lower}: {} needs {} per trial",
            metric.name(),
            many(requests as u64, "request")
        )
    });
    let longer = |needed_s: u64| match needed_s {
        0..=plan::BUDGET_S_MAX => {
            format!(
                "run it with --budget {needed_s}s or more{}",
                latency.unwrap_or_default()
            )
        }
        _ => format!("it would take days{}", latency.unwrap_or_default()),
    };
    let remedy = match run.end() {
        // A run in progress may still reach the number, and a run stopped as void has a more specific
        // finding.
        None | Some(EndReason::Void(_)) => return None,
        Some(EndReason::BudgetTooSmall { needed_s }) => longer(*needed_s),
        Some(EndReason::BudgetSpent) => budget_for(run, BLOCKS_MIN).map_or_else(
            || {
                "`proofload run --dry-run` says how long blocks take; set the budget by that"
                    .to_owned()
            },
            longer,
        ),
        Some(_) => "it ended too early to say anything; let it run longer".to_owned(),
    };
    let complete = many(blocks as u64, "complete block");
    let evidence = evidence!("{complete}; no verdict is given from fewer than {BLOCKS_MIN}");
    Some(warning(
        evidence.with([("blocks", Quantity::count(blocks as u64))]),
        remedy,
    ))
}

/// A budget in seconds for this number of blocks, based on the finished ones, plus a tenth. `None` if none
/// finished.
fn budget_for(run: &CheckedRun<'_>, blocks: usize) -> Option<u64> {
    let kept: Vec<f64> = run
        .complete_blocks()
        .filter_map(|block| block.seconds)
        .collect();
    // The first one observes the warm-up.
    let later = if kept.len() > 1 {
        &kept[1..]
    } else {
        &kept[..]
    };
    let longest_s = later.iter().copied().reduce(f64::max)?;
    let missing = blocks.saturating_sub(kept.len());
    Some(((run.ended?.seconds + missing as f64 * longest_s) * 1.1).ceil() as u64)
}
