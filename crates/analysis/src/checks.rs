//! The validity checks: each a small function from a record to the findings it makes, with named thresholds.
//!
//! A check looks at measured slices of complete blocks only, and speaks in the figures it rests on.

use std::collections::BTreeMap;

use record::{Block, EndReason, Record, Slice, SliceKind, Trial};

use crate::no_success::{self, fruitless};
use model::{Cause, Check, Finding, Grade, Phase};

mod cluster;
mod deployed;
mod drift;
mod dropped;
mod generators;
mod leak;
mod lost;
mod machine;
mod missing;
mod network;
mod observable;
mod open_loop;
mod order;
mod process;
mod profiler;
mod saturation;
mod shared;
mod stretch;
mod treatment;
mod within;
mod work;
mod workers;

pub use cluster::{UNEVEN_MAX, WORKER_SHARE_MIN};
pub use drift::DRIFT_MIN;
pub use generators::{LATE_MIN_NS, LATE_SHARE, LateBegin, late_begin};
pub use leak::{LEAK_BYTES_MIN, LEAK_SHARE_MIN, LEAK_SLICES_MIN, LEAK_TRIALS_MIN};
pub use machine::{
    DISK_BYTES_PER_S_MIN, DISK_RATIO_MAX, PAGING_PER_S_MAX, SPIN_SPREAD_MAX, STRANGERS_SHARE_MAX,
    THROTTLED_SHARE_MAX,
};
pub(crate) use missing::without_value;
pub use network::{
    CHURN_SHARE_MAX, HELD_UP_SHARE_MAX, RESPONSES_MIN, RETRY_NS, TIME_WAIT_GROWN_MIN, TIME_WAIT_SHARE_MAX,
    UPSTREAM_OPENED_MIN,
};
pub use observable::ALIKE_CPU_TOLERANCE;
pub use open_loop::{LAG_MAX_NS, LAG_SHARE_MAX, LAG_SHARE_VOID, QUEUED_SHARE_MAX, SENT_SHARE_MIN};
pub(crate) use order::over_blocks;
pub use order::{LAG1_BLOCKS_MIN, LAG1_MAX, MARGIN_SHARE_MIN};
pub use process::WATCHED_VARIABLES;
pub use saturation::{
    DELAYED_ACK_MS, OPENED_SHARE_MAX, ROUND_LATE_MAX, ROUND_MS, SATURATED_MIN, STALL_APART_MAX,
    STALL_LITTLE_MAX, STEPS_SPREAD_MIN, THROTTLED_MAX,
};
pub use treatment::{COMPRESSED_BYTES_MIN, UNTREATED_SHARE_MIN, treatment_not_applied};
pub use within::{THIRD_BUCKETS_MIN, THIRD_RESPONSE_MAX, THIRD_TRIALS_MIN};
pub use work::CONTENT_BYTES_MIN;

/// Share of requests without an expected response above which a variant's figures mean nothing.
pub const FAILED_SHARE_MAX: f64 = 0.001;
/// Share of a core above which a generator thread may have been the limit.
pub const GENERATOR_SHARE_MAX: f64 = 0.85;
/// Share of one core below which services were not what limited the throughput.
pub const SERVICE_BUSY_MIN: f64 = 0.85;
/// Share of CPU time given to other guests of the host above which a run is disturbed.
pub const STEAL_SHARE_MAX: f64 = 0.02;
/// Share of a core that trials which should be idle may use.
pub const IDLE_SHARE_MAX: f64 = 0.01;
/// Relative difference in body bytes per response above which two variants do different work.
pub const BODY_BYTES_TOLERANCE: f64 = 0.01;
/// Fewer blocks than this allow no verdict.
pub const BLOCKS_MIN: usize = 6;
/// The chance with which each check of figures over time (order, neighbours, drift, warm-up inside, leak) may fire in a clean run, all
/// variants and comparisons of it together. One in a thousand, so that all of them together stay far below one in a hundred; sizes that
/// have to be reached as well make it rarer still.
pub const SERIES_ALPHA: f64 = 0.001;

/// Runs every check but those that need the blocks' figures, which [`conclude`](crate::conclude) has at hand.
pub fn all(record: &Record) -> Vec<Finding> {
    let checks = [
        damage,
        ended_void,
        left_over,
        lost::workers,
        deployed::pods_changed,
        deployed::already_running,
        deployed::same_pods,
        dropped::blocks,
        too_few_blocks,
        no_success::findings,
        errors,
        generators::saturated,
        generators::lost,
        generators::apart,
        open_loop::rate_not_kept,
        open_loop::client_late,
        shared::cores_shared,
        workers::workers_idle,
        treatment::treatment_not_applied,
        process::environment_lost,
        process::stale_server,
        profiler::profiler_on,
        work::different_work,
        work::different_bodies,
        observable::nothing_observable,
        cluster::workers_uneven,
        cluster::too_many_workers,
        saturation::same_stall,
        saturation::service_not_saturated,
        saturation::throughput_in_steps,
        within::never_steady,
        within::warm_up_inside,
        leak::leak,
        drift::drift,
        steal,
        generators::steal_elsewhere,
        machine::throttled,
        machine::strangers,
        machine::spin_varies,
        machine::paging,
        machine::disk_reads,
        network::upstream_connections,
        network::ports_exhausted,
        network::backlog_full,
        network::connection_churn,
        idle_not_idle,
        killed,
    ];
    treatment::said_once(checks.iter().flat_map(|check| check(record)).collect())
}

fn trials(record: &Record) -> impl Iterator<Item = &Trial> {
    record.complete_blocks().flat_map(|block: &Block| &block.trials)
}

fn measured(record: &Record, variant: usize) -> Vec<&Slice> {
    trials(record).filter(|trial| trial.variant() == variant).flat_map(|trial| trial.measured()).collect()
}

/// Runs a check on each variant that has measured slices. One that never succeeded is told by itself, and nothing that only
/// follows from it.
fn each_variant(record: &Record, check: impl Fn(usize, &str, &[&Slice]) -> Option<Finding>) -> Vec<Finding> {
    let variants = record.header.plan.variants.iter().enumerate();
    let look = |(index, variant): (usize, &plan::Variant)| {
        let slices = measured(record, index);
        if slices.is_empty() || fruitless(&slices) { None } else { check(index, &variant.name, &slices) }
    };
    variants.filter_map(look).collect()
}

fn total(slices: &[&Slice], of: impl Fn(&Slice) -> u64) -> u64 {
    slices.iter().map(|slice| of(slice)).sum()
}

fn percent(share: f64) -> String {
    format!("{:.*} %", if share < 0.1 { 2 } else { 0 }, share * 100.0)
}

fn damage(record: &Record) -> Vec<Finding> {
    let finding = |text: &String| Finding {
        check: Check::Damage,
        grade: Grade::Warning,
        evidence: format!("part of the record could not be read: {text}").into(),
        remedy: "what could be read counts; keep the folder as it is if you want to look further".into(),
        variants: vec![],
    };
    record.damage.iter().map(finding).collect()
}

fn ended_void(record: &Record) -> Vec<Finding> {
    let Some(EndReason::Void(why)) = record.ended.as_ref().map(|ended| &ended.reason) else {
        return vec![];
    };
    vec![Finding {
        check: Check::Pointless,
        grade: Grade::Void,
        evidence: format!("the run was stopped because going on was pointless: {why}").into(),
        remedy: "change what it names, then run again; the services' output lies in the record's logs".into(),
        variants: vec![],
    }]
}

fn left_over(record: &Record) -> Vec<Finding> {
    let ended = record.blocks.iter().flat_map(|block| &block.trials).filter_map(|t| t.ended.as_ref());
    let leftovers: Vec<&str> = ended.flat_map(|ended| &ended.leftovers).map(String::as_str).collect();
    if leftovers.is_empty() {
        return vec![];
    }
    vec![Finding {
        check: Check::LeftOver,
        grade: Grade::Void,
        evidence: format!("processes outlived their trial: {}", leftovers.join(", ")).into(),
        remedy: "they ran on beside later trials; end them by hand and run again".into(),
        variants: vec![],
    }]
}

fn too_few_blocks(record: &Record) -> Vec<Finding> {
    let blocks = record.complete_blocks().count();
    // A run that goes on may get them yet, and one that was stopped as void has a better reason.
    let excused = matches!(record.ended.as_ref().map(|ended| &ended.reason), None | Some(EndReason::Void(_)));
    if blocks >= BLOCKS_MIN || record.header.plan.comparisons.is_empty() || excused {
        return vec![];
    }
    vec![Finding {
        check: Check::TooFewBlocks,
        grade: Grade::Void,
        evidence: format!("{blocks} complete blocks; no verdict is given from fewer than {BLOCKS_MIN}")
            .into(),
        remedy: match record.ended.as_ref().map(|ended| &ended.reason) {
            Some(EndReason::BudgetTooSmall { needed_s }) => {
                let design = &record.header.plan.design;
                let (metric, requests) = design.most_wanting();
                let latency = metric.quantile().map(|_| {
                    format!(
                        ", or choose a lower quantile or a higher design.rate: {} wants {requests} requests in each trial",
                        metric.name(),
                    )
                });
                let latency = latency.unwrap_or_default();
                format!("the budget does not hold them; run it with --budget {needed_s}s or more{latency}")
                    .into()
            }
            Some(EndReason::BudgetSpent) => {
                "`proofload check` says how long the blocks take; set the budget by that".into()
            }
            _ => "it ended too early to say anything; let it run longer".into(),
        },
        variants: vec![],
    }]
}

fn errors(record: &Record) -> Vec<Finding> {
    each_variant(record, |index, name, slices| {
        let (due, failed) =
            (total(slices, |slice| slice.counts.due()), total(slices, |slice| slice.counts.failed()));
        let share = failed as f64 / due.max(1) as f64;
        if share <= FAILED_SHARE_MAX {
            return None;
        }
        let seen = slices.iter().flat_map(|slice| &slice.counts.contract_failures).next();
        let example =
            seen.map(|seen| format!("; for example {}: {}", seen.kind, seen.example)).unwrap_or_default();
        Some(Finding {
            check: Check::Errors,
            grade: Grade::Void,
            evidence: format!(
                "{name}: {failed} of {due} requests ({}) got no expected response; {} timed out{}{example}",
                percent(share),
                total(slices, |s| s.counts.timed_out),
                lost(slices),
            )
            .into(),
            remedy: format!(
                "failed requests cost a service other work than successful ones, so rates above {} do not \
                 compare; lower load.connections, raise load.timeout, or correct what `expect` says",
                percent(FAILED_SHARE_MAX)
            )
            .into(),
            variants: vec![index],
        })
    })
}

/// Of what requests died, by cause and phase: `; 2 × reset (head)`. Connections that ended while idle took none with them.
fn lost(slices: &[&Slice]) -> String {
    let mut causes: BTreeMap<(Phase, Cause), u64> = BTreeMap::new();
    let errors = slices.iter().flat_map(|slice| &slice.counts.errors);
    for error in errors.filter(|error| error.phase != Phase::Idle && error.cause != Cause::Timeout) {
        *causes.entry((error.phase, error.cause)).or_default() += error.count;
    }
    causes.iter().map(|((phase, cause), count)| format!("; {count} × {cause} ({phase})")).collect()
}

fn steal(record: &Record) -> Vec<Finding> {
    let slices: Vec<&Slice> = trials(record).flat_map(|trial| trial.measured()).collect();
    let disturbed = slices.iter().filter(|slice| slice.machine.steal_share_max() > STEAL_SHARE_MAX).count();
    let most = slices.iter().map(|slice| slice.machine.steal_share_max()).fold(0.0, f64::max);
    if disturbed == 0 {
        return vec![];
    }
    vec![Finding {
        check: Check::Steal,
        grade: Grade::Warning,
        evidence: format!(
            "the host gave more than {} of the CPU time to others in {disturbed} of {} slices, {} at the most",
            percent(STEAL_SHARE_MAX),
            slices.len(),
            percent(most)
        ).into(),
        remedy:
            "blocks spread this over all variants, so it widens the intervals; a quieter machine narrows them"
                .into(),
        variants: vec![],
    }]
}

fn idle_not_idle(record: &Record) -> Vec<Finding> {
    // Where trials take turns nobody is idle all the time, and nothing is told of it; while others are warmed up they are.
    let told = |slice: &&Slice| slice.kind != SliceKind::Measured || slice.machine.idle_trials_cpu_ns > 0;
    let slices: Vec<&Slice> = trials(record)
        .flat_map(|trial| &trial.slices)
        .filter(|slice| slice.turns == 1 && slice.counts.sent > 0)
        .filter(told)
        .collect();
    let wall = total(&slices, |s| s.counts.window_ns + s.counts.drain_ns) as f64;
    let share = total(&slices, |s| s.machine.idle_trials_cpu_ns) as f64 / wall.max(1.0);
    if share <= IDLE_SHARE_MAX {
        return vec![];
    }
    vec![Finding {
        check: Check::IdleNotIdle,
        grade: Grade::Warning,
        evidence: format!(
            "trials that should have been idle used {} of a core while others were loaded",
            percent(share)
        )
        .into(),
        remedy:
            "the services work without requests (timers, collectors); each variant is disturbed by the others"
                .into(),
        variants: vec![],
    }]
}

fn killed(record: &Record) -> Vec<Finding> {
    let ended = trials(record).filter_map(|trial| trial.ended.as_ref());
    let killed: Vec<&str> = ended.flat_map(|ended| &ended.killed).map(String::as_str).collect();
    let Some(first) = killed.first() else { return vec![] };
    vec![Finding {
        check: Check::Killed,
        grade: Grade::Note,
        evidence: format!(
            "{first} did not end on SIGTERM in time and was killed ({} times in all)",
            killed.len()
        )
        .into(),
        remedy: "let the service end on SIGTERM, or set its stop_timeout longer".into(),
        variants: vec![],
    }]
}
