//! Everything a report says, in words and in order, before it is drawn in any form.

use audit::{Comparison, Conclusion, Finding, Grade, Outcome, Variant};
use plan::Metric;
use record::{EndReason, Record};

use crate::figure::{bytes, change, count, micros, rate, share};

mod method;

/// The content of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sheet {
    /// The question, or the experiment's name where the file asks none.
    pub title: String,
    /// One answer a comparison.
    pub answers: Vec<Answer>,
    /// Headings of the table of variants.
    pub columns: Vec<String>,
    /// One row a variant.
    pub rows: Vec<Row>,
    /// Findings, the gravest first.
    pub findings: Vec<Remark>,
    /// How it was measured, each line a name and a text.
    pub method: Vec<(String, String)>,
    /// What to do next, each a sentence or a command with its reason.
    pub next: Vec<String>,
}

/// The answer to one comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Reads as "candidate against baseline".
    pub comparison: String,
    /// The verdict's kind, for colours.
    pub outcome: Outcome,
    /// The verdict as a word.
    pub verdict: String,
    /// Estimate with interval and metric, or why there is none.
    pub detail: String,
    /// Other metrics, shown but not judged.
    pub also: Vec<String>,
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
            answers: conclusion
                .comparisons
                .iter()
                .map(|c| answer(c, conclusion, plan.design.margin))
                .collect(),
            columns: columns(record, conclusion),
            rows: (0..conclusion.variants.len()).map(|index| row(record, conclusion, index)).collect(),
            findings: conclusion.findings.iter().map(remark).collect(),
            method: method::method(record, conclusion),
            next: next(record, conclusion),
        }
    }
}

fn remark(finding: &Finding) -> Remark {
    Remark { grade: finding.grade, evidence: finding.evidence.clone(), remedy: finding.remedy.clone() }
}

fn answer(comparison: &Comparison, conclusion: &Conclusion, margin: f64) -> Answer {
    let detail = match (&comparison.estimate, comparison.outcome) {
        (_, Outcome::Void) => "no conclusion may be drawn, see the findings".to_owned(),
        (None, _) => format!("no estimate from {} blocks", conclusion.blocks),
        (Some(estimate), outcome) => {
            let (value, interval) = change(estimate);
            let hint = match outcome {
                Outcome::Equivalent => format!("; smaller than the margin of {}", share(margin)),
                Outcome::Inconclusive => undecided(comparison, conclusion, margin),
                _ => String::new(),
            };
            format!("{value} {} ({interval}){hint}", metric_name(comparison.metric))
        }
    };
    let also = comparison.exploratory.iter().map(|other| {
        let (value, interval) = change(&other.estimate);
        format!("{value} {} ({interval})", metric_name(other.metric))
    });
    Answer {
        comparison: comparison.label.clone(),
        outcome: comparison.outcome,
        verdict: verdict(comparison.outcome, comparison.metric).to_owned(),
        detail,
        also: also.collect(),
    }
}

fn undecided(comparison: &Comparison, conclusion: &Conclusion, margin: f64) -> String {
    match comparison.blocks_needed {
        Some(blocks) if blocks > conclusion.blocks => {
            format!("; about {blocks} blocks would decide it at a margin of {}", share(margin))
        }
        _ => format!("; neither beyond chance nor within the margin of {}", share(margin)),
    }
}

fn verdict(outcome: Outcome, metric: Metric) -> &'static str {
    match (outcome, metric) {
        (Outcome::Better, Metric::CpuPerRequest) => "cheaper",
        (Outcome::Worse, Metric::CpuPerRequest) => "dearer",
        (Outcome::Better, Metric::PeakMemory) => "smaller",
        (Outcome::Worse, Metric::PeakMemory) => "larger",
        (Outcome::Better, _) => "faster",
        (Outcome::Worse, _) => "slower",
        (Outcome::Equivalent, _) => "equivalent",
        (Outcome::Inconclusive, _) => "inconclusive",
        (Outcome::Void, _) => "void",
    }
}

fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "throughput",
        Metric::CpuPerRequest => "CPU per request",
        Metric::PeakMemory => "peak memory",
        Metric::P50 => "p50 response time",
        Metric::P90 => "p90 response time",
        Metric::P99 => "p99 response time",
        Metric::P999 => "p99.9 response time",
    }
}

/// Response sizes get a column only where they differ; else they are one line of the method.
fn shows_size(conclusion: &Conclusion) -> bool {
    let sizes = conclusion.variants.iter().map(|variant| variant.body_bytes_per_response.map(|b| b as u64));
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
    let mut cells = vec![format!("{}{}", variant.name, if void { " (void)" } else { "" })];
    if quantiles.is_empty() {
        cells.push(or_dash(variant.throughput_per_s.map(rate)));
    }
    cells.extend(quantiles.iter().map(|metric| or_dash(response_time(variant, *metric))));
    cells.push(or_dash(variant.cpu_us_per_request.map(micros)));
    if quantiles.is_empty() {
        cells.push(or_dash(variant.busy_cores.map(|cores| format!("{cores:.2}"))));
    }
    cells.push(or_dash(variant.peak_rss_bytes.map(|peak| bytes(peak as f64))));
    let failed = |_| format!("{} of {}", count(variant.failed), count(variant.requests));
    cells.push(or_dash(variant.failed_share().map(failed)));
    if shows_size(conclusion) {
        cells.push(or_dash(variant.body_bytes_per_response.map(bytes)));
    }
    Row { cells }
}

fn response_time(variant: &Variant, metric: Metric) -> Option<String> {
    let found = variant.response_time.iter().find(|found| found.metric == metric)?;
    Some(format!("{}{}", if found.at_least { "≥ " } else { "" }, micros(found.us)))
}

fn next(record: &Record, conclusion: &Conclusion) -> Vec<String> {
    let mut steps = Vec::new();
    if let Some(EndReason::ServiceFailed(_)) = record.ended.as_ref().map(|ended| &ended.reason) {
        steps.push(format!("look at what the service said: {}", record.directory.join("logs").display()));
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
