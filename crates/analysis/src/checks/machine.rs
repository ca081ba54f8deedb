//! Effects of the machine on a run: CPU steal, quotas, other processes, changes of processor speed, memory
//! and storage.
//!
//! Blocks distribute these effects over all variants, so they widen intervals without falsifying them. All
//! findings are therefore warnings. The checks do not apply to records without the figures.

use std::collections::BTreeMap;

use model::quantity::many;
use model::thresholds::{OTHERS_SHARE_MAX, STEAL_SHARE_MAX, THROTTLED_SHARE_MAX};
use model::{Quantity, evidence};
use record::{MachineUse, Slice};

use super::{CheckFinding, CheckedBlock, CheckedRun, CheckedTrial, CheckedVariant, warning};
use crate::only_if;
use crate::sums::total;
use crate::usage::{processors, wall_ns, works_unseen};

/// Maximum share of a core that idle trials may use.
const IDLE_SHARE_MAX: f64 = 0.01;
/// Minimum total measured time for reporting other processes.
const STRANGERS_WALL_NS_LEAST: u64 = 500_000_000;
/// Maximum change of processor speed between blocks, as a share of the median. On a shared virtual machine
/// running compilers, the quickest of twelve probes was within 6 % in eighteen of twenty groups. Frequency
/// steps and heat change 10 % and more.
const SPIN_SPREAD_MAX: f64 = 0.1;
/// Minimum number of blocks for judging the speed.
const SPIN_BLOCKS_MIN: usize = 6;
/// Maximum number of pages per second read back from swap, or waited for by services. At 0.1 ms each this is
/// a thousandth of the time, at the 10 ms of a hard disk a tenth.
const PAGING_PER_S_MAX: f64 = 10.0;
/// Maximum ratio of storage reads between a trial and the median trial of a variant.
const DISK_RATIO_MAX: f64 = 10.0;
/// Minimum bytes per second for reporting storage reads. A slow disk delivers a hundred times as much.
const DISK_BYTES_PER_S_MIN: f64 = 1e6;

/// Reports CPU steal on this machine, or on a machine with a generator.
pub(super) fn steal(run: &CheckedRun<'_>) -> Vec<CheckFinding> {
    let slices = || run.complete_trials().flat_map(CheckedTrial::measured);
    let here: Vec<f64> = slices().map(|slice| slice.machine.steal_share).collect();
    let mut elsewhere: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for part in slices()
        .flat_map(|slice| &slice.generators)
        .filter(|part| !part.here)
    {
        elsewhere
            .entry(&part.name)
            .or_default()
            .extend(part.steal_share);
    }
    let spread = "blocks spread this over all variants, so it widens the intervals; a quieter machine narrows them";
    let late = format!("a generator that is held back sends and sees late; {spread}");
    let of_generator = |(name, shares): (&str, Vec<f64>)| {
        stolen(&format!(" on the machine of {name}"), &shares, &late)
    };
    stolen("", &here, spread)
        .into_iter()
        .chain(elsewhere.into_iter().filter_map(of_generator))
        .collect()
}

fn stolen(place: &str, shares: &[f64], remedy: &str) -> Option<CheckFinding> {
    let disturbed = shares
        .iter()
        .filter(|share| **share > STEAL_SHARE_MAX)
        .count();
    let most = shares.iter().copied().fold(0.0, f64::max);
    let (limit, of) = (
        Quantity::share(STEAL_SHARE_MAX),
        many(shares.len() as u64, "slice"),
    );
    let evidence = evidence!("CPU steal{place} was above {limit} in {disturbed} of {of}, {most} at the most";
        disturbed = Quantity::count(disturbed as u64), most = Quantity::share(most));
    (most > STEAL_SHARE_MAX).then(|| warning(evidence, remedy.to_owned()))
}

pub(super) fn throttled(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let stretches = stretches(run);
    let held_in = |stretch: &WatchedSpan<'_>| {
        stretch
            .machine
            .throttled_ns
            .max(stretch.sum(Slice::services_throttled_ns))
    };
    let held = stretches.iter().map(held_in);
    let (held_ns, hit) = held.fold((0, 0), |(sum, hit), ns| {
        (sum + ns, hit + usize::from(ns > 0))
    });
    let (share, of) = (
        held_ns as f64 / loaded_ns(&stretches),
        many(stretches.len() as u64, "slice"),
    );
    let evidence = evidence!("quotas of CPU time held processes back for {held} of the measured time, in {hit} of {of}";
        held = Quantity::share(share));
    let remedy = "what was measured is rather the quota than the service, with pauses of up to 100 ms; lift it (cpu.max, cpu.cfs_quota_us, \
                  docker --cpus, limits.cpu), or run fewer workers than it allows";
    (share > THROTTLED_SHARE_MAX).then(|| warning(evidence, remedy))
}

fn loaded_ns(stretches: &[WatchedSpan<'_>]) -> f64 {
    stretches
        .iter()
        .map(WatchedSpan::wall_ns)
        .sum::<u64>()
        .max(1) as f64
}

/// Reports processes that are neither Proofload nor a service of the run and used the processors.
pub(super) fn other_processes(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let started = || run.complete_trials().map(|trial| trial.started);
    only_if(!run.is_of_url() && !works_unseen(started()))?;
    let stretches = stretches(run);
    let used_ns: u64 = stretches
        .iter()
        .map(|stretch| stretch.machine.strangers_cpu_ns)
        .sum();
    let wall_ns: u64 = stretches.iter().map(WatchedSpan::wall_ns).sum();
    // The system counts CPU time in hundredths of a second.
    only_if(wall_ns >= STRANGERS_WALL_NS_LEAST)?;
    let cores = used_ns as f64 / wall_ns as f64;
    let cpus = processors(run.machine, started().take(1));
    let share = cores / cpus as f64;
    only_if(share > OTHERS_SHARE_MAX)?;
    Some(warning(
        evidence!("other processes used {used} of the CPU time: {cores} of {}", many(cpus as u64, "core");
            used = Quantity::share(share), cores = Quantity::number(cores)),
        "this affects all variants and widens the intervals; stop other programs (see top). If one works for the services (a container, \
         a database), its cost is missing from CPU per request",
    ))
}

/// Reports that the same arithmetic took longer in some blocks than in others.
///
/// The quickest probe of each block counts, and the extreme blocks are left out: a neighbour slows single
/// probes, a lower frequency slows all of them. Changes within a block are not detected.
pub(super) fn spin_varies(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let quickest = |block: &CheckedBlock<'_>| {
        let slices = block.trials.iter().flat_map(|trial| trial.slices);
        slices.filter_map(|slice| slice.machine.spin_ns).min()
    };
    let mut quickest: Vec<u64> = run.complete_blocks().filter_map(quickest).collect();
    quickest.sort_unstable();
    only_if(quickest.len() >= SPIN_BLOCKS_MIN)?;
    let (low, high) = (quickest[1], quickest[quickest.len() - 2]);
    let typical = stats::median(quickest.iter().map(|ns| *ns as f64))?;
    let share = (high - low) as f64 / typical.max(1.0);
    only_if(share > SPIN_SPREAD_MAX)?;
    Some(warning(
        evidence!("the same arithmetic took {low} to {high} from block to block ({spread}), the extreme blocks left out";
            spread = Quantity::share(share), low = Quantity::ns(low), high = Quantity::ns(high)),
        "the processors changed their speed: frequency, heat, or a neighbour on the same core. Comparisons within blocks hold, absolute \
         figures are those of a changing machine; fix the frequency (governor performance, no turbo), or cool it",
    ))
}

/// Reports memory shortage: pages read back from swap, or services that waited for pages of their files.
pub(super) fn paging(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let stretches = stretches(run);
    let seconds = loaded_ns(&stretches) / 1e9;
    let swapped: u64 = stretches
        .iter()
        .map(|stretch| stretch.machine.swapped_in_pages)
        .sum();
    let faults_of = |slice: &Slice| {
        slice
            .services
            .iter()
            .map(|service| service.major_faults)
            .sum::<u64>()
    };
    let faults: u64 = stretches.iter().map(|stretch| stretch.sum(faults_of)).sum();
    let evidence = evidence!("in {time} {swapped} pages were read back from swap, and services waited for storage at {faults} page faults";
        time = Quantity::seconds(seconds), swapped = Quantity::count(swapped), faults = Quantity::count(faults));
    let remedy = "memory is short, and each such page costs as much as many requests, for whoever happens to need it; end what else holds \
                  memory, raise the container's limit, or compare fewer variants at once";
    (swapped.max(faults) as f64 / seconds > PAGING_PER_S_MAX).then(|| warning(evidence, remedy))
}

/// Reports a variant that read far more from storage in some trials than in others: the first trial fills the
/// cache for all.
pub(super) fn disk_reads(
    run: &CheckedRun<'_>,
    variant: &CheckedVariant<'_>,
) -> Option<CheckFinding> {
    let fetched = run.complete_blocks().filter_map(|block| {
        let slices: Vec<&Slice> = block.trial(variant.index)?.measured().collect();
        let bytes = total(&slices, |slice| {
            slice
                .services
                .iter()
                .map(|service| service.read_bytes)
                .sum()
        });
        let wall_ns = total(&slices, |slice| slice.counts.wall_ns());
        (wall_ns > 0).then(|| (bytes as f64 * 1e9 / wall_ns as f64, bytes, block))
    });
    let trials: Vec<(f64, u64, &CheckedBlock<'_>)> = fetched.collect();
    let (usual_per_s, median, _) = stats::middle_by(trials.iter().copied(), |(per_s, ..)| *per_s)?;
    let (per_s, most, block) = trials
        .into_iter()
        .max_by(|one, other| one.0.total_cmp(&other.0))?;
    only_if(per_s > DISK_BYTES_PER_S_MIN.max(DISK_RATIO_MAX * usual_per_s))?;
    let place = block
        .order
        .iter()
        .position(|index| *index == variant.index)
        .unwrap_or(0)
        + 1;
    let (block, of) = (block.number, block.order.len());
    let evidence = evidence!(
        "its services fetched {most} from storage in block {block}, where it started as number {place} of {of}, and {median} in its \
         median trial";
        most = Quantity::bytes(most as f64), median = Quantity::bytes(median as f64));
    let remedy = "some trials found in the page cache what others had to fetch; read the data before the run, or set a longer design.warmup";
    Some(warning(evidence, remedy))
}

pub(super) fn idle_not_idle(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let slices: Vec<&Slice> = run.complete_trials().flat_map(beside_idle_trials).collect();
    let share = total(&slices, |slice| slice.machine.idle_trials_cpu_ns) as f64 / wall_ns(&slices);
    let evidence = evidence!("trials that should have been idle used {used} of a core while others were loaded"; used = Quantity::share(share));
    let remedy = "the services work without requests (timers, collectors); each variant is disturbed by the others";
    (share > IDLE_SHARE_MAX).then(|| warning(evidence, remedy))
}

/// The slices of a trial with a figure for idle trials. If trials take turns, no service is idle all the time,
/// and no idle use is recorded. In the first block trials are warmed up one by one.
fn beside_idle_trials<'a>(trial: &CheckedTrial<'a>) -> Vec<&'a Slice> {
    let one_by_one = |slice: &Slice| slice.block == 1 && !trial.counts(slice);
    let alone = |slice: &&Slice| slice.turns == 1 && slice.counts.sent > 0;
    let is_known = |slice: &&Slice| one_by_one(slice) || slice.machine.idle_trials_cpu_ns > 0;
    trial.slices.iter().filter(alone).filter(is_known).collect()
}

/// A time interval over which the machine was observed: of one slice, or of several slices that were made in
/// turns. Activity of the whole machine counts once per interval, not once per slice. Contains at least one
/// slice.
pub(super) struct WatchedSpan<'a> {
    pub machine: &'a MachineUse,
    pub slices: Vec<&'a Slice>,
}

impl WatchedSpan<'_> {
    pub fn sum(&self, of: impl Fn(&Slice) -> u64) -> u64 {
        total(&self.slices, of)
    }

    /// Time under load, including drains.
    pub fn wall_ns(&self) -> u64 {
        self.sum(|slice| slice.counts.wall_ns())
    }

    /// Whether all counts in it belong to this variant, or to no variant.
    pub fn belongs_to(&self, variant: usize) -> bool {
        self.slices
            .iter()
            .all(|slice| slice.variant == variant && slice.turns == 1)
    }

    fn holds(&self, slice: &Slice) -> bool {
        // No other slice has the same values to the nanosecond. Without such values, the number of turns
        // decides.
        let told = slice.turns > 1 || slice.machine.spin_ns.is_some();
        told && same_time(self.machine, &slice.machine)
    }
}

/// The intervals of all measured slices of complete blocks.
pub(super) fn stretches<'a>(run: &CheckedRun<'a>) -> Vec<WatchedSpan<'a>> {
    let of_block = |block| of_block(block, true);
    run.complete_blocks().flat_map(of_block).collect()
}

/// The intervals of all other slices, in every block that was not dropped. Warm-ups take turns, too, except
/// in the first block.
pub(super) fn stretches_beside<'a>(run: &CheckedRun<'a>) -> Vec<WatchedSpan<'a>> {
    let kept = run.blocks.iter().filter(|block| block.dropped.is_none());
    kept.flat_map(|block| of_block(block, false)).collect()
}

/// The intervals of the slices with the result, or of all others.
fn of_block<'a>(block: &CheckedBlock<'a>, with_result: bool) -> Vec<WatchedSpan<'a>> {
    // Slices made in turns have the same index in their trials.
    let mut by_number: Vec<Vec<WatchedSpan<'a>>> = Vec::new();
    let numbered = block.trials.iter().flat_map(|trial| {
        let is_wanted = move |slice: &&Slice| trial.counts(slice) == with_result;
        let kept = trial.slices.iter().filter(is_wanted);
        kept.enumerate()
    });
    for (number, slice) in numbered {
        by_number.resize_with(by_number.len().max(number + 1), Vec::new);
        let found = &mut by_number[number];
        match found.iter_mut().find(|stretch| stretch.holds(slice)) {
            Some(stretch) => stretch.slices.push(slice),
            None => found.push(WatchedSpan {
                machine: &slice.machine,
                slices: vec![slice],
            }),
        }
    }
    by_number.into_iter().flatten().collect()
}

/// Whether two entries were read at the same two moments. On a link each trial has its own TCP counters.
fn same_time(one: &MachineUse, other: &MachineUse) -> bool {
    let shared = |machine: &MachineUse| MachineUse {
        tcp: None,
        ..machine.clone()
    };
    shared(one) == shared(other)
}
