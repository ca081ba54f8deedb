//! The validity checks: for each a function from a record to the findings it makes, with named thresholds.
//!
//! A check looks at measured slices of complete blocks only, and speaks in the figures it rests on.

use model::{Check, Finding};
use record::{Record, Slice, Trial};

use crate::metric::BlockFigures;
use crate::no_success::{self, fruitless};

mod client;
mod deployed;
mod drift;
mod leak;
mod machine;
mod network;
mod observable;
mod order;
mod process;
mod profiler;
mod run;
mod saturation;
mod stretch;
mod treatment;
mod value;
mod within;
mod work;
mod workers;

pub use client::{
    GENERATOR_SHARE_MAX, LAG_MAX_NS, LAG_SHARE_MAX, LAG_SHARE_VOID, LATE_MIN_NS, LATE_SHARE, LateBegin,
    QUEUED_SHARE_MAX, SENT_SHARE_MIN, SERVICE_BUSY_MIN, late_begin,
};
pub use drift::DRIFT_MIN;
pub use leak::{LEAK_BYTES_MIN, LEAK_SHARE_MIN, LEAK_SLICES_MIN, LEAK_TRIALS_MIN};
pub use machine::{
    DISK_BYTES_PER_S_MIN, DISK_RATIO_MAX, IDLE_SHARE_MAX, OTHERS_SHARE_MAX, PAGING_PER_S_MAX,
    SPIN_SPREAD_MAX, STEAL_SHARE_MAX, THROTTLED_SHARE_MAX,
};
pub use network::{
    CHURN_SHARE_MAX, HELD_UP_SHARE_MAX, RESPONSES_MIN, RETRY_NS, TIME_WAIT_GROWN_MIN, TIME_WAIT_SHARE_MAX,
    UPSTREAM_OPENED_MIN,
};
pub use observable::ALIKE_CPU_TOLERANCE;
pub use order::{LAG1_BLOCKS_MIN, LAG1_MAX, MARGIN_SHARE_MIN};
pub use process::WATCHED_VARIABLES;
pub use run::BLOCKS_MIN;
pub use saturation::{
    DELAYED_ACK_MS, OPENED_SHARE_MAX, ROUND_LATE_MAX, ROUND_MS, SATURATED_MIN, STALL_APART_MAX,
    STALL_LITTLE_MAX, STEPS_SPREAD_MIN, THROTTLED_MAX,
};
pub use treatment::{COMPRESSED_BYTES_MIN, UNTREATED_SHARE_MIN, treatment_not_applied};
pub use within::{THIRD_BUCKETS_MIN, THIRD_RESPONSE_MAX, THIRD_TRIALS_MIN};
pub use work::{BODY_BYTES_TOLERANCE, CONTENT_BYTES_MIN, FAILED_SHARE_MAX};
pub use workers::{UNEVEN_MAX, WORKER_SHARE_MIN};

/// The chance with which each check of figures over time (order, neighbours, drift, warm-up inside, leak) may fire in a clean run, all
/// variants and comparisons of it together. One in a thousand, so that all of them together stay far below one in a hundred; sizes that
/// have to be reached as well make it rarer still.
pub const SERIES_ALPHA: f64 = 0.001;

/// What makes the findings of a check.
enum Maker {
    /// A look at the record.
    Record(fn(&Record) -> Vec<Finding>),
    /// A look at the blocks' figures as well.
    Blocks(fn(&Record, &[BlockFigures]) -> Vec<Finding>),
    /// What draws the conclusion that it is about, and has its figures at hand.
    Conclusion,
}

use Maker::{Blocks, Conclusion};

/// Each check with what makes it, in the order of the table of checks: one that nobody makes does not compile.
const MAKERS: [(Check, Maker); Check::ALL.len()] = [
    (Check::TreatmentNotApplied, Maker::Record(treatment_not_applied)),
    (Check::EnvironmentLost, Maker::Record(process::environment_lost)),
    (Check::StaleServer, Maker::Record(process::stale_server)),
    (Check::ProfilerOn, Maker::Record(profiler::profiler_on)),
    (Check::NothingObservable, Maker::Record(observable::nothing_observable)),
    (Check::DifferentWork, Maker::Record(work::different_work)),
    (Check::DifferentBodies, Maker::Record(work::different_bodies)),
    (Check::Errors, Maker::Record(work::errors)),
    (Check::NoSuccess, Maker::Record(no_success::findings)),
    (Check::ValueMissing, Blocks(value::value_missing)),
    (Check::GeneratorSaturated, Maker::Record(client::generator_saturated)),
    (Check::RateNotKept, Maker::Record(client::rate_not_kept)),
    (Check::ClientLate, Maker::Record(client::client_late)),
    (Check::GeneratorLost, Maker::Record(client::generator_lost)),
    (Check::GeneratorsApart, Maker::Record(client::generators_apart)),
    (Check::CoresShared, Maker::Record(client::cores_shared)),
    (Check::ServiceNotSaturated, Maker::Record(saturation::service_not_saturated)),
    (Check::ThroughputInSteps, Maker::Record(saturation::throughput_in_steps)),
    (Check::WorkersIdle, Maker::Record(workers::workers_idle)),
    (Check::WorkersLost, Maker::Record(workers::workers_lost)),
    (Check::PodsChanged, Maker::Record(deployed::pods_changed)),
    (Check::WorkersUneven, Maker::Record(workers::workers_uneven)),
    (Check::TooManyWorkers, Maker::Record(workers::too_many_workers)),
    (Check::NeverSteady, Maker::Record(within::never_steady)),
    (Check::WarmUpInside, Maker::Record(within::warm_up_inside)),
    (Check::Leak, Maker::Record(leak::leak)),
    (Check::Killed, Maker::Record(run::killed)),
    (Check::AlreadyRunning, Maker::Record(deployed::already_running)),
    (Check::SameStall, Maker::Record(saturation::same_stall)),
    (Check::UpstreamConnections, Maker::Record(network::upstream_connections)),
    (Check::ConnectionChurn, Maker::Record(network::connection_churn)),
    (Check::PortsExhausted, Maker::Record(network::ports_exhausted)),
    (Check::BacklogFull, Maker::Record(network::backlog_full)),
    (Check::Steal, Maker::Record(machine::steal)),
    (Check::Throttled, Maker::Record(machine::throttled)),
    (Check::OtherProcesses, Maker::Record(machine::other_processes)),
    (Check::SpinVaries, Maker::Record(machine::spin_varies)),
    (Check::Paging, Maker::Record(machine::paging)),
    (Check::DiskReads, Maker::Record(machine::disk_reads)),
    (Check::IdleNotIdle, Maker::Record(machine::idle_not_idle)),
    (Check::OtherMachine, Conclusion),
    (Check::TooFewBlocks, Maker::Record(run::too_few_blocks)),
    (Check::QuantileUnresolved, Blocks(value::quantile_unresolved)),
    (Check::OrderEffect, Blocks(order::order_effect)),
    (Check::Drift, Maker::Record(drift::drift)),
    (Check::Autocorrelated, Blocks(order::autocorrelated)),
    (Check::AaDiffers, Conclusion),
    (Check::Pointless, Maker::Record(run::pointless)),
    (Check::BlocksDropped, Maker::Record(run::blocks_dropped)),
    (Check::LeftOver, Maker::Record(run::left_over)),
    (Check::Damage, Maker::Record(run::damage)),
];

const _: () = {
    let mut index = 0;
    while index < MAKERS.len() {
        assert!(MAKERS[index].0 as usize == index, "the makers stand in the order of the checks");
        index += 1;
    }
};

/// Runs every check, in the order of the table.
pub(crate) fn all(record: &Record, blocks: &[BlockFigures]) -> Vec<Finding> {
    let made = MAKERS.iter().flat_map(|(check, maker)| {
        let findings = match maker {
            Maker::Record(make) => make(record),
            Blocks(make) => make(record, blocks),
            Conclusion => Vec::new(),
        };
        debug_assert!(findings.iter().all(|finding| finding.check == *check), "{check:?}: {findings:?}");
        findings
    });
    without_repeats(made.collect())
}

/// Leaves out what only repeats a graver finding about the same variants in other words.
fn without_repeats(findings: Vec<Finding>) -> Vec<Finding> {
    let about = |check: Check| -> Vec<usize> {
        let of = findings.iter().filter(|finding| finding.check == check);
        of.flat_map(|finding| &finding.variants).copied().collect()
    };
    let (untreated, lost) = (about(Check::TreatmentNotApplied), about(Check::EnvironmentLost));
    let repeats = |finding: &Finding| {
        let of = &finding.variants;
        if matches!(finding.check, Check::Errors | Check::NoSuccess) {
            return !of.is_empty() && of.iter().all(|variant| untreated.contains(variant));
        }
        let repeats = |variant| untreated.contains(variant) || lost.contains(variant);
        finding.check == Check::NothingObservable && of.iter().any(repeats)
    };
    let repeated: Vec<bool> = findings.iter().map(repeats).collect();
    let kept = findings.into_iter().zip(repeated).filter(|(_, repeats)| !repeats);
    kept.map(|(finding, _)| finding).collect()
}

/// A variant of the plan, and what was measured of it in complete blocks.
struct Variant<'a> {
    /// Its place in the plan.
    index: usize,
    plan: &'a plan::Variant,
    trials: Vec<&'a Trial>,
    slices: Vec<&'a Slice>,
}

impl<'a> Variant<'a> {
    fn of(record: &'a Record, index: usize) -> Option<Variant<'a>> {
        let plan = record.header.plan.variants.get(index)?;
        let trials: Vec<&Trial> = trials(record).filter(|trial| trial.variant() == index).collect();
        let slices = trials.iter().flat_map(|trial| trial.measured()).collect();
        Some(Variant { index, plan, trials, slices })
    }

    fn name(&self) -> &'a str {
        &self.plan.name
    }

    fn sum(&self, of: impl Fn(&Slice) -> u64) -> u64 {
        total(&self.slices, of)
    }

    /// Time under load, drains included, in nanoseconds; at least 1.
    fn wall_ns(&self) -> f64 {
        wall_ns(&self.slices)
    }

    /// Names of its services, in the order in which they were started.
    fn services(&self) -> impl Iterator<Item = &'a str> {
        let started = self.trials.first().map(|trial| trial.started.services.as_slice());
        started.unwrap_or_default().iter().map(|service| service.service.as_str())
    }
}

/// All variants.
fn variants(record: &Record) -> impl Iterator<Item = Variant<'_>> {
    (0..record.header.plan.variants.len()).filter_map(|index| Variant::of(record, index))
}

/// Those that were measured with any success. One without is told by itself, and nothing that only follows from it.
fn succeeding(record: &Record) -> impl Iterator<Item = Variant<'_>> {
    let succeeds = |variant: &Variant<'_>| no_success::measured(record, variant.index).is_none();
    variants(record).filter(succeeds).filter(|variant| !fruitless(&variant.slices))
}

/// Trials of complete blocks.
fn trials(record: &Record) -> impl Iterator<Item = &Trial> {
    record.complete_blocks().flat_map(|block| &block.trials)
}

/// The trials of a variant, those of unfinished blocks too: what a variant is does not depend on what was measured.
fn all_trials(record: &Record, variant: usize) -> Vec<&Trial> {
    let all = record.blocks.iter().flat_map(|block| &block.trials);
    all.filter(|trial| trial.variant() == variant).collect()
}

fn total(slices: &[&Slice], of: impl Fn(&Slice) -> u64) -> u64 {
    slices.iter().map(|slice| of(slice)).sum()
}

fn wall_ns(slices: &[&Slice]) -> f64 {
    total(slices, |slice| slice.counts.window_ns + slice.counts.drain_ns).max(1) as f64
}

/// The first few of several things, and that there are more.
fn first_few(all: &[String], most: usize) -> String {
    let more = if all.len() > most { "; and so on" } else { "" };
    format!("{}{more}", all[..all.len().min(most)].join("; "))
}
