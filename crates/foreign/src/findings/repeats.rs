//! Whether runs can be compared: whether there are repeats, interleaved and distinct, and whether they can
//! separate a difference from chance.

use model::quantity::{change_alone, many, share};
use model::{Evidence, Grade, Quantity, evidence};

use super::{CheckInput, FindingCase};
use crate::group::RunGroup;
use crate::run::{ToolLoad, ToolRun};
use crate::tool::Tool;
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

/// Repeats whose rates differ by this factor are none.
const UNLIKE_RATES: f64 = 1.5;
/// Responses whose lengths differ by this factor are different ones.
const UNLIKE_LENGTHS: f64 = 1.1;

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

/// Runs of one label whose rates or lengths are too far apart for repeats.
pub fn unlike(of: &CheckInput<'_>) -> Vec<(Grade, FindingCase)> {
    let case = |group: &RunGroup| {
        let evidence = unlike_rates(group).or_else(|| unlike_lengths(of, group))?;
        Some((
            Grade::Invalid,
            FindingCase {
                label: group.label.clone(),
                runs: group.runs.clone(),
                evidence,
            },
        ))
    };
    of.groups.iter().filter_map(case).collect()
}

/// The least and the greatest of values, if the second is at least `factor` times the first.
fn apart(values: impl Iterator<Item = f64>, factor: f64) -> Option<(f64, f64)> {
    let (low, high) = values.fold((f64::MAX, 0.0_f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    (low > 0.0 && high >= factor * low).then_some((low, high))
}

fn unlike_rates(group: &RunGroup) -> Option<Evidence> {
    let (low, high) = apart(group.rates.iter().copied(), UNLIKE_RATES)?;
    Some(
        evidence!("{lowest_per_s} and {highest_per_s}, a factor of {factor}";
        lowest_per_s = Quantity::per_s(low), highest_per_s = Quantity::per_s(high), factor = Quantity::number(high / low)),
    )
}

fn unlike_lengths(of: &CheckInput<'_>, group: &RunGroup) -> Option<Evidence> {
    let sizes = group
        .runs
        .iter()
        .filter_map(|at| of.runs[*at].bytes_per_response());
    let (low, high) = apart(sizes, UNLIKE_LENGTHS)?;
    Some(
        evidence!("responses of {lowest_bytes} and of {highest_bytes}";
        lowest_bytes = Quantity::bytes(low), highest_bytes = Quantity::bytes(high)),
    )
}

/// Labels of one path and tool with responses of different lengths. Labels about compression differ on purpose.
pub fn other_content(of: &CheckInput<'_>) -> Vec<(Grade, FindingCase)> {
    let mut alike: Vec<(ServedContent, Vec<(&RunGroup, f64)>)> = Vec::new();
    for group in of
        .groups
        .iter()
        .filter(|group| words::compression(&group.label).is_none())
    {
        let Some(run) = group.runs.first().map(|at| &of.runs[*at]) else {
            continue;
        };
        let Some(size) = run.bytes_per_response().filter(|size| *size > 0.0) else {
            continue;
        };
        let content = (
            run.tool,
            run.path().unwrap_or_default(),
            run.load.accept_encoding.as_deref(),
        );
        match alike.iter().position(|(one, _)| *one == content) {
            Some(at) => alike[at].1.push((group, size)),
            None => alike.push((content, vec![(group, size)])),
        }
    }
    let case = |(_, sized): (ServedContent, Vec<(&RunGroup, f64)>)| {
        let (low, high) = apart(sized.iter().map(|(_, size)| *size), UNLIKE_LENGTHS)?;
        let named = |size: f64| {
            sized
                .iter()
                .find(|(_, one)| *one == size)
                .map_or("", |(group, _)| &group.label)
        };
        let evidence = evidence!("{lowest_bytes} a response and {highest_bytes}";
            lowest_bytes = Quantity::bytes(low), highest_bytes = Quantity::bytes(high));
        let label = match named(low) == named(high) {
            true => named(low).to_owned(),
            false => format!("{} → {}", named(low), named(high)),
        };
        Some((
            Grade::Warning,
            FindingCase {
                label,
                runs: runs_of(sized.iter().map(|(group, _)| *group)),
                evidence,
            },
        ))
    };
    alike.into_iter().filter_map(case).collect()
}

/// Tool, path and requested coding of runs whose responses should be equal.
type ServedContent<'r> = (Tool, &'r str, Option<&'r str>);

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
        // A fixed rate is no result.
        .filter(|group| {
            group
                .runs
                .iter()
                .all(|at| of.runs[*at].load.rate_per_s.is_none())
        })
        .filter_map(|group| Some((group, group.rate()?)))
        .collect();
    let single = rated
        .iter()
        .filter(|(group, _)| group.rates.len() == 1)
        .count();
    if rated.len() < 2 || single == 0 {
        return Vec::new();
    }
    let pairs = Pairs::of(of.runs, &rated);
    if pairs.all == 0 {
        return Vec::new();
    }
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
    let told = distance_of(apart);
    if ratio < 1.0 / SAME_EITHER_WAY {
        // The differences below are those of the faster side.
        let faster = change_alone(1.0 / ratio, 1);
        return format!("{faster} the other way round, {told}");
    }
    told
}

/// A ratio this near to 1 is the same in both directions.
const SAME_EITHER_WAY: f64 = 1.05;

fn distance_of(apart: f64) -> String {
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

/// A distance in percent, or as a factor if it is large.
fn apart_by(ratio: f64) -> String {
    if ratio < 2.0 {
        share(ratio - 1.0)
    } else {
        change_alone(ratio, 1)
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
            apart_by(ratio)
        )
    });
    let closest = closest.unwrap_or_default();
    let range = rated
        .iter()
        .fold((f64::MAX, 0.0_f64), |(low, high), (_, rate)| {
            (low.min(*rate), high.max(*rate))
        });
    let evidence = evidence!("{} to {}; of {} {pairs_close} differ by less than {}{closest}",
        Quantity::per_s(range.0), Quantity::per_s(range.1), many(pairs.all, "pair"), share(HAND_WIDE);
        pairs_close = Quantity::count(pairs.near));
    evidence.with([("pairs", Quantity::count(pairs.all))])
}

/// All pairs of labels of which one has a single run.
struct Pairs {
    all: u64,
    near: u64,
    closest: Option<(usize, usize, f64)>,
}

impl Pairs {
    fn of(runs: &[ToolRun], rated: &[(&RunGroup, f64)]) -> Self {
        let mut pairs = Self {
            all: 0,
            near: 0,
            closest: None,
        };
        for (other, (later, fast)) in rated.iter().enumerate() {
            for (one, (earlier, slow)) in rated[..other].iter().enumerate() {
                let ratio = (fast / slow).max(slow / fast);
                if !is_like(runs, earlier, later) {
                    continue;
                }
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

/// Whether two labels had the same load, path and tool, so that their difference may be the setting's.
fn is_like(runs: &[ToolRun], one: &RunGroup, other: &RunGroup) -> bool {
    let first = |group: &RunGroup| group.runs.first().map(|at| &runs[*at]);
    let (Some(one), Some(other)) = (first(one), first(other)) else {
        return false;
    };
    // Settings that a comparison may be about, and those that only decide how long it took, are not compared.
    let ToolLoad {
        connections,
        threads: _,
        duration_s: _,
        requests: _,
        rate_per_s,
        keep_alive: _,
        pipelining,
        accept_encoding: _,
        timeout_s: _,
    } = &one.load;
    let load = &other.load;
    let agree = |one: Option<u64>, other: Option<u64>| {
        one.zip(other).is_none_or(|(one, other)| one == other)
    };
    let same_path = one
        .path()
        .zip(other.path())
        .is_none_or(|(one, other)| one == other);
    let same_load = agree(*connections, load.connections) && agree(*pipelining, load.pipelining);
    one.tool == other.tool && same_load && *rate_per_s == load.rate_per_s && same_path
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
