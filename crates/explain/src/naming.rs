//! By what a function is known: in every process, worker, variant and record the same, whatever the machine.
//!
//! ```text
//! url, line, column ──► source map ──► place: file, package@version, kind ──► Frame
//! no script ──► named by who called it
//! ```
//!
//! Names are somebody else's text: they are bounded, and lose what is not seen. It must not read a file itself, and it guesses
//! nothing: what it does not know is named as the profile names it.

mod place;
mod source_map;

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use crate::captures::Source;
use crate::cut::IDLE;
use crate::doubt::{DoubtKind, Note};
use crate::label::clean;
use crate::read::CallFrame;
use crate::{Frame, Kind};
use place::{Place, Placing};
use source_map::Mapping;

/// From this column on, a function is in code that nobody wrote by hand.
const MINIFIED_COLUMN_MIN: u32 = 500;
/// Scripts named in one note.
const NAMED_MAX: usize = 5;
/// What V8 calls the code that it made of a regular expression.
const REGULAR_EXPRESSION: &str = "RegExp: ";

/// What names are made with.
#[derive(Clone, Copy)]
pub struct Naming<'a> {
    /// Directory of the service, from which files of its own are named. Empty where nobody knows: then it is taken from where the
    /// profile's own files and their `node_modules` lie.
    pub directory: &'a str,
    /// Where versions and source maps come from.
    pub source: &'a dyn Source,
}

/// A script: where it is, and what it was made of, with the file that says so.
struct Script {
    place: Place,
    mapping: Option<(Mapping, String)>,
}

pub(crate) struct Namer<'a> {
    placing: Placing<'a>,
    scripts: HashMap<Box<str>, Rc<Script>>,
    minified: BTreeSet<String>,
    unreadable: BTreeSet<String>,
}

impl<'a> Namer<'a> {
    /// Names functions of a profile that has these.
    pub fn of<'c>(naming: &Naming<'a>, calls: impl IntoIterator<Item = &'c CallFrame>) -> Self {
        let directory = place::directory(naming.directory, calls.into_iter().map(|call| &*call.url));
        Self {
            placing: Placing { directory, source: naming.source, versions: HashMap::new() },
            scripts: HashMap::new(),
            minified: BTreeSet::new(),
            unreadable: BTreeSet::new(),
        }
    }

    /// Its name. `caller` is the next JavaScript above it.
    pub fn name(&mut self, call: &CallFrame, caller: Option<&Frame>) -> Frame {
        if call.is_wasm() {
            let package = caller.and_then(|caller| caller.package.clone());
            return Frame { package, ..Frame::new(&call.function, &call.url, call.line, Kind::Native) };
        }
        match (call.url.is_empty(), call.scripted) {
            (false, _) => self.scripted(call),
            (true, true) => evaluated(call, caller),
            (true, false) => compiled(call, caller),
        }
    }

    /// Whether the function is of the agent that takes the profiles.
    pub fn is_agent(&mut self, call: &CallFrame) -> bool {
        let package = |script: Rc<Script>| Some(script.place.package.as_ref()?.name == place::AGENT_PACKAGE);
        !call.url.is_empty() && package(self.script(&call.url)) == Some(true)
    }

    fn scripted(&mut self, call: &CallFrame) -> Frame {
        let script = self.script(&call.url);
        let mapping = script.mapping.as_ref();
        if mapping.is_none() && call.column >= MINIFIED_COLUMN_MIN && script.place.kind != Kind::Core {
            self.minified.insert(script.place.shown());
        }
        let found = mapping.and_then(|(of, map)| Some((of, map, of.origin(call.line, call.column)?)));
        let Some((mapping, map, origin)) = found else {
            return named(&script.place, &call.function, call.line);
        };
        let place = self.placing.mapped(map, origin.source);
        let function = mapping.function(call.line, call.column, &call.function);
        named(&place, function.unwrap_or(&call.function), origin.line)
    }

    /// Where a line of the code that ran was written, in the file that the function's name has; none where that cannot be told.
    pub fn line(&mut self, call: &CallFrame, frame: &Frame, line: u32) -> Option<u32> {
        if call.url.is_empty() || call.is_wasm() {
            // A compiled function has no lines: what is said is the line that called it, or a place in bytes.
            return call.is_javascript().then_some(line);
        }
        let script = self.script(&call.url);
        let Some((mapping, map)) = &script.mapping else {
            // A file in one line would have all its time there.
            return (call.column < MINIFIED_COLUMN_MIN).then_some(line);
        };
        let origin = mapping.only_origin(line)?;
        (self.placing.mapped(map, origin.source).file == frame.file).then_some(origin.line)
    }

    fn script(&mut self, url: &str) -> Rc<Script> {
        if let Some(known) = self.scripts.get(url) {
            return Rc::clone(known);
        }
        let place = self.placing.of_script(url);
        let found = place.path.as_deref().and_then(|path| self.placing.source.source_map(path));
        let mapping = found.and_then(|(bytes, map)| {
            let unreadable = |problem| self.unreadable.insert(format!("{} ({problem})", place.shown()));
            Some((Mapping::read(&bytes).map_err(unreadable).ok()?, map))
        });
        let script = Rc::new(Script { place, mapping });
        self.scripts.insert(url.into(), Rc::clone(&script));
        script
    }

    /// What makes names poorer than they could be.
    pub fn notes(&self) -> Vec<Note> {
        let about = |scripts: &BTreeSet<String>, what: &str| {
            let named: Vec<&str> = scripts.iter().take(NAMED_MAX).map(String::as_str).collect();
            let more = scripts.len().saturating_sub(NAMED_MAX);
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            let text = format!("{}{rest}: {what}", named.join(", "));
            (!scripts.is_empty()).then(|| Note::new(DoubtKind::Minified, text))
        };
        let minified = "minified, and there is no source map: functions have the names and lines of the code that ran; \
                        build with source maps";
        let notes =
            [about(&self.minified, minified), about(&self.unreadable, "the source map cannot be read")];
        notes.into_iter().flatten().collect()
    }
}

/// Whose code it is that V8 calls by a name of its own, in profiles of time and of the heap.
fn special(name: &str) -> Option<Kind> {
    Some(match name {
        IDLE => Kind::Waiting,
        "(garbage collector)" | "(garbage collector threads)" | "(GC)" => Kind::Gc,
        "(program)" | "(root)" | "(unknown)" | "(V8 API)" | "(JS)" | "(OTHER)" | "(EXTERNAL)" | "(IDLE)"
        | "(LOGGING)" | "(ATOMICS_WAIT)" => Kind::Native,
        "(compiler)" | "(compiler threads)" | "(PARSER)" | "(COMPILER)" | "(BYTECODE_COMPILER)" => Kind::Jit,
        "(thread pool)" => Kind::ThreadPool,
        _ => return None,
    })
}

fn named(place: &Place, function: &str, line: u32) -> Frame {
    let function = match clean(function).as_str() {
        "" | "(anonymous)" => anonymous(&place.file, line),
        name => name.to_owned(),
    };
    Frame { package: place.package.clone(), ..Frame::new(&function, &place.file, line, place.kind) }
}

fn anonymous(file: &str, line: u32) -> String {
    clean(&format!("(anonymous {file}:{line})"))
}

/// A function of code that was made from text while running, as templates are: whoever runs it has it made.
fn evaluated(call: &CallFrame, caller: Option<&Frame>) -> Frame {
    const MARK: &str = "(eval)";
    let owner = caller.filter(|caller| caller.kind != Kind::Core);
    let (file, kind, package) = match owner {
        Some(owner) if owner.file.ends_with(MARK) => (owner.file.clone(), owner.kind, owner.package.clone()),
        Some(owner) => (format!("{} {MARK}", owner.file), owner.kind, owner.package.clone()),
        None => (MARK.to_owned(), Kind::Application, None),
    };
    named(&Place { file, kind, package, path: None }, &call.function, call.line)
}

/// What is no JavaScript: V8's own doings, and functions of Node.js and of addons in C++. Their names alone say little (`run`,
/// `writev`, `update`), so those that `node:` calls have the name of who calls them: `pbkdf2Sync (native)`.
fn compiled(call: &CallFrame, caller: Option<&Frame>) -> Frame {
    const MARK: &str = "(native)";
    if let Some(kind) = special(&call.function) {
        return Frame::new(&call.function, "", 0, kind);
    }
    let of_caller = |name: &str| Frame {
        package: caller.and_then(|caller| caller.package.clone()),
        ..Frame::new(name, "", 0, Kind::Native)
    };
    match caller {
        _ if call.function.starts_with(REGULAR_EXPRESSION) => of_caller(&call.function),
        Some(caller) if caller.kind == Kind::Core => {
            Frame::new(&format!("{} {MARK}", caller.function), &caller.file, 0, Kind::Native)
        }
        _ => of_caller(format!("{} {MARK}", call.function.trim_end_matches(MARK).trim_end()).trim_start()),
    }
}

#[cfg(test)]
mod tests;
