//! Formats ratios and differences. A ratio is a percentage if it is between half and double, and a factor
//! otherwise. The width of its interval determines the number of digits. Differences are formatted in the
//! metric's own unit.
//!
//! Only this module decides between percentage and factor. A ratio is never written as zero. An end of an
//! interval is never written as no change if the interval excludes no change.

use stats::Estimate;

use super::{
    DECIMALS_MAX, LEAST_SHOWN, NONE, Unit, decimal, digits, digits_after, in_unit, is_zero, visible,
};

/// Whether a ratio reads better as a factor than as a percentage.
fn is_factor(ratio: f64) -> bool {
    !(0.5..=2.0).contains(&ratio)
}

/// Formats a ratio as a factor with two decimals, and more if needed to differ from ×1. Below ×0.1 it has
/// three significant digits.
pub fn factor(ratio: f64) -> String {
    times(
        ratio,
        if ratio < 0.1 {
            digits_after(ratio, 3)
        } else {
            unlike_one(ratio, 2)
        },
    )
}

/// Returns the given number of decimals, or as many as the ratio needs to differ from 1, if that is possible.
fn unlike_one(ratio: f64, decimals: usize) -> usize {
    let differs = |decimals: &usize| digits(ratio, *decimals) != digits(1.0, *decimals);
    (decimals..=DECIMALS_MAX).find(differs).unwrap_or(decimals)
}

/// Formats a factor with the given number of decimals, or as many as it needs to be nonzero: `×0.0042`.
fn times(ratio: f64, decimals: usize) -> String {
    match decimal(ratio, decimals) {
        text if text == NONE => text,
        text if text.starts_with('<') => format!("< ×{LEAST_SHOWN}"),
        text => format!("×{text}"),
    }
}

/// Formats a ratio and its interval as percentages, or as factors if the ratio is large.
///
/// The width of the interval determines the digits of both.
pub fn change(estimate: &Estimate) -> (String, String) {
    interval(estimate.ratio, estimate.low, estimate.high)
}

/// Formats a ratio without its interval. A ratio far below 1 is written as a saving: `−86 %`.
pub fn change_or_saving(estimate: &Estimate) -> String {
    let is_saved = (0.01..0.5).contains(&estimate.ratio);
    if is_saved {
        signed((estimate.ratio - 1.0) * 100.0, 0)
    } else {
        change(estimate).0
    }
}

/// Formats a ratio and its interval as one text: `+29 % (+10 % to +52 %)`.
pub fn change_told(estimate: &Estimate) -> String {
    interval_told(estimate.ratio, estimate.low, estimate.high)
}

/// Formats a ratio with its interval in parentheses: `+12.3 % (+9.8 % to +14.9 %)`.
pub fn interval_told(ratio: f64, low: f64, high: f64) -> String {
    let (value, interval) = interval(ratio, low, high);
    format!("{value} ({interval})")
}

/// Formats any ratio and its interval, like [`change`].
pub fn interval(ratio: f64, low: f64, high: f64) -> (String, String) {
    interval_as(is_factor(ratio), ratio, low, high)
}

/// Formats ratios and their intervals for one column: all as percentages, or all as factors if one of them is.
pub fn intervals(all: &[(f64, f64, f64)]) -> Vec<(String, String)> {
    let as_factors = all.iter().any(|(ratio, ..)| is_factor(*ratio));
    let one = |(ratio, low, high): &(f64, f64, f64)| interval_as(as_factors, *ratio, *low, *high);
    all.iter().map(one).collect()
}

fn interval_as(as_factor: bool, ratio: f64, low: f64, high: f64) -> (String, String) {
    let half_width = (high - low) / 2.0;
    if half_width == 0.0 {
        // Without a width, the number of digits is unknown.
        let alone = change_as(as_factor, ratio, 1, ratio != 1.0);
        return (alone.clone(), format!("{alone} to {alone}"));
    }
    let excludes_none = low > 1.0 || high < 1.0;
    if as_factor {
        // ×16.5 ± 1.4, ×0.0607 ± 0.0023. A factor is never zero, however wide its interval. The interval is
        // logarithmic: its lower end may be far smaller than its width, and gets its own number of digits.
        let wide = decimals(half_width, DECIMALS_MAX);
        let factor = |value: f64| {
            let decimals = wide.max(digits_of_small(value));
            times(
                value,
                if excludes_none {
                    unlike_one(value, decimals)
                } else {
                    decimals
                },
            )
        };
        return (
            factor(ratio),
            format!("{} to {}", factor(low), factor(high)),
        );
    }
    let decimals = decimals(half_width * 100.0, 4);
    let percent = |value: f64| {
        format!(
            "{} %",
            with_sign_in((value - 1.0) * 100.0, decimals, excludes_none)
        )
    };
    (
        percent(ratio),
        format!("{} to {}", percent(low), percent(high)),
    )
}

/// Formats a ratio without an interval, with the given number of decimals: `+4 %`, `×14.1`.
pub fn change_alone(ratio: f64, decimals: usize) -> String {
    change_of(ratio, decimals, false)
}

/// Formats an exact ratio. Only a ratio of exactly 1 is written as no change.
pub fn change_exact(ratio: f64) -> String {
    change_of(ratio, 1, ratio != 1.0)
}

fn change_of(ratio: f64, decimals: usize, excludes_none: bool) -> String {
    change_as(is_factor(ratio), ratio, decimals, excludes_none)
}

fn change_as(as_factor: bool, ratio: f64, decimals: usize, excludes_none: bool) -> String {
    if as_factor {
        return times(ratio, (decimals + 1).max(digits_of_small(ratio)));
    }
    format!(
        "{} %",
        with_sign_in((ratio - 1.0) * 100.0, decimals, excludes_none)
    )
}

/// Number of decimals that gives a factor below 1 two significant digits: ×0.021.
fn digits_of_small(factor: f64) -> usize {
    if factor > 0.0 && factor < 1.0 {
        (1.0 - factor.log10().floor()).clamp(0.0, DECIMALS_MAX as f64) as usize
    } else {
        0
    }
}

/// Formats a difference in its metric's own unit, and its interval. The scale fits both ends, and the width
/// of the interval determines the digits.
pub fn difference(unit: Unit, value: f64, low: f64, high: f64) -> (String, String) {
    difference_in(in_unit(unit, low.abs().max(high.abs())), value, low, high)
}

pub(super) fn difference_in(
    (scale, name): (f64, &str),
    value: f64,
    low: f64,
    high: f64,
) -> (String, String) {
    let (decimals, excludes_none) = (
        decimals((high - low) / 2.0 / scale, 4),
        low > 0.0 || high < 0.0,
    );
    let number = |value: f64| with_sign_in(value / scale, decimals, excludes_none);
    (
        format!("{}{name}", number(value)),
        format!("{} to {}{name}", number(low), number(high)),
    )
}

/// Number of decimals for a figure with this half-width of its interval. The last decimal is the second digit
/// of the half-width: ±0.35 gives two and ±12 none. An interval without width gives the maximum.
fn decimals(half_width: f64, most: usize) -> usize {
    (1.0 - half_width.abs().log10().floor()).clamp(0.0, most as f64) as usize
}

/// Formats a percentage with its sign: `−3.1 %`.
pub fn signed(percent: f64, decimals: usize) -> String {
    format!("{} %", with_sign(percent, decimals))
}

/// Formats a number with its sign, a true minus, and no `−0`.
pub fn with_sign(value: f64, decimals: usize) -> String {
    with_sign_in(value, decimals, false)
}

/// Formats an end of an interval with its sign. If the interval excludes zero, the end is never written as
/// zero: it gets as many decimals as its first digit needs, and `> 0` or `< 0` if that would be too many.
pub(super) fn with_sign_in(value: f64, decimals: usize, excludes_none: bool) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let digits = digits(
        value,
        if excludes_none {
            visible(value, decimals)
        } else {
            decimals
        },
    );
    let sign = match (is_zero(&digits), value) {
        (true, v) if excludes_none && v > 0.0 => return "> 0".to_owned(),
        (true, v) if excludes_none && v < 0.0 => return "< 0".to_owned(),
        (true, _) => "±",
        (false, v) if v < 0.0 => "−",
        (false, _) => "+",
    };
    format!("{sign}{digits}")
}
