//! What the page's script is given, as JSON that may stand inside a script element.
//!
//! It gathers, prunes and shortens; it must not draw, and adds no judgement to what the explanation says.

mod gathered;
mod written;

use std::collections::BTreeMap;

use explain::{Explanation, Frame, Interval, Tree};

use super::forest::Forest;

/// Whole trees are written where they take no more than this.
const BYTES_WHOLE_MAX: usize = 1_000_000;
/// What the data may take at most. With the page around it, this stays below 3 MB.
const BYTES_MAX: usize = 2_850_000;
/// Where that is too much, calls below this share of every variant's time are summed up; twice that where it still is, and so on.
const SHARE_MIN: f64 = 0.0002;

/// Everything that the page tells, with all calls.
struct Contents<'a> {
    unit: String,
    variants: Vec<&'a str>,
    groves: Vec<Grove<'a>>,
    /// The comparisons and doubts are of these, where there is one.
    explanation: Option<&'a Explanation>,
}

/// One service's trees of one measure, laid over each other.
struct Grove<'a> {
    service: &'a str,
    measure: &'static str,
    unit: String,
    members: Vec<Member<'a>>,
    forest: Forest<'a>,
}

/// A variant in a grove.
struct Member<'a> {
    /// Index of the variant.
    variant: usize,
    requests: u64,
    /// Its CPU time by the kernel's accounting.
    cpu: Option<Interval>,
    lines: Vec<Line<'a>>,
}

/// What a line of a function costs.
struct Line<'a> {
    frame: &'a Frame,
    line: u32,
    own: f64,
}

/// The page's data for an explanation.
pub(super) fn of_explanation(explanation: &Explanation) -> String {
    fitting(&gathered::of_explanation(explanation))
}

/// The page's data for trees by themselves, with values in `unit`.
pub(super) fn of_trees(trees: &[(&str, &Tree)], unit: &str) -> String {
    fitting(&gathered::of_trees(trees, unit))
}

fn fitting(contents: &Contents<'_>) -> String {
    let whole = written::json(contents, 0.0);
    if whole.len() <= BYTES_WHOLE_MAX {
        return whole;
    }
    let mut share = SHARE_MIN;
    loop {
        let json = written::json(contents, share);
        if json.len() <= BYTES_MAX || share >= 1.0 {
            return json;
        }
        share *= 2.0;
    }
}

/// The most expensive lines of each function of a tree, as far as they matter.
fn lines_of(tree: &Tree) -> Vec<Line<'_>> {
    const LINES_MAX: usize = 3;
    const SHARE_OF_ALL_MIN: f64 = 0.001;
    let mut by_frame: BTreeMap<usize, BTreeMap<u32, f64>> = BTreeMap::new();
    for node in &tree.nodes {
        let lines = by_frame.entry(node.frame).or_default();
        for (line, own) in &node.lines {
            *lines.entry(*line).or_default() += own;
        }
    }
    let limit = tree.total() * SHARE_OF_ALL_MIN;
    let mut out = Vec::new();
    for (index, lines) in by_frame {
        let Some(frame) = tree.frames.get(index) else { continue };
        let mut lines: Vec<_> = lines.into_iter().filter(|(_, own)| *own >= limit && *own > 0.0).collect();
        lines.sort_by(|one, other| other.1.total_cmp(&one.1));
        out.extend(lines.into_iter().take(LINES_MAX).map(|(line, own)| Line { frame, line, own }));
    }
    out
}
