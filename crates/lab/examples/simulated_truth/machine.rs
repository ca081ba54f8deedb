//! A machine whose speed changes with time, in seven ways, as a slice of load sees it: averaged over its window.
//!
//! It must not know variants, but where the noise is said to be each variant's own, or anything of the method under test.

use super::noise::Noise;

/// Standard deviation of the log speed where the machine remembers: well above the noise of a slice.
const SHARED_SD: f64 = 0.05;
/// The same where each variant has a core of its own: about the luck of a process.
const OWN_SD: f64 = 0.01;
/// What the machine gains over a run that drifts, as a log: 20 %.
const DRIFT_LOG: f64 = 0.182;
/// Half the way from the top to the bottom of the periodic part, as a log.
const SWING_LOG: f64 = 0.05;
/// Seconds between bursts of steal, mean.
const CALM_S: f64 = 6.0;
/// Bounds of a burst in seconds, and of the share of the CPU that it takes.
const BURST_S: (f64, f64) = (0.2, 3.0);
const STOLEN: (f64, f64) = (0.1, 0.7);

/// How the machine's speed changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Not at all: each slice has noise of its own, each process its luck, and that is all.
    Independent,
    /// It remembers (AR(1) in time) for about so long.
    Remembers(Memory),
    /// It gains 20 % over the run, and swings 5 % up and down, with a period between two slices and two blocks.
    Drift,
    /// Bursts take 10 to 70 % of the CPU for 0.2 to 3 s, about a fifth of the time.
    Steal,
    /// Steady, but the noise of slices and the luck of processes are t with 3 degrees of freedom.
    HeavyTails,
    /// Each variant has a core of its own that remembers, so that nothing cancels.
    OwnCores(Memory),
}

/// The time after which a machine has forgotten all but 1/e of its speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Memory {
    /// A third of a slice.
    Slice,
    /// One pass over all variants.
    Pass,
    /// Five seconds.
    Seconds,
    /// One block with its gap.
    Block,
    /// Five blocks.
    Blocks,
}

/// How a run is paced, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub slice_s: f64,
    /// From the end of a slice to the next.
    pub gap_s: f64,
    /// From the last slice of a block to the first of the next, mean: stop, start, warm up.
    pub block_gap_s: f64,
    /// One pass over all variants.
    pub pass_s: f64,
    /// A block with its gap.
    pub block_s: f64,
    /// All blocks.
    pub run_s: f64,
}

/// A machine in time: its state, and the time it is.
pub struct Machine {
    now_s: f64,
    changes: Changes,
}

enum Changes {
    Nothing,
    Shared(Remembering),
    Drift { per_s: f64, circular_per_s: f64, phase: f64 },
    Steal(Burst),
    Own { cores: Vec<Remembering>, seen_s: Vec<f64> },
}

impl Machine {
    /// A machine at the beginning of a run, its state drawn.
    pub fn new(kind: Kind, pace: &Pace, variants: usize, noise: &mut Noise) -> Machine {
        let changes = match kind {
            Kind::Independent | Kind::HeavyTails => Changes::Nothing,
            Kind::Remembers(memory) => {
                Changes::Shared(Remembering::new(SHARED_SD, memory.seconds(pace), pace, noise))
            }
            Kind::Drift => {
                let (shortest, longest) = (2.0 * (pace.slice_s + pace.gap_s), 2.0 * pace.block_s);
                let period_s = shortest * (longest / shortest).powf(noise.uniform());
                let circle = std::f64::consts::TAU;
                Changes::Drift {
                    per_s: DRIFT_LOG / pace.run_s,
                    circular_per_s: circle / period_s,
                    phase: circle * noise.uniform(),
                }
            }
            Kind::Steal => Changes::Steal(Burst::after(0.0, noise)),
            Kind::OwnCores(memory) => {
                let core = |_| Remembering::new(OWN_SD, memory.seconds(pace), pace, noise);
                Changes::Own { cores: (0..variants).map(core).collect(), seen_s: vec![0.0; variants] }
            }
        };
        Machine { now_s: 0.0, changes }
    }

    /// The speed that a slice of a variant sees on average, 1 being usual; time goes on by `seconds`.
    pub fn slice(&mut self, variant: usize, seconds: f64, noise: &mut Noise) -> f64 {
        let (from_s, to_s) = (self.now_s, self.now_s + seconds);
        self.now_s = to_s;
        match &mut self.changes {
            Changes::Nothing => 1.0,
            Changes::Shared(speed) => speed.mean_over_slice(noise).exp(),
            Changes::Drift { per_s, circular_per_s, phase } => {
                let swing = |at_s: f64| (*circular_per_s * at_s + *phase).cos();
                let swung = (swing(from_s) - swing(to_s)) / (*circular_per_s * seconds);
                (*per_s * (from_s + to_s) / 2.0 + SWING_LOG * swung).exp()
            }
            Changes::Steal(burst) => 1.0 - burst.stolen_s(from_s, to_s, noise) / seconds,
            Changes::Own { cores, seen_s } => {
                cores[variant].pass(from_s - seen_s[variant], noise);
                seen_s[variant] = to_s;
                cores[variant].mean_over_slice(noise).exp()
            }
        }
    }

    /// Time without load.
    pub fn pause(&mut self, seconds: f64, noise: &mut Noise) {
        self.now_s += seconds;
        if let Changes::Shared(speed) = &mut self.changes {
            speed.pass(seconds, noise);
        }
    }
}

impl Memory {
    fn seconds(self, pace: &Pace) -> f64 {
        match self {
            Memory::Slice => pace.slice_s / 3.0,
            Memory::Pass => pace.pass_s,
            Memory::Seconds => 5.0,
            Memory::Block => pace.block_s,
            Memory::Blocks => 5.0 * pace.block_s,
        }
    }
}

/// AR(1) in continuous time (the Ornstein-Uhlenbeck process), followed exactly: where it ends after a time, and its mean over
/// a slice, have a joint normal distribution whatever the time.
struct Remembering {
    value: f64,
    sd: f64,
    memory_s: f64,
    slice: SliceStep,
}

/// The constants of a step over one slice: all of them scale with the value or the standard deviation.
struct SliceStep {
    decay: f64,
    end_sd: f64,
    mean_of_value: f64,
    mean_of_end: f64,
    mean_sd: f64,
}

impl Remembering {
    fn new(sd: f64, memory_s: f64, pace: &Pace, noise: &mut Noise) -> Remembering {
        let slice = SliceStep::new(sd, pace.slice_s / memory_s);
        Remembering { value: sd * noise.normal(), sd, memory_s, slice }
    }

    fn pass(&mut self, seconds: f64, noise: &mut Noise) {
        let decay = (-seconds / self.memory_s).exp();
        self.value = self.value * decay + self.sd * (1.0 - decay * decay).sqrt() * noise.normal();
    }

    fn mean_over_slice(&mut self, noise: &mut Noise) -> f64 {
        let step = &self.slice;
        let (surprise, rest) = (step.end_sd * noise.normal(), step.mean_sd * noise.normal());
        let mean = step.mean_of_value * self.value + step.mean_of_end * surprise + rest;
        self.value = step.decay * self.value + surprise;
        mean
    }
}

impl SliceStep {
    /// `length` is that of the slice in units of the memory.
    fn new(sd: f64, length: f64) -> SliceStep {
        let decay = (-length).exp();
        let forgotten = 1.0 - decay;
        let end_variance = sd * sd * (1.0 - decay * decay);
        let covariance = sd * sd * forgotten * forgotten / length;
        let variance = sd * sd * (2.0 * length - 3.0 + 4.0 * decay - decay * decay) / (length * length);
        let mean_of_end = covariance / end_variance;
        // Next to nothing for a long memory, and then rounding may make it less.
        let mean_sd = (variance - covariance * mean_of_end).max(0.0).sqrt();
        SliceStep {
            decay,
            end_sd: end_variance.sqrt(),
            mean_of_value: forgotten / length,
            mean_of_end,
            mean_sd,
        }
    }
}

/// The burst of steal that is under way or comes next.
struct Burst {
    from_s: f64,
    to_s: f64,
    share: f64,
}

impl Burst {
    fn after(at_s: f64, noise: &mut Noise) -> Burst {
        let between = |(least, most): (f64, f64), noise: &mut Noise| least + (most - least) * noise.uniform();
        let from_s = at_s - CALM_S * noise.uniform().ln();
        Burst { from_s, to_s: from_s + between(BURST_S, noise), share: between(STOLEN, noise) }
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
