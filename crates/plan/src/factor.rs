//! Factors and levels: which keys levels may set, all their combinations, and the file merged with a
//! combination.
//!
//! It works on trees only, not on the meaning of values.

use std::collections::BTreeMap;

use crate::model::Factor;
use crate::problem::{Problem, did_you_mean, listed};
use crate::shown::{clipped, shown_key};
use crate::tree::{TomlEntry, TomlNode, TomlTable, Value};

/// Keys of the file that a level may set, in addition to services by their names.
pub(crate) const LEVEL_KEYS: [&str; 4] = ["entry", "services", "load", "expect"];
/// Keys of the file that are the same for every variant.
pub(crate) const FIXED_KEYS: [&str; 7] = [
    "name",
    "question",
    "prepare",
    "against",
    "generators",
    "factors",
    "design",
];
/// Further such keys, which are also valid names of services.
const OTHER_FIXED_KEYS: [&str; 3] = ["measure", "tune", "gate"];

/// A report shows this many side by side, and a block runs through all of them.
pub const VARIANTS_MAX: usize = 64;
/// Maximum length of the name of a factor or a level.
pub(crate) const NAME_CHARS_MAX: usize = 40;

/// Rewrites every level from service names (`api.env.X`) to the file's own names (`services.api.env.X`).
///
/// Names that are neither a service nor a key that a level may set are reported and dropped.
pub(crate) fn unfold(tree: &mut TomlNode) -> Vec<Problem> {
    let services: Vec<String> = tree
        .entries(&["services"])
        .iter()
        .map(|entry| entry.key.clone())
        .collect();
    let mut problems = Vec::new();
    let factors = tree
        .entries_mut()
        .iter_mut()
        .filter(|entry| entry.key == "factors");
    for factor in factors.flat_map(|entry| entry.node.entries_mut()) {
        judge_name(factor, "factor", &mut problems);
        for level in factor.node.entries_mut() {
            judge_name(level, "level", &mut problems);
            if let Value::Table(settings) = &mut level.node.value {
                *settings = unfolded(std::mem::take(settings), &services, &mut problems);
            }
        }
    }
    problems
}

/// Names of factors and levels are shown in tables and joined to names of variants.
fn judge_name(entry: &TomlEntry, what: &str, problems: &mut Vec<Problem>) {
    let key = &entry.key;
    let long = key.chars().count() > NAME_CHARS_MAX;
    if key.trim() != key
        || key.is_empty()
        || long
        || key.contains(|c: char| c.is_control() || c == '·')
    {
        let message = format!("{} is not a name for a {what}", shown_key(key));
        let label =
            format!("expected 1 to {NAME_CHARS_MAX} characters, no `·`, no blanks at the ends");
        problems.push(Problem::new(entry.key_span.clone(), message, label));
    }
}

fn unfolded(settings: TomlTable, services: &[String], problems: &mut Vec<Problem>) -> TomlTable {
    let names = services.iter().map(String::as_str);
    let (mut level, mut by_name) = (TomlTable::default(), TomlTable::default());
    for mut entry in settings.entries {
        let key = entry.key.as_str();
        if key == "services"
            && let Value::Table(table) = &mut entry.node.value
        {
            let unknown = table
                .entries
                .extract_if(.., |entry| !services.contains(&entry.key));
            problems
                .extend(unknown.map(|entry| unknown_service(&entry, "services", names.clone())));
        }
        if LEVEL_KEYS.contains(&key) {
            level.entries.push(entry);
        } else if services.contains(&entry.key) {
            by_name.entries.push(entry);
        } else if FIXED_KEYS.contains(&key) || OTHER_FIXED_KEYS.contains(&key) {
            let message = format!("a level cannot set `{key}`, which is the same for all variants");
            let hint = format!("a level sets {}", listed(names.clone().chain(LEVEL_KEYS)));
            problems.push(
                Problem::new(entry.key_span.clone(), message, "not for a level").with_hint(hint),
            );
        } else {
            problems.push(unknown_service(
                &entry,
                "a level sets",
                names.clone().chain(LEVEL_KEYS),
            ));
        }
    }
    if let Some(first) = by_name.entries.first() {
        let (key, span) = ("services".to_owned(), first.key_span.clone());
        let node = TomlNode {
            span: span.clone(),
            value: Value::Table(by_name),
        };
        let twice = level.lay(&TomlTable {
            entries: vec![TomlEntry {
                key,
                key_span: span,
                node,
            }],
        });
        let told = |span| Problem::new(span, "this is set twice in one level", "set before");
        problems.extend(twice.into_iter().map(told));
    }
    level
}

fn unknown_service<'a>(
    entry: &TomlEntry,
    what: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Problem {
    let message = format!("there is no service `{}`", shown_key(&entry.key));
    let hint = did_you_mean(&entry.key, what, known);
    Problem::new(entry.key_span.clone(), message, "unknown service").with_hint(hint)
}

/// Returns the factors of a checked file, and reports wrong numbers of factors and levels and conflicting
/// settings.
///
/// `complete` is whether the file was read without loss. Otherwise missing parts are not reported.
pub(crate) fn factors(tree: &TomlNode, complete: bool, problems: &mut Vec<Problem>) -> Vec<Factor> {
    let mut factors = Vec::new();
    for factor in tree.entries(&["factors"]) {
        let levels = tree.entries(&["factors", &factor.key]).iter();
        let levels: Vec<String> = levels.map(|level| level.key.clone()).collect();
        if levels.len() < 2 && complete {
            let count = if levels.is_empty() { "no" } else { "one" };
            let message = format!(
                "factor `{}` has {count} level and varies nothing",
                clipped(&factor.key)
            );
            problems.push(Problem::new(
                factor.key_span.clone(),
                message,
                "expected at least two levels",
            ));
        }
        if !levels.is_empty() {
            factors.push(Factor {
                name: factor.key.clone(),
                levels,
            });
        }
    }
    problems.extend(set_by_two(tree));
    problems.extend(too_many(tree, &factors));
    factors
}

/// If two factors set the same key, it gets one of the two values, and the other factor's effect would be an
/// illusion.
fn set_by_two(tree: &TomlNode) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut set_by: BTreeMap<String, &str> = BTreeMap::new();
    for factor in tree.entries(&["factors"]) {
        for level in tree.entries(&["factors", &factor.key]) {
            for (path, span) in level
                .node
                .table()
                .map(TomlTable::leaves)
                .unwrap_or_default()
            {
                let owner = *set_by.entry(path.clone()).or_insert(&factor.key);
                if owner != factor.key {
                    let (path, owner, second) =
                        (clipped(&path), clipped(owner), clipped(&factor.key));
                    let message =
                        format!("`{path}` is set by two factors, `{owner}` and `{second}`");
                    let problem = Problem::new(span, message, format!("also set by `{owner}`"));
                    let hint =
                        "let only one factor set it, or no effect can be told from the other";
                    problems.push(problem.with_hint(hint));
                }
            }
        }
    }
    problems
}

pub(crate) fn too_many(tree: &TomlNode, factors: &[Factor]) -> Option<Problem> {
    let count = Grid::new(factors).count_saturating();
    (count > VARIANTS_MAX).then(|| {
        let sizes: Vec<String> = factors
            .iter()
            .map(|factor| factor.levels.len().to_string())
            .collect();
        let message = format!(
            "{} levels make {count} variants, at most {VARIANTS_MAX}",
            sizes.join(" × ")
        );
        let problem = Problem::new(
            tree.key_place(&["factors"]),
            message,
            "too many combinations",
        );
        problem.with_hint("leave out levels, or ask the question in several experiments")
    })
}

/// The file merged with the settings of one level of each factor.
pub(crate) fn laid_over(tree: &TomlNode, levels: &[(&str, &str)]) -> TomlNode {
    let mut laid = tree.clone();
    for (factor, level) in levels {
        let settings = tree
            .entry(&["factors", factor, level])
            .and_then(|entry| entry.node.table());
        if let (Value::Table(root), Some(settings)) = (&mut laid.value, settings) {
            root.lay(settings);
        }
    }
    laid
}

/// Separates the names of levels in the name of a variant.
pub(crate) const SEPARATOR: &str = " · ";

/// All combinations of the levels of some factors, numbered so that the last factor changes fastest.
///
/// ```text
/// app = json, views   node_env = development, production
///
///   0  json  · development
///   1  json  · production
///   2  views · development
///   3  views · production
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid<'a> {
    factors: &'a [Factor],
}

impl<'a> Grid<'a> {
    /// Every factor must have at least one level.
    pub fn new(factors: &'a [Factor]) -> Self {
        assert!(
            factors.iter().all(|factor| !factor.levels.is_empty()),
            "a factor without levels is none"
        );
        Self { factors }
    }

    /// Number of combinations, 1 without factors. `usize::MAX` if it is larger than that.
    pub fn count_saturating(self) -> usize {
        self.factors.iter().fold(1, |count: usize, factor| {
            count.saturating_mul(factor.levels.len())
        })
    }

    /// Index of each factor's level in the combination `index`.
    pub fn levels(self, index: usize) -> Vec<usize> {
        let combinations = |of: &[Factor]| {
            of.iter()
                .map(|factor| factor.levels.len())
                .product::<usize>()
        };
        let faster = |at: usize| combinations(&self.factors[at + 1..]);
        let level = |(at, factor): (usize, &Factor)| index / faster(at) % factor.levels.len();
        self.factors.iter().enumerate().map(level).collect()
    }

    /// Index of the combination of these levels.
    pub fn index(self, levels: &[usize]) -> usize {
        self.factors
            .iter()
            .zip(levels)
            .fold(0, |index, (factor, level)| {
                index * factor.levels.len() + level
            })
    }

    /// Factor and level names of the combination `index`.
    pub fn names(self, index: usize) -> Vec<(&'a str, &'a str)> {
        let levels = self.levels(index);
        let named = |(factor, level): (&'a Factor, usize)| {
            (factor.name.as_str(), factor.levels[level].as_str())
        };
        self.factors.iter().zip(levels).map(named).collect()
    }

    /// Name of the variant with the combination `index`.
    pub fn variant_name(self, index: usize) -> String {
        let levels: Vec<&str> = self
            .names(index)
            .into_iter()
            .map(|(_, level)| level)
            .collect();
        if levels.is_empty() {
            "only".to_owned()
        } else {
            levels.join(SEPARATOR)
        }
    }
}
