//! A profile of CPU time, cut to a window: from samples to a tree in nanoseconds.
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
//! would make that one as dear as the machine is busy. An interval counts for at most [`GAP_INTERVALS`] times the usual one, which
//! is the median, and for no less than [`GAP_US_MIN`]; the rest is nobody's, and is told as [`Cut::capped_ns`]. Held against the kernel's
//! account of the thread, a service hashing passwords beside three times as many busy threads as there were processors used 5.5, 5.2,
//! 4.9 and 6.4 s of CPU time in four runs. Its profiles had 5.7, 5.2, 4.9 and 7.8 s in this way; all intervals in full were twice that
//! (12.9 s in the first run, 11.2 s in the last), and with five times the usual one for a gap it was 7.8 and 8.9 s. Where no two
//! samples in a row are of the same place, somebody has put equal ones together, and nothing is capped.
//!
//! **Lines.** V8 counts samples by line for the profile as a whole, without their times. They are used where the window has at
//! least [`LINES_SHARE_MIN`] of the samples of a place, in proportion; a place of which it has fewer has no lines.

mod growing;
mod heap;
mod native;
mod spent;
mod threads;

use crate::key::Namer;
use crate::read::CallFrame;
use crate::{CpuProfile, Kind, Naming, Tree};
use growing::Growing;
use spent::Spent;

pub(crate) use heap::heap_cut;
pub use heap::heap_tree;
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
    /// What makes it poorer than it could be, in words.
    pub notes: Vec<String>,
}

/// Cuts a profile to a window; without one, all of it is taken.
pub fn cpu_tree(profile: &CpuProfile, window: Option<Window>, naming: &Naming<'_>) -> Cut {
    let spent = Spent::within(profile, window);
    let mut namer = Namer::of(naming, &profile.calls);
    let tree = grow(profile, &spent, &mut namer);
    let waiting = tree.sums(|frame| Some(frame.kind)).get(&Kind::Waiting).copied().unwrap_or(0.0);
    let mut notes = profile.doubts.clone();
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
    let totals = spent.totals(profile);
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

#[cfg(test)]
pub(crate) mod tests;
