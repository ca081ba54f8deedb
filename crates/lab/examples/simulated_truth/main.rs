//! Measures, by simulation, how often the lab's intervals and verdicts are true on a noisy machine: the first proof of
//! `docs/methodology.md`, whose tables are its output.
//!
//! ```text
//! cargo run --release -p proofload-lab --example simulated_truth [-- --runs 10000] [--json]
//! ```
//! Noise is made in time, slice by slice, in the lab's own order; whether it cancels is part of what is tested. Seeded, and the
//! same for any number of threads. It must not measure anything: no load, no clock, no disk.

mod machine;
#[path = "../../../stats/tests/simulation/mod.rs"]
mod noise;
mod run;
mod tables;
mod tally;
mod verdicts;

use machine::{Kind, Memory};
use run::{Cell, Effects};
use std::io::{Error, Result, Write};
use tables::{Line, Sheet};
use tally::{Tally, simulate};
use verdicts::Judge;

const SEED: u64 = 20_261_121;
const RUNS: u64 = 10_000;
/// Blocks at which the plan of looks, and the time of the rule that may always look, end.
const BLOCKS: u32 = 30;
/// Blocks of the one look.
const BLOCKS_ONCE: u32 = 10;
/// Slices of a trial.
const PASSES: u32 = 10;
const VARIANTS: [usize; 3] = [2, 4, 12];

const NOISES: [(&str, Kind, u32); 9] = [
    ("independent", Kind::Independent, PASSES),
    ("AR(1), a third of a slice", Kind::Remembers(Memory::Slice), PASSES),
    ("AR(1), a pass", Kind::Remembers(Memory::Pass), PASSES),
    ("AR(1), 5 s", Kind::Remembers(Memory::Seconds), PASSES),
    ("AR(1), a block", Kind::Remembers(Memory::Block), PASSES),
    ("drift and swing", Kind::Drift, PASSES),
    ("drift and swing, 5 slices", Kind::Drift, 5),
    ("bursts of steal", Kind::Steal, PASSES),
    ("heavy tails", Kind::HeavyTails, PASSES),
];

/// Outside of what the method assumes: noise that does not cancel.
const OUTSIDE: [(&str, Kind, u32); 2] = [
    ("own cores, AR(1), 5 s", Kind::OwnCores(Memory::Seconds), PASSES),
    ("**own cores, AR(1), 5 blocks**", Kind::OwnCores(Memory::Blocks), PASSES),
];

struct Asked {
    runs: u64,
    json: bool,
}

fn main() -> Result<()> {
    let asked = asked(std::env::args().skip(1))?;
    let mut sheets = rules(&asked).map_err(Error::other)?;
    sheets.push(one_look(&asked).map_err(Error::other)?);
    let mut out = std::io::stdout().lock();
    for sheet in &sheets {
        if asked.json { sheet.write_json(&mut out)? } else { sheet.write_markdown(&mut out)? }
    }
    out.flush()
}

fn asked(mut arguments: impl Iterator<Item = String>) -> Result<Asked> {
    let mut asked = Asked { runs: RUNS, json: false };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => asked.json = true,
            "--runs" => {
                let runs = arguments.next().and_then(|text| text.parse().ok()).filter(|runs| *runs > 0);
                asked.runs = runs.ok_or_else(|| Error::other("--runs wants a number above 0"))?;
            }
            other => return Err(Error::other(format!("{other}: known are --runs N and --json"))),
        }
    }
    Ok(asked)
}

/// The three stop rules on the same runs: each kind of noise, each number of variants, without and with true effects.
fn rules(asked: &Asked) -> std::result::Result<Vec<Sheet>, stats::Error> {
    let names = [
        format!("Planned looks, at most {BLOCKS} blocks"),
        format!("A look after every block, {BLOCKS} blocks"),
        format!("One look, after {BLOCKS_ONCE} blocks"),
    ];
    let mut sheets: Vec<Sheet> = names.into_iter().map(Sheet::new).collect();
    let mut number = 0;
    for (name, kind, passes) in NOISES.into_iter().chain(OUTSIDE) {
        for variants in VARIANTS {
            let comparisons = variants as u32 - 1;
            let judges = [
                Judge::planned(BLOCKS, comparisons)?,
                Judge::always(BLOCKS, comparisons)?,
                Judge::once(BLOCKS_ONCE, comparisons)?,
            ];
            let tallies = [Effects::None, Effects::Planted].map(|effects| {
                number += 1;
                let cell = Cell { kind, variants, passes, effects };
                simulate(&cell, &judges, BLOCKS, asked.runs, seed(number))
            });
            let [without, planted] = tallies;
            for (sheet, (without, planted)) in sheets.iter_mut().zip(without.into_iter().zip(planted)) {
                sheet.add(Line { noise: name.to_owned(), variants, without, planted });
            }
        }
    }
    Ok(sheets)
}

/// The one look at several comparisons, whose interval is approximate: by the number of blocks, with independent noise.
fn one_look(asked: &Asked) -> std::result::Result<Sheet, stats::Error> {
    let mut sheet = Sheet::new("One look at several comparisons, by blocks".to_owned());
    let mut number = 1_000;
    // Beyond 12 blocks flips are drawn, which takes long with many candidates.
    for (blocks, variants) in [(6, 4), (6, 12), (7, 4), (7, 12), (8, 4), (8, 12), (12, 4), (12, 12), (20, 4)]
    {
        let judge = [Judge::once(blocks, variants as u32 - 1)?];
        let mut tally = |effects| -> Tally {
            number += 1;
            let cell = Cell { kind: Kind::Independent, variants, passes: PASSES, effects };
            simulate(&cell, &judge, blocks, asked.runs, seed(number))[0]
        };
        let (without, planted) = (tally(Effects::None), tally(Effects::Planted));
        sheet.add(Line { noise: format!("independent, {blocks} blocks"), variants, without, planted });
    }
    Ok(sheet)
}

/// Cells do not share a seed.
fn seed(number: u64) -> u64 {
    SEED ^ number << 32
}
