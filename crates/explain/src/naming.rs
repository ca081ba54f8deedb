//! Naming of functions: the same in every process, worker, variant and record, on any machine.
//!
//! ```text
//! url, line, column ──► source map ──► place: file, package@version, kind ──► Frame
//! no script ──► named by who called it
//! ```
//!
//! Names are foreign text: their length is limited, and invisible characters are removed. This module reads
//! no files and guesses nothing: functions it cannot identify keep the profile's name.

mod place;
mod source_map;

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use crate::capture_files::CaptureFiles;
use crate::doubt::{DoubtKind, Note};
use crate::label::clean;
use crate::read::CallFrame;
use crate::{CodeKind, Frame};
use place::{FunctionPlace, Placing};
use source_map::SourceMapping;

/// V8's name of idle time.
pub(crate) const IDLE: &str = "(idle)";

/// A function from this column on is in generated code.
const MINIFIED_COLUMN_MIN: u32 = 500;
/// Maximum number of scripts listed in one note.
const NAMED_MAX: usize = 5;
/// V8's prefix of code compiled from a regular expression.
const REGULAR_EXPRESSION: &str = "RegExp: ";

/// The inputs of naming.
#[derive(Clone, Copy)]
pub struct Naming<'a> {
    /// Directory of the service, to which its own files are relative. If empty, it is derived from the
    /// profile's own files and their `node_modules`.
    pub directory: &'a str,
    /// Source of versions and source maps.
    pub source: &'a dyn CaptureFiles,
}

/// A script: its place, and its source map with the file that contains it.
struct Script {
    place: FunctionPlace,
    mapping: Option<(SourceMapping, String)>,
}

pub(crate) struct Namer<'a> {
    placing: Placing<'a>,
    scripts: HashMap<Box<str>, Rc<Script>>,
    minified: BTreeSet<String>,
    unreadable: BTreeSet<String>,
}

impl<'a> Namer<'a> {
    /// Creates a namer for the functions of a profile.
    pub fn of<'c>(naming: &Naming<'a>, calls: impl IntoIterator<Item = &'c CallFrame>) -> Self {
        let directory =
            place::directory(naming.directory, calls.into_iter().map(|call| &*call.url));
        Self {
            placing: Placing {
                directory,
                source: naming.source,
                versions: HashMap::new(),
            },
            scripts: HashMap::new(),
            minified: BTreeSet::new(),
            unreadable: BTreeSet::new(),
        }
    }

    /// The function's frame. `caller` is the nearest JavaScript above it.
    pub fn name(&mut self, call: &CallFrame, caller: Option<&Frame>) -> Frame {
        if call.is_wasm() {
            let package = caller.and_then(|caller| caller.package.clone());
            return Frame {
                package,
                ..Frame::new(&call.function, &call.url, call.line, CodeKind::Native)
            };
        }
        match (call.url.is_empty(), call.scripted) {
            (false, _) => self.scripted(call),
            (true, true) => evaluated(call, caller),
            (true, false) => compiled(call, caller),
        }
    }

    /// Whether the function belongs to the agent that captures the profiles.
    pub fn is_agent(&mut self, call: &CallFrame) -> bool {
        let package =
            |script: Rc<Script>| Some(script.place.package.as_ref()?.name == place::AGENT_PACKAGE);
        !call.url.is_empty() && package(self.script(&call.url)) == Some(true)
    }

    fn scripted(&mut self, call: &CallFrame) -> Frame {
        let script = self.script(&call.url);
        let mapping = script.mapping.as_ref();
        if mapping.is_none()
            && call.column >= MINIFIED_COLUMN_MIN
            && script.place.kind != CodeKind::Core
        {
            self.minified.insert(script.place.shown());
        }
        let found =
            mapping.and_then(|(of, map)| Some((of, map, of.origin(call.line, call.column)?)));
        let Some((mapping, map, origin)) = found else {
            return named(&script.place, &call.function, call.line);
        };
        let place = self.placing.mapped(map, origin.source);
        let function = mapping.function(call.line, call.column, &call.function);
        named(&place, function.unwrap_or(&call.function), origin.line)
    }

    /// The source line of an executed line, in the file of the function's name. None if unknown.
    pub fn line(&mut self, call: &CallFrame, frame: &Frame, line: u32) -> Option<u32> {
        if call.url.is_empty() || call.is_wasm() {
            // A compiled function has no lines: the value is the calling line, or a byte offset.
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
        let found = place
            .path
            .as_deref()
            .and_then(|path| self.placing.source.source_map(path));
        let mapping = found.and_then(|(bytes, map)| {
            let unreadable = |problem| {
                self.unreadable
                    .insert(format!("{} ({problem})", place.shown()))
            };
            Some((SourceMapping::read(&bytes).map_err(unreadable).ok()?, map))
        });
        let script = Rc::new(Script { place, mapping });
        self.scripts.insert(url.into(), Rc::clone(&script));
        script
    }

    /// Reasons names are less precise than possible.
    pub fn notes(&self) -> Vec<Note> {
        let about = |scripts: &BTreeSet<String>, what: &str| {
            let named: Vec<&str> = scripts.iter().take(NAMED_MAX).map(String::as_str).collect();
            let more = scripts.len().saturating_sub(NAMED_MAX);
            let rest = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            let text = format!("{}{rest}: {what}", named.join(", "));
            (!scripts.is_empty()).then(|| Note::new(DoubtKind::Minified, text))
        };
        let minified = "minified, and there is no source map: functions have the names and lines of the code that ran; \
                        build with source maps";
        let notes = [
            about(&self.minified, minified),
            about(&self.unreadable, "the source map cannot be read"),
        ];
        notes.into_iter().flatten().collect()
    }
}

/// The kind of code of V8's special names, in CPU and heap profiles.
fn special(name: &str) -> Option<CodeKind> {
    Some(match name {
        IDLE => CodeKind::Waiting,
        "(garbage collector)" | "(garbage collector threads)" | "(GC)" => CodeKind::Gc,
        "(program)" | "(root)" | "(unknown)" | "(V8 API)" | "(JS)" | "(OTHER)" | "(EXTERNAL)"
        | "(IDLE)" | "(LOGGING)" | "(ATOMICS_WAIT)" => CodeKind::Native,
        "(compiler)" | "(compiler threads)" | "(PARSER)" | "(COMPILER)" | "(BYTECODE_COMPILER)" => {
            CodeKind::Jit
        }
        "(thread pool)" => CodeKind::ThreadPool,
        _ => return None,
    })
}

fn named(place: &FunctionPlace, function: &str, line: u32) -> Frame {
    let function = match clean(function).as_str() {
        "" | "(anonymous)" => anonymous(&place.file, line),
        name => name.to_owned(),
    };
    Frame {
        package: place.package.clone(),
        ..Frame::new(&function, &place.file, line, place.kind)
    }
}

fn anonymous(file: &str, line: u32) -> String {
    clean(&format!("(anonymous {file}:{line})"))
}

/// A function of code generated from text at run time, such as a template. It belongs to its caller.
fn evaluated(call: &CallFrame, caller: Option<&Frame>) -> Frame {
    const MARK: &str = "(eval)";
    let owner = caller.filter(|caller| caller.kind != CodeKind::Core);
    let (file, kind, package) = match owner {
        Some(owner) if owner.file.ends_with(MARK) => {
            (owner.file.clone(), owner.kind, owner.package.clone())
        }
        Some(owner) => (
            format!("{} {MARK}", owner.file),
            owner.kind,
            owner.package.clone(),
        ),
        None => (MARK.to_owned(), CodeKind::Application, None),
    };
    named(
        &FunctionPlace {
            file,
            kind,
            package,
            path: None,
        },
        &call.function,
        call.line,
    )
}

/// Code that is not JavaScript: V8 itself, and C++ functions of Node.js and of addons. Their names alone are
/// vague (`run`, `writev`, `update`), so those called by `node:` are named after their caller: `pbkdf2Sync
/// (native)`.
fn compiled(call: &CallFrame, caller: Option<&Frame>) -> Frame {
    const MARK: &str = "(native)";
    if let Some(kind) = special(&call.function) {
        return Frame::new(&call.function, "", 0, kind);
    }
    let of_caller = |name: &str| Frame {
        package: caller.and_then(|caller| caller.package.clone()),
        ..Frame::new(name, "", 0, CodeKind::Native)
    };
    match caller {
        _ if call.function.starts_with(REGULAR_EXPRESSION) => of_caller(&call.function),
        Some(caller) if caller.kind == CodeKind::Core => Frame::new(
            &format!("{} {MARK}", caller.function),
            &caller.file,
            0,
            CodeKind::Native,
        ),
        _ => of_caller(
            format!("{} {MARK}", call.function.trim_end_matches(MARK).trim_end()).trim_start(),
        ),
    }
}

#[cfg(test)]
mod tests;
