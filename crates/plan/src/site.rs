//! One tree under judgement: where things stand in it, and what was found wrong so far.

use std::path::Path;
use std::time::Duration;

use crate::model::Against;
use crate::problem::{Problem, Span};
use crate::text_form::Period;
use crate::tree::Node;

/// What all judgements of one file share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub text: &'a str,
    /// Directories of services are relative to this one.
    pub directory: &'a Path,
    /// The commit at which they are looked for; `None`: here.
    pub against: Option<&'a Against>,
    /// Whether nothing had to be dropped from the tree. Otherwise nothing is said about what is missing: it may be there.
    pub complete: bool,
}

/// A tree, and the problems found in it.
#[derive(Debug)]
pub(crate) struct Site<'a> {
    pub source: Source<'a>,
    pub tree: &'a Node,
    /// The name of the variant that the tree is of.
    pub variant: &'a str,
    pub problems: Vec<Problem>,
}

impl<'a> Site<'a> {
    pub fn new(source: Source<'a>, tree: &'a Node, variant: &'a str) -> Self {
        Self { source, tree, variant, problems: Vec::new() }
    }

    pub fn report(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Reports the length at `path` if it is not within `least..=most`.
    pub fn within(&mut self, path: &[&str], period: Period, least: Period, most: Period) -> Duration {
        let limit = if period < least {
            Some(("too short", format!("at least {least}")))
        } else if period > most {
            Some(("too long", format!("at most {most}")))
        } else {
            None
        };
        if let Some((label, limit)) = limit {
            let message = format!("`{}` is {period}, {limit}", path.join("."));
            self.report(Problem::new(self.tree.place(path), message, label));
        }
        period.0
    }

    /// Place of `part` as it is written within the value at `span`; the whole value, where escapes hide it.
    pub fn part_place(&self, span: Span, part: &str) -> Span {
        let written = self.source.text.get(span.clone()).unwrap_or_default();
        match written.find(part) {
            Some(offset) => span.start + offset..span.start + offset + part.len(),
            None => span,
        }
    }
}
