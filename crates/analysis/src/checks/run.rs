//! Checks of the run itself: its end, its blocks, leftover processes, and measured trials without a value of
//! a judged metric.

use model::quantity::{count as counted_as, counted, many};
use model::{Evidence, Metric, Quantity, Until, evidence};
use record::EndReason;

use super::{CheckFinding, CheckedBlock, CheckedRun, CheckedTrial, CheckedVariant, void, warning};
use crate::capacity::is_erratic;
use crate::metric::BlockFigures;
use crate::sums::merged;
use crate::window::MeasuredWindow;
use crate::{NAMED_MAX, few, only_if};

pub(super) fn damage(run: &CheckedRun<'_>) -> Vec<CheckFinding> {
    let remedy = "what could be read counts; keep the folder as it is if you want to look further";
    let seen = |text: &String| {
        warning(
            format!("part of the record could not be read: {text}"),
            remedy,
        )
    };
    run.damage.iter().map(seen).collect()
}

pub(super) fn pointless(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let Some(EndReason::Void(why)) = run.end() else {
        return None;
    };
    Some(void(
        format!("the run was stopped because going on was pointless: {why}"),
        "change what it names, then run again; the services' output lies in the record's logs",
    ))
}

pub(super) fn left_over(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let trials = run.blocks.iter().flat_map(|block| &block.trials);
    let ended = trials.filter_map(|trial| trial.ended);
    let leftovers: Vec<&str> = ended
        .flat_map(|ended| &ended.leftovers)
        .map(String::as_str)
        .collect();
    let evidence = format!("these outlived their trial: {}", leftovers.join(", "));
    let remedy = "processes ran on beside later trials: end them by hand, unmount what a service mounted, and run again";
    (!leftovers.is_empty()).then(|| void(evidence, remedy))
}

pub(super) fn killed(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let ended = run.complete_trials().filter_map(|trial| trial.ended);
    let killed: Vec<&str> = ended
        .flat_map(|ended| &ended.killed)
        .map(String::as_str)
        .collect();
    let (first, times) = (killed.first()?, many(killed.len() as u64, "time"));
    let evidence =
        evidence!("{first} did not end on SIGTERM in time and was killed ({times} in all)");
    let evidence = evidence.with([("times", Quantity::count(killed.len() as u64))]);
    Some(CheckFinding::note(
        (),
        evidence,
        "let the service end on SIGTERM, or set its stop_timeout longer",
    ))
}

/// Reports blocks that the lab dropped because of the machine, which explains the time they took.
pub(super) fn blocks_dropped(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let why =
        |block: &CheckedBlock<'_>| Some(format!("in block {} {}", block.number, block.dropped?));
    let told: Vec<String> = run.blocks.iter().filter_map(why).collect();
    let dropped = told.len();
    let complete = run.complete_blocks().count() + dropped;
    let evidence = evidence!("{dropped} of {blocks} were dropped: {}", few(told, NAMED_MAX, "; ");
        dropped = Quantity::count(dropped as u64), blocks = counted(complete as u64, "block"));
    let remedy = "they count for nothing, by a rule that does not see what was measured, so that the result stands; it rests on fewer blocks \
                  than there was time for, and a quieter machine decides more";
    (dropped > 0).then(|| warning(evidence, remedy))
}

/// Reports that the load stood still during a slice. In an experiment such a block is dropped.
pub(super) fn stood_still(window: &MeasuredWindow<'_>) -> Option<CheckFinding> {
    let halted_ns = Some(window.slice.counts.halted_ns).filter(|ns| *ns > 0)?;
    let evidence = evidence!("the load stood still for {time}"; time = Quantity::ns(halted_ns));
    let remedy = "it was stopped (Ctrl-Z, SIGSTOP), or the machine suspended, while the window went on: measure again";
    Some(void(evidence, remedy))
}

/// Minimum number of blocks for a verdict.
pub(super) const BLOCKS_MIN: usize = stats::BLOCKS_MIN as usize;

pub(super) fn too_few_blocks(run: &CheckedRun<'_>) -> Option<CheckFinding> {
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

/// Reports missing values of metrics that are not quantiles. Leaving out such blocks would be a choice by
/// outcome: a variant that fails now and then would be judged only by its good blocks.
pub(super) fn value_missing(run: &CheckedRun<'_>) -> Vec<CheckFinding> {
    each_missing(run, |variant, metric, first, told| {
        // A capacity limited by the load generator is a lower bound, and not missing.
        only_if(first.sample(metric, variant.index).is_none())?;
        // It was measured but is withheld. The capacity explains why.
        let is_erratic = || run.record().is_some_and(|of| is_erratic(of, variant.index));
        only_if(metric != Metric::Capacity || !is_erratic())?;
        let remedy = "blocks are never dropped because of their result; find out in the logs why the variant fails in some, and run again";
        let nothing = || void(told("nothing was measured, or nothing succeeded"), remedy);
        metric
            .quantile()
            .is_none()
            .then(|| late(variant, metric).unwrap_or_else(nothing))
    })
}

/// Reports missing values of a quantile, because there are too few requests for it, or it is only a bound.
pub(super) fn quantile_unresolved(run: &CheckedRun<'_>) -> Vec<CheckFinding> {
    each_missing(run, |variant, metric, first, told| {
        let q = metric.quantile()?;
        let bounded = first.sample(metric, variant.index).is_some();
        let figures = first.variants.get(variant.index).and_then(Option::as_ref);
        let count = figures.map_or(0, |figures| figures.response_times);
        let wants = counted_as((10.0 / (1.0 - q)).round() as u64);
        let are = if count == 1 { "is" } else { "are" };
        let too_few = format!("{} {are} too few, it wants {wants}", many(count, "request"));
        let why = if bounded {
            "requests without response leave only a lower bound of it"
        } else {
            &too_few
        };
        let remedy = if bounded {
            "choose a lower quantile, a longer load.timeout, or a lower design.rate"
        } else {
            "choose a lower quantile or a higher design.rate, or leave out design.slices and design.slice"
        };
        Some(void(told(why), remedy))
    })
}

/// Describes the blocks in which a variant has no value of a metric, given the reason for the first of them.
type MissingBlocks<'a> = &'a dyn Fn(&str) -> Evidence;

/// Makes findings for each metric and variant without a value in some block. A variant that never succeeded
/// is reported separately.
fn each_missing(
    run: &CheckedRun<'_>,
    see: impl Fn(&CheckedVariant<'_>, Metric, &BlockFigures, MissingBlocks<'_>) -> Option<CheckFinding>,
) -> Vec<CheckFinding> {
    let of = |metric: Metric, variant: &CheckedVariant<'_>| {
        let measured = run
            .figures
            .iter()
            .filter(|block| block.variants[variant.index].is_some());
        let trials = measured.clone().count();
        let without = measured.filter(|block| block.value(metric, variant.index).is_none());
        let without: Vec<&BlockFigures> = without.collect();
        let first = *without.first().filter(|_| !variant.never_succeeded())?;
        let told = |why: &str| {
            evidence!("{without} of {trials} have no {}; in block {} {why}", metric.name(), first.number;
                without = Quantity::count(without.len() as u64), trials = counted(trials as u64, "trial"))
        };
        Some(variant.told(see(variant, metric, first, &told)?))
    };
    let metrics = run.plan.design.metrics();
    metrics
        .flat_map(|metric| {
            run.variants
                .iter()
                .filter_map(move |variant| of(metric, variant))
        })
        .collect()
}

/// Reports responses that came after the window. They are valid, but take longer than a slice.
fn late(variant: &CheckedVariant<'_>, metric: Metric) -> Option<CheckFinding> {
    let is_late = |trial: &&CheckedTrial<'_>| {
        trial
            .measured()
            .all(|slice| slice.counts.successful_in_window == 0)
    };
    let late: Vec<_> = variant.trials.iter().filter(is_late).collect();
    let slices = || late.iter().flat_map(|trial| trial.measured());
    only_if(metric == Metric::Throughput && slices().any(|slice| slice.counts.successful > 0))?;
    let (hit, of) = (late.len(), many(variant.trials.len() as u64, "trial"));
    let window_ns = slices().map(|slice| slice.counts.window_ns).max()?;
    let took_ns = merged(slices().map(|slice| &slice.counts.latency))
        .quantile(0.5)?
        .ns();
    Some(void(
        evidence!("in {hit} of {of} no response came within a window of {window}; half of them took {took} or more";
            window = Quantity::ns(window_ns), took = Quantity::ns(took_ns)),
        "a rate wants several responses of each connection in a window: set design.slice and load.timeout well above what one takes",
    ))
}

/// Reports that all responses of a slice came after its window. They are valid, but give no rate.
pub(super) fn late_responses(window: &MeasuredWindow<'_>) -> Option<CheckFinding> {
    let counts = &window.slice.counts;
    only_if(window.is_shorter_than_a_response())?;
    only_if(!window.is_too_short() && !window.interrupted)?;
    let took = counts.latency.quantile(0.5)?;
    let evidence = evidence!("no response came within the window of {window}; half of them took {took} or more";
        window = Quantity::ns(counts.window_ns), took = Quantity::ns(took.ns()));
    let remedy = match window.asked.until {
        Until::Elapsed(_) => {
            "there is no throughput of it: load for several times as long as a response takes (--duration)"
        }
        Until::Requests(_) => {
            "there is no throughput of it: send several times as many requests as there are connections (--requests)"
        }
    };
    Some(warning(evidence, remedy))
}
