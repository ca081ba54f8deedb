//! Measures by simulation how often runs are right on a noisy machine: the first proof of
//! `docs/methodology.md`. `bench/truth/results/2026-11-25/simulated.md` is its output.
//!
//! ```text
//! cargo run --release -p proofload-lab --example simulated_truth [-- RUNS [PART-OF-A-NAME]]
//! ```
//! Services and machine are simulated. Dispatcher, record and analysis are those of every run: turns,
//! warm-up, dropped blocks, looks and verdicts. Seeded, and the same for any number of threads. There is no
//! load and no clock.

#[allow(dead_code, unused_imports)]
#[path = "../../tests/environment/mod.rs"]
mod environment;
mod machine;
#[path = "../../../stats/tests/simulation/mod.rs"]
mod noise;
mod tally;
mod world;

use std::io::{Error, Result, Write};

use machine::Kind;
use tally::{Cell, Tally, simulate};
use world::Service;

const SEED: u64 = 20_261_123;
const RUNS: u64 = 1_000;
/// Budgets of runs with two and with four variants, in seconds.
const BUDGET_S: [(usize, u64); 2] = [(2, 100), (4, 150)];

const NOISES: [(&str, Kind); 8] = [
    ("independent", Kind::Independent),
    ("remembers 0.2 s", Kind::Remembers(0.2)),
    ("remembers 2 s", Kind::Remembers(2.0)),
    ("remembers 10 s", Kind::Remembers(10.0)),
    ("drift and swing", Kind::Drift),
    ("bursts of steal", Kind::Steal),
    ("heavy tails", Kind::HeavyTails),
    ("remembers 60 s", Kind::Remembers(60.0)),
];

/// Violates the method's assumptions: noise that does not cancel.
const OUTSIDE: [(&str, Kind); 3] = [
    ("own cores, 5 s", Kind::OwnCores(5.0)),
    ("**own cores, 60 s**", Kind::OwnCores(60.0)),
    ("**one-sided**", Kind::OneSided),
];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let runs = arguments
        .next()
        .map_or(Ok(RUNS), |given| given.parse().map_err(Error::other))?;
    let only = arguments.next().unwrap_or_default();
    environment::write_to_memory();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{runs} runs a cell.\n\n{HEAD}")?;
    for (number, (name, cell)) in cells().into_iter().enumerate() {
        if !name.contains(&only) {
            continue;
        }
        let tally = simulate(&cell, runs, SEED ^ (number as u64) << 32);
        write_row(&mut out, &name, &cell, &tally)?;
        out.flush()?;
    }
    Ok(())
}

/// Each kind of noise, with 2 and 4 variants, without and with planted effects. Also services that wait.
fn cells() -> Vec<(String, Cell)> {
    let mut cells = Vec::new();
    for (name, kind) in NOISES.into_iter().chain(OUTSIDE) {
        for (variants, budget_s) in BUDGET_S {
            for planted in [[0.0; 3], [0.05, 0.0, -0.02]] {
                let effects = planted[..variants - 1]
                    .iter()
                    .map(|share: &f64| Service::Busy(share.ln_1p()));
                let services: Vec<Service> =
                    [Service::Busy(0.0)].into_iter().chain(effects).collect();
                let what = if planted[0] == 0.0 {
                    "none"
                } else {
                    "+5 %, 0, −2 %"
                };
                cells.push((
                    format!("{name} | {what}"),
                    Cell {
                        kind,
                        services,
                        budget_s,
                    },
                ));
            }
        }
    }
    let waits = |mean_s, constant| Service::Waits { mean_s, constant };
    for (name, services) in [
        (
            "waits 5 ms, constant vs exponential | none",
            [waits(0.005, true), waits(0.005, false)],
        ),
        (
            "waits 50 ms, constant vs exponential | none",
            [waits(0.05, true), waits(0.05, false)],
        ),
        (
            "waits 50 vs 55 ms, constant | −9.1 %",
            [waits(0.05, true), waits(0.055, true)],
        ),
        (
            "waits 10 vs 10.5 ms, exponential | −4.8 %",
            [waits(0.01, false), waits(0.0105, false)],
        ),
    ] {
        cells.push((
            name.to_owned(),
            Cell {
                kind: Kind::Independent,
                services: services.to_vec(),
                budget_s: 100,
            },
        ));
    }
    for (name, candidate) in [("none", 100.0), ("×8", 800.0)] {
        let services = vec![
            Service::InLine { per_s: 100.0 },
            Service::InLine { per_s: candidate },
        ];
        let name = format!("waits in line, 100 a second | {name}");
        cells.push((
            name,
            Cell {
                kind: Kind::Independent,
                services,
                budget_s: 40,
            },
        ));
    }
    cells
}

const HEAD: &str = "| noise | effects | variants | all intervals hold | false verdict | wrong sign | decided | invalid | blocks, dropped | time |\n\
    |---|---|---|---|---|---|---|---|---|---|";

fn write_row(out: &mut impl Write, name: &str, cell: &Cell, tally: &Tally) -> Result<()> {
    let text = |count: u64| {
        let share = tally.share(count);
        format!("{:.1} ± {:.1} %", 100.0 * share.value, 100.0 * share.error)
    };
    let (blocks, dropped) = tally.blocks();
    writeln!(
        out,
        "| {name} | {} | {} | {} | {} | {} | {} | {blocks:.1}, {dropped:.1} | {:.0} of {} s |",
        cell.services.len(),
        text(tally.all_hold),
        text(tally.false_verdict),
        text(tally.wrong_sign),
        text(tally.decided),
        text(tally.invalid),
        tally.seconds(),
        cell.budget_s,
    )
}
