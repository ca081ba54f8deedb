//! The dispatcher's interface to the outside: starting, loading and stopping a trial, and the time.

use std::time::Duration;

use model::{AskedOpen, Until};
use plan::Preparation;
use record::{
    Capture, CaptureKind, ConnectedGenerator, EndReason, Prepared, Slice, SliceKind, TrialEnded,
    TrialStarted,
};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use services::Preparing;

/// The trial to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Number of the block.
    pub block: u32,
    /// Index of the variant in the plan.
    pub variant: usize,
    /// Length of a variable that only pads the environment, so that memory layout differs between trials.
    pub padding_bytes: usize,
    /// Determines the order of several requests in closed loop, the same for all variants of a block.
    pub requests_seed: u64,
    /// For a trial with captures instead of measurements: its number in the round, from 1. `block` is then
    /// the number of the round.
    pub capture: Option<u32>,
    /// Maximum time for services to become ready, in addition to their own timeouts. `None` if there is no
    /// such limit.
    pub patience: Option<Duration>,
}

/// A slice to measure in a running trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SliceSpec {
    /// Its purpose.
    pub kind: SliceKind,
    /// Length of the load.
    pub until: Until,
    /// When requests are due. `None` is closed loop. Two trials with the same value get the same arrivals.
    pub open: Option<AskedOpen>,
}

/// The end of a window with this length in seconds.
pub fn elapsed(seconds: f64) -> Until {
    Until::Elapsed(Duration::from_secs_f64(seconds))
}

/// A window to capture in a running trial that was started for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CaptureSpec {
    /// Number of the round, from 1.
    pub round: u32,
    /// Kind of capture.
    pub kind: CaptureKind,
    /// Length of the window of load.
    pub seconds: f64,
    /// When requests are due. `None` is closed loop.
    pub open: Option<AskedOpen>,
}

/// Parameters of a slice's turns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn {
    /// The slice's purpose.
    pub kind: SliceKind,
    /// Length of the window of each, in seconds.
    pub seconds: f64,
    /// Minimum load in seconds before the window, which does not count for throughput. It varies from turn to
    /// turn up to twice this value. 0 for none. See [`Turn::lead_ns`].
    pub lead_s: f64,
}

impl Turn {
    /// Length of the lead of the turn with this number, in nanoseconds: whole tenths of a second.
    ///
    /// All connections begin a turn together. If they share a bottleneck such as a link, their responses come
    /// together too: none for a while, then all at once. A window from the beginning on would miss the last
    /// of them, up to one response of each connection, which makes the slowest variant look slower still. A
    /// window of fixed length that begins anywhere between two responses has the right count on average
    /// (renewal theory). Multiples of the golden section are evenly distributed.
    pub fn lead_ns(&self, number: usize) -> u64 {
        let part = (number as f64 * 0.618_033_988_749_895).fract();
        (self.lead_s * (1.0 + part) * 10.0).round() as u64 * 100_000_000
    }
}

/// Progress of connecting generators.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct Connecting<'a> {
    /// Generators that are waited for, in words.
    pub waiting: &'a [String],
    /// Waiting time so far, in seconds.
    #[serde(rename = "for_s", serialize_with = "in_seconds")]
    #[schemars(with = "f64")]
    pub for_now: Duration,
}

fn in_seconds<S: Serializer>(of: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(of.as_secs_f64())
}

/// Result of connecting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Connected {
    /// All generators, if they changed. Empty if they did not, and if the load comes from this process.
    pub generators: Vec<ConnectedGenerator>,
    /// Generators that were lost and have not been reported yet.
    pub lost: Vec<LostGenerator>,
}

/// A lost generator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostGenerator {
    /// Its name.
    pub generator: String,
    /// The reason and its last output, including its name.
    pub why: String,
}

/// Result of a step, or why it failed.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The run ends for this reason. Its text is complete, with the last output of a service.
    #[error("{0}")]
    End(EndReason),
    /// At least one generator was lost. Others may replace them: see [`Environment::connect`].
    #[error("{}", lost_text(.0))]
    GeneratorsLost(Vec<LostGenerator>),
    /// The budget ended before a block did.
    #[error("the budget is spent")]
    OutOfBudget,
    /// The record could not be written.
    #[error(transparent)]
    Record(#[from] record::WriteError),
}

impl Failure {
    /// The user asked to stop.
    pub const INTERRUPTED: Failure = Failure::End(EndReason::Interrupted);

    /// A service did not start, or died.
    pub fn service(what: impl Into<String>) -> Failure {
        Failure::End(EndReason::ServiceFailed(what.into()))
    }

    /// The requested load cannot be sent, or a file of it is invalid.
    pub fn refused(what: impl Into<String>) -> Failure {
        Failure::End(EndReason::LoadRefused(what.into()))
    }

    /// The load generator failed, or could not reach the services.
    pub fn generator(what: impl Into<String>) -> Failure {
        Failure::End(EndReason::GeneratorFailed(what.into()))
    }

    /// Continuing is pointless.
    pub(crate) fn pointless(why: impl Into<String>) -> Failure {
        Failure::End(EndReason::Void(why.into()))
    }

    /// The budget is too small for a verdict. `needed_s` would be enough.
    pub(crate) fn too_small(needed_s: u64) -> Failure {
        Failure::End(EndReason::BudgetTooSmall { needed_s })
    }

    /// The end of a run that stops at this failure.
    ///
    /// # Errors
    /// If the record could not be written, so that it cannot contain the end.
    pub(crate) fn into_end(self) -> Result<EndReason, record::WriteError> {
        match self {
            Failure::End(reason) => Ok(reason),
            Failure::GeneratorsLost(lost) => Ok(EndReason::GeneratorFailed(lost_text(&lost))),
            Failure::OutOfBudget => Ok(EndReason::BudgetSpent),
            Failure::Record(error) => Err(error),
        }
    }
}

/// Reasons of the losses, in one line.
pub(crate) fn lost_text(lost: &[LostGenerator]) -> String {
    lost.iter()
        .map(|lost| lost.why.as_str())
        .collect::<Vec<_>>()
        .join("; ")
}

/// The outside, as the dispatcher uses it. At most one trial of each variant runs at a time, and at most one
/// in total if the load comes from other processes.
pub trait Environment {
    /// Seconds since any fixed point.
    fn now_s(&mut self) -> f64;

    /// Whether the user wants the run to end. Without comparisons, measurements up to then are kept.
    fn is_stop_wanted(&mut self) -> bool {
        false
    }

    /// Connects all generators in separate processes, or reconnects lost ones. Does nothing if there are
    /// none. `watch` receives progress.
    ///
    /// # Errors
    /// If one cannot be connected, or the user interrupts.
    fn connect(&mut self, _watch: &mut dyn FnMut(Connecting<'_>)) -> Result<Connected> {
        Ok(Connected::default())
    }

    /// Makes data that services need, or finds it in the cache. `watch` receives progress.
    ///
    /// # Errors
    /// If it cannot be made, or the user interrupts.
    fn prepare(&mut self, step: &Preparation, watch: &mut dyn FnMut(Preparing))
    -> Result<Prepared>;

    /// The number of processors that services have exclusively once they are confined. 0 if they cannot be.
    fn cores_apart(&self) -> usize {
        0
    }

    /// Confines the services of running trials, and of all later ones, to processors that the generator does
    /// not use. Returns the processor numbers.
    ///
    /// # Errors
    /// If the kernel or a container engine refuses.
    fn confine(&mut self) -> Result<Vec<usize>> {
        Ok(Vec::new())
    }

    /// Starts a variant's services and waits until they are ready.
    ///
    /// # Errors
    /// If one does not become ready, or the user interrupts. [`Failure::OutOfBudget`] after
    /// [`Start::patience`].
    fn start(&mut self, start: Start) -> Result<TrialStarted>;

    /// Sets the number of connections for all later loads.
    fn set_connections(&mut self, _connections: u32) {}

    /// The maximum number of connections of a running trial, and the reason. `None` if no limit is known.
    fn connections_most(&mut self, _variant: usize) -> Option<(u32, String)> {
        None
    }

    /// Loads a running trial, while the other running ones stay idle.
    ///
    /// # Errors
    /// If a service dies meanwhile, the generator fails, or the user interrupts.
    fn load(&mut self, variant: usize, wanted: SliceSpec) -> Result<Slice>;

    /// Loads running trials turn by turn, each turn in closed loop on the trial in `order`. Returns one
    /// measured slice, the sum of its turns, for each variant in `order`, in order of their first turns.
    ///
    /// # Errors
    /// As [`Environment::load`].
    fn take_turns(&mut self, order: &[usize], turn: Turn) -> Result<Vec<Slice>>;

    /// Loads a running trial once, and captures from before the load until all requests are done. The result
    /// contains the captures that failed.
    ///
    /// # Errors
    /// As [`Environment::load`].
    fn capture(&mut self, variant: usize, wanted: CaptureSpec) -> Result<Capture>;

    /// Stops a running trial. `None` if it does not run.
    fn stop(&mut self, variant: usize) -> Option<TrialEnded>;
}
