//! Numbers as people read them: as many digits as they deserve, and a unit.

use analysis::{Difference, Unit};
pub use foreign::figure::count;
use stats::Estimate;

mod column;

pub(crate) use column::{added_column, column};

/// A positive figure with three significant digits, thousands set apart: `0.123`, `12.3`, `1,230`.
fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v < 1.0 => 3,
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    if decimals > 0 {
        return format!("{value:.decimals$}");
    }
    // Above a thousand the digits beyond the third are noise on any real machine.
    let unit = 10_f64.powi((value.abs().log10().floor() as i32 - 2).max(0));
    count(((value / unit).round() * unit) as u64)
}

/// Responses per second.
pub fn rate(per_s: f64) -> String {
    // Nothing at all is exact.
    if per_s == 0.0 { "0/s".into() } else { format!("{}/s", three_digits(per_s)) }
}

/// Microseconds, in the unit that reads best.
pub fn micros(us: f64) -> String {
    match us {
        us if us < 10_000.0 => format!("{} µs", three_digits(us)),
        us if us < 10_000_000.0 => format!("{} ms", three_digits(us / 1e3)),
        us => format!("{} s", three_digits(us / 1e6)),
    }
}

/// Bytes in decimal units, as network and disk are sold.
pub fn bytes(bytes: f64) -> String {
    match bytes {
        b if b < 1e3 => format!("{b:.0} B"),
        b if b < 1e6 => format!("{} kB", three_digits(b / 1e3)),
        b if b < 1e9 => format!("{} MB", three_digits(b / 1e6)),
        b => format!("{} GB", three_digits(b / 1e9)),
    }
}

/// A length of time, written as the experiment file writes it: `8s`, `2m5s`, `1h3m`.
pub fn seconds(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0 => format!("{:.0}ms", seconds.max(0.0) * 1e3),
        s if s < 60 => format!("{s}s"),
        s if s < 3600 && s.is_multiple_of(60) => format!("{}m", s / 60),
        s if s < 3600 => format!("{}m{}s", s / 60, s % 60),
        s if (s % 3600 / 60) == 0 => format!("{}h", s / 3600),
        s => format!("{}h{}m", s / 3600, s % 3600 / 60),
    }
}

/// A share as per cent.
pub fn share(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        0.0 => "0 %".into(),
        p if p < 0.01 => "< 0.01 %".into(),
        p if p < 10.0 && (p - p.round()).abs() > 1e-9 => format!("{p:.2} %"),
        p => format!("{p:.0} %"),
    }
}

/// An upper bound of a share as per cent, rounded up so that it stays one: `< 0.56 %`.
pub fn share_below(high: f64) -> String {
    let percent = high * 100.0;
    // What is a hair above a round number by binary rounding is that number.
    let up = |decimals: i32| (percent * 10_f64.powi(decimals) - 1e-9).ceil() / 10_f64.powi(decimals);
    if percent < 10.0 { format!("< {:.2} %", up(2)) } else { format!("< {:.1} %", up(1)) }
}

/// A ratio as a factor: two decimals, and up to six where it needs them to differ from ×1.
pub fn factor(ratio: f64) -> String {
    let near = |decimals: usize| (format!("{ratio:.decimals$}"), format!("{:.decimals$}", 1.0));
    let shown = (2..=6).map(near).find(|(value, one)| value != one || ratio == 1.0);
    format!("×{}", shown.map_or_else(|| "1.00".to_owned(), |(value, _)| value))
}

/// Decimals of a figure whose interval is so wide either way: down to the place of the second digit of that half-width, so that
/// ±0.35 gives two and ±12 none. Of an interval without width as many as there may be.
fn decimals(half_width: f64, most: usize) -> usize {
    (1.0 - half_width.abs().log10().floor()).clamp(0.0, most as f64) as usize
}

/// A ratio and its interval: as a change in per cent, or as a factor where it is large.
///
/// Both come with the digits that the interval's width deserves.
pub fn change(estimate: &Estimate) -> (String, String) {
    interval(estimate.ratio, estimate.low, estimate.high)
}

/// The same of any ratio that has an interval.
pub fn interval(ratio: f64, low: f64, high: f64) -> (String, String) {
    let half_width = (high - low) / 2.0;
    if !(0.5..=2.0).contains(&ratio) {
        // ×16.5 ± 1.4, ×0.0607 ± 0.0023.
        let decimals = decimals(half_width, 6);
        let factor = |value: f64| format!("×{value:.decimals$}");
        return (factor(ratio), format!("{} to {}", factor(low), factor(high)));
    }
    let decimals = decimals(half_width * 100.0, 4);
    let percent = |value: f64| signed((value - 1.0) * 100.0, decimals);
    (percent(ratio), format!("{} to {}", percent(low), percent(high)))
}

/// A ratio of which nothing but its value is known: few digits.
pub fn change_alone(ratio: f64) -> String {
    if !(0.5..=2.0).contains(&ratio) { format!("×{ratio:.1}") } else { signed((ratio - 1.0) * 100.0, 0) }
}

/// A difference and its interval in a unit that fits both ends, with the digits that the interval's width deserves.
pub fn added(difference: &Difference) -> (String, String) {
    added_in(difference, in_unit(difference.unit, difference.low.abs().max(difference.high.abs())))
}

fn added_in(difference: &Difference, (scale, name): (f64, &str)) -> (String, String) {
    let Difference { value, low, high, .. } = *difference;
    let decimals = decimals((high - low) / 2.0 / scale, 4);
    let number = |value: f64| with_sign(value / scale, decimals);
    (format!("{} {name}", number(value)), format!("{} to {} {name}", number(low), number(high)))
}

/// A difference of which nothing but its value is known: three digits.
fn added_alone(value: f64, (scale, name): (f64, &str)) -> String {
    let decimals = match (value / scale).abs() {
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    format!("{} {name}", with_sign(value / scale, decimals))
}

/// The unit that reads best where the largest figure is so large: what it is of ours, and its name.
fn in_unit(unit: Unit, most: f64) -> (f64, &'static str) {
    match (unit, most) {
        (Unit::Us, m) if m < 10_000.0 => (1.0, "µs"),
        (Unit::Us, m) if m < 10_000_000.0 => (1e3, "ms"),
        (Unit::Us, _) => (1e6, "s"),
        (Unit::Bytes, m) if m < 1e3 => (1.0, "B"),
        (Unit::Bytes, m) if m < 1e6 => (1e3, "kB"),
        (Unit::Bytes, m) if m < 1e9 => (1e6, "MB"),
        (Unit::Bytes, _) => (1e9, "GB"),
    }
}

/// A change in per cent with its sign.
pub(crate) fn signed(value: f64, decimals: usize) -> String {
    format!("{} %", with_sign(value, decimals))
}

/// With its sign, a true minus, and no `−0`.
fn with_sign(value: f64, decimals: usize) -> String {
    let digits = format!("{:.decimals$}", value.abs());
    let zero = digits.chars().all(|c| matches!(c, '0' | '.'));
    let sign = match value {
        _ if zero => "±",
        v if v < 0.0 => "−",
        _ => "+",
    };
    format!("{sign}{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(ratio: f64, low: f64, high: f64) -> Estimate {
        Estimate { blocks: 10, ratio, low, high, sd_log: 0.1, critical_t: 3.0 }
    }

    #[test]
    fn a_figure_shows_the_digits_it_deserves() {
        assert_eq!(count(134_054), "134,054");
        assert_eq!(count(7), "7");
        assert_eq!(rate(1234.5), "1,230/s");
        assert_eq!(rate(52_267.0), "52,300/s");
        assert_eq!([rate(6.46), rate(0.0)], ["6.46/s", "0/s"]);
        assert_eq!(micros(812.3), "812 µs");
        assert_eq!(micros(81_230.0), "81.2 ms");
        assert_eq!(bytes(134_054.0), "134 kB");
        assert_eq!(seconds(125.2), "2m5s");
        assert_eq!(
            [share_below(0.005_552), share_below(0.1028), share_below(1e-7)],
            ["< 0.56 %", "< 10.3 %", "< 0.01 %"]
        );
        assert_eq!(
            [factor(1.0), factor(1.0 - 1e-16), factor(1.0002), factor(0.5)],
            ["×1.00", "×1.00", "×1.0002", "×0.50"]
        );
        assert_eq!([seconds(0.25), seconds(60.0), seconds(3780.0)], ["250ms", "1m", "1h3m"]);
    }

    #[test]
    fn a_difference_is_told_in_one_unit_with_the_digits_of_its_width() {
        let us = |value, low, high| added(&Difference { unit: Unit::Us, value, low, high });
        assert_eq!(us(23.06, 17.2, 29.1), ("+23.1 µs".into(), "+17.2 to +29.1 µs".into()));
        assert_eq!(us(-0.214, -0.9, 0.47), ("−0.21 µs".into(), "−0.90 to +0.47 µs".into()));
        assert_eq!(us(15_210.0, 14_900.0, 15_500.0), ("+15.21 ms".into(), "+14.90 to +15.50 ms".into()));
        let mb = added(&Difference { unit: Unit::Bytes, value: 45e6, low: -1e3, high: 9e7 });
        assert_eq!(mb, ("+45 MB".into(), "±0 to +90 MB".into()));
    }

    #[test]
    fn a_change_has_a_sign_and_no_false_precision() {
        assert_eq!(change(&estimate(1.012, 0.9, 1.12)), ("+1 %".into(), "−10 % to +12 %".into()));
        assert_eq!(change(&estimate(0.9996, 0.989, 1.011)), ("±0.0 %".into(), "−1.1 % to +1.1 %".into()));
        assert_eq!(
            change(&estimate(1.0042, 1.0021, 1.0063)),
            ("+0.42 %".into(), "+0.21 % to +0.63 %".into())
        );
        assert_eq!(change(&estimate(4.123, 3.9, 4.5)), ("×4.12".into(), "×3.90 to ×4.50".into()));
        assert_eq!(change(&estimate(16.54, 15.2, 18.0)), ("×16.5".into(), "×15.2 to ×18.0".into()));
        assert_eq!(
            change(&estimate(0.0607, 0.0585, 0.0631)),
            ("×0.0607".into(), "×0.0585 to ×0.0631".into())
        );
    }
}
