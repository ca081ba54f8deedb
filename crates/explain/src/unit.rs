//! The units of a tree's values, and their formats.

use model::Quantity;
use model::quantity::{NONE, column, differences};

use crate::CostInterval;

/// The unit of a tree's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeUnit {
    /// Microseconds of CPU time per request.
    MicrosPerRequest,
    /// Nanoseconds of CPU time in total.
    Nanoseconds,
    /// Bytes per request.
    BytesPerRequest,
    /// Bytes in total.
    Bytes,
}

impl TreeUnit {
    /// Its name in JSON, the measured quantity, its nanoseconds, and the smallest value that is not zero.
    const fn about(self) -> (&'static str, &'static str, f64, f64) {
        match self {
            TreeUnit::MicrosPerRequest => ("us_per_request", "CPU time per request", 1e6, 0.005),
            TreeUnit::Nanoseconds => ("ns", "CPU time", 1.0, 5.0),
            TreeUnit::BytesPerRequest => ("bytes_per_request", "bytes kept per request", 1e3, 1.0),
            TreeUnit::Bytes => ("bytes", "bytes kept", 1e3, 1.0),
        }
    }

    /// Its name in JSON: the end of a field's name.
    pub fn name(self) -> &'static str {
        self.about().0
    }

    /// The measured quantity, for headings.
    pub fn of_what(self) -> &'static str {
        self.about().1
    }

    /// Nanoseconds per unit in formats that show time. For values per request, of a thousand requests, so a
    /// millisecond shown is a microsecond per request. If a format has times only, a byte is a microsecond.
    pub(crate) fn nanoseconds(self) -> f64 {
        self.about().2
    }

    /// Smaller changes count as zero: half a microsecond in a hundred requests, and less than a byte.
    pub(crate) fn least(self) -> f64 {
        self.about().3
    }

    /// A value for display. Values below the resolution of sampling are zero.
    pub fn quantity(self, value: f64) -> Quantity {
        let value = if value.abs() < self.least() {
            0.0
        } else {
            value
        };
        match self {
            TreeUnit::MicrosPerRequest => Quantity::us(value),
            TreeUnit::Nanoseconds => Quantity::us(value / 1e3),
            TreeUnit::BytesPerRequest | TreeUnit::Bytes => Quantity::bytes(value),
        }
    }

    /// A difference with its sign, and its interval if it has one.
    pub(crate) fn difference(self, of: &CostInterval) -> (String, Option<String>) {
        self.differences([of]).swap_remove(0)
    }

    /// The same for differences in one column. With one round both ends are the value, so there is no
    /// interval.
    pub(crate) fn differences<'a>(
        self,
        all: impl IntoIterator<Item = &'a CostInterval>,
    ) -> Vec<(String, Option<String>)> {
        let scaled = |of: &CostInterval| {
            let [value, low, high] =
                [of.value, of.low, of.high].map(|value| self.quantity(value).value);
            (
                value,
                (low.is_finite() && high.is_finite() && high > low).then_some((low, high)),
            )
        };
        differences(
            self.quantity(0.0).unit,
            &all.into_iter().map(scaled).collect::<Vec<_>>(),
        )
    }

    /// Both ends of intervals in one column. A dash if there is only one capture.
    pub(crate) fn ranges<'a>(
        self,
        all: impl Iterator<Item = &'a CostInterval> + Clone,
    ) -> Vec<String> {
        let known = |of: &&CostInterval| of.high > of.low;
        let ends = all
            .clone()
            .filter(known)
            .flat_map(|of| [of.low.max(0.0), of.high]);
        let ends: Vec<_> = ends.map(|end| Some(self.quantity(end).value)).collect();
        let ends = column(self.quantity(0.0).unit, &ends);
        let mut ranges = ends.chunks_exact(2).map(|ends| {
            // One unit for both ends if they share it.
            let unit = ends[1].rsplit(' ').next().unwrap_or_default();
            format!(
                "{} to {}",
                ends[0].strip_suffix(unit).unwrap_or(&ends[0]).trim_end(),
                ends[1]
            )
        });
        let range = |of| if known(&of) { ranges.next() } else { None };
        all.map(range)
            .map(|range| range.unwrap_or_else(|| NONE.to_owned()))
            .collect()
    }
}
