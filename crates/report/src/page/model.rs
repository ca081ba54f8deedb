//! Data of the report page: one value, embedded in the page as JSON.
//!
//! Texts and figures of the other forms come from the same functions, ready for display. Only pictures have
//! separate numbers. Lengths are limited, see [`page_of`](super::page_of).

use std::collections::BTreeMap;

use analysis::Check;
pub use analysis::{Assumption, DroppedBlock, Finding, Grade, Outcome, Unit};
use schemars::JsonSchema;
use serde::Serialize;

pub use crate::experiment::RunState;
use ::model::document::ColumnFit;

/// A report, in the order of the page.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PageData {
    /// The question, or the experiment's name if the file has none.
    pub title: String,
    /// Name of the experiment.
    pub experiment: String,
    /// When the record was made, RFC 3339 in UTC.
    pub created: String,
    /// Version of the Proofload that ran it.
    pub proofload: String,
    /// The answer in one sentence, for readers of nothing else.
    pub answer: String,
    /// State of the run, for the colour of that sentence.
    pub state: RunState,
    /// Each comparison, once for each metric that gets a verdict.
    pub verdicts: Vec<PageVerdict>,
    /// The margin below which a difference does not matter, as a share: 0.03.
    pub margin: f64,
    /// Main effects and interactions. `None` without two factors.
    pub effects: Option<Effects>,
    /// Capacities of the variants, if they were measured.
    pub capacity: Option<CapacityPicture>,
    /// Findings, most severe first.
    pub findings: Vec<Finding<Check>>,
    /// Explanations by `proofload explain NUMBER` of each of their checks, as paragraphs of plain text, by
    /// number.
    pub explanations: BTreeMap<&'static str, Vec<String>>,
    /// The variants in the order of the plan. Their index determines their colour and mark.
    pub variants: Vec<PageVariant>,
    /// Figures of the variants, one row each, in their order.
    pub figures: PageTable,
    /// Breakdown of variants: by service, by request.
    pub parts: Vec<PageTable>,
    /// Each metric block by block.
    pub series: Vec<BlockSeries>,
    /// Distributions of the times, including requests that were given up.
    pub latencies: Vec<LatencyCurves>,
    /// Metrics for each combination of two factors' levels.
    pub interactions: Vec<Interaction>,
    /// The complete course of one trial of each variant, from the block in the middle.
    pub time_lines: Vec<TimeLine>,
    /// Errors, by variant, phase and cause. Unexpected responses have the phase `response`.
    pub errors: Vec<ErrorRow>,
    /// Why one variant costs more than the other. `None` without captures.
    pub why: Option<WhySection>,
    /// How it was measured, as lines with a name and a text.
    pub method: Vec<(String, String)>,
    /// Assumptions of the result, doubtful ones first.
    pub assumptions: Vec<Assumption>,
    /// The machine, and the folder of the record.
    pub place: Vec<(String, String)>,
    /// Next steps, each a sentence or a command with its reason.
    pub next: Vec<String>,
    /// The experiment file as it was run. `None` if the record does not contain it.
    pub plan: Option<String>,
    /// The command as it was typed, quoted for a shell.
    pub command: String,
    /// The command that repeats it with the same seed.
    pub repeat: String,
    /// Parts of the record that are not in the page, as sentences: thinned series, variants left out of
    /// pictures.
    pub left_out: Vec<String>,
}

/// Response times over the rate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CapacityPicture {
    /// Description of the picture, for readers who cannot see it.
    pub told: String,
    /// The picture for a light page, as the address of an image.
    pub light: String,
    /// The picture for a dark page.
    pub dark: String,
    /// Its figures, a table for each variant.
    pub tables: Vec<PageTable>,
}

/// A verdict about one metric of one comparison.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PageVerdict {
    /// Reads as "candidate vs baseline".
    pub comparison: String,
    /// Index of the baseline among the variants.
    pub baseline: usize,
    /// Index of the candidate.
    pub candidate: usize,
    /// The metric's name, as in [`BlockSeries::metric`].
    pub metric: String,
    /// Whether more is better.
    pub more_is_better: bool,
    /// The verdict's kind.
    pub outcome: Outcome,
    /// The verdict as a word.
    pub word: String,
    /// Estimate and interval as the other forms print them, or why there is none.
    pub detail: String,
    /// The ratio candidate to baseline. `None` if no number may be shown.
    pub ratio: Option<Ratio>,
    /// The ratio of each block that counts, in order, or an evenly spread subset. Empty if no number may be
    /// shown.
    pub blocks: Vec<f64>,
    /// Other metrics without a verdict, listed with the first verdict of a comparison.
    pub also: Vec<String>,
}

impl From<&stats::Estimate> for Ratio {
    fn from(of: &stats::Estimate) -> Ratio {
        Ratio {
            estimate: of.ratio,
            low: of.low,
            high: of.high,
        }
    }
}

/// A ratio with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Ratio {
    /// The estimate. 1 is no difference.
    pub estimate: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The average effect of each factor, and interactions of two factors.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Effects {
    /// Heading of the lines, with the metric.
    pub heading: String,
    /// Main effects first.
    pub lines: Vec<EffectLine>,
    /// Why there are no lines, or which are left out.
    pub note: Option<String>,
}

/// One effect.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EffectLine {
    /// Such as `node_env: production / development`.
    pub label: String,
    /// Whether it is an interaction of two factors.
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
pub struct PageVariant {
    /// Its name.
    pub name: String,
    /// Whether a finding makes it invalid.
    pub invalid: bool,
    /// Number of trials that count.
    pub trials: usize,
    /// Number of requests in measured slices.
    pub requests: u64,
}

/// A table, ready to show.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PageTable {
    /// Heading of the table.
    pub heading: String,
    /// Headings of the columns.
    pub columns: Vec<String>,
    /// Number of columns at the left that contain names. The others contain figures.
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
    /// Numbers of the blocks, or of an evenly spread subset, including dropped blocks.
    pub blocks: Vec<u32>,
    /// Dropped blocks among them, with reasons.
    pub dropped: Vec<DroppedBlock>,
    /// For each variant, its value in each of the blocks.
    pub values: Vec<Vec<Option<f64>>>,
}

impl From<&::model::document::Table> for PageTable {
    fn from(table: &::model::document::Table) -> PageTable {
        let is_name = |column: &&::model::document::Column| column.fit != ColumnFit::Figure;
        PageTable {
            heading: table.heading.clone(),
            columns: table
                .columns
                .iter()
                .map(|column| column.heading.clone())
                .collect(),
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
    /// Note for the reader, such as that times of a closed loop must not be compared.
    pub note: Option<String>,
    /// One for each variant, without points if there was none.
    pub curves: Vec<LatencyCurve>,
}

/// The distribution of one variant's times.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct LatencyCurve {
    /// Number of requests.
    pub requests: u64,
    /// Number of requests that were given up. Their waiting times are lower bounds.
    pub censored: u64,
    /// Points of share (0 to 1, ascending) and time in microseconds, at most 200. The last share is the
    /// highest with ten requests beyond it.
    pub points: Vec<(f64, f64)>,
    /// From this share on values are lower bounds, because requests were given up. `None` if there are no
    /// bounds.
    pub at_least_from: Option<f64>,
}

/// One metric for each combination of two factors' levels: geometric means over trials and over the other
/// factors.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Interaction {
    /// The metric's name.
    pub metric: String,
    /// Its unit.
    pub unit: Unit,
    /// Name of the factor along the axis, and its levels.
    pub across: (String, Vec<String>),
    /// Name of the factor with one line for each level, and its levels.
    pub lines: (String, Vec<String>),
    /// One row for each line: its value at each level of the axis. `None` if a variant has no value.
    pub values: Vec<Vec<Option<f64>>>,
}

/// A trial from its first slice to its last. A slice is one point, or several if its rate is known for
/// shorter parts. These points share all other values of the slice, and `failed` is in the first of them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TimeLine {
    /// Index of the variant.
    pub variant: usize,
    /// Number of the block.
    pub block: u32,
    /// Start of each point in seconds since the trial's first slice.
    pub at_s: Vec<f64>,
    /// Duration of each point in seconds. If turns of other trials follow, until the next point.
    pub lasts_s: Vec<f64>,
    /// Number of leading points that are warm-up.
    pub warm_up: usize,
    /// Expected responses per second.
    pub rate_per_s: Vec<Option<f64>>,
    /// Median of the times in microseconds, if there are enough requests. Response times in open loop,
    /// service times in closed loop. A lower bound if requests were given up.
    pub p50_us: Vec<Option<f64>>,
    /// 90 % quantile of the times, likewise.
    pub p90_us: Vec<Option<f64>>,
    /// 99 % quantile of the times, likewise.
    pub p99_us: Vec<Option<f64>>,
    /// Requests that did not end in an expected response.
    pub failed: Vec<u64>,
    /// Processor cores that the services kept busy.
    pub cores: Vec<Option<f64>>,
    /// Resident memory of the services in bytes, after the slice.
    pub rss_bytes: Vec<u64>,
    /// CPU steal as a share of the CPU time.
    pub steal_share: Vec<f64>,
    /// Event-loop delay in this variant's captures in microseconds: median and p99 over the whole window.
    /// `None` without captures.
    pub loop_delay_us: Option<(f64, f64)>,
}

/// Errors of one variant, phase and cause.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ErrorRow {
    /// Index of the variant.
    pub variant: usize,
    /// Number of requests of the variant.
    pub requests: u64,
    /// The error and its count.
    #[serde(flatten)]
    pub failure: analysis::FailureCount,
}

/// Why one variant costs more than the other.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WhySection {
    /// One for each comparison: heading, and paragraphs.
    pub reasons: Vec<(String, Vec<String>)>,
    /// Tables of kinds, packages, functions.
    pub tables: Vec<PageTable>,
    /// How it was captured.
    pub method: Vec<(String, String)>,
    /// Doubts: the observation, and what to do.
    pub doubts: Vec<(String, String)>,
    /// Path of the flame graphs' page beside this one. `None` if it does not exist.
    pub flame_page: Option<String>,
}
