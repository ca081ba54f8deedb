//! What the machine did beside generator and services, as the kernel's counters tell.
//!
//! Two looks, right before a window and right after it, give what happened between them. What is read is text first, so that tests can
//! have any machine. It judges nothing.

use std::path::PathBuf;

use record::MachineUse;
use remote::services::HostView;
use rustix::time::{ClockId, clock_gettime};
use services::MachineTexts as Texts;

mod counters;
pub(super) mod spin;
mod tcp;
#[cfg(test)]
mod tests;

use counters::Counters;
pub(super) use tcp::TcpCounters;

/// What was counted by one moment.
#[derive(Debug)]
pub(super) struct Look {
    /// Nanoseconds since any fixed point.
    at_ns: u64,
    counters: Counters,
    /// CPU time of Proofload itself, its wardens and generators included: read before the counters, and once more after them.
    ours_ns: (u64, u64),
}

impl Look {
    /// Looks now. `cpus` are those on which we and the services run; `helpers_ns` tells the CPU time of what Proofload has running for
    /// itself.
    pub fn now(at_ns: u64, cpus: &[usize], quota_files: &[PathBuf], helpers_ns: impl Fn() -> u64) -> Look {
        let ours_ns = || process_cpu_ns() + helpers_ns();
        let first = ours_ns();
        let texts = Texts::read(quota_files);
        Look { at_ns, counters: Counters::of(&texts, cpus), ours_ns: (first, ours_ns()) }
    }

    /// What another machine saw of itself. `cpus` are those on which Proofload and the services run there.
    pub fn there(view: &HostView, cpus: &[usize]) -> Look {
        let counters = Counters::of(&view.machine, cpus);
        Look { at_ns: view.at_ns, counters, ours_ns: view.ours_ns }
    }

    /// What happened from then to `later`, in which the services of this run used `services_ns` of CPU time. What is not the whole
    /// machine's is left for the caller.
    pub fn until(&self, later: &Look, services_ns: u64) -> MachineUse {
        let (before, after) = (&self.counters, &later.counters);
        // Ours is taken as long as can be: what we used while we looked must not be laid at strangers' doors.
        let ours_ns = later.ours_ns.1.saturating_sub(self.ours_ns.0) + services_ns;
        let elapsed_ns = later.at_ns.saturating_sub(self.at_ns);
        MachineUse {
            steal_share: before.steal_share_until(after),
            cpu_pressure_share: before.pressure_share_until(after, elapsed_ns),
            throttled_ns: after.throttled_ns.saturating_sub(before.throttled_ns),
            strangers_cpu_ns: after.busy_ns.saturating_sub(before.busy_ns).saturating_sub(ours_ns),
            swapped_in_pages: after.swapped_in_pages.saturating_sub(before.swapped_in_pages),
            ..MachineUse::default()
        }
    }
}

/// CPU time of all threads that this process has or had.
fn process_cpu_ns() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
