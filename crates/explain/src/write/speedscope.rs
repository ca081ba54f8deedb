//! speedscope's own format: functions once, and each tree as frames that open and close, which takes no more room than the tree. A tree
//! has no times: calls stand one after the other, each as long as its value.

use serde_json::{Value, json};

use crate::{Tree, Unit};

/// Trees as profiles of one file, each under its name.
pub fn speedscope(trees: &[(String, &Tree)], unit: Unit) -> Value {
    let unit = match unit {
        Unit::MicrosPerRequest => "microseconds",
        Unit::Nanoseconds => "nanoseconds",
        Unit::BytesPerRequest | Unit::Bytes => "bytes",
    };
    let mut frames: Vec<Value> = Vec::new();
    let mut profiles = Vec::new();
    for (name, tree) in trees {
        let first = frames.len();
        frames.extend(tree.frames.iter().map(|frame| {
            let line = (frame.line > 0).then_some(frame.line);
            json!({ "name": super::label(frame), "file": super::path(frame), "line": line })
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

/// Calls as they open and close, and when the last one closes.
fn events(tree: &Tree, first: usize) -> (Vec<Value>, f64) {
    let (totals, (roots, children)) = (tree.totals(), tree.children());
    let (mut events, mut at) = (Vec::new(), 0.0);
    let mut open: Vec<(usize, bool)> = roots.into_iter().rev().map(|root| (root, true)).collect();
    while let Some((place, opens)) = open.pop() {
        let node = &tree.nodes[place];
        let counts = totals[place].is_finite() && totals[place] > 0.0;
        if !counts || node.frame >= tree.frames.len() {
            continue;
        }
        if !opens {
            at += node.self_value.max(0.0);
        }
        events.push(json!({ "type": if opens { "O" } else { "C" }, "frame": first + node.frame, "at": at }));
        if opens {
            open.push((place, false));
            open.extend(children[place].iter().rev().map(|child| (*child, true)));
        }
    }
    (events, at)
}
