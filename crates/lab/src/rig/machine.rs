//! The machine's own counters: how much of its time other guests of the host took.

use std::fs;

/// The first line of /proc/stat: time of all processors since boot, in ticks.
pub(super) struct CpuTimes {
    total: u64,
    steal: u64,
}

impl CpuTimes {
    /// Zeros where the kernel shows nothing, which reads as no steal.
    pub fn read() -> CpuTimes {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; guest time is inside user time already.
        CpuTimes { total: ticks.iter().take(8).sum(), steal: ticks.get(7).copied().unwrap_or(0) }
    }

    /// Share of all CPU time from then to `later` that the hypervisor gave to others.
    pub fn steal_share_until(&self, later: &CpuTimes) -> f64 {
        let total = later.total.saturating_sub(self.total);
        if total == 0 { 0.0 } else { later.steal.saturating_sub(self.steal) as f64 / total as f64 }
    }
}
