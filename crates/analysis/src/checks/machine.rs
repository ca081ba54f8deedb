//! What the machine did to a run: time taken by its host, quotas, other processes, a processor that changes its speed, memory and storage.
//!
//! Each of these falls on all variants alike as long as blocks mix them, so that they widen intervals and falsify nothing: warnings.
//! Silent in records that lack the figures.

use std::collections::{BTreeMap, BTreeSet};

use model::{Check, Finding, Quantity, evidence};
use record::{Block, Record, Slice, SliceKind, Trial};

use super::stretch::{self, Stretch};
use super::{BLOCKS_MIN, Variant, total, trials, variants, wall_ns};

/// Share of CPU time that the host took (CPU steal) above which a run is disturbed.
pub const STEAL_SHARE_MAX: f64 = 0.02;
/// Share of a core that trials which should be idle may use.
pub const IDLE_SHARE_MAX: f64 = 0.01;
/// Share of the measured time in which a quota may hold the services back. A quota that is met at all is met in every period of
/// 100 ms, so that a clean run has none of it.
pub const THROTTLED_SHARE_MAX: f64 = 0.01;
/// Share of the CPU time that there is which other processes may use. What is counted in clock ticks is 1 or 2 % too much where
/// slices are short, and an idle system's own work is below 1 %.
pub const OTHERS_SHARE_MAX: f64 = 0.05;
/// How far the speed of the processors may change from block to block, as a share of the median. On a shared virtual machine on which
/// compilers ran, the quickest of twelve probes lay within 6 % in eighteen of twenty groups; steps of frequency and heat are 10 % and
/// more.
pub const SPIN_SPREAD_MAX: f64 = 0.1;
/// Pages that may be read back from swap, or waited for by services, a second: at 0.1 ms each a thousandth of the time, at the 10 ms
/// of a disk that turns a tenth.
pub const PAGING_PER_S_MAX: f64 = 10.0;
/// How many times more than in the median trial a variant may fetch from storage in another.
pub const DISK_RATIO_MAX: f64 = 10.0;
/// Bytes a second below which storage is not worth a word: a slow disk gives a hundred times as much.
pub const DISK_BYTES_PER_S_MIN: f64 = 1e6;

/// The host of this machine, or of one on which a generator runs, took CPU time.
pub(super) fn steal(record: &Record) -> Vec<Finding> {
    let slices = || trials(record).flat_map(Trial::measured);
    let here: Vec<f64> = slices().map(|slice| slice.machine.steal_share_max()).collect();
    let remedy =
        "blocks spread this over all variants, so it widens the intervals; a quieter machine narrows them";
    let mut found: Vec<Finding> = stolen("", &here, remedy).into_iter().collect();
    let mut elsewhere: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for part in slices().flat_map(|slice| &slice.generators).filter(|part| !part.here) {
        elsewhere.entry(&part.name).or_default().extend(part.steal_share);
    }
    let remedy = "a generator that is held back sends and sees late; blocks spread this over all variants, so it widens the intervals; a \
                  quieter machine narrows them";
    let of_generator =
        |(name, shares): (&str, Vec<f64>)| stolen(&format!(" on the machine of {name}"), &shares, remedy);
    found.extend(elsewhere.into_iter().filter_map(of_generator));
    found
}

fn stolen(place: &str, shares: &[f64], remedy: &'static str) -> Option<Finding> {
    let disturbed = shares.iter().filter(|share| **share > STEAL_SHARE_MAX).count();
    let most = shares.iter().copied().fold(0.0, f64::max);
    let (limit, of) = (Quantity::share(STEAL_SHARE_MAX), shares.len());
    if disturbed == 0 {
        return None;
    }
    let evidence = evidence!("CPU steal{place} was above {limit} in {disturbed} of {of} slices, {most} at the most";
        disturbed = Quantity::count(disturbed as u64), most = Quantity::share(most));
    Some(Finding::warning(Check::Steal, evidence, remedy))
}

/// A quota of CPU time held services or generator back.
pub(super) fn throttled(record: &Record) -> Vec<Finding> {
    let stretches = stretch::measured(record);
    let held = stretches.iter().map(|stretch| stretch.machine.throttled_ns_max());
    let (held_ns, hit) = held.fold((0, 0), |(sum, hit), ns| (sum + ns, hit + usize::from(ns > 0)));
    let (share, of) = (held_ns as f64 / loaded_ns(&stretches), stretches.len());
    if share <= THROTTLED_SHARE_MAX {
        return vec![];
    }
    vec![Finding::warning(
        Check::Throttled,
        evidence!("quotas of CPU time held processes back for {held} of the measured time, in {hit} of {of} slices";
            held = Quantity::share(share)),
        "what was measured is rather the quota than the service, with pauses of up to 100 ms; lift it (cpu.max, cpu.cfs_quota_us, docker \
         --cpus, limits.cpu), or run fewer workers than it allows",
    )]
}

fn loaded_ns(stretches: &[Stretch<'_>]) -> f64 {
    stretches.iter().map(Stretch::wall_ns).sum::<u64>().max(1) as f64
}

/// Processes that are neither Proofload nor a service of the run used the processors of a machine.
pub(super) fn other_processes(record: &Record) -> Vec<Finding> {
    let stretches = stretch::measured(record);
    machines(record).filter_map(|host| others_on(record, &stretches, host)).collect()
}

fn others_on(record: &Record, stretches: &[Stretch<'_>], host: Option<&str>) -> Option<Finding> {
    let told = stretches.iter().filter_map(|stretch| Some((stretch.machine.of(host)?, stretch.wall_ns())));
    let (used_ns, wall_ns) =
        told.fold((0, 0), |(used, wall), (machine, ns)| (used + machine.strangers_cpu_ns, wall + ns));
    let cores = used_ns as f64 / wall_ns.max(1) as f64;
    let cpus = if host.is_none() { cpus(record) } else { record.header.environment.cpus_of(host) };
    let share = cores / cpus as f64;
    if share <= OTHERS_SHARE_MAX {
        return None;
    }
    let place = on(host);
    Some(Finding::warning(
        Check::OtherProcesses,
        evidence!("processes that are no part of the run used {used} of the CPU time: {cores} of {cpus} cores{place}";
            used = Quantity::share(share), cores = Quantity::number(cores)),
        "blocks spread this over all variants, so it widens the intervals; end what else runs (top shows it). If it works for the \
         services, as a container's or a database's own processes do, its cost is missing from CPU per request",
    ))
}

/// The machines of a run: this one, and those that services ran on.
fn machines(record: &Record) -> impl Iterator<Item = Option<&str>> {
    let hosts = record.header.environment.hosts.keys();
    std::iter::once(None).chain(hosts.map(|host| Some(host.as_str())))
}

/// ` on ssh://bench-1`; nothing for this machine.
fn on(host: Option<&str>) -> String {
    host.map(|host| format!(" on {host}")).unwrap_or_default()
}

/// Processors of this machine that the run could use.
fn cpus(record: &Record) -> usize {
    let started = trials(record).map(|trial| &trial.started).next();
    let pinned = started.map(|started| {
        let here = started.services.iter().filter(|service| service.host.is_none());
        let services = here.flat_map(|service| &service.cpus);
        services.chain(&started.generator_cpus).collect::<BTreeSet<_>>().len()
    });
    record.header.environment.cpus.max(pinned.unwrap_or(0)).max(1)
}

/// The same arithmetic took longer in some blocks than in others.
///
/// Of each block its quickest probe counts, and of the blocks neither the first nor the last: a neighbour slows single probes, a lower
/// frequency all of them. What changes within a block is not seen.
pub(super) fn spin_varies(record: &Record) -> Vec<Finding> {
    machines(record).filter_map(|host| spin_varies_on(record, host)).collect()
}

fn spin_varies_on(record: &Record, host: Option<&str>) -> Option<Finding> {
    let quickest = |block: &Block| {
        let slices = block.trials.iter().flat_map(|trial| &trial.slices);
        slices.filter_map(|slice| slice.machine.of(host)?.spin_ns).min()
    };
    let mut quickest: Vec<u64> = record.complete_blocks().filter_map(quickest).collect();
    quickest.sort_unstable();
    if quickest.len() < BLOCKS_MIN {
        return None;
    }
    let (low, high) = (quickest[1], quickest[quickest.len() - 2]);
    let share = (high - low) as f64 / quickest[quickest.len() / 2].max(1) as f64;
    if share <= SPIN_SPREAD_MAX {
        return None;
    }
    let place = on(host);
    Some(Finding::warning(
        Check::SpinVaries,
        evidence!("the same arithmetic took {low} to {high} from block to block ({spread}){place}, the extreme blocks left out";
            spread = Quantity::share(share), low = Quantity::ns(low), high = Quantity::ns(high)),
        "the processors changed their speed: frequency, heat, or a neighbour on the same core. Comparisons within blocks hold, absolute \
         figures are those of a changing machine; fix the frequency (governor performance, no turbo), or cool it",
    ))
}

/// Memory was short: pages came back from swap, or services waited for pages of their files.
pub(super) fn paging(record: &Record) -> Vec<Finding> {
    let stretches = stretch::measured(record);
    let seconds = loaded_ns(&stretches) / 1e9;
    let swapped: u64 = stretches.iter().map(|stretch| stretch.machine.swapped_in_pages_all()).sum();
    let faults_of = |slice: &Slice| slice.services.iter().map(|service| service.major_faults).sum::<u64>();
    let faults: u64 = stretches.iter().map(|stretch| stretch.sum(faults_of)).sum();
    if swapped.max(faults) as f64 / seconds <= PAGING_PER_S_MAX {
        return vec![];
    }
    vec![Finding::warning(
        Check::Paging,
        evidence!("in {time} {swapped} pages were read back from swap, and services waited for storage at {faults} page faults";
            time = Quantity::seconds(seconds), swapped = Quantity::count(swapped), faults = Quantity::count(faults)),
        "memory is short, and each such page costs as much as many requests, for whoever happens to need it; end what else holds memory, \
         raise the container's limit, or compare fewer variants at once",
    )]
}

/// A variant fetched far more from storage in some trials than in others: whoever comes first fills the cache for all.
pub(super) fn disk_reads(record: &Record) -> Vec<Finding> {
    variants(record).filter_map(|variant| fetched_now_and_then(record, &variant)).collect()
}

fn fetched_now_and_then(record: &Record, variant: &Variant<'_>) -> Option<Finding> {
    let trials = record.complete_blocks().filter_map(|block| Fetched::of(block, variant.index));
    let mut trials: Vec<Fetched<'_>> = trials.collect();
    trials.sort_by(|one, other| one.per_s().total_cmp(&other.per_s()));
    let (median, most) = (trials.get(trials.len() / 2)?, trials.last()?);
    if most.per_s() <= DISK_BYTES_PER_S_MIN.max(DISK_RATIO_MAX * median.per_s()) {
        return None;
    }
    let place = most.block.order.iter().position(|index| *index == variant.index).unwrap_or(0) + 1;
    let (name, block, of) = (variant.name(), most.block.number, most.block.order.len());
    let evidence = evidence!(
        "{name}: its services fetched {most} from storage in block {block}, where it started as number {place} of {of}, and {median} in its \
         median trial";
        most = Quantity::bytes(most.bytes as f64), median = Quantity::bytes(median.bytes as f64));
    let remedy = "some trials found in the page cache what others had to fetch, so order decides; read the data once before the run, or \
                  warm up until all of it was asked for (design.warmup)";
    Some(Finding::warning(Check::DiskReads, evidence, remedy).about([variant.index]))
}

/// What a variant fetched in its measured slices of one block.
struct Fetched<'a> {
    block: &'a Block,
    bytes: u64,
    wall_ns: u64,
}

impl<'a> Fetched<'a> {
    fn of(block: &'a Block, variant: usize) -> Option<Self> {
        let of_variant = |trial: &&Trial| trial.variant() == variant;
        let slices: Vec<&Slice> = block.trials.iter().filter(of_variant).flat_map(Trial::measured).collect();
        let services = slices.iter().flat_map(|slice| &slice.services);
        let bytes: u64 = services.map(|service| service.read_bytes).sum();
        let wall_ns: u64 = slices.iter().map(|slice| slice.counts.window_ns + slice.counts.drain_ns).sum();
        (wall_ns > 0).then_some(Self { block, bytes, wall_ns })
    }

    fn per_s(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.wall_ns as f64
    }
}

/// Services worked while others were loaded.
pub(super) fn idle_not_idle(record: &Record) -> Vec<Finding> {
    // Where trials take turns nobody is idle all the time, and nothing is told of it; while others are warmed up they are.
    let told = |slice: &&Slice| slice.kind != SliceKind::Measured || slice.machine.idle_trials_cpu_ns > 0;
    let alone = |slice: &&Slice| slice.turns == 1 && slice.counts.sent > 0;
    let slices = trials(record).flat_map(|trial| &trial.slices).filter(alone).filter(told);
    let slices: Vec<&Slice> = slices.collect();
    let share = total(&slices, |slice| slice.machine.idle_trials_cpu_ns) as f64 / wall_ns(&slices);
    if share <= IDLE_SHARE_MAX {
        return vec![];
    }
    vec![Finding::warning(
        Check::IdleNotIdle,
        evidence!("trials that should have been idle used {used} of a core while others were loaded"; used = Quantity::share(share)),
        "the services work without requests (timers, collectors); each variant is disturbed by the others",
    )]
}
