//! Limits of a gate, such as `p99 < 50ms` and `throughput > -3%`: their syntax, and the comparisons and
//! variants that they apply to.
//!
//! It judges no measurement: that is done from a record, by intervals.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::{fmt, slice};

use ::model::{MetricLoop, Pacing, Unit as Quantity};
use serde::{Deserialize, Serialize};

use crate::check::clipped;
use crate::model::{Comparison, Metric, Plan, Variant};
use crate::problem::{Site, did_you_mean};
use crate::secret::quotable;
use crate::text_form::{LimitText, TextForm};
use crate::tree::{TomlEntry, TomlNode, Value};
use ::model::text::nearest;

/// The figure that a limit bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitFigure {
    /// A metric.
    Metric(Metric),
    /// The share of requests that did not end in an expected response.
    Failed,
}

impl LimitFigure {
    /// All figures, in the order of the file's reference.
    pub fn all() -> impl Iterator<Item = LimitFigure> + Clone {
        Metric::ALL
            .iter()
            .copied()
            .map(LimitFigure::Metric)
            .chain([LimitFigure::Failed])
    }

    /// Name in the experiment file.
    pub fn name(self) -> &'static str {
        self.metric().map_or("failed", Metric::name)
    }

    /// Finds the figure with this name.
    pub fn named(name: &str) -> Option<LimitFigure> {
        LimitFigure::all().find(|figure| figure.name() == name)
    }

    /// The metric, if it is one.
    pub fn metric(self) -> Option<Metric> {
        match self {
            LimitFigure::Metric(metric) => Some(metric),
            LimitFigure::Failed => None,
        }
    }

    /// Whether it is measured in this kind of loop.
    pub fn exists_in(self, pacing: Pacing) -> bool {
        self.metric().is_none_or(|metric| metric.exists_in(pacing))
    }

    /// Whether more is better, so that a limit is a lower bound.
    pub fn wants_more(self) -> bool {
        self.metric().is_some_and(Metric::wants_more)
    }

    /// Unit of the figure.
    pub fn unit(self) -> Quantity {
        self.metric().map_or(Quantity::Share, Metric::unit)
    }
}

/// A unit of amounts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AmountUnit {
    /// Name in limits.
    pub name: &'static str,
    /// Factor to the unit in which figures of this kind are measured: per second, µs, bytes, or a share.
    factor: f64,
    /// The kind of figures that use this unit.
    counts: Quantity,
}

pub(crate) static UNITS: [AmountUnit; 8] = [
    AmountUnit {
        name: "/s",
        factor: 1.0,
        counts: Quantity::PerS,
    },
    AmountUnit {
        name: "us",
        factor: 1.0,
        counts: Quantity::Us,
    },
    AmountUnit {
        name: "ms",
        factor: 1e3,
        counts: Quantity::Us,
    },
    AmountUnit {
        name: "s",
        factor: 1e6,
        counts: Quantity::Us,
    },
    AmountUnit {
        name: "kB",
        factor: 1e3,
        counts: Quantity::Bytes,
    },
    AmountUnit {
        name: "MB",
        factor: 1e6,
        counts: Quantity::Bytes,
    },
    AmountUnit {
        name: "GB",
        factor: 1e9,
        counts: Quantity::Bytes,
    },
    // Of all requests.
    AmountUnit {
        name: "%",
        factor: 0.01,
        counts: Quantity::Share,
    },
];

/// The bound of a figure, as it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// A change of the candidate against its baseline, in per cent: −3 is 3 % less.
    Change(f64),
    /// An amount.
    Amount(f64, &'static AmountUnit),
}

impl Bound {
    /// The bound as a measured value: the ratio of candidate to baseline for a change, otherwise responses
    /// per second, µs, bytes, or a share.
    pub fn value(self) -> f64 {
        match self {
            Bound::Change(percent) => 1.0 + percent / 100.0,
            Bound::Amount(number, unit) => number * unit.factor,
        }
    }

    /// Whether it applies to comparisons, and not to variants.
    pub fn is_change(self) -> bool {
        match self {
            Bound::Change(_) => true,
            Bound::Amount(..) => false,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Change(percent) => write!(formatter, "{percent:+}%"),
            Bound::Amount(number, unit) => write!(formatter, "{number}{}", unit.name),
        }
    }
}

/// A figure with its bound, written `p99 < 50ms`. It is a lower bound for throughput, and an upper bound for
/// everything else.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub struct Limit {
    /// The bounded figure.
    pub figure: LimitFigure,
    /// The bound.
    pub bound: Bound,
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.figure.name(), self.value())
    }
}

impl Limit {
    /// Relation and bound, as written after the figure in the file: `< 50ms`.
    pub fn value(&self) -> String {
        format!(
            "{} {}",
            if self.figure.wants_more() { '>' } else { '<' },
            self.bound
        )
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
        limit(&text)
    }
}

/// Parses a limit from a flag: `p99 < 50ms`, `throughput > -3%`.
///
/// # Errors
/// The problem, and the expected form.
pub fn limit(text: &str) -> Result<Limit, String> {
    let at = text.find(['<', '>']).unwrap_or(text.len());
    let (name, written) = (text[..at].trim(), text[at..].trim());
    let Some(figure) = LimitFigure::named(name) else {
        let hint = quantile_hint(name, written).unwrap_or_else(|| {
            did_you_mean(name, "figures", LimitFigure::all().map(LimitFigure::name))
        });
        return Err(format!(
            "there is no figure `{}`; a limit is written \"p99 < 50ms\": {hint}",
            quotable(name)
        ));
    };
    if written.is_empty() {
        return Err(format!(
            "`{name}` has no bound; a limit is written \"p99 < 50ms\""
        ));
    }
    Limit::read(figure, written).map_err(|(reason, hint)| format!("`{written}` {reason}: {hint}"))
}

/// A hint for quantiles in another notation, such as k6's (`p(95)<200`), and for those that are not measured.
fn quantile_hint(name: &str, written: &str) -> Option<String> {
    let digits = name.strip_prefix('p')?.trim_matches(['(', ')']);
    let percent: f64 = digits
        .parse()
        .ok()
        .filter(|percent| (0.0..100.0).contains(percent))?;
    let name = format!("p{percent}");
    if LimitFigure::named(&name).is_none() {
        let known: Vec<&str> = Metric::latencies().map(Metric::name).collect();
        return Some(format!("the quantiles are {}", known.join(", ")));
    }
    let bound = written.trim_start_matches(['<', '>', '=']).trim();
    let unit = if bound.ends_with(|last: char| last.is_ascii_digit()) {
        "ms"
    } else {
        ""
    };
    Some(format!("write \"{name} < {bound}{unit}\""))
}

/// A larger change is a typing error.
const CHANGE_PERCENT_MAX: f64 = 10_000.0;

/// The problem of a limit, as words that follow it, and a hint.
type LimitRefusal = (String, String);

impl Limit {
    /// Parses the text after the figure, and checks relation, sign and unit.
    fn read(figure: LimitFigure, text: &str) -> Result<Limit, LimitRefusal> {
        let refused = |reason: &str, hint: &str| Err((reason.to_owned(), hint.to_owned()));
        let LimitText((relation, bound)) =
            LimitText::read(text).map_err(|reason| (reason, LimitText::FORM.hint.to_owned()))?;
        let is_share = figure == LimitFigure::Failed;
        if (relation == Ordering::Greater) != figure.wants_more() {
            let hint = if figure.wants_more() {
                "more of it is better: \"> -3%\" allows a loss of 3 %, \"> +10%\" asks for a gain, \"> 1000/s\" is an amount"
            } else if is_share {
                "less of it is better: \"< 0.1%\""
            } else {
                "less of it is better: \"< +5%\" allows 5 % more, \"< -10%\" asks for less"
            };
            return refused("holds back what is good", hint);
        }
        match bound {
            Bound::Change(_) if is_share => refused(
                "is a change, and shares of failed requests are not compared",
                "without a sign it is the share of all requests: \"< 0.1%\"",
            ),
            Bound::Change(percent) => {
                let hint = format!("a change is above -100% and at most +{CHANGE_PERCENT_MAX}%");
                if percent <= -100.0 {
                    refused("leaves nothing over", &hint)
                } else if percent <= CHANGE_PERCENT_MAX {
                    Ok(Limit { figure, bound })
                } else {
                    refused(
                        &format!("is too large, it must be at most +{CHANGE_PERCENT_MAX}%"),
                        &hint,
                    )
                }
            }
            Bound::Amount(number, unit) => {
                let hint = expected(figure).1;
                if unit.counts == Quantity::Share && !is_share {
                    refused("is a change without a sign", hint)
                } else if unit.counts != figure.unit() {
                    refused(
                        &format!("is in {}, which it is not measured in", unit.name),
                        hint,
                    )
                } else if number <= 0.0 {
                    refused("is nothing, it must be above 0", hint)
                } else if is_share && number >= 100.0 {
                    refused("is all of them, it must be below 100%", hint)
                } else {
                    Ok(Limit { figure, bound })
                }
            }
        }
    }
}

/// An example of a limit for the figure.
fn expected(figure: LimitFigure) -> (&'static str, &'static str) {
    match figure.unit() {
        Quantity::Share => (
            "a share such as \"< 0.1%\"",
            "a share of all requests, in %: \"< 0.1%\"",
        ),
        Quantity::PerS => (
            "a limit such as \"> -3%\"",
            "a change against the baseline has a sign: \"> -3%\"; an amount is in /s: \"> 1000/s\"",
        ),
        Quantity::Bytes => (
            "a limit such as \"< 200MB\"",
            "a change against the baseline has a sign: \"< +5%\"; an amount is in kB, MB or GB: \"< 200MB\"",
        ),
        Quantity::Us => (
            "a limit such as \"< 50ms\"",
            "a change against the baseline has a sign: \"< +5%\"; an amount is in us, ms or s: \"< 50ms\"",
        ),
        Quantity::Ratio | Quantity::Count | Quantity::Number => (
            "a limit such as \"< +5%\"",
            "a change against the baseline has a sign: \"< +5%\"",
        ),
    }
}

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

/// Limits that permit each metric a change for the worse of at most this share, 0.03 for 3 %.
pub fn max_regression(
    metrics: impl IntoIterator<Item = Metric>,
    share: f64,
) -> impl Iterator<Item = Limit> {
    // Rounding undoes the error of the division by 100.
    let percent = (share * 1e8).round() / 1e6;
    metrics.into_iter().map(move |metric| {
        let figure = LimitFigure::Metric(metric);
        let bound = Bound::Change(if figure.wants_more() {
            -percent
        } else {
            percent
        });
        Limit { figure, bound }
    })
}

impl Plan {
    /// Metrics that a conclusion is drawn from: those with a verdict, and those that limits of the gate or of the capacity bound.
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

    /// Whether a run of this plan has the figure at all: where variants are compared response times there are in open loop, throughput in
    /// closed loop alone; and figures of processes where those are started.
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

fn is_measured(figure: LimitFigure, pacing: Option<Pacing>) -> bool {
    match pacing {
        Some(pacing) => figure.exists_in(pacing),
        None => figure
            .metric()
            .is_none_or(|metric| metric.row().loops != MetricLoop::Search),
    }
}

fn why_never(figure: LimitFigure, pacing: Option<Pacing>) -> (&'static str, &'static str) {
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

/// All limits of the file, in its order within each table. `pacing` is as in [`Plan::measures`].
pub(crate) fn entries(
    site: &mut Site<'_>,
    pacing: Option<Pacing>,
    (variants, comparisons): (&[Variant], &[Comparison]),
) -> Vec<GateEntry> {
    let tree = site.tree;
    let mut keys: Vec<(Option<&str>, &TomlEntry)> = Vec::new();
    keys.extend(
        tree.entries(&["gate"])
            .iter()
            .filter(|entry| entry.key != "of")
            .map(|entry| (None, entry)),
    );
    for named in tree.entries(&["gate", "of"]) {
        report_unknown_name(site, named, variants, comparisons);
        let limits = tree.entries(&["gate", "of", &named.key]).iter();
        keys.extend(limits.map(|entry| (Some(named.key.as_str()), entry)));
    }
    let mut found = Vec::new();
    for (
        of,
        TomlEntry {
            key,
            key_span,
            node,
        },
    ) in keys
    {
        // A name that is no figure was reported as an unknown key.
        let Some(figure) = LimitFigure::named(key) else {
            continue;
        };
        if !is_measured(figure, pacing) && site.source.complete {
            let (why, hint) = why_never(figure, pacing);
            let message = format!("`gate.{key}` is never measured: {why}");
            site.report(key_span.clone(), message, "never measured")
                .hint(hint);
        }
        let items = if let Value::Array(items) = &node.value {
            items
        } else {
            slice::from_ref(node)
        };
        if items.is_empty() && site.source.complete {
            let message = format!("`gate.{key}` names no limit");
            site.report(node.span.clone(), message, "expected at least one");
        }
        for TomlNode { span, value } in items {
            let Value::String(text) = value else { continue };
            match Limit::read(figure, text) {
                Ok(limit) => {
                    found.push(GateEntry {
                        limit,
                        of: of.map(str::to_owned),
                        line: site.source.line(span),
                    });
                }
                Err((reason, hint)) => {
                    let message = format!("`gate.{key}`: `{}` {reason}", clipped(text));
                    let label = format!("expected {}", expected(figure).0);
                    site.report(span.clone(), message, &label).hint(hint);
                }
            }
        }
    }
    found
}

/// Reports names that are no variant, level or comparison.
fn report_unknown_name(
    site: &mut Site<'_>,
    named: &TomlEntry,
    known: &[Variant],
    comparisons: &[Comparison],
) {
    let variants = known.iter().map(|variant| variant.name.as_str());
    let levels = known
        .iter()
        .flat_map(|variant| variant.levels.values().map(String::as_str));
    let labels = comparisons
        .iter()
        .map(|comparison| comparison.label.as_str());
    let names = variants.clone().chain(levels).chain(labels);
    let is_level = known.iter().any(|variant| is_level(variant, &named.key));
    if !site.source.complete || is_level || names.clone().any(|name| name == named.key) {
        report_ambiguous_name(site, named, known);
        return;
    }
    let message = format!(
        "`gate.of`: there is no variant, level or comparison `{}`",
        clipped(&named.key)
    );
    let hint = match nearest(&named.key, names) {
        Some(name) => format!("did you mean `{name}`?"),
        None => did_you_mean(&named.key, "variants", variants),
    };
    site.report(named.key_span.clone(), message, "unknown name")
        .hint(hint);
}

/// Reports a name that refers to several things. It must refer to one variant, or the level of one factor.
fn report_ambiguous_name(site: &mut Site<'_>, named: &TomlEntry, known: &[Variant]) {
    let name = named.key.as_str();
    let levels: BTreeSet<(&str, &str)> = known
        .iter()
        .flat_map(|variant| {
            variant
                .levels
                .iter()
                .filter(|(factor, level)| is_name_of(factor, level, name))
        })
        .map(|(factor, level)| (factor.as_str(), level.as_str()))
        .collect();
    let has_level = |variant: &Variant| variant.levels.values().any(|level| level == name);
    let is_variant = known.iter().any(|variant| variant.name == name);
    // With one factor, the level is the variant.
    let is_both = is_variant
        && known
            .iter()
            .any(|variant| variant.name != name && has_level(variant));
    if !site.source.complete || levels.len() < 2 && !is_both {
        return;
    }
    let of: Vec<String> = levels
        .iter()
        .map(|(factor, _)| format!("`{factor}`"))
        .collect();
    let message = format!(
        "`gate.of`: `{}` is a level of {}",
        clipped(name),
        of.join(" and of ")
    );
    let spelled = levels
        .iter()
        .map(|(factor, level)| format!("[gate.of.\"{}\"]", level_name(factor, level)));
    let hint = format!("write {}", spelled.collect::<Vec<_>>().join(" or "));
    site.report(named.key_span.clone(), message, "which of them?")
        .hint(hint);
}

/// A level with its factor: `cache=on`.
fn level_name(factor: &str, level: &str) -> String {
    format!("{factor}={level}")
}

/// Whether a variant has a level with this name, with or without its factor.
fn is_level(variant: &Variant, name: &str) -> bool {
    variant
        .levels
        .iter()
        .any(|(factor, level)| is_name_of(factor, level, name))
}

/// Whether a level has this name, with or without its factor.
fn is_name_of(factor: &str, level: &str, name: &str) -> bool {
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

#[cfg(test)]
mod tests;
