//! Comparison of two labels: the ratio of their requests per second, and its reliability.
//!
//! The runs were usually made one side after the other, so they are not paired. Welch's interval of the
//! logarithms allows each side its own spread. A void comparison has reasons and no ratio.

use model::Grade;
use model::quantity::{self, Quantity, change_alone, many};
use model::text::capitalised;
use serde::Serialize;

use crate::Audit;
use crate::findings::{About, CheckResult, OutputCheck};
use crate::group::{LEVEL, RunGroup};
use crate::run::{ToolLoad, ToolRun};

/// A comparison of two labels.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabelComparison {
    /// The side in the denominator.
    pub baseline: String,
    /// The other side.
    pub candidate: String,
    /// Number of runs of each.
    pub runs: (usize, usize),
    /// The answer.
    pub answer: ComparisonAnswer,
    /// Notes about its reliability, one sentence each.
    pub worth: Vec<String>,
}

/// The answer to a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ComparisonAnswer {
    /// The ratio, candidate over baseline, with its 95 % interval.
    Interval(stats::Welch),
    /// There is no meaningful ratio.
    Invalid {
        /// The reasons.
        reasons: Vec<String>,
    },
}

/// The indices of the labels that match a name. A number (from 1) is that of the table. Otherwise an exact name
/// matches one, and a part all labels that contain it.
pub fn pick(groups: &[RunGroup], name: &str) -> Vec<usize> {
    let (name, lower) = (name.trim(), name.trim().to_lowercase());
    let number = lower.trim_start_matches('#').parse::<usize>().ok();
    let numbered = number
        .and_then(|number| number.checked_sub(1))
        .filter(|at| *at < groups.len());
    if let Some(at) = numbered {
        return vec![at];
    }
    let of = |is: &dyn Fn(&str) -> bool| {
        (0..groups.len())
            .filter(|at| is(&groups[*at].label))
            .collect::<Vec<_>>()
    };
    let exact = of(&|label| label == name);
    if !exact.is_empty() {
        return exact;
    }
    let exact = of(&|label| label.to_lowercase() == lower);
    if !exact.is_empty() {
        return exact;
    }
    // `2` may be `2 workers`, and is no part of `12`.
    let whole = |label: &str| {
        label
            .split(|c: char| !c.is_alphanumeric())
            .any(|word| word == lower)
    };
    of(&|label| match number {
        Some(_) => whole(&label.to_lowercase()),
        None => label.to_lowercase().contains(&lower),
    })
}

/// Compares two groups by index. None if an index is invalid.
pub fn compare(audit: &Audit, baseline: usize, candidate: usize) -> Option<LabelComparison> {
    let (one, other) = (audit.groups.get(baseline)?, audit.groups.get(candidate)?);
    let reasons = void_reasons(audit, one, other);
    let (answer, worth) = match interval(one, other) {
        Ok(of) if reasons.is_empty() => (
            ComparisonAnswer::Interval(of),
            Some(worth_of_interval(one, other)),
        ),
        Err(reason) if reasons.is_empty() => (
            ComparisonAnswer::Invalid {
                reasons: vec![reason],
            },
            None,
        ),
        Ok(_) | Err(_) => (ComparisonAnswer::Invalid { reasons }, None),
    };
    let besides = asked_otherwise(audit, one, other)
        .into_iter()
        .chain(warned(audit, one, other));
    let worth = worth.into_iter().chain(besides).collect();
    let runs = (one.rates.len(), other.rates.len());
    Some(LabelComparison {
        baseline: one.label.clone(),
        candidate: other.label.clone(),
        runs,
        answer,
        worth,
    })
}

/// The interval, or the reason there is none.
fn interval(one: &RunGroup, other: &RunGroup) -> Result<stats::Welch, String> {
    let logs = |group: &RunGroup| {
        group
            .rates
            .iter()
            .map(|rate| rate.ln())
            .collect::<Vec<f64>>()
    };
    stats::welch(&logs(one), &logs(other), LEVEL).map_err(|error| match error {
        stats::Error::TooFewBlocks => too_few(one, other),
        stats::Error::NoSpread { .. } => {
            "all runs of a side are alike to the last digit, so their spread is not known"
                .to_owned()
        }
        error => error.to_string(),
    })
}

fn too_few(one: &RunGroup, other: &RunGroup) -> String {
    let (Some(slow), Some(fast)) = (one.rate(), other.rate()) else {
        let silent = if one.rate().is_none() { one } else { other };
        return format!("{} has no requests per second", silent.label);
    };
    let sides = if one.rates.len() == other.rates.len() {
        "one run a side".to_owned()
    } else {
        format!(
            "{} vs {}",
            many(one.rates.len() as u64, "run"),
            many(other.rates.len() as u64, "run")
        )
    };
    let ratio = fast / slow;
    let (slow, fast) = (Quantity::per_s(slow), Quantity::per_s(fast));
    let rates = format!("{slow} and {fast}, {}", change_alone(ratio, 1));
    format!(
        "{sides}: {rates}. {}.",
        capitalised(&crate::findings::distance(ratio))
    )
}

/// The findings about either side, except for a single run per side, which is reported with the figures.
fn found<'a>(audit: &'a Audit, sides: &'a [usize]) -> impl Iterator<Item = &'a CheckResult> {
    let beside = |found: &&CheckResult| found.check != OutputCheck::OneRun && found.concerns(sides);
    audit.findings.iter().filter(beside)
}

fn void_reasons(audit: &Audit, one: &RunGroup, other: &RunGroup) -> Vec<String> {
    let sides = [one.runs.as_slice(), &other.runs].concat();
    let void = found(audit, &sides).filter(|found| found.voids_throughput_of(&sides));
    let reasons = void.map(|found| {
        let cases = found
            .cases
            .iter()
            .filter(|case| case.concerns(&sides))
            .take(3);
        let cases: Vec<String> = cases
            .map(|case| {
                let side = if case.concerns(&one.runs) {
                    "baseline"
                } else {
                    "candidate"
                };
                format!("{} ({side})", case.evidence)
            })
            .collect();
        format!("{}: {}", found.evidence, cases.join("; "))
    });
    let same = (one.label == other.label).then(|| "both sides are the same label".to_owned());
    let keeps = |group: &RunGroup| {
        let mut runs = group
            .runs
            .iter()
            .filter_map(|at| audit.runs.get(*at))
            .peekable();
        runs.peek().is_some() && runs.all(ToolRun::keeps_its_rate)
    };
    let who = match (keeps(one), keeps(other)) {
        (false, false) => None,
        (true, true) => Some("both sides were"),
        (true, false) | (false, true) => Some("one side was"),
    };
    let scheduled = who.map(|who| {
        format!(
            "{who} sent at a fixed rate and kept it: its throughput is that rate. Compare response times or CPU time of two sides at the same \
             rate"
        )
    });
    reasons.chain(same).chain(scheduled).collect()
}

fn worth_of_interval(one: &RunGroup, other: &RunGroup) -> String {
    format!(
        "95 % over {} and {} (Welch, on logarithms): it holds for these services as they then ran. How they differ from one start \
         to the next is in it only if each run had a fresh one",
        many(one.rates.len() as u64, "run"),
        many(other.rates.len() as u64, "run")
    )
}

/// Settings that differ between the sides.
fn asked_otherwise(audit: &Audit, one: &RunGroup, other: &RunGroup) -> Option<String> {
    let first = |group: &RunGroup| group.runs.first().and_then(|at| audit.runs.get(*at));
    let (one, other) = (first(one)?, first(other)?);
    let asked = |run: &ToolRun| {
        let loaded = asked_of(&run.load).into_iter();
        let others = [
            run.path().map(str::to_owned),
            run.bytes_per_response().map(quantity::bytes),
        ];
        std::iter::once(Some(run.tool.name().to_owned()))
            .chain(loaded)
            .chain(others)
            .collect::<Vec<_>>()
    };
    let differing = asked(one)
        .into_iter()
        .zip(asked(other))
        .filter_map(|pair| match pair {
            (Some(one), Some(other)) if one != other => Some(format!("{one} vs {other}")),
            _ => None,
        });
    let differing = differing.collect::<Vec<_>>().join(", ");
    (!differing.is_empty())
        .then(|| format!("the sides differ in more than their labels: {differing}"))
}

/// The settings of a load, in words. `None` if the tool does not report them.
fn asked_of(load: &ToolLoad) -> [Option<String>; 9] {
    // Every field is named, so that none is forgotten.
    let ToolLoad {
        connections,
        threads,
        duration_s,
        requests,
        rate_per_s,
        keep_alive,
        pipelining,
        accept_encoding,
        timeout_s,
    } = load;
    let number = |value: &Option<u64>, noun: &str| value.map(|value| many(value, noun));
    let coding = |coding: &String| match coding.as_str() {
        "" => "no Accept-Encoding".to_owned(),
        coding => format!("Accept-Encoding: {coding}"),
    };
    [
        number(connections, "connection"),
        number(threads, "thread"),
        duration_s.map(quantity::span),
        number(requests, "request"),
        rate_per_s.map(quantity::rate),
        keep_alive.map(|keep| if keep { "keep-alive" } else { "no keep-alive" }.to_owned()),
        pipelining.map(|depth| format!("pipelining {depth}")),
        accept_encoding.as_ref().map(coding),
        timeout_s.map(|limit| format!("limit {}", quantity::span(limit))),
    ]
}

fn warned(audit: &Audit, one: &RunGroup, other: &RunGroup) -> Vec<String> {
    let sides = [one.runs.as_slice(), &other.runs].concat();
    let warns = |found: &&CheckResult| {
        found.grade == Grade::Warning && found.check.about() != About::Latency
    };
    found(audit, &sides)
        .filter(warns)
        .map(|found| found.evidence.to_string())
        .collect()
}

impl ComparisonAnswer {
    /// The ratio formatted for display, if there is one.
    pub fn shown(&self) -> Option<String> {
        match self {
            ComparisonAnswer::Interval(of) => {
                let (value, ends) = quantity::interval(of.ratio, of.low, of.high);
                Some(format!("{value} ({ends})"))
            }
            ComparisonAnswer::Invalid { .. } => None,
        }
    }

    /// Whether there is no ratio.
    pub fn is_void(&self) -> bool {
        matches!(self, ComparisonAnswer::Invalid { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_of_what_was_asked_is_noticed() {
        // Every field is set, so that a new one does not compile without a change here.
        let full = ToolLoad {
            connections: Some(8),
            threads: Some(2),
            duration_s: Some(30.0),
            requests: Some(1000),
            rate_per_s: Some(100.0),
            keep_alive: Some(true),
            pipelining: Some(1),
            accept_encoding: Some("br".to_owned()),
            timeout_s: Some(2.0),
        };
        let changes: [fn(&mut ToolLoad); 9] = [
            |load| load.connections = Some(9),
            |load| load.threads = Some(3),
            |load| load.duration_s = Some(31.0),
            |load| load.requests = Some(1001),
            |load| load.rate_per_s = Some(200.0),
            |load| load.keep_alive = Some(false),
            |load| load.pipelining = Some(2),
            |load| load.accept_encoding = Some(String::new()),
            |load| load.timeout_s = Some(6.0),
        ];
        for (place, change) in changes.into_iter().enumerate() {
            let mut other = full.clone();
            change(&mut other);
            assert_ne!(asked_of(&full)[place], asked_of(&other)[place]);
        }
    }
}
