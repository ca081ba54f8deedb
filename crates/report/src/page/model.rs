//! What the report page is drawn from: one value, embedded in the page as JSON.
//!
//! Words and figures that stand in the other forms come from the same functions, ready to show; only pictures have numbers of their own.
//! Lengths are bounded: see [`page_of`](super::page_of).

use std::collections::BTreeMap;

pub use analysis::{Assumption, DroppedBlock, Finding, Grade, Outcome, Unit};
use schemars::JsonSchema;
use serde::Serialize;

pub use crate::experiment::State;
use ::model::document::Fit;

/// Version of this form; the script of a page reads its own alone, because it lies in the same file.
pub const PAGE_VERSION: u32 = 1;

/// A report, as the page shows it from top to bottom.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PageData {
    /// See [`PAGE_VERSION`].
    pub page_version: u32,
    /// The question, or the experiment's name where the file asks none.
    pub title: String,
    /// Name of the experiment.
    pub experiment: String,
    /// When the record was made, RFC 3339 in UTC.
    pub created: String,
    /// Version of the Proofload that ran it.
    pub proofload: String,
    /// The answer in one sentence, for somebody who reads nothing else.
    pub answer: String,
    /// How the run stands, for the colour of that sentence.
    pub state: State,
    /// Each comparison, once for each metric that gets a verdict.
    pub verdicts: Vec<Verdict>,
    /// The margin below which a difference does not matter, as a share: 0.03.
    pub margin: f64,
    /// Main effects and interactions; `None` without two factors.
    pub effects: Option<Effects>,
    /// What variants bear, where capacity was measured.
    pub capacity: Option<CapacityPicture>,
    /// Findings, the gravest first.
    pub findings: Vec<Finding>,
    /// What `proofload explain NUMBER` says of each of their checks, as paragraphs of plain text, by its number.
    pub explanations: BTreeMap<&'static str, Vec<String>>,
    /// The variants in the order of the plan. Their index is their colour and mark everywhere.
    pub variants: Vec<Variant>,
    /// Figures of the variants, one row each, in their order.
    pub figures: Table,
    /// Variants taken apart: by service, by request.
    pub parts: Vec<Table>,
    /// Each metric block by block.
    pub series: Vec<BlockSeries>,
    /// Whole distributions of the times, what was given up included.
    pub latencies: Vec<LatencyCurves>,
    /// Metrics for each combination of two factors' levels.
    pub interactions: Vec<Interaction>,
    /// A trial of each variant from its start to its end: of the block in the middle.
    pub time_lines: Vec<TimeLine>,
    /// Errors, by variant, phase and cause; unexpected responses are the phase `response`.
    pub errors: Vec<ErrorRow>,
    /// Why one costs more than the other; `None` where nothing was captured.
    pub why: Option<WhySection>,
    /// How it was measured, each line a name and a text.
    pub method: Vec<(String, String)>,
    /// What the result rests on, the doubtful first.
    pub assumptions: Vec<Assumption>,
    /// On which machine it was measured, and where the record lies.
    pub place: Vec<(String, String)>,
    /// What to do next, each a sentence or a command with its reason.
    pub next: Vec<String>,
    /// The experiment file as it was run; `None` where the record lacks it.
    pub plan: Option<String>,
    /// The command that was given, quoted for a shell.
    pub command: String,
    /// The command that repeats it with the same seed.
    pub repeat: String,
    /// What of the record is not in the page, in sentences: thinned series, variants left out of pictures.
    pub left_out: Vec<String>,
}

/// Response times over the rate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CapacityPicture {
    /// What it shows, for who cannot see it.
    pub told: String,
    /// The picture for a light page, as the address of an image.
    pub light: String,
    /// The same for a dark one.
    pub dark: String,
    /// The figures in it, a table for each variant.
    pub tables: Vec<Table>,
}

/// A verdict about one metric of one comparison.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Verdict {
    /// Reads as "candidate vs baseline".
    pub comparison: String,
    /// Index of the baseline among the variants.
    pub baseline: usize,
    /// Index of the candidate.
    pub candidate: usize,
    /// The metric's name, as in [`BlockSeries::metric`].
    pub metric: String,
    /// Whether more of it is better.
    pub more_is_better: bool,
    /// The verdict's kind.
    pub outcome: Outcome,
    /// The verdict as a word.
    pub word: String,
    /// Estimate and interval as the other forms print them, or why there is none.
    pub detail: String,
    /// The ratio candidate to baseline; `None` where no number may be shown.
    pub ratio: Option<Ratio>,
    /// The ratio of each block that counts, in their order, or of some evenly spread over them; empty where no number may be shown.
    pub blocks: Vec<f64>,
    /// Other metrics, shown but not judged: with the first verdict of a comparison.
    pub also: Vec<String>,
}

impl From<&stats::Estimate> for Ratio {
    fn from(of: &stats::Estimate) -> Ratio {
        Ratio { estimate: of.ratio, low: of.low, high: of.high }
    }
}

/// A ratio with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Ratio {
    /// The estimate; 1 is no difference.
    pub estimate: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What each factor does on average, and what two of them do to each other.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Effects {
    /// What the lines are, with the metric.
    pub heading: String,
    /// Main effects first.
    pub lines: Vec<EffectLine>,
    /// Why there are no lines, or what is not among them.
    pub note: Option<String>,
}

/// One effect.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EffectLine {
    /// Such as `node_env: production / development`.
    pub label: String,
    /// Whether it is of two factors.
    pub interaction: bool,
    /// The verdict's kind.
    pub outcome: Outcome,
    /// The verdict as a word.
    pub word: String,
    /// Estimate with interval, in words.
    pub detail: String,
    /// The effect as a ratio.
    pub ratio: Option<Ratio>,
}

/// A variant.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Whether a finding voids it.
    pub void: bool,
    /// Trials that count.
    pub trials: usize,
    /// Requests in measured slices.
    pub requests: u64,
}

/// A table, ready to show.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Table {
    /// What it tells.
    pub heading: String,
    /// Headings of the columns.
    pub columns: Vec<String>,
    /// Columns at the left that hold names; the others hold figures.
    pub names: usize,
    /// The cells.
    pub rows: Vec<Vec<String>>,
}

/// One metric, block by block.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BlockSeries {
    /// The metric's name: `throughput`, `CPU/request`, `peak memory`, `p50`, `p90`, `p99`, `p99.9`.
    pub metric: String,
    /// Its unit.
    pub unit: Unit,
    /// Numbers of the blocks, or of some evenly spread over them; dropped ones are among them.
    pub blocks: Vec<u32>,
    /// Those of them that count for nothing, and why.
    pub dropped: Vec<DroppedBlock>,
    /// For each variant, its value in each of the blocks.
    pub values: Vec<Vec<Option<f64>>>,
}

impl From<&::model::document::Table> for Table {
    fn from(table: &::model::document::Table) -> Table {
        let is_name = |column: &&::model::document::Column| column.fit != Fit::Figure;
        Table {
            heading: table.heading.clone(),
            columns: table.columns.iter().map(|column| column.heading.clone()).collect(),
            names: table.columns.iter().take_while(is_name).count(),
            rows: table.texts(),
        }
    }
}

/// Times of all variants, of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LatencyCurves {
    /// `response time` from due to done, `service time` from sent to done.
    pub kind: String,
    /// What must be known to read it, such as that a closed loop's compares nothing.
    pub note: Option<String>,
    /// One for each variant, empty points where there was none.
    pub curves: Vec<LatencyCurve>,
}

/// The distribution of one variant's times.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct LatencyCurve {
    /// Requests in it.
    pub requests: u64,
    /// Requests of those that were given up: their times are at least what they waited.
    pub censored: u64,
    /// Points of share (0 to 1, rising) and time in microseconds, at most 200. The last share is the highest that ten requests lie beyond.
    pub points: Vec<(f64, f64)>,
    /// From this share on values are lower bounds, because of what was given up; `None` where none is.
    pub at_least_from: Option<f64>,
}

/// One metric for each combination of two factors' levels: geometric means over trials and over the other factors.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Interaction {
    /// The metric's name.
    pub metric: String,
    /// Its unit.
    pub unit: Unit,
    /// Name of the factor along the axis, and its levels.
    pub across: (String, Vec<String>),
    /// Name of the factor that has a line a level, and its levels.
    pub lines: (String, Vec<String>),
    /// A row a line: its value at each level across; `None` where a variant has none.
    pub values: Vec<Vec<Option<f64>>>,
}

/// A trial from its first slice to its last. A slice is one point, or several where its rate is known in shorter parts: these have all else
/// of the slice in common, and `failed` in the first of them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TimeLine {
    /// Index of the variant.
    pub variant: usize,
    /// Number of the block.
    pub block: u32,
    /// Seconds from the trial's first slice to the begin of each point.
    pub at_s: Vec<f64>,
    /// Seconds that each point lasts: where turns of other trials lie between, until the next.
    pub lasts_s: Vec<f64>,
    /// Points from the begin that are warm-up.
    pub warm_up: usize,
    /// Expected responses per second.
    pub rate_per_s: Vec<Option<f64>>,
    /// Quantiles of the times in microseconds: of 50, 90 and 99 %, as far as there are requests for them. Response times in open loop, service
    /// times in closed loop; lower bounds where requests were given up.
    pub p50_us: Vec<Option<f64>>,
    /// Likewise.
    pub p90_us: Vec<Option<f64>>,
    /// Likewise.
    pub p99_us: Vec<Option<f64>>,
    /// Requests that did not end in an expected response.
    pub failed: Vec<u64>,
    /// Processor cores that the services kept busy.
    pub cores: Vec<Option<f64>>,
    /// Resident memory of the services in bytes, after the slice.
    pub rss_bytes: Vec<u64>,
    /// CPU steal, as a share of the CPU time.
    pub steal_share: Vec<f64>,
    /// Event-loop delay of the captures of this variant in microseconds: median and p99, over the whole window; `None` without captures.
    pub loop_delay_us: Option<(f64, f64)>,
}

/// Errors of one variant, phase and cause.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ErrorRow {
    /// Index of the variant.
    pub variant: usize,
    /// Of so many requests.
    pub requests: u64,
    /// What it was, and how often.
    #[serde(flatten)]
    pub failure: analysis::Failure,
}

/// Why one costs more than the other.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WhySection {
    /// One for each comparison: heading, and paragraphs.
    pub reasons: Vec<(String, Vec<String>)>,
    /// Tables of kinds, packages, functions.
    pub tables: Vec<Table>,
    /// How it was captured.
    pub method: Vec<(String, String)>,
    /// What makes it doubtful: what was seen, and what to do.
    pub doubts: Vec<(String, String)>,
    /// Path of the flame graphs' page beside this one; `None` where it is not there.
    pub flame_page: Option<String>,
}
