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

mod profile;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::{Process, Rate};
use profile::Profile;

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
                // Seeds drawn from one generator: seeds that follow each other make streams that resemble each other.
                let mut seeds = Pcg64Mcg::seed_from_u64(pace.seed);
                let seed = (0..thread).fold(seeds.next_u64(), |_, _| seeds.next_u64());
                Law::Poisson { count: 0.0, threads: threads.into(), rng: Pcg64Mcg::seed_from_u64(seed) }
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

#[cfg(test)]
mod tests;
