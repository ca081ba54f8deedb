//! Display names of functions, files and packages: of limited length, and without invisible or bidirectional
//! control characters. Names come from foreign code and may contain anything.
//!
//! This module does not escape for HTML, Markdown or a shell. The renderer does.

use std::fmt;

use model::text::{cut, cut_start, line};

use crate::{CodeKind, Frame, Package};

/// Maximum length of a stored name.
const KEPT_MAX: usize = 200;
/// Maximum length in a sentence or a table. Minified and generated names have thousands of characters.
const SHOWN_MAX: usize = 120;

/// The name as stored: at most 200 characters, with `\u{FFFD}` for invisible ones.
pub(crate) fn clean(name: &str) -> String {
    cut(name, KEPT_MAX)
}

/// The name as shown in a sentence or a table.
pub fn shown(name: &str) -> String {
    cut(name, SHOWN_MAX)
}

/// A path as stored. Its end is more informative than its beginning.
pub(crate) fn clean_path(path: &str) -> String {
    line(&cut_start(path, KEPT_MAX))
}

/// Whether a name is in this list, which is separated by blanks.
pub(crate) fn is_among(names: &str, name: &str) -> bool {
    names.split_ascii_whitespace().any(|one| one == name)
}

/// Whether a text contains one of these parts, which are separated by blanks.
pub(crate) fn has_part(parts: &str, text: &str) -> bool {
    parts
        .split_ascii_whitespace()
        .any(|part| text.contains(part))
}

/// As package managers write it: `pug@3.0.3`, or only the name if the version is unknown.
impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self
            .version
            .as_ref()
            .map(|version| format!("@{version}"))
            .unwrap_or_default();
        f.write_str(&shown(&format!("{}{version}", self.name)))
    }
}

impl Frame {
    /// Its package, as package managers write it.
    pub(crate) fn package_name(&self) -> Option<String> {
        self.package.as_ref().map(Package::to_string)
    }

    /// Its name.
    pub fn name(&self) -> String {
        if self.function.is_empty() {
            "(anonymous)".to_owned()
        } else {
            shown(&self.function)
        }
    }

    /// Its place: `pug-lexer@5.0.1 index.js:42`, `users.js:33`, `node:http:12`. The kind of code if no file
    /// is known.
    pub fn place(&self) -> String {
        self.place_at(self.line)
    }

    /// The place of one of its lines.
    pub fn place_at(&self, line: u32) -> String {
        match (&self.package, self.file.is_empty()) {
            (Some(package), true) => package.to_string(),
            (Some(package), false) => format!("{package} {}", self.file_at(line)),
            (None, false) => self.file_at(line),
            (None, true) => self.kind.name().to_owned(),
        }
    }

    /// Its file, with a line if known.
    pub(crate) fn file_at(&self, line: u32) -> String {
        let line = if line > 0 {
            format!(":{line}")
        } else {
            String::new()
        };
        shown(&self.file) + &line
    }

    /// Name and place in one text, for its own line. The kind if the place does not show it.
    pub fn name_and_place(&self) -> String {
        let (name, place) = (self.name(), self.place());
        // `(garbage collector)` is complete, and `(anonymous FILE:LINE)` contains the place.
        if self.kind == CodeKind::Gc || name.contains(&place) {
            name
        } else {
            format!("{name}  {place}")
        }
    }

    /// For a sentence: `check (users.js:31)`. A name that contains its place is used alone.
    pub(crate) fn in_sentence(&self) -> String {
        let name = shown(&self.function);
        let stands_alone = self.file.is_empty() || name.starts_with("(anonymous ");
        if stands_alone {
            name
        } else {
            format!("{name} ({})", self.file_at(self.line))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_and_show_all_that_they_hold() {
        assert_eq!(
            clean("a\nb\u{202E}c\0 <i>"),
            "a\u{FFFD}b\u{FFFD}c\u{FFFD} <i>"
        );
        let long = clean(&"é".repeat(1_000_000));
        assert_eq!((long.chars().count(), long.ends_with("é…")), (201, true));
        assert_eq!(clean(&"é".repeat(200)), "é".repeat(200));
        let path = clean_path(&format!("{}/end.js", "é".repeat(1_000_000)));
        assert!(
            path.chars().count() == 201 && path.starts_with("…é") && path.ends_with("/end.js"),
            "{path}"
        );
        assert_eq!(clean_path(&"é".repeat(200)), "é".repeat(200));
    }

    #[test]
    fn a_name_steers_no_terminal() {
        let mut frame = Frame::new("\u{1b}[2Jx\u{202e}y", "a\nb.js", 3, CodeKind::Application);
        assert_eq!(
            frame.in_sentence(),
            "\u{fffd}[2Jx\u{fffd}y (a\u{fffd}b.js:3)"
        );
        frame.function = "f".repeat(1000);
        assert!(frame.in_sentence().chars().count() < 140);
        frame.function = "(anonymous server.js:17)".into();
        assert_eq!(frame.in_sentence(), "(anonymous server.js:17)");
    }
}
