//! Factors and levels: what levels may name, every combination of them, and the file with a combination laid over.
//!
//! Works on trees alone; what the resulting values mean is not its business.

use std::collections::BTreeMap;

use crate::check::{clipped, shown_key};
use crate::model::Factor;
use crate::problem::{Problem, did_you_mean, listed};
use crate::tree::{Entry, Node, Table, Value};

/// Keys of the file that a level may set besides services by their names.
pub(crate) const LEVEL_KEYS: [&str; 4] = ["entry", "services", "load", "expect"];
/// Keys of the file that are the same for every variant.
pub(crate) const FIXED_KEYS: [&str; 7] =
    ["name", "question", "prepare", "against", "generators", "factors", "design"];

/// A report has to show this many side by side, and a block has to run through all of them.
pub(crate) const VARIANTS_MAX: usize = 64;
const NAME_CHARS_MAX: usize = 40;

/// Rewrites every level from service names (`api.env.X`) to the file's own names (`services.api.env.X`).
///
/// Names that are neither a service nor a key that a level may set are problems, and dropped.
pub(crate) fn unfold(tree: &mut Node) -> Vec<Problem> {
    let services: Vec<String> = tree
        .entry(&["services"])
        .and_then(|entry| entry.node.table())
        .map(|table| table.keys().map(str::to_owned).collect())
        .unwrap_or_default();
    let mut unfold = Unfold { services, problems: Vec::new() };
    let factors = tree.table_mut().and_then(|root| root.get_mut("factors"));
    for factor in
        factors.and_then(|entry| entry.node.table_mut()).into_iter().flat_map(|table| &mut table.entries)
    {
        unfold.name(factor, "factor");
        for level in factor.node.table_mut().into_iter().flat_map(|table| &mut table.entries) {
            unfold.name(level, "level");
            if let Some(settings) = level.node.table_mut() {
                *settings = unfold.level(std::mem::take(settings));
            }
        }
    }
    unfold.problems
}

struct Unfold {
    services: Vec<String>,
    problems: Vec<Problem>,
}

impl Unfold {
    /// Names of factors and levels are shown in tables and joined to the names of variants.
    fn name(&mut self, entry: &Entry, what: &str) {
        let key = &entry.key;
        let long = key.chars().count() > NAME_CHARS_MAX;
        if key.trim() != key || key.is_empty() || long || key.contains(|c: char| c.is_control() || c == '·')
        {
            let message = format!("{} is not a name for a {what}", shown_key(key));
            let label = format!("expected 1 to {NAME_CHARS_MAX} characters, no `·`, no blanks at the ends");
            self.problems.push(Problem::new(entry.key_span.clone(), message, label));
        }
    }

    fn level(&mut self, settings: Table) -> Table {
        let mut unfolded = Table::default();
        let mut by_name = Table::default();
        for entry in settings.entries {
            if LEVEL_KEYS.contains(&entry.key.as_str()) {
                unfolded.entries.push(entry);
            } else if self.services.contains(&entry.key) {
                by_name.entries.push(entry);
            } else {
                self.unknown(&entry);
            }
        }
        if let Some(table) = unfolded.get_mut("services").and_then(|entry| entry.node.table_mut()) {
            self.drop_unknown_services(table);
        }
        self.move_below_services(&mut unfolded, by_name);
        unfolded
    }

    fn unknown(&mut self, entry: &Entry) {
        let key = shown_key(&entry.key);
        let span = entry.key_span.clone();
        self.problems.push(if FIXED_KEYS.contains(&entry.key.as_str()) {
            let message = format!("a level cannot set `{key}`, which is the same for all variants");
            Problem::new(span, message, "not for a level")
                .with_hint(format!("a level sets {}", self.settable()))
        } else {
            let known = self.services.iter().map(String::as_str).chain(LEVEL_KEYS);
            let hint = did_you_mean(&entry.key, "a level sets", known);
            Problem::new(span, format!("there is no service `{key}`"), "unknown service").with_hint(hint)
        });
    }

    fn settable(&self) -> String {
        listed(self.services.iter().map(String::as_str).chain(LEVEL_KEYS))
    }

    fn drop_unknown_services(&mut self, table: &mut Table) {
        table.entries.retain(|entry| {
            let known = self.services.contains(&entry.key);
            if !known {
                let message = format!("there is no service `{}`", shown_key(&entry.key));
                let hint = did_you_mean(&entry.key, "services", self.services.iter().map(String::as_str));
                self.problems
                    .push(Problem::new(entry.key_span.clone(), message, "unknown service").with_hint(hint));
            }
            known
        });
    }

    fn move_below_services(&mut self, settings: &mut Table, by_name: Table) {
        let Some(first) = by_name.entries.first() else { return };
        let span = first.key_span.clone();
        match settings.get_mut("services") {
            Some(entry) => {
                for span in entry.node.table_mut().map(|table| table.lay(&by_name)).unwrap_or_default() {
                    self.problems.push(Problem::new(span, "this is set twice in one level", "set before"));
                }
            }
            None => settings.entries.push(Entry {
                key: "services".to_owned(),
                key_span: span.clone(),
                node: Node { span, value: Value::Table(by_name) },
            }),
        }
    }
}

/// The factors of a checked file, with what is wrong about their numbers and about what they set together.
///
/// `complete` is whether the file has been read without loss; otherwise nothing is said about what is missing.
pub(crate) fn factors(tree: &Node, complete: bool) -> (Vec<Factor>, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut factors = Vec::new();
    for factor in entries(tree, &["factors"]) {
        let levels: Vec<String> =
            entries(tree, &["factors", &factor.key]).map(|level| level.key.clone()).collect();
        if levels.len() < 2 && complete {
            let count = if levels.is_empty() { "no" } else { "one" };
            let message = format!("factor `{}` has {count} level and varies nothing", clipped(&factor.key));
            problems.push(Problem::new(factor.key_span.clone(), message, "expected at least two levels"));
        }
        if !levels.is_empty() {
            factors.push(Factor { name: factor.key.clone(), levels });
        }
    }
    problems.extend(set_by_two(tree));
    problems.extend(too_many(tree, &factors));
    (factors, problems)
}

/// What two factors set has the value of one of them, and the other's effect would be an illusion.
fn set_by_two(tree: &Node) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut set_by: BTreeMap<String, &str> = BTreeMap::new();
    for factor in entries(tree, &["factors"]) {
        for level in entries(tree, &["factors", &factor.key]) {
            for (path, span) in level.node.table().map(Table::leaves).unwrap_or_default() {
                let owner = *set_by.entry(path.clone()).or_insert(&factor.key);
                if owner != factor.key {
                    let (owner, second) = (clipped(owner), clipped(&factor.key));
                    let message =
                        format!("`{}` is set by two factors, `{owner}` and `{second}`", clipped(&path));
                    let hint = "let only one factor set it, or no effect can be told from the other";
                    problems
                        .push(Problem::new(span, message, format!("also set by `{owner}`")).with_hint(hint));
                }
            }
        }
    }
    problems
}

pub(crate) fn too_many(tree: &Node, factors: &[Factor]) -> Option<Problem> {
    let count = Grid::new(factors).count_saturating();
    (count > VARIANTS_MAX).then(|| {
        let sizes: Vec<String> = factors.iter().map(|factor| factor.levels.len().to_string()).collect();
        let message = format!("{} levels make {count} variants, at most {VARIANTS_MAX}", sizes.join(" × "));
        let problem = Problem::new(tree.key_place(&["factors"]), message, "too many combinations");
        problem.with_hint("leave out levels, or ask the question in several experiments")
    })
}

/// The file with the settings of one level of each factor laid over.
pub(crate) fn laid_over(tree: &Node, levels: &[(&str, &str)]) -> Node {
    let mut laid = tree.clone();
    for (factor, level) in levels {
        let settings = tree.entry(&["factors", factor, level]).and_then(|entry| entry.node.table());
        if let (Some(root), Some(settings)) = (laid.table_mut(), settings) {
            root.lay(settings);
        }
    }
    laid
}

fn entries<'a>(tree: &'a Node, path: &[&str]) -> impl Iterator<Item = &'a Entry> {
    let table = tree.entry(path).and_then(|entry| entry.node.table());
    table.into_iter().flat_map(|table| &table.entries)
}

/// Separates the names of levels in the name of a variant.
pub(crate) const SEPARATOR: &str = " · ";

/// All combinations of the levels of some factors, and their numbers: the last factor changes fastest.
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
    /// Every factor has at least one level.
    pub fn new(factors: &'a [Factor]) -> Self {
        assert!(factors.iter().all(|factor| !factor.levels.is_empty()), "a factor without levels is none");
        Self { factors }
    }

    /// Number of combinations, 1 without factors; `usize::MAX` if it is larger than that.
    pub fn count_saturating(self) -> usize {
        self.factors.iter().fold(1, |count: usize, factor| count.saturating_mul(factor.levels.len()))
    }

    /// Index of each factor's level in the combination `index`.
    pub fn levels(self, index: usize) -> Vec<usize> {
        let mut rest = index;
        let mut levels: Vec<usize> = self
            .factors
            .iter()
            .rev()
            .map(|factor| {
                let level = rest % factor.levels.len();
                rest /= factor.levels.len();
                level
            })
            .collect();
        levels.reverse();
        levels
    }

    /// Index of the combination of these levels.
    pub fn index(self, levels: &[usize]) -> usize {
        self.factors.iter().zip(levels).fold(0, |index, (factor, level)| index * factor.levels.len() + level)
    }

    /// Factor and level names of the combination `index`.
    pub fn names(self, index: usize) -> Vec<(&'a str, &'a str)> {
        let levels = self.levels(index);
        let named =
            |(factor, level): (&'a Factor, usize)| (factor.name.as_str(), factor.levels[level].as_str());
        self.factors.iter().zip(levels).map(named).collect()
    }

    /// Name of the variant with the combination `index`.
    pub fn variant_name(self, index: usize) -> String {
        let levels: Vec<&str> = self.names(index).into_iter().map(|(_, level)| level).collect();
        if levels.is_empty() { "only".to_owned() } else { levels.join(SEPARATOR) }
    }
}
