//! Level of the tests of series, and how a probability is formatted.

use model::quantity::{change_alone, count as counted_as};

/// Probability that each of these checks fires in a clean run, over all its variants and comparisons. With
/// one in a thousand, all checks together stay far below one in a hundred. The minimum sizes make it rarer
/// still.
pub(super) const SERIES_ALPHA: f64 = 0.001;

/// Share of the margin above which a difference not caused by the variants may change a verdict.
pub(super) const MARGIN_SHARE_MIN: f64 = 0.5;

/// Formats a small probability in words, without zeros to count.
pub(super) fn chance(p: f64) -> String {
    if p < 1e-6 {
        "less than 1 run in a million".to_owned()
    } else {
        format!("1 run in {}", counted_as((1.0 / p).round() as u64))
    }
}

/// Formats a difference of logarithms as a percentage with its sign.
pub(super) fn change(log: f64) -> String {
    change_alone(log.exp(), if log.exp_m1().abs() < 0.1 { 2 } else { 0 })
}
