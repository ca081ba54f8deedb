//! The tree in which problems of a file are found, and the problems found so far.
//!
//! It accesses the file system only to check whether files exist.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::model::Against;
use crate::outside::found;
use crate::problem::{Problem, TextSpan, line_column};
use crate::secret;
use crate::setting::CommandRequests;
use crate::shown::clipped;
use crate::text_form::Period;
use crate::tree::TomlNode;

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
