//! Throughput and the choice of its estimator: responses in the window for a service at its limit, response
//! times for a service that waits, and CPU time per request if it is judged per core-second. Pure.

use model::{Metric, throughput};
use record::{Record, Slice, Trial};

use crate::only_if;
use crate::usage::{
    NEAR_MIN, ProcessorUse, SATURATED_MIN, busy, is_at_limit, is_unseen, successful, warmed,
};

/// Share of the CPU time available to services from which they are at their limit with all of their cores.
const PER_CORE_MIN: f64 = 0.9;

/// Throughput of a slice per second. `None` without a window.
pub fn throughput_per_s(slice: &Slice) -> Option<f64> {
    let (successful, ns) = throughput(slice);
    (ns > 0).then(|| successful as f64 / ns as f64 * 1e9)
}

/// The metric whose values decide about a metric, and the sign of their logarithms. Throughput per
/// core-second is the inverse of CPU time per request.
pub(crate) fn judged_by(metric: Metric, per_core: bool) -> (Metric, f64) {
    if per_core && metric == Metric::Throughput {
        (Metric::CpuPerRequest, -1.0)
    } else {
        (metric, 1.0)
    }
}

/// Whether throughput is judged per core-second: successful responses per second of CPU time. If services
/// keep all available cores busy, this answers the same question and varies less, because it excludes time
/// that others took from these cores. The decision uses the first block and no ratio.
pub fn per_core(record: &Record) -> bool {
    let (design, variants) = (&record.header.plan.design, &record.header.plan.variants);
    let at_limit = |trial: &Trial| {
        let Some(variant) = variants.get(trial.variant()) else {
            return false;
        };
        let (slices, measured) = (warmed(trial), successful(trial.measured()));
        let answers = slices.iter().any(|slice| slice.counts.successful > 0);
        let apart = !trial.started.cpus_shared && variant.load.network.is_none();
        let started = &trial.started;
        let seen = apart && answers && !is_unseen(variant, [started]) && !is_at_limit(&slices);
        let machine = record.header.environment.cpus;
        let busy = |slices: &[&Slice]| {
            ProcessorUse {
                machine,
                started,
                slices,
            }
            .cores_busy()
        };
        seen && busy(&slices) >= PER_CORE_MIN
            && (measured.is_empty() || busy(&measured) >= NEAR_MIN)
    };
    // The start for finding ports is not a block.
    let first = record
        .blocks
        .iter()
        .find(|block| block.number > 0 && block.trials.len() == variants.len());
    design.per_core
        && !record.is_open_loop()
        && first.is_some_and(|of| of.trials.iter().all(at_limit))
}

/// The variants that wait, judged by the data of a block so far: neither their services nor the generator was
/// at a limit. Their throughput follows from response times. If one variant waits,
/// all variants that are not clearly at their limit count as waiting. Otherwise two similar variants just
/// above and below the bound would be compared by different estimates.
///
/// None in open loop, over a link, which is the intended limit, and with several requests in flight per
/// connection. The distance of deployed services from their limit is unknown. They count as waiting, because
/// their windows are long enough for either method.
pub fn waiting_variants(record: &Record, block: u32) -> Vec<usize> {
    let block = record
        .blocks
        .iter()
        .find(|found| found.number == block && !record.is_open_loop());
    // How close a variant is to its limit. `None` if it never counts as waiting.
    let nearness = |trial: &Trial| {
        let variant = record.header.plan.variants.get(trial.variant())?;
        // Measured slices are more precise than the warm-up.
        let measured = successful(trial.measured());
        let slices = if measured.is_empty() {
            warmed(trial)
        } else {
            measured
        };
        // With several requests in flight per connection, the number that the server allowed is unknown.
        let one_by_one = variant.load.protocol.lanes() == 1 && variant.load.network.is_none();
        only_if(one_by_one && !slices.is_empty())?;
        let started = &trial.started;
        let unseen = is_unseen(variant, [started]);
        only_if(unseen || !is_at_limit(&slices))?;
        Some((
            trial.variant(),
            if unseen {
                0.0
            } else {
                busy(record.header.environment.cpus, started, &slices)
            },
        ))
    };
    let trials = block.into_iter().flat_map(|block| &block.trials);
    let known: Vec<(usize, f64)> = trials.filter_map(nearness).collect();
    let one_waits = known.iter().any(|(_, of)| *of < SATURATED_MIN);
    let most = if one_waits { NEAR_MIN } else { 0.0 };
    known
        .into_iter()
        .filter(|(_, of)| *of < most)
        .map(|(variant, _)| variant)
        .collect()
}
