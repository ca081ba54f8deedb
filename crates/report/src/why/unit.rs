//! What the values of a profile are counted in, and how they are written.

use analysis::{Difference, series};
use explain::Interval;

use crate::figure::{added_column, bytes, column, micros};

pub use explain::Unit;

/// Figures in a unit.
pub(crate) trait Shown: Sized + Copy {
    /// Changes below this are none: half a microsecond in a hundred requests, and less than a byte.
    fn least(self) -> f64;
    /// A value as people read it.
    fn show(self, value: f64) -> String;
    /// What one is in microseconds or bytes.
    fn scale(self) -> f64;
    /// Values that stand below each other, a dash where there is none.
    fn column(self, values: impl Iterator<Item = Option<f64>>) -> Vec<String>;
    /// Both ends of intervals that stand below each other; a dash where one capture is all there is.
    fn ranges<'a>(self, intervals: impl Iterator<Item = &'a Interval> + Clone) -> Vec<String>;
    /// Differences that stand below each other, with their signs, and their intervals where they have one: with one capture both ends
    /// are the value.
    fn changes<'a>(self, differences: impl Iterator<Item = &'a Interval>) -> Vec<(String, Option<String>)>;
    /// A difference in microseconds or bytes.
    fn scaled(self, difference: &Interval) -> Difference;
}

impl Shown for Unit {
    fn least(self) -> f64 {
        match self {
            Unit::MicrosPerRequest => 0.005,
            Unit::Nanoseconds => 5.0,
            Unit::BytesPerRequest | Unit::Bytes => 1.0,
        }
    }

    fn show(self, value: f64) -> String {
        match self {
            // What is below the least that sampling tells is nothing.
            Unit::MicrosPerRequest | Unit::Nanoseconds if value.abs() < self.least() => "0 µs".to_owned(),
            Unit::MicrosPerRequest => micros(value),
            Unit::Nanoseconds => micros(value / 1e3),
            Unit::BytesPerRequest | Unit::Bytes => bytes(value),
        }
    }

    fn scale(self) -> f64 {
        if self == Unit::Nanoseconds { 1e-3 } else { 1.0 }
    }

    fn column(self, values: impl Iterator<Item = Option<f64>>) -> Vec<String> {
        let told = |value: f64| if value.abs() < self.least() { 0.0 } else { value * self.scale() };
        let unit = if self.is_time() { series::Unit::Microseconds } else { series::Unit::Bytes };
        column(unit, &values.map(|value| value.map(told)).collect::<Vec<_>>())
    }

    fn ranges<'a>(self, intervals: impl Iterator<Item = &'a Interval> + Clone) -> Vec<String> {
        let known = |of: &&Interval| of.high > of.low;
        let ends = intervals.clone().filter(known).flat_map(|of| [Some(of.low.max(0.0)), Some(of.high)]);
        let ends = self.column(ends);
        let mut told = ends.chunks(2).map(|ends| {
            let [low, high] = ends else { return dash() };
            // One unit for both where it is one.
            let unit = high.rsplit(' ').next().unwrap_or_default();
            format!("{} to {high}", low.strip_suffix(unit).unwrap_or(low).trim_end())
        });
        intervals.map(|of| if known(&of) { told.next() } else { None }.unwrap_or_else(dash)).collect()
    }

    fn changes<'a>(self, differences: impl Iterator<Item = &'a Interval>) -> Vec<(String, Option<String>)> {
        added_column(&differences.map(|difference| self.scaled(difference)).collect::<Vec<_>>())
    }

    fn scaled(self, difference: &Interval) -> Difference {
        let unit = if self.is_time() { analysis::Unit::Us } else { analysis::Unit::Bytes };
        let of = |value: f64| value * self.scale();
        let Interval { value, low, high } = *difference;
        Difference { unit, value: of(value), low: of(low), high: of(high) }
    }
}

/// A dash is "not known"; a zero would be a figure.
pub(crate) fn dash() -> String {
    "–".to_owned()
}

/// A share of a whole as per cent: of the parts of a profile one decimal is more than they bear.
pub(crate) fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.1} %", part / whole * 100.0) } else { "–".to_owned() }
}
