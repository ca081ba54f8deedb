//! Measures, by simulation, how often the methods that no plan of looks uses err: the confidence sequence, the guard,
//! the bootstrap, max-T and the bands of quantiles. Seeded.
//!
//! ```text
//! cargo run --release -p proofload-stats --example resampling_rates
//! ```
//! Works on log ratios alone, with a standard deviation of about 1, and takes some seconds.

#[path = "../tests/simulation/mod.rs"]
mod simulation;

use proofload_stats::{
    ALPHA, Estimate, Interval, Latencies, Resampling, bootstrap_t, guard, joint_t, plain_t, quantile_bands,
    sequence_t,
};
use simulation::{Boundary, Noise, share};
use std::io::{Result, Write};

const SEED: u64 = 20_261_122;
const LAST: u32 = 200;

/// One log ratio whose mean, or centre, is 0.
type Shape = fn(&mut Noise) -> f64;

const SHAPES: [(&str, Shape); 5] = [
    ("normal", Noise::normal),
    ("t of 3 degrees of freedom", Noise::heavy),
    ("Cauchy", |noise| noise.normal() / noise.normal()),
    ("coins", |noise| (noise.uniform() - 0.5).signum()),
    ("exponential", |noise| -noise.uniform().ln() - 1.0),
];

fn main() -> Result<()> {
    let mut out = std::io::stdout().lock();
    anytime(&mut out)?;
    bootstrap(&mut out)?;
    several(&mut out)?;
    bands(&mut out)
}

fn per_cent(share: f64) -> f64 {
    100.0 * share
}

/// How often the truth is excluded after any of two hundred blocks.
fn anytime(out: &mut impl Write) -> Result<()> {
    writeln!(out, "| noise | sequence ever errs | guard ever errs |\n|---|---|---|")?;
    let boundary = Boundary::new(LAST, |n| sequence_t(n, 1.0, ALPHA).ok().flatten());
    for (name, shape) in SHAPES {
        let mut noise = Noise::new(SEED);
        let sequence = share(100_000, || boundary.crossing(|| shape(&mut noise)).is_some());
        let guarded = share(5_000, || {
            let d: Vec<f64> = (0..LAST).map(|_| shape(&mut noise)).collect();
            (1..=d.len()).any(|n| guard(&d[..n], 1.0, ALPHA).is_ok_and(|guard| guard.rejects))
        });
        writeln!(out, "| {name} | {:.1} % | {:.1} % |", per_cent(sequence), per_cent(guarded))?;
    }
    writeln!(out)
}

/// How often an interval of 95 % misses a mean of 0, and how many times as wide as the t interval it is.
fn bootstrap(out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "| noise | blocks | t misses | bootstrap-t misses | width, median |\n|---|---|---|---|---|"
    )?;
    let resampling = Resampling { resamples: 1_000, seed: SEED };
    for (name, shape) in [SHAPES[0], SHAPES[1], SHAPES[4]] {
        for blocks in [6, 10, 20, 30] {
            let mut noise = Noise::new(SEED);
            let (mut plain, mut drawn) = (Vec::new(), Vec::new());
            for _ in 0..2_000 {
                let d: Vec<f64> = (0..blocks).map(|_| shape(&mut noise)).collect();
                let t = plain_t(blocks, 0.95).and_then(|t| Estimate::of(&d, t));
                plain.extend(t.ok().map(|t| Interval { low: t.low, high: t.high }));
                drawn.extend(bootstrap_t(&d, 0.95, resampling).ok());
            }
            let [t, studentised] = [&plain, &drawn].map(|ends| per_cent(missed(ends, 2_000)));
            let wider = width(&drawn) / width(&plain);
            writeln!(out, "| {name} | {blocks} | {t:.1} % | {studentised:.1} % | {wider:.2} |")?;
        }
    }
    writeln!(out)
}

fn missed(ends: &[Interval], of: usize) -> f64 {
    ends.iter().filter(|ends| ends.low > 1.0 || ends.high < 1.0).count() as f64 / of as f64
}

fn width(ends: &[Interval]) -> f64 {
    let mut widths: Vec<f64> = ends.iter().map(|ends| (ends.high / ends.low).ln()).collect();
    widths.sort_by(f64::total_cmp);
    widths[widths.len() / 2]
}

/// Candidates that share a baseline and all differ from it: joint intervals that miss a truth, and how often those would that take
/// flips of the log ratios, not of residuals.
fn several(out: &mut impl Write) -> Result<()> {
    writeln!(out, "| candidates | blocks | any interval misses | with flips of the log ratios |")?;
    writeln!(out, "|---|---|---|---|")?;
    let resampling = Resampling { resamples: 1_000, seed: SEED };
    for candidates in [2, 10] {
        for blocks in [8, 10] {
            let mut noise = Noise::new(SEED);
            let mut counts = [0; 2];
            let runs = 2_000;
            for _ in 0..runs {
                let all = rows(&mut noise, blocks, candidates);
                let joint = joint_t(&all, resampling).map_err(std::io::Error::other)?;
                let misses = |critical| (0..candidates).any(|column| t_of(&all, column, 5.0) > critical);
                counts[0] += u32::from(misses(joint.unwrap_or(f64::INFINITY)));
                counts[1] += u32::from(misses(critical_of_flips(&all)));
            }
            let [outside, naive] = counts.map(|count| per_cent(f64::from(count) / f64::from(runs)));
            writeln!(out, "| {candidates} | {blocks} | {outside:.1} % | {naive:.1} % |")?;
        }
    }
    writeln!(out)
}

/// The largest |t| of all columns that 5 % of the flips of `rows` exceed.
fn critical_of_flips(rows: &[Vec<f64>]) -> f64 {
    let largest = |flip: usize| {
        let t = |column: usize| {
            let mut running = simulation::RunningT::default();
            for (block, row) in rows.iter().enumerate() {
                running.add(if flip >> block & 1 == 1 { -row[column] } else { row[column] });
            }
            running.t().abs()
        };
        (0..rows[0].len()).map(t).fold(0.0, f64::max)
    };
    let mut all: Vec<f64> = (0..1 << (rows.len() - 1)).map(largest).collect();
    all.sort_by(f64::total_cmp);
    all[((1.0 - ALPHA) * all.len() as f64).ceil() as usize - 1]
}

fn rows(noise: &mut Noise, blocks: usize, candidates: usize) -> Vec<Vec<f64>> {
    let row = |noise: &mut Noise| {
        let baseline = noise.normal();
        (0..candidates).map(|_| 5.0 + noise.normal() - baseline).collect()
    };
    (0..blocks).map(|_| row(noise)).collect()
}

/// |t| of a column less its true effect.
fn t_of(rows: &[Vec<f64>], column: usize, effect: f64) -> f64 {
    let mut running = simulation::RunningT::default();
    rows.iter().for_each(|row| running.add(row[column] - effect));
    running.t().abs()
}

/// How often a band of 95 % misses the quantile of all blocks there could be. Blocks differ by 10 %, requests by 30 %.
fn bands(out: &mut impl Write) -> Result<()> {
    writeln!(out, "| blocks | band of p50 misses | of p99 |\n|---|---|---|")?;
    let resampling = Resampling { resamples: 1_000, seed: SEED };
    let (between, within) = (0.1_f64, 0.3_f64);
    for blocks in [6, 10, 20, 30] {
        let mut noise = Noise::new(SEED);
        let mut counts = [0; 2];
        let runs = 300;
        for _ in 0..runs {
            let measured: Vec<Latencies> = (0..blocks)
                .map(|_| {
                    let mut latencies = Latencies::new();
                    let block = between * noise.normal();
                    (0..1_000).for_each(|_| {
                        latencies.record((1e6 * (block + within * noise.normal()).exp()) as u64)
                    });
                    latencies
                })
                .collect();
            let bands = quantile_bands(&measured, &[0.5, 0.99], 0.95, resampling);
            let bands = bands.map_err(std::io::Error::other)?;
            for ((count, band), z) in counts.iter_mut().zip(bands).zip([0.0, 2.326_35]) {
                let truth = 1e6 * (z * between.hypot(within)).exp();
                *count += u32::from((band.low_ns as f64) > truth || (band.high.ns() as f64) < truth);
            }
        }
        let [p50, p99] = counts.map(|count| per_cent(f64::from(count) / f64::from(runs)));
        writeln!(out, "| {blocks} | {p50:.1} % | {p99:.1} % |")?;
    }
    Ok(())
}
