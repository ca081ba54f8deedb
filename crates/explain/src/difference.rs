//! One variant's costs against another's: by kind, by package and by function, paired by round.
//!
//! **Method.** All services of a variant together, for a request costs what all of them spend on it. In each round in which both
//! variants were captured the difference is taken for every kind, package and function that either has: what vanished stays, with a
//! variant's cost of zero, unless it only [`moved`]. Where several services were profiled, files of their own carry the service's name, so that one `server.js`
//! is not taken for another.
//!
//! **What moved.** A function that only one side has is the same as one that only the other side has where both have the same name, are
//! of the same kind of code and of the same package, and neither side has a second one of which that is true: of another commit, or of
//! another version of its package. Where there are several, such as `handle` of three routers, nobody can tell which became which. Names of
//! one or two letters are those of a minifier, which gives them anew each time; functions without a name of their own are called after
//! their place, and never join.

use std::collections::BTreeMap;

use crate::cost::{by_round, mean_tree};
use crate::explanation::mean;
use crate::{Change, Frame, Interval, Kind, Tree, merge};

/// One variant of a comparison: what a request cost in each round, in microseconds or whatever its trees hold.
#[derive(Debug, Clone, Default)]
pub(crate) struct Side {
    /// By round.
    pub rounds: BTreeMap<u32, Tree>,
}

/// Two variants, round by round.
#[derive(Debug)]
pub(crate) struct Pairs {
    /// The baseline's trees.
    pub baseline: Vec<Tree>,
    /// The variant's, in the same order.
    pub variant: Vec<Tree>,
    /// Whether they are of the same rounds.
    pub paired: bool,
}

/// Where a difference is.
#[derive(Debug)]
pub(crate) struct Difference {
    /// All together.
    pub total: Interval,
    /// By whose code it is.
    pub kinds: Vec<Change<Kind>>,
    /// By package.
    pub packages: Vec<Change<String>>,
    /// By function.
    pub functions: Vec<Change<Frame>>,
    /// Mean of the baseline.
    pub baseline: Tree,
    /// Mean of the variant.
    pub variant: Tree,
}

impl Side {
    /// A variant's services merged. `named` are trees with the service's name where files have to carry it.
    pub fn add(&mut self, round: u32, tree: &Tree, named: Option<&str>) {
        let tree = match named {
            Some(service) => with_name(tree, service),
            None => tree.clone(),
        };
        let sum = match self.rounds.get(&round) {
            Some(sum) => merge(&[(sum, 1.0), (&tree, 1.0)]),
            None => tree,
        };
        self.rounds.insert(round, sum);
    }
}

fn with_name(tree: &Tree, service: &str) -> Tree {
    let mut tree = tree.clone();
    for frame in
        tree.frames.iter_mut().filter(|frame| frame.kind == Kind::Application && !frame.file.is_empty())
    {
        frame.file = format!("{service}: {}", frame.file);
    }
    tree
}

impl Pairs {
    /// The rounds that both have; where there are none, the mean of all that either has.
    pub fn of(baseline: &Side, variant: &Side) -> Pairs {
        let common: Vec<u32> =
            baseline.rounds.keys().copied().filter(|round| variant.rounds.contains_key(round)).collect();
        if common.is_empty() {
            let mean = |side: &Side| vec![mean_tree(&side.rounds.values().cloned().collect::<Vec<_>>())];
            return Pairs { baseline: mean(baseline), variant: mean(variant), paired: false };
        }
        let of = |side: &Side| common.iter().filter_map(|round| side.rounds.get(round).cloned()).collect();
        Pairs { baseline: of(baseline), variant: of(variant), paired: true }
    }

    /// Where they differ.
    pub fn difference(&self) -> Difference {
        let all = |tree: &Tree| BTreeMap::from([((), tree.total())]);
        let totals = |trees: &[Tree]| trees.iter().map(all).collect::<Vec<_>>();
        let total = changes(&totals(&self.baseline), &totals(&self.variant));
        let (baseline, variant) = (mean_tree(&self.baseline), mean_tree(&self.variant));
        Difference {
            total: total.first().map_or(Interval::exactly(0.0), |change| change.difference),
            kinds: self.by(|frame| Some(frame.kind)),
            packages: self.by(Frame::package_name),
            functions: self.functions(moved(&baseline, &variant)),
            baseline,
            variant,
        }
    }

    /// By function; those of the baseline that moved under what they became.
    fn functions(&self, moved: BTreeMap<Frame, Frame>) -> Vec<Change<Frame>> {
        let mut changes = self.by(|frame| Some(moved.get(frame).unwrap_or(frame).clone()));
        let mut was: BTreeMap<Frame, Frame> = moved.into_iter().map(|(from, to)| (to, from)).collect();
        for change in &mut changes {
            change.was = was.remove(&change.what);
        }
        changes
    }

    fn by<K: Ord + Clone>(&self, key: impl Fn(&Frame) -> Option<K>) -> Vec<Change<K>> {
        let sums = |trees: &[Tree]| trees.iter().map(|tree| tree.sums(&key)).collect::<Vec<_>>();
        changes(&sums(&self.baseline), &sums(&self.variant))
    }
}

/// The union of both sides' keys, largest change first.
fn changes<K: Ord + Clone>(baseline: &[BTreeMap<K, f64>], variant: &[BTreeMap<K, f64>]) -> Vec<Change<K>> {
    let rounds = baseline.len().min(variant.len());
    let both = [&baseline[..rounds], &variant[..rounds]].concat();
    let change = |(what, values): (K, Vec<f64>)| {
        let (before, after) = values.split_at(rounds);
        let differences: Vec<f64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
        Change {
            what,
            was: None,
            baseline: mean(before),
            variant: mean(after),
            difference: Interval::over(&differences),
        }
    };
    let mut changes: Vec<Change<K>> = by_round(&both).into_iter().map(change).collect();
    changes.sort_by(|one, other| other.difference.value.abs().total_cmp(&one.difference.value.abs()));
    changes
}

/// Names shorter than this say nothing.
const NAME_CHARS_MIN: usize = 3;

/// What a function is known by where its place has changed: its service where files carry that, its package, whose code it is, its name.
type Known<'a> = (Option<&'a str>, Option<&'a str>, Kind, &'a str);

/// Functions of the baseline that stand elsewhere in the variant, each with what it is there.
pub(crate) fn moved(baseline: &Tree, variant: &Tree) -> BTreeMap<Frame, Frame> {
    let (before, after) = (by_name(baseline), by_name(variant));
    let pair =
        |(known, frames): (&Known<'_>, &Vec<&Frame>)| match (frames.as_slice(), after.get(known)?.as_slice())
        {
            ([from], [to]) if from != to => Some(((*from).clone(), (*to).clone())),
            _ => None,
        };
    before.iter().filter_map(pair).collect()
}

fn by_name(tree: &Tree) -> BTreeMap<Known<'_>, Vec<&Frame>> {
    let mut frames: BTreeMap<Known<'_>, Vec<&Frame>> = BTreeMap::new();
    for frame in tree.frames.iter().filter(|frame| is_named(frame)) {
        frames.entry(known(frame)).or_default().push(frame);
    }
    frames
}

fn is_named(frame: &Frame) -> bool {
    let name = &frame.function;
    !frame.file.is_empty() && !name.starts_with('(') && name.chars().nth(NAME_CHARS_MIN - 1).is_some()
}

fn known(frame: &Frame) -> Known<'_> {
    // As `with_name` puts it in front of a file of the service's own.
    let service =
        frame.file.split_once(": ").map(|(service, _)| service).filter(|_| frame.kind == Kind::Application);
    (service, frame.package.as_ref().map(|package| package.name.as_str()), frame.kind, &frame.function)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Package;
    use crate::tree;

    fn side(rounds: &[&[(&str, Kind, f64)]]) -> Side {
        let mut side = Side::default();
        for (round, parts) in (1..).zip(rounds) {
            for (name, kind, us) in *parts {
                side.add(round, &tree::root(name, *kind, *us), None);
            }
        }
        side
    }

    #[test]
    fn what_vanished_stays_and_rounds_are_pairs() {
        use Kind::{Application, Core};
        let before = side(&[
            &[("gone", Application, 10.0), ("both", Core, 50.0)],
            &[("gone", Application, 12.0), ("both", Core, 70.0)],
        ]);
        let after = side(&[&[("both", Core, 53.0)], &[("both", Core, 75.0)]]);
        let found = Pairs::of(&before, &after).difference();
        assert_eq!(found.functions[0].what.function, "gone");
        assert_eq!((found.functions[0].baseline, found.functions[0].variant), (11.0, 0.0));
        // Machine-wide drift of 20 µs between the rounds is in both and falls out: 3 and 5, not 53 to 75.
        let both = &found.functions[1];
        assert_eq!((both.difference.value, both.baseline), (4.0, 60.0));
        assert!((both.difference.high - (4.0 + 12.706_2)).abs() < 1e-3, "{both:?}");
        assert_eq!(found.total.value, -7.0);
    }

    fn at(function: &str, place: (&str, u32), version: Option<&str>, us: f64) -> Tree {
        let mut tree = tree::root(function, Kind::Application, us);
        let frame = &mut tree.frames[0];
        (frame.file, frame.line) = (place.0.into(), place.1);
        if let Some(version) = version {
            frame.kind = Kind::Middleware;
            frame.package = Some(Package { name: "kept".into(), version: Some(version.into()) });
        }
        tree
    }

    #[test]
    fn what_only_moved_is_one_function_and_what_nobody_can_tell_apart_is_not() {
        let (mut before, mut after) = (Side::default(), Side::default());
        for (function, from, to) in [
            ("check", ("users.js", 30), ("lib/users.js", 42)),
            ("twin", ("a.js", 1), ("a.js", 2)),
            ("t", ("app.js", 1), ("app.js", 2)),
            ("(anonymous a.js:5)", ("a.js", 5), ("b.js", 5)),
        ] {
            before.add(1, &at(function, from, None, 10.0), None);
            after.add(1, &at(function, to, None, 13.0), None);
        }
        after.add(1, &at("twin", ("b.js", 9), None, 1.0), None);
        before.add(1, &at("send", ("index.js", 7), Some("1.0.0"), 5.0), None);
        after.add(1, &at("send", ("index.js", 7), Some("2.0.0"), 4.0), None);
        let found = Pairs::of(&before, &after).difference();
        let of = |name: &str| -> Vec<&Change<Frame>> {
            found.functions.iter().filter(|change| change.what.function.starts_with(name)).collect()
        };
        let [check] = of("check")[..] else { panic!("listed twice: {:?}", of("check")) };
        assert_eq!((check.baseline, check.variant, check.difference.value), (10.0, 13.0, 3.0));
        assert_eq!((check.what.line, check.was.as_ref().map(|was| was.line)), (42, Some(30)));
        assert_eq!(of("send").len(), 1, "of another version it is the same function");
        assert_eq!([of("twin").len(), of("t").len() - of("twin").len(), of("(anon").len()], [3, 2, 2]);
        assert_eq!(
            found.total.value,
            found.functions.iter().map(|change| change.difference.value).sum::<f64>()
        );
    }

    #[test]
    fn without_a_common_round_there_is_no_interval() {
        let before = side(&[&[("f", Kind::Core, 10.0)]]);
        let mut after = Side::default();
        after.add(9, &tree::root("f", Kind::Core, 14.0), None);
        let pairs = Pairs::of(&before, &after);
        assert!(!pairs.paired);
        assert_eq!(pairs.difference().total, Interval::exactly(4.0));
        assert_eq!(Pairs::of(&Side::default(), &Side::default()).difference().total.value, 0.0);
    }

    #[test]
    fn files_of_one_service_are_not_those_of_another() {
        let mut frame = tree::root("handler", Kind::Application, 1.0);
        frame.frames[0].file = "server.js".into();
        let mut side = Side::default();
        side.add(1, &frame, Some("api"));
        side.add(1, &frame, Some("origin"));
        let mut files: Vec<&str> = side.rounds[&1].frames.iter().map(|frame| frame.file.as_str()).collect();
        files.sort_unstable();
        assert_eq!(files, ["api: server.js", "origin: server.js"]);
    }
}
