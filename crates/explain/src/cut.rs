//! A profile of CPU time, cut to a window: from samples to a tree in nanoseconds. One of the heap has no times, so there is nothing to cut.
//!
//! ```text
//! samples     s0      s1    s2                    s3   end
//!              ├──s0───┼─s1──┼─s2────┼─nobody's────┼─s3─┤
//! window            ├──────────────────────┤
//! ```
//!
//! **Whose an interval is.** A sample tells what runs from then on, until the next one: as DevTools has it. What lies partly inside
//! of the window counts by that part.
//!
//! **Gaps.** A sampler that is held up, a thread that has to wait for its turn, or a machine whose host takes the processor away leave
//! intervals of many times the usual length. Nobody can tell what ran then, if anything did; to give it all to the function that ran last
//! would make that one as expensive as the machine is busy. An interval counts for at most [`GAP_INTERVALS`] times the usual one, which
//! is the median, and for no less than [`GAP_US_MIN`]; the rest is nobody's, and is told as [`Cut::capped_ns`]. Held against the kernel's
//! account of the thread, a service hashing passwords beside three times as many busy threads as there were processors used 5.5, 5.2,
//! 4.9 and 6.4 s of CPU time in four runs. Its profiles had 5.7, 5.2, 4.9 and 7.8 s in this way; all intervals in full were twice that
//! (12.9 s in the first run, 11.2 s in the last), and with five times the usual one for a gap it was 7.8 and 8.9 s. Where no two
//! samples in a row are of the same place, somebody has put equal ones together, and nothing is capped.
//!
//! **Lines.** V8 counts samples by line for the profile as a whole, without their times. They are used where the window has at
//! least [`LINES_SHARE_MIN`] of the samples of a place, in proportion; a place of which it has fewer has no lines.

mod native;
mod spent;

use std::collections::HashMap;

use crate::doubt::Note;
use crate::naming::Namer;
use crate::read::CallFrame;
use crate::tree::Builder;
use crate::{CpuProfile, HeapProfile, Kind, Naming, Tree};
use spent::Spent;

pub use native::native_tree;

/// So many times the usual interval at most count for a sample.
pub const GAP_INTERVALS: i64 = 3;
/// Shorter intervals than this are never a gap, in microseconds: a thread is not woken more exactly.
pub const GAP_US_MIN: i64 = 1000;
/// Lines are told where the window has this share of a place's samples.
pub const LINES_SHARE_MIN: f64 = 0.8;
/// Gaps below this share of the window are not worth a note.
const GAP_SHARE_NOTED: f64 = 0.01;
/// A profile that covers less than this of the window is told of.
const COVERED_SHARE_MIN: f64 = 0.95;

/// A span of time, CLOCK_MONOTONIC in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Begin.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
}

/// What a profile tells of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// Time by stack in nanoseconds, waiting included; of the heap bytes.
    pub tree: Tree,
    /// What of it is not waiting.
    pub busy_ns: f64,
    /// What is in the tree.
    pub covered_ns: f64,
    /// Time within the window that lies in gaps between samples and was given to nobody. With what is covered, it is all
    /// that the profile has of the window.
    pub capped_ns: f64,
    /// Samples of which at least a part lies within the window.
    pub samples: u64,
    /// What makes it poorer than it could be.
    pub notes: Vec<Note>,
}

/// Cuts a profile to a window; without one, all of it is taken.
pub fn cpu_tree(profile: &CpuProfile, window: Option<Window>, naming: &Naming<'_>) -> Cut {
    let spent = Spent::within(profile, window);
    let mut namer = Namer::of(naming, &profile.calls);
    let tree = grow(profile, &spent, &mut namer);
    let waiting = tree.sums(|frame| Some(frame.kind)).get(&Kind::Waiting).copied().unwrap_or(0.0);
    let mut notes = profile.notes.clone();
    notes.extend(spent.notes(profile, window));
    notes.extend(namer.notes());
    Cut {
        busy_ns: spent.covered_ns - waiting,
        covered_ns: spent.covered_ns,
        capped_ns: spent.capped_ns,
        samples: spent.samples,
        notes,
        tree,
    }
}

fn grow(profile: &CpuProfile, spent: &Spent, namer: &mut Namer<'_>) -> Tree {
    let totals = with_callees(spent.self_ns.clone(), profile.nodes.iter().map(|node| node.parent));
    let mut growing = Growing::over(&profile.calls);
    let mut ticks = profile.ticks.as_slice();
    for (index, node) in profile.nodes.iter().enumerate() {
        let (here, rest) = ticks.split_at(ticks.partition_point(|tick| tick.node as usize <= index));
        ticks = rest;
        if totals[index] <= 0.0 {
            growing.skip();
            continue;
        }
        let place = growing.push(node.call, node.parent, spent.self_ns[index], namer);
        let Some(frame) =
            place.filter(|_| spent.has_lines(index)).and_then(|place| growing.made.frame_of(place)).cloned()
        else {
            continue;
        };
        let counted: u64 = here.iter().map(|tick| u64::from(tick.ticks)).sum();
        let samples = counted.max(u64::from(spent.whole[index])).max(1) as f64;
        for tick in here {
            if let Some(line) = namer.line(&profile.calls[node.call as usize], &frame, tick.line) {
                let value = spent.self_ns[index] * f64::from(tick.ticks) / samples;
                growing.made.add_line(place.unwrap_or_default(), line, value);
            }
        }
    }
    if spent.unknown_ns > 0.0 {
        let frame = growing.made.frame(&namer.name(&CallFrame::named("(unknown)"), None));
        let place = growing.made.place(None, frame);
        growing.made.add(place, spent.unknown_ns);
    }
    growing.made.tree()
}

/// Bytes that were allocated and still lived at the end, by stack.
pub fn heap_tree(profile: &HeapProfile, naming: &Naming<'_>) -> Tree {
    grow_heap(profile, &mut Namer::of(naming, &profile.calls))
}

/// The same with what makes it poorer.
pub(crate) fn heap_cut(profile: &HeapProfile, naming: &Naming<'_>) -> Cut {
    let mut namer = Namer::of(naming, &profile.calls);
    let tree = grow_heap(profile, &mut namer);
    let total = tree.total();
    Cut { tree, busy_ns: total, covered_ns: total, capped_ns: 0.0, samples: 0, notes: namer.notes() }
}

fn grow_heap(profile: &HeapProfile, namer: &mut Namer<'_>) -> Tree {
    let own = profile.nodes.iter().map(|node| node.bytes).collect();
    let totals = with_callees(own, profile.nodes.iter().map(|node| node.parent));
    let mut growing = Growing::over(&profile.calls);
    for (node, total) in profile.nodes.iter().zip(totals) {
        if total > 0.0 {
            growing.push(node.call, node.parent, node.bytes, namer);
        } else {
            growing.skip();
        }
    }
    growing.made.tree()
}

/// Values of places with those of all that they call; callers stand before what they call.
fn with_callees(
    own: Vec<f64>,
    parents: impl DoubleEndedIterator<Item = Option<u32>> + ExactSizeIterator,
) -> Vec<f64> {
    let mut totals = own;
    for (index, parent) in parents.enumerate().rev() {
        if let Some(parent) = parent {
            totals[parent as usize] += totals[index];
        }
    }
    totals
}

/// What V8 calls the place that all others are below.
const ROOT: &str = "(root)";

/// A tree of V8's functions while it is made, place after place, callers first. It does not know whether it is of time or of bytes.
struct Growing<'p> {
    calls: &'p [CallFrame],
    pub made: Builder,
    /// Of each place of the profile so far: its place in the tree, and the next JavaScript at or above it.
    places: Vec<(Option<usize>, Option<usize>)>,
    /// The function of each of V8's, and of the next JavaScript above it where its name depends on that.
    named: HashMap<(u32, Option<usize>), usize>,
}

impl<'p> Growing<'p> {
    pub fn over(calls: &'p [CallFrame]) -> Self {
        Self { calls, made: Builder::default(), places: Vec::new(), named: HashMap::new() }
    }

    /// The next place of the profile, with nothing in it and nothing below it.
    pub fn skip(&mut self) {
        self.places.push((None, None));
    }

    /// The next place of the profile, and where it is in the tree.
    pub fn push(
        &mut self,
        call: u32,
        parent: Option<u32>,
        value: f64,
        namer: &mut Namer<'_>,
    ) -> Option<usize> {
        let above = parent.and_then(|parent| self.places.get(parent as usize).copied());
        let (above, script) = above.unwrap_or_default();
        let called = self.calls.get(call as usize)?;
        // The root of all is no function; what it took itself, if it did, stands beside what it calls.
        let is_root = parent.is_none() && &*called.function == ROOT && !called.scripted;
        if is_root && value <= 0.0 {
            self.skip();
            return None;
        }
        let frame = self.frame(call, called, script, namer);
        let place = self.made.place(above, frame);
        self.made.add(place, value);
        let script = if called.is_javascript() { Some(frame) } else { script };
        self.places.push(if is_root { (None, None) } else { (Some(place), script) });
        Some(place)
    }

    fn frame(
        &mut self,
        call: u32,
        called: &CallFrame,
        script: Option<usize>,
        namer: &mut Namer<'_>,
    ) -> usize {
        let depends_on = if called.url.is_empty() || called.is_wasm() { script } else { None };
        if let Some(known) = self.named.get(&(call, depends_on)) {
            return *known;
        }
        let caller = depends_on.and_then(|script| self.made.frame_at(script)).cloned();
        let frame = self.made.frame(&namer.name(called, caller.as_ref()));
        self.named.insert((call, depends_on), frame);
        frame
    }
}

#[cfg(test)]
pub(crate) mod tests;
