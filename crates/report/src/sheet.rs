//! Everything a report says, in words and in order, before it is drawn in any form.

use audit::{Assumption, Conclusion, Finding, Grade, Kind, Outcome, Standing, Variant};
use plan::Metric;
use profile::Explanation;
use record::{EndReason, Record};

use crate::figure::{bytes, count, micros, rate, share_below};
use crate::validity::explained_by;
use crate::why::Why;

mod answer;
mod effect;
mod method;
mod parts;

pub(crate) use answer::metric_name;
pub use parts::Part;

/// No failure among so many requests says enough by itself: with 95 % fewer than 0.13 % fail.
const REQUESTS_TELLING: u64 = 3_000;

/// The content of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sheet {
    /// The question, or the experiment's name where the file asks none.
    pub title: String,
    /// One answer a comparison.
    pub answers: Vec<Answer>,
    /// What each factor does, with two factors or more.
    pub effects: Option<Effects>,
    /// Headings of the table of variants.
    pub columns: Vec<String>,
    /// One row a variant.
    pub rows: Vec<Row>,
    /// Variants taken apart: by service and by endpoint, where there are several.
    pub parts: Vec<Part>,
    /// What captures tell of the differences, where there are any.
    pub why: Option<Why>,
    /// Findings, the gravest first.
    pub findings: Vec<Remark>,
    /// The command that explains them; `None` where there are none.
    pub explained_by: Option<String>,
    /// How it was measured, each line a name and a text.
    pub method: Vec<(String, String)>,
    /// What the result takes for granted, the doubtful first.
    pub assumptions: Vec<Assumption>,
    /// On which machine it was measured and where the record lies, each line a name and a text.
    pub place: Vec<(String, String)>,
    /// What to do next, each a sentence or a command with its reason.
    pub next: Vec<String>,
}

/// The answer to one comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Reads as "candidate against baseline".
    pub comparison: String,
    /// The verdict for each metric that gets one, at least one.
    pub judged: Vec<Judged>,
    /// Other metrics, shown but not judged.
    pub also: Vec<String>,
}

/// The verdict about one metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The verdict's kind, for colours.
    pub outcome: Outcome,
    /// The verdict as a word.
    pub verdict: String,
    /// Estimate with interval and metric, or why there is none.
    pub detail: String,
}

/// What each factor does on average, and what two of them do to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effects {
    /// What the lines are, with the metric.
    pub heading: String,
    /// Main effects first.
    pub lines: Vec<EffectLine>,
    /// Why there are no lines, or what is not among them.
    pub note: Option<String>,
}

/// One effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectLine {
    /// Such as `node_env: production / development`.
    pub label: String,
    /// Whether it is of one factor or of two.
    pub kind: Kind,
    /// The verdict's kind, for colours.
    pub outcome: Outcome,
    /// The verdict as a word.
    pub verdict: String,
    /// Estimate with interval.
    pub detail: String,
}

/// One variant's line of the table, in the order of [`Sheet::columns`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The cells, the variant's name first.
    pub cells: Vec<String>,
}

/// A finding, ready to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// How grave.
    pub grade: Grade,
    /// The number under which docs/validity.md explains it.
    pub number: Option<&'static str>,
    /// What was found.
    pub evidence: String,
    /// What to do.
    pub remedy: String,
}

impl Sheet {
    /// Puts a record and its conclusion into words.
    pub fn new(record: &Record, conclusion: &Conclusion) -> Sheet {
        let plan = &record.header.plan;
        Sheet {
            title: plan.question.clone().unwrap_or_else(|| plan.name.clone()),
            answers: answer::answers(conclusion, &plan.design),
            effects: effect::effects(conclusion),
            columns: columns(record, conclusion),
            rows: (0..conclusion.variants.len()).map(|index| row(record, conclusion, index)).collect(),
            parts: parts::parts(conclusion),
            why: None,
            findings: conclusion.findings.iter().map(remark).collect(),
            explained_by: explained_by(conclusion.findings.iter().map(Finding::number)),
            method: method::method(record, conclusion),
            assumptions: assumptions(conclusion),
            place: method::place(record),
            next: next(record, conclusion),
        }
    }

    /// The same with what the record's captures tell, and where to see more of it.
    pub fn explained(mut self, record: &Record, explanation: &Explanation) -> Sheet {
        let directory = record.directory.display();
        self.why = Some(Why::new(explanation));
        self.next.push(format!(
            "to see where the time goes: {directory}/flame.html, or proofload profile {directory}"
        ));
        self
    }
}

/// The gravest first, as with findings. Where all is void there is no result to take anything for granted, but what is doubtful
/// may be the reason.
fn assumptions(conclusion: &Conclusion) -> Vec<Assumption> {
    let void = conclusion.comparisons.iter().all(|comparison| comparison.outcome == Outcome::Void);
    let told = |assumption: &&Assumption| !void || assumption.standing == Standing::Doubtful;
    let mut sorted: Vec<Assumption> = conclusion.assumptions.iter().filter(told).cloned().collect();
    sorted.sort_by_key(|assumption| match assumption.standing {
        Standing::Doubtful => 0,
        Standing::Unchecked => 1,
        Standing::Supported => 2,
    });
    sorted
}

fn remark(finding: &Finding) -> Remark {
    Remark {
        grade: finding.grade,
        number: finding.number(),
        evidence: finding.evidence.clone(),
        remedy: finding.remedy.clone(),
    }
}

/// Response sizes get a column only where they differ; else they are one line of the method.
fn shows_size(conclusion: &Conclusion) -> bool {
    let sizes =
        conclusion.variants.iter().filter_map(|variant| Some(variant.body_bytes_per_response? as u64));
    let mut sizes: Vec<_> = sizes.collect();
    sizes.dedup();
    sizes.len() > 1
}

/// The quantiles of the response time that have a column: the usual ones, and the one that is judged.
fn quantiles(record: &Record) -> Vec<Metric> {
    let metric = record.header.plan.design.metric;
    let shown = |of: &Metric| *of != Metric::P999 || metric == Metric::P999;
    let all = Metric::LATENCIES.into_iter().filter(shown);
    if record.is_open_loop() { all.collect() } else { Vec::new() }
}

/// In open loop throughput and cores are what the rate makes them, and have no column.
fn columns(record: &Record, conclusion: &Conclusion) -> Vec<String> {
    let mut names = vec!["variant"];
    let quantiles = quantiles(record);
    if quantiles.is_empty() {
        names.extend(["throughput", "CPU/request", "cores", "peak memory", "failed"]);
    } else {
        names.extend(quantiles.iter().map(|metric| metric.name()));
        names.extend(["CPU/request", "peak memory", "failed"]);
    }
    if shows_size(conclusion) {
        names.push("body");
    }
    names.into_iter().map(str::to_owned).collect()
}

/// A variant's figures. Those of a void one are what was seen, and say so: they compare with nothing.
fn row(record: &Record, conclusion: &Conclusion, index: usize) -> Row {
    let variant = &conclusion.variants[index];
    let void = conclusion.findings.iter().any(|finding| finding.voids(index, index));
    // A dash is "not measured"; a zero would be a figure.
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
    let quantiles = quantiles(record);
    let mark = match variant.no_success {
        Some(_) => " (no success)",
        None if void => " (void)",
        None => "",
    };
    let mut cells = vec![format!("{}{mark}", variant.name)];
    if quantiles.is_empty() {
        cells.push(or_dash(variant.throughput_per_s.map(rate)));
    }
    cells.extend(quantiles.iter().map(|metric| or_dash(response_time(variant, *metric))));
    cells.push(or_dash(variant.cpu_us_per_request.map(micros)));
    if quantiles.is_empty() {
        cells.push(or_dash(variant.busy_cores.map(|cores| format!("{cores:.2}"))));
    }
    cells.push(or_dash(variant.peak_rss_bytes.map(|peak| bytes(peak as f64))));
    cells.push(or_dash(variant.failed_share.map(|_| failed(variant))));
    if shows_size(conclusion) {
        cells.push(or_dash(variant.body_bytes_per_response.map(bytes)));
    }
    Row { cells }
}

/// Beside a count that proves little, what the share may still be.
fn failed(variant: &Variant) -> String {
    if variant.no_success.is_some() {
        return format!("{} of {}", count(variant.failed), count(variant.requests));
    }
    let seen = format!("{} of {}", count(variant.failed), count(variant.requests));
    let little = variant.failed > 0 || variant.requests < REQUESTS_TELLING;
    match variant.failed_interval.as_ref().filter(|_| little) {
        Some(interval) => format!("{seen} ({})", share_below(interval.high)),
        None => seen,
    }
}

fn response_time(variant: &Variant, metric: Metric) -> Option<String> {
    let found = variant.response_time.iter().find(|found| found.metric == metric)?;
    Some(format!("{}{}", if found.at_least { "≥ " } else { "" }, micros(found.us)))
}

fn next(record: &Record, conclusion: &Conclusion) -> Vec<String> {
    let mut steps = Vec::new();
    let said_by = match record.ended.as_ref().map(|ended| &ended.reason) {
        Some(EndReason::ServiceFailed(_)) => Some("the service"),
        Some(EndReason::PreparationFailed(_)) => Some("its command"),
        _ => None,
    };
    if let Some(who) = said_by {
        steps.push(format!("look at what {who} said: {}", record.directory.join("logs").display()));
        return steps;
    }
    if conclusion.is_void() {
        steps.push("mend what the void findings name, then run again".to_owned());
        return steps;
    }
    let needed = conclusion.comparisons.iter().filter_map(|comparison| comparison.blocks_needed).max();
    let blocks = record.complete_blocks().filter_map(|block| block.seconds);
    let block_s = blocks.last().unwrap_or(0.0);
    if let Some(needed) = needed.filter(|needed| *needed > conclusion.blocks) {
        let minutes = (f64::from(needed) * block_s * 1.15 / 60.0).ceil().max(1.0);
        steps.push(format!(
            "to decide what is open: proofload run {} --budget {minutes:.0}m",
            record.header.experiment
        ));
    }
    steps.push(format!(
        "to see whether it holds: proofload run {} --seed {}",
        record.header.experiment,
        record.header.seed + 1
    ));
    steps.push(format!(
        "for a pull request: proofload report {} --format markdown",
        record.directory.display()
    ));
    steps
}
