//! Simulated services: settings with known effects, and trials with the noise of two shared cores.

use model::Metric;
use proofload_analysis::tune::{
    EffectEstimate, Keep, LevelRow, RowFigures, Setting, SettingLevel, SettingState, StepOutcome,
    TuneSpec, TuneStep, Tuning,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Standard deviation of a trial's p99, and the maximum allowed ratio.
const TAIL_SD: f64 = 0.15;
const KEPT: f64 = 1.1;
/// The smallest difference that matters.
const MARGIN: f64 = 0.03;
/// Number of blocks after which a comparison of one setting ends undecided: seven minutes, with trials of 3.5
/// s.
const ALONE_BLOCKS_MAX: u32 = 60;

/// True effects and parameters.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// Effect of each setting at its screened level, as a logarithm.
    pub effects: Vec<f64>,
    /// Interaction of the first two settings, as the logarithm by which both together exceed their separate
    /// effects.
    pub synergy: f64,
    /// Standard deviation of a trial's figure.
    pub sd: f64,
    /// Effect of each setting on the p99, as a logarithm. If not empty, the limit p99 < +10% applies.
    pub tails: Vec<f64>,
    /// Seconds of a trial.
    pub trial_s: f64,
    /// Budget of the whole tuning, in seconds.
    pub budget_s: f64,
}

/// Result of a tuning.
#[derive(Debug, Clone, Default)]
pub struct Came {
    /// Recommended settings.
    pub set: Vec<usize>,
    /// The confirmed ratio and its interval.
    pub confirmed: Option<[f64; 3]>,
    /// Duration in seconds.
    pub seconds: f64,
}

impl World {
    /// Effect of a row, as a logarithm.
    pub fn log(&self, row: &LevelRow) -> f64 {
        let on = |of: usize| row.get(of).is_some_and(|level| *level > 0);
        let main: f64 = self
            .effects
            .iter()
            .enumerate()
            .filter(|(of, _)| on(*of))
            .map(|(_, log)| log)
            .sum();
        main + if on(0) && on(1) { self.synergy } else { 0.0 }
    }

    fn tail_log(&self, row: &LevelRow) -> f64 {
        self.tails
            .iter()
            .zip(row)
            .filter(|(_, level)| **level > 0)
            .map(|(log, _)| log)
            .sum()
    }

    /// Whether a setting alone breaks the limit on the p99.
    pub fn breaks(&self, of: usize) -> bool {
        self.tails.get(of).is_some_and(|log| *log > KEPT.ln())
    }

    /// Whether the recommendation is right: no setting that hurts, does nothing or breaks the limit, and
    /// every setting of 5 % and more included.
    pub fn is_right(&self, came: &Came) -> bool {
        self.effects
            .iter()
            .enumerate()
            .all(|(of, log)| match came.set.contains(&of) {
                true => *log > 0.0 && !self.breaks(of),
                false => *log < 1.05_f64.ln() - 1e-9 || self.breaks(of),
            })
    }

    /// Runs a tuning.
    pub fn tuned(&self, seed: u64) -> Came {
        let setting = |of: usize| {
            let level = SettingLevel {
                name: format!("s{of}"),
                changes: Vec::new(),
            };
            Setting {
                name: format!("s{of}"),
                levels: vec![level],
                ..Setting::default()
            }
        };
        let spec = TuneSpec {
            settings: (0..self.effects.len()).map(setting).collect(),
            metric: Metric::Throughput,
            margin: MARGIN,
            keep: self
                .tails
                .iter()
                .take(1)
                .map(|_| Keep::read("p99 < +10%").expect("a limit"))
                .collect(),
            budget_s: self.budget_s,
            seed,
        };
        let mut random = Pcg64::seed_from_u64(seed);
        let mut tuning = Tuning::new(spec);
        let mut came = Came::default();
        while let Ok(Some(step)) = tuning.next_step() {
            let seconds = step.rows.len() as f64 * f64::from(step.blocks) * self.trial_s;
            came.seconds += seconds;
            tuning.take(self.outcome(&step, seconds, &mut random), came.seconds);
        }
        if let Some(Some(confirmation)) = &tuning.confirmed {
            came.confirmed = confirmation
                .first()
                .map(|(_, known)| [known.ratio, known.low, known.high]);
        }
        let is_set = |of: &usize| {
            tuning.holds() && tuning.chosen[*of] > 0 && tuning.states[*of] == SettingState::Better
        };
        came.set = (0..self.effects.len()).filter(is_set).collect();
        came
    }

    /// Compares the service with and without each setting, one after the other, each until it is decided.
    /// Ignores limits.
    pub fn compared_one_by_one(&self, seed: u64) -> Came {
        let mut random = Pcg64::seed_from_u64(seed);
        let rule = stats::Rule::each_block(1, None).expect("a rule");
        let mut came = Came::default();
        for (of, log) in self.effects.iter().enumerate() {
            let mut ratios = Vec::new();
            let verdict = loop {
                ratios.push(log + self.sd * (normal(&mut random) - normal(&mut random)));
                let blocks = ratios.len() as u32;
                let estimate = rule
                    .critical_t(blocks)
                    .and_then(|t| stats::Estimate::of(&ratios, t).ok());
                let verdict = estimate
                    .map(|known| stats::judge(&known, MARGIN, Metric::Throughput.row().direction));
                match verdict {
                    Some(stats::Verdict::Inconclusive) | None if blocks < ALONE_BLOCKS_MAX => {}
                    verdict => break verdict,
                }
            };
            came.seconds += 2.0 * self.trial_s * ratios.len() as f64;
            if verdict == Some(stats::Verdict::Better) {
                came.set.push(of);
            }
        }
        came
    }

    fn outcome(&self, step: &TuneStep, seconds: f64, random: &mut Pcg64) -> StepOutcome {
        // Equal variants would be rejected.
        assert!(
            (1..step.rows.len()).all(|at| !step.rows[..at].contains(&step.rows[at])),
            "{step:?}"
        );
        let truth = |row: &LevelRow| match step.rate_per_s {
            Some(_) => (Metric::P99, self.tail_log(row), TAIL_SD),
            None => (Metric::Throughput, self.log(row), self.sd),
        };
        if !step.confirms() {
            let drift = 0.05 * normal(random);
            let figures = |row: &LevelRow| {
                let (metric, log, sd) = truth(row);
                let value = 1000.0 * (log + drift + sd * normal(random)).exp();
                Some(RowFigures {
                    values: [(metric, value)].into(),
                    per_core: false,
                })
            };
            return StepOutcome::Measured(step.rows.iter().map(figures).collect(), seconds);
        }
        let (metric, truth, sd) = truth(&step.rows[1]);
        let ratio = |_| truth + sd * (normal(random) - normal(random));
        let ratios: Vec<f64> = (0..step.blocks).map(ratio).collect();
        let t = stats::plain_t(step.blocks, 0.95).expect("blocks enough");
        let stats::Estimate {
            ratio, low, high, ..
        } = stats::Estimate::of(&ratios, t).expect("spread");
        StepOutcome::Confirmed(Some(vec![(metric, EffectEstimate { ratio, low, high })]))
    }
}

fn normal(random: &mut Pcg64) -> f64 {
    let (one, other): (f64, f64) = (random.random(), random.random());
    (-2.0 * (1.0 - one).ln()).sqrt() * (std::f64::consts::TAU * other).cos()
}
