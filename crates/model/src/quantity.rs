//! Quantities as people read them: a value and its unit become text with as many digits as they deserve.
//!
//! This is the one place where a number becomes words. Pure. Must not: know what the number is of, or judge it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Estimate;

mod column;

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

/// A count with thousands set apart: `134,054`.
pub fn count(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", count(number / 1000), number % 1000),
    }
}

/// A noun with its number: `1 run`, `1,234 runs`.
pub fn many(number: u64, noun: &str) -> String {
    let plural = if noun.ends_with('s') { "es" } else { "s" };
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { plural })
}

/// A figure with three significant digits, thousands set apart: `0.123`, `12.3`, `1,230`.
pub fn three_digits(value: f64) -> String {
    let decimals = digits_after(value.abs(), 3);
    if decimals > 0 {
        return format!("{value:.decimals$}");
    }
    // Above a thousand the digits beyond the third are noise on any real machine.
    let unit = 10_f64.powi((value.abs().log10().floor() as i32 - 2).max(0));
    count(((value / unit).round() * unit) as u64)
}

/// Decimals that give a positive figure so many digits.
fn digits_after(value: f64, digits: usize) -> usize {
    digits.saturating_sub([0.9995, 9.995, 99.95].iter().filter(|least| value >= **least).count())
}

/// So many per second: `52,300/s`.
pub fn rate(per_s: f64) -> String {
    // Nothing at all is exact.
    if per_s == 0.0 { "0/s".into() } else { format!("{}/s", three_digits(per_s)) }
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
    let (scale, name) = in_unit(unit, value);
    if value == 0.0 || is_whole(unit, scale) {
        return format!("{:.0}{name}", value);
    }
    format!("{}{name}", three_digits(value / scale))
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
        _ if seconds < 0.9995 => format!("{:.0}ms", seconds.max(0.0) * 1e3),
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
    // What is a hair above a round number by binary rounding is that number.
    let up = |decimals: i32| (percent * 10_f64.powi(decimals) - 1e-9).ceil() / 10_f64.powi(decimals);
    if percent < 10.0 { format!("< {:.2} %", up(2)) } else { format!("< {:.1} %", up(1)) }
}

/// A small share as per cent, with three digits that count: `0.0123 %`.
pub fn small_share(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 {
        return "0 %".to_owned();
    }
    let decimals = (2.0 - percent.log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{percent:.decimals$} %")
}

/// A ratio as a factor: two decimals, and up to six where it needs them to differ from ×1.
pub fn factor(ratio: f64) -> String {
    let near = |decimals: usize| (format!("{ratio:.decimals$}"), format!("{:.decimals$}", 1.0));
    let shown = (2..=6).map(near).find(|(value, one)| value != one || ratio == 1.0);
    format!("×{}", shown.map_or_else(|| "1.00".to_owned(), |(value, _)| value))
}

/// Whether a ratio reads better as a factor than as a change in per cent.
fn is_factor(ratio: f64) -> bool {
    !(0.5..=2.0).contains(&ratio)
}

/// A ratio and its interval: as a change in per cent, or as a factor where it is large.
///
/// Both come with the digits that the interval's width deserves.
pub fn change(estimate: &Estimate) -> (String, String) {
    interval(estimate.ratio, estimate.low, estimate.high)
}

/// Both in one text: `+29 % (+10 % to +52 %)`.
pub fn change_told(estimate: &Estimate) -> String {
    interval_told(estimate.ratio, estimate.low, estimate.high)
}

/// A ratio with the ends of its interval in brackets: `+12.3 % (+9.8 % to +14.9 %)`.
pub fn interval_told(ratio: f64, low: f64, high: f64) -> String {
    let (value, interval) = interval(ratio, low, high);
    format!("{value} ({interval})")
}

/// The same of any ratio that has an interval.
pub fn interval(ratio: f64, low: f64, high: f64) -> (String, String) {
    let half_width = (high - low) / 2.0;
    if half_width == 0.0 {
        // Nothing is known of its width, and so of its digits.
        let alone = change_alone(ratio, 1);
        return (alone.clone(), format!("{alone} to {alone}"));
    }
    if is_factor(ratio) {
        // ×16.5 ± 1.4, ×0.0607 ± 0.0023. However wide it is, a factor is not nothing.
        let decimals = decimals(half_width, 6).max(digits_of_small(ratio));
        let factor = |value: f64| format!("×{value:.decimals$}");
        return (factor(ratio), format!("{} to {}", factor(low), factor(high)));
    }
    let decimals = decimals(half_width * 100.0, 4);
    let percent = |value: f64| signed((value - 1.0) * 100.0, decimals);
    (percent(ratio), format!("{} to {}", percent(low), percent(high)))
}

/// A ratio of which nothing but its value is known, with so many decimals: `+4 %`, `×14.1`.
pub fn change_alone(ratio: f64, decimals: usize) -> String {
    if is_factor(ratio) {
        return format!("×{ratio:.0$}", (decimals + 1).max(digits_of_small(ratio)));
    }
    signed((ratio - 1.0) * 100.0, decimals)
}

/// Decimals that give a factor below 1 two digits that count: ×0.021.
fn digits_of_small(factor: f64) -> usize {
    if factor > 0.0 && factor < 1.0 { (1.0 - factor.log10().floor()).clamp(0.0, 6.0) as usize } else { 0 }
}

/// A difference in its metric's own unit, and its interval: in a unit that fits both ends, with the digits that the interval's
/// width deserves.
pub fn difference(unit: Unit, value: f64, low: f64, high: f64) -> (String, String) {
    difference_in(in_unit(unit, low.abs().max(high.abs())), value, low, high)
}

fn difference_in((scale, name): (f64, &str), value: f64, low: f64, high: f64) -> (String, String) {
    let decimals = decimals((high - low) / 2.0 / scale, 4);
    let number = |value: f64| with_sign(value / scale, decimals);
    (format!("{}{name}", number(value)), format!("{} to {}{name}", number(low), number(high)))
}

/// Decimals of a figure whose interval is so wide either way: down to the place of the second digit of that half-width, so that
/// ±0.35 gives two and ±12 none. Of an interval without width as many as there may be.
fn decimals(half_width: f64, most: usize) -> usize {
    (1.0 - half_width.abs().log10().floor()).clamp(0.0, most as f64) as usize
}

/// A change in per cent with its sign: `−3.1 %`.
pub fn signed(percent: f64, decimals: usize) -> String {
    format!("{} %", with_sign(percent, decimals))
}

/// With its sign, a true minus, and no `−0`.
fn with_sign(value: f64, decimals: usize) -> String {
    let digits = format!("{:.decimals$}", value.abs());
    let zero = digits.chars().all(|c| matches!(c, '0' | '.'));
    let sign = match value {
        _ if zero => "±",
        v if v < 0.0 => "−",
        _ => "+",
    };
    format!("{sign}{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_has_three_digits_and_the_unit_that_reads_best() {
        let cases = [
            (Quantity::count(134_054_u64), "134,054"),
            (Quantity::count(7_u64), "7"),
            (Quantity::per_s(1234.5), "1,230/s"),
            (Quantity::per_s(52_267.0), "52,300/s"),
            (Quantity::per_s(6.46), "6.46/s"),
            (Quantity::per_s(0.0), "0/s"),
            (Quantity::us(812.3), "812 µs"),
            (Quantity::us(999.6), "1.00 ms"),
            (Quantity::us(0.0), "0 µs"),
            (Quantity::ns(5_000_000), "5.00 ms"),
            (Quantity::us(81_230.0), "81.2 ms"),
            (Quantity::seconds(2.0), "2.00 s"),
            (Quantity::bytes(312.0), "312 B"),
            (Quantity::bytes(134_054.0), "134 kB"),
            (Quantity::bytes(9_996.0), "10.0 kB"),
            (Quantity::share(0.0), "0 %"),
            (Quantity::share(0.0031), "0.31 %"),
            (Quantity::share(0.03), "3 %"),
            (Quantity::share(0.123), "12 %"),
            (Quantity::share(0.99996), "> 99.99 %"),
            (Quantity::share(1.0), "100 %"),
            (Quantity::share(1.503), "150 %"),
            (Quantity::share(0.00001), "< 0.01 %"),
            (Quantity::ratio(0.5), "×0.50"),
            (Quantity::ratio(1.0002), "×1.0002"),
            (Quantity::ratio(1.0 - 1e-16), "×1.00"),
            (Quantity::number(1.417), "1.42"),
        ];
        for (quantity, text) in cases {
            assert_eq!(quantity.to_string(), text, "{quantity:?}");
        }
        assert_eq!([many(1, "run"), many(1234, "run")], ["1 run", "1,234 runs"]);
        assert_eq!([span(0.25), span(60.0), span(125.2), span(3780.0)], ["250ms", "1m", "2m5s", "1h3m"]);
        let below = [share_below(0.005_552), share_below(0.1028), share_below(1e-7)];
        assert_eq!(below, ["< 0.56 %", "< 10.3 %", "< 0.01 %"]);
    }

    #[test]
    fn a_difference_has_one_unit_and_the_digits_of_its_width() {
        let us = |value, low, high| difference(Unit::Us, value, low, high);
        assert_eq!(us(23.06, 17.2, 29.1), ("+23.1 µs".into(), "+17.2 to +29.1 µs".into()));
        assert_eq!(us(-0.214, -0.9, 0.47), ("−0.21 µs".into(), "−0.90 to +0.47 µs".into()));
        assert_eq!(us(15_210.0, 14_900.0, 15_500.0), ("+15.21 ms".into(), "+14.90 to +15.50 ms".into()));
        let mb = difference(Unit::Bytes, 45e6, -1e3, 9e7);
        assert_eq!(mb, ("+45 MB".into(), "±0 to +90 MB".into()));
    }

    #[test]
    fn a_change_has_a_sign_and_no_false_precision() {
        let cases = [
            ((1.012, 0.9, 1.12), ("+1 %", "−10 % to +12 %")),
            ((0.9996, 0.989, 1.011), ("±0.0 %", "−1.1 % to +1.1 %")),
            ((1.0042, 1.0021, 1.0063), ("+0.42 %", "+0.21 % to +0.63 %")),
            ((0.02134, 0.003, 9.0), ("×0.021", "×0.003 to ×9.000")),
            ((1.149288, 1.149288, 1.149288), ("+14.9 %", "+14.9 % to +14.9 %")),
            ((10.585106, 10.585106, 10.585106), ("×10.59", "×10.59 to ×10.59")),
            ((4.123, 3.9, 4.5), ("×4.12", "×3.90 to ×4.50")),
            ((16.54, 15.2, 18.0), ("×16.5", "×15.2 to ×18.0")),
            ((0.0607, 0.0585, 0.0631), ("×0.0607", "×0.0585 to ×0.0631")),
        ];
        for ((ratio, low, high), (value, ends)) in cases {
            assert_eq!(interval(ratio, low, high), (value.to_owned(), ends.to_owned()));
        }
        assert_eq!(
            [change_alone(1.04, 0), change_alone(0.88, 1), change_alone(14.12, 0), change_alone(0.0312, 0)],
            ["+4 %", "−12.0 %", "×14.1", "×0.031"]
        );
    }
}
