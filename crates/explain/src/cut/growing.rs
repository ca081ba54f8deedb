//! A tree of V8's functions while it is made, place after place, callers first. It must not know whether it is of time or of bytes.

use std::collections::HashMap;

use crate::key::Namer;
use crate::merge::Builder;
use crate::read::CallFrame;

/// What V8 calls the place that all others are below.
const ROOT: &str = "(root)";

/// The tree so far.
pub(super) struct Growing<'p> {
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
