//! A column of figures: one unit for all of them, and digits that can be read downwards.
//!
//! These are figures without an interval, of variants and services, so each has three digits at most. One unit for all would cost the
//! smallest its digits where they span more than a factor of a thousand: there each has its own, and the units stand below each other.

use analysis::Difference;
use analysis::series::Unit;

use super::{added_alone, added_in, count, in_unit, three_digits};

/// How far apart figures may be that share a unit.
const SPAN_MAX: f64 = 1000.0;
/// Smaller ones than this in the shared unit get a smaller unit.
const LEAST: f64 = 0.1;

/// A unit's steps, each how many of the basic one and its name, and the figure from which on the next one reads better.
fn steps(unit: Unit) -> (&'static [(f64, &'static str)], f64) {
    match unit {
        Unit::PerSecond => (&[(1.0, "/s")], f64::INFINITY),
        Unit::Microseconds => (&[(1.0, " µs"), (1e3, " ms"), (1e6, " s")], 10_000.0),
        Unit::Bytes => (&[(1.0, " B"), (1e3, " kB"), (1e6, " MB"), (1e9, " GB")], 1000.0),
    }
}

/// Figures that stand below each other; a dash where there is none, for a zero would be a figure.
pub(crate) fn column(unit: Unit, values: &[Option<f64>]) -> Vec<String> {
    let positive = || values.iter().flatten().copied().filter(|value| *value > 0.0);
    let (least, most) = (positive().fold(f64::INFINITY, f64::min), positive().fold(0.0, f64::max));
    let told = |value: f64| {
        if most > least * SPAN_MAX { on_its_own(unit, value) } else { shared(unit, value, (least, most)) }
    };
    values.iter().map(|value| value.map_or_else(|| "–".to_owned(), told)).collect()
}

/// A figure in the unit that fits the least and the most of its column.
fn shared(unit: Unit, value: f64, (least, most): (f64, f64)) -> String {
    let (steps, _) = steps(unit);
    let fits = step(unit, most);
    let fits = if least < LEAST * steps[fits].0 { fits.saturating_sub(1) } else { fits };
    let (scale, name) = steps[fits];
    // Three digits of the most, and not less than two of the least.
    let decimals = digits_after(most / scale, 3).max(digits_after(least / scale, 2));
    format!("{}{name}", number(value / scale, if whole(unit, scale) { 0 } else { decimals }))
}

/// A figure in a unit of its own, as wide as all of them.
fn on_its_own(unit: Unit, value: f64) -> String {
    let (steps, _) = steps(unit);
    let (scale, name) = steps[step(unit, value)];
    let widest = steps.iter().map(|(_, name)| name.chars().count()).max().unwrap_or(0);
    format!("{}{name:>widest$}", number(value / scale, if whole(unit, scale) { 0 } else { 3 }))
}

/// The step that a figure is best read in.
fn step(unit: Unit, value: f64) -> usize {
    let (steps, limit) = steps(unit);
    steps.iter().position(|(scale, _)| value / scale < limit).unwrap_or(steps.len() - 1)
}

/// Decimals that give a positive figure so many digits.
fn digits_after(value: f64, digits: usize) -> usize {
    let before = match value {
        v if v >= 100.0 => 3,
        v if v >= 10.0 => 2,
        v if v >= 1.0 => 1,
        _ => 0,
    };
    digits.saturating_sub(before)
}

/// There is no part of a byte.
fn whole(unit: Unit, scale: f64) -> bool {
    unit == Unit::Bytes && scale == 1.0
}

/// At most so many decimals, and three digits.
fn number(value: f64, decimals: usize) -> String {
    let decimals = decimals.min(digits_after(value, 3));
    match decimals {
        _ if value == 0.0 => "0".to_owned(),
        0 if value < 100.0 => count(value.round() as u64),
        0 => three_digits(value),
        decimals => format!("{value:.decimals$}"),
    }
}

/// Differences that stand below each other, each with its interval where it has one: one unit for all, and for each the digits that its
/// interval deserves.
pub(crate) fn added_column(differences: &[Difference]) -> Vec<(String, Option<String>)> {
    let sizes = || differences.iter().map(size).filter(|size| *size > 0.0);
    let (least, most) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
    let told = |of: &Difference| {
        let shared = in_unit(of.unit, most);
        let fits = match most > least * SPAN_MAX {
            true => in_unit(of.unit, size(of)),
            false if least < LEAST * shared.0 => in_unit(of.unit, least),
            false => shared,
        };
        if !has_interval(of) {
            return (added_alone(of.value, fits), None);
        }
        let (value, interval) = added_in(of, fits);
        (value, Some(interval))
    };
    differences.iter().map(told).collect()
}

/// What its unit has to fit.
fn size(of: &Difference) -> f64 {
    if has_interval(of) { of.low.abs().max(of.high.abs()) } else { of.value.abs() }
}

fn has_interval(of: &Difference) -> bool {
    of.low.is_finite() && of.high.is_finite() && of.high > of.low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(values: &[f64]) -> Vec<String> {
        column(Unit::Microseconds, &values.iter().copied().map(Some).collect::<Vec<_>>())
    }

    #[test]
    fn a_column_has_one_unit() {
        assert_eq!(micros(&[488.2, 94.3]), ["488 µs", "94 µs"]);
        assert_eq!(micros(&[812.3, 81_230.0]), ["0.81 ms", "81.2 ms"]);
        assert_eq!(micros(&[20.0, 15_000.0]), ["20 µs", "15,000 µs"]);
        assert_eq!(micros(&[3_217.0]), ["3,220 µs"]);
        let bytes = column(Unit::Bytes, &[Some(104.4e6), None, Some(90.0e6)]);
        assert_eq!(bytes, ["104 MB", "–", "90 MB"]);
        let rates = column(Unit::PerSecond, &[Some(2050.4), Some(3.12), Some(0.0)]);
        assert_eq!(rates, ["2,050/s", "3.1/s", "0/s"]);
    }

    #[test]
    fn figures_too_far_apart_for_one_unit_have_each_its_own_below_each_other() {
        assert_eq!(micros(&[4.0, 20_400.0, 21e6]), ["4.00 µs", "20.4 ms", "21.0  s"]);
    }

    #[test]
    fn differences_below_each_other_have_one_unit_and_each_its_own_digits() {
        let us = |values: &[(f64, f64)]| {
            let of = |(value, half): &(f64, f64)| {
                let (value, low, high) = (*value, value - half, value + half);
                Difference { unit: analysis::Unit::Us, value, low, high }
            };
            let told = added_column(&values.iter().map(of).collect::<Vec<_>>());
            told.into_iter()
                .map(|(value, interval)| format!("{value} {}", interval.unwrap_or_default()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            us(&[(20_400.0, 690.0), (-1_210.0, 40.0)]),
            ["+20.40 ms +19.71 to +21.09 ms", "−1.210 ms −1.250 to −1.170 ms"]
        );
        assert_eq!(us(&[(20_400.0, 0.0), (-31.25, 0.0)]), ["+20400 µs ", "−31.2 µs "]);
        // Too far apart for one.
        assert_eq!(us(&[(20_400.0, 0.0), (0.5, 0.0)]), ["+20.4 ms ", "+0.50 µs "]);
    }
}
