//! Open-loop schedule: arrival times of one thread, relative to the start of a window. Pure.
//!
//! An arrival is a count Λ of requests, and is due when the rate has produced that many. `profile` converts
//! the count into a time, for constant and changing rates.
//!
//! ```text
//! constant     Λ = 0   1   2   3   4   5          arrival k of the whole load is due at count k
//!                  |   |   |   |   |   |──► t
//! Poisson             |  |       ||    |  |──► t  Λ grows by −ln(1 − u) to each, u uniform in [0, 1)
//!       thread        0  1       01    0  1       arrival k belongs to thread k mod threads
//! ```
//! The arrivals of a load do not depend on the number of threads. A window of length W has exactly ⌈W · rate⌉
//! constant ones. Each thread draws all Poisson arrivals, which costs it a logarithm for each arrival of
//! another thread. So the first n of the load are the first n / T of each thread. With a process per thread,
//! the one that is slowest by chance would end late, and the rate would fall behind. Exponential steps of the
//! count make a Poisson process of any rate that converts the count into time (inversion: Çinlar,
//! Introduction to Stochastic Processes, 1975, section 4.7). A time is computed from the count, never from
//! the time of an event, so a load that falls behind cannot move it. This module reads no clock, does not
//! wait, and knows no connections.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use model::BUCKET_NS;

use crate::{ArrivalProcess, Rate};

/// The arrival times of one thread, oldest first. A clone yields the same ones.
#[derive(Debug, Clone)]
pub(crate) struct Pacer {
    law: Law,
    profile: RateProfile,
    due_ns: f64,
}

#[derive(Debug, Clone)]
enum Law {
    /// The next arrival is number `k` of the whole load.
    Constant { k: u64, first: u64, step: u64 },
    /// The next arrival is due at this count of the whole load. Each window draws its own seed.
    Poisson {
        count: f64,
        first: u32,
        step: u32,
        rng: Pcg64Mcg,
        seeds: Pcg64Mcg,
    },
}

/// The random generator of one thread. Its seed is drawn from a generator, because streams of consecutive
/// seeds are similar.
pub(crate) fn rng_of(seed: u64, thread: u32) -> Pcg64Mcg {
    let mut seeds = Pcg64Mcg::seed_from_u64(seed);
    let seed = (0..thread).fold(seeds.next_u64(), |_, _| seeds.next_u64());
    Pcg64Mcg::seed_from_u64(seed)
}

/// Parameters shared by all threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedPace {
    pub(crate) rate: Rate,
    pub(crate) process: ArrivalProcess,
    pub(crate) seed: u64,
}

impl Pacer {
    /// The arrivals of thread `thread` (from 0) of `threads`, before its first window. See
    /// [`Pacer::restart`].
    pub(crate) fn new(pace: SharedPace, thread: u32, threads: u32) -> Pacer {
        let law = match pace.process {
            ArrivalProcess::Constant => {
                let (first, step) = (thread.into(), threads.into());
                Law::Constant {
                    k: first,
                    first,
                    step,
                }
            }
            ArrivalProcess::Poisson => {
                let seeds = Pcg64Mcg::seed_from_u64(pace.seed);
                Law::Poisson {
                    count: 0.0,
                    first: thread,
                    step: threads,
                    rng: seeds.clone(),
                    seeds,
                }
            }
        };
        Pacer {
            law,
            profile: RateProfile::new(pace.rate),
            due_ns: 0.0,
        }
    }

    /// Number of buckets of a ramp. `None` for a constant rate.
    pub(crate) fn ramp_buckets(&self) -> Option<usize> {
        match self.profile {
            RateProfile::Constant { .. } => None,
            RateProfile::Ramp { over_s, .. } => {
                Some((over_s * NS_PER_S / BUCKET_NS as f64).round() as usize)
            }
        }
    }

    /// Begins a window and restarts the rate. No two windows have the same Poisson arrivals.
    pub(crate) fn restart(&mut self) {
        match &mut self.law {
            Law::Constant { k, first, step: _ } => *k = *first,
            Law::Poisson {
                count,
                first,
                rng,
                seeds,
                step: _,
            } => {
                (*rng, *count) = (Pcg64Mcg::seed_from_u64(seeds.next_u64()), 0.0);
                grow(count, *first + 1, rng);
            }
        }
        self.due_ns = self.profile.time_ns(self.law.count());
    }

    /// Due time of the oldest arrival not taken, in nanoseconds from the start of the window. `u64::MAX` if
    /// there are no more.
    pub(crate) fn due_ns(&self) -> u64 {
        self.due_ns as u64
    }

    /// Takes the oldest arrival and moves on to the next.
    pub(crate) fn advance(&mut self) {
        self.law.step();
        self.due_ns = self.profile.time_ns(self.law.count());
    }
}

impl Law {
    fn step(&mut self) {
        match self {
            Law::Constant { k, step, first: _ } => *k += *step,
            Law::Poisson {
                count, step, rng, ..
            } => grow(count, *step, rng),
        }
    }

    fn count(&self) -> f64 {
        match self {
            Law::Constant { k, .. } => *k as f64,
            Law::Poisson { count, .. } => *count,
        }
    }
}

fn grow(count: &mut f64, arrivals: u32, rng: &mut Pcg64Mcg) {
    for _ in 0..arrivals {
        // 53 bits: every double in [0, 1) that is a multiple of 2⁻⁵³. 1 − u is never 0.
        let u = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        *count -= (1.0 - u).ln();
    }
}

// The time at which a count of requests is reached: the inverse of [`Rate::due_by`]. Pure, without threads
// and randomness.

const NS_PER_S: f64 = 1e9;

/// A rate, prepared for fast queries.
#[derive(Debug, Clone, Copy)]
enum RateProfile {
    Constant {
        per_s: f64,
    },
    /// The rate goes from `from_per_s` to `to_per_s` in `over_s`, in which `total` requests are due.
    Ramp {
        from_per_s: f64,
        to_per_s: f64,
        over_s: f64,
        total: f64,
    },
}

impl RateProfile {
    fn new(rate: Rate) -> RateProfile {
        match rate {
            Rate::Constant(per_s) => RateProfile::Constant { per_s },
            Rate::Ramp {
                from_per_s,
                to_per_s,
                over,
            } => {
                let over_s = over.as_secs_f64();
                RateProfile::Ramp {
                    from_per_s,
                    to_per_s,
                    over_s,
                    total: rate.due_by(over_s),
                }
            }
        }
    }

    /// The time by which `count` requests were due, in nanoseconds from the start of the window. Infinite if
    /// that count is never reached.
    fn time_ns(&self, count: f64) -> f64 {
        let (from_per_s, to_per_s, over_s, total) = match *self {
            // The product is exact up to 9 million arrivals, and rounded once beyond, so spacing never
            // drifts.
            RateProfile::Constant { per_s } => return count * NS_PER_S / per_s,
            RateProfile::Ramp {
                from_per_s,
                to_per_s,
                over_s,
                total,
            } => (from_per_s, to_per_s, over_s, total),
        };
        let per_s2 = (to_per_s - from_per_s) / over_s;
        let time_s = match count {
            _ if count > total => over_s + (count - total) / to_per_s,
            _ if per_s2 >= 0.0 => climb_s(from_per_s, per_s2, count),
            // A falling ramp is a rising one seen from its end. Computed forwards, the root would be of a
            // difference, which has few significant digits at a rate of nearly 0.
            _ => over_s - climb_s(to_per_s, -per_s2, total - count),
        };
        time_s * NS_PER_S
    }
}

/// The time in which a rate that begins at `from_per_s` and grows by `per_s2` each second makes `count`
/// requests.
///
/// The root of r·t + a·t²/2 = n, in the form whose denominator is a sum. (√(r² + 2an) − r) / a loses all
/// significant digits when a is nearly 0, and is undefined when it is 0.
fn climb_s(from_per_s: f64, per_s2: f64, count: f64) -> f64 {
    if count <= 0.0 {
        return 0.0;
    }
    2.0 * count / (from_per_s + (from_per_s * from_per_s + 2.0 * per_s2 * count).sqrt())
}

#[cfg(test)]
mod tests;
