//! One simulated run: the lab's own order of slices on a machine that changes, to one log ratio for each block and candidate.
//!
//! It must not draw any conclusion. What a trial is worth follows `audit`: all its requests over all its windows.

use proofload_lab::Schedule;

use super::machine::{Kind, Machine, Pace};
use super::noise::Noise;

/// Requests per second of the baseline on a machine at its usual speed.
const BASE_PER_S: f64 = 5_000.0;
/// Standard deviation of the log of a slice's own noise, and of the luck of a process.
const SLICE_SD: f64 = 0.02;
const PROCESS_SD: f64 = 0.01;
/// Bounds of the length of slices, drawn for each run, in seconds.
const SLICE_S: (f64, f64) = (0.05, 0.5);
/// A gap between slices, as a share of a slice; as the lab has it.
const GAP_SHARE: f64 = 0.1;
/// Stop, start and warm-up of one variant, in seconds.
const TRIAL_S: f64 = 1.5;

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub kind: Kind,
    pub variants: usize,
    /// Passes over all variants in a block: slices of a trial.
    pub passes: u32,
    pub effects: Effects,
}

/// What the candidates truly do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effects {
    /// Nothing.
    None,
    /// +3 %, nothing, −2 % (just beyond the margin), +1 %, and again from the first.
    Planted,
}

impl Cell {
    /// The true log ratios of the candidates, the first variant being the baseline.
    pub fn truths(&self) -> Vec<f64> {
        let planted = [0.03_f64, 0.0, -0.02, 0.01].map(f64::ln_1p);
        let truth = |candidate: usize| match self.effects {
            Effects::None => 0.0,
            Effects::Planted => planted[candidate % planted.len()],
        };
        (0..self.variants - 1).map(truth).collect()
    }

    /// One run of so many blocks: the log ratios of each candidate, block by block.
    pub fn run(&self, seed: u64, blocks: u32) -> Vec<Vec<f64>> {
        let mut noise = Noise::new(seed);
        let schedule = Schedule::new(seed, self.variants);
        let pace = self.pace(blocks, &mut noise);
        let mut machine = Machine::new(self.kind, &pace, self.variants, &mut noise);
        let speeds: Vec<f64> = [0.0].into_iter().chain(self.truths()).map(f64::exp).collect();
        let mut columns = vec![Vec::with_capacity(blocks as usize); self.variants - 1];
        for block in 1..=blocks {
            let lucks: Vec<f64> =
                speeds.iter().map(|speed| speed * self.luck(PROCESS_SD, &mut noise)).collect();
            let mut ok = vec![0.0; self.variants];
            for variant in schedule.rounds(block, self.passes) {
                let speed =
                    machine.slice(variant, pace.slice_s, &mut noise) * self.luck(SLICE_SD, &mut noise);
                // Requests come whole.
                ok[variant] += (BASE_PER_S * pace.slice_s * lucks[variant] * speed).round();
                machine.pause(pace.gap_s, &mut noise);
            }
            // All windows have the same length, so it cancels.
            for (column, candidate) in columns.iter_mut().zip(&ok[1..]) {
                column.push((candidate / ok[0]).ln());
            }
            machine.pause(pace.block_gap_s * (0.8 + 0.4 * noise.uniform()), &mut noise);
        }
        columns
    }

    fn pace(&self, blocks: u32, noise: &mut Noise) -> Pace {
        let slice_s = SLICE_S.0 * (SLICE_S.1 / SLICE_S.0).powf(noise.uniform());
        let gap_s = GAP_SHARE * slice_s;
        let pass_s = self.variants as f64 * (slice_s + gap_s);
        let block_gap_s = self.variants as f64 * TRIAL_S;
        let block_s = f64::from(self.passes) * pass_s + block_gap_s;
        Pace { slice_s, gap_s, block_gap_s, pass_s, block_s, run_s: f64::from(blocks) * block_s }
    }

    /// A factor around 1.
    fn luck(&self, sd: f64, noise: &mut Noise) -> f64 {
        let draw = if self.kind == Kind::HeavyTails { noise.heavy() } else { noise.normal() };
        (sd * draw).exp()
    }
}
