//! A world without processes: settings of known effects, trials with the noise of two shared cores.

use model::Metric;
use proofload_analysis::tune::{
    Figures, Known, Level, Outcome, Purpose, Row, Setting, Spec, State, Step, Took, Tuning,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// What is true.
#[derive(Debug, Clone)]
pub struct World {
    /// What each setting does at its screened level, as a logarithm.
    pub effects: Vec<f64>,
    /// What the first two do to each other, as a logarithm by which both are more than one after the other.
    pub synergy: f64,
    /// Standard deviation of a trial's figure.
    pub sd: f64,
    /// Seconds of a trial.
    pub trial_s: f64,
    /// For all of it, in seconds.
    pub budget_s: f64,
}

/// What a tuning of it came to.
#[derive(Debug, Clone, Default)]
pub struct Came {
    /// Settings that are advised.
    pub set: Vec<usize>,
    /// The confirmed ratio and its interval.
    pub confirmed: Option<[f64; 3]>,
    /// Seconds it took.
    pub seconds: f64,
}

impl World {
    /// What a row does, as a logarithm.
    pub fn log(&self, row: &Row) -> f64 {
        let on = |of: usize| row.get(of).is_some_and(|level| *level > 0);
        let main: f64 = self.effects.iter().enumerate().filter(|(of, _)| on(*of)).map(|(_, log)| log).sum();
        main + if on(0) && on(1) { self.synergy } else { 0.0 }
    }

    /// Whether what is advised is right: nothing that hurts or does nothing, and nothing of 5 % and more left out.
    pub fn is_right(&self, came: &Came) -> bool {
        self.effects.iter().enumerate().all(|(of, log)| match came.set.contains(&of) {
            true => *log > 0.0,
            false => *log < 1.05_f64.ln() - 1e-9,
        })
    }

    /// Tunes it.
    pub fn tuned(&self, seed: u64) -> Came {
        let level = |of: usize| vec![Level { name: format!("s{of}"), changes: Vec::new() }];
        let setting = |of: usize| Setting {
            name: format!("s{of}"),
            levels: level(of),
            screened: 0,
            cost: String::new(),
            source: String::new(),
            seen: String::new(),
        };
        let spec = Spec {
            settings: (0..self.effects.len()).map(setting).collect(),
            metric: Metric::Throughput,
            margin: 0.03,
            keep: Vec::new(),
            budget_s: self.budget_s,
            seed,
        };
        let mut random = Pcg64::seed_from_u64(seed);
        let mut tuning = Tuning::new(spec);
        let mut came = Came::default();
        while let Ok(Some(step)) = tuning.next_step() {
            let seconds = step.rows.len() as f64 * f64::from(step.blocks) * self.trial_s;
            came.seconds += seconds;
            tuning.take(self.outcome(&step, seconds, &mut random));
        }
        if let Some(Some(confirmation)) = tuning.confirmed() {
            came.confirmed = confirmation.first().map(|(_, known)| [known.ratio, known.low, known.high]);
        }
        let holds = came.confirmed.is_some_and(|[_, low, _]| low > 1.0);
        let is_set = |of: &usize| holds && tuning.chosen()[*of] > 0 && tuning.states()[*of] == State::Better;
        came.set = (0..self.effects.len()).filter(is_set).collect();
        came
    }

    fn outcome(&self, step: &Step, seconds: f64, random: &mut Pcg64) -> Outcome {
        if step.purpose != Purpose::Confirm {
            let drift = 0.05 * normal(random);
            let figures = |row: &Row| {
                let log = self.log(row) + drift + self.sd * normal(random);
                Some(Figures {
                    throughput_per_s: 1000.0 * log.exp(),
                    cpu_us: None,
                    memory_bytes: None,
                    per_core: false,
                })
            };
            return Outcome::Measured(
                step.rows.iter().map(figures).collect(),
                Took { seconds, block_s: seconds },
            );
        }
        let truth = self.log(&step.rows[1]) - self.log(&step.rows[0]);
        let ratios: Vec<f64> =
            (0..step.blocks).map(|_| truth + self.sd * (normal(random) - normal(random))).collect();
        let t = stats::plain_t(step.blocks, 0.95).expect("blocks enough");
        let stats::Estimate { ratio, low, high, .. } = stats::Estimate::of(&ratios, t).expect("spread");
        Outcome::Confirmed(Some(vec![(Metric::Throughput, Known { ratio, low, high })]))
    }
}

fn normal(random: &mut Pcg64) -> f64 {
    let (one, other): (f64, f64) = (random.random(), random.random());
    (-2.0 * (1.0 - one).ln()).sqrt() * (std::f64::consts::TAU * other).cos()
}
