//! What the values of a tree are counted in, and how they are written.

use model::quantity::{NONE, bytes, column, differences, micros};

use crate::Interval;

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
    pub fn name(self) -> &'static str {
        match self {
            Unit::MicrosPerRequest => "us_per_request",
            Unit::Nanoseconds => "ns",
            Unit::BytesPerRequest => "bytes_per_request",
            Unit::Bytes => "bytes",
        }
    }

    /// What is counted, for headings.
    pub fn of_what(self) -> &'static str {
        match self {
            Unit::MicrosPerRequest => "CPU time per request",
            Unit::Nanoseconds => "CPU time",
            Unit::BytesPerRequest => "bytes kept per request",
            Unit::Bytes => "bytes kept",
        }
    }

    /// In what graphs count, and how much of it a value of one is.
    pub(crate) fn in_graphs(self) -> (&'static str, f64) {
        match self {
            Unit::MicrosPerRequest => ("µs/request", 1.0),
            Unit::Nanoseconds => ("ms", 1e-6),
            Unit::BytesPerRequest => ("B/request", 1.0),
            Unit::Bytes => ("B", 1.0),
        }
    }

    /// Whether it is time.
    pub fn is_time(self) -> bool {
        match self {
            Unit::MicrosPerRequest | Unit::Nanoseconds => true,
            Unit::BytesPerRequest | Unit::Bytes => false,
        }
    }

    /// Nanoseconds of a value of one in formats that show time: those of a thousand requests, so that a millisecond is a microsecond of one
    /// request.
    pub(crate) fn nanoseconds(self) -> f64 {
        match self {
            Unit::MicrosPerRequest => 1e6,
            // A microsecond for a byte, where a format has times alone.
            Unit::BytesPerRequest | Unit::Bytes => 1e3,
            Unit::Nanoseconds => 1.0,
        }
    }

    /// Changes below this are none: half a microsecond in a hundred requests, and less than a byte.
    pub fn least(self) -> f64 {
        match self {
            Unit::MicrosPerRequest => 0.005,
            Unit::Nanoseconds => 5.0,
            Unit::BytesPerRequest | Unit::Bytes => 1.0,
        }
    }

    /// A value as people read it.
    pub fn show(self, value: f64) -> String {
        match self.is_time() {
            // What is below the least that sampling tells is nothing.
            true if value.abs() < self.least() => "0 µs".to_owned(),
            true => micros(value * self.scale()),
            false => bytes(value),
        }
    }

    /// What one is in microseconds or bytes.
    fn scale(self) -> f64 {
        if self == Unit::Nanoseconds { 1e-3 } else { 1.0 }
    }

    fn quantity(self) -> model::Unit {
        if self.is_time() { model::Unit::Us } else { model::Unit::Bytes }
    }

    /// Values that stand below each other, a dash where there is none.
    pub fn column(self, values: impl Iterator<Item = Option<f64>>) -> Vec<String> {
        let shown = |value: f64| if value.abs() < self.least() { 0.0 } else { value * self.scale() };
        column(self.quantity(), &values.map(|value| value.map(shown)).collect::<Vec<_>>())
    }

    /// Both ends of intervals that stand below each other; a dash where one capture is all there is.
    pub fn ranges<'a>(self, intervals: impl Iterator<Item = &'a Interval> + Clone) -> Vec<String> {
        let known = |of: &&Interval| of.high > of.low;
        let ends = intervals.clone().filter(known).flat_map(|of| [Some(of.low.max(0.0)), Some(of.high)]);
        let ends = self.column(ends);
        let mut ranges = ends.chunks_exact(2).map(|ends| {
            // One unit for both where it is one.
            let unit = ends[1].rsplit(' ').next().unwrap_or_default();
            format!("{} to {}", ends[0].strip_suffix(unit).unwrap_or(&ends[0]).trim_end(), ends[1])
        });
        intervals
            .map(|of| if known(&of) { ranges.next() } else { None }.unwrap_or_else(|| NONE.to_owned()))
            .collect()
    }

    /// Differences that stand below each other, with their signs, and their intervals where they have one: with one capture both ends
    /// are the value.
    pub fn changes<'a>(self, all: impl Iterator<Item = &'a Interval>) -> Vec<(String, Option<String>)> {
        let scaled = |of: &Interval| {
            let [value, low, high] = [of.value, of.low, of.high].map(|value| value * self.scale());
            (value, (low.is_finite() && high.is_finite() && high > low).then_some((low, high)))
        };
        differences(self.quantity(), &all.map(scaled).collect::<Vec<_>>())
    }
}
