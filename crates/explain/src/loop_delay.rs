//! How late the event loop of a variant's entry was, by its counters: for showing beside a trial.
//!
//! The same means as in [`Waiting`](crate::Waiting), so that no two places of a report differ.

use record::{CaptureKind, CapturedService, NodeCounters, Record};

/// Delay of the event loop's timers in microseconds, median and 99th percentile: means over the JavaScript threads of the variant's entry,
/// tools such as npm left out, and over rounds. `None` where nothing was counted.
pub fn loop_delay_us(record: &Record, variant: usize) -> Option<(f64, f64)> {
    let entry = &record.header.plan.variants.get(variant)?.entry;
    let counted =
        |capture: &&record::Capture| capture.variant == variant && capture.kind == CaptureKind::Counters;
    let captures = record.captures.iter().filter(counted);
    let services = captures.filter_map(|one| one.services.iter().find(|service| service.service == *entry));
    let rounds: Vec<(f64, f64)> = services.filter_map(of_round).collect();
    Some((mean(rounds.iter().map(|(median, _)| *median))?, mean(rounds.iter().map(|(_, high)| *high))?))
}

fn of_round(service: &CapturedService) -> Option<(f64, f64)> {
    let agents = service.processes.iter().flat_map(|process| &process.agents);
    let agents = agents.filter(|agent| agent.role != "tool");
    let all: Vec<&NodeCounters> = agents.filter_map(|agent| agent.counters.as_ref()).collect();
    let us = |of: fn(&NodeCounters) -> u64| mean(all.iter().map(|one| of(one) as f64 / 1e3));
    Some((us(|one| one.loop_delay_p50_ns)?, us(|one| one.loop_delay_p99_ns)?))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
