//! Problems of an experiment file, each with its place, and the "did you mean" that goes with them.
//!
//! Values only: this module renders nothing in colour and decides no exit code; that is the CLI's.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

/// Bytes of the file's text, from the first to one past the last.
pub(crate) type Span = Range<usize>;

/// One thing that is wrong in an experiment file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Bytes of the text that it is about; empty where something is missing.
    pub span: Range<usize>,
    /// What is wrong: names the thing, its value and the limit. One line, lower case, no full stop.
    pub message: String,
    /// Short text for the place itself, for example `expected an integer`.
    pub label: String,
    /// What to do about it, where that is known.
    pub hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self { span, message: message.into(), label: label.into(), hint: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Line and column of its beginning in `text`, both from 1, the column in characters.
    ///
    /// A span that lies behind the end of `text` counts as its end.
    pub fn line_column(&self, text: &str) -> (usize, usize) {
        let before = text.get(..self.span.start).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        // A byte order mark is no character that anyone sees.
        (line, before[line_start..].trim_start_matches('\u{feff}').chars().count() + 1)
    }
}

/// All problems of one file, together with what is needed to show them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    /// The file as it was named by the caller.
    pub path: PathBuf,
    /// Its text; what was not UTF-8 is replaced by U+FFFD.
    pub text: String,
    /// At least one problem, in the order of the text.
    pub problems: Vec<Problem>,
}

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        for (index, problem) in self.problems.iter().enumerate() {
            let (line, column) = problem.line_column(&self.text);
            let newline = if index == 0 { "" } else { "\n" };
            write!(formatter, "{newline}{path}:{line}:{column}: {}", problem.message)?;
        }
        Ok(())
    }
}

/// Why an experiment file gave no plan.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be read at all.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file as it was named by the caller.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file was read, and something in it is wrong.
    #[error("{0}")]
    Problems(Problems),
}

/// The one of `known` that was probably meant by `word`, if any is near enough.
///
/// Transpositions count as one slip (Damerau-Levenshtein), a word cut short (`prod`) or too long as well. About a third of
/// the letters may be wrong: enough for slips of the finger, not so much that unlike words are offered.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let fold = |word: &str| word.to_lowercase().replace('-', "_");
    let folded = fold(word);
    let slips = |candidate: &str| {
        let candidate = fold(candidate);
        let shorter = folded.len().min(candidate.len());
        let same_beginning =
            shorter >= 3 && (candidate.starts_with(&folded) || folded.starts_with(&candidate));
        if same_beginning { 1 } else { strsim::damerau_levenshtein(&folded, &candidate) }
    };
    let allowed = |candidate: &str| (word.chars().count().max(candidate.chars().count()) + 1) / 3;
    known
        .into_iter()
        .map(|candidate| (slips(candidate), candidate))
        .filter(|(slips, candidate)| *slips <= allowed(candidate))
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, candidate)| candidate)
}

/// A hint for an unknown `word`: the nearest of `known`, or else all of them. `what` is plural: "services".
pub fn did_you_mean<'a>(word: &str, what: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(word, known.clone()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => match listed(known) {
            list if list.is_empty() => format!("there are no {what}"),
            list => format!("{what}: {list}"),
        },
    }
}

/// Words in back quotes, separated by commas.
pub(crate) fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
