//! Many runs, counted. Each has a seed of its own and everything counted is a whole number, so the result is the same with
//! any number of threads.

use super::run::Cell;
use super::verdicts::{Judge, Outcome};

/// Counts over the runs of a cell under one rule.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    pub runs: u64,
    pub comparisons: u64,
    all_hold: u64,
    false_verdict: u64,
    wrong_sign: u64,
    hold_at_end: u64,
    hold_at_end_squared: u64,
    blocks: u64,
}

/// A share of runs, with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    pub value: f64,
    pub error: f64,
}

impl Tally {
    fn add(&mut self, outcome: Outcome, comparisons: usize) {
        self.runs += 1;
        self.comparisons = comparisons as u64;
        self.all_hold += u64::from(outcome.all_hold);
        self.false_verdict += u64::from(outcome.false_verdict);
        self.wrong_sign += u64::from(outcome.wrong_sign);
        self.hold_at_end += u64::from(outcome.hold_at_end);
        self.hold_at_end_squared += u64::from(outcome.hold_at_end).pow(2);
        self.blocks += u64::from(outcome.blocks);
    }

    fn merge(&mut self, other: &Tally) {
        self.runs += other.runs;
        self.comparisons = self.comparisons.max(other.comparisons);
        self.all_hold += other.all_hold;
        self.false_verdict += other.false_verdict;
        self.wrong_sign += other.wrong_sign;
        self.hold_at_end += other.hold_at_end;
        self.hold_at_end_squared += other.hold_at_end_squared;
        self.blocks += other.blocks;
    }

    /// Runs in which the intervals of all comparisons at all looks hold the truth.
    pub fn all_hold(&self) -> Share {
        self.share(self.all_hold)
    }

    /// Runs in which any comparison's first verdict is false.
    pub fn false_verdict(&self) -> Share {
        self.share(self.false_verdict)
    }

    /// Runs in which any comparison's first verdict has the wrong sign.
    pub fn wrong_sign(&self) -> Share {
        self.share(self.wrong_sign)
    }

    /// Comparisons whose interval at the end of the run holds the truth. Those of a run go together, so the standard error is
    /// that of a mean over runs.
    pub fn hold_at_end(&self) -> Share {
        let (runs, of) = (self.runs as f64, self.comparisons as f64);
        let mean = self.hold_at_end as f64 / runs / of;
        let variance = self.hold_at_end_squared as f64 / runs / of / of - mean * mean;
        Share { value: mean, error: (variance.max(0.0) / runs).sqrt() }
    }

    /// Blocks of a run, mean.
    pub fn blocks(&self) -> f64 {
        self.blocks as f64 / self.runs as f64
    }

    fn share(&self, count: u64) -> Share {
        let value = count as f64 / self.runs as f64;
        Share { value, error: (value * (1.0 - value) / self.runs as f64).sqrt() }
    }
}

/// Simulates `runs` runs of `blocks` blocks and judges each by every rule; one tally a rule.
pub fn simulate(cell: &Cell, judges: &[Judge], blocks: u32, runs: u64, seed: u64) -> Vec<Tally> {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    let part = |first: u64| {
        let mut tallies = vec![Tally::default(); judges.len()];
        let truths = cell.truths();
        for run in (first..runs).step_by(threads as usize) {
            let seed = seed_of(seed, run);
            let log_ratios = cell.run(seed, blocks);
            for (judge, tally) in judges.iter().zip(&mut tallies) {
                tally.add(judge.outcome(&log_ratios, &truths, seed), truths.len());
            }
        }
        tallies
    };
    let parts: Vec<Vec<Tally>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
        handles.into_iter().map(|handle| handle.join().expect("a simulation does not panic")).collect()
    });
    let mut all = vec![Tally::default(); judges.len()];
    for part in &parts {
        all.iter_mut().zip(part).for_each(|(tally, part)| tally.merge(part));
    }
    all
}

/// A seed for one run, far from those of its neighbours (the mixing of SplitMix64, Steele, Lea & Flood 2014).
fn seed_of(seed: u64, run: u64) -> u64 {
    let mut mixed = seed.wrapping_add(run.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}
