//! Parsers of other programs' output. Load generators: [`Run`]s and the conclusions they allow. Servers and
//! browsers: the requests, as a [`Mix`].
//!
//! Text goes in, values come out. People paste output into notes, so it is parsed line by line between other
//! text, in limited memory, and no input makes it panic. This crate opens no files, prints nothing, and does
//! not format findings.

mod assembler;
mod command;
mod compare;
mod compatibility;
mod counting;
mod draft;
mod findings;
mod group;
mod heading;
mod json;
mod label;
mod line;
mod mix;
mod number;
mod pasted;
mod run;
mod source;
mod tool;
mod tools;
mod traffic;
mod transcript;
mod words;

pub use compare::{ComparisonAnswer, LabelComparison, compare, pick};
pub use compatibility::{Came, DifferenceCondition, ToolDifference, ToolRefusal, Translation};
pub use findings::{
    About, CheckResult, FindingCase, HAND_MAX, HAND_MEDIAN, HAND_WIDE, OutputCheck,
};
pub use group::{Pooled, RunGroup, groups};
pub use mix::{LeftOut, Mix, MixChoice, RequestKind, TimeSpan};
pub use run::{LineRange, PrintedLatency, PrintedQuantile, ToolFailures, ToolLoad, ToolRun};
pub use source::Reader;
pub use tool::Tool;
pub use transcript::{LINE_BYTES_MAX, RUNS_MAX, Transcript};

use model::Grade;

/// All runs and the conclusions from them.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    /// Each file, in the given order.
    pub files: Vec<Transcript>,
    /// Each run, in order of appearance.
    pub runs: Vec<ToolRun>,
    /// Runs that are repeats of each other, by label.
    pub groups: Vec<RunGroup>,
    /// Findings that qualify or void conclusions, most severe first.
    pub findings: Vec<CheckResult>,
}

impl Audit {
    /// Combines the runs of several files: assigns labels, pools repeats, and runs the checks.
    pub fn of(files: Vec<(Transcript, Vec<ToolRun>)>) -> Self {
        let several = files.len() > 1;
        let (files, runs): (Vec<_>, Vec<_>) = files.into_iter().unzip();
        let mut runs: Vec<ToolRun> = runs.into_iter().flatten().collect();
        label::give(&mut runs, several);
        let groups = groups(&runs);
        let findings = findings::all(&files, &runs, &groups);
        Self {
            files,
            runs,
            groups,
            findings,
        }
    }

    /// Whether any finding forbids a conclusion.
    pub fn is_void(&self) -> bool {
        self.findings
            .iter()
            .any(|found| found.grade == Grade::Invalid)
    }
}
