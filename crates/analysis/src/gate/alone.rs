//! Limits where nothing is compared: each slice's own figures, for there is no interval of one trial. Whether the next run would pass
//! is not said.

use plan::{Figure, GateEntry, Metric, Subject};
use record::{Record, SliceKind};

use super::{Found, Judgement, Measured, Ruling, without_value};
use crate::measurement::{Measurement, Window};

/// Each amount with each slice. A change is about nothing here, and refused before a run.
pub(super) fn judgements(
    record: &Record,
    measured: &Measurement<'_>,
    entries: &[GateEntry],
) -> Vec<Judgement> {
    let amounts = entries.iter().filter(|entry| !entry.limit.bound.is_change());
    let of_entry = |entry: &GateEntry| {
        let judge = |window: &Window<'_>| {
            let found = figure(entry.limit.figure, window, record);
            Judgement::of(entry, Subject::Variant(0), &window.name, found)
        };
        measured.windows.iter().map(judge).collect::<Vec<_>>()
    };
    amounts.flat_map(of_entry).collect()
}

fn figure(figure: Figure, window: &Window<'_>, record: &Record) -> Found {
    let counts = &window.slice.counts;
    let share = |part: u64| Measured::exact(part as f64 / counts.due().max(1) as f64);
    let Some(metric) = figure.metric() else { return Ok(share(counts.failed())) };
    if let Some(void) = window.void() {
        return Err((Ruling::Fail, void.evidence.to_string()));
    }
    let inconclusive = || (Ruling::Inconclusive, without_value(metric));
    if let Some(q) = metric.quantile() {
        // What a user waits; in closed loop nothing is due, and it is what the service took.
        let latencies = counts.open.as_ref().map_or(&counts.latency, |open| &open.response);
        let quantile = latencies.quantile(q).filter(|_| latencies.resolves(q)).ok_or_else(inconclusive)?;
        let us = Measured::exact(quantile.ns() as f64 / 1e3);
        return Ok(if quantile.is_exact() { us } else { us.unbounded() });
    }
    let cpu_us = window.slice.services_cpu_ns() as f64 / 1e3 / counts.successful.max(1) as f64;
    let trials = record.blocks.iter().flat_map(|block| &block.trials);
    let has_slices =
        |trial: &&record::Trial| trial.slices.iter().any(|slice| slice.kind == SliceKind::Measured);
    let peak =
        || trials.filter(has_slices).find_map(|trial| Some(trial.ended.as_ref()?.peak_rss_bytes as f64));
    let value = match metric {
        Metric::Throughput => window.throughput_per_s(),
        Metric::CpuPerRequest => Some(cpu_us),
        Metric::PeakMemory => peak(),
        Metric::Capacity | Metric::P50 | Metric::P90 | Metric::P99 | Metric::P999 => None,
    };
    value.filter(|value| *value > 0.0).map(Measured::exact).ok_or_else(inconclusive)
}
