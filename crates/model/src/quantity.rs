//! Quantities as people read them: a value and its unit become text with as many digits as they deserve.
//!
//! This is the one place where a number becomes words. Pure. Must not: know what the number is of, or judge it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod change;
mod column;
#[cfg(test)]
mod tests;

pub use change::{
    change, change_alone, change_exact, change_or_saving, change_told, difference, factor, interval,
    interval_told, signed, with_sign,
};
pub use column::{column, differences};

/// What stands where there is no figure: a zero would be one.
pub const NONE: &str = "–";

/// What a figure is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Per second.
    PerS,
    /// Microseconds.
    Us,
    /// Bytes.
    Bytes,
    /// A part of a whole, 0 to 1.
    Share,
    /// One amount over another.
    Ratio,
    /// Things.
    Count,
    /// A plain number, such as processor cores in use.
    Number,
}

/// A unit's steps: how many of the basic unit each is, and its name.
type Steps = &'static [(f64, &'static str)];

impl Unit {
    /// Larger and smaller units for the same, the smallest first; none where a figure has one unit only.
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

/// A figure with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantity {
    /// How many.
    pub value: f64,
    /// Of what.
    pub unit: Unit,
}

impl Quantity {
    /// So many things.
    pub fn count(number: impl Into<u64>) -> Quantity {
        Quantity { value: number.into() as f64, unit: Unit::Count }
    }

    /// A plain number.
    pub fn number(value: f64) -> Quantity {
        Quantity { value, unit: Unit::Number }
    }

    /// A time in nanoseconds.
    pub fn ns(ns: u64) -> Quantity {
        Quantity::us(ns as f64 / 1e3)
    }

    /// A time in microseconds.
    pub fn us(value: f64) -> Quantity {
        Quantity { value, unit: Unit::Us }
    }

    /// A time in seconds.
    pub fn seconds(seconds: f64) -> Quantity {
        Quantity::us(seconds * 1e6)
    }

    /// An amount of data in bytes.
    pub fn bytes(value: f64) -> Quantity {
        Quantity { value, unit: Unit::Bytes }
    }

    /// So many per second.
    pub fn per_s(value: f64) -> Quantity {
        Quantity { value, unit: Unit::PerS }
    }

    /// A part of a whole, 0 to 1.
    pub fn share(value: f64) -> Quantity {
        Quantity { value, unit: Unit::Share }
    }

    /// One amount over another.
    pub fn ratio(value: f64) -> Quantity {
        Quantity { value, unit: Unit::Ratio }
    }
}

/// In the unit that reads best, with three digits that count.
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

/// A number of things with their noun, as a figure of evidence: `1 run`, `1,234 runs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    number: u64,
    noun: &'static str,
}

/// A number of things, written with their noun.
pub fn counted(number: impl Into<u64>, noun: &'static str) -> Counted {
    Counted { number: number.into(), noun }
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

/// Most digits after the point. Nobody reads more.
const DECIMALS_MAX: usize = 5;

/// A count with thousands set apart: `134,054`.
pub fn count(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", count(number / 1000), number % 1000),
    }
}

/// A noun with its number: `1 run`, `1,234 runs`.
pub fn many(number: u64, noun: &str) -> String {
    format!("{} {}", count(number), plural(number, noun))
}

/// A noun in the form that its number asks for: `run`, `runs`, `processes`, `entries`.
pub fn plural(number: u64, noun: &str) -> String {
    let hisses = ["s", "x", "ch", "sh"].iter().any(|end| noun.ends_with(end));
    match noun.strip_suffix('y') {
        _ if number == 1 => noun.to_owned(),
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if hisses => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

/// A figure with three significant digits, thousands set apart: `0.123`, `12.3`, `1,230`.
pub fn three_digits(value: f64) -> String {
    let decimals = digits_after(value.abs(), 3);
    if decimals > 0 || !value.is_finite() {
        return decimal(value, decimals);
    }
    // Above a thousand the digits beyond the third are noise on any real machine.
    let unit = 10_f64.powi((value.abs().log10().floor() as i32 - 2).max(0));
    let digits = count(((value.abs() / unit).round() * unit) as u64);
    if value < 0.0 { format!("−{digits}") } else { digits }
}

/// A figure with so many decimals, and a true minus. What is not nothing is never written as zero: it gets the decimals that show its first
/// digit, and `< 0.00001` where those would be too many.
pub fn decimal(value: f64, decimals: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { NONE.to_owned() };
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

/// The digits of a figure without its sign.
fn digits(value: f64, decimals: usize) -> String {
    format!("{:.1$}", value.abs(), decimals.min(DECIMALS_MAX))
}

/// Whether digits are those of zero.
fn is_zero(digits: &str) -> bool {
    digits.chars().all(|c| matches!(c, '0' | '.'))
}

/// So many decimals, or those that it takes to write a figure as something else than zero.
fn visible(value: f64, decimals: usize) -> usize {
    (decimals..DECIMALS_MAX).find(|decimals| !is_zero(&digits(value, *decimals))).unwrap_or(DECIMALS_MAX)
}

/// Decimals that give a positive figure so many digits, as far as there may be so many.
fn digits_after(value: f64, digits: usize) -> usize {
    let before = [0.9995, 9.995, 99.95].iter().filter(|least| value >= **least).count();
    let zeros = [0.09995, 0.009995, 0.0009995].iter().filter(|most| value > 0.0 && value < **most).count();
    (digits + zeros).saturating_sub(before).min(DECIMALS_MAX)
}

/// So many per second: `52,300/s`.
pub fn rate(per_s: f64) -> String {
    scaled(Unit::PerS, per_s)
}

/// Microseconds, in the unit that reads best: `812 µs`, `5.00 ms`, `1.61 s`.
pub fn micros(us: f64) -> String {
    scaled(Unit::Us, us)
}

/// Bytes in decimal units, as network and disk are sold: `134 kB`.
pub fn bytes(bytes: f64) -> String {
    scaled(Unit::Bytes, bytes)
}

/// A figure in the step of its unit that fits it.
fn scaled(unit: Unit, value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let (scale, name) = in_unit(unit, value);
    let text = if is_whole(unit, scale) { decimal(value, 0) } else { three_digits(value / scale) };
    format!("{text}{name}")
}

/// The step in which the largest figure reads best: how many of the basic unit it is, and its name.
fn in_unit(unit: Unit, most: f64) -> (f64, &'static str) {
    let steps = unit.steps();
    steps[step(steps, most)]
}

/// The first step in which a figure has three digits before the point at most, else the last.
fn step(steps: Steps, value: f64) -> usize {
    steps.iter().position(|(scale, _)| value.abs() / scale < 999.5).unwrap_or(steps.len() - 1)
}

/// There is no part of a byte, nor of a thing.
fn is_whole(unit: Unit, scale: f64) -> bool {
    unit == Unit::Count || unit == Unit::Bytes && scale == 1.0
}

/// A length of time, written as an experiment file writes it: `8s`, `2m5s`, `1h3m`.
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

/// A share as per cent: `0.31 %`, `12 %`; what is nearly all is not all: `99.50 %`, `> 99.99 %`.
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

/// An upper bound of a share as per cent, rounded up so that it stays one: `< 0.56 %`.
pub fn share_below(high: f64) -> String {
    let percent = high * 100.0;
    if !percent.is_finite() {
        return NONE.to_owned();
    }
    // What is a hair above a round number by binary rounding is that number.
    let up = |decimals: i32| (percent * 10_f64.powi(decimals) - 1e-9).ceil() / 10_f64.powi(decimals);
    if percent < 10.0 { format!("< {:.2} %", up(2)) } else { format!("< {:.1} %", up(1)) }
}

/// A small share as per cent, with three digits that count: `0.0123 %`.
pub fn small_share(share: f64) -> String {
    format!("{} %", three_digits(share * 100.0))
}
