//! Clocks of the kernel as nanoseconds. It reads them and waits for none.

use rustix::time::{ClockId, clock_gettime};

/// Time since some moment before the machine started, which no setting of its clock changes.
pub(crate) fn monotonic_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

fn read_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
