//! A CPU profile cut to a window: from samples to a tree in nanoseconds. A heap profile has no times, so it
//! is not cut.
//!
//! ```text
//! samples     s0      s1    s2                    s3   end
//!              ├──s0───┼─s1──┼─s2────┼─capped──────┼─s3─┤
//! window            ├──────────────────────┤
//! ```
//!
//! **Attribution of intervals.** A sample describes the code that runs from then on until the next one, as in
//! DevTools. An interval that is partly inside of the window counts by that part.
//!
//! **Gaps.** A delayed sampler, a thread waiting for a processor, or a machine whose host preempts it leave
//! intervals of many times the usual length. It is unknown what ran then, if anything did. Attributing it all
//! to the last function would make that one as expensive as the machine is busy. An interval counts for at
//! most [`GAP_INTERVALS`] times the usual one, which is the median, and for no less than [`GAP_US_MIN`]. The
//! rest is attributed to no function, and is reported as [`Cut::capped_ns`]. For a service that hashed
//! passwords beside three times as many busy threads as processors, profiles had 5.7, 5.2, 4.9 and 7.8 s this
//! way where the kernel counted 5.5, 5.2, 4.9 and 6.4 s. All intervals in full were twice that. If no two
//! consecutive samples have the same node, equal ones were merged by a tool, and nothing is capped.
//!
//! **Lines.** V8 counts samples by line for the whole profile, without their times. They are used in
//! proportion if the window has at least [`LINES_SHARE_MIN`] of the samples of a node. Otherwise the node has
//! no lines.

use std::collections::HashMap;

use indexmap::IndexMap;
use model::quantity::{many, micros};

use crate::doubt::Note;
use crate::label::clean;
use crate::naming::{IDLE, Namer};
use crate::read::{
    CallFrame, Calls, KERNEL, MADE, NativeFrame, NativeStack, UNKNOWN, script_frame, usual_us,
};
use crate::thread;
use crate::tree::{Builder, together};
use crate::{CodeKind, CpuProfile, Frame, HeapProfile, Naming, NativeProfile, Tree};

/// Maximum length of an interval in usual intervals.
pub const GAP_INTERVALS: i64 = 3;
/// Shorter intervals than this are never a gap, in microseconds, because threads are not woken more
/// precisely.
pub const GAP_US_MIN: i64 = 1000;
/// Lines are reported if the window has this share of a node's samples.
pub const LINES_SHARE_MIN: f64 = 0.8;
/// Gaps below this share of the window are not noted.
const GAP_SHARE_NOTED: f64 = 0.01;
/// The minimum number of samples to determine the usual interval.
const USUAL_SAMPLES_MIN: usize = 20;

/// A span of time, CLOCK_MONOTONIC in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeWindow {
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
}

/// The part of a profile in a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// Time by stack in nanoseconds, including waiting. For a heap profile, bytes.
    pub tree: Tree,
    /// The total of the tree.
    pub covered_ns: f64,
    /// Time within the window that lies in gaps between samples and is attributed to no function. Together
    /// with `covered_ns`, it is all that the profile has of the window.
    pub capped_ns: f64,
    /// Number of work samples at least partly in the window. Idle samples are excluded.
    pub samples: u64,
    /// Reasons the tree is incomplete.
    pub notes: Vec<Note>,
}

/// Cuts a profile to a window. Without a window, takes all of it.
pub fn cpu_tree(profile: &CpuProfile, window: Option<TimeWindow>, naming: &Naming<'_>) -> Cut {
    let spent = Spent::within(profile, window);
    let mut namer = Namer::of(naming, profile.calls.functions.iter());
    let (mut made, places) = grow(&profile.calls, &spent.self_ns, &mut namer);
    for here in profile.ticks.chunk_by(|one, next| one.node == next.node) {
        let index = here[0].node as usize;
        let Some(place) = places[index].filter(|_| spent.has_lines(index)) else {
            continue;
        };
        let Some(frame) = made.frame_of(place).cloned() else {
            continue;
        };
        let call = &profile.calls.functions[profile.calls.nodes[index].call as usize];
        let counted: u64 = here.iter().map(|tick| u64::from(tick.ticks)).sum();
        let samples = counted.max(u64::from(spent.whole[index])).max(1) as f64;
        for tick in here {
            if let Some(line) = namer.line(call, &frame, tick.line) {
                made.add_line(
                    place,
                    line,
                    spent.self_ns[index] * f64::from(tick.ticks) / samples,
                );
            }
        }
    }
    if spent.unknown_ns > 0.0 {
        let frame = made.frame(&namer.name(&CallFrame::named("(unknown)"), None));
        let place = made.place(None, frame);
        made.add(place, spent.unknown_ns);
    }
    let tree = made.tree();
    let mut notes = profile.notes.clone();
    notes.extend(spent.gaps());
    notes.extend(namer.notes());
    let (covered_ns, capped_ns, samples) = (spent.covered_ns, spent.capped_ns, spent.samples);
    Cut {
        covered_ns,
        capped_ns,
        samples,
        notes,
        tree,
    }
}

impl Cut {
    /// A cut of data without times.
    fn timeless(tree: Tree, samples: u64, notes: Vec<Note>) -> Cut {
        Cut {
            covered_ns: tree.total(),
            tree,
            capped_ns: 0.0,
            samples,
            notes,
        }
    }
}

/// Bytes that were allocated and still live at the end, by stack. Omits Proofload's agent, which is not
/// caused by requests.
pub fn heap_tree(profile: &HeapProfile, naming: &Naming<'_>) -> Cut {
    let mut namer = Namer::of(naming, profile.calls.functions.iter());
    let bytes = without_agent(profile, &mut namer);
    let (made, _) = grow(&profile.calls, &bytes, &mut namer);
    Cut::timeless(made.tree(), 0, namer.notes())
}

/// Bytes of each node, zero for the agent's functions and everything below them.
fn without_agent(profile: &HeapProfile, namer: &mut Namer<'_>) -> Vec<f64> {
    let calls = &profile.calls;
    let mut of_agent: Vec<bool> = Vec::with_capacity(calls.nodes.len());
    for node in &calls.nodes {
        let is_below = node.parent.is_some_and(|parent| of_agent[parent as usize]);
        of_agent.push(is_below || namer.is_agent(&calls.functions[node.call as usize]));
    }
    profile
        .bytes
        .iter()
        .zip(of_agent)
        .map(|(bytes, of_agent)| if of_agent { 0.0 } else { *bytes })
        .collect()
}

/// V8's name of the root node.
const ROOT: &str = "(root)";

/// A tree of V8's calls with a value per node, either time or bytes. Also returns the node of each call in
/// the tree, if there is a value in it or below it.
fn grow(calls: &Calls, own: &[f64], namer: &mut Namer<'_>) -> (Builder, Vec<Option<usize>>) {
    let mut totals = own.to_vec();
    for (index, node) in calls.nodes.iter().enumerate().rev() {
        if let Some(parent) = node.parent {
            totals[parent as usize] += totals[index];
        }
    }
    let mut made = Builder::default();
    let mut places = Vec::with_capacity(own.len());
    // For callees: the node in the tree, and the nearest JavaScript at or above it.
    let mut callers: Vec<(Option<usize>, Option<usize>)> = Vec::with_capacity(own.len());
    // The function of each call, and of the nearest JavaScript above it if its name depends on that.
    let mut named: HashMap<(u32, Option<usize>), usize> = HashMap::new();
    for (index, node) in calls.nodes.iter().enumerate() {
        let (caller, script) = node
            .parent
            .map(|parent| callers[parent as usize])
            .unwrap_or_default();
        let called = &calls.functions[node.call as usize];
        // The root is no function. Its self time, if any, is shown beside its callees.
        let is_root = node.parent.is_none() && &*called.function == ROOT && !called.scripted;
        if totals[index] <= 0.0 || (is_root && own[index] <= 0.0) {
            places.push(None);
            callers.push((None, None));
            continue;
        }
        let depends_on = if called.url.is_empty() || called.is_wasm() {
            script
        } else {
            None
        };
        let frame = *named.entry((node.call, depends_on)).or_insert_with(|| {
            let caller = depends_on.and_then(|script| made.frame_at(script)).cloned();
            made.frame(&namer.name(called, caller.as_ref()))
        });
        let place = made.place(caller, frame);
        made.add(place, own[index]);
        places.push(Some(place));
        let script = if called.is_javascript() {
            Some(frame)
        } else {
            script
        };
        callers.push(if is_root {
            (None, None)
        } else {
            (Some(place), script)
        });
    }
    (made, places)
}

#[derive(Default)]
struct Spent {
    /// Self time of each node, in nanoseconds.
    self_ns: Vec<f64>,
    /// Time of calls that are missing in the profile.
    unknown_ns: f64,
    /// Samples of each node in the profile, and those in the window.
    whole: Vec<u32>,
    inside: Vec<u32>,
    covered_ns: f64,
    capped_ns: f64,
    samples: u64,
}

impl Spent {
    fn within(profile: &CpuProfile, window: Option<TimeWindow>) -> Self {
        let nodes = profile.calls.nodes.len();
        let (self_ns, whole, inside) = (vec![0.0; nodes], vec![0; nodes], vec![0; nodes]);
        let mut spent = Self {
            self_ns,
            whole,
            inside,
            ..Self::default()
        };
        let window = window.map_or((i128::MIN, i128::MAX), |window| {
            (i128::from(window.start_ns), i128::from(window.end_ns))
        });
        let longest = longest_us(profile);
        let calls = &profile.calls;
        let called = |node: usize| {
            calls
                .functions
                .get_index(calls.nodes.get(node)?.call as usize)
        };
        let is_idle = |call: &CallFrame| &*call.function == IDLE && !call.scripted;
        for (index, sample) in profile.samples.iter().enumerate() {
            let (begin, next) = (sample.at_us, profile.samples.get(index + 1));
            let end = next.map_or(profile.end_us.max(begin), |next| next.at_us);
            let counted = longest.map_or(end, |longest| end.min(begin.saturating_add(longest)));
            let node = sample.node as usize;
            let touches = spent.add(
                node,
                [begin, counted, end].map(|us| i128::from(us) * 1000),
                window,
            );
            spent.samples += u64::from(touches && !called(node).is_some_and(is_idle));
        }
        spent
    }

    /// Adds an interval. Returns whether a part of it is in the window.
    fn add(&mut self, node: usize, [begin, counted, end]: [i128; 3], window: (i128, i128)) -> bool {
        // The intersection of two spans.
        let within = |from: i128, to: i128| (to.min(window.1) - from.max(window.0)).max(0) as f64;
        let time = within(begin, counted);
        self.covered_ns += time;
        self.capped_ns += within(counted, end);
        let touches = begin < window.1 && (end > window.0 || (begin == end && end >= window.0));
        if let Some(own) = self.self_ns.get_mut(node) {
            *own += time;
            self.whole[node] = self.whole[node].saturating_add(1);
            self.inside[node] = self.inside[node].saturating_add(u32::from(touches));
        } else {
            self.unknown_ns += time;
        }
        touches
    }

    /// Whether the profile's lines of a node may be used for the window.
    fn has_lines(&self, node: usize) -> bool {
        let (inside, whole) = (f64::from(self.inside[node]), f64::from(self.whole[node]));
        self.self_ns[node] > 0.0 && inside >= LINES_SHARE_MIN * whole
    }

    /// The note about gaps, if they are large enough.
    fn gaps(&self) -> Option<Note> {
        let (gaps, all) = (self.capped_ns, self.covered_ns + self.capped_ns);
        let text = || {
            format!(
                "{} of {} lie in gaps between samples, where the sampler or this machine was held up: no function has them",
                micros(self.capped_ns / 1e3),
                micros((self.covered_ns + self.capped_ns) / 1e3)
            )
        };
        (gaps > GAP_SHARE_NOTED * all).then(|| Note::remark(text()))
    }
}

/// The longest interval that counts in full. None if intervals say nothing about gaps.
fn longest_us(profile: &CpuProfile) -> Option<i64> {
    let between = profile.samples.windows(2);
    let summed = profile.summed || between.clone().all(|pair| pair[0].node != pair[1].node);
    if summed || between.len() < USUAL_SAMPLES_MIN {
        return None;
    }
    let usual_us = usual_us(between.map(|pair| pair[1].at_us.saturating_sub(pair[0].at_us)))?;
    Some(usual_us.saturating_mul(GAP_INTERVALS).max(GAP_US_MIN))
}

/// V8's prefixes of JavaScript functions for `perf`, before a colon.
const JAVASCRIPT: [&str; 5] = ["JS", "LazyCompile", "Function", "Script", "Eval"];

/// CPU time of compiled code by stack, in nanoseconds: the kernel's part, the pool's, garbage collection's
/// and the rest. Samples have no times, so the sampling must last as long as the window. JavaScript from a
/// process's map is named as in V8's own profile.
pub fn native_tree(profile: &NativeProfile, naming: &Naming<'_>) -> Cut {
    let (threads, notes) = native_threads(profile, naming);
    Cut::timeless(together(threads.values()), profile.samples(), notes)
}

/// Threads by ID with their trees from kernel sampling, and reasons they are incomplete.
pub(crate) type ThreadTrees = (IndexMap<u32, Tree>, Vec<Note>);

/// The same by thread.
pub(crate) fn native_threads(profile: &NativeProfile, naming: &Naming<'_>) -> ThreadTrees {
    let scripts: Vec<Option<CallFrame>> = profile.frames.iter().map(javascript).collect();
    let mut namer = Namer::of(naming, scripts.iter().flatten());
    let named = |(native, script): (&NativeFrame, &Option<CallFrame>)| match script {
        Some(call) => namer.name(call, None),
        None => compiled(native),
    };
    let frames: Vec<Frame> = profile.frames.iter().zip(&scripts).map(named).collect();
    let mut threads: IndexMap<u32, Builder> = IndexMap::new();
    for stack in &profile.stacks {
        add(
            threads.entry(stack.thread).or_default(),
            profile,
            stack,
            &frames,
        );
    }
    let mut texts: Vec<String> = profile.notes.iter().map(|note| clean(note)).collect();
    if profile.lost > 0 {
        let all = profile.lost.saturating_add(profile.samples());
        texts.push(format!(
            "the kernel lost {} of {} of compiled code",
            profile.lost,
            many(all, "sample")
        ));
    }
    let notes = texts
        .into_iter()
        .map(Note::remark)
        .chain(namer.notes())
        .collect();
    (
        threads
            .into_iter()
            .map(|(thread, made)| (thread, made.tree()))
            .collect(),
        notes,
    )
}

fn add(made: &mut Builder, profile: &NativeProfile, stack: &NativeStack, frames: &[Frame]) {
    let known = |index: &u32| {
        Some((
            profile.frames.get(*index as usize)?,
            frames.get(*index as usize)?,
        ))
    };
    let of_stack: Vec<(&NativeFrame, &Frame)> = stack.frames.iter().filter_map(known).collect();
    let names = of_stack
        .iter()
        .map(|(native, _)| (native.name.as_str(), native.module.as_str()));
    let mut about = thread::of_thread(&stack.thread_name, names);
    let mut place = None;
    let mut go = |place: Option<usize>, frame: &Frame| {
        let frame = made.frame(frame);
        Some(made.place(place, frame))
    };
    if let Some((kind, name)) = about.and_then(|kind| Some((kind, thread::root(kind)?))) {
        place = go(None, &Frame::new(name, "", 0, kind));
    }
    for (native, frame) in of_stack {
        about = about.or_else(|| thread::of_function(&native.name, &native.module));
        let kind = if frame.kind == CodeKind::Native {
            about.unwrap_or(frame.kind)
        } else {
            frame.kind
        };
        place = go(
            place,
            &Frame {
                kind,
                ..frame.clone()
            },
        );
    }
    let nowhere = || {
        compiled(&NativeFrame {
            name: String::new(),
            module: String::new(),
        })
    };
    if let Some(place) = place.or_else(|| go(None, &nowhere())) {
        made.add(place, stack.samples as f64 * profile.period_ns as f64);
    }
}

fn compiled(native: &NativeFrame) -> Frame {
    let kind = if native.module == KERNEL {
        CodeKind::Kernel
    } else {
        CodeKind::Native
    };
    let function = match native.name.as_str() {
        "" | UNKNOWN if native.module == MADE => "(generated code)".to_owned(),
        "" | UNKNOWN => "(unknown)".to_owned(),
        name => clean(name),
    };
    Frame {
        function,
        file: clean(&native.module),
        line: 0,
        kind,
        package: None,
    }
}

/// A JavaScript function, such as `JS:*handle file:///srv/app/server.js:12:3`. The sign before the name is
/// its compilation tier.
fn javascript(native: &NativeFrame) -> Option<CallFrame> {
    let (kind, name) = native
        .name
        .split_once(':')
        .filter(|_| native.module == MADE)?;
    let name = name.trim_start_matches(['*', '~', '^', '+', '-']);
    JAVASCRIPT
        .contains(&kind)
        .then(|| script_frame(name))
        .filter(CallFrame::is_javascript)
}

#[cfg(test)]
mod tests;
