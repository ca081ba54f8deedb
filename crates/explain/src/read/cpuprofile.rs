//! V8's profile of CPU time, `.cpuprofile`, as its inspector protocol defines `Profiler.Profile`: of Node.js, of Chrome and of
//! tools that write the same.
//!
//! It is read piece by piece into numbers: a sample takes eight bytes, less than its text. It must not count or cut anything.

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Error, IgnoredAny, SeqAccess, Visitor};

use super::call::{Calls, RawCall};
use super::links::callers_first;
use super::{CallFrame, NODES_MAX, ReadError, bounded};
use crate::doubt::Note;

const FORMAT: &str = ".cpuprofile";
/// Stands for a call that the profile does not have.
pub(crate) const NO_NODE: u32 = u32::MAX;

/// A profile of CPU time: which function ran, sample after sample.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuProfile {
    /// The functions, each once.
    pub(crate) calls: Vec<CallFrame>,
    /// The places; callers before what they call.
    pub(crate) nodes: Vec<CallNode>,
    /// Samples by line, ordered by place.
    pub(crate) ticks: Vec<Tick>,
    /// The place of each sample, in order of time; [`NO_NODE`] where the profile has none.
    pub(crate) samples: Vec<u32>,
    /// Microseconds from the sample before, of the first from the start. Only the first may be negative.
    pub(crate) deltas_us: Vec<i32>,
    /// When it was started, CLOCK_MONOTONIC in microseconds as Node.js has it on Linux.
    pub(crate) start_us: i64,
    /// When it was stopped.
    pub(crate) end_us: i64,
    /// Whether the samples are sums and not moments: then their distances say nothing of how regularly they were taken.
    pub(crate) summed: bool,
    /// What is wrong with it.
    pub(crate) notes: Vec<Note>,
}

/// A place in the tree of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallNode {
    /// Index of its function.
    pub call: u32,
    /// Its caller.
    pub parent: Option<u32>,
}

/// So many samples of a place were in this line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tick {
    pub node: u32,
    pub line: u32,
    pub ticks: u32,
}

impl CpuProfile {
    /// Reads it.
    ///
    /// # Errors
    /// If it is cut off, not JSON, without samples, or beyond a limit. What contradicts itself is read as far as it makes
    /// sense, and told as a note when it is cut.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        let bytes = bounded(bytes)?;
        let file: File =
            serde_json::from_slice(bytes).map_err(|error| ReadError::json(FORMAT, bytes, &error))?;
        file.profile()
    }

    /// Begin and end, CLOCK_MONOTONIC in nanoseconds where Node.js wrote it on Linux.
    pub fn span_ns(&self) -> (i64, i64) {
        (self.start_us.saturating_mul(1000), self.end_us.saturating_mul(1000))
    }

    /// How many samples it has.
    pub fn samples(&self) -> usize {
        self.samples.len()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    nodes: Option<Nodes>,
    samples: Option<Vec<u32>>,
    time_deltas: Option<Deltas>,
    start_time: Option<Micros>,
    end_time: Option<Micros>,
    /// The format before 2016.
    head: Option<IgnoredAny>,
    /// Ours: the samples are sums.
    summed: Option<bool>,
}

impl File {
    fn profile(self) -> Result<CpuProfile, ReadError> {
        let Some(nodes) = self.nodes else {
            let old = self.head.is_some();
            let problem = if old { "has a tree instead of nodes, as before 2016" } else { "has no nodes" };
            return Err(ReadError::unusable(
                FORMAT,
                format!("{problem}: save it again with a current DevTools"),
            ));
        };
        let Some(ids) = self.samples else {
            return Err(ReadError::unusable(FORMAT, "has no samples: nothing tells when a function ran"));
        };
        let mut notes = Vec::new();
        let (mut profile, places) = nodes.arranged(&mut notes);
        profile.start_us = self.start_time.map_or(0, |time| time.0);
        profile.end_us = self.end_time.map_or(i64::MIN, |time| time.0);
        profile.summed = self.summed.unwrap_or(false);
        profile.samples = ids;
        let mut unknown = 0usize;
        for sample in &mut profile.samples {
            *sample = places.get(&*sample).copied().unwrap_or(NO_NODE);
            unknown += usize::from(*sample == NO_NODE);
        }
        if unknown > 0 {
            notes.push(Note::remark(format!(
                "{unknown} of {} samples are of calls that the profile does not have: counted as (unknown)",
                profile.samples.len()
            )));
        }
        profile.deltas_us = deltas(self.time_deltas, &profile, &mut notes);
        profile.samples.truncate(profile.deltas_us.len());
        in_order(&mut profile, &mut notes);
        profile.notes = notes;
        Ok(profile)
    }
}

fn deltas(read: Option<Deltas>, profile: &CpuProfile, notes: &mut Vec<Note>) -> Vec<i32> {
    let samples = profile.samples.len();
    let Some(mut deltas) = read else {
        let span = profile.end_us.saturating_sub(profile.start_us).max(0);
        let each = span / i64::try_from(samples.max(1)).unwrap_or(i64::MAX);
        if samples > 0 {
            notes.push(Note::remark("no times between samples: taken as evenly spread"));
        }
        return vec![narrow(each); samples];
    };
    if deltas.us.len() != samples {
        notes.push(Note::remark(format!(
            "{samples} samples and {} times between them: the rest is left out",
            deltas.us.len()
        )));
        deltas.us.truncate(samples);
    }
    if deltas.clipped > 0 {
        notes.push(Note::remark(format!(
            "{} times between samples are above 35 minutes: cut to that",
            deltas.clipped
        )));
    }
    deltas.us
}

/// Brings samples into the order of time. V8 writes some a little late, from another thread.
fn in_order(profile: &mut CpuProfile, notes: &mut Vec<Note>) {
    let back = profile.deltas_us.iter().skip(1).filter(|delta| **delta < 0).count();
    if back == 0 {
        return;
    }
    notes.push(Note::aside(format!(
        "{back} samples are older than the one before: brought into the order of time"
    )));
    let mut at = profile.start_us;
    let mut moments: Vec<(i64, u32)> = Vec::with_capacity(profile.samples.len());
    for (node, delta) in profile.samples.iter().zip(&profile.deltas_us) {
        at = at.saturating_add(i64::from(*delta));
        moments.push((at, *node));
    }
    moments.sort_by_key(|(at, _)| *at);
    let mut before = profile.start_us;
    for (index, (at, node)) in moments.into_iter().enumerate() {
        profile.deltas_us[index] = narrow(at.saturating_sub(before));
        profile.samples[index] = node;
        before = at;
    }
}

fn narrow(us: i64) -> i32 {
    i32::try_from(us).unwrap_or(if us < 0 { i32::MIN } else { i32::MAX })
}

/// Nodes as they are read: links by the numbers that the file gives.
#[derive(Default)]
struct Nodes {
    calls: Calls,
    ids: Vec<u32>,
    call_of: Vec<u32>,
    /// Caller by index, called by number.
    children: Vec<(u32, u32)>,
    /// Called by index, caller by number: how traces have it.
    parents: Vec<(u32, u32)>,
    ticks: Vec<Tick>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawNode<'a> {
    id: u32,
    #[serde(borrow)]
    call_frame: RawCall<'a>,
    #[serde(default)]
    children: Vec<u32>,
    parent: Option<u32>,
    #[serde(default)]
    position_ticks: Vec<RawTick>,
}

#[derive(Deserialize)]
struct RawTick {
    line: u32,
    ticks: u32,
}

impl Nodes {
    fn push(&mut self, raw: &RawNode<'_>) {
        let index = self.ids.len() as u32;
        self.ids.push(raw.id);
        self.call_of.push(self.calls.number(raw.call_frame.frame()));
        self.children.extend(raw.children.iter().map(|child| (index, *child)));
        self.parents.extend(raw.parent.map(|parent| (index, parent)));
        let ticks = raw.position_ticks.iter().filter(|tick| tick.line > 0 && tick.ticks > 0);
        self.ticks.extend(ticks.map(|tick| Tick { node: index, line: tick.line, ticks: tick.ticks }));
    }

    /// A profile with nodes and no samples, and the place of each number.
    fn arranged(self, notes: &mut Vec<Note>) -> (CpuProfile, HashMap<u32, u32>) {
        let mut index_of: HashMap<u32, u32> = HashMap::with_capacity(self.ids.len());
        let mut twice = 0usize;
        for (index, id) in self.ids.iter().enumerate() {
            let first = *index_of.entry(*id).or_insert(index as u32);
            twice += usize::from(first != index as u32);
        }
        let (parents, wrong) = self.callers(&index_of);
        let arranged = callers_first(&parents);
        for (count, what) in [
            (twice, "calls have the number of another one: they count for nothing"),
            (wrong, "links between calls lead nowhere, or to a call that has a caller already: left out"),
            (arranged.circles as usize, "circles of calls: cut open"),
        ] {
            if count > 0 {
                notes.push(Note::remark(format!("{count} {what}")));
            }
        }
        let mut place_of = vec![NO_NODE; arranged.order.len()];
        for (place, index) in arranged.order.iter().enumerate() {
            place_of[*index as usize] = place as u32;
        }
        let nodes = arranged.order.iter().zip(&arranged.parents);
        let nodes =
            nodes.map(|(index, parent)| CallNode { call: self.call_of[*index as usize], parent: *parent });
        let mut ticks = self.ticks;
        for tick in &mut ticks {
            tick.node = place_of[tick.node as usize];
        }
        ticks.sort_unstable_by_key(|tick| (tick.node, tick.line));
        for index in index_of.values_mut() {
            *index = place_of[*index as usize];
        }
        let profile = CpuProfile {
            nodes: nodes.collect(),
            ticks,
            samples: Vec::new(),
            deltas_us: Vec::new(),
            start_us: 0,
            end_us: 0,
            summed: false,
            notes: Vec::new(),
            calls: self.calls.into_frames(),
        };
        (profile, index_of)
    }

    /// The caller of each, by index, and how many links were wrong.
    fn callers(&self, index_of: &HashMap<u32, u32>) -> (Vec<Option<u32>>, usize) {
        let mut parents = vec![None; self.ids.len()];
        let mut wrong = 0;
        let by_children =
            self.children.iter().map(|(parent, child)| (index_of.get(child).copied(), Some(*parent)));
        let by_parents =
            self.parents.iter().map(|(child, parent)| (Some(*child), index_of.get(parent).copied()));
        for (child, parent) in by_children.chain(by_parents) {
            match (child, parent) {
                (Some(child), Some(parent))
                    if parents[child as usize].is_none_or(|known| known == parent) =>
                {
                    parents[child as usize] = Some(parent);
                }
                _ => wrong += 1,
            }
        }
        (parents, wrong)
    }
}

impl<'de> Deserialize<'de> for Nodes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Nodes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of nodes")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Nodes, A::Error> {
                let mut nodes = Nodes::default();
                while let Some(raw) = list.next_element::<RawNode<'_>>()? {
                    if nodes.ids.len() == NODES_MAX {
                        return Err(A::Error::custom(format!(
                            "too many nodes, at most {NODES_MAX} are read"
                        )));
                    }
                    nodes.push(&raw);
                }
                Ok(nodes)
            }
        }
        deserializer.deserialize_seq(List)
    }
}

/// Times between samples.
struct Deltas {
    us: Vec<i32>,
    clipped: usize,
}

impl<'de> Deserialize<'de> for Deltas {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Deltas;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of microseconds")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Deltas, A::Error> {
                let mut deltas = Deltas { us: Vec::new(), clipped: 0 };
                while let Some(Micros(us)) = list.next_element()? {
                    deltas.us.push(narrow(us));
                    deltas.clipped += usize::from(i32::try_from(us).is_err());
                }
                Ok(deltas)
            }
        }
        deserializer.deserialize_seq(List)
    }
}

/// Microseconds. V8 writes whole numbers, other tools do not.
struct Micros(i64);

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Micros;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of microseconds")
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Micros, E> {
                Ok(Micros(number))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Micros, E> {
                Ok(Micros(i64::try_from(number).unwrap_or(i64::MAX)))
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<Micros, E> {
                // A cast of a float ends at the bounds of its type.
                Ok(Micros(number.round() as i64))
            }
        }
        deserializer.deserialize_any(Number)
    }
}
