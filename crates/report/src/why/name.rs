//! What a function is called in tables: its name and where it stands.
//!
//! Must not: print a control character, whatever a name holds.

use explain::{Frame, Kind, Package};

/// Characters of a name that are shown; minified and generated ones have thousands.
const NAME_MAX: usize = 120;

/// A function's name.
pub(crate) fn function(frame: &Frame) -> String {
    if frame.function.is_empty() { "(anonymous)".to_owned() } else { harmless(&frame.function) }
}

/// Where it stands: `pug-lexer@5.0.1 index.js:42`, `users.js:33`, `node:http:12`; the kind of code where no file is known.
pub(crate) fn place(frame: &Frame) -> String {
    let line = if frame.line > 0 { format!(":{}", frame.line) } else { String::new() };
    match (&frame.package, frame.file.is_empty()) {
        (Some(of), true) => package(of),
        (Some(of), false) => format!("{} {}{line}", package(of), harmless(&frame.file)),
        (None, false) => format!("{}{line}", harmless(&frame.file)),
        (None, true) => frame.kind.name().to_owned(),
    }
}

/// A place in it.
pub(crate) fn at_line(frame: &Frame, line: u32) -> String {
    place(&Frame { line, ..frame.clone() })
}

/// Both in one, for lines of text; the kind where the place does not tell it.
pub(crate) fn both(frame: &Frame) -> String {
    let place = place(frame);
    let function = function(frame);
    // `(garbage collector)` says all there is to say, and `(anonymous FILE:LINE)` the place.
    if frame.kind == Kind::Gc || function.contains(&place) {
        function
    } else {
        format!("{function}  {place}")
    }
}

/// A package as package managers write it.
pub(crate) fn package(package: &Package) -> String {
    match &package.version {
        Some(version) => harmless(&format!("{}@{version}", package.name)),
        None => harmless(&package.name),
    }
}

/// A text from outside in one line without control characters, cut where it is endless.
pub(crate) fn harmless(text: &str) -> String {
    let bad = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let clean: String = text.chars().take(NAME_MAX).map(|c| if bad(c) { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(NAME_MAX).is_some() { clean + "…" } else { clean }
}
