//! One variant vs another: by kind, by package and by function, paired by round, with the explained share of
//! the measured difference.
//!
//! **Method.** All services of a variant are combined, because the cost of a request is the sum over all of
//! them. In each round in which both variants were captured, the difference is computed for every kind,
//! package and function of either. A removed function is kept with a variant's cost of zero, unless it only
//! [`moved`]. If several services were profiled, their files carry the service's name, so that files like
//! `server.js` are not confused.
//!
//! **Moved functions.** Two functions that each exist on one side only are matched if name, kind of code and
//! package are equal. The match must be unique on both sides. They may come from another commit, or from
//! another version of their package. If there are several, such as `handle` of three routers, the match is
//! unknown. Names of one or two letters come from a minifier, which changes them each time. Functions without
//! their own name are named after their place. Neither is matched.
//!
//! **Reconciling.** The difference of CPU time per request was measured by the kernel's accounting in trials
//! without a profiler. Profiles yield another value. Profiled ÷ measured is the explained share. If the
//! measured interval contains zero there is nothing to explain. Below 80 % or above 125 % (its inverse) the
//! reconciliation says so and no cause is reported, because the missing part may be the difference. The
//! profiler's overhead is mentioned if it added more than 10 % to the CPU time of either variant.

use std::collections::BTreeMap;

use model::quantity::{share, small_share};

use crate::cost::{by_round, mean_tree};
use crate::explanation::mean;
use crate::tree::without_waiting;
use crate::{
    CodeKind, CostChange, CostComparison, CostInterval, Frame, Tax, Tree, TreeUnit, merge,
};

/// The cost of a request in each round, in microseconds or the unit of the trees.
pub(crate) type Rounds = BTreeMap<u32, Tree>;

/// The differences between two variants.
#[derive(Debug)]
pub(crate) struct CostDifference {
    /// The profiled comparison, without measured values and without a cause.
    pub comparison: CostComparison,
    /// Means of both sides.
    pub baseline: Tree,
    pub variant: Tree,
    /// Number of rounds in common.
    pub common: usize,
}

/// Merges a service's tree into a variant's. `named` is the service's name to be added to files.
pub(crate) fn add(rounds: &mut Rounds, round: u32, tree: &Tree, named: Option<&str>) {
    let mut tree = tree.clone();
    let own = |frame: &&mut Frame| frame.kind == CodeKind::Application && !frame.file.is_empty();
    if let Some(service) = named {
        for frame in tree.frames.iter_mut().filter(own) {
            frame.file = format!("{service}: {}", frame.file);
        }
    }
    let sum = rounds.entry(round).or_default();
    *sum = merge(&[(sum, 1.0), (&tree, 1.0)]);
}

/// Compares two trees without a record, in any unit such as milliseconds. There is no measurement, so nothing
/// is reconciled and no cause is reported.
pub fn compare_trees(baseline: (&str, &Tree), variant: (&str, &Tree)) -> CostComparison {
    let rounds = |tree: &Tree| Rounds::from([(1, without_waiting(tree))]);
    difference(
        (baseline.0, &rounds(baseline.1)),
        (variant.0, &rounds(variant.1)),
    )
    .comparison
}

/// The differences between two variants with these names, over common rounds. If there are none, between the
/// means of all rounds.
pub(crate) fn difference(baseline: (&str, &Rounds), variant: (&str, &Rounds)) -> CostDifference {
    let common: Vec<u32> = baseline
        .1
        .keys()
        .copied()
        .filter(|round| variant.1.contains_key(round))
        .collect();
    let trees = |of: &Rounds| match common.is_empty() {
        true => vec![mean_tree(of.values())],
        false => common.iter().map(|round| of[round].clone()).collect(),
    };
    let (before, after) = (trees(baseline.1), trees(variant.1));
    let (mean_before, mean_after) = (mean_tree(before.iter()), mean_tree(after.iter()));
    // Moved functions of the baseline, by their function in the variant.
    let moved = moved(&mean_before, &mean_after);
    let mut functions = changes(&before, &after, |frame| {
        Some(moved.get(frame).unwrap_or(frame).clone())
    });
    let mut was: BTreeMap<Frame, Frame> = moved.into_iter().map(|(from, to)| (to, from)).collect();
    functions
        .iter_mut()
        .for_each(|change| change.was = was.remove(&change.what));
    let total = changes(&before, &after, |_| Some(()));
    let total = total
        .first()
        .map_or(CostInterval::exactly(0.0), |change| change.difference);
    let comparison = CostComparison {
        baseline: baseline.0.into(),
        variant: variant.0.into(),
        measured_us: total,
        profiled_us: total,
        explained_share: None,
        kinds: changes(&before, &after, |frame| Some(frame.kind)),
        packages: changes(&before, &after, Frame::package_name),
        functions,
        heap: Vec::new(),
        reconciliation: "two profiles, and nothing measured beside them".into(),
        story: None,
        waiting: None,
    };
    CostDifference {
        comparison,
        baseline: mean_before,
        variant: mean_after,
        common: common.len(),
    }
}

/// The union of both sides' keys, largest change first.
fn changes<K: Ord + Clone>(
    before: &[Tree],
    after: &[Tree],
    key: impl Fn(&Frame) -> Option<K>,
) -> Vec<CostChange<K>> {
    let both: Vec<BTreeMap<K, f64>> = before
        .iter()
        .chain(after)
        .map(|tree| tree.sums(&key))
        .collect();
    let change = |(what, values): (K, Vec<f64>)| {
        let (before, after) = values.split_at(before.len());
        let difference = CostInterval::over(
            before
                .iter()
                .zip(after)
                .map(|(before, after)| after - before),
        );
        let [baseline, variant] =
            [before, after].map(|side| mean(side.iter().copied()).unwrap_or(0.0));
        CostChange {
            what,
            was: None,
            baseline,
            variant,
            difference,
        }
    };
    let mut changes: Vec<CostChange<K>> = by_round(&both).into_iter().map(change).collect();
    changes.sort_by(|one, other| {
        other
            .difference
            .value
            .abs()
            .total_cmp(&one.difference.value.abs())
    });
    changes
}

/// Shorter names are meaningless.
const NAME_CHARS_MIN: usize = 3;

/// The identity of a moved function: its service if files carry it, its package, its kind of code, its name.
type FunctionKey<'a> = (Option<&'a str>, Option<&'a str>, CodeKind, &'a str);

/// Functions of the baseline at another place in the variant, each with its function there.
pub(crate) fn moved(baseline: &Tree, variant: &Tree) -> BTreeMap<Frame, Frame> {
    let (before, after) = (by_name(baseline), by_name(variant));
    let pair = |(known, frames): (&FunctionKey<'_>, &Vec<&Frame>)| match (
        frames.as_slice(),
        after.get(known)?.as_slice(),
    ) {
        ([from], [to]) if from != to => Some(((*from).clone(), (*to).clone())),
        _ => None,
    };
    before.iter().filter_map(pair).collect()
}

fn by_name(tree: &Tree) -> BTreeMap<FunctionKey<'_>, Vec<&Frame>> {
    let mut frames: BTreeMap<FunctionKey<'_>, Vec<&Frame>> = BTreeMap::new();
    for frame in tree.frames.iter().filter(|frame| is_named(frame)) {
        frames.entry(known(frame)).or_default().push(frame);
    }
    frames
}

fn is_named(frame: &Frame) -> bool {
    let name = &frame.function;
    !frame.file.is_empty()
        && !name.starts_with('(')
        && name.chars().nth(NAME_CHARS_MIN - 1).is_some()
}

fn known(frame: &Frame) -> FunctionKey<'_> {
    // As [`add`] prefixes the service's own files.
    let service = frame
        .file
        .split_once(": ")
        .map(|(service, _)| service)
        .filter(|_| frame.kind == CodeKind::Application);
    (
        service,
        frame.package.as_ref().map(|package| package.name.as_str()),
        frame.kind,
        &frame.function,
    )
}

/// Explained share below which no cause is reported.
pub const EXPLAINED_MIN: f64 = 0.8;
/// Explained share above which no cause is reported: the inverse.
pub const EXPLAINED_MAX: f64 = 1.25;
/// Overhead of the profiler, as a fraction of the CPU time, above which the reconciliation mentions it.
pub const TAX_TOLD: f64 = 0.10;
/// Overhead above which it is a doubt.
pub const TAX_DOUBTED: f64 = 0.30;

/// Whether a cause may be reported for this explained share.
pub(crate) fn is_sound(part: f64) -> bool {
    (EXPLAINED_MIN..=EXPLAINED_MAX).contains(&part)
}

/// Profiled ÷ measured, if there is a difference, and a sentence about it. `None` means not measured.
pub(crate) fn reconcile(
    measured: Option<&CostInterval>,
    profiled: f64,
    taxes: &[Tax],
) -> (Option<f64>, String) {
    let (part, mut line) = sentence(measured, profiled);
    let most = taxes
        .iter()
        .map(|tax| tax.cpu_ratio.value - 1.0)
        .fold(0.0, f64::max);
    if most > TAX_TOLD {
        line.push_str(&format!(
            "; the profiler added up to {} to the CPU time",
            share(most)
        ));
    }
    (part, line)
}

fn sentence(measured: Option<&CostInterval>, profiled: f64) -> (Option<f64>, String) {
    let us = |value: f64| {
        TreeUnit::MicrosPerRequest
            .difference(&CostInterval::exactly(value))
            .0
    };
    let Some(measured) = measured.filter(|measured| measured.is_finite()) else {
        let line = "the comparison has no figure of CPU time per request, so that nothing tells how much the profiles explain";
        return (None, line.to_owned());
    };
    if !measured.excludes_zero() {
        let (value, ends) = TreeUnit::MicrosPerRequest.difference(measured);
        let ends = ends.map(|ends| format!(", {ends}")).unwrap_or_default();
        return (
            None,
            format!("no difference in CPU time per request to explain ({value}{ends})"),
        );
    }
    let difference = format!("{}/request", us(measured.value));
    let part = profiled / measured.value;
    if !part.is_finite() {
        return (
            None,
            format!("profiles cannot be compared with {difference}"),
        );
    }
    let line = match part {
        part if part < 0.0 => format!(
            "profiles do not explain {difference}: they see {}",
            us(profiled)
        ),
        part if part < EXPLAINED_MIN => {
            format!(
                "profiles explain only {} of {difference}: too little to tell a cause",
                small_share(part)
            )
        }
        part if part > EXPLAINED_MAX => {
            let part = small_share(part);
            format!(
                "profiles explain {part} of {difference}: more than there is, so no cause is told"
            )
        }
        part => format!("profiles explain {} of {difference}", share(part)),
    };
    (Some(part), line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Package, tree};

    fn compared(before: &Rounds, after: &Rounds) -> CostDifference {
        difference(("before", before), ("after", after))
    }

    fn side(rounds: &[&[(&str, CodeKind, f64)]]) -> Rounds {
        let mut side = Rounds::new();
        for (round, parts) in (1..).zip(rounds) {
            for (name, kind, us) in *parts {
                add(&mut side, round, &tree::root(name, *kind, *us), None);
            }
        }
        side
    }

    #[test]
    fn what_vanished_stays_and_rounds_are_pairs() {
        use CodeKind::{Application, Core};
        let before = side(&[
            &[("gone", Application, 10.0), ("both", Core, 50.0)],
            &[("gone", Application, 12.0), ("both", Core, 70.0)],
        ]);
        let after = side(&[&[("both", Core, 53.0)], &[("both", Core, 75.0)]]);
        let found = compared(&before, &after).comparison;
        assert_eq!(found.functions[0].what.function, "gone");
        assert_eq!(
            (found.functions[0].baseline, found.functions[0].variant),
            (11.0, 0.0)
        );
        // A machine-wide drift of 20 µs between the rounds is in both and cancels out: 3 and 5, not 53 to 75.
        let both = &found.functions[1];
        assert_eq!((both.difference.value, both.baseline), (4.0, 60.0));
        assert!(
            (both.difference.high - (4.0 + 12.706_2)).abs() < 1e-3,
            "{both:?}"
        );
        assert_eq!(found.profiled_us.value, -7.0);
    }

    fn at(function: &str, place: (&str, u32), version: Option<&str>, us: f64) -> Tree {
        let mut tree = tree::root(function, CodeKind::Application, us);
        let frame = &mut tree.frames[0];
        (frame.file, frame.line) = (place.0.into(), place.1);
        if let Some(version) = version {
            frame.kind = CodeKind::Middleware;
            frame.package = Some(Package {
                name: "kept".into(),
                version: Some(version.into()),
            });
        }
        tree
    }

    #[test]
    fn what_only_moved_is_one_function_and_what_nobody_can_tell_apart_is_not() {
        let (mut before, mut after) = (Rounds::new(), Rounds::new());
        for (function, from, to) in [
            ("check", ("users.js", 30), ("lib/users.js", 42)),
            ("twin", ("a.js", 1), ("a.js", 2)),
            ("t", ("app.js", 1), ("app.js", 2)),
            ("(anonymous a.js:5)", ("a.js", 5), ("b.js", 5)),
        ] {
            add(&mut before, 1, &at(function, from, None, 10.0), None);
            add(&mut after, 1, &at(function, to, None, 13.0), None);
        }
        add(&mut after, 1, &at("twin", ("b.js", 9), None, 1.0), None);
        add(
            &mut before,
            1,
            &at("send", ("index.js", 7), Some("1.0.0"), 5.0),
            None,
        );
        add(
            &mut after,
            1,
            &at("send", ("index.js", 7), Some("2.0.0"), 4.0),
            None,
        );
        let found = compared(&before, &after).comparison;
        let of = |name: &str| -> Vec<&CostChange<Frame>> {
            found
                .functions
                .iter()
                .filter(|change| change.what.function.starts_with(name))
                .collect()
        };
        let [check] = of("check")[..] else {
            panic!("listed twice: {:?}", of("check"))
        };
        assert_eq!(
            (check.baseline, check.variant, check.difference.value),
            (10.0, 13.0, 3.0)
        );
        assert_eq!(
            (check.what.line, check.was.as_ref().map(|was| was.line)),
            (42, Some(30))
        );
        assert_eq!(
            of("send").len(),
            1,
            "of another version it is the same function"
        );
        assert_eq!(
            [
                of("twin").len(),
                of("t").len() - of("twin").len(),
                of("(anon").len()
            ],
            [3, 2, 2]
        );
        assert_eq!(
            found.profiled_us.value,
            found
                .functions
                .iter()
                .map(|change| change.difference.value)
                .sum::<f64>()
        );
    }

    #[test]
    fn without_a_common_round_there_is_no_interval() {
        let before = side(&[&[("f", CodeKind::Core, 10.0)]]);
        let mut after = Rounds::new();
        add(&mut after, 9, &tree::root("f", CodeKind::Core, 14.0), None);
        let found = compared(&before, &after);
        assert_eq!(found.common, 0);
        assert_eq!(found.comparison.profiled_us, CostInterval::exactly(4.0));
        assert_eq!(
            compared(&Rounds::new(), &Rounds::new())
                .comparison
                .profiled_us
                .value,
            0.0
        );
    }

    #[test]
    fn files_of_one_service_are_not_those_of_another() {
        let mut frame = tree::root("handler", CodeKind::Application, 1.0);
        frame.frames[0].file = "server.js".into();
        let mut side = Rounds::new();
        add(&mut side, 1, &frame, Some("api"));
        add(&mut side, 1, &frame, Some("origin"));
        let mut files: Vec<&str> = side[&1]
            .frames
            .iter()
            .map(|frame| frame.file.as_str())
            .collect();
        files.sort_unstable();
        assert_eq!(files, ["api: server.js", "origin: server.js"]);
    }

    #[test]
    fn a_share_within_the_limits_is_told_and_one_beyond_says_why_no_cause_is() {
        let tax = |ratio: f64| Tax {
            cpu_ratio: CostInterval::exactly(ratio),
            throughput_ratio: CostInterval::exactly(1.0),
        };
        let told = |profiled: f64, ends: Option<(f64, f64)>, most: f64| {
            let measured = ends.map(|(low, high)| CostInterval {
                value: (low + high) / 2.0,
                low,
                high,
            });
            reconcile(measured.as_ref(), profiled, &[tax(1.04), tax(most)])
        };
        let hundred = (90.0, 110.0);
        for (profiled, ends, share, line) in [
            (
                76.44,
                (80.0, 88.0),
                Some(0.91),
                "profiles explain 91 % of +84.0 µs/request",
            ),
            (
                -76.44,
                (-88.0, -80.0),
                Some(0.91),
                "profiles explain 91 % of −84.0 µs/request",
            ),
            (
                80.0,
                hundred,
                Some(0.8),
                "profiles explain 80 % of +100 µs/request",
            ),
            (
                125.0,
                hundred,
                Some(1.25),
                "profiles explain 125 % of +100 µs/request",
            ),
            (
                79.9,
                hundred,
                Some(0.799),
                "only 79.9 % of +100 µs/request: too little to tell a cause",
            ),
            (
                125.1,
                hundred,
                Some(1.251),
                "% of +100 µs/request: more than there is, so no cause is told",
            ),
            (
                -40.0,
                hundred,
                Some(-0.4),
                "profiles do not explain +100 µs/request: they see −40.0 µs",
            ),
            (
                50.0,
                (-5.0, 11.0),
                None,
                "no difference in CPU time per request to explain (+3.0 µs, −5.0",
            ),
            (
                50.0,
                (0.0, 11.0),
                None,
                "no difference in CPU time per request to explain",
            ),
        ] {
            let (found, said) = told(profiled, Some(ends), 1.05);
            assert_eq!(
                found.map(|share| (share * 1e6).round() / 1e6),
                share,
                "{said}"
            );
            assert!(said.contains(line), "{said}");
        }
        assert!(
            is_sound(0.8) && is_sound(1.25) && ![0.799, 1.251, f64::NAN].into_iter().any(is_sound)
        );
        let (_, taxed) = told(10.0, Some((9.0, 11.0)), 1.14);
        assert!(
            taxed.ends_with("; the profiler added up to 14 % to the CPU time"),
            "{taxed}"
        );
        for (profiled, ends) in [
            (1.0, Some((1.0, f64::INFINITY))),
            (f64::NAN, Some(hundred)),
            (1.0, None),
        ] {
            assert_eq!(told(profiled, ends, 1.0).0, None, "{profiled} {ends:?}");
        }
    }
}
