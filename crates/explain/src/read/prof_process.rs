//! The output of `node --prof-process --preprocess` for a `--prof` log: code with names, and ticks with their
//! stacks, innermost first.
//!
//! It becomes the same value as V8's other profile, except for times. Ticks get lost, and nothing is logged
//! while the process waits, so each tick counts the same. The meaning of a virtual machine state is taken
//! from V8. An unknown state counts as running.

use std::collections::HashMap;

use serde::Deserialize;

use super::v8::V8Sample;
use super::{CallFrame, Calls, CpuProfile, NODES_MAX, ProfileReadError, parsed};
use crate::doubt::Note;

const FORMAT: &str = "output of --prof-process --preprocess";
/// States in which V8 runs no JavaScript, numbered as `StateTag` of its API, with their names in the other
/// profile.
const STATES: [(u32, &str); 5] = [
    (1, "(garbage collector)"),
    (2, "(compiler)"),
    (3, "(compiler)"),
    (4, "(compiler)"),
    (8, "(idle)"),
];
/// V8's own time between two ticks.
const OWN_US: i64 = 1000;

/// Reads the output.
///
/// # Errors
/// Returns an error if it is truncated, not JSON, or beyond a limit.
pub fn read(bytes: &[u8]) -> Result<CpuProfile, ProfileReadError> {
    let file: ProfFile = parsed(FORMAT, bytes)?;
    let mut growing = Growing {
        functions: vec![None; file.code.len()],
        code: file.code,
        ..Growing::default()
    };
    let mut ticks = file.ticks;
    ticks.sort_by(|one, other| one.tm.total_cmp(&other.tm));
    let between = ticks
        .windows(2)
        .map(|pair| (pair[1].tm - pair[0].tm) as i64);
    let usual = usual_us(between).unwrap_or(OWN_US);
    let start_us = ticks.first().map_or(0, |tick| tick.tm as i64);
    let after = |ticks: usize| start_us.saturating_add(usual.saturating_mul(ticks as i64));
    let mut samples = Vec::with_capacity(ticks.len());
    for (index, tick) in ticks.iter().enumerate() {
        samples.push(V8Sample {
            at_us: after(index),
            node: growing.place(tick)?,
        });
    }
    let nameless = growing.nameless;
    let notes = [
        (!ticks.is_empty()).then(|| {
            format!("ticks of --prof come irregularly: each counts as {usual} µs, the usual time between two")
        }),
        (nameless > 0).then(|| format!("calls in stacks without a name, left out: {nameless}")),
    ];
    let notes = notes.into_iter().flatten().map(Note::remark).collect();
    let end_us = after(ticks.len());
    Ok(CpuProfile {
        calls: growing.calls,
        ticks: Vec::new(),
        samples,
        end_us,
        summed: true,
        notes,
    })
}

/// The median of the intervals above zero. `None` without any.
pub(crate) fn usual_us(intervals: impl Iterator<Item = i64>) -> Option<i64> {
    stats::middle_by(intervals.filter(|us| *us > 0), |us| *us as f64)
}

#[derive(Deserialize)]
struct ProfFile {
    code: Vec<Option<ProfCode>>,
    ticks: Vec<ProfTick>,
}

#[derive(Default, Deserialize)]
struct ProfCode {
    #[serde(default)]
    name: String,
    #[serde(rename = "type", default)]
    kind: String,
}

/// A tick: microseconds from the start of the process, state of the machine, and pairs of code and offset.
/// Addresses without code may have any size.
#[derive(Deserialize)]
struct ProfTick {
    tm: f64,
    #[serde(default)]
    vm: u32,
    #[serde(default)]
    s: Vec<f64>,
}

/// The tree under construction.
#[derive(Default)]
struct Growing {
    code: Vec<Option<ProfCode>>,
    /// The function of each code, once it is used.
    functions: Vec<Option<u32>>,
    calls: Calls,
    places: HashMap<(Option<u32>, u32), u32>,
    nameless: u64,
}

impl Growing {
    /// The node of a tick's innermost function.
    fn place(&mut self, tick: &ProfTick) -> Result<u32, ProfileReadError> {
        if let Some((_, name)) = STATES.iter().find(|(state, _)| *state == tick.vm) {
            return self.named(name);
        }
        let mut at = None;
        for code in tick.s.iter().step_by(2).rev() {
            match self.function(*code) {
                Some(call) => at = Some(self.below(at, call)?),
                None => self.nameless += 1,
            }
        }
        at.map_or_else(|| self.named("(program)"), Ok)
    }

    /// The node of a function with only a name and no caller.
    fn named(&mut self, name: &str) -> Result<u32, ProfileReadError> {
        let call = self.calls.number(CallFrame::named(name));
        self.below(None, call)
    }

    fn below(&mut self, parent: Option<u32>, call: u32) -> Result<u32, ProfileReadError> {
        if let Some(known) = self.places.get(&(parent, call)) {
            return Ok(*known);
        }
        if self.calls.nodes.len() == NODES_MAX {
            let problem = format!("too many calls, at most {NODES_MAX} are read");
            return Err(ProfileReadError::unusable(FORMAT, problem));
        }
        let node = self.calls.push(call, parent);
        self.places.insert((parent, call), node);
        Ok(node)
    }

    fn function(&mut self, code: f64) -> Option<u32> {
        // Below zero there is no code. A cast of a float saturates at the bounds of its type.
        let index = (code >= 0.0).then_some(code as usize)?;
        if let Some(call) = *self.functions.get(index)? {
            return Some(call);
        }
        let code = self.code.get(index)?.as_ref()?;
        let frame = match code.kind.as_str() {
            "JS" => script(&code.name),
            "SHARED_LIB" => {
                CallFrame::named(code.name.rsplit(['/', '\\']).next().unwrap_or(&code.name))
            }
            _ => CallFrame::named(&code.name),
        };
        let call = self.calls.number(frame);
        self.functions[index] = Some(call);
        Some(call)
    }
}

/// Parses a JavaScript function as V8 logs it: `NAME ADDRESS:LINE:COLUMN`, from 1. Names may be empty or
/// contain spaces.
pub(crate) fn script(text: &str) -> CallFrame {
    let (rest, column) = number_after_colon(text);
    let (rest, line) = number_after_colon(rest);
    let begin = ["file:///", "node:", "/"]
        .iter()
        .filter_map(|start| at_word(rest, start))
        .min();
    let begin = begin
        .or_else(|| rest.find(' ').map(|space| space + 1))
        .unwrap_or(rest.len());
    let (function, url) = rest.split_at(begin);
    CallFrame::at(function.trim(), url, line, column.saturating_sub(1))
}

/// Position of the first word that begins with `start`.
fn at_word(text: &str, start: &str) -> Option<usize> {
    if text.starts_with(start) {
        return Some(0);
    }
    text.find(&format!(" {start}")).map(|space| space + 1)
}

fn number_after_colon(text: &str) -> (&str, u32) {
    match text.rsplit_once(':') {
        Some((rest, digits)) => digits.parse().map_or((text, 0), |number| (rest, number)),
        None => (text, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_as_v8_logs_them() {
        for (text, function, url, line, column) in [
            (
                "handle /srv/app/server.js:12:20",
                "handle",
                "/srv/app/server.js",
                12,
                19,
            ),
            (
                "get url file:///srv/my%20app/a.mjs:3:1",
                "get url",
                "file:///srv/my%20app/a.mjs",
                3,
                0,
            ),
            (
                " node:internal/main/run_main_module:1:1",
                "",
                "node:internal/main/run_main_module",
                1,
                0,
            ),
            (
                "node:internal/bootstrap/realm:1:1",
                "",
                "node:internal/bootstrap/realm",
                1,
                0,
            ),
            (
                "f evalmachine.<anonymous>:1:2",
                "f",
                "evalmachine.<anonymous>",
                1,
                1,
            ),
            ("a b /x y/z.js:1:2", "a b", "/x y/z.js", 1, 1),
        ] {
            let found = script(text);
            assert_eq!(
                (&*found.function, &*found.url, found.line, found.column),
                (function, url, line, column)
            );
        }
        let nameless = script("wasm-function[3]");
        assert_eq!(
            (&*nameless.function, &*nameless.url),
            ("wasm-function[3]", "")
        );
    }
}
