//! Measurements of one load window on one trial: the request counts, the resource use of the services, the
//! part of each generator if there are several, and the activity of the machines.
//!
//! This module neither estimates nor judges. Generator data is absent from the record if load came
//! from the run's own process.

use std::ops::Not;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Counts, SliceRequest, Windows};

/// Purpose of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SliceKind {
    /// Load before the service is considered steady. Never part of an estimate.
    WarmUp,
    /// A measured window.
    Measured,
    /// Closed loop before the first block, to find the common rate of all variants. Never part of an
    /// estimate.
    Capacity,
    /// Open loop at a rate other than the judged one, in a capacity measurement: to find the capacity, and
    /// for the curve.
    Probe,
    /// Open loop that falls from above the service's capacity to below it, to see whether the service
    /// recovers. Never part of an estimate.
    Overload,
}

impl SliceKind {
    /// Whether the slice is part of the result.
    pub fn counts(self) -> bool {
        match self {
            SliceKind::Measured => true,
            SliceKind::WarmUp | SliceKind::Capacity | SliceKind::Probe | SliceKind::Overload => {
                false
            }
        }
    }

    /// Whether the slice prepares later ones: it warms up, or finds the limit.
    pub fn prepares(self) -> bool {
        match self {
            SliceKind::WarmUp | SliceKind::Capacity => true,
            SliceKind::Measured | SliceKind::Probe | SliceKind::Overload => false,
        }
    }

    /// Whether the load is at a steady rate, so that the slice shows the result of that rate.
    pub fn is_at_a_rate(self) -> bool {
        match self {
            SliceKind::Measured | SliceKind::Probe => true,
            SliceKind::WarmUp | SliceKind::Capacity | SliceKind::Overload => false,
        }
    }
}

/// Load on one trial: one uninterrupted window, or the sum of several short ones (turns) that alternate with
/// the turns of other trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slice {
    /// Number of the block, from 1. 0 for slices before the first block.
    pub block: u32,
    /// Index of the variant in the plan.
    pub variant: usize,
    /// Purpose of the slice.
    pub kind: SliceKind,
    /// Number of windows summed in this slice.
    pub turns: u32,
    /// Requested number of connections.
    pub connections: u32,
    /// Whether the service waits, so that throughput is computed from response times.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub waits: bool,
    /// The requested load. `None` if the design is the same for all slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<SliceRequest>,
    /// Request counts from the engine.
    #[serde(flatten)]
    pub counts: Counts,
    /// Part of each generator, in order. Empty if load came from the run's own process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorPart>,
    /// Resource use of each service of the trial, from before the window to after the drain.
    pub services: Vec<ServiceUse>,
    /// Activity of the rest of the machine during the slice.
    pub machine: MachineUse,
}

impl Slice {
    /// Merges the next turn of the same slice. The resource use of services and machine is not summed,
    /// because it is measured once for all turns.
    pub fn absorb(&mut self, turn: Slice) {
        let Slice {
            // The same in every turn of a slice.
            block: _,
            variant: _,
            kind: _,
            connections: _,
            waits: _,
            asked: _,
            turns,
            counts,
            // Turns exist only if load comes from the run's own process.
            generators: _,
            // Filled in after the last turn.
            services: _,
            machine: _,
        } = turn;
        self.turns += turns;
        self.counts.merge(counts, Windows::Sequential);
    }

    /// Longest time for which any service was throttled by its own CPU quota, in nanoseconds.
    pub fn services_throttled_ns(&self) -> u64 {
        self.services
            .iter()
            .map(|service| service.throttled_ns)
            .max()
            .unwrap_or(0)
    }

    /// CPU time of all services together, in nanoseconds.
    pub fn services_cpu_ns(&self) -> u64 {
        self.services.iter().map(|service| service.cpu_ns).sum()
    }

    /// CPU time of the load's threads on the machine of the run, in nanoseconds.
    pub fn client_cpu_here_ns(&self) -> u64 {
        self.here(|part| part.cpu_ns)
            .unwrap_or_else(|| self.counts.generator.cpu_ns.iter().sum())
    }

    /// Connections opened for this slice from the machine of the run.
    pub fn connections_opened_here(&self) -> u64 {
        self.here(|part| part.connections_opened)
            .unwrap_or(self.counts.connections_opened)
    }

    /// Sums a value over the generators on this machine. `None` without generators.
    fn here(&self, of: fn(&GeneratorPart) -> u64) -> Option<u64> {
        let here = self.generators.iter().filter(|part| part.here).map(of);
        (!self.generators.is_empty()).then(|| here.sum())
    }
}

/// Resource use of one service's process tree during a slice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceUse {
    /// Name of the service.
    pub service: String,
    /// CPU time of the tree in nanoseconds.
    pub cpu_ns: u64,
    /// Time the threads were runnable and waited for a core, in nanoseconds.
    pub run_delay_ns: u64,
    /// Resident memory of the tree after the slice, in bytes. Shared pages count once per process.
    pub rss_bytes: u64,
    /// Processes in the tree after the slice.
    pub processes: u32,
    /// Threads in the tree after the slice.
    pub threads: u32,
    /// Voluntary context switches.
    pub switches_voluntary: u64,
    /// Involuntary context switches.
    pub switches_involuntary: u64,
    /// CPU time of its processes in nanoseconds, busiest first, at most 64. Processes without CPU time are
    /// omitted, and process IDs are not stored. Only for measured slices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_by_process_ns: Vec<u64>,
    /// Major page faults, which had to read from storage.
    pub major_faults: u64,
    /// Bytes read from storage, from `/proc/PID/io`.
    pub read_bytes: u64,
    /// Time for which its own control groups were throttled by their quota, in nanoseconds. These are groups
    /// around the service but not around Proofload, of a container or a systemd unit.
    pub throttled_ns: u64,
}

/// A connected load generator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectedGenerator {
    /// Where it runs, such as `local 2`, `ssh://bench-1` or `kubernetes://bench/proofload-x7k2-3`.
    pub name: String,
    /// Host name of the machine.
    pub host: String,
    /// Number of processors the generator may use.
    pub processors: u32,
}

/// A lost load generator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratorLost {
    /// Number of the current or last block. 0 before the first.
    pub block: u32,
    /// Name of the generator.
    pub generator: String,
    /// Cause of the loss and its last message, as text.
    pub why: String,
}

/// The part of one generator in a slice.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratorPart {
    /// Name of the generator.
    pub name: String,
    /// Whether the generator runs on the machine of the run.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub here: bool,
    /// Delay of the window's start against the agreed time, in nanoseconds of the generator's clock.
    pub late_ns: u64,
    /// Maximum error of that delay in either direction, from the clock comparison.
    pub clock_error_ns: u64,
    /// CPU share of the busiest thread, 0 to 1. `None` if nothing was measured.
    pub busiest_share: Option<f64>,
    /// CPU time of the load threads, in nanoseconds.
    pub cpu_ns: u64,
    /// Share of its machine's CPU time that the host gave to others, 0 to 1. `None` if the kernel does not
    /// report it.
    pub steal_share: Option<f64>,
    /// Requests sent by the generator.
    pub sent: u64,
    /// Connections opened by the generator for this slice, before and during its window.
    pub connections_opened: u64,
    /// 99th percentile of its delay in sending requests for which a connection was free, in nanoseconds.
    /// `None` in closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_p99_ns: Option<u64>,
}

/// Activity of the machine during a slice, apart from generator and services.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineUse {
    /// Share of all CPU time that the hypervisor gave to others, 0 to 1.
    pub steal_share: f64,
    /// CPU time of the services of the other running trials, which should be idle, in nanoseconds. 0 for more
    /// than one turn, because they had turns too.
    pub idle_trials_cpu_ns: u64,
    /// Share of the time in which some task of the machine waited for a core (`/proc/pressure/cpu`, some), 0
    /// to 1. `None` if the kernel does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_pressure_share: Option<f64>,
    /// Time for which control groups around Proofload, and so around everything it starts, were throttled by
    /// their quota, in nanoseconds.
    pub throttled_ns: u64,
    /// CPU time of processes that belong neither to Proofload nor to a service of this run, in nanoseconds.
    pub strangers_cpu_ns: u64,
    /// Pages read back from swap.
    pub swapped_in_pages: u64,
    /// CPU time of a fixed arithmetic loop just before the slice, in nanoseconds. `None` if it was not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spin_ns: Option<u64>,
    /// TCP counters of the network namespace. `None` if the kernel does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpUse>,
}

/// TCP counters over a slice, for all sockets of one network namespace. If a slice has several turns, the
/// turns of other trials are included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TcpUse {
    /// Connections begun by the generator or among services (`ActiveOpens`).
    pub opened: u64,
    /// Established connections that found the accept queue full (`ListenOverflows`).
    pub listen_overflows: u64,
    /// Connection requests that a listening socket dropped, including overflows (`ListenDrops`).
    pub listen_drops: u64,
    /// Connection requests that were retransmitted, after 1, 3, 7 s (`TCPSynRetrans`).
    pub syn_retransmits: u64,
    /// Sockets in TIME_WAIT before the slice.
    pub time_wait_before: u64,
    /// Sockets in TIME_WAIT after the slice.
    pub time_wait: u64,
    /// Local ports that the kernel may give to connections (`ip_local_port_range`).
    pub local_ports: u64,
}
