//! A run under construction. This module does not know which tool prints what, which `tools` does.

use crate::number::{self, Lone};
use crate::run::{PrintedQuantile, ToolRun, UnreadLine};
use crate::tool::Tool;

/// More quantiles than any tool prints.
const QUANTILES_MAX: usize = 64;
/// Lines that were not understood, beyond which the first ones are enough.
const UNREAD_MAX: usize = 8;
const UNREAD_CHARS_MAX: usize = 100;

/// The result of reading a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineTaken {
    /// It belongs to the run.
    Ours,
    /// It does not.
    Foreign,
    /// It belongs to the next run of the same tool.
    Again,
}

/// The contents of the next lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Part {
    /// Single figures with names.
    #[default]
    Summary,
    /// Quantiles of latency.
    Quantiles,
    /// Responses by status.
    Statuses,
    /// Failures by cause.
    Errors,
    /// Lines that are not parsed.
    Skipped,
}

/// A run under construction.
#[derive(Debug, Default)]
pub struct RunDraft {
    pub run: ToolRun,
    pub part: Part,
    /// Whether the last line that the tool prints has been read.
    pub whole: bool,
    /// Whether the first line is unique to the tool.
    pub certain: bool,
    /// Whether it consists of several loads, so that rate and duration of one do not apply to the whole.
    pub several: bool,
    /// The number of the current line.
    pub line: u64,
    /// The current line.
    pub current: String,
    /// Another tool that prints this, which is not supported.
    pub refused: Option<&'static str>,
    /// Column names of a table.
    pub columns: Vec<String>,
    /// Number of foreign lines since its last one.
    pub foreign: u32,
    /// Number of requests, in case that the line with the count is missing.
    pub attempts: Option<u64>,
    /// Number of virtual users, in case that the line with the maximum is missing.
    pub users: Option<u64>,
}

impl RunDraft {
    pub fn new(tool: Tool) -> Self {
        Self {
            run: ToolRun::new(tool),
            ..Self::default()
        }
    }

    pub fn rate(&mut self, text: &str, lone: Lone) -> LineTaken {
        let rate = number::figure(text, lone);
        if rate.is_none() {
            self.not_understood();
        }
        keep(&mut self.run.requests_per_s, rate)
    }

    /// Records a line of the tool that was not read completely.
    pub fn not_understood(&mut self) {
        let (line, text) = (
            self.line,
            self.current.chars().take(UNREAD_CHARS_MAX).collect(),
        );
        let unread = &mut self.run.unread;
        if unread.len() < UNREAD_MAX && unread.last().is_none_or(|last| last.line != line) {
            unread.push(UnreadLine { line, text });
        }
    }

    pub fn requests(&mut self, text: &str) -> LineTaken {
        let Some((count, rounded)) = number::count(text) else {
            self.not_understood();
            return LineTaken::Ours;
        };
        self.run.rounded |= rounded;
        keep(&mut self.run.requests, Some(count))
    }

    pub fn quantile(&mut self, percent: Option<f64>, us: Option<f64>) {
        let Some((percent, us)) = percent.zip(us) else {
            return;
        };
        if (0.0..=100.0).contains(&percent) && self.run.latency.quantiles.len() < QUANTILES_MAX {
            self.run
                .latency
                .quantiles
                .push(PrintedQuantile { percent, us });
        }
    }

    /// Stores mean, standard deviation and maximum. All zeros mean that nothing was measured, and so does a
    /// zero beside `nan`.
    pub fn moments(&mut self, mean: Option<f64>, sd: Option<f64>, max: Option<f64>) {
        let latency = &mut self.run.latency;
        let given = || [mean, max].into_iter().flatten();
        latency.unmeasured = given().count() > 0 && given().all(|us| us == 0.0);
        if !latency.unmeasured {
            (latency.mean_us, latency.sd_us, latency.max_us) = (mean, sd, max);
        }
    }

    /// The run, after its last line. None if it is empty.
    pub fn finish(mut self) -> Option<ToolRun> {
        if self.run.latency.unmeasured {
            self.run.latency.quantiles.clear();
        }
        if self.refused.is_some() {
            return None;
        }
        self.run.requests = self.run.requests.or(self.attempts);
        self.run.load.connections = self.run.load.connections.or(self.users);
        self.run.truncated = !self.whole && self.run.abort.is_none();
        (self.run.has_figures() || self.run.abort.is_some() || self.certain).then_some(self.run)
    }
}

/// Stores a figure unless there is one, in which case the next run has begun.
pub fn keep<T>(into: &mut Option<T>, value: Option<T>) -> LineTaken {
    if into.is_some() {
        return LineTaken::Again;
    }
    *into = value;
    LineTaken::Ours
}

/// Adds to a count that may be missing.
pub fn add(into: &mut Option<u64>, count: u64) {
    *into = Some(into.unwrap_or(0).saturating_add(count));
}
