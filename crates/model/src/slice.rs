//! What one window of load on one trial gave: what the engine counted, and what it cost the service.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Counts, GeneratorPart, MachineUse, Windows};

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
        self.turns += turn.turns;
        self.counts.merge(turn.counts, Windows::Sequential);
    }

    /// CPU time of all services together, in nanoseconds.
    pub fn services_cpu_ns(&self) -> u64 {
        self.services.iter().map(|service| service.cpu_ns).sum()
    }

    /// CPU time of the load's threads on the machine of the run, in nanoseconds.
    pub fn client_cpu_here_ns(&self) -> u64 {
        match self.generators.as_slice() {
            [] => self.counts.generator.cpu_ns.iter().sum(),
            parts => parts.iter().filter(|part| part.here).map(|part| part.cpu_ns).sum(),
        }
    }

    /// Connections that were opened for it from the machine of the run.
    pub fn connections_opened_here(&self) -> u64 {
        match self.generators.as_slice() {
            [] => self.counts.connections_opened,
            parts => parts.iter().filter(|part| part.here).map(|part| part.connections_opened).sum(),
        }
    }
}

/// What one service's process tree used during a slice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
}
