//! Measures three things by simulation:
//! - how often a gate fails, passes and is inconclusive for changes of known size
//! - how often checks of figures over time and order fire in clean runs
//! - from which size they find planted problems
//!
//! `bench/truth/results/2026-11-23/rates.md` has its output.
//!
//! ```text
//! cargo run --release -p proofload-analysis --example rates
//! ```
//! Runs are simulated by `tests/made`, with slices of half a second and noise of the machine, between
//! processes and within them. Runs with a gate end at the look at which the lab would end them. Seeded.

#[path = "../tests/made/mod.rs"]
mod made;

use std::io::{Result, Write};

use made::gates::Course;
use made::{Maker, PLANTS, Run};
use proofload_analysis::conclude;
use record::Record;

const GATES_SEED: u64 = 20_261_122;
const GATES_RUNS: u32 = 5_000;
/// Spread between processes. With 2 % between slices, two per trial, the ratio of a block varies by 2.4 %.
const GATES: Course<'_> = Course {
    blocks: 15,
    between: 0.01,
    true_change: 0.0,
    limit: "",
};
const SEED: u64 = 20_261_121;
const CLEAN: u32 = 2_000;
const PLANTED: u32 = 100;
const CHECKS: [&str; 6] = [
    "order_effect",
    "autocorrelated",
    "drift",
    "warm_up_inside",
    "leak",
    "service_not_saturated",
];

fn main() -> Result<()> {
    let mut out = std::io::stdout().lock();
    gates(&mut out)?;
    clean(&mut out)?;
    planted(&mut out)
}

fn gates(out: &mut impl Write) -> Result<()> {
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
        let rates = Course {
            true_change,
            limit,
            ..GATES
        }
        .rates(GATES_SEED, GATES_RUNS);
        let shares =
            [rates.broken, rates.kept, rates.open].map(|share| format!("{:.1} %", share * 100.0));
        let (percent, shares) = (true_change * 100.0, shares.join(" | "));
        writeln!(
            out,
            "| {percent:.0} % | `{limit}` | {shares} | {:.1} |",
            rates.blocks
        )?;
    }
    writeln!(out)
}

/// Number of clean runs in which each check fires.
fn clean(out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "| blocks | variants | noise | runs | {} | any |",
        CHECKS.join(" | ")
    )?;
    writeln!(out, "|---|---|---|---|{}---|", "---|".repeat(CHECKS.len()))?;
    let mut maker = Maker::new(SEED);
    for (blocks, variants, between) in [
        (6, 2, 0.01),
        (6, 4, 0.05),
        (10, 2, 0.05),
        (10, 4, 0.01),
        (30, 2, 0.02),
        (60, 2, 0.05),
    ] {
        let run = Run {
            variants,
            ..Run::new(blocks, between)
        };
        let runs = CLEAN * 10 / blocks.max(10);
        let found: Vec<_> = (0..runs).map(|_| found(&maker.clean(run))).collect();
        let count = |check| {
            found
                .iter()
                .filter(|found| found.contains(&check))
                .count()
                .to_string()
        };
        let (counts, any) = (
            CHECKS.map(count).join(" | "),
            found.iter().filter(|of| !of.is_empty()).count(),
        );
        writeln!(
            out,
            "| {blocks} | {variants} | {} % | {runs} | {counts} | {any} |",
            between * 100.0
        )?;
    }
    writeln!(out)
}

/// Share of runs with a planted problem in which it is found, by its size.
fn planted(out: &mut impl Write) -> Result<()> {
    let sizes = [
        [-0.02, -0.03, -0.05, -0.10],
        [0.02, 0.04, 0.06, 0.10],
        [-0.10, -0.15, -0.20, -0.40],
        [-0.10, -0.15, -0.20, -0.40],
        [30.0, 50.0, 70.0, 100.0],
        [0.5, 0.7, 0.9, 0.97],
    ];
    writeln!(
        out,
        "| planted | check | size: found with 6, 10, 20, 40 blocks | | | |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|")?;
    for ((name, check, make), sizes) in PLANTS.into_iter().zip(sizes) {
        write!(out, "| {name} | {check} |")?;
        for size in sizes {
            let share = |blocks| {
                let (mut maker, run) = (Maker::new(SEED), Run::new(blocks, 0.02));
                let hits =
                    (0..PLANTED).filter(|_| found(&make(&mut maker, run, size)).contains(&check));
                format!("{:.0}", hits.count() as f64 / f64::from(PLANTED) * 100.0)
            };
            write!(out, " {size}: {} |", [6, 10, 20, 40].map(share).join(", "))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn found(record: &Record) -> Vec<&'static str> {
    let checks = conclude(record)
        .findings
        .into_iter()
        .map(|finding| finding.check.name());
    checks.filter(|check| CHECKS.contains(check)).collect()
}
