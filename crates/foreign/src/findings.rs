//! What may and may not be concluded of runs that others made: one function for each way in which such results go wrong.
//!
//! Each is pure, and gives its figures. A threshold is a named constant beside the check that uses it. How findings are laid
//! out is not for here.

mod compression;
mod copies;
mod failures;
mod latency;
mod load;
mod proxy;
mod repeats;

pub(crate) use repeats::distance;
pub use repeats::{HAND_MAX, HAND_MEDIAN, HAND_WIDE};

use std::collections::BTreeMap;

use serde::Serialize;

use crate::group::Group;
use crate::run::Run;
use crate::source::Transcript;

/// How grave a finding is, the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// The figures it is about say nothing.
    Void,
    /// They hold with this in mind.
    Warning,
    /// Good to know.
    Note,
}

/// Which figures a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// Requests per second.
    Throughput,
    /// Latency.
    Latency,
    /// All figures of a run.
    Run,
    /// Any comparison of runs.
    Comparison,
}

/// Where a finding holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Case {
    /// The label that it holds for, or several of them.
    pub label: String,
    /// Places in the list of runs.
    pub runs: Vec<usize>,
    /// What was found, with its figures.
    pub evidence: String,
    /// The same figures for programs; names end in their unit.
    pub figures: BTreeMap<&'static str, f64>,
}

/// The result of one check that found something.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Stable name of the check.
    pub check: &'static str,
    /// How grave it is.
    pub grade: Grade,
    /// What it is about.
    pub about: About,
    /// What was found, in one sentence.
    pub statement: String,
    /// Where, with the figures.
    pub cases: Vec<Case>,
    /// What it means, and what to do.
    pub remedy: String,
}

impl Finding {
    /// Whether it forbids to compare the requests per second of these runs.
    pub fn voids_throughput_of(&self, runs: &[usize]) -> bool {
        self.grade == Grade::Void
            && self.about != About::Latency
            && self.cases.iter().any(|case| case.runs.iter().any(|run| runs.contains(run)))
    }
}

/// All findings, the gravest first.
pub fn all(files: &[Transcript], runs: &[Run], groups: &[Group]) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(load::gave_up(runs));
    findings.extend(copies::same_output(runs));
    findings.extend(compression::never_negotiated(files, runs));
    findings.extend(latency::never_measured(runs));
    findings.extend(latency::timeouts(runs));
    findings.extend(latency::fell_behind(runs));
    findings.extend(load::start_up(runs));
    findings.extend(failures::statuses(runs));
    findings.extend(failures::connections(runs));
    findings.extend(repeats::one_run(groups));
    findings.extend(repeats::in_a_row(groups));
    findings.extend(proxy::connection_per_request(groups));
    findings.extend(latency::tail(runs));
    findings.extend(latency::little(runs));
    findings.extend(load::short(runs));
    findings.extend(load::new_connections(runs));
    findings.extend(load::contradicting(runs));
    findings.extend(load::cut_off(runs));
    findings.extend(failures::lengths(runs));
    findings.extend(load::uneven(runs));
    findings.extend(load::http_1_0(runs));
    findings.extend(load::same_machine(runs));
    findings.sort_by_key(|finding| finding.grade);
    findings
}

/// What one check found in one run.
struct Seen {
    evidence: String,
    figures: BTreeMap<&'static str, f64>,
}

impl Seen {
    fn new<const N: usize>(evidence: String, figures: [(&'static str, f64); N]) -> Option<Self> {
        Some(Self { evidence, figures: BTreeMap::from(figures) })
    }
}

/// A case for each run in which a check sees something.
fn cases(runs: &[Run], look: impl Fn(&Run) -> Option<Seen>) -> Vec<Case> {
    let seen = runs.iter().enumerate().filter_map(|(index, run)| Some((index, run, look(run)?)));
    seen.map(|(index, run, seen)| Case {
        label: run.label.clone(),
        runs: vec![index],
        evidence: seen.evidence,
        figures: seen.figures,
    })
    .collect()
}

/// A finding, if there is a case for it.
fn finding(
    check: &'static str,
    (grade, about): (Grade, About),
    cases: Vec<Case>,
    statement: impl Into<String>,
    remedy: impl Into<String>,
) -> Option<Finding> {
    let (statement, remedy) = (statement.into(), remedy.into());
    (!cases.is_empty()).then_some(Finding { check, grade, about, statement, cases, remedy })
}

/// Two findings of one check: a void one of the cases in which a figure says so, and a warning of the others.
fn graded(
    check: &'static str,
    about: About,
    cases: Vec<Case>,
    is_void: impl Fn(&Case) -> bool,
    (statement, remedy): (&str, &str),
) -> Vec<Finding> {
    let (void, rest): (Vec<Case>, Vec<Case>) = cases.into_iter().partition(is_void);
    let of = |grade, cases| finding(check, (grade, about), cases, statement, remedy);
    [of(Grade::Void, void), of(Grade::Warning, rest)].into_iter().flatten().collect()
}

/// Whether a figure of a case lies above a limit.
fn above(case: &Case, figure: &str, limit: f64) -> bool {
    case.figures.get(figure).is_some_and(|value| *value > limit)
}

/// Of all, a part: 1 where there are more of it than of all.
fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 1.0 } else { (part as f64 / all as f64).min(1.0) }
}
