//! Measures, by simulation, how often a gate is broken, kept and open for changes of known size. The table of gates
//! in `bench/truth/results/2026-11-23/rates.md` is its output.
//!
//! ```text
//! cargo run --release -p proofload-analysis --example gate_rates
//! ```
//! Runs are made up by `tests/made`, each ended at the look at which the lab would end it. Seeded.

#[path = "../tests/made/mod.rs"]
mod made;

use std::io::{Result, Write};

use made::gates::Course;

const SEED: u64 = 20_261_122;
const RUNS: u32 = 5_000;
const BLOCKS: u32 = 15;
/// Between processes. With 2 % between slices, two a trial, the ratio of a block scatters by 2.4 %.
const BETWEEN: f64 = 0.01;

fn main() -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "| true change | limit | fail | pass | inconclusive | blocks, mean |\n|---|---|---|---|---|---|"
    )?;
    for (true_change, limit) in [
        (0.0, "throughput > +0%"),
        (0.0, "throughput > -1%"),
        (0.0, "throughput > -3%"),
        (-0.01, "throughput > -3%"),
        (-0.03, "throughput > -3%"),
        (-0.05, "throughput > -3%"),
        (-0.10, "throughput > -3%"),
    ] {
        let rates = Course { blocks: BLOCKS, between: BETWEEN, true_change, limit }.rates(SEED, RUNS);
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        writeln!(
            out,
            "| {:.0} % | `{limit}` | {} | {} | {} | {:.1} |",
            true_change * 100.0,
            percent(rates.broken),
            percent(rates.kept),
            percent(rates.open),
            rates.blocks
        )?;
    }
    Ok(())
}
