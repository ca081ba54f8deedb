//! A finding: the result of one validity check, with its evidence in numbers.

use serde::Serialize;

/// How grave a finding is, the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// No conclusion may be drawn.
    Void,
    /// The conclusion stands, with this in mind.
    Warning,
    /// Good to know.
    Note,
}

/// The result of one check that found something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable name of the check, for example `errors`.
    pub check: &'static str,
    /// How grave it is.
    pub grade: Grade,
    /// What was found, in one sentence, with its figures.
    pub evidence: String,
    /// What it means and what to do.
    pub remedy: String,
    /// The variants it is about; empty means all.
    pub variants: Vec<usize>,
}

impl Finding {
    /// Whether this finding forbids a comparison of these two variants.
    pub fn voids(&self, baseline: usize, candidate: usize) -> bool {
        let concerns = |variant| self.variants.is_empty() || self.variants.contains(&variant);
        self.grade == Grade::Void && (concerns(baseline) || concerns(candidate))
    }
}
