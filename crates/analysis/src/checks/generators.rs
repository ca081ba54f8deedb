//! The load's own side: a generator at its limit, and of several generators those that were lost, late, or on a machine that was not theirs.
//!
//! Where load came from the run's own process only the first has anything to find.

use std::collections::BTreeMap;

use plan::Metric;
use record::{EndReason, GeneratorLost, GeneratorPart, Record, Slice, Trial};

use super::{
    BLOCKS_MIN, GENERATOR_SHARE_MAX, SERVICE_BUSY_MIN, STEAL_SHARE_MAX, each_variant, percent, total, trials,
};
use model::{Check, Finding, Grade};

/// A generator may begin so much later than the first of them, in nanoseconds, however short the window: less is within what threads wait
/// for a processor on a machine that is not quite idle.
pub const LATE_MIN_NS: u64 = 5_000_000;
/// So much later as a share of the window: what is missing of the load then is at most as large a share.
pub const LATE_SHARE: f64 = 0.01;
/// Losses that are told; of more there are only so many.
const TOLD_MAX: usize = 3;

/// A generator that did not begin with the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LateBegin<'a> {
    /// Which.
    pub part: &'a GeneratorPart,
    /// How much later than the first of them, beyond what clocks cannot tell, in nanoseconds.
    pub by_ns: u64,
    /// Length of the window, in nanoseconds.
    pub window_ns: u64,
}

/// The generator of a slice that surely began later than it may, the latest of several; `None` where all began together.
pub fn late_begin(slice: &Slice) -> Option<LateBegin<'_>> {
    let window_ns = slice.counts.window_ns;
    let by_ns = |part: &GeneratorPart| after_first_ns(slice, part).saturating_sub(part.clock_error_ns);
    let late = slice.generators.iter().map(|part| LateBegin { part, by_ns: by_ns(part), window_ns });
    late.max_by_key(|late| late.by_ns).filter(|late| late.by_ns > late_max_ns(window_ns))
}

fn after_first_ns(slice: &Slice, part: &GeneratorPart) -> u64 {
    let first_ns = slice.generators.iter().map(|part| part.late_ns).min().unwrap_or(0);
    part.late_ns.saturating_sub(first_ns)
}

fn late_max_ns(window_ns: u64) -> u64 {
    LATE_MIN_NS.max((window_ns as f64 * LATE_SHARE) as u64)
}

/// The busiest thread of all, or of one of several generators, was at the limit of its core.
pub(super) fn saturated(record: &Record) -> Vec<Finding> {
    each_variant(record, |index, name, slices| {
        let (generator, share) = busiest(slices);
        let wall = total(slices, |s| s.counts.window_ns + s.counts.drain_ns).max(1) as f64;
        let busy = total(slices, Slice::services_cpu_ns) as f64 / wall;
        if share <= GENERATOR_SHARE_MAX {
            return None;
        }
        // In open loop services are not meant to be at their limit, and `client_late` sees what a busy client spoils. What a request
        // costs is not the client's either.
        let judged = record.header.plan.design.metrics().any(|metric| metric == Metric::Throughput);
        // How busy a service was that runs already nobody knows: a client at its limit is then taken for the limit.
        let unknown =
            record.header.plan.variants.get(index).is_some_and(|variant| variant.deployed().is_some());
        let idle = judged && (unknown || busy < SERVICE_BUSY_MIN) && !record.is_open_loop();
        let services = match unknown {
            true => "nobody knows how busy the services were, which run already".to_owned(),
            false => format!("the services kept {busy:.2} cores busy"),
        };
        let thread = generator.map_or("a generator thread".to_owned(), |name| format!("a thread of {name}"));
        Some(Finding {
            check: Check::GeneratorSaturated,
            grade: if idle { Grade::Void } else { Grade::Warning },
            evidence: format!(
                "{name}: {thread} was busy {} of the time while {services}",
                percent(share)
            ).into(),
            remedy: if record.is_open_loop() {
                "a client at its limit sees responses late, and response times look longer; give it more threads \
                 (load.threads) and cores"
            } else if idle {
                "the client was the limit, so this is its throughput and not the service's; give it more threads \
                 (load.threads) and cores"
            } else {
                "the service was at its limit too, or it is not throughput that is judged; yet a generator with a core to spare \
                 would be a better witness"
            }
            .into(),
            variants: vec![index],
        })
    })
}

/// The share of its core that the busiest thread used, in the mean over slices: of several generators that of the busiest, with its name.
fn busiest(slices: &[&Slice]) -> (Option<String>, f64) {
    let parts = slices.iter().flat_map(|slice| &slice.generators);
    let of_each = means(parts.filter_map(|part| Some((part.name.as_str(), part.busiest_share?))));
    match of_each.into_iter().max_by(|(_, one), (_, other)| one.total_cmp(other)) {
        Some((name, share)) => (Some(name.to_owned()), share),
        None => {
            let shares: Vec<f64> =
                slices.iter().filter_map(|slice| slice.counts.generator.busiest_share()).collect();
            (None, shares.iter().sum::<f64>() / shares.len().max(1) as f64)
        }
    }
}

fn means<'a>(values: impl Iterator<Item = (&'a str, f64)>) -> BTreeMap<&'a str, f64> {
    let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (name, value) in values {
        let (sum, count) = sums.entry(name).or_default();
        (*sum, *count) = (*sum + value, *count + 1.0);
    }
    sums.into_iter().map(|(name, (sum, count))| (name, sum / count)).collect()
}

/// Generators were lost. What was measured with them just then was not kept, so that figures stand as far as there are enough of them.
pub(super) fn lost(record: &Record) -> Vec<Finding> {
    let lost = &record.generators_lost;
    if lost.is_empty() {
        return vec![];
    }
    let failed =
        matches!(record.ended.as_ref().map(|ended| &ended.reason), Some(EndReason::GeneratorFailed(_)));
    let few = record.complete_blocks().count() < BLOCKS_MIN && !record.header.plan.comparisons.is_empty();
    let place = |block: u32| {
        if block == 0 { "before the first block".to_owned() } else { format!("in block {block}") }
    };
    let told = |lost: &GeneratorLost| format!("{} {}", place(lost.block), lost.why);
    let told_of: Vec<String> = lost.iter().take(TOLD_MAX).map(told).collect();
    let more = if lost.len() > TOLD_MAX { "; and so on" } else { "" };
    let times = if lost.len() == 1 { "once".to_owned() } else { format!("{} times", lost.len()) };
    vec![Finding {
        check: Check::GeneratorLost,
        grade: if failed && few { Grade::Void } else { Grade::Warning },
        evidence: format!("a load generator was lost {times}: {}{more}", told_of.join("; ")).into(),
        remedy: if failed {
            "the run ended with it; see on its machine whether memory ran out (dmesg), somebody ended it, or the network broke, and run again"
        } else {
            "the blocks in which that happened count for nothing, and others took their places, so that the result stands; see on its \
             machine whether memory ran out (dmesg), somebody ended it, or the network broke"
        }
        .into(),
        variants: vec![],
    }]
}

/// Generators did not begin together, or nobody can tell whether they did.
pub(super) fn apart(record: &Record) -> Vec<Finding> {
    began_late(record).into_iter().chain(clocks_unknown(record)).collect()
}

/// Measured slices of several generators in blocks that ended, those of dropped ones included: why those were dropped is told here too.
fn shared_slices(record: &Record) -> impl Iterator<Item = &Slice> {
    let ended = record.blocks.iter().filter(|block| block.seconds.is_some());
    let slices = ended.flat_map(|block| &block.trials).flat_map(Trial::measured);
    slices.filter(|slice| slice.generators.len() > 1)
}

fn began_late(record: &Record) -> Option<Finding> {
    let slices = shared_slices(record).count();
    let late: Vec<LateBegin<'_>> = shared_slices(record).filter_map(late_begin).collect();
    let worst = late.iter().max_by_key(|late| late.by_ns)?;
    let counted: Vec<&Slice> =
        trials(record).flat_map(Trial::measured).filter(|slice| slice.generators.len() > 1).collect();
    let missing = counted.iter().map(|slice| missing_share(slice)).sum::<f64>() / counted.len().max(1) as f64;
    let void = missing > LATE_SHARE;
    Some(Finding {
        check: Check::GeneratorsApart,
        grade: if void { Grade::Void } else { Grade::Warning },
        evidence: format!(
            "{} began {:.0} ms after the others in a window of {:.0} ms, and in {} of {slices} slices some generator was late; of the load \
             that counts {} is missing for it",
            worst.part.name,
            worst.by_ns as f64 / 1e6,
            worst.window_ns as f64 / 1e6,
            late.len(),
            percent(missing),
        ).into(),
        remedy: if void {
            "what was measured is for too long not the load that was asked for; end what else runs on that machine, or leave it out"
        } else {
            "blocks with such slices are dropped as long as there is time for others; end what else runs on that machine, or set longer \
             slices (design.slice)"
        }
        .into(),
        variants: vec![],
    })
}

/// Part of a slice's load that was not there because generators were late: all of them have about as much of it.
fn missing_share(slice: &Slice) -> f64 {
    let missing_ns: u64 = slice.generators.iter().map(|part| after_first_ns(slice, part)).sum();
    missing_ns as f64 / (slice.generators.len().max(1) as f64 * slice.counts.window_ns.max(1) as f64)
}

fn clocks_unknown(record: &Record) -> Option<Finding> {
    let unknown = |slice: &&Slice| {
        slice.generators.iter().any(|part| part.clock_error_ns > late_max_ns(slice.counts.window_ns))
    };
    let slices = shared_slices(record).count();
    let hit: Vec<&Slice> = shared_slices(record).filter(unknown).collect();
    let parts =
        hit.iter().flat_map(|slice| slice.generators.iter().map(|part| (part, slice.counts.window_ns)));
    let (worst, window_ns) = parts.max_by_key(|(part, _)| part.clock_error_ns)?;
    Some(Finding {
        check: Check::GeneratorsApart,
        grade: Grade::Warning,
        evidence: format!(
            "the clock of {} could be compared with ours to ±{:.1} ms only, in windows of {:.0} ms; so it went in {} of {slices} slices",
            worst.name,
            worst.clock_error_ns as f64 / 1e6,
            window_ns as f64 / 1e6,
            hit.len()
        ).into(),
        remedy: "whether it began with the others cannot be told better than that: the way to it takes long, or its machine is busy; use one \
                 that is nearer, or longer slices (design.slice)"
            .into(),
        variants: vec![],
    })
}

/// The host of a machine on which a generator runs gave time to others: a client that is held back sees responses late.
pub(super) fn steal_elsewhere(record: &Record) -> Vec<Finding> {
    let slices = || trials(record).flat_map(Trial::measured);
    let mut shares: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for part in slices().flat_map(|slice| &slice.generators).filter(|part| !part.here) {
        shares.entry(&part.name).or_default().extend(part.steal_share);
    }
    let finding = |(name, shares): (&str, Vec<f64>)| {
        let disturbed = shares.iter().filter(|share| **share > STEAL_SHARE_MAX).count();
        let most = shares.iter().copied().fold(0.0, f64::max);
        (disturbed > 0).then(|| Finding {
            check: Check::Steal,
            grade: Grade::Warning,
            evidence: format!(
                "the host of {name} gave more than {} of the CPU time to others in {disturbed} of {} slices, {} at the most",
                percent(STEAL_SHARE_MAX),
                shares.len(),
                percent(most)
            ).into(),
            remedy: "a generator that is held back sends and sees late; blocks spread this over all variants, so it widens the intervals; a \
                     quieter machine narrows them"
                .into(),
            variants: vec![],
        })
    };
    shares.into_iter().filter_map(finding).collect()
}
