//! Measures properties of the method by simulation: error rates, power, and violations of its assumptions.
//! `bench/truth/results/2026-11-23/rates.md` has its output.
//!
//! ```text
//! cargo run --release -p proofload-stats --example error_rates
//! ```
//! Uses log ratios only, with a standard deviation of 1, because only their size relative to an effect
//! matters. Seeded.

#[path = "../tests/simulation/mod.rs"]
mod simulation;

use proofload_stats::{Direction, Estimate, Looks, Verdict, judge, mser5, plain_t};
use simulation::{Boundary, Noise, share};
use std::io::{Result, Write};

const SEED: u64 = 20_261_121;
const PATHS: u32 = 1_000_000;
/// Standard deviation of the log ratios in simulated verdicts: 1 %, so that a margin in per cent is a
/// multiple of s.
const SD_LOG: f64 = 0.01;

fn main() -> Result<()> {
    let mut out = std::io::stdout().lock();
    stopping(&mut out)?;
    shapes(&mut out)?;
    verdicts(&mut out)?;
    warm_up(&mut out)
}

fn per_cent(share: f64) -> f64 {
    100.0 * share
}

/// Boundary with a look after every block, and the end.
fn boundary(blocks: u32) -> Boundary {
    let looks = Looks::new(1).expect("one comparison");
    Boundary::new(blocks, |n| {
        if n == blocks {
            looks.end_t(n)
        } else {
            looks.look_t(n)
        }
    })
}

/// Three ways to stop a run without any difference, and the share of runs in which each finds one.
fn stopping(out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "| blocks | ended by the budget | stopped when it suited | plain 95 %, every block |"
    )?;
    writeln!(out, "|---|---|---|---|")?;
    let looks = Looks::new(1).expect("one comparison");
    for blocks in [6, 10, 15, 30, 60, 120] {
        let ended = crossed(&boundary(blocks));
        let watched = crossed(&Boundary::new(blocks, |n| looks.look_t(n)));
        let plain = crossed(&Boundary::new(blocks, |n| {
            plain_t(n, 0.95).filter(|_| n >= 4)
        }));
        writeln!(
            out,
            "| {blocks} | {ended:.2} % | {watched:.2} % | {plain:.1} % |"
        )?;
    }
    writeln!(out)
}

/// Percentage of the runs without any difference that cross.
fn crossed(boundary: &Boundary) -> f64 {
    let mut noise = Noise::new(SEED);
    per_cent(share(PATHS, || {
        boundary.crossing(|| noise.normal()).is_some()
    }))
}

/// Draws log ratios one by one, given the number of the block.
type Shape = fn(&mut Noise, u32, f64) -> f64;

/// Noise that violates the assumptions of the method. The last argument is the previous block, for
/// autocorrelated noise.
const SHAPES: [(&str, Shape); 9] = [
    ("normal, independent", |noise, _, _| noise.normal()),
    (
        "heavy tails (t with 3 degrees of freedom)",
        |noise, _, _| noise.heavy(),
    ),
    ("skewed (exponential)", |noise, _, _| {
        -noise.uniform().ln() - 1.0
    }),
    (
        "bursts (one block in twenty ten times as wide)",
        |noise, _, _| burst(noise),
    ),
    ("first three blocks twice as wide", |noise, block, _| {
        noise.normal() * if block <= 3 { 2.0 } else { 1.0 }
    }),
    ("correlated blocks, 0.1", |noise, _, before| {
        remembering(noise, before, 0.1)
    }),
    ("correlated blocks, 0.2", |noise, _, before| {
        remembering(noise, before, 0.2)
    }),
    ("correlated blocks, 0.4", |noise, _, before| {
        remembering(noise, before, 0.4)
    }),
    ("correlated blocks, -0.2", |noise, _, before| {
        remembering(noise, before, -0.2)
    }),
];

fn burst(noise: &mut Noise) -> f64 {
    let width = if noise.uniform() < 0.05 { 10.0 } else { 1.0 };
    noise.normal() * width
}

/// AR(1). The block before the first is 0.
fn remembering(noise: &mut Noise, before: f64, memory: f64) -> f64 {
    memory * before + (1.0 - memory * memory).sqrt() * noise.normal()
}

fn shapes(out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "| noise of the log ratios | false verdicts, 6 blocks | 10 blocks | 30 blocks |\n|---|---|---|---|"
    )?;
    for (name, shape) in SHAPES {
        let rate = |blocks| {
            let boundary = boundary(blocks);
            let mut noise = Noise::new(SEED);
            let happens = || {
                let (mut block, mut before) = (0, 0.0);
                let draw = || {
                    block += 1;
                    before = shape(&mut noise, block, before);
                    before
                };
                boundary.crossing(draw).is_some()
            };
            per_cent(share(PATHS, happens))
        };
        writeln!(
            out,
            "| {name} | {:.1} % | {:.1} % | {:.1} % |",
            rate(6),
            rate(10),
            rate(30)
        )?;
    }
    writeln!(out)
}

/// Whole runs of thirty blocks, judged at every look as in the lab, with s = 1 % and a margin of 1 %.
fn verdicts(out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "| true difference | better | worse | equivalent | inconclusive | blocks, mean |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|")?;
    let critical_t = boundary(30).0;
    let looks: Vec<(u32, f64)> = (4..=30).map(|n| (n, critical_t[n as usize])).collect();
    for effect in [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0] {
        let mut noise = Noise::new(SEED);
        let mut counts = [0_u32; 4];
        let mut blocks = 0_u64;
        let paths = PATHS / 10;
        for _ in 0..paths {
            let (verdict, n) = run(&looks, &mut noise, (1.0 + effect / 100.0_f64).ln());
            counts[verdict as usize] += 1;
            blocks += u64::from(n);
        }
        let share =
            |verdict: Verdict| per_cent(f64::from(counts[verdict as usize]) / f64::from(paths));
        writeln!(
            out,
            "| {effect} % | {:.1} % | {:.1} % | {:.1} % | {:.1} % | {:.1} |",
            share(Verdict::Better),
            share(Verdict::Worse),
            share(Verdict::Equivalent),
            share(Verdict::Inconclusive),
            blocks as f64 / f64::from(paths)
        )?;
    }
    writeln!(out)
}

/// Simulates one run. Returns the first verdict that is not inconclusive, and its number of blocks.
fn run(looks: &[(u32, f64)], noise: &mut Noise, effect: f64) -> (Verdict, u32) {
    let mut d: Vec<f64> = Vec::with_capacity(30);
    for &(blocks, critical_t) in looks {
        d.resize_with(blocks as usize, || effect + SD_LOG * noise.normal());
        let estimate = Estimate::of(&d, critical_t).expect("normal noise has spread");
        let verdict = judge(&estimate, 0.01, Direction::HigherIsBetter);
        if verdict != Verdict::Inconclusive {
            return (verdict, blocks);
        }
    }
    (Verdict::Inconclusive, d.len() as u32)
}

/// Share of pure noise that MSER-5 reports as unsteady, and of series that never settle.
fn warm_up(out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "| buckets | steady noise called not steady | buckets cut from it, mean | trend of 3 s called not steady |"
    )?;
    writeln!(out, "|---|---|---|---|")?;
    for buckets in [30, 60, 80, 100, 150, 300, 600_usize] {
        let mut noise = Noise::new(SEED);
        let paths = PATHS / 50;
        let mut cut = 0;
        let flat = share(paths, || {
            let series: Vec<f64> = (0..buckets).map(|_| noise.normal()).collect();
            let truncation = mser5(&series);
            cut += truncation.buckets;
            !truncation.steady
        });
        let trend = share(paths, || {
            let rise = |i| 3.0 * i as f64 / buckets as f64;
            let series: Vec<f64> = (0..buckets).map(|i| rise(i) + noise.normal()).collect();
            !mser5(&series).steady
        });
        let mean_cut = cut as f64 / f64::from(paths);
        writeln!(
            out,
            "| {buckets} | {:.1} % | {mean_cut:.1} | {:.1} % |",
            per_cent(flat),
            per_cent(trend)
        )?;
    }
    Ok(())
}
