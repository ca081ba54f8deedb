//! Tests of the statistics against other implementations, by simulation, and with random data.

mod change;
mod degenerate;
mod effects;
mod guard;
mod looks;
mod power;
mod properties;
#[path = "../simulation/mod.rs"]
mod simulation;
mod vectors;
mod verdicts;

fn filled(exact: &[u64], censored: &[u64]) -> proofload_stats::Latencies {
    let mut latencies = proofload_stats::Latencies::new();
    exact.iter().for_each(|&ns| latencies.record(ns));
    censored.iter().for_each(|&ns| latencies.censor(ns));
    latencies
}
