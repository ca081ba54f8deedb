//! Whether runs can be compared: whether there are repeats, interleaved and distinct, and whether they can
//! separate a difference from chance.

use model::quantity::{change_alone, many, share};
use model::{Evidence, Grade, Quantity, evidence};

use super::{CheckInput, FindingCase};
use crate::group::RunGroup;
use crate::run::ToolRun;
use crate::words;

/// Difference between two single runs of wrk on equal services: the median of 60 pairs. From the lines
/// without an effect in bench/truth/results/2026-11-21/by-hand.jsonl, with two shared virtual cores.
pub const HAND_MEDIAN: f64 = 0.08;
/// Exceeded by one pair in ten.
pub const HAND_WIDE: f64 = 0.28;
/// The maximum of all pairs.
pub const HAND_MAX: f64 = 0.81;
/// A proxy that keeps its connections costs about as much as a small service: it halves throughput, but does
/// not cut it to a third. A threshold for a suspicion, not for a verdict.
const PROXIED_FACTOR: f64 = 3.0;

/// Tolerance between text and JSON of one run, because text is rounded.
const ROUNDED: f64 = 1e-3;
/// With two decimals, five digits in total.
const DIGITS_LEAST: f64 = 100.0;

fn runs_of<'a>(groups: impl IntoIterator<Item = &'a RunGroup>) -> Vec<usize> {
    groups
        .into_iter()
        .flat_map(|group| group.runs.clone())
        .collect()
}

/// Several outputs of one run: all measured values identical to the last digit, once as text and once as
/// JSON, or a quoted rate. Figures that are merely close do not count.
pub fn same_output(of: &CheckInput<'_>) -> Vec<(Grade, FindingCase)> {
    let mut rated: Vec<usize> = (0..of.runs.len())
        .filter(|at| of.runs[*at].requests_per_s.is_some())
        .collect();
    rated.sort_by(|one, other| {
        let rate = |at: &usize| of.runs[*at].requests_per_s.unwrap_or(0.0);
        rate(one).total_cmp(&rate(other))
    });
    let alike = rated.chunk_by(|one, other| is_copy(&of.runs[*one], &of.runs[*other]));
    let mut copies: Vec<Vec<usize>> = alike
        .filter(|runs| runs.len() > 1)
        .map(<[usize]>::to_vec)
        .collect();
    copies.iter_mut().for_each(|runs| runs.sort_unstable());
    copies.sort();
    let case = |runs: Vec<usize>| {
        let places: Vec<String> = runs
            .iter()
            .take(4)
            .map(|at| of.runs[*at].lines.first.to_string())
            .collect();
        let (first, so_on) = (
            &of.runs[runs[0]],
            if runs.len() > places.len() {
                ", …"
            } else {
                ""
            },
        );
        let evidence = evidence!("{} with {requests_per_s}, in lines {}{so_on}",
            many(runs.len() as u64, "run"), places.join(", ");
            requests_per_s = Quantity::per_s(first.requests_per_s.unwrap_or(0.0)));
        let evidence = evidence.with([("runs", Quantity::count(runs.len() as u64))]);
        (
            Grade::Invalid,
            FindingCase {
                label: first.label.clone(),
                evidence,
                runs,
            },
        )
    };
    copies.into_iter().map(case).collect()
}

/// Whether two outputs belong to one run. No two runs have the same mean to the last digit and the same
/// request count.
fn is_copy(one: &ToolRun, other: &ToolRun) -> bool {
    let near = |one: Option<f64>, other: Option<f64>, within: f64| {
        one.zip(other)
            .is_some_and(|(one, other)| (one / other - 1.0).abs() <= within)
    };
    let rates = |within| near(one.requests_per_s, other.requests_per_s, within);
    let means = |within| near(one.latency.mean_us, other.latency.mean_us, within);
    let quotes = |of: &ToolRun| of.requests.is_none() && of.latency.mean_us.is_none();
    let paced = one.load.rate_per_s.or(other.load.rate_per_s).is_some();
    let same = match (
        one.json == other.json,
        one.requests.is_some() && one.requests == other.requests,
    ) {
        (true, true) => {
            rates(0.0)
                && means(0.0)
                && one.bytes == other.bytes
                && one.latency.max_us == other.latency.max_us
        }
        (false, true) => rates(ROUNDED) && means(ROUNDED),
        // A rate with few digits occurs twice by chance.
        _ => {
            (quotes(one) || quotes(other))
                && !paced
                && rates(0.0)
                && one.requests_per_s > Some(DIGITS_LEAST)
        }
    };
    same && one.tool.prints_as(other.tool)
}

/// Labels with a single run, compared or not.
pub fn one_run(of: &CheckInput<'_>) -> Vec<(Grade, FindingCase)> {
    let rated: Vec<(&RunGroup, f64)> = of
        .groups
        .iter()
        .filter_map(|group| Some((group, group.rate()?)))
        .collect();
    let single = rated
        .iter()
        .filter(|(group, _)| group.rates.len() == 1)
        .count();
    if rated.len() < 2 || single == 0 {
        return Vec::new();
    }
    let pairs = Pairs::of(&rated);
    let (label, evidence) = match rated[..] {
        [(one, slow), (other, fast)] => {
            let words = format!(
                "{}: {}",
                change_alone(fast / slow, 1),
                distance(fast / slow)
            );
            let evidence = Evidence::new(words, [("ratio", Quantity::ratio(fast / slow))]);
            (format!("{} → {}", one.label, other.label), evidence)
        }
        _ => (
            format!("{single} of {} labels", rated.len()),
            several(of.groups, &rated, &pairs),
        ),
    };
    let runs = runs_of(rated.iter().map(|(group, _)| *group));
    let grade = if pairs.near > 0 {
        Grade::Invalid
    } else {
        Grade::Warning
    };
    vec![(
        grade,
        FindingCase {
            label,
            runs,
            evidence,
        },
    )]
}

/// Compares a ratio with the differences between equal services.
pub fn distance(ratio: f64) -> String {
    let apart = ratio.max(1.0 / ratio) - 1.0;
    match apart {
        a if a <= HAND_MEDIAN => {
            format!(
                "half of the pairs of equal services differed by more ({})",
                share(HAND_MEDIAN)
            )
        }
        a if a <= HAND_WIDE => {
            format!(
                "one pair of equal services in ten differed by more than {}",
                share(HAND_WIDE)
            )
        }
        a if a <= HAND_MAX => format!(
            "more than nine of ten pairs of equal services ({}), less than the furthest",
            share(HAND_WIDE)
        ),
        _ => format!(
            "more than any of 60 pairs of equal services ({})",
            share(HAND_MAX)
        ),
    }
}

fn several(groups: &[RunGroup], rated: &[(&RunGroup, f64)], pairs: &Pairs) -> Evidence {
    let closest = pairs.closest.map(|(one, other, ratio)| {
        // By their short numbers in the list of labels.
        let number = |at: usize| {
            groups
                .iter()
                .position(|group| std::ptr::eq(group, rated[at].0))
                .unwrap_or(at)
                + 1
        };
        let (one, other) = (number(one), number(other));
        format!(
            "; the closest, #{} and #{}, by {}",
            one.min(other),
            one.max(other),
            share(ratio - 1.0)
        )
    });
    let closest = closest.unwrap_or_default();
    let range = rated
        .iter()
        .fold((f64::MAX, 0.0_f64), |(low, high), (_, rate)| {
            (low.min(*rate), high.max(*rate))
        });
    evidence!("{} to {}; of {pairs} pairs {pairs_close} differ by less than {}{closest}",
        Quantity::per_s(range.0), Quantity::per_s(range.1), share(HAND_WIDE);
        pairs_close = Quantity::count(pairs.near), pairs = Quantity::count(pairs.all))
}

/// All pairs of labels of which one has a single run.
struct Pairs {
    all: u64,
    near: u64,
    closest: Option<(usize, usize, f64)>,
}

impl Pairs {
    fn of(rated: &[(&RunGroup, f64)]) -> Self {
        let mut pairs = Self {
            all: 0,
            near: 0,
            closest: None,
        };
        for (other, (later, fast)) in rated.iter().enumerate() {
            for (one, (earlier, slow)) in rated[..other].iter().enumerate() {
                let ratio = (fast / slow).max(slow / fast);
                if pairs.closest.is_none_or(|(_, _, least)| ratio < least) {
                    pairs.closest = Some((one, other, ratio));
                }
                if earlier.rates.len() == 1 || later.rates.len() == 1 {
                    pairs.all += 1;
                    pairs.near += u64::from(ratio <= 1.0 + HAND_WIDE);
                }
            }
        }
        pairs
    }
}

/// All repeats of one label ran before the repeats of the next.
pub fn in_a_row(of: &CheckInput<'_>) -> Vec<(Grade, FindingCase)> {
    let repeated: Vec<&RunGroup> = of
        .groups
        .iter()
        .filter(|group| group.rates.len() > 1)
        .collect();
    let in_a_row = |group: &&RunGroup| group.runs.windows(2).all(|pair| pair[1] == pair[0] + 1);
    if repeated.len() < 2 || !repeated.iter().all(in_a_row) {
        return Vec::new();
    }
    let words = "as they stand here, all runs of one label come before those of the next";
    let labels = repeated.len();
    let evidence = Evidence::new(words, [("labels", Quantity::count(labels as u64))]);
    vec![(
        Grade::Warning,
        FindingCase {
            label: format!("{labels} labels"),
            runs: runs_of(repeated),
            evidence,
        },
    )]
}

/// Labels of a proxy that are so much slower than the origin's label that a connection per request is likely.
pub fn connection_per_request(of: &CheckInput<'_>) -> Vec<(Grade, FindingCase)> {
    let origin = of
        .groups
        .iter()
        .find(|group| words::is_origin(&group.label) && group.rate().is_some());
    let Some(direct) = origin.and_then(RunGroup::rate) else {
        return Vec::new();
    };
    let slow = of.groups.iter().filter(|group| words::is_proxied(&group.label)).filter_map(|group| {
        let proxied = group.rate().filter(|rate| direct / rate >= PROXIED_FACTOR)?;
        let evidence = evidence!("{}, the service alone {}: a factor of {factor}, {added_us} more for each request",
            Quantity::per_s(proxied), Quantity::per_s(direct);
            factor = Quantity::number(direct / proxied), added_us = Quantity::us((1.0 / proxied - 1.0 / direct) * 1e6));
        Some((Grade::Warning, FindingCase { label: group.label.clone(), runs: group.runs.clone(), evidence }))
    });
    slow.collect()
}
