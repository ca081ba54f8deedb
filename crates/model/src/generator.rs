//! Generators that are processes of their own, here or elsewhere: who they are, what each had to do with a slice, and who was lost.
//!
//! Nothing of this is in the record of a run whose load came from its own process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    #[serde(default, skip_serializing_if = "is_false")]
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_false(flag: &bool) -> bool {
    !flag
}
