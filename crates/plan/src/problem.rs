//! Problems of an experiment file with their places and "did you mean" hints.
//!
//! Colours and exit codes are the CLI's task.

use std::ops::Range;
use std::path::PathBuf;

use ::model::text::{line, nearest};

use crate::secret::quotable;

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
    #[error("cannot read {}: {source}", quotable(&path.display().to_string()))]
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
