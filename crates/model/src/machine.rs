//! What several machines did in one slice, where services run on others than the generator: each alone, and the worst of them.
//!
//! It chooses among figures and judges none.

use crate::MachineUse;

impl MachineUse {
    /// This machine and the others, each with its host; `None` is this one.
    pub fn machines(&self) -> impl Iterator<Item = (Option<&str>, &MachineUse)> {
        std::iter::once((None, self))
            .chain(self.hosts.iter().map(|(host, machine)| (Some(host.as_str()), machine)))
    }

    /// That of the machine a service ran on; `None` where nothing is told of it.
    pub fn of(&self, host: Option<&str>) -> Option<&MachineUse> {
        match host {
            None => Some(self),
            Some(host) => self.hosts.get(host),
        }
    }

    /// Share of CPU time that went to others on the machine from which most was taken, 0 to 1.
    pub fn steal_share_max(&self) -> f64 {
        self.machines().map(|(_, machine)| machine.steal_share).fold(0.0, f64::max)
    }

    /// Time for which quotas held processes back on the machine where that was longest, in nanoseconds.
    pub fn throttled_ns_max(&self) -> u64 {
        self.machines().map(|(_, machine)| machine.throttled_ns).max().unwrap_or(0)
    }

    /// Pages read back from swap on all machines.
    pub fn swapped_in_pages_all(&self) -> u64 {
        self.machines().map(|(_, machine)| machine.swapped_in_pages).sum()
    }
}
