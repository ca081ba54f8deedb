//! Tests of simple explanations against chance: a mean other than 0, a line, the position in an order.
//!
//! This module does not choose among explanations, and does not decide which size matters.

use crate::estimate::{has_spread, mean_and_sd};
use crate::student::two_sided_p;

/// An estimate that is 0 if there is no effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegressionEffect {
    /// The estimate.
    pub value: f64,
    /// The estimate over its standard error.
    pub t: f64,
    /// Two-sided p-value of that t.
    pub p: f64,
}

/// Mean of independent values, with Student's test (1908) that it is 0, with n − 1 degrees of freedom.
///
/// `None` below two values, without spread, or with a value that is not finite.
pub fn mean_effect(values: &[f64]) -> Option<RegressionEffect> {
    if values.len() < 2 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let (value, sd) = mean_and_sd(values);
    if !has_spread(value, sd) {
        return None;
    }
    let n = values.len() as f64;
    let t = value / (sd / n.sqrt());
    Some(RegressionEffect {
        value,
        t,
        p: two_sided_p(t, n - 1.0),
    })
}

/// Slope of the least-squares line through points (x, y), in units of y per unit of x.
///
/// `None` below two points, if all x are equal, or if it is not finite.
pub fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let across: f64 = points
        .iter()
        .map(|(x, y)| (x - mean_x) * (y - mean_y))
        .sum();
    let along: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    Some(across / along).filter(|slope| slope.is_finite() && points.len() >= 2)
}

/// Effect of one position later in a block's order, after removing the effects of row (block) and column
/// (variant).
///
/// ```text
/// value = block + variant + effect · place + noise          rows are blocks, columns variants
/// ```
/// Least squares: the means of rows and columns are subtracted from values and positions, and the slope of
/// the residuals is the effect (Frisch & Waugh 1933; Lovell 1963), with (n − 1)(m − 1) − 1 degrees of freedom
/// for n rows and m columns. Each value is (position, figure). Exact for normal noise with constant variance.
/// Positions are drawn at random for each block, so it is nearly exact for other noise.
///
/// `None` unless all rows have the same number of columns (at least two) and a degree of freedom is left.
/// `None` also if the order never changes, without noise, or with a value that is not finite.
pub fn place_effect(rows: &[Vec<(f64, f64)>]) -> Option<RegressionEffect> {
    let columns = rows.first()?.len();
    let freedom = ((rows.len() - 1) * columns.checked_sub(1)?)
        .checked_sub(1)
        .filter(|left| *left > 0)? as f64;
    if rows.iter().any(|row| row.len() != columns) {
        return None;
    }
    let places = without_means(rows, columns, |cell| cell.0);
    let values = without_means(rows, columns, |cell| cell.1);
    let product = |one: &[f64], other: &[f64]| {
        one.iter()
            .zip(other)
            .map(|(one, other)| one * other)
            .sum::<f64>()
    };
    let (along, all) = (product(&places, &places), product(&values, &values));
    // Positions are integers, so a tiny remainder of an order that never changes is rounding error.
    if along.is_nan() || along < 1e-9 {
        return None;
    }
    let value = product(&places, &values) / along;
    let rest = all - value * value * along;
    let noise = (rest / freedom / along).sqrt();
    let t = value / noise;
    // A tiny remainder of values that are explained completely is rounding error, too.
    (t.is_finite() && rest > all * 1e-12).then(|| RegressionEffect {
        value,
        t,
        p: two_sided_p(t, freedom),
    })
}

/// Values row by row, less the means of row and column.
fn without_means(rows: &[Vec<(f64, f64)>], columns: usize, of: fn(&(f64, f64)) -> f64) -> Vec<f64> {
    let mean = |values: &mut dyn Iterator<Item = f64>, n: usize| values.sum::<f64>() / n as f64;
    let column = |at: usize| mean(&mut rows.iter().map(|row| of(&row[at])), rows.len());
    let column_means: Vec<f64> = (0..columns).map(column).collect();
    let all = mean(&mut column_means.iter().copied(), columns);
    let rest = |row: &Vec<(f64, f64)>| {
        let row_mean = mean(&mut row.iter().map(of), columns);
        let cells = row
            .iter()
            .zip(&column_means)
            .map(|(cell, column)| of(cell) - row_mean - column + all);
        cells.collect::<Vec<f64>>()
    };
    rows.iter().flat_map(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_little_or_says_nothing_has_no_answer() {
        assert_eq!(mean_effect(&[1.0]), None);
        assert_eq!(mean_effect(&[2.0; 5]), None);
        assert_eq!(mean_effect(&[1.0, f64::NAN]), None);
        assert_eq!(slope(&[(1.0, 2.0)]), None);
        assert_eq!(slope(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(place_effect(&[]), None);
        let always = vec![
            vec![(0.0, 1.0), (1.0, 2.0)],
            vec![(0.0, 1.5), (1.0, 2.1)],
            vec![(0.0, 1.2), (1.0, 2.2)],
        ];
        assert_eq!(
            place_effect(&always),
            None,
            "with one order place and variant are the same"
        );
        assert_eq!(
            place_effect(&[vec![(0.0, 1.0), (1.0, 2.0)], vec![(0.0, 1.0)]]),
            None
        );
        assert_eq!(place_effect(&[vec![(0.0, 1.0)], vec![(0.0, 1.0)]]), None);
    }
}
