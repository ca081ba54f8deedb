//! Estimates the request rate a service sustains within a response time limit. Each process contributes one
//! long window near the crossing, corrected by the growth of response times with the rate. Pure.
//!
//! Near the capacity c of a queue, its quantile p follows L / p = 1 + s (1 − λ/c), with the limit L and the
//! rate λ. This is straight within 10 % from 0.8 c to 1.04 c (Pollaczek and Khinchine). For a queue with
//! exponential service, s = c L / −ln(1 − q). So ln c ≈ ln λ + y / s with y = −ln(p / L): adaptive
//! approximation after Lai and Robbins (1979), with blocks as steps. A quantile over a window of length T is
//! too small by about 1/T near saturation, because bursts are rare and long. Quenouille's (1956) correction
//! by two halves removes that bias, and the interval is widened by the remainder, 2.6 L / T.
//!
//! Failures are rare and come in bursts. Some windows have none, so the mean of their logarithms would be too
//! low. Therefore all processes together, with equal weights, determine the rate at which failures reach the
//! limit, and the failures of each process determine its distance from that rate. A queue of K loses a share
//! of about ρᴷ, and K is below c L, because otherwise response times would exceed their limit first. Half of
//! that bound is used. docs/capacity.md has the simulations.

use crate::{Estimate, Interval, mean, median, plain_t};

/// Distance from the limit, as a logarithm, above which a quantile shows only on which side it is.
const FAR: f64 = 1.0;
/// Distance up to which the queueing law is as good as a line.
const NEAR: f64 = 0.4;
/// Maximum distance of a window from the capacity estimated from it, as a logarithm.
const CORRECTION_MOST: f64 = 0.3;
/// Weight of the expected slope, in processes.
const EXPECTED_WEIGHT: f64 = 2.0;
/// Range in which a measured slope is accepted, as multiples of the expected slope.
const SLOPE_RANGE: (f64, f64) = (0.4, 2.3);
/// Minimum slope. With a smaller one a quantile contains no information about the capacity.
const SLOPE_LEAST: f64 = 0.2;
/// Accepted range of the power of the rate with which the share of failures rises.
const POWER_RANGE: (f64, f64) = (2.0, 100.0);
/// Bias of a window's quantile as a share of capacity, times the window's length over the limit.
const WINDOW_BIAS: f64 = 2.6;

/// A window near the crossing: −ln(p/L) of the whole window and of its halves. The limit is kept if it is
/// above 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrossingReading {
    /// Value of the whole window.
    pub whole: f64,
    /// Values of the two halves.
    pub halves: [f64; 2],
}

impl CrossingReading {
    /// Removes the bias of the finite window.
    fn corrected(&self) -> f64 {
        let far = |y: f64| y.clamp(-FAR, FAR);
        let [first, second] = self.halves.map(far);
        2.0 * far(self.whole) - f64::midpoint(first, second)
    }
}

/// Slope of a queue with exponential service whose quantile q meets the limit at this rate.
pub fn expected_slope(capacity: f64, limit_s: f64, q: f64) -> f64 {
    capacity * limit_s / -(1.0 - q).ln()
}

/// Slope with which L/p falls with the rate, by least squares from windows at lower rates (rate over
/// capacity, and L/p), shrunk toward the expected slope.
pub fn slope(lower: &[(f64, f64)], expected: f64) -> f64 {
    let points = lower
        .iter()
        .filter(|(share, ratio)| *share < 1.0 && ratio.is_finite());
    let (xy, xx, count) = points.fold((0.0, 0.0, 0.0), |(xy, xx, count), (share, ratio)| {
        let x = 1.0 - share;
        (xy + x * (ratio - 1.0), xx + x * x, count + 1.0)
    });
    let seen = if xx > 0.0 { xy / xx } else { expected };
    let held = seen.clamp(expected * SLOPE_RANGE.0, expected * SLOPE_RANGE.1);
    ((held * count + expected * EXPECTED_WEIGHT) / (count + EXPECTED_WEIGHT)).max(SLOPE_LEAST)
}

/// Logarithm of each process's capacity, from the rate per second of its window near the crossing and its
/// reading.
pub fn capacities(processes: &[(f64, CrossingReading)], slope: f64) -> Vec<f64> {
    let of = |(rate, reading): &(f64, CrossingReading)| {
        rate.ln() + correction(reading.corrected(), slope)
    };
    processes.iter().map(of).collect()
}

/// Failures in a process's window near the crossing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowFailures {
    /// Rate of the window, per second.
    pub rate: f64,
    /// Rate of the process at its limit, per second.
    pub at_limit: f64,
    /// Number of failed requests.
    pub failed: f64,
    /// Number of allowed failures.
    pub allowed: f64,
}

/// Expected power of the rate with which the share of failures rises.
pub fn expected_power(capacity: f64, limit_s: f64) -> f64 {
    (capacity * limit_s / 2.0).clamp(POWER_RANGE.0, POWER_RANGE.1)
}

/// Logarithm of each process's capacity. At least one process must have a failure.
///
/// The crossing is the share of the rates at the limit at which the mean of observed over expected failures
/// is 1, so that the mean of the logarithms is that crossing. With sums instead, a window placed far too high
/// would outweigh all others.
pub fn capacities_by_failures(processes: &[WindowFailures], power: f64) -> Vec<f64> {
    let share = |of: &WindowFailures| of.rate / of.at_limit;
    // Expected failures for a crossing at 1. Powers of shares far below 1 underflow to 0, which must not be a
    // divisor.
    let expected = |of: &WindowFailures| (of.allowed * share(of).powf(power)).max(1e-300);
    let seen = mean(processes.iter().map(|of| of.failed / expected(of))).unwrap_or(1.0);
    let crossing = seen.powf(-1.0 / power);
    let of = |one: &WindowFailures| {
        let apart = (1.0 - one.failed / expected(one) / seen) / power;
        (one.at_limit * crossing).ln() + apart
    };
    processes.iter().map(of).collect()
}

/// Correction from a reading to the capacity: near the crossing along a line, which is not biased by noise,
/// and far below it by the queueing law.
fn correction(y: f64, slope: f64) -> f64 {
    let line = y / slope;
    let by_law = || -(1.0 - (y.exp() - 1.0) / slope).max(0.1).ln();
    let correction = if y > NEAR { by_law().max(line) } else { line };
    correction.clamp(-CORRECTION_MOST, CORRECTION_MOST)
}

/// Rate for the next process, from the capacity and the rate at the limit of each earlier process, and the
/// rate at the limit of the next one. Never based on the next process's own result. `None` without earlier
/// processes.
pub fn placed(before: &[(f64, f64)], slope: f64, at_limit: f64) -> Option<f64> {
    let shares: Vec<f64> = before
        .iter()
        .map(|(capacity, at_limit)| (capacity / at_limit).ln())
        .collect();
    let median = median(shares.iter().copied())?;
    let near = shares
        .iter()
        .map(|share| share.clamp(median - 1.0 / slope, median + 1.0 / slope));
    Some((near.sum::<f64>() / shares.len() as f64 + at_limit.ln()).exp())
}

/// Factor by which the bias of windows of `window_s` seconds may shift a capacity.
pub fn widening(limit_s: f64, window_s: f64) -> f64 {
    (WINDOW_BIAS * limit_s / window_s).exp()
}

/// Geometric mean of capacities (given as logarithms) with its 95 % interval over processes, widened by the
/// bias of windows of `window_s` seconds. `None` if [`Estimate::of`] fails.
pub fn widened(capacities: &[f64], limit_s: f64, window_s: f64) -> Option<(f64, Interval)> {
    let blocks = u32::try_from(capacities.len()).unwrap_or(u32::MAX);
    let found = Estimate::of(capacities, plain_t(blocks, 0.95)?).ok()?;
    let more = widening(limit_s, window_s);
    Some((
        found.ratio,
        Interval {
            low: found.low / more,
            high: found.high * more,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At the crossing nothing is corrected. Near it the queueing law returns its capacity.
    #[test]
    fn a_quantile_beside_the_limit_gives_the_capacity_back() {
        let (capacity, s) = (900.0_f64, 9.8_f64);
        for rate in [780.0_f64, 870.0, 900.0, 920.0] {
            let y = (1.0 + s * (1.0 - rate / capacity)).ln();
            let found = capacities(
                &[(
                    rate,
                    CrossingReading {
                        whole: y,
                        halves: [y, y],
                    },
                )],
                s,
            )[0]
            .exp();
            assert!((found / capacity - 1.0).abs() < 0.01, "{rate}: {found}");
        }
    }

    #[test]
    fn a_slope_comes_from_lower_rates_and_stays_near_what_is_expected() {
        let line = |s: f64| [0.8, 0.85, 0.9].map(|share| (share, 1.0 + s * (1.0 - share)));
        assert!((slope(&line(9.0), 9.0) - 9.0).abs() < 1e-9);
        assert!((10.0..12.0).contains(&slope(&line(12.0), 9.0)));
        assert_eq!(slope(&[], 9.0), 9.0);
        assert!(slope(&line(1e4), 9.0) < 9.0 * 2.3);
    }

    #[test]
    fn a_window_without_failures_is_no_more_than_one_of_few() {
        let window = |rate: f64, at_limit: f64, failed: f64| WindowFailures {
            rate,
            at_limit,
            failed,
            allowed: 10.0,
        };
        let mean = |of: &[WindowFailures], power: f64| {
            capacities_by_failures(of, power).iter().sum::<f64>() / of.len() as f64
        };
        // Bursts whose total equals the allowed number.
        let uneven = [0.0, 25.0, 5.0, 10.0].map(|failed| window(800.0, 1000.0, failed));
        for power in [20.0, 4.0] {
            assert!(
                (mean(&uneven, power) - 800.0_f64.ln()).abs() < 1e-9,
                "{power}"
            );
        }
        // One window far above the other, with failures rising twice as steeply as assumed, has only its own
        // weight.
        let far = [
            window(800.0, 1000.0, 10.0),
            window(880.0, 1000.0, 10.0 * 1.1_f64.powf(40.0)),
        ];
        let crossing = 800.0_f64.ln() - f64::midpoint(1.0, 1.1_f64.powf(20.0)).ln() / 20.0;
        assert!((mean(&far, 20.0) - crossing).abs() < 1e-9);
        // A power law at other rates, and for different processes, returns its capacity.
        let law = |share: f64, at_limit: f64| {
            window(share * at_limit, at_limit, 10.0 * (share / 0.8).powf(20.0))
        };
        let even = [law(0.76, 1000.0), law(0.8, 900.0), law(0.82, 1100.0)];
        for (found, at_limit) in capacities_by_failures(&even, 20.0)
            .iter()
            .zip([1000.0, 900.0, 1100.0])
        {
            assert!(
                (found.exp() / (0.8 * at_limit) - 1.0).abs() < 1e-9,
                "{found}"
            );
        }
    }

    #[test]
    fn the_next_process_is_placed_by_those_before_it_and_its_own_limit() {
        assert_eq!(placed(&[], 10.0, 1000.0), None);
        let placed = |before: &[(f64, f64)]| placed(before, 10.0, 1000.0).unwrap();
        assert!((placed(&[(900.0, 1000.0)]) - 900.0).abs() < 1e-9);
        assert!((placed(&[(450.0, 500.0)]) - 900.0).abs() < 1e-9);
        // One outlier moves the rate by at most one slope.
        let three = [(900.0, 1000.0), (900.0, 1000.0), (10.0, 1000.0)];
        assert!((placed(&three) / 900.0).ln() > -0.04);
    }

    #[test]
    fn a_short_window_widens_the_interval() {
        let logs = [900.0f64, 910.0, 890.0, 905.0].map(f64::ln);
        let [long, short] = [1e9, 1.3].map(|window_s| widened(&logs, 0.05, window_s).unwrap().1);
        assert!((short.high / long.high).ln() > 0.09 && (long.low / short.low).ln() > 0.09);
        assert_eq!(widened(&logs[..1], 0.05, 10.0), None);
    }
}
