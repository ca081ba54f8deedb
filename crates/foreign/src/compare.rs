//! Two labels held against each other: the ratio of their requests per second, and what it is worth.
//!
//! The sides are runs that somebody made, mostly one side after the other, so nothing pairs them: Welch's interval on the
//! logarithms, which lets each side have a spread of its own. A void comparison has reasons and no ratio.

use serde::Serialize;

use crate::figure::{digits, factor, many};
use crate::findings::{About, Case, Grade};
use crate::group::{Group, LEVEL};
use crate::run::Run;
use crate::{Audit, figure};

/// What two labels say of each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The side that stands below the line.
    pub baseline: String,
    /// The other side.
    pub candidate: String,
    /// Runs of each.
    pub runs: (usize, usize),
    /// The answer.
    pub answer: Sides,
    /// What to know about it, one sentence each.
    pub worth: Vec<String>,
}

/// The answer to a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Sides {
    /// The ratio, candidate over baseline, with its 95 % interval.
    Interval {
        /// Ratio of the geometric means.
        ratio: f64,
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
        /// Degrees of freedom.
        freedom: f64,
    },
    /// There is no ratio that means anything.
    Void {
        /// Why.
        reasons: Vec<String>,
    },
}

/// Which label a person meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pick {
    /// This one.
    One(usize),
    /// Several have it in their names.
    Several(Vec<usize>),
    /// None has.
    None,
}

/// Finds a label by its number (from 1), its name, or a part of it that no other has.
pub fn pick(groups: &[Group], name: &str) -> Pick {
    let lower = name.trim().to_lowercase();
    let exact = groups.iter().position(|group| group.label.to_lowercase() == lower);
    let number = lower.trim_start_matches('#').parse::<usize>().ok();
    let numbered = number.and_then(|number| number.checked_sub(1)).filter(|at| *at < groups.len());
    if let Some(one) = exact.or(numbered) {
        return Pick::One(one);
    }
    let holds = |(_, group): &(usize, &Group)| group.label.to_lowercase().contains(&lower);
    let found: Vec<usize> = groups.iter().enumerate().filter(holds).map(|(at, _)| at).collect();
    match found.as_slice() {
        [] => Pick::None,
        [one] => Pick::One(*one),
        _ => Pick::Several(found),
    }
}

/// Compares two groups by their places; none where a place is none.
pub fn compare(audit: &Audit, baseline: usize, candidate: usize) -> Option<Comparison> {
    let (one, other) = (audit.groups.get(baseline)?, audit.groups.get(candidate)?);
    let mut reasons = void_reasons(audit, one, other);
    let mut worth = Vec::new();
    let answer = match interval(one, other) {
        _ if !reasons.is_empty() => Sides::Void { reasons },
        Ok(interval) => {
            worth.push(worth_of_interval(one, other));
            interval
        }
        Err(reason) => {
            reasons.push(reason);
            Sides::Void { reasons }
        }
    };
    worth.extend(asked_otherwise(audit, one, other));
    worth.extend(warned(audit, one, other));
    let runs = (one.rates.len(), other.rates.len());
    Some(Comparison { baseline: one.label.clone(), candidate: other.label.clone(), runs, answer, worth })
}

fn interval(one: &Group, other: &Group) -> Result<Sides, String> {
    let logs = |group: &Group| group.rates.iter().map(|rate| rate.ln()).collect::<Vec<f64>>();
    match stats::welch(&logs(one), &logs(other), LEVEL) {
        Ok(stats::Welch { ratio, low, high, freedom, .. }) => {
            Ok(Sides::Interval { ratio, low, high, freedom })
        }
        Err(stats::Error::TooFewBlocks { .. }) => Err(too_few(one, other)),
        Err(stats::Error::NoSpread { .. }) => {
            Err("all runs of a side are alike to the last digit, so their spread is not known".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn too_few(one: &Group, other: &Group) -> String {
    let (Some(slow), Some(fast)) = (one.rate(), other.rate()) else {
        let silent = if one.rate().is_none() { one } else { other };
        return format!("{} has no requests per second", silent.label);
    };
    let sides = if one.rates.len() == other.rates.len() {
        "one run a side".to_owned()
    } else {
        format!("{} against {}", many(one.rates.len() as u64, "run"), many(other.rates.len() as u64, "run"))
    };
    let ratio = fast / slow;
    let rates = format!("{}/s and {}/s, {}", digits(slow), digits(fast), figure::change(ratio));
    format!("{sides}: {rates}. {}", sentence(&crate::findings::distance(ratio)))
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + chars.as_str() + ".")
        .unwrap_or_default()
}

fn void_reasons(audit: &Audit, one: &Group, other: &Group) -> Vec<String> {
    let sides: Vec<usize> = one.runs.iter().chain(&other.runs).copied().collect();
    // That there is one run a side is told with its figures below.
    let void = audit
        .findings
        .iter()
        .filter(|finding| finding.check != "one_run" && finding.voids_throughput_of(&sides));
    let reasons = void.map(|finding| {
        let cases = finding.cases.iter().filter(|case| case.runs.iter().any(|run| sides.contains(run)));
        let side = |case: &Case| {
            if case.runs.iter().any(|run| one.runs.contains(run)) { "baseline" } else { "candidate" }
        };
        let cases: Vec<String> =
            cases.take(3).map(|case| format!("{} ({})", case.evidence, side(case))).collect();
        format!("{}: {}", finding.statement, cases.join("; "))
    });
    let mut reasons: Vec<String> = reasons.collect();
    if one.label == other.label {
        reasons.push("both sides are the same label".to_owned());
    }
    reasons
}

fn worth_of_interval(one: &Group, other: &Group) -> String {
    format!(
        "95 % over {} and {} (Welch, on logarithms): it holds for these services as they then ran. How they differ from one start \
         to the next is in it only if each run had a fresh one",
        many(one.rates.len() as u64, "run"),
        many(other.rates.len() as u64, "run")
    )
}

/// What was asked of one side and not of the other.
fn asked_otherwise(audit: &Audit, one: &Group, other: &Group) -> Option<String> {
    let first = |group: &Group| group.runs.first().and_then(|at| audit.runs.get(*at));
    let (one, other) = (first(one)?, first(other)?);
    let number = |value: Option<u64>, noun: &str| value.map(|value| many(value, noun));
    let asked = |run: &Run| {
        let path = run.url.as_deref().and_then(|url| url.split_once("://")).map(|(_, rest)| rest);
        [
            Some(run.tool.name().to_owned()),
            number(run.load.connections, "connection"),
            run.load.duration_s.map(figure::seconds),
            path.map(|rest| rest.find('/').map_or("/", |at| &rest[at..]).to_owned()),
            run.bytes_per_response().map(figure::bytes),
        ]
    };
    let differing = asked(one).into_iter().zip(asked(other)).filter_map(|pair| match pair {
        (Some(one), Some(other)) if one != other => Some(format!("{one} against {other}")),
        _ => None,
    });
    let differing: Vec<String> = differing.collect();
    (!differing.is_empty())
        .then(|| format!("the sides differ in more than their labels: {}", differing.join(", ")))
}

fn warned(audit: &Audit, one: &Group, other: &Group) -> Vec<String> {
    let sides: Vec<usize> = one.runs.iter().chain(&other.runs).copied().collect();
    let concerns = |runs: &[usize]| runs.iter().any(|run| sides.contains(run));
    let warnings = audit.findings.iter().filter(|finding| {
        finding.grade == Grade::Warning && finding.about != About::Latency && finding.check != "one_run"
    });
    let warnings = warnings.filter(|finding| finding.cases.iter().any(|case| concerns(&case.runs)));
    warnings.map(|finding| finding.statement.clone()).collect()
}

impl Sides {
    /// The ratio as people read it, where there is one.
    pub fn shown(&self) -> Option<String> {
        match self {
            Sides::Interval { ratio, low, high, .. } => {
                Some(format!("{} ({} to {})", factor(*ratio), factor(*low), factor(*high)))
            }
            Sides::Void { .. } => None,
        }
    }

    /// Whether there is none.
    pub fn is_void(&self) -> bool {
        matches!(self, Sides::Void { .. })
    }
}
