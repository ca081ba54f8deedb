//! What the values of a tree are counted in, and how they are written.

use model::Quantity;
use model::quantity::{NONE, column, differences};

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
    /// Its name for programs, what is counted, its nanoseconds, and what is none.
    const fn about(self) -> (&'static str, &'static str, f64, f64) {
        match self {
            Unit::MicrosPerRequest => ("us_per_request", "CPU time per request", 1e6, 0.005),
            Unit::Nanoseconds => ("ns", "CPU time", 1.0, 5.0),
            Unit::BytesPerRequest => ("bytes_per_request", "bytes kept per request", 1e3, 1.0),
            Unit::Bytes => ("bytes", "bytes kept", 1e3, 1.0),
        }
    }

    /// Its name for programs: the end of a field's name.
    pub fn name(self) -> &'static str {
        self.about().0
    }

    /// What is counted, for headings.
    pub fn of_what(self) -> &'static str {
        self.about().1
    }

    /// Nanoseconds of a value of one in formats that show time: those of a thousand requests, so that a millisecond is a microsecond of
    /// one request. Where a format has times alone, a byte is a microsecond.
    pub(crate) fn nanoseconds(self) -> f64 {
        self.about().2
    }

    /// Changes below this are none: half a microsecond in a hundred requests, and less than a byte.
    pub(crate) fn least(self) -> f64 {
        self.about().3
    }

    /// A value as people read it. What is below the least that sampling tells is nothing.
    pub fn quantity(self, value: f64) -> Quantity {
        let value = if value.abs() < self.least() { 0.0 } else { value };
        match self {
            Unit::MicrosPerRequest => Quantity::us(value),
            Unit::Nanoseconds => Quantity::us(value / 1e3),
            Unit::BytesPerRequest | Unit::Bytes => Quantity::bytes(value),
        }
    }

    /// A difference with its sign, and its interval where it has one.
    pub(crate) fn difference(self, of: &Interval) -> (String, Option<String>) {
        self.differences([of]).swap_remove(0)
    }

    /// The same of differences that stand below each other. Of one round both ends are the value: there is no interval.
    pub(crate) fn differences<'a>(
        self,
        all: impl IntoIterator<Item = &'a Interval>,
    ) -> Vec<(String, Option<String>)> {
        let scaled = |of: &Interval| {
            let [value, low, high] = [of.value, of.low, of.high].map(|value| self.quantity(value).value);
            (value, (low.is_finite() && high.is_finite() && high > low).then_some((low, high)))
        };
        differences(self.quantity(0.0).unit, &all.into_iter().map(scaled).collect::<Vec<_>>())
    }

    /// Both ends of intervals that stand below each other; a dash where one capture is all there is.
    pub(crate) fn ranges<'a>(self, all: impl Iterator<Item = &'a Interval> + Clone) -> Vec<String> {
        let known = |of: &&Interval| of.high > of.low;
        let ends = all.clone().filter(known).flat_map(|of| [of.low.max(0.0), of.high]);
        let ends: Vec<_> = ends.map(|end| Some(self.quantity(end).value)).collect();
        let ends = column(self.quantity(0.0).unit, &ends);
        let mut ranges = ends.chunks_exact(2).map(|ends| {
            // One unit for both where it is one.
            let unit = ends[1].rsplit(' ').next().unwrap_or_default();
            format!("{} to {}", ends[0].strip_suffix(unit).unwrap_or(&ends[0]).trim_end(), ends[1])
        });
        let range = |of| if known(&of) { ranges.next() } else { None };
        all.map(range).map(|range| range.unwrap_or_else(|| NONE.to_owned())).collect()
    }
}
