//! The house rules as a table. A rule looks at the tree as it was read and tells the places that break it; it must
//! not touch the disk, so that every rule sees the same tree and is tested on a small one.

mod calls;
mod code;
mod directions;
mod figures;
mod header;
mod links;
mod locks;
mod marks;
mod names;
mod sizes;
#[cfg(test)]
mod tests;
mod tree;

pub use tree::Tree;

/// The rules of the house: the name each is reported by, and what finds the places that break it.
type Rule = (&'static str, fn(&Tree) -> Vec<Finding>);

const RULES: [Rule; 10] = [
    ("direction", directions::find),
    ("parses", code::find),
    ("header", header::find),
    ("banned-call", calls::find),
    ("figure", figures::find),
    ("size", sizes::find),
    ("name", names::find),
    ("lock-host", locks::find),
    ("link", links::find),
    ("mark", marks::find),
];

/// A place that breaks a rule: where (the line counts from 1), what is there, and what to do about it.
pub struct Finding {
    path: String,
    line: usize,
    what: String,
    remedy: &'static str,
}

/// Everything in the tree that breaks a rule, by file and line: `path:line: rule: what: remedy`.
pub fn violations(tree: &Tree) -> Vec<String> {
    let of_rule =
        |(rule, find): &Rule| find(tree).into_iter().map(|finding| (*rule, finding)).collect::<Vec<_>>();
    let mut all: Vec<(&str, Finding)> = RULES.iter().flat_map(of_rule).collect();
    all.sort_by(|(_, a), (_, b)| (&a.path, a.line).cmp(&(&b.path, b.line)));
    let told =
        |(rule, Finding { path, line, what, remedy })| format!("{path}:{line}: {rule}: {what}: {remedy}");
    all.into_iter().map(told).collect()
}
