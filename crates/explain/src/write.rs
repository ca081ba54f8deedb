//! Export of a tree for other tools: folded stacks, V8's `.cpuprofile`, and speedscope files. Returns text or
//! JSON, and writes no files.
//!
//! A tree has no times. If a format needs them, calls follow each other, each as long as its value.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};

use crate::{Frame, Package, Tree, TreeUnit};

/// A function with its place, for formats with a single text: `handle lib/router.js:12 express@5.1.0`.
fn label(frame: &Frame) -> String {
    let mut label = frame.function.clone();
    // The name of an anonymous function already contains its place.
    if !frame.file.is_empty() && !label.contains(&frame.file) {
        label += &format!(" {}", frame.file);
        label.extend((frame.line > 0).then(|| format!(":{}", frame.line)));
    }
    if let Some(Package { name, version }) = &frame.package {
        label += &format!(" {name}");
        label.extend(version.as_ref().map(|version| format!("@{version}")));
    }
    label
}

/// A file as a path that is unambiguous for other tools and can be read back.
fn path(frame: &Frame) -> String {
    match &frame.package {
        Some(package) if !frame.file.is_empty() => {
            format!("node_modules/{}/{}", package.name, frame.file)
        }
        _ => frame.file.clone(),
    }
}

/// Whether a value has a size. Values of zero are omitted.
fn counts(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

/// Deeper calls are added to the function at this depth. V8 takes stacks of at most 255 functions. Each line
/// of this format has its full path, so unlimited paths would make unlimited texts.
const DEPTH_MAX: usize = 512;

/// The tree as folded stacks, as read by flamegraph.pl, inferno and speedscope. One line per path of calls,
/// `a;b;c 123`, sorted by text, in nanoseconds or bytes. A value has up to three decimals. Values that round
/// to zero are omitted.
pub fn folded(tree: &Tree, unit: TreeUnit) -> String {
    let one = if unit == TreeUnit::MicrosPerRequest {
        1e3
    } else {
        1.0
    };
    let labels: Vec<String> = tree.frames.iter().map(folded_label).collect();
    let mut values: BTreeMap<usize, f64> = BTreeMap::new();
    // For each node: its depth, and the node that it is added to.
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
        let callers = std::iter::successors(Some(place), |place| tree.caller(*place));
        let path =
            callers.filter_map(|place| labels.get(tree.nodes[place].frame).map(String::as_str));
        let mut path: Vec<&str> = path.collect();
        path.reverse();
        *lines.entry(path.join(";")).or_insert(0.0) += value;
    }
    let mut text = String::new();
    for (path, value) in lines.into_iter().filter(|(_, value)| value.is_finite()) {
        let number = format!("{value:.3}");
        let number = number.trim_end_matches('0').trim_end_matches('.');
        if !matches!(number, "0" | "-0") {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{path} {number}");
        }
    }
    text
}

/// The label without characters that end a function or a line in this format.
fn folded_label(frame: &Frame) -> String {
    let safe = |c: char| match c {
        ';' => ':',
        c if c.is_control() => ' ',
        c => c,
    };
    label(frame).chars().map(safe).collect()
}

/// The tree as V8's `.cpuprofile`, for DevTools. Each node with a self value is one sample of that length.
/// Values per request are multiplied by a thousand. The format has times only, so a byte becomes a
/// microsecond. It cannot store package versions and times by line. Its key `summed` says that samples are
/// sums.
pub fn cpuprofile(tree: &Tree, unit: TreeUnit) -> Value {
    let one_ns = unit.nanoseconds();
    // IDs from 2, because the root is 1.
    let number = |index: usize| index + 2;
    let (roots, children) = tree.children();
    let numbers = |places: &[usize]| {
        places
            .iter()
            .map(|place| number(*place))
            .collect::<Vec<usize>>()
    };
    let mut nodes = vec![
        json!({ "id": 1, "callFrame": call("(root)", "", 0, "0"), "hitCount": 0, "children": numbers(&roots) }),
    ];
    let (mut samples, mut deltas) = (Vec::new(), Vec::new());
    let (mut total_ns, mut total_us) = (0.0f64, 0i64);
    let mut last_us = 0;
    for (index, node) in tree.nodes.iter().enumerate() {
        let took = counts(node.self_value);
        nodes.push(json!({
            "id": number(index),
            "callFrame": tree.frames.get(node.frame).map_or_else(|| call("(unknown)", "", 0, "0"), call_of),
            "hitCount": u8::from(took),
            "children": numbers(&children[index]),
        }));
        if took {
            samples.push(number(index));
            // The first follows the start at once. Each later one follows the duration of the previous one.
            deltas.push(last_us);
            total_ns += node.self_value * one_ns;
            // Rounded as a sum, so that small values add up correctly. A cast of a float saturates at the
            // bounds of its type.
            let now_us = (total_ns / 1000.0).round() as i64;
            last_us = now_us - total_us;
            total_us = now_us;
        }
    }
    json!({
        "nodes": nodes,
        "startTime": 0,
        "endTime": total_us,
        "samples": samples,
        "timeDeltas": deltas,
        "summed": true,
    })
}

fn call_of(frame: &Frame) -> Value {
    // Code that is not JavaScript has no script, by which DevTools and our reader recognise it.
    if frame.kind.is_javascript() {
        call(&frame.function, &path(frame), frame.line, "1")
    } else {
        call(&frame.function, "", 0, "0")
    }
}

/// A function in this format: lines from 0, -1 if unknown.
fn call(function: &str, url: &str, line: u32, script: &str) -> Value {
    json!({
        "functionName": function,
        "scriptId": script,
        "url": url,
        "lineNumber": i64::from(line) - 1,
        "columnNumber": -1,
    })
}

/// Trees as profiles of one speedscope file, each with its name. Functions are stored once, and each tree as
/// open and close events, which takes no more space than the tree.
pub fn speedscope(trees: &[(String, &Tree)], unit: TreeUnit) -> Value {
    let unit = match unit {
        TreeUnit::MicrosPerRequest => "microseconds",
        TreeUnit::Nanoseconds => "nanoseconds",
        TreeUnit::BytesPerRequest | TreeUnit::Bytes => "bytes",
    };
    let mut frames: Vec<Value> = Vec::new();
    let mut profiles = Vec::new();
    for (name, tree) in trees {
        let first = frames.len();
        frames.extend(tree.frames.iter().map(|frame| {
            let line = (frame.line > 0).then_some(frame.line);
            json!({ "name": label(frame), "file": path(frame), "line": line })
        }));
        let (events, end) = events(tree, first);
        profiles.push(json!({
            "type": "evented",
            "name": name,
            "unit": unit,
            "startValue": 0,
            "endValue": end,
            "events": events,
        }));
    }
    json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "proofload",
        "shared": { "frames": frames },
        "profiles": profiles,
    })
}

/// Open and close events of calls, and the time of the last close.
fn events(tree: &Tree, first: usize) -> (Vec<Value>, f64) {
    let (totals, (roots, children)) = (tree.totals(), tree.children());
    let (mut events, mut at) = (Vec::new(), 0.0);
    let mut open: Vec<(usize, bool)> = roots.into_iter().rev().map(|root| (root, true)).collect();
    while let Some((place, opens)) = open.pop() {
        let node = &tree.nodes[place];
        if !counts(totals[place]) || node.frame >= tree.frames.len() {
            continue;
        }
        if !opens {
            at += node.self_value.max(0.0);
        }
        events.push(
            json!({ "type": if opens { "O" } else { "C" }, "frame": first + node.frame, "at": at }),
        );
        if opens {
            open.push((place, false));
            open.extend(children[place].iter().rev().map(|child| (*child, true)));
        }
    }
    (events, at)
}

#[cfg(test)]
mod tests;
