//! Ratios as people read them: per cent while a change is less than half or double, a factor beyond, always with the digits that its interval
//! deserves; and differences in a metric's own unit.
//!
//! The one place that decides between the two forms. Must not: write a ratio as nothing, or an end of an interval as no change where the
//! interval excludes that.

use stats::Estimate;

use super::{
    DECIMALS_MAX, LEAST_SHOWN, NONE, Unit, decimal, digits, digits_after, in_unit, is_zero, visible,
};

/// Whether a ratio reads better as a factor than as a change in per cent.
fn is_factor(ratio: f64) -> bool {
    !(0.5..=2.0).contains(&ratio)
}

/// A ratio as a factor: two decimals, and more where it needs them to differ from ×1; below ×0.1 three significant digits.
pub fn factor(ratio: f64) -> String {
    times(ratio, if ratio < 0.1 { digits_after(ratio, 3) } else { unlike_one(ratio, 2) })
}

/// So many decimals, or those that it takes to write a ratio as something else than 1, if that is possible.
fn unlike_one(ratio: f64, decimals: usize) -> usize {
    let differs = |decimals: &usize| digits(ratio, *decimals) != digits(1.0, *decimals);
    (decimals..=DECIMALS_MAX).find(differs).unwrap_or(decimals)
}

/// A factor with so many decimals, and those that it takes to be more than nothing: `×0.0042`.
fn times(ratio: f64, decimals: usize) -> String {
    match decimal(ratio, decimals) {
        text if text == NONE => text,
        text if text.starts_with('<') => format!("< ×{LEAST_SHOWN}"),
        text => format!("×{text}"),
    }
}

/// A ratio and its interval: as a change in per cent, or as a factor where it is large.
///
/// Both come with the digits that the interval's width deserves.
pub fn change(estimate: &Estimate) -> (String, String) {
    interval(estimate.ratio, estimate.low, estimate.high)
}

/// A ratio without its interval; one that is far below 1 reads better as a part that is saved: `−86 %`.
pub fn change_or_saving(estimate: &Estimate) -> String {
    let is_saved = (0.01..0.5).contains(&estimate.ratio);
    if is_saved { signed((estimate.ratio - 1.0) * 100.0, 0) } else { change(estimate).0 }
}

/// Both in one text: `+29 % (+10 % to +52 %)`.
pub fn change_told(estimate: &Estimate) -> String {
    interval_told(estimate.ratio, estimate.low, estimate.high)
}

/// A ratio with the ends of its interval in brackets: `+12.3 % (+9.8 % to +14.9 %)`.
pub fn interval_told(ratio: f64, low: f64, high: f64) -> String {
    let (value, interval) = interval(ratio, low, high);
    format!("{value} ({interval})")
}

/// The same of any ratio that has an interval.
pub fn interval(ratio: f64, low: f64, high: f64) -> (String, String) {
    let half_width = (high - low) / 2.0;
    if half_width == 0.0 {
        // Nothing is known of its width, and so of its digits.
        let alone = change_exact(ratio);
        return (alone.clone(), format!("{alone} to {alone}"));
    }
    let excludes_none = low > 1.0 || high < 1.0;
    if is_factor(ratio) {
        // ×16.5 ± 1.4, ×0.0607 ± 0.0023. However wide it is, a factor is not nothing.
        // The interval is one of logarithms: its lower end may be far smaller than its width, and has digits of its own.
        let wide = decimals(half_width, DECIMALS_MAX);
        let factor = |value: f64| {
            let decimals = wide.max(digits_of_small(value));
            times(value, if excludes_none { unlike_one(value, decimals) } else { decimals })
        };
        return (factor(ratio), format!("{} to {}", factor(low), factor(high)));
    }
    let decimals = decimals(half_width * 100.0, 4);
    let percent = |value: f64| format!("{} %", with_sign_in((value - 1.0) * 100.0, decimals, excludes_none));
    (percent(ratio), format!("{} to {}", percent(low), percent(high)))
}

/// A ratio of which nothing but its value is known, with so many decimals: `+4 %`, `×14.1`.
pub fn change_alone(ratio: f64, decimals: usize) -> String {
    change_of(ratio, decimals, false)
}

/// A ratio that is exact: only none at all is written as no change.
pub fn change_exact(ratio: f64) -> String {
    change_of(ratio, 1, ratio != 1.0)
}

fn change_of(ratio: f64, decimals: usize, excludes_none: bool) -> String {
    if is_factor(ratio) {
        return times(ratio, (decimals + 1).max(digits_of_small(ratio)));
    }
    format!("{} %", with_sign_in((ratio - 1.0) * 100.0, decimals, excludes_none))
}

/// Decimals that give a factor below 1 two digits that count: ×0.021.
fn digits_of_small(factor: f64) -> usize {
    if factor > 0.0 && factor < 1.0 {
        (1.0 - factor.log10().floor()).clamp(0.0, DECIMALS_MAX as f64) as usize
    } else {
        0
    }
}

/// A difference in its metric's own unit, and its interval: in a unit that fits both ends, with the digits that the interval's
/// width deserves.
pub fn difference(unit: Unit, value: f64, low: f64, high: f64) -> (String, String) {
    difference_in(in_unit(unit, low.abs().max(high.abs())), value, low, high)
}

pub(super) fn difference_in((scale, name): (f64, &str), value: f64, low: f64, high: f64) -> (String, String) {
    let (decimals, excludes_none) = (decimals((high - low) / 2.0 / scale, 4), low > 0.0 || high < 0.0);
    let number = |value: f64| with_sign_in(value / scale, decimals, excludes_none);
    (format!("{}{name}", number(value)), format!("{} to {}{name}", number(low), number(high)))
}

/// Decimals of a figure whose interval is so wide either way: down to the place of the second digit of that half-width, so that
/// ±0.35 gives two and ±12 none. Of an interval without width as many as there may be.
fn decimals(half_width: f64, most: usize) -> usize {
    (1.0 - half_width.abs().log10().floor()).clamp(0.0, most as f64) as usize
}

/// A change in per cent with its sign: `−3.1 %`.
pub fn signed(percent: f64, decimals: usize) -> String {
    format!("{} %", with_sign(percent, decimals))
}

/// With its sign, a true minus, and no `−0`.
pub fn with_sign(value: f64, decimals: usize) -> String {
    with_sign_in(value, decimals, false)
}

/// The same of a value of an interval. Where that excludes zero its ends are not written as zero: they get the decimals that show their
/// first digit, and are `> 0` or `< 0` where those would be too many.
pub(super) fn with_sign_in(value: f64, decimals: usize, excludes_none: bool) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let digits = digits(value, if excludes_none { visible(value, decimals) } else { decimals });
    let sign = match (is_zero(&digits), value) {
        (true, v) if excludes_none && v > 0.0 => return "> 0".to_owned(),
        (true, v) if excludes_none && v < 0.0 => return "< 0".to_owned(),
        (true, _) => "±",
        (false, v) if v < 0.0 => "−",
        (false, _) => "+",
    };
    format!("{sign}{digits}")
}
