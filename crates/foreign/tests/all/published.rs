//! Published write-ups with output of load generators, read as a careful engineer reads them.
//!
//! `readings.json` contains the right reading of each file, written before the program read it.

use std::collections::BTreeSet;

use model::FindingCode;
use proofload_foreign::{Audit, ToolRun};
use serde::Deserialize;

use crate::{audit, written};

/// The right reading of one write-up.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteUp {
    file: String,
    part: CorpusPart,
    runs: Vec<RightRun>,
    /// Indices of runs that are repeats of each other.
    groups: Vec<Vec<usize>>,
    /// A part of the label of each group, if the text names them.
    labels: Vec<String>,
    /// Tools that are to be named as not read.
    unread: Vec<String>,
    /// Flaws that an expert would report, with `|` between codes of which one is enough.
    told: Vec<String>,
    /// True findings that an expert might leave out.
    may: Vec<String>,
    /// True findings that were listed after the program reported them.
    also: Vec<String>,
    /// Parts that no finding and no label may contain.
    never: Vec<String>,
    /// Flaws for which there is no check.
    #[serde(rename = "unknown")]
    _unknown: Vec<String>,
}

/// The use of a write-up.
#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum CorpusPart {
    /// Rules were written after it.
    First,
    /// Drawn at random, and not looked at until the rules after the first part were done.
    Second,
    /// Found after that. No rule was written after it.
    Third,
}

/// The figures of one run. A missing field is not compared, `null` means that the text does not contain it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RightRun {
    tool: String,
    #[serde(default, deserialize_with = "present")]
    requests: Option<Option<f64>>,
    #[serde(default, deserialize_with = "present")]
    failed: Option<Option<f64>>,
    #[serde(default, deserialize_with = "present")]
    rate: Option<Option<f64>>,
    #[serde(default, deserialize_with = "present")]
    mean_us: Option<Option<f64>>,
    #[serde(default, deserialize_with = "present")]
    p99_us: Option<Option<f64>>,
    #[serde(default, deserialize_with = "present")]
    connections: Option<Option<f64>>,
    #[serde(default, deserialize_with = "present")]
    seconds: Option<Option<f64>>,
}

/// Distinguishes `null` from a missing field.
fn present<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<f64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Differences between the reading of the program and the right one.
struct Assessment {
    wrong: Vec<String>,
    missing: Vec<String>,
    false_statements: Vec<String>,
    findings: usize,
}

fn write_ups() -> Vec<WriteUp> {
    let text = std::fs::read_to_string(written("published/readings.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn differs(name: &str, right: &RightRun, run: &ToolRun) -> Vec<String> {
    let RightRun {
        tool,
        requests,
        failed,
        rate,
        mean_us,
        p99_us,
        connections,
        seconds,
    } = right;
    let compared = [
        ("requests", requests, run.requests.map(|count| count as f64)),
        ("failed", failed, Some(run.failures.total() as f64)),
        ("rate", rate, run.requests_per_s),
        ("mean", mean_us, run.latency.mean_us),
        ("p99", p99_us, run.latency.quantile(99.0)),
        (
            "connections",
            connections,
            run.load.connections.map(|count| count as f64),
        ),
        ("seconds", seconds, run.duration_s.or(run.load.duration_s)),
    ];
    let is_near = |one: Option<f64>, other: Option<f64>| match (one, other) {
        (Some(one), Some(other)) => (one - other).abs() <= 0.002 * one.abs().max(other.abs()),
        (one, other) => one == other,
    };
    let mut wrong: Vec<String> = compared
        .into_iter()
        .filter_map(|(figure, right, read)| {
            let right = (*right)?;
            (!is_near(right, read)).then(|| format!("{name} {figure}: {read:?}, not {right:?}"))
        })
        .collect();
    if run.tool.name() != tool {
        wrong.push(format!("{name}: {}, not {tool}", run.tool.name()));
    }
    wrong
}

/// Whether runs, groups, labels and unread tools are right.
fn misread(right: &WriteUp, audit: &Audit) -> Vec<String> {
    let mut wrong = Vec::new();
    if audit.runs.len() != right.runs.len() {
        wrong.push(format!(
            "{} runs, not {}",
            audit.runs.len(),
            right.runs.len()
        ));
    }
    for (at, (run, right)) in audit.runs.iter().zip(&right.runs).enumerate() {
        wrong.extend(differs(&format!("run {at}"), right, run));
    }
    let mut groups: Vec<&[usize]> = audit
        .groups
        .iter()
        .map(|group| group.runs.as_slice())
        .collect();
    groups.sort_unstable();
    if groups != right.groups {
        wrong.push(format!("groups {groups:?}, not {:?}", right.groups));
    }
    for (group, part) in groups.iter().zip(&right.labels) {
        let label = &audit.runs[group[0]].label;
        if !label.contains(part.as_str()) {
            wrong.push(format!("label {label:?} lacks {part:?}"));
        }
    }
    let unread = &audit.files[0].unread;
    for tool in &right.unread {
        if !unread
            .iter()
            .any(|name| name.to_lowercase() == tool.to_lowercase())
        {
            wrong.push(format!("{tool} is not named, but {unread:?}"));
        }
    }
    wrong
}

fn assess(right: &WriteUp) -> Assessment {
    let bytes = std::fs::read(written("published").join(&right.file)).unwrap();
    let audit = audit(&right.file, &bytes);
    let codes: BTreeSet<&str> = audit
        .findings
        .iter()
        .map(|found| found.check.code())
        .collect();
    let is_found = |codes_of: &str| codes_of.split('|').any(|code| codes.contains(code));
    let missing = right.told.iter().filter(|flaw| !is_found(flaw)).cloned();
    let is_true = |code: &str| {
        let listed = right.told.iter().flat_map(|flaw| flaw.split('|'));
        let optional = right.may.iter().chain(&right.also).map(String::as_str);
        listed.chain(optional).any(|one| one == code)
    };
    let mut false_statements: Vec<String> = codes
        .iter()
        .filter(|code| !is_true(code))
        .map(|code| (*code).to_owned())
        .collect();
    let evidence = audit.findings.iter().flat_map(|found| {
        let lines = found.cases.iter();
        lines.map(|case| format!("{}: {}", found.check.code(), case.evidence))
    });
    let said: Vec<String> = evidence
        .chain(audit.runs.iter().map(|run| run.label.clone()))
        .collect();
    false_statements.extend(
        right
            .never
            .iter()
            .filter(|part| said.iter().any(|line| line.contains(part.as_str())))
            .cloned(),
    );
    Assessment {
        wrong: misread(right, &audit),
        missing: missing.collect(),
        false_statements,
        findings: codes.len(),
    }
}

/// Files that are not read right, flaws that are not reported, and false statements.
const KNOWN: &str = include_str!("../corpus/published/known-errors.txt");

#[test]
fn published_write_ups_are_read_as_listed() {
    let mut errors = String::new();
    let mut table = String::new();
    let parts = [
        ("first", CorpusPart::First),
        ("second", CorpusPart::Second),
        ("third", CorpusPart::Third),
    ];
    for (name, part) in parts {
        let write_ups: Vec<WriteUp> = write_ups()
            .into_iter()
            .filter(|one| one.part == part)
            .collect();
        let assessed: Vec<Assessment> = write_ups.iter().map(assess).collect();
        let sum = |count: fn(&Assessment) -> usize| assessed.iter().map(count).sum::<usize>();
        let listed: usize = write_ups.iter().map(|one| one.told.len()).sum();
        table += &format!(
            "{name} part: {} files, {} read right, {} of {listed} flaws reported, {} of {} findings false, in {} files\n",
            assessed.len(),
            sum(|one| usize::from(one.wrong.is_empty())),
            listed - sum(|one| one.missing.len()),
            sum(|one| one.false_statements.len()),
            sum(|one| one.findings),
            sum(|one| usize::from(!one.false_statements.is_empty())),
        );
        for (one, assessment) in write_ups.iter().zip(&assessed) {
            let kinds = [
                ("wrong", &assessment.wrong),
                ("missing", &assessment.missing),
                ("false", &assessment.false_statements),
            ];
            for (kind, lines) in kinds {
                for line in lines {
                    errors += &format!("{}: {kind}: {line}\n", one.file);
                }
            }
        }
    }
    let report = format!("{table}\n{errors}");
    if std::env::var_os("UPDATE_KNOWN").is_some() {
        std::fs::write(written("published/known-errors.txt"), &report).unwrap();
        return;
    }
    assert_eq!(report, KNOWN, "set UPDATE_KNOWN=1 and read the difference");
}
