//! Limits of a gate, such as `p99 < 50ms` and `throughput > -3%`: what they may say, and which comparisons and variants they are about.
//!
//! Judges no measurement: that is done from a record, by intervals.

use std::borrow::Cow;
use std::fmt;

use ::model::{Pacing, Unit as Quantity};
use serde::{Deserialize, Serialize};

use crate::check::clipped;
use crate::model::{Comparison, Design, Metric, Plan, Variant};
use crate::problem::{Site, Span, did_you_mean, line_column, nearest};
use crate::text_form::{LimitText, Relation, TextForm};
use crate::tree::{Entry, Value};

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
    pub fn unit(self) -> Quantity {
        match self {
            Figure::Metric(metric) => metric.unit(),
            Figure::Failed => Quantity::Share,
        }
    }
}

/// What an amount is counted in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// As it is written.
    pub name: &'static str,
    /// In what figures of its kind are measured in: per second, µs, bytes, or a share.
    factor: f64,
    /// What figures written in it are counted in.
    counts: Quantity,
}

/// All units of amounts.
pub(crate) static UNITS: [Unit; 8] = [
    Unit { name: "/s", factor: 1.0, counts: Quantity::PerS },
    Unit { name: "us", factor: 1.0, counts: Quantity::Us },
    Unit { name: "ms", factor: 1e3, counts: Quantity::Us },
    Unit { name: "s", factor: 1e6, counts: Quantity::Us },
    Unit { name: "kB", factor: 1e3, counts: Quantity::Bytes },
    Unit { name: "MB", factor: 1e6, counts: Quantity::Bytes },
    Unit { name: "GB", factor: 1e9, counts: Quantity::Bytes },
    // Of all requests.
    Unit { name: "%", factor: 0.01, counts: Quantity::Share },
];

/// What a figure must be above or below, as it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// A change of the candidate against its baseline, in per cent: −3 is 3 % less.
    Change(f64),
    /// An amount.
    Amount(f64, &'static Unit),
}

impl Bound {
    /// In what is measured: the ratio of candidate to baseline for a change; else responses per second, µs, bytes, or a share.
    pub fn value(self) -> f64 {
        match self {
            Bound::Change(percent) => 1.0 + percent / 100.0,
            Bound::Amount(number, unit) => number * unit.factor,
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
            Bound::Amount(number, unit) => write!(formatter, "{number}{}", unit.name),
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
        write!(formatter, "{} {}", self.figure.name(), self.value())
    }
}

impl Limit {
    /// Relation and bound, as the file has them behind the figure: `< 50ms`.
    pub fn value(&self) -> String {
        format!("{} {}", if self.figure.wants_more() { '>' } else { '<' }, self.bound)
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

/// Reads a limit as it is written behind a flag: `p99 < 50ms`, `throughput > -3%`.
///
/// # Errors
/// What is wrong with it, and what is expected.
pub fn limit(text: &str) -> Result<Limit, String> {
    let at = text.find(['<', '>']).unwrap_or(text.len());
    let (name, written) = (text[..at].trim(), text[at..].trim());
    let Some(figure) = Figure::named(name) else {
        let hint = did_you_mean(name, "figures", Figure::all().map(Figure::name));
        return Err(format!("there is no figure `{name}`; a limit is written \"p99 < 50ms\": {hint}"));
    };
    if written.is_empty() {
        return Err(format!("`{name}` has no bound; a limit is written \"p99 < 50ms\""));
    }
    Limit::read(figure, written).map_err(|(reason, hint)| format!("`{written}` {reason}: {hint}"))
}

/// A change beyond this is a slip of the hand.
const CHANGE_PERCENT_MAX: f64 = 10_000.0;

/// What is wrong with a limit, in words that follow it, and what to do about it.
type Refusal = (String, &'static str);

impl Limit {
    /// Reads what stands behind the figure: whether relation, sign and unit are ones that this figure can have.
    fn read(figure: Figure, text: &str) -> Result<Limit, Refusal> {
        let LimitText((relation, bound)) =
            LimitText::read(text).map_err(|reason| (reason, LimitText::HINT))?;
        if (relation == Relation::Above) != figure.wants_more() {
            let hint = match figure {
                figure if figure.wants_more() => {
                    "more of it is better: \"> -3%\" allows a loss of 3 %, \"> +10%\" asks for a gain, \"> 1000/s\" is an amount"
                }
                Figure::Failed => "less of it is better: \"< 0.1%\"",
                Figure::Metric(_) => {
                    "less of it is better: \"< +5%\" allows 5 % more, \"< -10%\" asks for less"
                }
            };
            return Err(("holds back what is good".to_owned(), hint));
        }
        match bound {
            Bound::Change(percent) => check_change(figure, percent)?,
            Bound::Amount(number, unit) => check_amount(figure, number, unit)?,
        }
        Ok(Limit { figure, bound })
    }
}

fn check_change(figure: Figure, percent: f64) -> Result<(), Refusal> {
    let hint = "a change is above -100% and at most +10000%";
    match percent {
        _ if figure == Figure::Failed => Err((
            "is a change, and shares of failed requests are not compared".to_owned(),
            "without a sign it is the share of all requests: \"< 0.1%\"",
        )),
        percent if percent <= -100.0 => Err(("leaves nothing over".to_owned(), hint)),
        percent if percent > CHANGE_PERCENT_MAX => {
            Err((format!("is too large, it must be at most +{CHANGE_PERCENT_MAX}%"), hint))
        }
        _ => Ok(()),
    }
}

fn check_amount(figure: Figure, number: f64, unit: &Unit) -> Result<(), Refusal> {
    let reason = if unit.counts == Quantity::Share && figure != Figure::Failed {
        "is a change without a sign".to_owned()
    } else if unit.counts != figure.unit() {
        format!("is in {}, which it is not measured in", unit.name)
    } else if number <= 0.0 {
        "is nothing, it must be above 0".to_owned()
    } else if figure == Figure::Failed && number >= 100.0 {
        "is all of them, it must be below 100%".to_owned()
    } else {
        return Ok(());
    };
    Err((reason, expected(figure).1))
}

/// What a limit of the figure looks like.
fn expected(figure: Figure) -> (&'static str, &'static str) {
    match figure.unit() {
        Quantity::Share => ("a share such as \"< 0.1%\"", "a share of all requests, in %: \"< 0.1%\""),
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
        Quantity::Ratio | Quantity::Count | Quantity::Number => {
            ("a limit such as \"< +5%\"", "a change against the baseline has a sign: \"< +5%\"")
        }
    }
}

/// A limit, and what it is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateEntry {
    /// The limit.
    pub limit: Limit,
    /// The variant, level or comparison that it is about; `None`: all that it can be about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Its line in the experiment file, from 1; `None` where it came from a flag.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    /// Whether a run of this plan has the figure at all: where variants are compared response times there are in open loop, throughput in
    /// closed loop alone; and figures of processes where those are started.
    pub fn measures(&self, figure: Figure) -> bool {
        (self.measure.is_some() || is_measured(figure, self.design.pacing())) && !self.hides(figure)
    }

    /// Whether the figure is one of processes, and there are some that nobody may look at.
    pub fn hides(&self, figure: Figure) -> bool {
        let mut entries = self.variants.iter().filter_map(Variant::entry_service);
        figure.metric().is_some_and(Metric::is_of_processes) && entries.any(|entry| !entry.may_be_seen())
    }
}

pub(crate) fn is_measured(figure: Figure, pacing: Pacing) -> bool {
    figure.metric().is_none_or(|metric| metric.exists_in(pacing))
}

/// What an entry may name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    pub variants: &'a [Variant],
    pub comparisons: &'a [Comparison],
}

impl<'a> Known<'a> {
    /// Variants, their levels, and comparisons by their labels; levels that several variants have stand there as often.
    fn names(self) -> impl Iterator<Item = &'a str> + Clone {
        let variants = self.variants.iter().map(|variant| variant.name.as_str());
        let levels = self.variants.iter().flat_map(|variant| variant.levels.values().map(String::as_str));
        let labels = self.comparisons.iter().map(|comparison| comparison.label.as_str());
        variants.chain(levels).chain(labels)
    }
}

/// All limits of the file, in its order within each table.
pub(crate) fn entries(
    site: &mut Site<'_>,
    is_measured: &dyn Fn(Figure) -> bool,
    known: Known<'_>,
) -> Vec<GateEntry> {
    let tree = site.tree;
    let Some(gate) = tree.entry(&["gate"]).and_then(|entry| entry.node.table()) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in gate.entries.iter().filter(|entry| entry.key != "of") {
        found.extend(limits(site, entry, None, is_measured));
    }
    for named in gate.get("of").and_then(|of| of.node.table()).into_iter().flat_map(|of| &of.entries) {
        report_unknown_name(site, named, known);
        for entry in named.node.table().into_iter().flat_map(|table| &table.entries) {
            found.extend(limits(site, entry, Some(&named.key), is_measured));
        }
    }
    found
}

/// The limits of one key: one, or a list.
fn limits(
    site: &mut Site<'_>,
    entry: &Entry,
    of: Option<&str>,
    is_measured: &dyn Fn(Figure) -> bool,
) -> Vec<GateEntry> {
    // What is no figure was told as an unknown key.
    let Some(figure) = Figure::named(&entry.key) else { return Vec::new() };
    if !is_measured(figure) && site.source.complete {
        report_never_measured(site, figure, entry.key_span.clone());
    }
    let texts: Vec<(&str, Span)> = match &entry.node.value {
        Value::String(text) => vec![(text, entry.node.span.clone())],
        Value::Array(items) => items
            .iter()
            .filter_map(|item| match &item.value {
                Value::String(text) => Some((text.as_str(), item.span.clone())),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    if texts.is_empty() && site.source.complete {
        let message = format!("`gate.{}` names no limit", entry.key);
        site.report(entry.node.span.clone(), message, "expected at least one");
    }
    let read = |(text, span): (&str, Span)| match Limit::read(figure, text) {
        Ok(limit) => {
            let before = site.source.text.get(..span.start).unwrap_or_default();
            let line = u32::try_from(line_column(before).0).ok();
            Some(GateEntry { limit, of: of.map(str::to_owned), line })
        }
        Err((reason, hint)) => {
            let message = format!("`gate.{}`: `{}` {reason}", entry.key, clipped(text));
            site.report(span, message, format!("expected {}", expected(figure).0)).hint(hint);
            None
        }
    };
    texts.into_iter().filter_map(read).collect()
}

fn report_never_measured(site: &mut Site<'_>, figure: Figure, place: Span) {
    let (why, hint) = if figure.wants_more() {
        ("in open loop throughput is the rate that is given", "bound a response time, or leave out the rate")
    } else {
        (
            "in closed loop there are no response times worth a limit",
            "set a rate, or a metric such as \"p99\", to have them measured in open loop",
        )
    };
    let message = format!("`gate.{}` is never measured: {why}", figure.name());
    site.report(place, message, "never measured").hint(hint);
}

fn report_unknown_name(site: &mut Site<'_>, named: &Entry, known: Known<'_>) {
    if !site.source.complete
        || known.names().any(|name| name == named.key || name == Comparison::label_today(&named.key))
    {
        return;
    }
    let message = format!("`gate.of`: there is no variant, level or comparison `{}`", clipped(&named.key));
    let variants = known.variants.iter().map(|variant| variant.name.as_str());
    let hint = match nearest(&named.key, known.names()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => did_you_mean(&named.key, "variants", variants),
    };
    site.report(named.key_span.clone(), message, "unknown name").hint(hint);
}

/// One of what a limit is about, as an index into the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Of [`Plan::comparisons`].
    Comparison(usize),
    /// Of [`Plan::variants`].
    Variant(usize),
}

impl Plan {
    /// All that `entry`, one of `entries`, is about, in the order of the plan.
    ///
    /// Without a name that is every comparison, or every variant but those that others are only compared with: they are what there was
    /// before the change. What another entry names for the same figure and kind of bound is left to that one. The copy is nobody's.
    pub fn gated(&self, entry: &GateEntry, entries: &[GateEntry]) -> Vec<Subject> {
        let all: Vec<Subject> = if entry.limit.bound.is_change() {
            (0..self.comparisons.len()).map(Subject::Comparison).collect()
        } else {
            (0..self.variants.len()).map(Subject::Variant).collect()
        };
        let is_about = |subject: &Subject| match &entry.of {
            _ if self.is_the_copy(*subject) => false,
            Some(name) => self.is_called(*subject, name),
            None => !self.is_only_a_baseline(*subject) && !self.is_named_by_another(*subject, entry, entries),
        };
        all.into_iter().filter(is_about).collect()
    }

    fn is_called(&self, subject: Subject, name: &str) -> bool {
        match subject {
            Subject::Comparison(index) => {
                let comparison = &self.comparisons[index];
                comparison.label == Comparison::label_today(name)
                    || goes_by(&self.variants[comparison.candidate], name)
            }
            Subject::Variant(index) => goes_by(&self.variants[index], name),
        }
    }

    fn is_only_a_baseline(&self, subject: Subject) -> bool {
        let Subject::Variant(index) = subject else { return false };
        let is_candidate = |comparison: &Comparison| comparison.candidate == index;
        !self.comparisons.is_empty() && !self.comparisons.iter().any(is_candidate)
    }

    fn is_the_copy(&self, subject: Subject) -> bool {
        self.aa.as_ref().is_some_and(|copy| subject == Subject::Variant(copy.candidate))
    }

    fn is_named_by_another(&self, subject: Subject, entry: &GateEntry, entries: &[GateEntry]) -> bool {
        let (figure, change) = (entry.limit.figure, entry.limit.bound.is_change());
        let alike =
            |other: &&GateEntry| other.limit.figure == figure && other.limit.bound.is_change() == change;
        let mut named = entries.iter().filter(alike).filter_map(|other| other.of.as_deref());
        named.any(|name| self.is_called(subject, name))
    }
}

/// Whether a variant, or one of its levels, has this name.
fn goes_by(variant: &Variant, name: &str) -> bool {
    variant.name == name || variant.levels.values().any(|level| level == name)
}

#[cfg(test)]
mod tests;
