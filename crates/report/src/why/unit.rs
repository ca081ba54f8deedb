//! What the values of a profile are counted in, and how they are written.

use audit::Difference;
use profile::Interval;

use crate::figure::{added, added_alone, bytes, micros};

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

    /// A value as people read it.
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            // What is below the least that sampling tells is nothing.
            Unit::MicrosPerRequest if value.abs() < 0.005 => "0 µs".to_owned(),
            Unit::MicrosPerRequest => micros(value),
            Unit::Nanoseconds if value.abs() < 5.0 => "0 µs".to_owned(),
            Unit::Nanoseconds => micros(value / 1e3),
            Unit::BytesPerRequest | Unit::Bytes => bytes(value),
        }
    }

    /// A difference with its sign, and its interval where there is one.
    pub(crate) fn change(self, difference: &Interval) -> (String, Option<String>) {
        let Interval { value, low, high } = *difference;
        let (unit, scale) = match self {
            Unit::MicrosPerRequest => (audit::Unit::Us, 1.0),
            Unit::Nanoseconds => (audit::Unit::Us, 1e-3),
            Unit::BytesPerRequest | Unit::Bytes => (audit::Unit::Bytes, 1.0),
        };
        // One capture has no interval: both of its ends are the value.
        if !(low.is_finite() && high.is_finite() && high > low) {
            return (added_alone(unit, value * scale), None);
        }
        let scaled = Difference { unit, value: value * scale, low: low * scale, high: high * scale };
        let (value, interval) = added(&scaled);
        (value, Some(interval))
    }
}

/// A share of a whole as per cent: of the parts of a profile one decimal is more than they bear.
pub(crate) fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.1} %", part / whole * 100.0) } else { "–".to_owned() }
}
