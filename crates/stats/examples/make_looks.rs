//! Makes `src/looks.csv`: the boundary of every look, and of the last block of runs of every length, for
//! every number of comparisons, by simulating the t statistics of runs without any difference.
//!
//! The same runs are simulated twice. The first pass determines z of the looks: the largest z(t) of a run
//! over all blocks is the smallest boundary that this run would not have crossed, so the boundary for an
//! error rate of 0.8 α is its 1 − 0.8 α quantile. The second pass determines z of the end after n blocks: of
//! the runs that crossed at no earlier look, the number that may cross there is the rest of α. z(t) is the
//! normal deviate with the tail probability of t.
//!
//! ```text
//! cargo run --release -p proofload-stats --example make_looks -- 2026-11-23 [millions of runs, 32]
//! ```
//! The date is an argument so that the file is reproducible.

#[path = "../tests/simulation/mod.rs"]
mod simulation;

use proofload_stats::{ALPHA, BLOCKS_MAX, BLOCKS_MIN};
use simulation::{Noise, RunningT};
use statrs::function::beta::beta_reg;
use statrs::function::erf::erfc_inv;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

const SEED: u64 = 0x9e37_79b9_2026_1123;
const RUNS_PER_CHUNK: u64 = 250_000;
const THREADS: usize = 2;
/// Numbers of comparisons with a line in the table. Others use the next larger number.
const COMPARISONS: [u32; 23] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 20, 24, 28, 32, 40, 48, 56, 64,
];
/// Share of the error rate that the looks of the longest run may spend. The rest is for its last block.
const LOOKS_SHARE: f64 = 0.8;
/// Resolution of z, its largest value, and the smallest possible boundary.
const CELL: f64 = 1e-3;
const CELLS: usize = 10_000;
const Z_MIN: f64 = 1.9;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = || std::io::Error::other("usage: make_looks DATE [MILLIONS]");
    let date = arguments.next().ok_or_else(usage)?;
    let millions: u64 = arguments
        .next()
        .map_or(Ok(32), |text| text.parse())
        .map_err(|_| usage())?;
    let runs = millions * 1_000_000;
    let chunks = runs / RUNS_PER_CHUNK;
    let tables: Vec<Table> = (BLOCKS_MIN..=BLOCKS_MAX).map(Table::new).collect();
    let mut text = format!(
        "# z of every look and of the last block of a run, two-sided alpha {ALPHA} over comparisons.\n\
         # Made by: cargo run --release -p proofload-stats --example make_looks -- {date}\n\
         # date {date}, seed {SEED:#x}, {runs} runs\n\
         # comparisons,look,end after {BLOCKS_MIN},{},... to {BLOCKS_MAX} blocks\n",
        BLOCKS_MIN + 1
    );
    let maxima = simulated(chunks, 1, &tables, |counts, zs| {
        let largest = zs.iter().copied().fold(0.0, f64::max);
        counts[cell(largest)] += 1;
    });
    let allowed = |m: u32| (ALPHA / f64::from(m) * runs as f64) as u64;
    let for_looks = |m: u32| (LOOKS_SHARE * allowed(m) as f64) as u64;
    let looks: Vec<f64> = COMPARISONS
        .iter()
        .map(|m| upper(&maxima, for_looks(*m)))
        .collect();
    let ends = simulated(
        chunks,
        COMPARISONS.len() * tables.len(),
        &tables,
        |counts, zs| {
            let mut largest = 0.0_f64;
            for (place, z) in zs.iter().enumerate().filter(|(_, z)| **z > Z_MIN) {
                // The boundaries increase with the comparisons, so all boundaries after the first uncrossed one
                // are uncrossed.
                let first = looks.partition_point(|look| *look <= largest);
                (first..looks.len())
                    .for_each(|m| counts[(m * zs.len() + place) * CELLS + cell(*z)] += 1);
                largest = largest.max(*z);
            }
        },
    );
    for (m, (comparisons, look)) in COMPARISONS.iter().zip(&looks).enumerate() {
        write!(text, "{comparisons},{look:.3}").map_err(std::io::Error::other)?;
        let mut crossed = 0;
        for place in 0..tables.len() {
            let counts = &ends[(m * tables.len() + place) * CELLS..][..CELLS];
            let end = upper(counts, allowed(*comparisons) - crossed);
            write!(text, ",{end:.3}").map_err(std::io::Error::other)?;
            crossed += counts[cell(*look)..]
                .iter()
                .map(|count| u64::from(*count))
                .sum::<u64>();
            crossed = crossed.min(allowed(*comparisons));
        }
        text.push('\n');
    }
    std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/looks.csv"), text)
}

fn cell(z: f64) -> usize {
    ((z / CELL) as usize).min(CELLS - 1)
}

/// Counts over all runs. `add` gets z of each block from the fourth on. Each chunk has its own seed, so that
/// the number of threads does not change the result.
fn simulated(
    chunks: u64,
    tables_wanted: usize,
    tables: &[Table],
    add: impl Fn(&mut [u32], &[f64]) + Sync,
) -> Vec<u32> {
    let next = AtomicU64::new(0);
    let worker = || {
        let mut counts = vec![0_u32; tables_wanted * CELLS];
        let mut zs = vec![0.0; tables.len()];
        loop {
            let chunk = next.fetch_add(1, Ordering::Relaxed);
            if chunk >= chunks {
                return counts;
            }
            let mut noise = Noise::new(SEED ^ chunk << 8);
            for _ in 0..RUNS_PER_CHUNK {
                let mut running = RunningT::default();
                (1..BLOCKS_MIN).for_each(|_| running.add(noise.normal()));
                for (z, table) in zs.iter_mut().zip(tables) {
                    running.add(noise.normal());
                    *z = table.z(running.t());
                }
                add(&mut counts, &zs);
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .fold(vec![0; tables_wanted * CELLS], |mut sum, one| {
                let counts = one.join().expect("workers do not panic");
                sum.iter_mut()
                    .zip(counts)
                    .for_each(|(total, count)| *total += count);
                sum
            })
    })
}

/// The smallest z, rounded up to the resolution, that at most `allowed` runs cross.
fn upper(counts: &[u32], allowed: u64) -> f64 {
    let mut above = 0;
    for (cell, count) in counts.iter().enumerate().rev() {
        above += u64::from(*count);
        if above > allowed {
            return (cell + 1) as f64 * CELL;
        }
    }
    0.0
}

/// Converts t to z for a given number of blocks.
struct Table {
    freedom: f64,
    /// At w = 0, STEP, 2 STEP, ...
    zs: Vec<f64>,
}

impl Table {
    /// Step of the table in w = √(f ln(1 + t²/f)), which is so close to z (Wallace 1959) that linear
    /// interpolation is enough.
    const STEP: f64 = 1.0 / 256.0;
    const W_MAX: f64 = 12.0;

    fn new(blocks: u32) -> Self {
        let freedom = f64::from(blocks - 1);
        let nodes = (Self::W_MAX / Self::STEP) as u32 + 2;
        Self {
            freedom,
            zs: (0..nodes)
                .map(|i| z_of(f64::from(i) * Self::STEP, freedom))
                .collect(),
        }
    }

    /// Converts t to z. Returns 0 below [`Z_MIN`], which is lower than any boundary, because t always exceeds
    /// its z.
    fn z(&self, t: f64) -> f64 {
        if t.abs() < Z_MIN {
            return 0.0;
        }
        let w = (self.freedom * (t * t / self.freedom).ln_1p())
            .sqrt()
            .min(Self::W_MAX);
        let place = w / Self::STEP;
        let (node, part) = (place as usize, place.fract());
        self.zs[node] * (1.0 - part) + self.zs[node + 1] * part
    }
}

/// The z with the two-sided tail probability of the t that belongs to `w`, which is I_{exp(−w²/f)}(f/2, ½).
fn z_of(w: f64, freedom: f64) -> f64 {
    std::f64::consts::SQRT_2 * erfc_inv(beta_reg(freedom / 2.0, 0.5, (-w * w / freedom).exp()))
}
