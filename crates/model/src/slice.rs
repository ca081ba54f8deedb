//! What one window of load on one trial gave: what the engine counted, what it cost the service, what each of several generators had to do
//! with it, and what the machines of the run did meanwhile, each by itself and the worst of them.
//!
//! It chooses among figures and judges none. Nothing of generators is in the record of a run whose load came from its own process.

use std::collections::BTreeMap;
use std::ops::Not;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Asked, Counts, Windows};

/// Whether a slice counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SliceKind {
    /// Load before the service is taken to be steady; never part of an estimate.
    WarmUp,
    /// A measured window.
    Measured,
    /// Closed loop before the first block, to find the rate that all variants get; never part of an estimate.
    Capacity,
    /// Open loop at another rate than the one that is judged, where capacity is measured: to find that, and for the curve.
    Probe,
    /// Open loop that falls from more than the service can do to less than its capacity, to see whether it recovers; never part of an
    /// estimate.
    Overload,
}

impl SliceKind {
    /// Whether the slice is part of the result.
    pub fn counts(self) -> bool {
        match self {
            SliceKind::Measured => true,
            SliceKind::WarmUp | SliceKind::Capacity | SliceKind::Probe | SliceKind::Overload => false,
        }
    }

    /// Whether the slice prepares what follows: it warms up, or finds the limit.
    pub fn prepares(self) -> bool {
        match self {
            SliceKind::WarmUp | SliceKind::Capacity => true,
            SliceKind::Measured | SliceKind::Probe | SliceKind::Overload => false,
        }
    }

    /// Whether the slice is load at a steady rate, so that it shows what that rate gives.
    pub fn is_at_a_rate(self) -> bool {
        match self {
            SliceKind::Measured | SliceKind::Probe => true,
            SliceKind::WarmUp | SliceKind::Capacity | SliceKind::Overload => false,
        }
    }
}

/// Load on one trial: one uninterrupted window, or the sum of several short ones, the turns, between which other trials had theirs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Number of the block, from 1; 0 for what came before the first.
    pub block: u32,
    /// Index of the variant in the plan.
    pub variant: usize,
    /// Whether it counts.
    pub kind: SliceKind,
    /// Windows that it is the sum of.
    #[serde(default = "one")]
    pub turns: u32,
    /// Connections asked for.
    pub connections: u32,
    /// Whether throughput follows from how long responses took, because the service waits: see [`Slice::throughput`].
    #[serde(default, skip_serializing_if = "Not::not")]
    pub waits: bool,
    /// What it was to be; `None` where the design says that for all slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// What the engine counted.
    #[serde(flatten)]
    pub counts: Counts,
    /// What each of several generators had to do with it, in their order; empty where load came from the run's own process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorPart>,
    /// What each service of the trial used, from before the window to after the drain.
    pub services: Vec<ServiceUse>,
    /// What the rest of the machine did meanwhile.
    pub machine: MachineUse,
}

fn one() -> u32 {
    1
}

impl Slice {
    /// Takes in the next turn of the same slice. What services and machine used is not summed: that is known of all turns together.
    pub fn absorb(&mut self, turn: Slice) {
        let Slice {
            // The same of every turn of a slice.
            block: _,
            variant: _,
            kind: _,
            connections: _,
            waits: _,
            asked: _,
            turns,
            counts,
            // Turns are taken where load comes from the run's own process alone.
            generators: _,
            // Filled in when all turns are over.
            services: _,
            machine: _,
        } = turn;
        self.turns += turns;
        self.counts.merge(counts, Windows::Sequential);
    }

    /// Time for which quotas of services' own held them back, of the service with which that was longest, in nanoseconds.
    pub fn services_throttled_ns(&self) -> u64 {
        self.services.iter().map(|service| service.throttled_ns).max().unwrap_or(0)
    }

    /// Successful responses, and the nanoseconds in which they came, over which throughput is counted.
    ///
    /// At its limit a service is busy from the begin of a window to its end, and what came in the window over its length is what it can do.
    /// One that waits (for a timer, a disk, another machine) is not: what the window's end cuts off depends on how response times
    /// vary. There each connection is a renewal process that is stopped at its first response
    /// after the window's end. By Wald's identity the responses of all windows, those of the drains included, over the time in which
    /// connections had a request in flight are an estimate without that bias, whatever the distribution of the response times.
    /// The first request of each connection is left out where others follow: it finds an empty queue, and the others do not.
    pub fn throughput(&self) -> (u64, u64) {
        let Counts { successful, first_successful, in_flight_ns, first_in_flight_ns, .. } = self.counts;
        let later = successful.saturating_sub(first_successful);
        match self.waits {
            true if later > 0 => {
                (later * u64::from(self.connections), in_flight_ns.saturating_sub(first_in_flight_ns))
            }
            true => (successful * u64::from(self.connections), in_flight_ns),
            false => (self.counts.successful_in_window, self.counts.window_ns),
        }
    }

    /// The same per second; `None` without a window.
    pub fn per_s(&self) -> Option<f64> {
        let (successful, ns) = self.throughput();
        (ns > 0).then(|| successful as f64 / ns as f64 * 1e9)
    }

    /// CPU time of all services together, in nanoseconds.
    pub fn services_cpu_ns(&self) -> u64 {
        self.services.iter().map(|service| service.cpu_ns).sum()
    }

    /// CPU time of the load's threads on the machine of the run, in nanoseconds.
    pub fn client_cpu_here_ns(&self) -> u64 {
        self.here(|part| part.cpu_ns).unwrap_or_else(|| self.counts.generator.cpu_ns.iter().sum())
    }

    /// Connections that were opened for it from the machine of the run.
    pub fn connections_opened_here(&self) -> u64 {
        self.here(|part| part.connections_opened).unwrap_or(self.counts.connections_opened)
    }

    /// What the generators of this machine did of something, where there are several.
    fn here(&self, of: fn(&GeneratorPart) -> u64) -> Option<u64> {
        let here = self.generators.iter().filter(|part| part.here).map(of);
        (!self.generators.is_empty()).then(|| here.sum())
    }
}

/// What one service's process tree used during a slice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceUse {
    /// Name of the service.
    pub service: String,
    /// CPU time of the tree in nanoseconds.
    pub cpu_ns: u64,
    /// Time its threads were runnable and waited for a core, in nanoseconds.
    pub run_delay_ns: u64,
    /// Resident memory of the tree after the slice, in bytes (shared pages counted in each process).
    pub rss_bytes: u64,
    /// Processes in the tree after the slice.
    pub processes: u32,
    /// Threads in the tree after the slice.
    pub threads: u32,
    /// Times a thread gave up its core.
    pub switches_voluntary: u64,
    /// Times a thread was taken off its core.
    pub switches_involuntary: u64,
    /// CPU time of its processes in nanoseconds, the busiest first, at most 64 and none without any: which process was which is not
    /// kept. Of measured slices only; empty also in records that do not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_by_process_ns: Vec<u64>,
    /// Page faults that had to read from storage.
    #[serde(default)]
    pub major_faults: u64,
    /// Bytes that it had fetched from storage, by `/proc/PID/io`.
    #[serde(default)]
    pub read_bytes: u64,
    /// Time that control groups of its own, those around it and not around Proofload, were held back for having used up their quota, in
    /// nanoseconds: a container's, or a unit's of systemd.
    #[serde(default)]
    pub throttled_ns: u64,
}

/// A generator that is connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Generator {
    /// Where it runs, such as `local 2`, `ssh://bench-1` or `kubernetes://bench/proofload-x7k2-3`.
    pub name: String,
    /// What its machine calls itself.
    pub host: String,
    /// Processors that it may use.
    pub processors: u32,
}

/// A generator that was lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratorLost {
    /// Number of the block under way, or of the last one; 0 before the first.
    pub block: u32,
    /// Its name.
    pub generator: String,
    /// What became of it, and what it last said, in words.
    pub why: String,
}

/// One generator's part in a slice.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorPart {
    /// Its name.
    pub name: String,
    /// Whether it runs on the machine of the run.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub here: bool,
    /// How much later than agreed its window began, in nanoseconds, by its own clock.
    pub late_ns: u64,
    /// How wrong that may be, either way, because clocks cannot be compared better.
    pub clock_error_ns: u64,
    /// CPU share of its busiest thread, 0 to 1; `None` where nothing was measured.
    pub busiest_share: Option<f64>,
    /// CPU time of its load threads, in nanoseconds.
    pub cpu_ns: u64,
    /// Share of its machine's CPU time that the host gave to others, 0 to 1; `None` where the kernel does not say.
    pub steal_share: Option<f64>,
    /// Requests that it sent.
    pub sent: u64,
    /// Connections that it opened for this slice, before and during its window.
    pub connections_opened: u64,
    /// How late it sent requests for which a connection was free, at p99, in nanoseconds; `None` in closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_p99_ns: Option<u64>,
}

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
    /// Time that control groups around Proofload, and so around all that it starts, were held back for having used up their quota, in
    /// nanoseconds.
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
