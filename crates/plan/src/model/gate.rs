//! The limits of a plan's gate, the figures that a run of the plan measures, and the comparisons and variants
//! that each limit applies to.

use ::model::{Metric, MetricLoop, Pacing};
use serde::{Deserialize, Serialize};

use super::{Comparison, Plan, Variant};
use crate::limit::{Limit, LimitFigure};

/// A limit, and its subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateEntry {
    /// The limit.
    pub limit: Limit,
    /// The variant, level or comparison that it applies to. `None`: all possible ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Its line in the experiment file, from 1. `None` if it came from a flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Plan {
    /// Metrics with a verdict, and metrics with a limit in the gate or as service level objective.
    pub fn judged_metrics(&self) -> Vec<Metric> {
        let bounded = self.gate.iter().map(|entry| entry.limit.figure);
        let bounded = bounded.chain(self.design.slo.iter().map(|limit| limit.figure));
        ::model::distinct(
            self.design
                .metrics()
                .chain(bounded.filter_map(LimitFigure::metric)),
        )
    }

    /// Whether throughput is among these metrics.
    pub fn judges_throughput(&self) -> bool {
        self.judged_metrics().contains(&Metric::Throughput)
    }

    /// Whether a run of this plan measures the figure. In comparisons, response times require open loop, and
    /// throughput requires closed loop. Figures of processes require processes that may be read.
    pub fn measures(&self, figure: LimitFigure) -> bool {
        is_measured(figure, self.pacing()) && !self.hides(figure)
    }

    /// Why no run of this plan measures the figure, and a hint, unless the service is the reason.
    pub fn why_never(&self, figure: LimitFigure) -> (&'static str, &'static str) {
        why_never(figure, self.pacing())
    }

    /// When requests are sent. `None` if one variant is measured, in closed or open loop.
    fn pacing(&self) -> Option<Pacing> {
        self.measure.is_none().then(|| self.design.pacing())
    }

    /// Whether the figure is about processes, and some processes may not be read.
    pub fn hides(&self, figure: LimitFigure) -> bool {
        let mut entries = self.variants.iter().filter_map(Variant::entry_service);
        figure.metric().is_some_and(Metric::is_of_processes)
            && entries.any(|entry| !entry.may_be_seen())
    }
}

pub(crate) fn is_measured(figure: LimitFigure, pacing: Option<Pacing>) -> bool {
    match pacing {
        Some(pacing) => figure.exists_in(pacing),
        None => figure
            .metric()
            .is_none_or(|metric| metric.row().loops != MetricLoop::Search),
    }
}

pub(crate) fn why_never(
    figure: LimitFigure,
    pacing: Option<Pacing>,
) -> (&'static str, &'static str) {
    match (figure.metric().map(|metric| metric.row().loops), pacing) {
        (Some(MetricLoop::Search), _) => (
            "capacity is searched for within limits that users bear",
            "`design.slo` says them where variants are compared, as `proofload capacity --slo` does",
        ),
        (_, Some(Pacing::Search)) => (
            "capacity is searched for at many rates",
            "bound `capacity`, `cpu_per_request` or `failed`, or leave out `design.slo`",
        ),
        (Some(MetricLoop::Closed), _) => (
            "in open loop throughput is the rate that is given",
            "bound a response time, or leave out the rate",
        ),
        (Some(MetricLoop::Open | MetricLoop::Either) | None, _) => (
            "in closed loop there are no response times worth a limit",
            "set a rate, or a metric such as \"p99\", to have them measured in open loop",
        ),
    }
}

/// A level with its factor: `cache=on`.
pub(crate) fn level_name(factor: &str, level: &str) -> String {
    format!("{factor}={level}")
}

/// Whether a variant has a level with this name, with or without its factor.
pub(crate) fn is_level(variant: &Variant, name: &str) -> bool {
    variant
        .levels
        .iter()
        .any(|(factor, level)| is_name_of(factor, level, name))
}

/// Whether a level has this name, with or without its factor.
pub(crate) fn is_name_of(factor: &str, level: &str, name: &str) -> bool {
    level == name || level_name(factor, level) == name
}

/// A subject of a limit, as an index into the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitSubject {
    /// Index into [`Plan::comparisons`].
    Comparison(usize),
    /// Index into [`Plan::variants`].
    Variant(usize),
}

impl Plan {
    /// All subjects of `entry`, one of `entries`, in the order of the plan.
    ///
    /// Without a name these are every comparison, or every variant except those that others are only compared
    /// with: they are the state before the change. A subject that another entry names for the same figure and
    /// kind of bound is left to that entry. The copy is never a subject.
    pub fn gated(&self, entry: &GateEntry, entries: &[GateEntry]) -> Vec<LimitSubject> {
        let kind = |entry: &GateEntry| (entry.limit.figure, entry.limit.bound.is_change());
        let alike = entries.iter().filter(|other| kind(other) == kind(entry));
        let named: Vec<&str> = alike.filter_map(|other| other.of.as_deref()).collect();
        let copy = self
            .aa
            .as_ref()
            .map(|copy| LimitSubject::Variant(copy.candidate));
        let is_about = |subject: &LimitSubject| match &entry.of {
            _ if copy == Some(*subject) => false,
            Some(name) => {
                self.is_called(*subject, name) && !self.is_of_other_commit(*subject, name)
            }
            None => {
                !self.is_only_a_baseline(*subject)
                    && !named.iter().any(|name| self.is_called(*subject, name))
            }
        };
        match entry.limit.bound.is_change() {
            true => (0..self.comparisons.len())
                .map(LimitSubject::Comparison)
                .filter(is_about)
                .collect(),
            false => (0..self.variants.len())
                .map(LimitSubject::Variant)
                .filter(is_about)
                .collect(),
        }
    }

    /// Whether a variant, one of its levels, or the comparison of which it is the candidate, has this name.
    fn is_called(&self, subject: LimitSubject, name: &str) -> bool {
        let (comparison, variant) = match subject {
            LimitSubject::Comparison(index) => (
                self.comparisons.get(index),
                self.comparisons[index].candidate,
            ),
            LimitSubject::Variant(index) => (None, index),
        };
        let variant = &self.variants[variant];
        variant.name == name
            || is_level(variant, name)
            || comparison.is_some_and(|comparison| comparison.label == name)
    }

    /// Whether a variant is at the commit that is compared with, and the name does not refer to that side.
    fn is_of_other_commit(&self, subject: LimitSubject, name: &str) -> bool {
        let (LimitSubject::Variant(index), Some(against)) = (subject, &self.against) else {
            return false;
        };
        let (variant, commit) = (&self.variants[index], against.baseline());
        let is_commit = |(factor, level): (&String, &String)| {
            *level == commit && name != commit && name != level_name(factor, level)
        };
        name != variant.name && variant.levels.iter().any(is_commit)
    }

    fn is_only_a_baseline(&self, subject: LimitSubject) -> bool {
        let LimitSubject::Variant(index) = subject else {
            return false;
        };
        let is_candidate = |comparison: &Comparison| comparison.candidate == index;
        !self.comparisons.is_empty() && !self.comparisons.iter().any(is_candidate)
    }
}
