//! Clocks of the kernel, in nanoseconds, and the current speed of a processor.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

/// Time since an unspecified moment before the machine started, unaffected by changes of its clock.
pub fn monotonic_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// Time since the machine started, including suspension.
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
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// CPU time of a fixed piece of arithmetic, about a fifth of a millisecond. `None` if the clock is not
/// available.
///
/// If the kernel shows no frequency, as in most virtual machines, this is the only sign of a change. It
/// excludes waiting for a core. The fastest of four is used, because others were interrupted, or had a busy
/// sibling.
pub fn spin_ns() -> Option<u64> {
    (0..4)
        .map(|_| arithmetic_ns(150_000))
        .filter(|ns| *ns > 0)
        .min()
}

/// CPU time of a chain of `rounds` dependent multiplications, in registers only. Shifts between them prevent
/// a compiler from merging several, as it does for a chain of only multiplications and additions.
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
