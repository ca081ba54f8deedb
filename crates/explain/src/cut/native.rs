//! Stacks of compiled code as a tree: the kernel's part, the pool's, garbage collection's and the rest, by stack and by thread.
//!
//! It has no times, so it cannot be cut; the sampling has to be as long as the window. Frames of JavaScript, which a map of
//! the process may name, are named like those of V8's own profile.

use super::Cut;
use crate::doubt::Note;
use crate::label::clean;
use crate::naming::Namer;
use crate::read::{CallFrame, NativeFrame, NativeStack, script_frame};
use crate::thread;
use crate::tree::Builder;
use crate::{Frame, Kind, Naming, NativeProfile};

const KERNEL: &str = "[kernel]";
const MADE: &str = "[jit]";
const UNKNOWN: &str = "[unknown]";
/// How V8 names functions of JavaScript for `perf`, before a colon.
const JAVASCRIPT: [&str; 5] = ["JS", "LazyCompile", "Function", "Script", "Eval"];

/// CPU time by stack, in nanoseconds.
pub fn native_tree(profile: &NativeProfile, naming: &Naming<'_>) -> Cut {
    let scripts: Vec<Option<CallFrame>> = profile.frames.iter().map(javascript).collect();
    let named: Vec<CallFrame> = scripts.iter().flatten().cloned().collect();
    let mut namer = Namer::of(naming, &named);
    let frames: Vec<Frame> = profile
        .frames
        .iter()
        .zip(&scripts)
        .map(|(native, script)| match script {
            Some(call) => namer.name(call, None),
            None => compiled(native),
        })
        .collect();
    let mut made = Builder::default();
    let mut samples = 0u64;
    for stack in &profile.stacks {
        samples = samples.saturating_add(stack.samples);
        add(&mut made, profile, stack, &frames);
    }
    let tree = made.tree();
    let total = tree.total();
    let mut texts: Vec<String> = profile.notes.iter().map(|note| clean(note)).collect();
    if profile.lost > 0 {
        let all = profile.lost.saturating_add(samples);
        texts.push(format!("the kernel lost {} of {all} samples of compiled code", profile.lost));
    }
    let mut notes: Vec<Note> = texts.into_iter().map(Note::remark).collect();
    notes.extend(namer.notes());
    Cut { tree, busy_ns: total, covered_ns: total, capped_ns: 0.0, samples, notes }
}

fn add(made: &mut Builder, profile: &NativeProfile, stack: &NativeStack, frames: &[Frame]) {
    let known = |index: &u32| Some((profile.frames.get(*index as usize)?, frames.get(*index as usize)?));
    let of_stack: Vec<(&NativeFrame, &Frame)> = stack.frames.iter().filter_map(known).collect();
    let names = of_stack.iter().map(|(native, _)| (native.name.as_str(), native.module.as_str()));
    let mut about = thread::of_thread(&stack.thread_name, names);
    let mut place = None;
    if let Some((kind, name)) = about.and_then(|kind| Some((kind, thread::root(kind)?))) {
        let frame = made.frame(&Frame::without_file(name, kind));
        place = Some(made.place(None, frame));
    }
    for (native, frame) in of_stack {
        about = about.or_else(|| thread::of_function(&native.name, &native.module));
        let kind = if frame.kind == Kind::Native { about.unwrap_or(frame.kind) } else { frame.kind };
        let frame = made.frame(&Frame { kind, ..frame.clone() });
        place = Some(made.place(place, frame));
    }
    let place = place.unwrap_or_else(|| {
        let frame = made.frame(&compiled(&NativeFrame { name: String::new(), module: String::new() }));
        made.place(None, frame)
    });
    made.add(place, stack.samples as f64 * profile.period_ns as f64);
}

fn compiled(native: &NativeFrame) -> Frame {
    let kind = if native.module == KERNEL { Kind::Kernel } else { Kind::Native };
    let function = match native.name.as_str() {
        "" | UNKNOWN if native.module == MADE => "(generated code)".to_owned(),
        "" | UNKNOWN => "(unknown)".to_owned(),
        name => clean(name),
    };
    Frame { function, file: clean(&native.module), line: 0, kind, package: None }
}

/// A function of JavaScript, such as `JS:*handle file:///srv/app/server.js:12:3`. The sign before the name says how it is compiled.
fn javascript(native: &NativeFrame) -> Option<CallFrame> {
    if native.module != MADE {
        return None;
    }
    let (kind, name) = native.name.split_once(':')?;
    let name = name.trim_start_matches(['*', '~', '^', '+', '-']);
    JAVASCRIPT.contains(&kind).then(|| script_frame(name)).filter(CallFrame::is_javascript)
}
