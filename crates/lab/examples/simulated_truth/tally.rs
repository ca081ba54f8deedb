//! Counts over many runs of the real dispatcher. Each run has its own seed and all counts are whole numbers,
//! so the result is the same with any number of threads.

use analysis::{Conclusion, Outcome};
use proofload_lab::{Progress, UpdateNews};

use super::environment::begun;
use super::machine::Kind;
use super::world::{Service, World, plan};

/// The smallest difference that matters, as a share.
pub const MARGIN: f64 = 0.02;

/// Parameters of a simulation.
#[derive(Clone, Debug)]
pub struct Cell {
    pub kind: Kind,
    /// The first is the baseline.
    pub services: Vec<Service>,
    pub budget_s: u64,
}

/// Counts over the runs of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    pub runs: u64,
    /// Runs in which the intervals of all comparisons at all looks contain the truth.
    pub all_hold: u64,
    /// Runs in which any comparison's verdict is false.
    pub false_verdict: u64,
    /// Runs in which any comparison's verdict has the wrong sign.
    pub wrong_sign: u64,
    /// Runs in which every comparison has a verdict.
    pub decided: u64,
    /// Runs without a permitted conclusion.
    pub invalid: u64,
    blocks: u64,
    dropped: u64,
    tenths_of_seconds: u64,
}

/// A share of runs, with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    pub value: f64,
    pub error: f64,
}

impl Cell {
    /// One run, like a user's.
    fn run(&self, seed: u64) -> Tally {
        let plan = plan(self.services.len(), self.budget_s, MARGIN);
        let truths: Vec<f64> = self
            .services
            .iter()
            .map(|service| service.truth())
            .collect();
        let mut world = World::new(self.kind, &self.services, self.budget_s as f64, seed);
        let mut all_hold = true;
        let (writer, _folder) = begun(plan, seed);
        let (record, result) = proofload_lab::run(writer, &mut world, &mut |update| {
            if let UpdateNews::Progress(Progress::Concluded(conclusion)) = &update.news {
                all_hold &= holds(conclusion, &truths);
            }
        });
        result.expect("nothing goes wrong in this world");
        // The last look has a different boundary, which applies once the run has ended.
        let conclusion = analysis::conclude(&record);
        all_hold &= holds(&conclusion, &truths);
        let any = |wrong: fn(Outcome, f64) -> bool| {
            let compared = conclusion.comparisons.iter();
            let mut truth = compared.map(|c| (c.outcome, truths[c.candidate] - truths[c.baseline]));
            u64::from(truth.any(|(outcome, truth)| wrong(outcome, truth)))
        };
        Tally {
            runs: 1,
            all_hold: u64::from(all_hold),
            false_verdict: any(is_false),
            wrong_sign: any(is_wrong_sign),
            decided: u64::from(conclusion.is_decided()),
            invalid: u64::from(conclusion.is_void()),
            blocks: record.blocks_kept().into(),
            dropped: record.blocks_dropped().into(),
            tenths_of_seconds: record
                .ended
                .map_or(0, |ended| (ended.seconds * 10.0) as u64),
        }
    }
}

/// Whether the interval of every comparison contains its truth. Nothing is claimed without an interval.
fn holds(conclusion: &Conclusion, truths: &[f64]) -> bool {
    conclusion.comparisons.iter().all(|comparison| {
        let truth = (truths[comparison.candidate] - truths[comparison.baseline]).exp();
        comparison
            .estimate
            .as_ref()
            .is_none_or(|it| it.low <= truth && truth <= it.high)
    })
}

/// Better or worse without a difference or with the opposite one, or equivalent with a difference beyond the
/// margin.
fn is_false(outcome: Outcome, truth: f64) -> bool {
    match outcome {
        Outcome::Better => truth <= 0.0,
        Outcome::Worse => truth >= 0.0,
        Outcome::Equivalent => truth.abs() > MARGIN.ln_1p(),
        Outcome::Inconclusive | Outcome::NoSuccess | Outcome::Invalid => false,
    }
}

fn is_wrong_sign(outcome: Outcome, truth: f64) -> bool {
    outcome == Outcome::Better && truth < 0.0 || outcome == Outcome::Worse && truth > 0.0
}

impl Tally {
    fn merge(&mut self, other: &Tally) {
        self.runs += other.runs;
        self.all_hold += other.all_hold;
        self.false_verdict += other.false_verdict;
        self.wrong_sign += other.wrong_sign;
        self.decided += other.decided;
        self.invalid += other.invalid;
        self.blocks += other.blocks;
        self.dropped += other.dropped;
        self.tenths_of_seconds += other.tenths_of_seconds;
    }

    /// Mean number of blocks of a run that count, and of dropped ones.
    pub fn blocks(&self) -> (f64, f64) {
        (
            self.blocks as f64 / self.runs as f64,
            self.dropped as f64 / self.runs as f64,
        )
    }

    /// Mean length of a run in seconds.
    pub fn seconds(&self) -> f64 {
        self.tenths_of_seconds as f64 / 10.0 / self.runs as f64
    }

    /// A count as a share of all runs.
    pub fn share(&self, count: u64) -> Share {
        let value = count as f64 / self.runs as f64;
        Share {
            value,
            error: (value * (1.0 - value) / self.runs as f64).sqrt(),
        }
    }
}

/// Simulates `runs` runs.
pub fn simulate(cell: &Cell, runs: u64, seed: u64) -> Tally {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    let part = |first: u64| {
        let mut tally = Tally::default();
        (first..runs)
            .step_by(threads as usize)
            .for_each(|run| tally.merge(&cell.run(seed_of(seed, run))));
        tally
    };
    let parts: Vec<Tally> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|first| scope.spawn(move || part(first)))
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().expect("a simulation does not panic"))
            .collect()
    });
    let mut all = Tally::default();
    parts.iter().for_each(|part| all.merge(part));
    all
}

/// A seed for one run, unrelated to those of neighbouring runs (the mixing of SplitMix64, Steele, Lea & Flood
/// 2014).
fn seed_of(seed: u64, run: u64) -> u64 {
    let mut mixed = seed.wrapping_add(run.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}
