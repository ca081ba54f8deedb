//! Makes `src/looks.csv`: the constant C of the Wang-Tsiatis boundary for every final number of blocks and every
//! number of comparisons, by simulating the t statistics of runs without any difference.
//!
//! One simulation per final number N gives C for every error rate: per path the largest of z(t_k) / shape_k over the
//! looks k is the smallest C that this path would not have crossed; C(α) is its 1 − α quantile. Here z(t) is the normal
//! deviate with the tail probability of t, and shape_k = (n_k / N)^(−1/4).
//!
//! ```text
//! cargo run --release -p proofload-stats --example make_looks -- 2026-11-21 [paths in millions per N, 32]
//! ```
//! The date is an argument because the file must come out the same when it is made again.

#[path = "../tests/simulation/mod.rs"]
mod simulation;

use proofload_stats::{ALPHA, Looks};
use simulation::{Noise, RunningT};
use statrs::function::beta::beta_reg;
use statrs::function::erf::erfc_inv;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

const SEED: u64 = 0x9e37_79b9_2026_1121;
const PATHS_PER_CHUNK: u64 = 1_000_000;
const THREADS: usize = 2;
/// Comparisons with a line of their own; between them the next larger number is used.
const COMPARISONS: [u32; 23] =
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 20, 24, 28, 32, 40, 48, 56, 64];
/// Resolution of C, and its largest value.
const CELL: f64 = 1e-4;
const CELLS: usize = 100_000;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = || std::io::Error::other("usage: make_looks DATE [MILLIONS]");
    let date = arguments.next().ok_or_else(usage)?;
    let chunks: u64 = arguments.next().map_or(Ok(32), |text| text.parse()).map_err(|_| usage())?;
    let mut text = head(&date, chunks * PATHS_PER_CHUNK);
    for &last in Looks::finals() {
        let maxima = maxima(last, chunks);
        for comparisons in COMPARISONS {
            let alpha = ALPHA / f64::from(comparisons);
            writeln!(text, "{last},{comparisons},{:.4}", upper_quantile(&maxima, alpha))
                .map_err(std::io::Error::other)?;
        }
    }
    std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/looks.csv"), text)
}

fn head(date: &str, paths: u64) -> String {
    format!(
        "# Constant C of the Wang-Tsiatis boundary C (n/N)^(-1/4), delta 0.25, two-sided alpha {ALPHA} over comparisons.\n\
         # Made by: cargo run --release -p proofload-stats --example make_looks -- {date}\n\
         # date {date}, seed {SEED:#x}, {paths} paths for each final number of blocks.\n\
         final_blocks,comparisons,c\n"
    )
}

/// How many paths had their largest z/shape in each cell. Chunks have seeds of their own, so that the number of
/// threads does not change the result.
fn maxima(last: u32, chunks: u64) -> Vec<u64> {
    let next = AtomicU64::new(0);
    let looks: Vec<Look> = Looks::set(last).into_iter().map(|blocks| Look::new(blocks, last)).collect();
    let worker = || {
        let mut counts = vec![0_u64; CELLS];
        loop {
            let chunk = next.fetch_add(1, Ordering::Relaxed);
            if chunk >= chunks {
                return counts;
            }
            add_chunk(&looks, SEED ^ (u64::from(last) << 32 | chunk), &mut counts);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().fold(vec![0; CELLS], |mut sum, one| {
            let counts = one.join().expect("workers do not panic");
            sum.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
            sum
        })
    })
}

fn add_chunk(looks: &[Look], seed: u64, counts: &mut [u64]) {
    let mut noise = Noise::new(seed);
    for _ in 0..PATHS_PER_CHUNK {
        let mut running = RunningT::default();
        let mut done = 0;
        let mut largest = 0.0_f64;
        for look in looks {
            (done..look.blocks).for_each(|_| running.add(noise.normal()));
            done = look.blocks;
            largest = largest.max(look.constant_of(running.t()));
        }
        counts[((largest / CELL) as usize).min(CELLS - 1)] += 1;
    }
}

/// The smallest C, to the resolution and rounded up, that at most a share `alpha` of the paths crosses.
fn upper_quantile(counts: &[u64], alpha: f64) -> f64 {
    let allowed = (alpha * counts.iter().sum::<u64>() as f64) as u64;
    let mut above = 0;
    for (cell, count) in counts.iter().enumerate().rev() {
        above += count;
        if above > allowed {
            return (cell + 1) as f64 * CELL;
        }
    }
    0.0
}

/// A look, with a table that turns its t into the constant of the boundary through that t.
struct Look {
    blocks: u32,
    freedom: f64,
    /// z/shape at w = 0, STEP, 2 STEP, ...
    constants: Vec<f64>,
}

impl Look {
    /// Width of the table in w = √(f ln(1 + t²/f)), which is so nearly z (Wallace 1959) that straight lines do between.
    const STEP: f64 = 1.0 / 256.0;
    const W_MAX: f64 = 12.0;

    fn new(blocks: u32, last: u32) -> Self {
        let freedom = f64::from(blocks - 1);
        let shape = (f64::from(blocks) / f64::from(last)).powf(-0.25);
        let nodes = (Self::W_MAX / Self::STEP) as u32 + 2;
        let constants = (0..nodes).map(|i| z_of(f64::from(i) * Self::STEP, freedom) / shape).collect();
        Self { blocks, freedom, constants }
    }

    fn constant_of(&self, t: f64) -> f64 {
        let w = (self.freedom * (t * t / self.freedom).ln_1p()).sqrt().min(Self::W_MAX);
        let place = w / Self::STEP;
        let (node, part) = (place as usize, place.fract());
        self.constants[node] * (1.0 - part) + self.constants[node + 1] * part
    }
}

/// z with the two-sided tail probability of the t that belongs to `w`, which is I_{exp(−w²/f)}(f/2, ½).
fn z_of(w: f64, freedom: f64) -> f64 {
    std::f64::consts::SQRT_2 * erfc_inv(beta_reg(freedom / 2.0, 0.5, (-w * w / freedom).exp()))
}
