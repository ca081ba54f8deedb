//! Folded stacks: one line for each path of calls, `a;b;c 123`, as flamegraph.pl, inferno and speedscope read them.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::label;
use crate::{Tree, Unit};

/// What is called from deeper down counts for the function that stands there. V8 takes stacks of at most 255 functions; each line of
/// this format has all of its path, and paths without a limit would make texts without one.
const DEPTH_MAX: usize = 512;

/// The tree in folded stacks, in order of their text: nanoseconds or bytes. A value has up to three decimals; what rounds to nothing is left
/// out.
pub fn folded(tree: &Tree, unit: Unit) -> String {
    let one = if unit == Unit::MicrosPerRequest { 1e3 } else { 1.0 };
    let labels: Vec<String> = tree.frames.iter().map(|frame| one_word(&label(frame))).collect();
    let mut values: BTreeMap<usize, f64> = BTreeMap::new();
    // Of each place: how deep it is, and the place that it counts for.
    let mut shown: Vec<(usize, usize)> = Vec::with_capacity(tree.nodes.len());
    for (index, node) in tree.nodes.iter().enumerate() {
        let (depth, place) = match tree.caller(index).map(|caller| shown[caller]) {
            Some((depth, place)) if depth >= DEPTH_MAX => (depth, place),
            Some((depth, _)) => (depth + 1, index),
            None => (1, index),
        };
        shown.push((depth, place));
        if node.self_value != 0.0 && node.frame < labels.len() {
            *values.entry(place).or_insert(0.0) += node.self_value * one;
        }
    }
    let mut lines: BTreeMap<String, f64> = BTreeMap::new();
    for (place, value) in values {
        *lines.entry(path(tree, place, &labels)).or_insert(0.0) += value;
    }
    let mut text = String::new();
    for (path, value) in lines {
        let number = format!("{value:.3}");
        let number = number.trim_end_matches('0').trim_end_matches('.');
        if !matches!(number, "0" | "-0") && value.is_finite() {
            // Writing to text cannot fail.
            let _ = writeln!(text, "{path} {number}");
        }
    }
    text
}

fn path(tree: &Tree, place: usize, labels: &[String]) -> String {
    let callers = std::iter::successors(Some(place), |place| tree.caller(*place));
    let mut path: Vec<&str> =
        callers.filter_map(|place| labels.get(tree.nodes[place].frame).map(String::as_str)).collect();
    path.reverse();
    path.join(";")
}

/// Without what ends a function or a line in this format.
fn one_word(label: &str) -> String {
    label
        .chars()
        .map(|c| {
            if c == ';' {
                ':'
            } else if c.is_control() {
                ' '
            } else {
                c
            }
        })
        .collect()
}
