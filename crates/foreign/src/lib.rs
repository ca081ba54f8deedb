//! What other programs wrote. Of load generators: read into [`Run`]s, and what may be concluded of them. Of servers and browsers: which
//! requests there were, as a [`Mix`].
//!
//! Text goes in, values come out. People paste output into notes, so it is read line by line out of whatever stands around
//! it, in bounded memory, and no input makes it panic. It must not open files, print, or know how a finding is laid out.

mod assembler;
mod command;
mod compare;
mod compatibility;
mod draft;
mod findings;
mod group;
mod heading;
mod json;
mod label;
mod line;
mod mix;
mod number;
mod run;
mod source;
mod tools;
mod traffic;
mod words;

pub use compare::{Comparison, Sides, compare, pick};
pub use compatibility::{Came, Difference, Refusal, Translation, When};
pub use findings::{About, Case, Check, Found, HAND_MAX, HAND_MEDIAN, HAND_WIDE};
pub use group::{Group, Pooled, groups};
pub use mix::{Choice, Kind, LeftOut, Mix, Span};
pub use run::{Failures, Latency, Lines, Load, Quantile, Run};
pub use source::{LINE_BYTES_MAX, RUNS_MAX, Reader, Transcript};
pub use tools::Tool;

use model::Grade;

/// Everything that was read and everything that follows from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    /// Each file, in the order given.
    pub files: Vec<Transcript>,
    /// Each run, in the order found.
    pub runs: Vec<Run>,
    /// Runs that are repeats of each other, by label.
    pub groups: Vec<Group>,
    /// What qualifies or voids conclusions, the gravest first.
    pub findings: Vec<Found>,
}

impl Audit {
    /// Puts the runs of several files together: gives them labels, pools repeats, and draws what follows.
    pub fn of(files: Vec<(Transcript, Vec<Run>)>) -> Self {
        let several = files.len() > 1;
        let (files, runs): (Vec<_>, Vec<_>) = files.into_iter().unzip();
        let mut runs: Vec<Run> = runs.into_iter().flatten().collect();
        label::give(&mut runs, several);
        let groups = groups(&runs);
        let findings = findings::all(&files, &runs, &groups);
        Self { files, runs, groups, findings }
    }

    /// Whether any finding forbids a conclusion.
    pub fn is_void(&self) -> bool {
        self.findings.iter().any(|found| found.grade == Grade::Invalid)
    }
}
