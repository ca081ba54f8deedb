//! The clocks of an engine thread: monotonic time, its own CPU time, and how long it waited for a CPU.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC` in nanoseconds. Read through the vDSO: no system call.
pub(crate) fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// `CLOCK_BOOTTIME` in nanoseconds, which includes suspension. Also read through the vDSO.
pub(crate) fn boot_ns() -> u64 {
    nanoseconds(ClockId::Boottime)
}

/// CPU time of the calling thread in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

/// Time in nanoseconds that the calling thread was ready but not running: the second field of its
/// `schedstat`. `None` if the kernel was built without it.
pub(crate) fn thread_run_delay_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A time limit in nanoseconds, at most a century.
pub(crate) fn in_ns(time: Duration) -> u64 {
    const CENTURY: Duration = Duration::from_secs(100 * 366 * 86_400);
    time.min(CENTURY).as_nanos() as u64
}
