//! How fast this machine's processors are just now: the CPU time of a fixed piece of arithmetic.
//!
//! It is done between slices, never in one. Where the kernel shows no frequency, as in most virtual machines, it is the only sign of
//! one that changes. It touches no memory, and counts CPU time: waiting for a core is not in it.

use std::hint::black_box;

use rustix::time::ClockId;

use super::nanoseconds;

/// Multiplications, each of which needs the result of the one before: about a fifth of a millisecond.
const ROUNDS: u64 = 150_000;
/// The quickest of some counts: others were interrupted, or met a busy sibling.
const TRIES: usize = 4;

/// CPU time of the arithmetic, in nanoseconds; `None` where the clock does not tell.
pub fn time_ns() -> Option<u64> {
    (0..TRIES).map(|_| once_ns()).filter(|ns| *ns > 0).min()
}

fn once_ns() -> u64 {
    let begin = nanoseconds(ClockId::ThreadCPUTime);
    black_box(arithmetic(black_box(1)));
    nanoseconds(ClockId::ThreadCPUTime).saturating_sub(begin)
}

/// The mixing step of a generator of random numbers. Shifts stand between the multiplications, so that a compiler cannot make one of
/// several, as it does of a chain that only multiplies and adds.
fn arithmetic(seed: u64) -> u64 {
    (0..ROUNDS).fold(seed, |x, round| (x ^ (x >> 29) ^ round).wrapping_mul(6_364_136_223_846_793_005))
}
