//! What each of several generators had to do with a run: how much of the load was its own, and how well it could do that.

use record::{GeneratorPart, Record, Trial};
use schemars::JsonSchema;
use serde::Serialize;

use crate::spread::mean;

/// One generator's share of the measured load, over blocks that count.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct GeneratorShare {
    /// Where it runs, such as `local 2`, `ssh://bench-1` or `kubernetes://bench/proofload-x7k2-3`.
    pub name: String,
    /// What its machine calls itself; `None` of one in whose place another is by now.
    pub host: Option<String>,
    /// Processors that it may use; likewise.
    pub processors: Option<u32>,
    /// Requests that it sent.
    pub requests: u64,
    /// Part of all generators' requests, 0 to 1.
    pub share: f64,
    /// CPU share of its busiest thread, 0 to 1, in the mean over slices.
    pub busiest_share: Option<f64>,
    /// How late it began at the most, in microseconds, by its own clock.
    pub late_us_max: f64,
    /// How wrong that may be, either way, because clocks cannot be compared better.
    pub clock_error_us_max: f64,
    /// Share of its machine's CPU time that the host gave to others, 0 to 1, in the mean over slices.
    pub steal_share: Option<f64>,
    /// How late it sent requests for which a connection was free, at p99 of the worst slice, in microseconds; `None` in closed loop.
    pub lag_p99_us_max: Option<f64>,
    /// How often it was lost, blocks that do not count included.
    pub lost: u32,
}

/// All of them in their order; empty where load came from the run's own process.
pub fn generators(record: &Record) -> Vec<GeneratorShare> {
    let slices = record.complete_blocks().flat_map(|block| &block.trials).flat_map(Trial::measured);
    let parts: Vec<&GeneratorPart> = slices.flat_map(|slice| &slice.generators).collect();
    let known = record.generators.iter().map(|generator| generator.name.as_str());
    let lost = record.generators_lost.iter().map(|lost| lost.generator.as_str());
    let names = model::distinct(known.chain(parts.iter().map(|part| part.name.as_str())).chain(lost));
    let all: u64 = parts.iter().map(|part| part.sent).sum();
    let share = |name: &str| {
        let own: Vec<&GeneratorPart> = parts.iter().copied().filter(|part| part.name == name).collect();
        of(record, name, &own, all)
    };
    names.into_iter().map(share).collect()
}

fn of(record: &Record, name: &str, parts: &[&GeneratorPart], all: u64) -> GeneratorShare {
    let told = record.generators.iter().find(|generator| generator.name == name);
    let requests: u64 = parts.iter().map(|part| part.sent).sum();
    let mean_of = |of: fn(&GeneratorPart) -> Option<f64>| mean(parts.iter().filter_map(|part| of(part)));
    let most_us =
        |of: fn(&GeneratorPart) -> u64| parts.iter().map(|part| of(part)).max().unwrap_or(0) as f64 / 1e3;
    let lost = record.generators_lost.iter().filter(|lost| lost.generator == name).count();
    GeneratorShare {
        name: name.to_owned(),
        host: told.map(|generator| generator.host.clone()),
        processors: told.map(|generator| generator.processors),
        requests,
        share: requests as f64 / all.max(1) as f64,
        busiest_share: mean_of(|part| part.busiest_share),
        late_us_max: most_us(|part| part.late_ns),
        clock_error_us_max: most_us(|part| part.clock_error_ns),
        steal_share: mean_of(|part| part.steal_share),
        lag_p99_us_max: parts.iter().filter_map(|part| part.lag_p99_ns).max().map(|ns| ns as f64 / 1e3),
        lost: u32::try_from(lost).unwrap_or(u32::MAX),
    }
}
