//! Numbers as people read them, by the names that reports have for them.

use analysis::Difference;
pub use model::quantity::{bytes, change, change_alone, count, factor, rate, share, span as seconds};
pub(crate) use model::quantity::{column, differences, interval, micros, share_below, signed, small_share};

/// A difference and its interval in a unit that fits both ends.
pub(crate) fn added(of: &Difference) -> (String, String) {
    model::quantity::difference(of.unit, of.value, of.low, of.high)
}
