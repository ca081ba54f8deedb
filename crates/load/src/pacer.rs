//! When requests are due in open loop: arrival times of one thread, counted from the start of a window. Pure.
//!
//! ```text
//! constant, 2 threads     k = 0   1   2   3   4   5          arrival k of the whole load is due at k / rate
//!                             |   |   |   |   |   |──► t     and belongs to thread k mod threads
//!                  thread     0   1   0   1   0   1
//!
//! Poisson                     |  |       ||    |  |──► t     gap = −ln(1 − u) · threads / rate, u uniform in [0, 1)
//! ```
//! For constant arrivals thread t of T has the arrivals j = 0, 1, ... at (t + jT) / rate: together they are evenly spaced, and
//! a window of length W has exactly ⌈W · rate⌉ of them. For Poisson arrivals each thread draws a process of its own
//! with rate / T from its own seed; several independent Poisson processes together are one of the summed rate.
//! A time is computed from the count of arrivals, or added up from the gaps, never from when something was done: that the
//! load falls behind cannot move it. It must not read a clock, wait, or know connections.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::Process;

const NS_PER_S: f64 = 1e9;

/// The arrival times of one thread, oldest first. A clone yields the same ones.
#[derive(Debug, Clone)]
pub(crate) struct Pacer {
    law: Law,
    due_ns: f64,
}

#[derive(Debug, Clone)]
enum Law {
    /// The next arrival is number `k` of the whole load.
    Constant { k: u64, first: u64, step: u64, rate_per_s: f64 },
    /// `gap_ns` is the mean.
    Poisson { gap_ns: f64, rng: Pcg64Mcg },
}

/// What all threads have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) rate_per_s: f64,
    pub(crate) process: Process,
    pub(crate) seed: u64,
}

impl Pacer {
    /// The arrivals of thread `thread` (from 0) of `threads`, before its first window; see [`Pacer::restart`].
    pub(crate) fn new(pace: Pace, thread: u32, threads: u32) -> Pacer {
        let law = match pace.process {
            Process::Constant => {
                let (first, step) = (thread.into(), threads.into());
                Law::Constant { k: first, first, step, rate_per_s: pace.rate_per_s }
            }
            Process::Poisson => {
                let gap_ns = f64::from(threads) * NS_PER_S / pace.rate_per_s;
                // Seeds drawn from one generator: seeds that follow each other make streams that resemble each other.
                let mut seeds = Pcg64Mcg::seed_from_u64(pace.seed);
                let seed = (0..thread).fold(seeds.next_u64(), |_, _| seeds.next_u64());
                Law::Poisson { gap_ns, rng: Pcg64Mcg::seed_from_u64(seed) }
            }
        };
        Pacer { law, due_ns: 0.0 }
    }

    /// Begins a window. Poisson arrivals go on with their stream, so that no two windows are alike.
    pub(crate) fn restart(&mut self) {
        self.due_ns = 0.0;
        match &mut self.law {
            Law::Constant { k, first, step: _, rate_per_s } => {
                *k = *first;
                self.due_ns = *k as f64 * NS_PER_S / *rate_per_s;
            }
            Law::Poisson { .. } => self.advance(),
        }
    }

    /// When the oldest arrival that has not been taken is due, nanoseconds from the start of the window.
    pub(crate) fn due_ns(&self) -> u64 {
        self.due_ns as u64
    }

    /// The oldest arrival is taken: goes on to the next.
    pub(crate) fn advance(&mut self) {
        match &mut self.law {
            Law::Constant { k, step, rate_per_s, first: _ } => {
                *k += *step;
                // The product is exact up to 9 million arrivals, and rounded once beyond: spacing never drifts.
                self.due_ns = *k as f64 * NS_PER_S / *rate_per_s;
            }
            Law::Poisson { gap_ns, rng } => {
                // 53 bits: every double in [0, 1) that is a multiple of 2⁻⁵³. 1 − u is never 0.
                let u = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
                self.due_ns -= (1.0 - u).ln() * *gap_ns;
            }
        }
    }
}

#[cfg(test)]
mod tests;
