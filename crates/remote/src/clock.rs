//! Clocks of the kernel, in nanoseconds.

use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC.
pub(crate) fn monotonic_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// CPU time of all threads that this process has or had.
pub(crate) fn own_cpu_ns() -> u64 {
    read_ns(ClockId::ProcessCPUTime)
}

fn read_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
