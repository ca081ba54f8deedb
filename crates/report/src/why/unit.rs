//! What the values of a profile are counted in, and how they are written.

pub use explain::Unit;

/// A dash is "not known"; a zero would be a figure.
pub(crate) fn dash() -> String {
    "–".to_owned()
}

/// A share of a whole as per cent: of the parts of a profile one decimal is more than they bear.
pub(crate) fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.1} %", part / whole * 100.0) } else { "–".to_owned() }
}
