//! The words of Proofload as types: what a slice of load counted, what happened in a run, which metrics and checks there are.
//!
//! Every other crate speaks in these types. Must not: read files or clocks, judge a measurement, or draw anything.

mod capture;
mod check;
mod counts;
mod deployed;
mod event;
mod failure;
mod finding;
mod generator;
mod machine;
mod metric;
pub mod quantity;
mod slice;

pub use capture::{
    Absence, AgentSeen, Capture, CaptureKind, CapturedProcess, CapturedService, Missing, NodeCounters,
    Pauses, ProfileFile, ThreadUse,
};
pub use check::{Check, CheckRow, Subject};
pub use counts::{
    BUCKET_NS, ContentSeen, Counts, EndpointCounts, EndpointOutcome, GeneratorUse, OpenLoop, Windows,
};
pub use deployed::{Deployed, PodSeen};
pub use event::{
    Allocation, EndReason, Ended, Event, Prepared, ProcessSeen, RateChosen, ServiceStarted, TrialEnded,
    TrialStarted, WarmUp, Witness, WorkersLost,
};
pub use failure::{Cause, ContractFailure, ErrorCount, FailureKind, OsError, Phase, Unknown};
pub use finding::{Code, Evidence, Finding, Grade, Remedy};
pub use generator::{Generator, GeneratorLost, GeneratorPart};
pub use machine::{MachineUse, TcpUse};
pub use metric::{Loop, Metric, MetricRow};
pub use quantity::{Quantity, Unit};
pub use slice::{ServiceUse, Slice, SliceKind};
