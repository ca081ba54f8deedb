//! Measures, by simulation, how often the checks of figures over time and order accuse clean runs, and from which size on they find
//! what is planted. `bench/truth/results/2026-11-23/rates.md` has its output.
//!
//! ```text
//! cargo run --release -p proofload-analysis --example series_rates
//! ```
//! Runs are made up by `tests/made`, slices of half a second with noise of the machine, between processes and within them. Seeded.

#[path = "../tests/made/mod.rs"]
mod made;

use std::io::{Result, Write};

use made::{Maker, Run, leak};
use proofload_analysis::conclude;
use record::Record;

const SEED: u64 = 20_261_121;
const CLEAN: u32 = 2_000;
const PLANTED: u32 = 100;
const CHECKS: [&str; 6] =
    ["order_effect", "autocorrelated", "drift", "warm_up_inside", "leak", "service_not_saturated"];

fn main() -> Result<()> {
    let mut out = std::io::stdout().lock();
    clean(&mut out)?;
    planted(&mut out)
}

/// Clean runs that each check accuses.
fn clean(out: &mut impl Write) -> Result<()> {
    writeln!(out, "| blocks | variants | noise | runs | {} | any |", CHECKS.join(" | "))?;
    writeln!(out, "|---|---|---|---|{}---|", "---|".repeat(CHECKS.len()))?;
    let mut maker = Maker::new(SEED);
    for (blocks, variants, between) in
        [(6, 2, 0.01), (6, 4, 0.05), (10, 2, 0.05), (10, 4, 0.01), (30, 2, 0.02), (60, 2, 0.05)]
    {
        let run = Run { variants, ..Run::new(blocks, between) };
        let runs = CLEAN * 10 / blocks.max(10);
        let mut counts = [0_u32; CHECKS.len()];
        let mut any = 0_u32;
        for _ in 0..runs {
            let found = found(&maker.clean(run));
            any += u32::from(!found.is_empty());
            for (count, check) in counts.iter_mut().zip(CHECKS) {
                *count += u32::from(found.contains(&check));
            }
        }
        let cells: Vec<String> = counts.iter().map(u32::to_string).collect();
        writeln!(
            out,
            "| {blocks} | {variants} | {} % | {runs} | {} | {any} |",
            between * 100.0,
            cells.join(" | ")
        )?;
    }
    writeln!(out)
}

/// What a plant is called, the check that is to see it, its sizes, and how it is made.
type Plant = (&'static str, &'static str, [f64; 4], fn(&mut Maker, Run, f64) -> Record);

/// Of runs with something planted the share that is found, by its size.
fn planted(out: &mut impl Write) -> Result<()> {
    let plants: [Plant; 6] = [
        ("the last place slower by", "order_effect", [-0.02, -0.03, -0.05, -0.10], |maker, run, size| {
            maker.planted(run, |at| size * at.place)
        }),
        ("the end of a trial faster by", "warm_up_inside", [0.02, 0.04, 0.06, 0.10], |maker, run, size| {
            maker.planted(run, |at| size * at.time)
        }),
        ("from the middle on slower by", "drift", [-0.10, -0.15, -0.20, -0.40], |maker, run, size| {
            maker.planted(run, |at| if at.block > run.blocks / 2 { size } else { 0.0 })
        }),
        ("evenly slower by", "drift", [-0.10, -0.15, -0.20, -0.40], |maker, run, size| {
            maker.planted(run, |at| size * f64::from(at.block) / f64::from(run.blocks))
        }),
        ("MiB more at the end of a trial", "leak", [30.0, 50.0, 70.0, 100.0], |maker, run, size| {
            let mut record = maker.clean(run);
            leak(&mut record, 1, size);
            record
        }),
        ("neighbours alike", "autocorrelated", [0.5, 0.7, 0.9, 0.97], Maker::alike),
    ];
    writeln!(out, "| planted | check | size: found with 6, 10, 20, 40 blocks | | | |")?;
    writeln!(out, "|---|---|---|---|---|---|")?;
    for (name, check, sizes, make) in plants {
        write!(out, "| {name} | {check} |")?;
        for size in sizes {
            let found = [6, 10, 20, 40].map(|blocks| share_found(check, Run::new(blocks, 0.02), size, make));
            write!(out, " {size}: {} |", found.map(|share| format!("{share:.0}")).join(", "))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn share_found(check: &str, run: Run, size: f64, make: fn(&mut Maker, Run, f64) -> Record) -> f64 {
    let mut maker = Maker::new(SEED);
    let hits = (0..PLANTED).filter(|_| found(&make(&mut maker, run, size)).contains(&check)).count();
    hits as f64 / f64::from(PLANTED) * 100.0
}

fn found(record: &Record) -> Vec<&'static str> {
    let checks = conclude(record).findings.into_iter().map(|finding| finding.check.name());
    checks.filter(|check| CHECKS.contains(check)).collect()
}
