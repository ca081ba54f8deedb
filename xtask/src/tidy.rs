//! The house rules as a table. A rule looks at the tree as it was read and tells the places that break it; it must
//! not touch the disk, so that every rule sees the same tree and is tested on a small one.

mod calls;
mod code;
mod directions;
mod header;
mod links;
mod locks;
mod marks;
mod names;
mod sizes;
#[cfg(test)]
mod tests;
mod tree;

use std::fmt;

pub use tree::Tree;

/// A rule of the house: the name it is reported by, and what finds the places that break it.
struct Rule {
    name: &'static str,
    find: fn(&Tree) -> Vec<Finding>,
}

const RULES: [Rule; 9] = [
    Rule { name: "direction", find: directions::find },
    Rule { name: "parses", find: code::find },
    Rule { name: "header", find: header::find },
    Rule { name: "banned-call", find: calls::find },
    Rule { name: "size", find: sizes::find },
    Rule { name: "name", find: names::find },
    Rule { name: "lock-host", find: locks::find },
    Rule { name: "link", find: links::find },
    Rule { name: "mark", find: marks::find },
];

/// A place that breaks a rule: where (the line counts from 1), what is there, and what to do about it.
struct Finding {
    path: String,
    line: usize,
    what: String,
    remedy: &'static str,
}

/// A finding and the rule it breaks. Displayed as `path:line: rule: what: remedy`.
pub struct Violation {
    rule: &'static str,
    finding: Finding,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { path, line, what, remedy } = &self.finding;
        write!(f, "{path}:{line}: {}: {what}: {remedy}", self.rule)
    }
}

/// Everything in the tree that breaks a rule, by file and line.
pub fn violations(tree: &Tree) -> Vec<Violation> {
    let mut all: Vec<Violation> = RULES
        .iter()
        .flat_map(|rule| (rule.find)(tree).into_iter().map(|finding| Violation { rule: rule.name, finding }))
        .collect();
    all.sort_by(|a, b| (&a.finding.path, a.finding.line).cmp(&(&b.finding.path, b.finding.line)));
    all
}
