//! Why a block is dropped: too much of its CPU time was lost, load generators did not begin together, or the
//! load stood still. Pure. The thresholds are in [`model::thresholds`].
//!
//! This module does not use anything that belongs to a variant (counts, times, errors, use of services), and
//! treats all variants alike. If two variants do not differ, they could be exchanged and the same blocks
//! would be dropped, so dropping cannot create a difference. `docs/methodology.md` has the argument.

use std::collections::BTreeMap;

use analysis::late_begin;
use analysis::usage::processors;
use model::quantity::micros;
use model::thresholds::{CpuLoss, CpuLossLevel};
use record::{Block, MachineUse, Slice, Trial};

/// Time lost in a block, as shares of its measured time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StolenShares {
    /// CPU steal, as a share of all CPU time, 0 to 1.
    pub by_steal: f64,
    /// CPU steal of each other generator's machine, by its name.
    pub steal_elsewhere: BTreeMap<String, f64>,
    /// Use by other processes, as a share of the time of processors that the run could use, 0 to 1.
    pub by_others: f64,
    /// Time throttled by CPU quotas, as a share of the windows, from 0 (above 1 if several processors were
    /// throttled).
    pub by_quota: f64,
}

impl StolenShares {
    /// Reads the counters of a block's measured slices. `turns`: the trials took turns, so the counters of
    /// each slice cover all of them. `cpus`: number of processors counted at the beginning of the run.
    pub fn of(block: &Block, turns: bool, cpus: usize) -> StolenShares {
        let slices: Vec<&Slice> = block.trials.iter().flat_map(Trial::measured).collect();
        let length_ns = |slice: &Slice| slice.counts.wall_ns() as f64;
        let total_ns: f64 = slices.iter().map(|slice| length_ns(slice)).sum();
        if total_ns <= 0.0 {
            return StolenShares::default();
        }
        // Every trial of a pass reports the same events.
        let reports = if turns {
            block.trials.len().max(1) as f64
        } else {
            1.0
        };
        let stolen_ns: f64 = slices
            .iter()
            .map(|slice| slice.machine.steal_share * length_ns(slice))
            .sum();
        let share = |figure: fn(&MachineUse) -> u64| {
            slices
                .iter()
                .map(|slice| figure(&slice.machine) as f64)
                .sum::<f64>()
                / reports
                / total_ns
        };
        StolenShares {
            by_steal: stolen_ns / total_ns,
            steal_elsewhere: elsewhere(&slices),
            by_others: share(|machine| machine.strangers_cpu_ns)
                / processors(cpus, block.trials.iter().map(|of| &of.started)) as f64,
            by_quota: share(|machine| machine.throttled_ns),
        }
    }

    /// Why a block with these disturbances is dropped, in words with figures. `None` if it counts.
    pub fn why(&self) -> Option<String> {
        let here = [
            (CpuLoss::Steal, self.by_steal),
            (CpuLoss::Others, self.by_others),
            (CpuLoss::Quota, self.by_quota),
        ];
        let drops = |loss: CpuLoss, share| loss.level(share) == CpuLossLevel::DropsBlock;
        let here = here
            .into_iter()
            .filter(|(loss, share)| drops(*loss, *share))
            .map(|(loss, share)| loss.words(share));
        let elsewhere = self
            .steal_elsewhere
            .iter()
            .filter(|(_, share)| drops(CpuLoss::Steal, **share))
            .map(|(name, share)| {
                format!("{} on the machine of {name}", CpuLoss::Steal.words(*share))
            });
        let causes: Vec<String> = here.chain(elsewhere).collect();
        (!causes.is_empty()).then(|| causes.join(", "))
    }
}

/// Why a block whose generators did not begin together is dropped, in words with figures: the latest start in
/// it. `None` if all began together. A slice that some generators joined late does not contain all of them.
/// The start of a generator is determined before the first request is sent, so such drops affect all variants
/// alike.
pub fn begun_apart(block: &Block) -> Option<String> {
    let slices = block.trials.iter().flat_map(Trial::measured);
    let late = slices
        .filter_map(late_begin)
        .max_by_key(|late| late.by_ns)?;
    Some(format!(
        "{} began {} after the others, in a window of {}",
        late.part.name,
        micros(late.by_ns as f64 / 1e3),
        micros(late.window_ns as f64 / 1e3)
    ))
}

/// Why a block in which the load itself stood still is dropped, in words with figures: it was stopped, or the
/// machine suspended. Services may have continued meanwhile, and windows had the wrong length.
pub fn stood_still(block: &Block) -> Option<String> {
    let slices = block.trials.iter().flat_map(Trial::measured);
    let halted_ns: u64 = slices.map(|slice| slice.counts.halted_ns).sum();
    let time = micros(halted_ns as f64 / 1e3);
    (halted_ns > 0).then(|| {
        format!("the load stood still for {time}: it was stopped, or the machine was suspended")
    })
}

/// CPU steal on the machines of other generators, by name: a slowed client is as bad as a slowed service.
fn elsewhere(slices: &[&Slice]) -> BTreeMap<String, f64> {
    let mut times: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for slice in slices {
        let length_ns = slice.counts.wall_ns() as f64;
        for part in slice.generators.iter().filter(|part| !part.here) {
            let Some(share) = part.steal_share else {
                continue;
            };
            let (stolen, all) = times.entry(part.name.clone()).or_default();
            (*stolen, *all) = (*stolen + share * length_ns, *all + length_ns);
        }
    }
    times
        .into_iter()
        .map(|(name, (stolen, all))| (name, stolen / all.max(1.0)))
        .collect()
}
