//! Formats a column of figures: one unit for all figures, and digits that align.
//!
//! Figures without an interval have at most three digits. If they span more than a factor of a thousand, a
//! common unit would cost the smallest figures their digits. Then each figure has its own unit, and the units
//! are aligned.

use super::change::{difference_in, with_sign_in};
use super::{NONE, Unit, count, decimal, digits_after, in_unit, is_whole, step, three_digits};

/// Maximum number of decimals of a figure in its own unit, except where they would make it zero.
const DECIMALS: usize = 3;
/// Largest ratio between figures that share a unit.
const SPAN_MAX: f64 = 1000.0;
/// If the smallest figure is below this in the shared unit, a smaller unit is chosen.
const LEAST: f64 = 0.1;

/// Formats the figures of a column, with a dash for missing ones.
pub fn column(unit: Unit, values: &[Option<f64>]) -> Vec<String> {
    let (least, most) = range(values.iter().flatten().copied());
    let text = |value: f64| {
        if most > least * SPAN_MAX {
            on_its_own(unit, value)
        } else {
            shared(unit, value, (least, most))
        }
    };
    values
        .iter()
        .map(|value| value.map_or_else(|| NONE.to_owned(), text))
        .collect()
}

/// Returns the smallest and the largest of the positive figures.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let positive = values.filter(|value| *value > 0.0);
    positive.fold((f64::INFINITY, 0.0), |(least, most), value| {
        (value.min(least), value.max(most))
    })
}

/// Formats a figure in the unit that fits the smallest and the largest figure of its column.
fn shared(unit: Unit, value: f64, (least, most): (f64, f64)) -> String {
    let steps = unit.steps();
    let fits = step(steps, most);
    let fits = if least < LEAST * steps[fits].0 {
        fits.saturating_sub(1)
    } else {
        fits
    };
    let (scale, name) = steps[fits];
    // Three digits for the largest figure, at least two for the smallest.
    let decimals = digits_after(most / scale, 3).max(digits_after(least / scale, 2));
    format!(
        "{}{name}",
        number(
            value / scale,
            if is_whole(unit, scale) { 0 } else { decimals }
        )
    )
}

/// Formats a value in its own unit, padded to the column width.
fn on_its_own(unit: Unit, value: f64) -> String {
    let steps = unit.steps();
    let (scale, name) = in_unit(unit, value);
    let widest = steps
        .iter()
        .map(|(_, name)| name.chars().count())
        .max()
        .unwrap_or(0);
    format!(
        "{}{name:>widest$}",
        number(
            value / scale,
            if is_whole(unit, scale) { 0 } else { DECIMALS }
        )
    )
}

/// Formats a number with at most `decimals` decimals and three digits.
fn number(value: f64, decimals: usize) -> String {
    match decimals.min(digits_after(value.abs(), 3)) {
        0 if (0.5..100.0).contains(&value) => count(value.round() as u64),
        0 if value.abs() >= 100.0 => three_digits(value),
        decimals => decimal(value, decimals),
    }
}

/// Formats a column of differences, each with the ends of its interval if it has one. All share one unit, and
/// the interval of each determines its digits.
pub fn differences(unit: Unit, all: &[(f64, Option<(f64, f64)>)]) -> Vec<(String, Option<String>)> {
    let size = |(value, ends): &(f64, Option<(f64, f64)>)| match ends {
        Some((low, high)) => low.abs().max(high.abs()),
        None => value.abs(),
    };
    let (least, most) = range(all.iter().map(size));
    let text = |of: &(f64, Option<(f64, f64)>)| {
        let shared = in_unit(unit, most);
        let fits = match most > least * SPAN_MAX {
            true => in_unit(unit, size(of)),
            false if least < LEAST * shared.0 => in_unit(unit, least),
            false => shared,
        };
        match *of {
            (value, Some((low, high))) => {
                let (value, interval) = difference_in(fits, value, low, high);
                (value, Some(interval))
            }
            (value, None) => (without_interval(value / fits.0, fits.1), None),
        }
    };
    all.iter().map(text).collect()
}

/// Formats a difference without an interval, with three digits.
fn without_interval(value: f64, name: &str) -> String {
    let decimals = digits_after(value.abs(), 3).min(2);
    format!("{}{name}", with_sign_in(value, decimals, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(values: &[f64]) -> Vec<String> {
        column(
            Unit::Us,
            &values.iter().copied().map(Some).collect::<Vec<_>>(),
        )
    }

    #[test]
    fn a_column_has_one_unit() {
        assert_eq!(micros(&[488.2, 94.3]), ["488 µs", "94 µs"]);
        assert_eq!(micros(&[812.3, 81_230.0]), ["0.81 ms", "81.2 ms"]);
        assert_eq!(micros(&[20.0, 15_000.0]), ["20 µs", "15,000 µs"]);
        assert_eq!(micros(&[3_217.0]), ["3.22 ms"]);
        let bytes = column(Unit::Bytes, &[Some(104.4e6), None, Some(90.0e6)]);
        assert_eq!(bytes, ["104 MB", "–", "90 MB"]);
        let rates = column(Unit::PerS, &[Some(2050.4), Some(3.12), Some(0.0)]);
        assert_eq!(rates, ["2,050/s", "3.1/s", "0/s"]);
    }

    #[test]
    fn figures_too_far_apart_for_one_unit_have_each_its_own_below_each_other() {
        assert_eq!(
            micros(&[4.0, 20_400.0, 21e6]),
            ["4.00 µs", "20.4 ms", "21.0  s"]
        );
    }

    #[test]
    fn differences_below_each_other_have_one_unit_and_each_its_own_digits() {
        let half = |value: f64, half: f64| (value, Some((value - half, value + half)));
        let us = |all: &[(f64, Option<(f64, f64)>)]| {
            let text = differences(Unit::Us, all).into_iter();
            text.map(|(value, ends)| format!("{value} {}", ends.unwrap_or_default()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            us(&[half(20_400.0, 690.0), half(-1_210.0, 40.0)]),
            [
                "+20.40 ms +19.71 to +21.09 ms",
                "−1.210 ms −1.250 to −1.170 ms"
            ]
        );
        assert_eq!(
            us(&[(20_400.0, None), (-31.25, None)]),
            ["+20400 µs ", "−31.2 µs "]
        );
        // Too far apart for one.
        assert_eq!(
            us(&[(20_400.0, None), (0.5, None)]),
            ["+20.4 ms ", "+0.50 µs "]
        );
    }
}
