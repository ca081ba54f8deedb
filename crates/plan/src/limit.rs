//! Limits such as `p99 < 50ms` and `throughput > -3%`: a figure, a relation, and a bound with its unit.
//!
//! It judges no measurement: that is done from a record, by intervals.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use ::model::{Metric, Pacing, Unit as Quantity};
use serde::{Deserialize, Serialize};

use crate::problem::did_you_mean;
use crate::secret::quotable;
use crate::text_form::{TextForm, decimal, text_form};

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

static UNITS: [AmountUnit; 8] = [
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
    pub(crate) fn read(figure: LimitFigure, text: &str) -> Result<Limit, LimitRefusal> {
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
pub(crate) fn expected(figure: LimitFigure) -> (&'static str, &'static str) {
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

text_form! {
    /// A limit: < or >, and an amount with its unit, such as < 50ms, or a change in per cent with its sign, such as > -3%.
    #[derive(Copy)]
    LimitText((Ordering, Bound)) = "Limit",
    "^[<>] *([0-9]+([.][0-9]+)?(/s|us|ms|s|kB|MB|GB|%)|[+-][0-9]+([.][0-9]+)?%)$",
    "a limit such as \"< 50ms\"",
    "`<` or `>`, and an amount with its unit (/s, us, ms, s, kB, MB, GB, % of requests) or a change in per cent with its sign: \"< 50ms\", \"< +5%\", \"> -3%\"",
    relation_and_bound
}

/// No figure has more digits. Keeps a mistake from becoming infinite.
const NUMBER_LENGTH_MAX: usize = 15;

/// The side of the bound on which a figure must stay, and the bound.
fn relation_and_bound(text: &str) -> Result<(Ordering, Bound), String> {
    let (relation, rest) = match text.split_at_checked(1) {
        Some(("<", rest)) => (Ordering::Less, rest),
        Some((">", rest)) => (Ordering::Greater, rest),
        _ => return Err("does not begin with `<` or `>`".to_owned()),
    };
    if rest.starts_with('=') {
        return Err("has a relation other than `<` or `>`".to_owned());
    }
    let rest = rest.trim_start_matches(' ');
    let unsigned = rest.trim_start_matches(['+', '-']);
    let sign = &rest[..rest.len() - unsigned.len()];
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (digits, unit) = unsigned.split_at(end);
    let number = decimal(digits).filter(|_| digits.len() <= NUMBER_LENGTH_MAX);
    let number = number.ok_or("has no number that can be read")?;
    let bound = match (sign, unit) {
        (_, "") => return Err("has no unit".to_owned()),
        // Without the zero this would be −0, which is printed differently.
        ("-", "%") => Bound::Change(0.0 - number),
        ("+", "%") => Bound::Change(number),
        ("", unit) => match UNITS.iter().find(|known| known.name == unit) {
            Some(unit) => Bound::Amount(number, unit),
            None => return Err("has a unit that is not known".to_owned()),
        },
        ("+" | "-", _) => return Err("is an amount with a sign".to_owned()),
        _ => return Err("has more than one sign".to_owned()),
    };
    Ok((relation, bound))
}

text_form! {
    /// A service level objective: a quantile of the response time, or the share of failed requests, below an
    /// amount, such as p99 < 50ms.
    #[derive(Copy)]
    SloText(Limit) = "Slo",
    "^(p50|p90|p99|p99[.]9|failed) *< *[0-9]+([.][0-9]+)?(us|ms|s|%)$",
    "a limit such as \"p99 < 50ms\"",
    "a quantile (p50, p90, p99, p99.9) below a time, or failed requests below a share: \"p99 < 50ms\", \"failed < 0.1%\"",
    |text: &str| match limit(text) {
        Err(reason) => Err(format!("is no such limit: {reason}")),
        Ok(limit) if limit.bound.is_change() => Err("is a change, and there is nothing to compare with".to_owned()),
        Ok(limit) if limit.figure.metric().is_some_and(|metric| metric.quantile().is_none()) => {
            Err(format!("is about {}, which users do not feel", limit.figure.name()))
        }
        Ok(limit) => Ok(limit),
    }
}

#[cfg(test)]
mod tests;
