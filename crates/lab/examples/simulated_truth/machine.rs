//! A machine whose speed changes over time in seven ways, averaged over each window of load.
//!
//! It does not know variants, except for noise that is specific to each variant, and nothing of the method
//! under test.

use super::noise::Noise;

/// Standard deviation of the log speed if the machine has memory: well above the noise of a slice.
const SHARED_SD: f64 = 0.05;
/// The same if each variant has its own core: similar to the variation between processes.
const OWN_SD: f64 = 0.01;
/// Gain of a drifting machine over a run, as a log: 20 %.
const DRIFT_LOG: f64 = 0.182;
/// Amplitude of the periodic part, as a log.
const SWING_LOG: f64 = 0.05;
/// Limits of the period in seconds, drawn for each run.
const PERIOD_S: (f64, f64) = (0.5, 60.0);
/// Mean time between bursts of steal, in seconds.
const CALM_S: f64 = 6.0;
/// Limits of a burst in seconds, and of the share of the CPU that it takes.
const BURST_S: (f64, f64) = (0.2, 3.0);
const STOLEN: (f64, f64) = (0.1, 0.7);

/// How the machine's speed changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// No change: only independent noise of each slice, and variation between processes.
    Independent,
    /// AR(1) in time with this memory in seconds.
    Remembers(f64),
    /// A gain of 20 % over the run, and a swing of 5 % up and down with a period between half a second and a
    /// minute.
    Drift,
    /// Bursts take 10 to 70 % of the CPU for 0.2 to 3 s, about a fifth of the time. The kernel reports the
    /// amount.
    Steal,
    /// Constant, but the noise of windows and of processes follows a t distribution with 3 degrees of
    /// freedom.
    HeavyTails,
    /// Each variant has its own core with this memory in seconds, so that nothing cancels.
    OwnCores(f64),
    /// Constant, but one process in ten is slower, by 10 % on average.
    OneSided,
}

/// A machine: its state and the current time.
pub struct Machine {
    now_s: f64,
    changes: Changes,
}

enum Changes {
    Nothing,
    Shared(Remembering),
    Drift {
        per_s: f64,
        circular_per_s: f64,
        phase: f64,
    },
    Steal(Burst),
    Own {
        cores: Vec<Remembering>,
        seen_s: Vec<f64>,
    },
}

/// State of the machine during a window.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Average speed, 1 being normal.
    pub speed: f64,
    /// Share of the CPU that was stolen.
    pub stolen: f64,
}

impl Machine {
    /// A machine at the beginning of a run with this length, in a random state.
    pub fn new(kind: Kind, run_s: f64, variants: usize, noise: &mut Noise) -> Machine {
        let changes = match kind {
            Kind::Independent | Kind::HeavyTails | Kind::OneSided => Changes::Nothing,
            Kind::Remembers(memory_s) => {
                Changes::Shared(Remembering::new(SHARED_SD, memory_s, noise))
            }
            Kind::Drift => {
                let period_s = PERIOD_S.0 * (PERIOD_S.1 / PERIOD_S.0).powf(noise.uniform());
                let circle = std::f64::consts::TAU;
                Changes::Drift {
                    per_s: DRIFT_LOG / run_s,
                    circular_per_s: circle / period_s,
                    phase: circle * noise.uniform(),
                }
            }
            Kind::Steal => Changes::Steal(Burst::after(0.0, noise)),
            Kind::OwnCores(memory_s) => {
                let core = |_| Remembering::new(OWN_SD, memory_s, noise);
                Changes::Own {
                    cores: (0..variants).map(core).collect(),
                    seen_s: vec![0.0; variants],
                }
            }
        };
        Machine {
            now_s: 0.0,
            changes,
        }
    }

    /// Advances the time by `seconds`, and returns what a window of a variant observes.
    pub fn window(&mut self, variant: usize, seconds: f64, noise: &mut Noise) -> Seen {
        let (from_s, to_s) = (self.now_s, self.now_s + seconds);
        self.now_s = to_s;
        let speed = match &mut self.changes {
            Changes::Nothing => 1.0,
            Changes::Shared(speed) => speed.mean_over(seconds, noise).exp(),
            Changes::Drift {
                per_s,
                circular_per_s,
                phase,
            } => {
                let swing = |at_s: f64| (*circular_per_s * at_s + *phase).cos();
                let swung = (swing(from_s) - swing(to_s)) / (*circular_per_s * seconds);
                (*per_s * (from_s + to_s) / 2.0 + SWING_LOG * swung).exp()
            }
            Changes::Steal(burst) => {
                let stolen = burst.stolen_s(from_s, to_s, noise) / seconds;
                return Seen {
                    speed: 1.0 - stolen,
                    stolen,
                };
            }
            Changes::Own { cores, seen_s } => {
                cores[variant].pass(from_s - seen_s[variant], noise);
                seen_s[variant] = to_s;
                cores[variant].mean_over(seconds, noise).exp()
            }
        };
        Seen { speed, stolen: 0.0 }
    }

    /// Advances the time without load, up to this time of the run.
    pub fn pause_until(&mut self, now_s: f64, noise: &mut Noise) {
        let seconds = now_s - std::mem::replace(&mut self.now_s, now_s);
        if let Changes::Shared(speed) = &mut self.changes {
            speed.pass(seconds, noise);
        }
    }
}

/// AR(1) in continuous time (the Ornstein-Uhlenbeck process), simulated exactly: its value after a time and
/// its mean over that time have a joint normal distribution.
struct Remembering {
    value: f64,
    sd: f64,
    memory_s: f64,
}

impl Remembering {
    fn new(sd: f64, memory_s: f64, noise: &mut Noise) -> Remembering {
        Remembering {
            value: sd * noise.normal(),
            sd,
            memory_s,
        }
    }

    fn pass(&mut self, seconds: f64, noise: &mut Noise) {
        let decay = (-seconds / self.memory_s).exp();
        self.value = self.value * decay + self.sd * (1.0 - decay * decay).sqrt() * noise.normal();
    }

    fn mean_over(&mut self, seconds: f64, noise: &mut Noise) -> f64 {
        let (length, variance) = (seconds / self.memory_s, self.sd * self.sd);
        let decay = (-length).exp();
        let forgotten = 1.0 - decay;
        let end_variance = variance * (1.0 - decay * decay);
        let covariance = variance * forgotten * forgotten / length;
        let mean_variance =
            variance * (2.0 * length - 3.0 + 4.0 * decay - decay * decay) / (length * length);
        let mean_of_end = covariance / end_variance;
        // Close to zero for a long memory, where rounding may make it negative.
        let mean_sd = (mean_variance - covariance * mean_of_end).max(0.0).sqrt();
        let surprise = end_variance.sqrt() * noise.normal();
        let mean =
            forgotten / length * self.value + mean_of_end * surprise + mean_sd * noise.normal();
        self.value = decay * self.value + surprise;
        mean
    }
}

/// The current or next burst of steal.
struct Burst {
    from_s: f64,
    to_s: f64,
    share: f64,
}

impl Burst {
    fn after(at_s: f64, noise: &mut Noise) -> Burst {
        let between =
            |(least, most): (f64, f64), noise: &mut Noise| least + (most - least) * noise.uniform();
        let from_s = at_s - CALM_S * noise.uniform().ln();
        Burst {
            from_s,
            to_s: from_s + between(BURST_S, noise),
            share: between(STOLEN, noise),
        }
    }

    /// CPU seconds stolen from a window.
    fn stolen_s(&mut self, from_s: f64, to_s: f64, noise: &mut Noise) -> f64 {
        let mut stolen_s = 0.0;
        loop {
            stolen_s += self.share * (self.to_s.min(to_s) - self.from_s.max(from_s)).max(0.0);
            if self.to_s > to_s {
                return stolen_s;
            }
            *self = Burst::after(self.to_s, noise);
        }
    }
}
