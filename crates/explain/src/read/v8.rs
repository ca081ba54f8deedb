//! V8's profiles as its inspector protocol defines them. CPU time: `.cpuprofile` (`Profiler.Profile`). Heap:
//! `.heapprofile` (`HeapProfiler.SamplingHeapProfile`), bytes that were allocated and still live at the end,
//! by allocating stack. Written by Node.js, Chrome and compatible tools.
//!
//! A file may contain anything: cycles of calls are cut, and nothing is followed by recursion. This module
//! computes no times, and does not decide whose code a function is.

use std::borrow::Cow;
use std::collections::HashMap;

use indexmap::IndexSet;
use model::quantity::{count, many};
use serde::Deserialize;

use super::{ProfileReadError, bounded, parsed};
use crate::doubt::Note;
use crate::label::clean;

const CPU: &str = ".cpuprofile";
const HEAP: &str = ".heapprofile";
/// Maximum stored length of an address, because inline modules contain all their code in it.
const URL_CHARS_MAX: usize = 2048;
/// Stands for a call that is missing in the profile.
pub(crate) const NO_NODE: u32 = u32::MAX;
/// Maximum size of a heap profile. V8 writes some megabytes. Reading takes up to eight times as much memory.
const HEAP_BYTES_MAX: usize = 64 << 20;
/// Maximum depth of JSON. V8 stores 128 calls of a stack.
const LEVELS_MAX: usize = 400;

/// A function and its position.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CallFrame {
    /// Its name. Empty if it has none.
    pub function: Box<str>,
    /// Address of its script. Empty if there is none.
    pub url: Box<str>,
    /// Whether it belongs to a script. A function with neither script nor address is not JavaScript.
    pub scripted: bool,
    /// Line at which it begins, from 1. 0 if unknown.
    pub line: u32,
    /// Column at which it begins, from 0.
    pub column: u32,
}

impl CallFrame {
    /// A function with only a name.
    pub fn named(function: &str) -> Self {
        Self::at(function, "", 0, 0)
    }

    /// A function of a script, at a line from 1 and a column from 0.
    pub fn at(function: &str, url: &str, line: u32, column: u32) -> Self {
        let short = url
            .char_indices()
            .nth(URL_CHARS_MAX)
            .map_or(url, |(end, _)| &url[..end]);
        Self {
            function: clean(function).into(),
            url: short.into(),
            scripted: !url.is_empty(),
            line,
            column,
        }
    }

    /// Whether it is WebAssembly.
    pub fn is_wasm(&self) -> bool {
        self.url.starts_with("wasm:")
    }

    /// Whether it is JavaScript, which names its callees without a script.
    pub fn is_javascript(&self) -> bool {
        self.scripted && !self.is_wasm()
    }
}

/// The JSON form: lines and columns from 0, -1 if unknown.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawCall<'a> {
    #[serde(borrow, default)]
    function_name: Cow<'a, str>,
    #[serde(borrow)]
    script_id: Option<ScriptId<'a>>,
    #[serde(borrow, default)]
    url: Cow<'a, str>,
    #[serde(default = "unknown")]
    line_number: f64,
    #[serde(default = "unknown")]
    column_number: f64,
}

/// Usually text, sometimes a number. Empty and zero mean no script.
#[derive(Deserialize)]
#[serde(untagged)]
enum ScriptId<'a> {
    Number(f64),
    Text(#[serde(borrow)] Cow<'a, str>),
}

fn unknown() -> f64 {
    -1.0
}

impl RawCall<'_> {
    fn frame(&self) -> CallFrame {
        // A cast of a float saturates at the bounds of its type.
        let (line, column) = ((self.line_number + 1.0) as u32, self.column_number as u32);
        let mut frame = CallFrame::at(&self.function_name, &self.url, line, column);
        frame.scripted |= match &self.script_id {
            Some(ScriptId::Number(number)) => *number > 0.0,
            Some(ScriptId::Text(text)) => !matches!(&**text, "" | "0"),
            None => false,
        };
        frame
    }
}

/// The call tree.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Calls {
    /// The functions, each once. Never more than nodes, whose number is limited.
    pub functions: IndexSet<CallFrame>,
    /// The nodes, callers before callees.
    pub nodes: Vec<CallNode>,
}

/// A node in the call tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallNode {
    /// Index of its function.
    pub call: u32,
    pub parent: Option<u32>,
}

impl Calls {
    pub fn number(&mut self, frame: CallFrame) -> u32 {
        self.functions.insert_full(frame).0 as u32
    }

    /// Adds a node of a function.
    pub fn push(&mut self, call: u32, parent: Option<u32>) -> u32 {
        self.nodes.push(CallNode { call, parent });
        (self.nodes.len() - 1) as u32
    }
}

/// A profile of CPU time: the running function of each sample.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuProfile {
    pub(crate) calls: Calls,
    /// Samples by line, ordered by node.
    pub(crate) ticks: Vec<LineTick>,
    /// In order of time.
    pub(crate) samples: Vec<V8Sample>,
    /// End time: CLOCK_MONOTONIC in microseconds, as in Node.js on Linux.
    pub(crate) end_us: i64,
    /// Whether the samples are sums instead of moments. Their distances then say nothing about regularity.
    pub(crate) summed: bool,
    pub(crate) notes: Vec<Note>,
}

/// The function running at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct V8Sample {
    /// On the clock of the profile's end.
    pub at_us: i64,
    /// The node. [`NO_NODE`] if it is missing in the profile.
    pub node: u32,
}

/// Number of samples of a node in this line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct LineTick {
    #[serde(skip)]
    pub node: u32,
    pub line: u32,
    pub ticks: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CpuFile<'a> {
    #[serde(borrow)]
    nodes: Vec<RawNode<'a>>,
    samples: Option<Vec<u32>>,
    /// V8 writes integer microseconds, other tools do not.
    time_deltas: Option<Vec<f64>>,
    #[serde(default)]
    start_time: f64,
    end_time: Option<f64>,
    /// Our extension: the samples are sums.
    #[serde(default)]
    summed: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawNode<'a> {
    id: u32,
    #[serde(borrow)]
    call_frame: RawCall<'a>,
    #[serde(default)]
    children: Vec<u32>,
    /// The form used in traces.
    parent: Option<u32>,
    #[serde(default)]
    position_ticks: Vec<LineTick>,
}

impl CpuProfile {
    /// Reads a CPU profile.
    ///
    /// # Errors
    /// Returns an error if it is truncated, not JSON, without samples, or beyond a limit. Contradictory data
    /// is read as far as it makes sense, and noted.
    pub fn read(bytes: &[u8]) -> Result<Self, ProfileReadError> {
        let file: CpuFile<'_> = parsed(CPU, bytes)?;
        let Some(ids) = file.samples else {
            return Err(ProfileReadError::unusable(
                CPU,
                "has no samples: nothing tells when a function ran",
            ));
        };
        let mut profile = Self {
            calls: Calls::default(),
            ticks: Vec::new(),
            samples: Vec::new(),
            // A cast of a float saturates at the bounds of its type.
            end_us: file.end_time.map_or(i64::MIN, |time| time.round() as i64),
            summed: file.summed,
            notes: Vec::new(),
        };
        let places = profile.arrange(&file.nodes);
        let moments = profile.moments(file.start_time.round() as i64, file.time_deltas, ids.len());
        let node = |id| places.get(id).copied().unwrap_or(NO_NODE);
        let samples = ids.iter().zip(moments).map(|(id, at_us)| V8Sample {
            at_us,
            node: node(id),
        });
        profile.samples = samples.collect();
        let unknown = profile
            .samples
            .iter()
            .filter(|sample| sample.node == NO_NODE)
            .count();
        let all = profile.samples.len();
        profile.note(
            unknown,
            &format!(
                "of {} are of calls that the profile does not have: counted as (unknown)",
                many(all as u64, "sample")
            ),
        );
        // V8 writes some a little late, from another thread.
        let back = profile
            .samples
            .windows(2)
            .filter(|pair| pair[1].at_us < pair[0].at_us)
            .count();
        if back > 0 {
            let text = match back {
                1 => "1 sample is older than the one before: brought into the order of time"
                    .to_owned(),
                _ => format!(
                    "{} samples are older than the one before: brought into the order of time",
                    count(back as u64)
                ),
            };
            profile.notes.push(Note::aside(text));
            profile.samples.sort_by_key(|sample| sample.at_us);
        }
        Ok(profile)
    }

    fn note(&mut self, count: usize, what: &str) {
        if count > 0 {
            self.notes.push(Note::remark(format!("{count} {what}")));
        }
    }

    /// The times of the samples.
    fn moments(&mut self, start_us: i64, deltas: Option<Vec<f64>>, samples: usize) -> Vec<i64> {
        let deltas = deltas.unwrap_or_else(|| {
            if samples > 0 {
                self.notes.push(Note::remark(
                    "no times between samples: taken as evenly spread",
                ));
            }
            let span = self.end_us.saturating_sub(start_us).max(0);
            vec![(span / samples.max(1) as i64) as f64; samples]
        });
        if deltas.len() != samples {
            let (samples, times) = (
                many(samples as u64, "sample"),
                many(deltas.len() as u64, "time"),
            );
            let text = format!("{samples} and {times} between them: the rest is left out");
            self.notes.push(Note::remark(text));
        }
        let mut at = start_us;
        let moment = |us: f64| {
            at = at.saturating_add(us.round() as i64);
            at
        };
        deltas.into_iter().map(moment).collect()
    }

    /// Adds nodes, callers first, with their lines. Returns the new index of each node ID.
    fn arrange(&mut self, raw: &[RawNode<'_>]) -> HashMap<u32, u32> {
        let mut index_of: HashMap<u32, u32> = HashMap::with_capacity(raw.len());
        let mut twice = 0;
        for (index, node) in (0..).zip(raw) {
            twice += usize::from(*index_of.entry(node.id).or_insert(index) != index);
        }
        let (parents, wrong) = callers(raw, &index_of);
        let (order, circles) = callers_first(&parents);
        self.note(
            twice,
            "calls have the number of another one: they count for nothing",
        );
        self.note(
            wrong,
            "links between calls lead nowhere, or to a call that has a caller already: left out",
        );
        self.note(circles, "circles of calls: cut open");
        let mut place_of = vec![NO_NODE; raw.len()];
        for (index, parent) in order {
            let node = &raw[index];
            let call = self.calls.number(node.call_frame.frame());
            let place = self.calls.push(call, parent);
            place_of[index] = place;
            let told = node
                .position_ticks
                .iter()
                .filter(|tick| tick.line > 0 && tick.ticks > 0);
            self.ticks.extend(told.map(|tick| LineTick {
                node: place,
                ..*tick
            }));
        }
        self.ticks
            .sort_unstable_by_key(|tick| (tick.node, tick.line));
        index_of
            .values_mut()
            .for_each(|index| *index = place_of[*index as usize]);
        index_of
    }
}

/// The caller of each node, by index, and the number of invalid links.
fn callers(raw: &[RawNode<'_>], index_of: &HashMap<u32, u32>) -> (Vec<Option<u32>>, usize) {
    let mut parents = vec![None; raw.len()];
    let mut wrong = 0;
    let mut link = |child: Option<u32>, parent: Option<u32>| match (child, parent) {
        (Some(child), Some(parent))
            if parents[child as usize].is_none_or(|known| known == parent) =>
        {
            parents[child as usize] = Some(parent);
        }
        _ => wrong += 1,
    };
    for (index, node) in (0..).zip(raw) {
        node.children
            .iter()
            .for_each(|child| link(index_of.get(child).copied(), Some(index)));
    }
    for (index, node) in (0..).zip(raw) {
        node.parent
            .iter()
            .for_each(|parent| link(Some(index), index_of.get(parent).copied()));
    }
    (parents, wrong)
}

/// Orders calls so that callers come before callees. `parents` contains the caller of each. Returns the index
/// of each with the position of its caller, and the number of cycles that were cut. There must be fewer than
/// 2³² of them.
fn callers_first(parents: &[Option<u32>]) -> (Vec<(usize, Option<u32>)>, usize) {
    let (mut order, mut circles) = (Vec::with_capacity(parents.len()), 0);
    let mut places: Vec<Option<u32>> = vec![None; parents.len()];
    let mut is_open = vec![false; parents.len()];
    for start in 0..parents.len() {
        // Up to a caller that has a position, or to a node seen on this path: a cycle, whose last node
        // becomes a root.
        let (mut open, mut next) = (Vec::new(), Some(start));
        while let Some(node) = next.filter(|node| places.get(*node).is_some_and(Option::is_none)) {
            if std::mem::replace(&mut is_open[node], true) {
                circles += 1;
                break;
            }
            open.push(node);
            next = parents[node].map(|parent| parent as usize);
        }
        for node in open.into_iter().rev() {
            let parent = parents[node].and_then(|parent| *places.get(parent as usize)?);
            places[node] = Some(order.len() as u32);
            order.push((node, parent));
        }
    }
    (order, circles)
}

/// A heap profile.
#[derive(Debug, Clone, PartialEq)]
pub struct HeapProfile {
    pub(crate) calls: Calls,
    /// Bytes allocated at each node.
    pub(crate) bytes: Vec<f64>,
}

#[derive(Deserialize)]
struct HeapFile<'a> {
    #[serde(borrow)]
    head: Option<HeapCall<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeapCall<'a> {
    #[serde(borrow)]
    call_frame: RawCall<'a>,
    #[serde(default)]
    self_size: f64,
    #[serde(borrow, default)]
    children: Vec<HeapCall<'a>>,
}

impl HeapProfile {
    /// Reads a heap profile. The file is a nested tree with two JSON levels per call, and its parser
    /// recurses, so its size and depth are checked first.
    ///
    /// # Errors
    /// Returns an error if it is truncated, not JSON, not a call tree, larger than 64 MB, or deeper than some
    /// 200 calls.
    pub fn read(bytes: &[u8]) -> Result<Self, ProfileReadError> {
        if bytes.len() > HEAP_BYTES_MAX {
            let problem = format!(
                "too large, at most {HEAP_BYTES_MAX}; capture for a shorter time, or less often"
            );
            return Err(ProfileReadError::unusable(
                &format!("profile of {} bytes", bytes.len()),
                problem,
            ));
        }
        let bytes = bounded(HEAP, bytes)?;
        if levels(bytes) > LEVELS_MAX {
            let problem =
                format!("more than {LEVELS_MAX} levels deep: sample stacks of fewer calls");
            return Err(ProfileReadError::unusable(HEAP, problem));
        }
        let mut parser = serde_json::Deserializer::from_slice(bytes);
        parser.disable_recursion_limit();
        let file = HeapFile::deserialize(&mut parser).and_then(|file| parser.end().map(|()| file));
        let file = file.map_err(|error| ProfileReadError::json(HEAP, bytes, &error))?;
        let no_head = || ProfileReadError::unusable(HEAP, "has no head: there is no tree in it");
        let (mut calls, mut sizes) = (Calls::default(), Vec::new());
        let mut open = vec![(file.head.ok_or_else(no_head)?, None)];
        while let Some((of, parent)) = open.pop() {
            let call = calls.number(of.call_frame.frame());
            let place = calls.push(call, parent);
            sizes.push(if of.self_size.is_finite() {
                of.self_size.max(0.0)
            } else {
                0.0
            });
            let children = of.children.into_iter().rev();
            open.extend(children.map(|child| (child, Some(place))));
        }
        Ok(HeapProfile {
            calls,
            bytes: sizes,
        })
    }
}

/// The nesting depth of lists and objects.
fn levels(json: &[u8]) -> usize {
    let (mut depth, mut most, mut in_text, mut is_escaped) = (0usize, 0, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_text,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => depth += 1,
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn circles_are_cut_open_and_nothing_is_lost() {
        // 0 → 1; 2 ⇄ 3 with 4 below; 5 calls itself; 6 is called by a missing node.
        let found = callers_first(&[None, Some(0), Some(3), Some(2), Some(2), Some(5), Some(99)]);
        let order = vec![
            (0, None),
            (1, Some(0)),
            (3, None),
            (2, Some(2)),
            (4, Some(3)),
            (5, None),
            (6, None),
        ];
        assert_eq!(found, (order, 2));
    }

    proptest! {
        #[test]
        fn every_call_has_one_place_after_its_caller(links in prop::collection::vec(prop::option::of(0u32..40), 0..40)) {
            let (order, _) = callers_first(&links);
            let mut seen: Vec<usize> = order.iter().map(|(index, _)| *index).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..links.len()).collect::<Vec<_>>());
            for (place, (index, parent)) in order.iter().enumerate() {
                prop_assert!(parent.is_none_or(|parent| (parent as usize) < place));
                let caller = parent.map(|parent| order[parent as usize].0 as u32);
                prop_assert!(caller.is_none() || caller == links[*index]);
            }
        }
    }
}
