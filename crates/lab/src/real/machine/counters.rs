//! The machine's counters out of the kernel's texts. Pure; what a text does not have reads as nothing happened.

use super::Texts;

/// What was counted since boot.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Time of all processors, and what of it the hypervisor gave to others; in ticks.
    total_ticks: u64,
    steal_ticks: u64,
    /// Time in which the processors that we use ran anything but interrupts.
    pub busy_ns: u64,
    /// Time in which some task waited for a processor, in microseconds; `None` where the kernel does not say.
    pressure_us: Option<u64>,
    pub throttled_ns: u64,
    pub swapped_in_pages: u64,
}

impl Counters {
    pub fn of(texts: &Texts, cpus: &[usize]) -> Counters {
        let all = times(&texts.stat, "cpu").unwrap_or_default();
        Counters {
            total_ticks: all.iter().sum(),
            steal_ticks: all[STEAL],
            busy_ns: services::ticks_to_ns(busy_ticks(&texts.stat, cpus)),
            pressure_us: waited_us(&texts.pressure),
            throttled_ns: texts.quotas.iter().map(|text| throttled_ns(text)).sum(),
            swapped_in_pages: number_after(&texts.vmstat, "pswpin").unwrap_or(0),
        }
    }

    /// Share of all CPU time from then to `later` that the hypervisor gave to others.
    pub fn steal_share_until(&self, later: &Counters) -> f64 {
        let total = later.total_ticks.saturating_sub(self.total_ticks);
        let stolen = later.steal_ticks.saturating_sub(self.steal_ticks);
        if total == 0 { 0.0 } else { stolen as f64 / total as f64 }
    }

    /// Share of the time from then to `later` in which some task waited for a processor.
    pub fn pressure_share_until(&self, later: &Counters, elapsed_ns: u64) -> Option<f64> {
        let waited_us = later.pressure_us?.saturating_sub(self.pressure_us?);
        (elapsed_ns > 0).then(|| (waited_us as f64 * 1e3 / elapsed_ns as f64).min(1.0))
    }
}

const USER: usize = 0;
const NICE: usize = 1;
const SYSTEM: usize = 2;
const STEAL: usize = 7;

/// user nice system idle iowait irq softirq steal, of all processors or of one; guest time is inside user time already.
fn times(stat: &str, name: &str) -> Option<[u64; 8]> {
    let is_it = |line: &&str| line.split_ascii_whitespace().next() == Some(name);
    let line = stat.lines().find(is_it)?;
    let mut numbers = line.split_ascii_whitespace().skip(1).map(|word| word.parse().unwrap_or(0));
    // Old kernels have fewer.
    Some(std::array::from_fn(|_| numbers.next().unwrap_or(0)))
}

/// What ran as a task on these processors, or on all if there are none.
///
/// Interrupts are left out: those of a load are packets on their way, which belong to no process and are no stranger's.
fn busy_ticks(stat: &str, cpus: &[usize]) -> u64 {
    let busy = |times: [u64; 8]| times[USER] + times[NICE] + times[SYSTEM];
    let of_each = cpus.iter().filter_map(|cpu| times(stat, &format!("cpu{cpu}")));
    if cpus.is_empty() { times(stat, "cpu").map_or(0, busy) } else { of_each.map(busy).sum() }
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`
fn waited_us(pressure: &str) -> Option<u64> {
    let line = pressure.lines().find_map(|line| line.strip_prefix("some "))?;
    line.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

/// In nanoseconds as `throttled_time` (version 1 of control groups), in microseconds as `throttled_usec` (version 2). 0 without a quota.
fn throttled_ns(cpu_stat: &str) -> u64 {
    let in_us = || number_after(cpu_stat, "throttled_usec").map(|us| us.saturating_mul(1000));
    number_after(cpu_stat, "throttled_time").or_else(in_us).unwrap_or(0)
}

/// The number on the line that begins with this word.
fn number_after(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    value.trim().parse().ok()
}
