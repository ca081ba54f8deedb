//! V8's `.cpuprofile`, for DevTools: each place that took something is one sample as long as that. What is left out are versions
//! of packages and times by line, for which the format has no place.

use serde_json::{Value, json};

use super::path;
use crate::{Frame, Tree, Unit};

/// The tree as a `.cpuprofile`, of values per request a thousand. The format has times alone: of bytes each is a microsecond. `summed` in
/// it says that samples are sums.
pub fn cpuprofile(tree: &Tree, unit: Unit) -> Value {
    let one_ns = unit.nanoseconds();
    // Numbers from 2: the root of all is 1.
    let number = |index: usize| index + 2;
    let (roots, children) = tree.children();
    let numbers = |places: &[usize]| places.iter().map(|place| number(*place)).collect::<Vec<usize>>();
    let mut nodes = vec![
        json!({ "id": 1, "callFrame": call("(root)", "", 0, "0"), "hitCount": 0, "children": numbers(&roots) }),
    ];
    let (mut samples, mut deltas) = (Vec::new(), Vec::new());
    let (mut total_ns, mut total_us) = (0.0f64, 0i64);
    let mut last_us = 0;
    for (index, node) in tree.nodes.iter().enumerate() {
        let took = node.self_value > 0.0 && node.self_value.is_finite();
        nodes.push(json!({
            "id": number(index),
            "callFrame": tree.frames.get(node.frame).map_or_else(|| call("(unknown)", "", 0, "0"), frame),
            "hitCount": u8::from(took),
            "children": numbers(&children[index]),
        }));
        if took {
            samples.push(number(index));
            // The first follows the start at once; each later one follows what the one before took.
            deltas.push(last_us);
            total_ns += node.self_value * one_ns;
            // Rounded as a sum, so that small ones add up to what they are. A cast of a float ends at the bounds of its type.
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

fn frame(frame: &Frame) -> Value {
    // What is no JavaScript has no script, by which DevTools and our reader know it.
    if frame.kind.is_javascript() {
        call(&frame.function, &path(frame), frame.line, "1")
    } else {
        call(&frame.function, "", 0, "0")
    }
}

/// A function as the format has it: lines from 0, -1 where unknown.
fn call(function: &str, url: &str, line: u32, script: &str) -> Value {
    json!({
        "functionName": function,
        "scriptId": script,
        "url": url,
        "lineNumber": i64::from(line) - 1,
        "columnNumber": -1,
    })
}
