//! Formats quantities for people: a value and its unit become text with an appropriate number of digits.
//!
//! All numbers in output are formatted here. This module is pure. It does not know what a number measures and
//! does not judge it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod change;
mod column;
#[cfg(test)]
mod tests;

pub use change::{
    change, change_alone, change_exact, change_or_saving, change_told, difference, factor,
    interval, interval_told, intervals, signed, with_sign,
};
pub use column::{column, differences};

/// Placeholder for a missing figure. A zero would be a figure.
pub const NONE: &str = "–";

/// Unit of a figure.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Per second.
    PerS,
    /// Microseconds.
    Us,
    /// Bytes.
    Bytes,
    /// Share of a whole, 0 to 1.
    Share,
    /// Ratio of two amounts.
    Ratio,
    /// A count of items.
    Count,
    /// A plain number, such as processor cores in use.
    Number,
}

/// Scaled forms of a unit: the factor to the basic unit, and the name.
type Steps = &'static [(f64, &'static str)];

impl Unit {
    /// Scaled forms of the unit, smallest first. Only one entry if figures are never scaled.
    fn steps(self) -> Steps {
        match self {
            Unit::Us => &[(1.0, " µs"), (1e3, " ms"), (1e6, " s")],
            Unit::Bytes => &[(1.0, " B"), (1e3, " kB"), (1e6, " MB"), (1e9, " GB")],
            Unit::PerS => &[(1.0, "/s")],
            Unit::Share => &[(0.01, " %")],
            Unit::Ratio | Unit::Count | Unit::Number => &[(1.0, "")],
        }
    }
}

/// A value with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantity {
    /// The value.
    pub value: f64,
    /// The unit.
    pub unit: Unit,
}

impl Quantity {
    /// Creates a count of items.
    pub fn count(number: impl Into<u64>) -> Quantity {
        Quantity {
            value: number.into() as f64,
            unit: Unit::Count,
        }
    }

    /// Creates a plain number.
    pub fn number(value: f64) -> Quantity {
        Quantity {
            value,
            unit: Unit::Number,
        }
    }

    /// Creates a time from nanoseconds.
    pub fn ns(ns: u64) -> Quantity {
        Quantity::us(ns as f64 / 1e3)
    }

    /// Creates a time from microseconds.
    pub fn us(value: f64) -> Quantity {
        Quantity {
            value,
            unit: Unit::Us,
        }
    }

    /// Creates a time from seconds.
    pub fn seconds(seconds: f64) -> Quantity {
        Quantity::us(seconds * 1e6)
    }

    /// Creates an amount of data from bytes.
    pub fn bytes(value: f64) -> Quantity {
        Quantity {
            value,
            unit: Unit::Bytes,
        }
    }

    /// Creates a rate per second.
    pub fn per_s(value: f64) -> Quantity {
        Quantity {
            value,
            unit: Unit::PerS,
        }
    }

    /// Creates a share of a whole, 0 to 1.
    pub fn share(value: f64) -> Quantity {
        Quantity {
            value,
            unit: Unit::Share,
        }
    }

    /// Creates a ratio of two amounts.
    pub fn ratio(value: f64) -> Quantity {
        Quantity {
            value,
            unit: Unit::Ratio,
        }
    }
}

/// Formats the value in the best readable unit, with three significant digits.
impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quantity { value, unit } = *self;
        formatter.pad(&match unit {
            Unit::PerS => rate(value),
            Unit::Us => micros(value),
            Unit::Bytes => bytes(value),
            Unit::Share => share(value),
            Unit::Ratio => factor(value),
            Unit::Count => count(value.round() as u64),
            Unit::Number => three_digits(value),
        })
    }
}

/// A count with its noun, for use as a figure of evidence: `1 run`, `1,234 runs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    number: u64,
    noun: &'static str,
}

/// Creates a count that is written with its noun.
pub fn counted(number: impl Into<u64>, noun: &'static str) -> Counted {
    Counted {
        number: number.into(),
        noun,
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&many(self.number, self.noun))
    }
}

impl From<Counted> for Quantity {
    fn from(of: Counted) -> Quantity {
        Quantity::count(of.number)
    }
}

/// Maximum number of decimals. More are not readable.
const DECIMALS_MAX: usize = 5;

/// Formats a count with thousands separators: `134,054`.
pub fn count(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", count(number / 1000), number % 1000),
    }
}

/// Formats a count and its noun: `1 run`, `1,234 runs`.
pub fn many(number: u64, noun: &str) -> String {
    format!("{} {}", count(number), plural(number, noun))
}

/// Returns the noun in singular or plural: `run`, `runs`, `processes`, `entries`.
pub fn plural(number: u64, noun: &str) -> String {
    let hisses = ["s", "x", "ch", "sh"].iter().any(|end| noun.ends_with(end));
    match noun.strip_suffix('y') {
        _ if number == 1 => noun.to_owned(),
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if hisses => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

/// Formats a figure with three significant digits and thousands separators: `0.123`, `12.3`, `1,230`.
pub fn three_digits(value: f64) -> String {
    let decimals = digits_after(value.abs(), 3);
    if decimals > 0 || !value.is_finite() {
        return decimal(value, decimals);
    }
    // Above a thousand, digits beyond the third are noise on any real machine.
    let unit = 10_f64.powi((value.abs().log10().floor() as i32 - 2).max(0));
    let digits = count(((value.abs() / unit).round() * unit) as u64);
    if value < 0.0 {
        format!("−{digits}")
    } else {
        digits
    }
}

/// Formats a figure with the given number of decimals and a true minus sign. A nonzero value is never written
/// as zero: it gets as many decimals as its first digit needs, and `< 0.00001` if that would be too many.
pub fn decimal(value: f64, decimals: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 {
            "0".to_owned()
        } else {
            NONE.to_owned()
        };
    }
    let digits = digits(value, visible(value, decimals));
    match (is_zero(&digits), value < 0.0) {
        (false, false) => digits,
        (false, true) => format!("−{digits}"),
        (true, false) => format!("< {LEAST_SHOWN}"),
        (true, true) => format!("> −{LEAST_SHOWN}"),
    }
}

/// The smallest figure that [`DECIMALS_MAX`] decimals can show.
const LEAST_SHOWN: &str = "0.00001";

/// Returns the digits of a figure without its sign.
fn digits(value: f64, decimals: usize) -> String {
    format!("{:.1$}", value.abs(), decimals.min(DECIMALS_MAX))
}

/// Whether the digits are all zero.
fn is_zero(digits: &str) -> bool {
    digits.chars().all(|c| matches!(c, '0' | '.'))
}

/// Returns the given number of decimals, or as many as a nonzero figure needs to be written as nonzero.
fn visible(value: f64, decimals: usize) -> usize {
    (decimals..DECIMALS_MAX)
        .find(|decimals| !is_zero(&digits(value, *decimals)))
        .unwrap_or(DECIMALS_MAX)
}

/// Returns the number of decimals that gives a positive figure `digits` significant digits, at most
/// [`DECIMALS_MAX`].
fn digits_after(value: f64, digits: usize) -> usize {
    let before = [0.9995, 9.995, 99.95]
        .iter()
        .filter(|least| value >= **least)
        .count();
    let zeros = [0.09995, 0.009995, 0.0009995]
        .iter()
        .filter(|most| value > 0.0 && value < **most)
        .count();
    (digits + zeros).saturating_sub(before).min(DECIMALS_MAX)
}

/// Formats a rate per second: `52,300/s`.
pub fn rate(per_s: f64) -> String {
    scaled(Unit::PerS, per_s)
}

/// Formats microseconds in the best readable unit: `812 µs`, `5.00 ms`, `1.61 s`.
pub fn micros(us: f64) -> String {
    scaled(Unit::Us, us)
}

/// Formats bytes in decimal units, as used for networks and disks: `134 kB`.
pub fn bytes(bytes: f64) -> String {
    scaled(Unit::Bytes, bytes)
}

/// Formats a figure in the best scale of its unit.
fn scaled(unit: Unit, value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let (scale, name) = in_unit(unit, value);
    let text = if is_whole(unit, scale) {
        decimal(value, 0)
    } else {
        three_digits(value / scale)
    };
    format!("{text}{name}")
}

/// Returns the scale in which the largest figure reads best: its factor and its name.
fn in_unit(unit: Unit, most: f64) -> (f64, &'static str) {
    let steps = unit.steps();
    steps[step(steps, most)]
}

/// Index of the first scale in which a figure has at most three digits before the point, or the last index.
fn step(steps: Steps, value: f64) -> usize {
    steps
        .iter()
        .position(|(scale, _)| value.abs() / scale < 999.5)
        .unwrap_or(steps.len() - 1)
}

/// Whether figures in this scale are whole numbers, as bytes and counts are.
fn is_whole(unit: Unit, scale: f64) -> bool {
    unit == Unit::Count || unit == Unit::Bytes && scale == 1.0
}

/// Formats a duration as in an experiment file: `8s`, `2m5s`, `1h3m`.
pub fn span(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        _ if !seconds.is_finite() => NONE.to_owned(),
        _ if seconds <= 0.0 => "0ms".to_owned(),
        _ if seconds < 0.000_5 => "<1ms".to_owned(),
        _ if seconds < 0.9995 => format!("{:.0}ms", seconds * 1e3),
        s if s < 60 => format!("{s}s"),
        s if s < 3600 && s.is_multiple_of(60) => format!("{}m", s / 60),
        s if s < 3600 => format!("{}m{}s", s / 60, s % 60),
        s if (s % 3600 / 60) == 0 => format!("{}h", s / 3600),
        s => format!("{}h{}m", s / 3600, s % 3600 / 60),
    }
}

/// Formats a share as a percentage: `0.31 %`, `12 %`. A share just below 100 % is not rounded up to it:
/// `99.50 %`, `> 99.99 %`.
pub fn share(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if !p.is_finite() => NONE.to_owned(),
        p if p <= 0.0 => "0 %".into(),
        p if p < 0.01 => "< 0.01 %".into(),
        p if (99.995..100.0 - 1e-9).contains(&p) => "> 99.99 %".into(),
        p if (p < 9.995 || (99.0..99.995).contains(&p)) && (p - p.round()).abs() > 1e-9 => {
            format!("{p:.2} %")
        }
        p => format!("{p:.0} %"),
    }
}

/// Formats an upper bound of a share as a percentage, rounded up so that it remains a bound: `< 0.56 %`.
pub fn share_below(high: f64) -> String {
    let percent = high * 100.0;
    if !percent.is_finite() {
        return NONE.to_owned();
    }
    // Values that exceed a round number only through binary rounding count as that number.
    let up =
        |decimals: i32| (percent * 10_f64.powi(decimals) - 1e-9).ceil() / 10_f64.powi(decimals);
    if percent < 10.0 {
        format!("< {:.2} %", up(2))
    } else {
        format!("< {:.1} %", up(1))
    }
}

/// Formats a small share as a percentage with three significant digits: `0.0123 %`.
pub fn small_share(share: f64) -> String {
    format!("{} %", three_digits(share * 100.0))
}
