//! What an event looks like: the types from which the lines and their schema are made. Only data.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Version of this form; events and fields may be added within a version, never renamed or removed.
pub const VERSION: u32 = 1;

/// One line.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Line {
    /// Version of this form, in the first line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_version: Option<u32>,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
    /// Seconds since the run began, without those in which it was paused.
    pub elapsed_s: f64,
}

/// What happened. Ratios are candidate over baseline, shares are parts of 1.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run begins; always the first line.
    Started(Started),
    /// Generators are being connected: told as it begins, and about once a second.
    Connecting {
        /// Those that are waited for, in words.
        waiting: Vec<String>,
        /// For how long so far.
        for_s: f64,
    },
    /// All generators are there, for the first time or once more.
    Connected {
        /// Who they are, in their order.
        generators: Vec<record::Generator>,
    },
    /// A generator is gone.
    GeneratorLost {
        /// Number of the block under way, or of the last one; 0 before the first.
        block: u32,
        /// Its name.
        generator: String,
        /// What became of it, and what it last said.
        why: String,
    },
    /// Data that services need is not there yet: told as it begins, and about once a second.
    Preparing {
        /// Its name in the experiment.
        name: String,
        /// What is being done about it.
        doing: PreparingNow,
        /// For how long it has been made.
        for_s: f64,
    },
    /// Data that services need is there.
    Prepared {
        /// Its name in the experiment.
        name: String,
        /// Whether it was made just now; otherwise it was found.
        made: bool,
        /// How long that took.
        took_s: f64,
        /// Size of its files.
        size_bytes: u64,
    },
    /// The rate that all variants get in open loop is settled.
    RateChosen {
        /// Requests due per second.
        rate_per_s: f64,
        /// The share of the slowest variant's capacity that was asked for; null where it was a rate.
        capacity_share: Option<f64>,
    },
    /// A block begins.
    BlockStarted {
        /// Its number, from 1.
        block: u32,
        /// The variants in the order in which they are started.
        order: Vec<String>,
    },
    /// Work on a trial begins.
    Trial {
        /// Number of the block; 0 before the first.
        block: u32,
        /// The variant; of those that take turns, the one whose turn is first.
        variant: String,
        /// What is done.
        doing: TrialDoing,
    },
    /// A slice ended.
    Slice(SliceEnded),
    /// A block is complete and counts.
    BlockEnded {
        /// Its number.
        block: u32,
        /// Blocks that count so far.
        blocks: u32,
        /// Blocks that were dropped so far.
        blocks_dropped: u32,
        /// Blocks that count in all at the most; null until that is settled.
        blocks_planned: Option<u32>,
        /// Seconds that the run may still take at the most.
        left_s: f64,
    },
    /// What is known of a comparison after a block that counts.
    Estimate(Estimated),
    /// A block counts for nothing. Another takes its place.
    BlockDropped {
        /// Its number.
        block: u32,
        /// Why, in words with figures.
        why: String,
    },
    /// The run waits, because the user wants it to.
    Paused {
        /// Number of the block under way, or of the last one.
        block: u32,
    },
    /// It goes on.
    Resumed {
        /// Number of the block under way, or of the last one.
        block: u32,
        /// For how long it had waited.
        paused_s: f64,
    },
    /// Captures of what explains the result begin.
    Explaining {
        /// Variants that are explained.
        variants: usize,
        /// Passes over them.
        rounds: u32,
        /// About how long that takes.
        about_s: f64,
    },
    /// A window of load begins in which something is captured.
    Capturing {
        /// Number of the round, from 1.
        round: u32,
        /// The variant.
        variant: String,
        /// What is captured.
        what: String,
    },
    /// Something that people are told in a sentence.
    Notice {
        /// The sentence.
        text: String,
    },
    /// The run is over, and its record closed.
    Ended {
        /// Why.
        reason: Reason,
        /// The same in words, where there is more to say.
        text: Option<String>,
        /// Of a budget that was too small: one that is enough.
        needed_s: Option<u64>,
    },
    /// The report; the last line unless there is a gate.
    Report {
        /// What `proofload report --json` prints of the record.
        report: Value,
    },
    /// What the limits came to, where the run has a gate; the last line then.
    Gate {
        /// What `proofload gate --json` prints of the record.
        gate: Value,
    },
}

/// How a run begins.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Started {
    /// Version of Proofload.
    pub proofload: String,
    /// The experiment's name.
    pub experiment: String,
    /// Its question.
    pub question: Option<String>,
    /// The record's folder.
    pub record: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// Time that the run may take.
    pub budget_s: f64,
    /// The smallest relative difference that matters.
    pub margin_share: f64,
    /// Metrics that get a verdict, the first deciding how much is measured.
    pub metrics: Vec<plan::Metric>,
    /// Whether requests are due at a rate (`open`), or follow each other (`closed`).
    #[serde(rename = "loop")]
    pub load_loop: Loop,
    /// Whether figures that tell who is ahead are withheld until the end, because the experiment looks once.
    pub withheld: bool,
    /// The variants' names.
    pub variants: Vec<String>,
    /// What is compared.
    pub comparisons: Vec<Asked>,
}

/// A comparison that is asked for.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Asked {
    /// Reads as "candidate against baseline".
    pub label: String,
    /// The baseline's name.
    pub baseline: String,
    /// The candidate's name.
    pub candidate: String,
}

/// How requests follow each other.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Loop {
    /// Each connection sends its next request when the last one is done.
    Closed,
    /// Requests are due at times fixed beforehand.
    Open,
}

/// What is done about data.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreparingNow {
    /// Another run is making it.
    Waiting,
    /// It is being made.
    Making,
}

/// What is done with a trial.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrialDoing {
    /// Its services are being started.
    Starting,
    /// Its capacity is being measured, before the first block.
    MeasuringCapacity,
    /// It is being warmed up.
    WarmingUp,
    /// A slice of it is being measured.
    Measuring,
}

/// Whether a slice counts.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// No: the service is being warmed up.
    WarmUp,
    /// Yes.
    Measured,
    /// No: its capacity is being measured, before the first block.
    Capacity,
}

/// A slice of a trial.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SliceEnded {
    /// Number of the block; 0 before the first.
    pub block: u32,
    /// The variant.
    pub variant: String,
    /// Whether it counts.
    pub kind: Kind,
    /// Length of its window, of all its turns together.
    pub window_s: f64,
    /// Windows that it is the sum of.
    pub turns: u32,
    /// Good responses per second; null where figures are withheld.
    pub rate_per_s: Option<f64>,
    /// Response times in open loop, in closed loop service times: the quantiles that rest on enough requests. Empty where figures are
    /// withheld.
    pub quantiles: Vec<SliceQuantile>,
    /// Requests that there were to send; null where figures are withheld.
    pub requests: Option<u64>,
    /// Requests that did not end in an expected response.
    pub failed: u64,
    /// Share of the CPU time that the host gave to others meanwhile.
    pub steal_share: f64,
}

/// A quantile of the times of a slice.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SliceQuantile {
    /// Which.
    pub percent: f64,
    /// Microseconds.
    pub us: f64,
    /// Whether that is a lower bound, because requests got no answer.
    pub at_least: bool,
}

/// What is known of a comparison.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Estimated {
    /// Number of the block after which that is known.
    pub block: u32,
    /// Reads as "candidate against baseline".
    pub comparison: String,
    /// The metric.
    pub metric: plan::Metric,
    /// Blocks that it rests on.
    pub blocks: u32,
    /// Whether figures are withheld until the end, because the experiment looks once. Then there are none.
    pub withheld: bool,
    /// Candidate over baseline; null where there is nothing to compare.
    pub ratio: Option<f64>,
    /// Ends of the interval; null where there are too few blocks for one, or no spread between them.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// What it would be called if the run ended now; null before there is an interval.
    pub outcome: Option<Called>,
    /// Blocks in all that would decide it, where that can be told.
    pub blocks_needed: Option<u32>,
    /// What became of the side that never succeeded, in words.
    pub no_success: Option<String>,
}

/// What a comparison is called.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Called {
    /// The candidate is better by more than chance.
    Better,
    /// The candidate is worse by more than chance.
    Worse,
    /// The difference is smaller than the margin.
    Equivalent,
    /// Neither.
    Inconclusive,
    /// One side, or both, had not a single success.
    NoSuccess,
    /// A finding forbids any conclusion.
    Void,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Every comparison had its verdict.
    Decided,
    /// The last look was taken.
    LastLook,
    /// No further block fitted into the budget.
    BudgetSpent,
    /// The budget does not hold the blocks that a verdict needs.
    BudgetTooSmall,
    /// The experiment compares nothing, and its one pass is done.
    Measured,
    /// The user stopped it.
    Interrupted,
    /// Going on was pointless.
    Void,
    /// The load generator could not work.
    GeneratorFailed,
    /// A service failed.
    ServiceFailed,
    /// Data that services need could not be made.
    PreparationFailed,
    /// The record could not be written.
    RecordFailed,
}
