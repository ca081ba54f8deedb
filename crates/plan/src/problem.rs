//! Problems of an experiment file with their places and "did you mean" hints, and the tree in which they are
//! found.
//!
//! Colours and exit codes are the CLI's task. It accesses the file system only to check whether files exist.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::check::clipped;
use crate::model::Against;
use crate::outside::found;
use crate::secret;
use crate::setting::CommandRequests;
use crate::text_form::Period;
use crate::tree::TomlNode;
use ::model::text::{line, nearest};

/// A byte range of the file's text.
pub(crate) type TextSpan = Range<usize>;

/// A problem in an experiment file, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Bytes of the text that it is about. Empty if something is missing.
    pub span: Range<usize>,
    /// The command-line flag that it is about. `span` is then a range of this text.
    pub flag: Option<String>,
    /// The problem: the thing, its value and the limit. One line, lower case, no full stop.
    pub message: String,
    /// Short text for the place, for example `expected an integer`.
    pub label: String,
    /// How to fix it, if known.
    pub hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(
        span: TextSpan,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Self {
        // Paths and names in the message come from the file.
        Self {
            span,
            flag: None,
            message: line(&message.into()),
            label: label.into(),
            hint: None,
        }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// Adds a hint to the problem.
    pub(crate) fn hint(&mut self, hint: impl Into<String>) {
        self.hint = Some(hint.into());
    }

    /// Line and column of its start in `text`, both from 1, the column in characters.
    ///
    /// A span beyond the end of `text` counts as its end.
    pub fn line_column(&self, text: &str) -> (usize, usize) {
        line_column(text.get(..self.span.start).unwrap_or(text))
    }
}

/// Line and column of the position after `before`, both from 1, the column in characters.
pub(crate) fn line_column(before: &str) -> (usize, usize) {
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    // A byte order mark is invisible and does not count.
    let column = before[line_start..]
        .trim_start_matches('\u{feff}')
        .chars()
        .count()
        + 1;
    (before.matches('\n').count() + 1, column)
}

/// Why an experiment file gave no plan.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be read at all.
    #[error("cannot read {}: {source}", secret::quotable(&path.display().to_string()))]
    Io {
        /// The file as the caller named it.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file was read, and contains problems.
    #[error("{} problems", problems.len())]
    Problems {
        /// Its text. Bytes that are not UTF-8 are replaced by U+FFFD.
        text: String,
        /// At least one problem, in the order of the text.
        problems: Vec<Problem>,
    },
}

/// Why something cannot be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    message: String,
    /// How to fix it.
    pub hint: String,
}

impl Refused {
    /// Creates an error from a one-line message and a hint.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Refused {
        Refused {
            message: message.into(),
            hint: hint.into(),
        }
    }
}

/// A hint for an unknown `word`: the nearest of `known`, or else all of them. `what` is plural: "services".
pub fn did_you_mean<'a>(
    word: &str,
    what: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    match nearest(word, known.clone()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => match listed(known) {
            list if list.is_empty() => format!("there are no {what}"),
            list => format!("{what}: {list}"),
        },
    }
}

/// Words in backquotes, separated by commas.
pub(crate) fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words
        .into_iter()
        .map(|word| format!("`{word}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Context shared by all checks of one file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileSource<'a> {
    /// The file's text, followed by the flags of its settings.
    pub text: &'a str,
    /// Length of the file's own text.
    pub file_bytes: usize,
    /// Directories of services are relative to this one.
    pub directory: &'a Path,
    /// The commit in which they are looked up. `None` for the working tree.
    pub against: Option<&'a Against>,
    /// Requests of a command line, in place of the file's.
    pub requests: Option<&'a CommandRequests>,
    /// Whether nothing had to be dropped from the tree. Otherwise missing parts are not reported, because
    /// they may have been dropped.
    pub complete: bool,
}

impl FileSource<'_> {
    /// Line of a place in the file, from 1. `None` for a flag.
    pub fn line(&self, span: &TextSpan) -> Option<u32> {
        let before = self.text.get(..span.start).unwrap_or_default();
        let line = (span.start <= self.file_bytes).then(|| line_column(before).0);
        line.and_then(|line| u32::try_from(line).ok())
    }
}

/// A tree, and the problems found in it.
#[derive(Debug)]
pub(crate) struct Site<'a> {
    pub source: FileSource<'a>,
    pub tree: &'a TomlNode,
    /// Name of the variant of this tree.
    pub variant: &'a str,
    pub problems: Vec<Problem>,
}

impl<'a> Site<'a> {
    pub fn new(source: FileSource<'a>, tree: &'a TomlNode, variant: &'a str) -> Self {
        Self {
            source,
            tree,
            variant,
            problems: Vec::new(),
        }
    }

    /// Reports a problem at `span`.
    pub fn report(
        &mut self,
        span: TextSpan,
        message: impl Into<String>,
        label: &str,
    ) -> &mut Problem {
        self.problems.push(Problem::new(span, message, label));
        self.problems.last_mut().expect("it was just put there")
    }

    /// Reports a problem with the value at `path`.
    pub fn at(&mut self, path: &[&str], message: impl Into<String>, label: &str) -> &mut Problem {
        self.report(self.tree.place(path), message, label)
    }

    /// Reports a problem with a key, or that the key is there.
    pub fn at_key(
        &mut self,
        path: &[&str],
        message: impl Into<String>,
        label: &str,
    ) -> &mut Problem {
        self.report(self.tree.key_place(path), message, label)
    }

    /// Reports the duration at `path` if it is not within these limits.
    pub fn within(&mut self, path: &[&str], period: Period, limits: (Period, Period)) -> Duration {
        if let Some((wrong, limit)) = period.beyond(limits) {
            self.at(
                path,
                format!("`{}` is {period}, {limit}", path.join(".")),
                wrong,
            );
        }
        period.0
    }

    /// Absolute path of a file named by the key at `path`, relative to the folder of the file. Reports a
    /// missing file.
    pub fn file(&mut self, path: &[&str], written: &str) -> Option<PathBuf> {
        self.file_of(&path.join("."), self.tree.place(path), written)
    }

    /// The same for a key at `span`.
    pub fn file_of(&mut self, key: &str, span: TextSpan, written: &str) -> Option<PathBuf> {
        let wanted = self.source.directory.join(written);
        let found = found(&wanted, Path::is_file, "it is no file").map_err(|reason| {
            let message = format!("`{key}`: `{}` cannot be used: {reason}", clipped(written));
            self.report(span, message, "expected a file")
                .hint(format!("looked for {}", wanted.display()));
        });
        found.ok()
    }

    /// Whether this placeholder refers to a secret. Reports an unavailable secret at `span`.
    pub fn is_secret(&mut self, name: &str, span: TextSpan) -> bool {
        let Some(value) = secret::value(name, self.source.directory) else {
            return false;
        };
        if let Err(reason) = value {
            let place = self.part_place(span, &format!("{{{name}}}"));
            self.report(
                place,
                format!("`{{{}}}`: {reason}", clipped(name)),
                "stands for nothing",
            );
        }
        true
    }

    /// Span of `part` within the value at `span`, or the whole value if escapes hide it.
    pub fn part_place(&self, span: TextSpan, part: &str) -> TextSpan {
        let written = self.source.text.get(span.clone()).unwrap_or_default();
        match written.find(part) {
            Some(offset) => span.start + offset..span.start + offset + part.len(),
            None => span,
        }
    }
}
