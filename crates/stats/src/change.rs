//! Detects changes of level in a series of values with individual standard errors, such as a history of
//! records.
//!
//! The method works for few points and unequal precision. It does not assume normal noise or complete
//! standard errors: the variation between runs beyond their standard errors is also estimated, and the
//! p-value is based on all permutations of the points.
//!
//! This module does not decide which size matters, and does not omit points. It does not account for earlier
//! looks: repeating the test after each new record finds false changes more often than [`CHANGE_LEVEL`].

use crate::Resampling;
use crate::resampling::Draws;

/// Significance level of each test: one in a hundred stretches without a change shows one.
pub const CHANGE_LEVEL: f64 = 0.01;
/// Minimum number of points on each side of a change. A single point may be an accident.
pub const CHANGE_SIDE_MIN: usize = 3;
/// Maximum number of points of a series.
pub const CHANGE_POINTS_MAX: usize = 1_000;

const PURPOSE: [u8; 8] = *b"changing";
/// Maximum weight of a point relative to the least precise one, however small its standard error.
const WEIGHTS_MOST: f64 = 1e6;
/// Relative difference below which two statistics count as equal. The error is on the safe side.
const ROUNDING: f64 = 1e-9;

/// A value with its precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredPoint {
    /// The value, on a scale on which equal differences mean the same everywhere: the logarithm of a ratio or
    /// of a rate.
    pub value: f64,
    /// Standard error of the value, from the blocks of its record. At least 0.
    pub standard_error: f64,
}

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Index of the first point at the new level.
    pub at: usize,
    /// Level before the change: weighted mean of the points since the previous change.
    pub before: f64,
    /// Level after the change, until the next one. It was selected for its difference, which is therefore
    /// likely overestimated.
    pub after: f64,
    /// p-value of the test that detected it, at most [`CHANGE_LEVEL`].
    pub p: f64,
}

/// Detects all changes of level, in order. Empty for fewer than two sides of [`CHANGE_SIDE_MIN`] points.
///
/// Binary segmentation (Vostrikova 1981): if the most likely split of a stretch has a p-value of at most
/// [`CHANGE_LEVEL`], the stretch is split there and each side is tested separately. Fewer than ten points
/// have too few permutations for such a small p-value, and a change with three points after it needs nine
/// before it.
///
/// `None` above [`CHANGE_POINTS_MAX`], for a value that is not finite, a standard error that is not finite or
/// below 0, and for too few or too many resamples.
pub fn changes(points: &[MeasuredPoint], resampling: Resampling) -> Option<Vec<Change>> {
    let is_sound = |point: &MeasuredPoint| {
        point.value.is_finite() && point.standard_error.is_finite() && point.standard_error >= 0.0
    };
    if points.len() > CHANGE_POINTS_MAX || !points.iter().all(is_sound) {
        return None;
    }
    let mut draws = resampling.draws(PURPOSE)?;
    let mut found: Vec<(usize, f64)> = Vec::new();
    let mut open = vec![(0, points.len())];
    while let Some((start, end)) = open.pop() {
        let scan = Scan::of(&points[start..end]);
        let suspect = scan.and_then(|mut scan| scan.suspect(&mut draws, resampling));
        if let Some((at, p)) = suspect.filter(|(_, p)| *p <= CHANGE_LEVEL) {
            found.push((start + at, p));
            open.extend([(start + at, end), (start, start + at)]);
        }
    }
    found.sort_by_key(|(at, _)| *at);
    let end = |place: usize| found.get(place).map_or(points.len(), |(at, _)| *at);
    let mut start = 0;
    let change = |(place, &(at, p)): (usize, &(usize, f64))| {
        let (before, after) = (
            level(&points[start..at]),
            level(&points[at..end(place + 1)]),
        );
        start = at;
        Change {
            at,
            before,
            after,
            p,
        }
    };
    Some(found.iter().enumerate().map(change).collect())
}

/// 1/(se² + τ²) of each point, relative to the least precise one.
fn weights(points: &[MeasuredPoint]) -> Vec<f64> {
    let n = points.len() as f64;
    let mean = points.iter().map(|point| point.value).sum::<f64>() / n;
    let squares: f64 = points
        .iter()
        .map(|point| (point.value - mean).powi(2))
        .sum();
    let own = points
        .iter()
        .map(|point| point.standard_error.powi(2))
        .sum::<f64>()
        / n;
    let between = if points.len() < 2 {
        0.0
    } else {
        (squares / (n - 1.0) - own).max(0.0)
    };
    let variances = points
        .iter()
        .map(|point| point.standard_error.powi(2) + between);
    let variances: Vec<f64> = variances.collect();
    let largest = variances.iter().copied().fold(0.0, f64::max);
    let weight = |variance: &f64| {
        if largest > 0.0 {
            (largest / variance).min(WEIGHTS_MOST)
        } else {
            1.0
        }
    };
    variances.iter().map(weight).collect()
}

fn level(points: &[MeasuredPoint]) -> f64 {
    let weights = weights(points);
    let sum: f64 = points
        .iter()
        .zip(&weights)
        .map(|(point, weight)| point.value * weight)
        .sum();
    sum / weights.iter().sum::<f64>()
}

/// A stretch prepared for evaluating all splits: the weight of each point, and its weighted distance from the
/// mean.
struct Scan {
    points: Vec<(f64, f64)>,
    weight: f64,
}

impl Scan {
    /// `None` if there are too few points, or all are equal.
    fn of(points: &[MeasuredPoint]) -> Option<Scan> {
        if points.len() < 2 * CHANGE_SIDE_MIN {
            return None;
        }
        let (weights, mean) = (weights(points), level(points));
        let largest = points
            .iter()
            .map(|point| point.value.abs())
            .fold(0.0, f64::max);
        let alike = points
            .iter()
            .all(|point| (point.value - mean).abs() <= ROUNDING * largest);
        let scored = points
            .iter()
            .zip(&weights)
            .map(|(point, weight)| (*weight, weight * (point.value - mean)));
        (!alike).then(|| Scan {
            points: scored.collect(),
            weight: weights.iter().sum(),
        })
    }

    /// The best split of the points in their current order: the number of points before it, and the explained
    /// variation.
    fn best(&self) -> (usize, f64) {
        let (mut weight, mut sum) = (0.0, 0.0);
        let mut best = (CHANGE_SIDE_MIN, -1.0);
        let last = self.points.len() - CHANGE_SIDE_MIN;
        for (index, (w, score)) in self.points[..last].iter().enumerate() {
            (weight, sum) = (weight + w, sum + score);
            let explained = sum * sum * self.weight / (weight * (self.weight - weight));
            if index + 1 >= CHANGE_SIDE_MIN && explained > best.1 {
                best = (index + 1, explained);
            }
        }
        best
    }

    /// Returns the index of the first point after the best split, and its p-value: the share of permutations
    /// of the points whose best split explains at least as much. The p-value is imprecise above
    /// [`CHANGE_LEVEL`], where drawing stops early. `None` if the statistic is not finite.
    ///
    /// With weights w = 1/(se² + τ²), their sum W and the weighted mean m, a split after k points explains
    /// S_k² W / (W_k (W − W_k)), where S_k = Σ_{i ≤ k} w_i (x_i − m). This is the likelihood ratio for a
    /// shift in the mean of normal values with known variances (Hawkins 1977; Worsley 1979). τ² = max(0, s² −
    /// mean of se²), the variance component of Hedges (1983), is the variation between runs beyond their
    /// standard errors. The maximum over all k is compared with the maxima for random permutations of the
    /// points, value and standard error together (Antoch & Hušková 2001). Without a change all permutations
    /// are equally likely, so the level holds for any noise and any error of the standard errors. p = (1 + as
    /// large)/(1 + drawn) (Phipson & Smyth 2010). Drawing stops once p can no longer be below
    /// [`CHANGE_LEVEL`] (Besag & Clifford 1991).
    ///
    /// A slow drift or autocorrelated points have no constant level and are reported as changes.
    fn suspect(&mut self, draws: &mut Draws, resampling: Resampling) -> Option<(usize, f64)> {
        let (at, statistic) = self.best();
        // With this number of statistics at least as large, p is above the level whatever follows.
        let enough = (CHANGE_LEVEL * (f64::from(resampling.resamples) + 1.0)).floor() as u32;
        let (mut drawn, mut as_large) = (0, 0);
        while drawn < resampling.resamples && as_large < enough {
            draws.shuffle(&mut self.points);
            drawn += 1;
            as_large += u32::from(self.best().1 >= statistic * (1.0 - ROUNDING));
        }
        let p = f64::from(as_large + 1) / f64::from(drawn + 1);
        statistic.is_finite().then_some((at, p))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: Resampling = Resampling {
        resamples: 9_999,
        seed: 7,
    };

    fn points(values: &[f64], standard_error: f64) -> Vec<MeasuredPoint> {
        values
            .iter()
            .map(|value| MeasuredPoint {
                value: *value,
                standard_error,
            })
            .collect()
    }

    fn suspect(points: &[MeasuredPoint], resampling: Resampling) -> (usize, f64) {
        let mut draws = resampling.draws(PURPOSE).expect("so many");
        Scan::of(points)
            .and_then(|mut scan| scan.suspect(&mut draws, resampling))
            .expect("they vary")
    }

    /// `vectors/change.json`, made by `vectors/make_change.py`.
    #[test]
    fn places_and_p_values_are_those_of_numpy() {
        #[derive(serde::Deserialize)]
        struct Row {
            values: Vec<f64>,
            errors: Vec<f64>,
            at: usize,
            statistic: f64,
            p: f64,
        }
        let text = include_str!("../tests/vectors/change.json");
        let all: serde_json::Value = serde_json::from_str(text).expect("kept with the tests");
        let rows: Vec<Row> = serde_json::from_value(all["rows"].clone()).expect("rows");
        assert!(rows.iter().any(|row| row.p < 0.01) && rows.iter().any(|row| row.p > 0.1));
        for row in rows {
            let point = |(value, error): (&f64, &f64)| MeasuredPoint {
                value: *value,
                standard_error: *error,
            };
            let points: Vec<MeasuredPoint> =
                row.values.iter().zip(&row.errors).map(point).collect();
            let (at, p) = suspect(
                &points,
                Resampling {
                    resamples: crate::RESAMPLES_MAX,
                    seed: 1,
                },
            );
            assert_eq!(at, row.at, "{:?}", row.values);
            let (_, statistic) = Scan::of(&points).expect("they vary").best();
            assert!(
                (statistic / row.statistic - 1.0).abs() < 1e-9,
                "{statistic}, NumPy {}",
                row.statistic
            );
            // Both sides draw at random. Ours stops after 10,000 that are as large, and the 100,000 draws of
            // NumPy determine a p of 0.001 to a tenth.
            let tolerance = 0.05 * row.p + 4.0 * (row.p / 100_000.0).sqrt() + 2e-5;
            assert!((p - row.p).abs() < tolerance, "{p}, NumPy {}", row.p);
        }
    }

    #[test]
    fn what_is_too_little_alike_or_no_number_shows_no_change() {
        for values in [&[][..], &[1.0; 5], &[1.0; 40]] {
            assert_eq!(
                changes(&points(values, 0.01), MANY),
                Some(vec![]),
                "{values:?}"
            );
        }
        // Nine points have too few permutations for the level, whatever their values.
        assert_eq!(
            changes(
                &points(&[0.0, 0.0, 0.0, 0.0, 9.0, 9.0, 9.0, 9.0, 9.0], 0.1),
                MANY
            ),
            Some(vec![])
        );
        for (value, standard_error) in [(f64::NAN, 0.1), (0.0, -0.1), (0.0, f64::INFINITY)] {
            let mut wrong = points(&[0.0; 12], 0.1);
            wrong[4] = MeasuredPoint {
                value,
                standard_error,
            };
            assert_eq!(changes(&wrong, MANY), None);
        }
        assert_eq!(
            changes(&points(&[0.0; CHANGE_POINTS_MAX + 1], 0.1), MANY),
            None
        );
    }

    #[test]
    fn levels_between_changes_are_those_of_their_stretches() {
        let values: Vec<f64> = (0..45)
            .map(|i| f64::from(i / 15) + 0.01 * f64::from(i * 7 % 5))
            .collect();
        let found = changes(&points(&values, 0.01), MANY).expect("numbers");
        let places: Vec<usize> = found.iter().map(|change| change.at).collect();
        assert_eq!(places, [15, 30]);
        for (change, level) in found.iter().zip(0..) {
            assert!(
                (change.before - f64::from(level) - 0.02).abs() < 1e-6,
                "{change:?}"
            );
            assert!(
                (change.after - change.before - 1.0).abs() < 1e-6 && change.p <= CHANGE_LEVEL,
                "{change:?}"
            );
        }
    }

    #[test]
    fn the_scale_and_its_zero_do_not_matter() {
        let values: Vec<f64> = (0..30)
            .map(|i| if i < 18 { 0.0 } else { 0.1 } + 0.02 * f64::from(i * 11 % 7))
            .collect();
        let found = changes(&points(&values, 0.02), MANY).expect("numbers");
        assert_eq!(
            found.iter().map(|change| change.at).collect::<Vec<_>>(),
            [18]
        );
        for (factor, shift) in [(1e-6, 0.0), (1e6, 3.0), (1.0, -1e3)] {
            let scaled: Vec<f64> = values.iter().map(|value| value * factor + shift).collect();
            let again = changes(&points(&scaled, 0.02 * factor), MANY).expect("numbers");
            assert_eq!(again.len(), 1, "{factor} {shift}");
            assert_eq!((again[0].at, again[0].p), (found[0].at, found[0].p));
            let size = (again[0].after - again[0].before) / factor;
            assert!(
                (size - (found[0].after - found[0].before)).abs() < 1e-6,
                "{size}"
            );
        }
    }

    #[test]
    fn a_point_of_little_precision_makes_no_level() {
        // Four outliers at the end, with large standard errors.
        let mut all = points(
            &(0..16)
                .map(|i| 0.01 * f64::from(i * 5 % 4))
                .collect::<Vec<_>>(),
            0.01,
        );
        all.extend(points(&[2.0, 1.4, 2.2, 1.8], 3.0));
        let precise = points(&all.iter().map(|one| one.value).collect::<Vec<_>>(), 0.01);
        assert!(suspect(&precise, MANY).1 <= CHANGE_LEVEL && suspect(&all, MANY).1 > CHANGE_LEVEL);
    }
}
