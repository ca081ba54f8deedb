//! How much of a record goes into a page, so that one of 200 variants or of 10,000 blocks still opens at once: below 5 MB.
//!
//! Must not: drop the ends of a series, or anything without a sentence about it in the page.

/// Numbers of one metric in all variants' series together, and of all block ratios together.
pub(super) const NUMBERS_MAX: usize = 60_000;
/// Variants that have curves of their times, and time lines.
pub(super) const DRAWN_MAX: usize = 64;
/// Points of one curve of times.
pub(super) const CURVE_POINTS_MAX: usize = 200;
/// Points of all time lines together, and of one.
pub(super) const TIME_POINTS_MAX: usize = 6_000;
pub(super) const TIME_LINE_POINTS_MAX: usize = 400;
/// Rows of errors.
pub(super) const ERROR_ROWS_MAX: usize = 500;
/// Findings, the gravest first.
pub(super) const FINDINGS_MAX: usize = 300;
/// Bytes of the experiment file's text.
pub(super) const PLAN_BYTES_MAX: usize = 200_000;

/// Indices of at most so many of `count` things, evenly spread, the first and the last among them.
pub(super) fn evenly(count: usize, most: usize) -> Vec<usize> {
    let most = most.max(2);
    if count <= most {
        return (0..count).collect();
    }
    (0..most).map(|index| index * (count - 1) / (most - 1)).collect()
}

/// Five significant digits: more than a picture can show, in half the bytes.
pub(super) fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 4 - value.abs().log10().floor() as i32;
    let scale = 10_f64.powi(digits.abs());
    if !scale.is_finite() {
        return value;
    }
    if digits >= 0 { (value * scale).round() / scale } else { (value / scale).round() * scale }
}

/// What a picture can show of a value: nothing where it is no number.
pub(super) fn shown(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite()).map(rounded)
}

/// The longest beginning of a text of at most so many bytes.
pub(super) fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_thinned_keeps_its_ends_and_its_order() {
        assert_eq!(evenly(3, 5), [0, 1, 2]);
        assert_eq!(evenly(10, 4), [0, 3, 6, 9]);
        assert_eq!(evenly(10, 0), [0, 9]);
        let many = evenly(10_000, 301);
        assert!(many.len() == 301 && many.is_sorted_by(|one, other| one < other), "{many:?}");
        assert_eq!((many[0], many[300]), (0, 9_999));
    }

    #[test]
    fn numbers_keep_five_digits() {
        let told = [1234.5678, -0.000_123_456_7, 98_765_432.1, 0.0].map(rounded);
        assert_eq!(serde_json::json!(told).to_string(), "[1234.6,-0.00012346,98765000.0,0.0]");
        assert_eq!(shown(Some(f64::NAN)), None);
        assert_eq!(cut("aü", 2), "a");
    }
}
