//! Whether there are repeats, and whether they can tell a difference from chance.

use std::collections::BTreeMap;

use super::{About, Case, Finding, Grade, finding};
use crate::figure::{change, count, digits, share as percent};
use crate::group::Group;

/// How far apart two single runs of wrk came out on services that were the same: the median of 60 pairs. From the lines
/// without an effect in bench/truth/results/2026-11-21/by-hand.jsonl, two shared virtual cores.
pub const HAND_MEDIAN: f64 = 0.08;
/// What one pair in ten exceeded.
pub const HAND_WIDE: f64 = 0.28;
/// The pair that was furthest apart.
pub const HAND_MAX: f64 = 0.81;

/// Labels with a single run, compared or not.
pub fn one_run(groups: &[Group]) -> Option<Finding> {
    let rated: Vec<(&Group, f64)> = groups.iter().filter_map(|group| Some((group, group.rate()?))).collect();
    let single = rated.iter().filter(|(group, _)| group.rates.len() == 1).count();
    if rated.len() < 2 || single == 0 {
        return None;
    }
    let pairs = Pairs::of(&rated);
    let void = pairs.near > 0;
    let case = if let [(one, slow), (other, fast)] = rated[..] {
        two(one, other, fast / slow)
    } else {
        several(groups, &rated, &pairs)
    };
    let statement = match (rated.len(), void) {
        (2, true) => "one run a side: no conclusion".to_owned(),
        (2, false) => "one run a side: nothing tells chance from the setting".to_owned(),
        (all, true) if single == all => {
            format!("{all} labels, one run each: no conclusion where they are close")
        }
        (all, _) => format!("{single} of {all} labels have one run: nothing tells chance from the setting"),
    };
    let measured = format!(
        "Two services that were the same came out {} apart by single runs of wrk (median of 60 pairs, a shared machine), one pair \
         in ten more than {}, the furthest {}. ",
        percent(HAND_MEDIAN),
        percent(HAND_WIDE),
        percent(HAND_MAX)
    );
    let remedy = measured + "Start each side anew several times, in turns, or let `proofload run` do so.";
    let grade = if void { Grade::Void } else { Grade::Warning };
    finding("one_run", (grade, About::Comparison), vec![case], statement, remedy)
}

fn two(one: &Group, other: &Group, ratio: f64) -> Case {
    Case {
        label: format!("{} → {}", one.label, other.label),
        runs: [one, other].iter().flat_map(|group| group.runs.clone()).collect(),
        evidence: format!("{}: {}", change(ratio), distance(ratio)),
        figures: BTreeMap::from([("ratio", ratio)]),
    }
}

/// How a ratio compares with what chance did on services that were the same.
pub fn distance(ratio: f64) -> String {
    let apart = ratio.max(1.0 / ratio) - 1.0;
    match apart {
        a if a <= HAND_MEDIAN => {
            format!("half of the pairs of equal services differed by more ({})", percent(HAND_MEDIAN))
        }
        a if a <= HAND_WIDE => {
            format!("one pair of equal services in ten differed by more than {}", percent(HAND_WIDE))
        }
        a if a <= HAND_MAX => format!(
            "more than nine of ten pairs of equal services ({}), less than the furthest",
            percent(HAND_WIDE)
        ),
        _ => format!("more than any of 60 pairs of equal services ({})", percent(HAND_MAX)),
    }
}

fn several(groups: &[Group], rated: &[(&Group, f64)], pairs: &Pairs) -> Case {
    let closest = pairs.closest.map(|(one, other, ratio)| {
        // By their numbers in the list of labels, which are short.
        let number =
            |at: usize| groups.iter().position(|group| std::ptr::eq(group, rated[at].0)).unwrap_or(at) + 1;
        let (one, other) = (number(one), number(other));
        format!("; the closest, #{} and #{}, by {}", one.min(other), one.max(other), percent(ratio - 1.0))
    });
    let range =
        rated.iter().fold((f64::MAX, 0.0_f64), |(low, high), (_, rate)| (low.min(*rate), high.max(*rate)));
    let evidence = format!(
        "{} to {}/s; of {} pairs {} differ by less than {}{}",
        digits(range.0),
        digits(range.1),
        count(pairs.all),
        count(pairs.near),
        percent(HAND_WIDE),
        closest.unwrap_or_default()
    );
    Case {
        label: format!("{} labels", rated.len()),
        runs: rated.iter().flat_map(|(group, _)| group.runs.clone()).collect(),
        evidence,
        figures: BTreeMap::from([("pairs", pairs.all as f64), ("pairs_close", pairs.near as f64)]),
    }
}

/// All pairs of labels of which one has a single run.
struct Pairs {
    all: u64,
    near: u64,
    closest: Option<(usize, usize, f64)>,
}

impl Pairs {
    fn of(rated: &[(&Group, f64)]) -> Self {
        let mut order: Vec<usize> = (0..rated.len()).collect();
        order.sort_by(|one, other| rated[*one].1.total_cmp(&rated[*other].1));
        let single: Vec<u64> = order.iter().map(|at| u64::from(rated[*at].0.rates.len() == 1)).collect();
        let mut pairs = Self { all: 0, near: 0, closest: None };
        let (mut start, mut singles, mut singles_before) = (0, 0_u64, 0_u64);
        // By rate, those near a label are a stretch that moves on with it.
        for (end, at) in order.iter().enumerate() {
            while rated[*at].1 / rated[order[start]].1 > 1.0 + HAND_WIDE {
                singles -= single[start];
                start += 1;
            }
            let within = (end - start) as u64;
            pairs.near += if single[end] == 1 { within } else { singles };
            pairs.all += if single[end] == 1 { end as u64 } else { singles_before };
            if let Some(before) = end.checked_sub(1) {
                pairs.consider(order[before], *at, rated[*at].1 / rated[order[before]].1);
            }
            singles += single[end];
            singles_before += single[end];
        }
        pairs
    }

    fn consider(&mut self, one: usize, other: usize, ratio: f64) {
        if self.closest.is_none_or(|(_, _, least)| ratio < least) {
            self.closest = Some((one, other, ratio));
        }
    }
}

/// All repeats of one label before those of the next.
pub fn in_a_row(groups: &[Group]) -> Option<Finding> {
    let repeated: Vec<&Group> = groups.iter().filter(|group| group.rates.len() > 1).collect();
    let in_a_row = |group: &Group| group.runs.windows(2).all(|pair| pair[1] == pair[0] + 1);
    if repeated.len() < 2 || !repeated.iter().all(|group| in_a_row(group)) {
        return None;
    }
    let case = Case {
        label: format!("{} labels", repeated.len()),
        runs: repeated.iter().flat_map(|group| group.runs.clone()).collect(),
        evidence: "as they stand here, all runs of one label come before those of the next".to_owned(),
        figures: BTreeMap::from([("labels", repeated.len() as f64)]),
    };
    finding(
        "in_a_row",
        (Grade::Warning, About::Comparison),
        vec![case],
        "one label was measured after the other, not in turns",
        "Whatever the machine did meanwhile counts as a difference, and the interval does not contain it. Nor does it contain how \
         services differ from one start to the next, unless each run had one of its own.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted_as_if_one_by_one() {
        let rates: Vec<f64> = (0..40).map(|i| 100.0 * (1.0 + f64::from(i * i % 37) / 11.0)).collect();
        let group = |index: usize, single: bool| Group {
            label: index.to_string(),
            runs: vec![index],
            rates: if single { vec![1.0] } else { vec![1.0, 2.0] },
            pooled: None,
        };
        let groups: Vec<Group> = (0..rates.len()).map(|index| group(index, index % 3 > 0)).collect();
        let rated: Vec<(&Group, f64)> = groups.iter().zip(rates).collect();
        let (mut all, mut near) = (0, 0);
        for (at, (one, slow)) in rated.iter().enumerate() {
            for (other, fast) in &rated[at + 1..] {
                if one.rates.len() == 1 || other.rates.len() == 1 {
                    all += 1;
                    near += u64::from((fast / slow).max(slow / fast) <= 1.0 + HAND_WIDE);
                }
            }
        }
        let pairs = Pairs::of(&rated);
        assert_eq!((pairs.all, pairs.near), (all, near));
    }
}
