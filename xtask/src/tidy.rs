//! Table of the house rules. A rule searches the tree in memory and returns the violations. Rules do not
//! access the disk, so that all rules see the same tree and can be tested on a small one.

mod calls;
mod circles;
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
mod types;

pub use tree::SourceTree;

/// A house rule: its name in reports, and the function that finds violations.
type TidyRule = (&'static str, fn(&SourceTree) -> Vec<TidyFinding>);

const RULES: [TidyRule; 12] = [
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
    ("type", types::find),
    ("circle", circles::find),
];

/// A violation: the place (lines count from 1), the problem and the remedy.
pub struct TidyFinding {
    path: String,
    line: usize,
    what: String,
    remedy: &'static str,
}

/// Returns all violations in the tree, by file and line: `path:line: rule: what: remedy`.
pub fn violations(tree: &SourceTree) -> Vec<String> {
    let of_rule = |(rule, find): &TidyRule| {
        find(tree)
            .into_iter()
            .map(|finding| (*rule, finding))
            .collect::<Vec<_>>()
    };
    let mut all: Vec<(&str, TidyFinding)> = RULES.iter().flat_map(of_rule).collect();
    all.sort_by(|(_, a), (_, b)| (&a.path, a.line).cmp(&(&b.path, b.line)));
    let told = |(
        rule,
        TidyFinding {
            path,
            line,
            what,
            remedy,
        },
    )| format!("{path}:{line}: {rule}: {what}: {remedy}");
    all.into_iter().map(told).collect()
}
