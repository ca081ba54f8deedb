//! What the dispatcher needs of the outside: to start a trial, load it, stop it, and know the time.

use std::time::Duration;

use model::{AskedOpen, Until};
use plan::Preparation;
use record::{Capture, CaptureKind, Generator, Prepared, Slice, SliceKind, TrialEnded, TrialStarted};
use services::Preparing;

/// Which trial to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Number of the block.
    pub block: u32,
    /// Index of the variant in the plan.
    pub variant: usize,
    /// Length of a variable that only pads the environment, so that memory layout differs between trials.
    pub padding_bytes: usize,
    /// Decides which of several requests is sent when, in closed loop: the same for all variants of a block.
    pub requests_seed: u64,
    /// For a trial that is captured, and not measured: its number in the round, from 1. `block` is then the number of the round.
    pub capture: Option<u32>,
    /// Longest time that the services may take to get ready, beside their own time-outs; None if there is no such limit.
    pub patience: Option<Duration>,
}

/// Which slice to make of a living trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SliceSpec {
    /// What it is for.
    pub kind: SliceKind,
    /// How long it sends.
    pub until: Until,
    /// When requests are due; `None` is closed loop. Two trials with the same one get the same arrivals.
    pub open: Option<AskedOpen>,
}

/// The end of a window of so many seconds.
pub fn elapsed(seconds: f64) -> Until {
    Until::Elapsed(Duration::from_secs_f64(seconds))
}

/// Which window to capture of a living trial that was started for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CaptureSpec {
    /// Number of the round, from 1.
    pub round: u32,
    /// What to capture.
    pub kind: CaptureKind,
    /// Length of the window of load.
    pub seconds: f64,
    /// When requests are due; `None` is closed loop.
    pub open: Option<AskedOpen>,
}

/// How the turns of a slice are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn {
    /// What its slice is for.
    pub kind: SliceKind,
    /// Length of the window of each, in seconds.
    pub seconds: f64,
    /// Load before the window that throughput is not counted in, in seconds: so long, and up to as long again, different from turn to
    /// turn; 0 for none. See [`Turn::lead_ns`].
    pub lead_s: f64,
}

impl Turn {
    /// Length of the lead of the turn of this number, in nanoseconds: whole tenths of a second.
    ///
    /// All connections begin a turn together. Where they share what they wait for, as a link, their responses come together too: none
    /// for a while, then all at once. A window from the begin on would miss the last of them, and so up to a response of each
    /// connection, which makes the slowest variant look slower still. A window of fixed length that begins anywhere between two
    /// responses counts as many as there are, on average (renewal theory). Multiples of the golden section fall evenly.
    pub fn lead_ns(&self, number: usize) -> u64 {
        let part = (number as f64 * 0.618_033_988_749_895).fract();
        (self.lead_s * (1.0 + part) * 10.0).round() as u64 * 100_000_000
    }
}

/// Generators that are being connected, as it goes on.
#[derive(Debug, Clone, Copy)]
pub struct Connecting<'a> {
    /// Which are waited for, in words.
    pub waiting: &'a [String],
    /// For how long so far.
    pub for_now: Duration,
}

/// What came of connecting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Connected {
    /// All generators that there are, if that changed; empty where it did not, and where load comes from this process.
    pub generators: Vec<Generator>,
    /// Those that were gone, and of whom nobody was told yet.
    pub lost: Vec<Lost>,
}

/// A generator that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Its name.
    pub generator: String,
    /// What became of it, and what it last said; names it.
    pub why: String,
}

/// What came of a step, or why it could not be done.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a step could not be done.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Failure {
    /// A service did not start, or died; the text is complete, with its last output.
    #[error("{0}")]
    Service(String),
    /// Data that services need could not be made; the text is complete, with the last output.
    #[error("{0}")]
    Preparation(String),
    /// The load that is asked for cannot be sent, or a file of it is not what it should be.
    #[error("{0}")]
    Refused(String),
    /// The load generator could not work, or had no way to the services.
    #[error("{0}")]
    Generator(String),
    /// Generators were lost meanwhile, at least one. Others may take their places: see [`Environment::connect`].
    #[error("{}", lost_text(.0))]
    GeneratorsLost(Vec<Lost>),
    /// Going on is pointless; the text says why.
    #[error("{0}")]
    Pointless(String),
    /// The budget does not hold enough blocks for a verdict; one of so many seconds does.
    #[error("the budget is too small, {needed_s} s would do")]
    BudgetTooSmall { needed_s: u64 },
    /// The budget ended before a block did.
    #[error("the budget is spent")]
    OutOfBudget,
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The record could not be written.
    #[error(transparent)]
    Record(#[from] record::WriteError),
}

/// What became of them, in one line.
pub(crate) fn lost_text(lost: &[Lost]) -> String {
    lost.iter().map(|lost| lost.why.as_str()).collect::<Vec<_>>().join("; ")
}

/// The outside, as the dispatcher uses it. At most one trial of each variant lives at a time, and at most one in all where load comes
/// from other processes.
pub trait Environment {
    /// Seconds since any fixed point.
    fn now_s(&mut self) -> f64;

    /// Whether the user wants the run to end. What was measured until then is kept where nothing is compared.
    fn is_stop_wanted(&mut self) -> bool {
        false
    }

    /// Connects all generators that are processes of their own, or those of them that are gone once more. Nothing where there are none.
    /// `watch` hears what takes time.
    ///
    /// # Errors
    /// If one cannot be had, or the user interrupts.
    fn connect(&mut self, _watch: &mut dyn FnMut(Connecting<'_>)) -> Result<Connected> {
        Ok(Connected::default())
    }

    /// Makes data that services need, or finds it made. `watch` hears what takes time.
    ///
    /// # Errors
    /// If it cannot be made, or the user interrupts.
    fn prepare(&mut self, step: &Preparation, watch: &mut dyn FnMut(Preparing)) -> Result<Prepared>;

    /// The number of processors that services keep to themselves once they are confined; 0 if they cannot be.
    fn cores_apart(&self) -> usize {
        0
    }

    /// Confines the services of living trials, and of all trials that start later, to processors that the generator does not use. Returns
    /// the processor numbers.
    ///
    /// # Errors
    /// If the kernel or a container engine refuses.
    fn confine(&mut self) -> Result<Vec<usize>> {
        Ok(Vec::new())
    }

    /// Starts a variant's services and waits until they are ready.
    ///
    /// # Errors
    /// If one does not get ready, or the user interrupts; [`Failure::OutOfBudget`] after [`Start::patience`].
    fn start(&mut self, start: Start) -> Result<TrialStarted>;

    /// Has every load from now on come over so many connections.
    fn set_connections(&mut self, _connections: u32) {}

    /// How many connections a living trial may have at most, and why no more; `None` if nothing known limits them.
    fn connections_most(&mut self, _variant: usize) -> Option<(u32, String)> {
        None
    }

    /// Loads a living trial, while the other living ones stay idle.
    ///
    /// # Errors
    /// If a service dies meanwhile, the generator cannot work, or the user interrupts.
    fn load(&mut self, variant: usize, wanted: SliceSpec) -> Result<Slice>;

    /// Loads living trials turn by turn, each turn closed loop on the trial that `order` names. Gives one measured
    /// slice, the sum of its turns, for each variant in `order`, in order of their first turns.
    ///
    /// # Errors
    /// As [`Environment::load`].
    fn take_turns(&mut self, order: &[usize], turn: Turn) -> Result<Vec<Slice>>;

    /// Loads a living trial once, and captures something from before the load until all that was sent is done. What could not be
    /// captured is told in what comes of it.
    ///
    /// # Errors
    /// As [`Environment::load`].
    fn capture(&mut self, variant: usize, wanted: CaptureSpec) -> Result<Capture>;

    /// Stops a living trial; `None` if it does not live.
    fn stop(&mut self, variant: usize) -> Option<TrialEnded>;
}
