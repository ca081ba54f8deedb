//! Seeded noise and running t statistics, shared by the tests and the two examples that simulate whole runs.
//!
//! Not part of the library, which draws only resamples of its input. The same seed gives the same numbers on
//! every machine.

// Each program that includes this file uses only a part of it.
#![allow(dead_code)]

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Standard normal numbers by Marsaglia's polar method.
pub struct Noise {
    source: Pcg64,
    spare: Option<f64>,
}

impl Noise {
    pub fn new(seed: u64) -> Self {
        Self {
            source: Pcg64::seed_from_u64(seed),
            spare: None,
        }
    }

    /// Uniform in (0, 1].
    pub fn uniform(&mut self) -> f64 {
        1.0 - self.source.random::<f64>()
    }

    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (x, y) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = x * x + y * y;
            if square < 1.0 && square > 0.0 {
                let scale = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(y * scale);
                return x * scale;
            }
        }
    }

    /// Student's t of three degrees of freedom, scaled to variance 1, with much heavier tails than the normal
    /// distribution.
    pub fn heavy(&mut self) -> f64 {
        let chi_square = (0..3).map(|_| self.normal().powi(2)).sum::<f64>();
        self.normal() / chi_square.sqrt()
    }
}

/// The t statistic of the numbers added so far.
#[derive(Default)]
pub struct RunningT {
    n: f64,
    sum: f64,
    squares: f64,
}

impl RunningT {
    pub fn add(&mut self, d: f64) {
        self.n += 1.0;
        self.sum += d;
        self.squares += d * d;
    }

    /// Mean over its standard error. Valid from two numbers on.
    pub fn t(&self) -> f64 {
        let mean = self.sum / self.n;
        let variance = (self.squares - self.sum * mean) / (self.n - 1.0);
        mean / (variance / self.n).sqrt()
    }
}

/// A critical t for each number of blocks, from 0 on. Infinite if there is no look.
pub struct Boundary(pub Vec<f64>);

impl Boundary {
    /// `critical_t(n)` for n up to `last`, infinite if it is `None`.
    pub fn new(last: u32, critical_t: impl Fn(u32) -> Option<f64>) -> Self {
        Self(
            (0..=last)
                .map(|n| critical_t(n).unwrap_or(f64::INFINITY))
                .collect(),
        )
    }

    /// Draws blocks until |t| crosses the boundary. Returns the number of blocks and t. `None` if it never
    /// crosses.
    pub fn crossing(&self, mut draw: impl FnMut() -> f64) -> Option<(u32, f64)> {
        let mut running = RunningT::default();
        (1..).zip(&self.0[1..]).find_map(|(n, critical)| {
            running.add(draw());
            let t = running.t();
            (t.abs() > *critical).then_some((n, t))
        })
    }
}

pub fn share(paths: u32, mut happens: impl FnMut() -> bool) -> f64 {
    f64::from((0..paths).map(|_| u32::from(happens())).sum::<u32>()) / f64::from(paths)
}

/// For each number of blocks at which a run may end: the share of `paths` that crossed `planned` earlier or
/// `early` at that block.
pub fn shares_crossed_by_end(
    planned: &Boundary,
    early: &Boundary,
    paths: u32,
    seed: u64,
) -> Vec<f64> {
    let mut crossed = vec![0_u32; planned.0.len()];
    let mut noise = Noise::new(seed);
    for _ in 0..paths {
        let (mut running, mut found) = (RunningT::default(), false);
        for (n, count) in crossed.iter_mut().enumerate().skip(1) {
            running.add(noise.normal());
            let t = running.t().abs();
            *count += u32::from(found || t > early.0[n]);
            found |= t > planned.0[n];
        }
    }
    crossed
        .into_iter()
        .map(|count| f64::from(count) / f64::from(paths))
        .collect()
}
