//! Figures as an explanation's sentences have them.

use crate::Interval;

/// Above so many microseconds figures are in milliseconds.
const MILLISECONDS_FROM_US: f64 = 10_000.0;

/// Divisor, unit and decimals that figures of this size are shown with.
fn scale(size_us: f64) -> (f64, &'static str, usize) {
    match size_us.abs() {
        size if size >= 100_000.0 => (1e3, "ms", 0),
        size if size >= MILLISECONDS_FROM_US => (1e3, "ms", 1),
        size if size >= 10.0 => (1.0, "µs", 0),
        size if size >= 1.0 => (1.0, "µs", 1),
        _ => (1.0, "µs", 2),
    }
}

/// `84 µs`, `0.42 µs`, `12.3 ms`.
pub(crate) fn amount(us: f64) -> String {
    if us == 0.0 {
        return "0 µs".into();
    }
    let (divisor, unit, decimals) = scale(us);
    format!("{:.decimals$} {unit}", us / divisor)
}

/// `+84 µs`, `−0.42 µs`.
pub(crate) fn signed_amount(us: f64) -> String {
    let (divisor, unit, decimals) = scale(us);
    format!("{} {unit}", signed(us / divisor, decimals))
}

/// `+3 µs, −5 to +11`.
pub(crate) fn with_interval(us: &Interval) -> String {
    let (divisor, unit, decimals) = scale(us.value.abs().max(us.low.abs()).max(us.high.abs()));
    let number = |value: f64| signed(value / divisor, decimals);
    format!("{} {unit}, {} to {}", number(us.value), number(us.low), number(us.high))
}

/// With its sign, a true minus, and no `−0`.
fn signed(value: f64, decimals: usize) -> String {
    let digits = format!("{:.decimals$}", value.abs());
    let zero = digits.chars().all(|c| matches!(c, '0' | '.'));
    let sign = match value {
        _ if zero => "±",
        value if value < 0.0 => "−",
        _ => "+",
    };
    format!("{sign}{digits}")
}

/// `91 %`; what lies near a limit keeps a digit more, so that 79.9 does not read as 80.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    let near = (value - value.round()).abs() > 0.05 && [80.0, 90.0, 125.0].contains(&value.round());
    let text = if near { format!("{value:.1} %") } else { format!("{value:.0} %") };
    match text.strip_prefix('-') {
        Some("0 %") => "0 %".into(),
        Some(rest) => format!("−{rest}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_digits_that_they_deserve() {
        assert_eq!(
            [amount(84.4), amount(4812.0), amount(12_345.0), amount(0.0)],
            ["84 µs", "4812 µs", "12.3 ms", "0 µs"]
        );
        assert_eq!([signed_amount(84.0), signed_amount(-0.423)], ["+84 µs", "−0.42 µs"]);
        assert_eq!(with_interval(&Interval { value: 3.0, low: -5.2, high: 11.2 }), "+3 µs, −5 to +11");
        assert_eq!(
            with_interval(&Interval { value: -0.001, low: -0.5, high: 0.5 }),
            "±0.00 µs, −0.50 to +0.50"
        );
        assert_eq!(
            [percent(0.914), percent(0.7996), percent(-0.2), percent(-0.001)],
            ["91 %", "80 %", "−20 %", "0 %"]
        );
        assert_eq!([percent(0.799), percent(1.2541), percent(0.8)], ["79.9 %", "125.4 %", "80 %"]);
    }
}
