//! Measures, by simulation, what the method does: how often it errs, what it detects, and where its assumptions break.
//! The tables of `docs/methodology.md` are its output.
//!
//! ```text
//! cargo run --release -p proofload-stats --example error_rates
//! ```
//! Works on log ratios alone, with a standard deviation of 1: only their size relative to an effect matters. Seeded.

#[path = "../tests/simulation/mod.rs"]
mod simulation;

use proofload_stats::{Direction, Estimate, Looks, Verdict, critical_t_at, judge, mser5, plain_t};
use simulation::{Boundary, Noise, share, shares_crossed_by_end};
use std::io::{Result, Write};

const SEED: u64 = 20_261_121;
const PATHS: u32 = 1_000_000;
/// C that numerical integration over normal deviates gives for looks at 6, 10, 15, 22 and 30 blocks.
const NORMAL_C: f64 = 2.121;
/// Standard deviation of the log ratios where verdicts are simulated: 1 %, so that a margin in per cent is one in s.
const SD_LOG: f64 = 0.01;

fn main() -> Result<()> {
    let mut out = std::io::stdout().lock();
    stopping(&mut out)?;
    shapes(&mut out)?;
    verdicts(&mut out)?;
    warm_up(&mut out)
}

fn plan(blocks_max: u32) -> Looks {
    Looks::plan(blocks_max, 1).expect("six blocks or more")
}

fn per_cent(share: f64) -> f64 {
    100.0 * share
}

/// Four ways to stop a run without any difference, and how often each finds one.
fn stopping(out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "| blocks | planned looks | ended at the worst n | plan's boundary, every block | plain 95 %, every block |"
    )?;
    writeln!(out, "|---|---|---|---|---|")?;
    for blocks in [10, 15, 30, 60, 120] {
        let looks = plan(blocks);
        let planned = crossed(&Boundary::new(blocks, |n| looks.critical_t(n)));
        let watched = crossed(&Boundary::new(blocks, |n| looks.final_critical_t(n)));
        let plain = crossed(&Boundary::new(blocks, |n| plain_t(n, 0.95).ok().filter(|_| n >= 6)));
        let early = per_cent(worst_early_end(&looks));
        writeln!(out, "| {blocks} | {planned:.2} % | {early:.2} % | {watched:.1} % | {plain:.1} % |")?;
    }
    let looks = plan(30);
    let normal =
        |n| looks.is_look(n).then(|| critical_t_at(NORMAL_C * (f64::from(n) / 30.0).powf(-0.25), n).ok())?;
    let normal = crossed(&Boundary::new(30, normal));
    writeln!(out, "\nWith the constant of normal theory, {NORMAL_C}, at 30 blocks: {normal:.2} %\n")
}

/// Per cent of the runs without any difference that cross.
fn crossed(boundary: &Boundary) -> f64 {
    let mut noise = Noise::new(SEED);
    per_cent(share(PATHS, || boundary.crossing(|| noise.normal()).is_some()))
}

/// The largest error rate over all numbers of blocks, before the last, at which time may run out.
fn worst_early_end(looks: &Looks) -> f64 {
    let planned = Boundary::new(looks.last(), |n| looks.critical_t(n));
    let early = Boundary::new(looks.last(), |n| looks.final_critical_t(n));
    let shares = shares_crossed_by_end(&planned, &early, PATHS, SEED);
    shares[..looks.last() as usize].iter().copied().fold(0.0, f64::max)
}

/// One log ratio after another, given the number of the block.
type Shape = fn(&mut Noise, u32, f64) -> f64;

/// Noise that is not what the method assumes. The last argument is the block before, for noise that remembers.
const SHAPES: [(&str, Shape); 9] = [
    ("normal, independent", |noise, _, _| noise.normal()),
    ("heavy tails (t with 3 degrees of freedom)", |noise, _, _| noise.heavy()),
    ("skewed (exponential)", |noise, _, _| -noise.uniform().ln() - 1.0),
    ("bursts (one block in twenty ten times as wide)", |noise, _, _| burst(noise)),
    ("first three blocks twice as wide", |noise, block, _| {
        noise.normal() * if block <= 3 { 2.0 } else { 1.0 }
    }),
    ("correlated blocks, 0.1", |noise, _, before| remembering(noise, before, 0.1)),
    ("correlated blocks, 0.2", |noise, _, before| remembering(noise, before, 0.2)),
    ("correlated blocks, 0.4", |noise, _, before| remembering(noise, before, 0.4)),
    ("correlated blocks, -0.2", |noise, _, before| remembering(noise, before, -0.2)),
];

fn burst(noise: &mut Noise) -> f64 {
    let width = if noise.uniform() < 0.05 { 10.0 } else { 1.0 };
    noise.normal() * width
}

/// AR(1). The first block has 0 before it.
fn remembering(noise: &mut Noise, before: f64, memory: f64) -> f64 {
    memory * before + (1.0 - memory * memory).sqrt() * noise.normal()
}

fn shapes(out: &mut impl Write) -> Result<()> {
    writeln!(out, "| noise of the log ratios | false verdicts, 10 blocks | 30 blocks |\n|---|---|---|")?;
    for (name, shape) in SHAPES {
        let rate = |blocks| {
            let looks = plan(blocks);
            let boundary = Boundary::new(blocks, |n| looks.critical_t(n));
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
        writeln!(out, "| {name} | {:.1} % | {:.1} % |", rate(10), rate(30))?;
    }
    writeln!(out)
}

/// Whole runs of thirty blocks, judged at every look as the lab does, with s = 1 % and a margin of 1 %.
fn verdicts(out: &mut impl Write) -> Result<()> {
    writeln!(out, "| true difference | better | worse | equivalent | inconclusive | blocks, mean |")?;
    writeln!(out, "|---|---|---|---|---|---|")?;
    let looks = plan(30);
    let looks: Vec<(u32, f64)> =
        looks.looks().iter().filter_map(|&n| Some((n, looks.critical_t(n)?))).collect();
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
        let share = |verdict: Verdict| per_cent(f64::from(counts[verdict as usize]) / f64::from(paths));
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

/// One run: the first verdict that is not inconclusive, and the blocks it took.
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

/// How often MSER-5 calls a series unsteady that is nothing but noise, and how often one that never settles.
fn warm_up(out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "| buckets | steady noise called not steady | buckets cut from it, mean | trend of 3 s called not steady |"
    )?;
    writeln!(out, "|---|---|---|---|")?;
    for buckets in [60, 80, 100, 150, 300, 600_usize] {
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
        writeln!(out, "| {buckets} | {:.1} % | {mean_cut:.1} | {:.1} % |", per_cent(flat), per_cent(trend))?;
    }
    Ok(())
}
