//! Limits of a gate, such as `p99 < 50ms` and `throughput > -3%`: what they may say, and which comparisons and variants they are about.
//!
//! Judges no measurement: that is done from a record, by intervals.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::{Design, Metric, Plan};
use crate::text_form::{FormError, LimitText, TextForm};

mod reading;
mod section;
mod subject;

pub(crate) use section::{Known, entries};
pub use subject::Subject;

/// What a limit bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// A metric.
    Metric(Metric),
    /// The share of requests that did not end in an expected response.
    Failed,
}

impl Figure {
    /// All of them, in the order in which the file's reference has them.
    pub fn all() -> impl Iterator<Item = Figure> + Clone {
        Metric::ALL.iter().copied().map(Figure::Metric).chain([Figure::Failed])
    }

    /// Its name, as the experiment file has it.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Metric(metric) => metric.name(),
            Figure::Failed => "failed",
        }
    }

    /// The figure of that name.
    pub fn named(name: &str) -> Option<Figure> {
        Figure::all().find(|figure| figure.name() == name)
    }

    /// The metric that it is, if it is one.
    pub fn metric(self) -> Option<Metric> {
        match self {
            Figure::Metric(metric) => Some(metric),
            Figure::Failed => None,
        }
    }

    /// Whether more of it is better, so that a limit is a lower one.
    pub fn wants_more(self) -> bool {
        self.metric().is_some_and(Metric::wants_more)
    }

    /// What it is counted in.
    pub fn unit(self) -> ::model::Unit {
        match self {
            Figure::Metric(metric) => metric.unit(),
            Figure::Failed => ::model::Unit::Share,
        }
    }
}

/// What an amount is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Per second.
    PerSecond,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
    /// A thousand bytes.
    Kb,
    /// A million bytes.
    Mb,
    /// A thousand million bytes.
    Gb,
    /// Hundredths of all requests.
    Percent,
}

impl Unit {
    pub(crate) const ALL: [Unit; 8] =
        [Unit::PerSecond, Unit::Us, Unit::Ms, Unit::S, Unit::Kb, Unit::Mb, Unit::Gb, Unit::Percent];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Unit::PerSecond => "/s",
            Unit::Us => "us",
            Unit::Ms => "ms",
            Unit::S => "s",
            Unit::Kb => "kB",
            Unit::Mb => "MB",
            Unit::Gb => "GB",
            Unit::Percent => "%",
        }
    }

    /// In what figures of its kind are measured in: per second, µs, bytes, or a share.
    fn factor(self) -> f64 {
        match self {
            Unit::PerSecond | Unit::Us => 1.0,
            Unit::Ms | Unit::Kb => 1e3,
            Unit::S | Unit::Mb => 1e6,
            Unit::Gb => 1e9,
            Unit::Percent => 0.01,
        }
    }

    /// What figures written in it are counted in.
    fn counts(self) -> ::model::Unit {
        match self {
            Unit::PerSecond => ::model::Unit::PerS,
            Unit::Us | Unit::Ms | Unit::S => ::model::Unit::Us,
            Unit::Kb | Unit::Mb | Unit::Gb => ::model::Unit::Bytes,
            Unit::Percent => ::model::Unit::Share,
        }
    }
}

/// What a figure must be above or below, as it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// A change of the candidate against its baseline, in per cent: −3 is 3 % less.
    Change(f64),
    /// An amount.
    Amount(f64, Unit),
}

impl Bound {
    /// In what is measured: the ratio of candidate to baseline for a change; else responses per second, µs, bytes, or a share.
    pub fn value(self) -> f64 {
        match self {
            Bound::Change(percent) => 1.0 + percent / 100.0,
            Bound::Amount(number, unit) => number * unit.factor(),
        }
    }

    /// Whether it is about comparisons, and not about variants.
    pub fn is_change(self) -> bool {
        matches!(self, Bound::Change(_))
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Change(percent) => write!(formatter, "{percent:+}%"),
            Bound::Amount(number, unit) => write!(formatter, "{number}{}", unit.name()),
        }
    }
}

/// A figure with its bound, written `p99 < 50ms`; of throughput a lower one, of everything else an upper one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub struct Limit {
    /// What is bounded.
    pub figure: Figure,
    /// By what.
    pub bound: Bound,
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let relation = if self.figure.wants_more() { '>' } else { '<' };
        write!(formatter, "{} {relation} {}", self.figure.name(), self.bound)
    }
}

impl From<Limit> for String {
    fn from(limit: Limit) -> String {
        limit.to_string()
    }
}

impl TryFrom<Cow<'_, str>> for Limit {
    type Error = String;
    fn try_from(text: Cow<'_, str>) -> Result<Limit, String> {
        reading::limit(&text)
    }
}

/// Reads a limit as it is written behind a flag: `p99 < 50ms`, `throughput > -3%`.
///
/// # Errors
/// What is wrong with it, and what is expected.
pub fn limit(text: &str) -> Result<Limit, String> {
    reading::limit(text)
}

/// A limit, and what it is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateEntry {
    /// The limit.
    pub limit: Limit,
    /// The variant, level or comparison that it is about; `None`: all that it can be about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Its line in the experiment file, from 1; `None` where it came from a flag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// Limits that allow every metric with a verdict a change for the worse of this share, 0.03 for 3 %, and no more.
pub fn max_regression(design: &Design, share: f64) -> Vec<GateEntry> {
    // Rounding undoes what the division by 100 did to the last digits.
    let percent = (share * 1e8).round() / 1e6;
    let limit = |metric: Metric| {
        let figure = Figure::Metric(metric);
        let bound = Bound::Change(if figure.wants_more() { -percent } else { percent });
        GateEntry { limit: Limit { figure, bound }, of: None, line: None }
    };
    design.metrics().map(limit).collect()
}

impl Plan {
    /// Whether a run of this plan has the figure at all: response times there are in open loop, throughput in closed loop alone, and
    /// figures of processes where those are started.
    pub fn measures(&self, figure: Figure) -> bool {
        is_measured(figure, self.design.rate.is_some()) && !self.hides(figure)
    }

    /// Whether the figure is one of processes, and there are some that run already, of which it is not known.
    pub fn hides(&self, figure: Figure) -> bool {
        self.loads_deployed() && figure.metric().is_some_and(Metric::is_of_processes)
    }
}

fn is_measured(figure: Figure, open_loop: bool) -> bool {
    figure.metric().is_none_or(|metric| metric.exists_in(open_loop))
}

#[cfg(test)]
mod tests;
