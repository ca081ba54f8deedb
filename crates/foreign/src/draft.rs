//! A run while its lines come in. It must not know which tool prints what; that is for `tools`.

use crate::number::{self, Lone};
use crate::run::{Quantile, Run};
use crate::tools::Tool;

/// More quantiles than any tool prints.
const QUANTILES_MAX: usize = 64;

/// What a reader made of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It belongs to the run.
    Ours,
    /// It does not.
    Foreign,
    /// It belongs to the next run of the same tool.
    Again,
}

/// What the lines that come next are about.
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
    /// What is not read.
    Skipped,
}

/// A run under way.
#[derive(Debug, Default)]
pub struct Draft {
    pub run: Run,
    pub part: Part,
    /// Whether the last line that the tool prints has been seen.
    pub whole: bool,
    /// Whether the first line left no doubt about the tool.
    pub certain: bool,
    /// Whether it is made of several loads, so that the rate and the length of one are none of the whole.
    pub several: bool,
    /// Of a table.
    pub columns: Vec<String>,
    /// Lines of something else since its last one.
    pub foreign: u32,
}

impl Draft {
    pub fn new(tool: Tool) -> Self {
        Self { run: Run::new(tool), ..Self::default() }
    }

    pub fn rate(&mut self, text: &str, lone: Lone) -> Taken {
        keep(&mut self.run.requests_per_s, number::figure(text, lone))
    }

    pub fn requests(&mut self, text: &str) -> Taken {
        let Some((count, rounded)) = number::count(text) else { return Taken::Ours };
        self.run.rounded |= rounded;
        keep(&mut self.run.requests, Some(count))
    }

    pub fn quantile(&mut self, percent: Option<f64>, us: Option<f64>) {
        let Some((percent, us)) = percent.zip(us) else { return };
        if (0.0..=100.0).contains(&percent) && self.run.latency.quantiles.len() < QUANTILES_MAX {
            self.run.latency.quantiles.push(Quantile { percent, us });
        }
    }

    /// Keeps mean, standard deviation and maximum; zeros stand for nothing measured, and so does a zero beside `nan`.
    pub fn moments(&mut self, mean: Option<f64>, sd: Option<f64>, max: Option<f64>) {
        let latency = &mut self.run.latency;
        let given = || [mean, max].into_iter().flatten();
        latency.unmeasured = given().count() > 0 && given().all(|us| us == 0.0);
        if !latency.unmeasured {
            (latency.mean_us, latency.sd_us, latency.max_us) = (mean, sd, max);
        }
    }

    /// The run, once no more lines come; none if there is nothing in it.
    pub fn finish(mut self) -> Option<Run> {
        if self.run.latency.unmeasured {
            self.run.latency.quantiles.clear();
        }
        self.run.truncated = !self.whole && self.run.abort.is_none();
        (self.run.has_figures() || self.run.abort.is_some() || self.certain).then_some(self.run)
    }
}

/// Keeps a figure unless there is one: then the next run has begun.
pub fn keep<T>(into: &mut Option<T>, value: Option<T>) -> Taken {
    if into.is_some() {
        return Taken::Again;
    }
    *into = value;
    Taken::Ours
}

/// Adds to a count that may not be there yet.
pub fn add(into: &mut Option<u64>, count: u64) {
    *into = Some(into.unwrap_or(0).saturating_add(count));
}
