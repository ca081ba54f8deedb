//! What the values of a profile are counted in, and how they are written.

use explain::Interval;

use model::quantity::{bytes, column, differences, micros};

/// What the values of a tree are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds of CPU time per request.
    MicrosPerRequest,
    /// Nanoseconds of CPU time, all together.
    Nanoseconds,
    /// Bytes per request.
    BytesPerRequest,
    /// Bytes, all together.
    Bytes,
}

impl Unit {
    /// Its name for programs: the end of a field's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::MicrosPerRequest => "us_per_request",
            Unit::Nanoseconds => "ns",
            Unit::BytesPerRequest => "bytes_per_request",
            Unit::Bytes => "bytes",
        }
    }

    /// What is counted, for headings.
    pub(crate) fn of_what(self) -> &'static str {
        match self {
            Unit::MicrosPerRequest => "CPU time per request",
            Unit::Nanoseconds => "CPU time",
            Unit::BytesPerRequest => "bytes kept per request",
            Unit::Bytes => "bytes kept",
        }
    }

    /// Changes below this are none: half a microsecond in a hundred requests, and less than a byte.
    pub(crate) fn least(self) -> f64 {
        match self {
            Unit::MicrosPerRequest => 0.005,
            Unit::Nanoseconds => 5.0,
            Unit::BytesPerRequest | Unit::Bytes => 1.0,
        }
    }

    /// A value as people read it.
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            // What is below the least that sampling tells is nothing.
            Unit::MicrosPerRequest | Unit::Nanoseconds if value.abs() < self.least() => "0 µs".to_owned(),
            Unit::MicrosPerRequest => micros(value),
            Unit::Nanoseconds => micros(value / 1e3),
            Unit::BytesPerRequest | Unit::Bytes => bytes(value),
        }
    }

    /// What one is in microseconds or bytes.
    fn scale(self) -> f64 {
        if self == Unit::Nanoseconds { 1e-3 } else { 1.0 }
    }

    fn quantity(self) -> model::Unit {
        match self {
            Unit::MicrosPerRequest | Unit::Nanoseconds => model::Unit::Us,
            Unit::BytesPerRequest | Unit::Bytes => model::Unit::Bytes,
        }
    }

    /// Values that stand below each other, a dash where there is none.
    pub(crate) fn column(self, values: impl Iterator<Item = Option<f64>>) -> Vec<String> {
        let told = |value: f64| if value.abs() < self.least() { 0.0 } else { value * self.scale() };
        let unit = self.quantity();
        column(unit, &values.map(|value| value.map(told)).collect::<Vec<_>>())
    }

    /// Both ends of intervals that stand below each other; a dash where one capture is all there is.
    pub(crate) fn ranges<'a>(self, intervals: impl Iterator<Item = &'a Interval> + Clone) -> Vec<String> {
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

    /// Differences that stand below each other, with their signs, and their intervals where they have one: with one capture both ends
    /// are the value.
    pub(crate) fn changes<'a>(
        self,
        all: impl Iterator<Item = &'a Interval>,
    ) -> Vec<(String, Option<String>)> {
        let scaled = |of: &Interval| {
            let [value, low, high] = [of.value, of.low, of.high].map(|value| value * self.scale());
            (value, (low.is_finite() && high.is_finite() && high > low).then_some((low, high)))
        };
        differences(self.quantity(), &all.map(scaled).collect::<Vec<_>>())
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
