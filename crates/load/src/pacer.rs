//! When requests are due in open loop: arrival times of one thread, counted from the start of a window. Pure.
//!
//! An arrival is a count Λ of requests, and is due when the rate has made so many: `profile` turns the one into the other,
//! whether the rate is constant or changes.
//!
//! ```text
//! constant, 2 threads     Λ = 0   1   2   3   4   5          arrival k of the whole load is due at count k
//!                             |   |   |   |   |   |──► t     and belongs to thread k mod threads
//!                  thread     0   1   0   1   0   1
//!
//! Poisson                     |  |       ||    |  |──► t     Λ grows by −ln(1 − u) · threads, u uniform in [0, 1)
//! ```
//! For constant arrivals thread t of T has the counts t + jT for j = 0, 1, ...: together they are evenly spaced where the
//! rate is constant, and a window of length W has exactly ⌈W · rate⌉ of them. For Poisson arrivals each thread draws a process of
//! its own with rate / T from its own seed; several independent Poisson processes together are one of the summed rate.
//! Exponential steps of the count make a Poisson process of whatever rate turns the count into time (inversion: Çinlar,
//! Introduction to Stochastic Processes, 1975, section 4.7).
//! A time is computed from the count, never from when something was done: that the load falls behind cannot move it. It must
//! not read a clock, wait, or know connections.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::{Process, Rate};

/// The arrival times of one thread, oldest first. A clone yields the same ones.
#[derive(Debug, Clone)]
pub(crate) struct Pacer {
    law: Law,
    profile: Profile,
    due_ns: f64,
}

#[derive(Debug, Clone)]
enum Law {
    /// The next arrival is number `k` of the whole load.
    Constant { k: u64, first: u64, step: u64 },
    /// The next arrival is due at this count of the whole load, of which each thread has one in `threads`.
    Poisson { count: f64, threads: f64, rng: Pcg64Mcg },
}

/// The random words of one thread. Seeds are drawn from one generator: those that follow each other make streams that resemble each other.
pub(crate) fn rng_of(seed: u64, thread: u32) -> Pcg64Mcg {
    let mut seeds = Pcg64Mcg::seed_from_u64(seed);
    let seed = (0..thread).fold(seeds.next_u64(), |_, _| seeds.next_u64());
    Pcg64Mcg::seed_from_u64(seed)
}

/// What all threads have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) rate: Rate,
    pub(crate) process: Process,
    pub(crate) seed: u64,
}

impl Pacer {
    /// The arrivals of thread `thread` (from 0) of `threads`, before its first window; see [`Pacer::restart`].
    pub(crate) fn new(pace: Pace, thread: u32, threads: u32) -> Pacer {
        let law = match pace.process {
            Process::Constant => {
                let (first, step) = (thread.into(), threads.into());
                Law::Constant { k: first, first, step }
            }
            Process::Poisson => {
                Law::Poisson { count: 0.0, threads: threads.into(), rng: rng_of(pace.seed, thread) }
            }
        };
        Pacer { law, profile: Profile::new(pace.rate), due_ns: 0.0 }
    }

    /// Begins a window, and the rate with it. Poisson arrivals go on with their stream, so that no two windows are alike.
    pub(crate) fn restart(&mut self) {
        match &mut self.law {
            Law::Constant { k, first, step: _ } => *k = *first,
            Law::Poisson { count, .. } => {
                *count = 0.0;
                self.law.step();
            }
        }
        self.due_ns = self.profile.time_ns(self.law.count());
    }

    /// When the oldest arrival that has not been taken is due, nanoseconds from the start of the window; `u64::MAX` if no
    /// more ever are.
    pub(crate) fn due_ns(&self) -> u64 {
        self.due_ns as u64
    }

    /// The oldest arrival is taken: goes on to the next.
    pub(crate) fn advance(&mut self) {
        self.law.step();
        self.due_ns = self.profile.time_ns(self.law.count());
    }
}

impl Law {
    fn step(&mut self) {
        match self {
            Law::Constant { k, step, first: _ } => *k += *step,
            Law::Poisson { count, threads, rng } => {
                // 53 bits: every double in [0, 1) that is a multiple of 2⁻⁵³. 1 − u is never 0.
                let u = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
                *count -= (1.0 - u).ln() * *threads;
            }
        }
    }

    fn count(&self) -> f64 {
        match self {
            Law::Constant { k, .. } => *k as f64,
            Law::Poisson { count, .. } => *count,
        }
    }
}

// When a count of requests is reached: the inverse of [`Rate::due_by`]. Pure; it must not know threads or randomness.

const NS_PER_S: f64 = 1e9;

/// A rate, prepared for being asked when.
#[derive(Debug, Clone, Copy)]
enum Profile {
    Constant { per_s: f64 },
    Ramp(Ramp),
}

/// The rate goes from `from_per_s` to `to_per_s` in `over_s`, in which `total` requests are due.
#[derive(Debug, Clone, Copy)]
struct Ramp {
    from_per_s: f64,
    to_per_s: f64,
    over_s: f64,
    total: f64,
}

impl Profile {
    fn new(rate: Rate) -> Profile {
        match rate {
            Rate::Constant(per_s) => Profile::Constant { per_s },
            Rate::Ramp { from_per_s, to_per_s, over } => {
                let over_s = over.as_secs_f64();
                Profile::Ramp(Ramp { from_per_s, to_per_s, over_s, total: rate.due_by(over_s) })
            }
        }
    }

    /// The time at which `count` requests were due, nanoseconds from the start of the window; infinite if so many never
    /// are.
    fn time_ns(&self, count: f64) -> f64 {
        match self {
            // The product is exact up to 9 million arrivals, and rounded once beyond: spacing never drifts.
            Profile::Constant { per_s } => count * NS_PER_S / per_s,
            Profile::Ramp(ramp) => ramp.time_s(count) * NS_PER_S,
        }
    }
}

impl Ramp {
    fn time_s(&self, count: f64) -> f64 {
        let Ramp { from_per_s, to_per_s, over_s, total } = *self;
        let per_s2 = (to_per_s - from_per_s) / over_s;
        match count {
            _ if count > total => over_s + (count - total) / to_per_s,
            _ if per_s2 >= 0.0 => climb_s(from_per_s, per_s2, count),
            // A fall is a climb seen from its end. Forwards the root would be of a difference, which at a rate of
            // nearly 0 has few digits left.
            _ => over_s - climb_s(to_per_s, -per_s2, total - count),
        }
    }
}

/// The time in which a rate that begins at `from_per_s` and grows by `per_s2` each second makes `count` requests.
///
/// The root of r·t + a·t²/2 = n, in the form whose denominator is a sum: (√(r² + 2an) − r) / a has no digits left where
/// a is nearly 0, and no value where it is.
fn climb_s(from_per_s: f64, per_s2: f64, count: f64) -> f64 {
    if count <= 0.0 {
        return 0.0;
    }
    2.0 * count / (from_per_s + (from_per_s * from_per_s + 2.0 * per_s2 * count).sqrt())
}

#[cfg(test)]
mod tests;
