//! What the machines of a run did during a slice, beside generator and services: each by itself, and the worst of them.
//!
//! It chooses among figures and judges none.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a machine did during a slice, beside generator and services: this one, and in `hosts` those that services run on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineUse {
    /// Share of all CPU time that the hypervisor gave to others, 0 to 1.
    pub steal_share: f64,
    /// CPU time of the other living trials' services, which should be idle, in nanoseconds; 0 for more than one turn, where
    /// they had turns of their own.
    pub idle_trials_cpu_ns: u64,
    /// Share of the time in which some task of the machine waited for a core (`/proc/pressure/cpu`, some), 0 to 1; `None` where
    /// the kernel does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_pressure_share: Option<f64>,
    /// Time that control groups above or around the services were held back for having used up their quota, in nanoseconds.
    #[serde(default)]
    pub throttled_ns: u64,
    /// CPU time of whatever is neither Proofload nor a service of this run, in nanoseconds.
    #[serde(default)]
    pub strangers_cpu_ns: u64,
    /// Pages that were read back from swap.
    #[serde(default)]
    pub swapped_in_pages: u64,
    /// CPU time that a fixed piece of arithmetic took just before, in nanoseconds; `None` where it was not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spin_ns: Option<u64>,
    /// What TCP counted in the network where the entry runs; `None` where the kernel does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpUse>,
    /// The same of each machine elsewhere on which services lived, by host; there without `tcp` and `idle_trials_cpu_ns`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, MachineUse>,
}

/// TCP's own counters over a slice, of all sockets of one network together. Where a slice is the sum of several turns the others' turns
/// are in them as well.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpUse {
    /// Connections that were begun, the generator's and those among services (`ActiveOpens`).
    pub opened: u64,
    /// Connections that were finished and found the line before accept() full (`ListenOverflows`).
    pub listen_overflows: u64,
    /// Requests for a connection that a listening socket dropped, those included (`ListenDrops`).
    pub listen_drops: u64,
    /// Requests for a connection that were sent again, after 1, 3, 7 s (`TCPSynRetrans`).
    pub syn_retransmits: u64,
    /// Sockets in TIME_WAIT before the slice.
    pub time_wait_before: u64,
    /// Sockets in TIME_WAIT after it.
    pub time_wait: u64,
    /// Local ports that the kernel may give to connections (`ip_local_port_range`).
    pub local_ports: u64,
}

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
