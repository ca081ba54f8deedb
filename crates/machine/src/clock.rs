//! Clocks of the kernel, in nanoseconds, and how fast a processor is just now.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

/// Time since some moment before the machine started, which no setting of its clock changes.
pub fn monotonic_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// Time since the machine started, suspended or not.
#[cfg(target_os = "linux")]
pub(crate) fn boot_ns() -> u64 {
    read_ns(ClockId::Boottime)
}

/// CPU time of all threads that this process has or had.
pub fn process_cpu_ns() -> u64 {
    read_ns(ClockId::ProcessCPUTime)
}

fn read_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// CPU time of a fixed piece of arithmetic, about a fifth of a millisecond; `None` where the clock does not tell.
///
/// Where the kernel shows no frequency, as in most virtual machines, it is the only sign of one that changes. Waiting for a core is not
/// in it. The quickest of four counts: others were interrupted, or met a busy sibling.
pub fn spin_ns() -> Option<u64> {
    (0..4).map(|_| arithmetic_ns(150_000)).filter(|ns| *ns > 0).min()
}

/// CPU time of so many multiplications, each of which needs the result of the one before, in registers alone. Shifts stand between
/// them, so that a compiler cannot make one of several, as it does of a chain that only multiplies and adds.
pub(crate) fn arithmetic_ns(rounds: u64) -> u64 {
    let begin = read_ns(ClockId::ThreadCPUTime);
    let (mut x, mut round) = (1_u64, 0);
    while round < black_box(rounds) {
        x = (x ^ (x >> 29) ^ round).wrapping_mul(6_364_136_223_846_793_005);
        round += 1;
    }
    black_box(x);
    read_ns(ClockId::ThreadCPUTime).saturating_sub(begin)
}
