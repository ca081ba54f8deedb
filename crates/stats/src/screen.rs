//! Screening: determines which of many two-level settings change a value, from few trials that all inform
//! every effect.
//!
//! Rows of a Plackett-Burman design (1946) define which settings are on. Each row has a mirror image, in
//! which all settings are inverted. Half of the difference of the two is free of interactions of two
//! settings, and their mean is free of main effects. Trials are compared only within one block.
//!
//! ```text
//!   row          + − + +      difference  (ln y(+−++) − ln y(−+−−)) / 2  =  block + Σ effect / 2 · ±1
//!   mirrored     − + − −      sum         (ln y(+−++) + ln y(−+−−)) / 2  =  block + Σ interaction · ±1 · ±1
//! ```

use crate::student::{normal_z, two_sided, two_sided_t_of};
use crate::{MeasuredPoint, Resampling};

/// The first row of each design. The other rows are its rotations, and a last row in which all settings are
/// off.
const FIRST_ROWS: [&str; 6] = [
    "+",
    "++-",
    "+++-+--",
    "++-+++---+-",
    "++--++++-+-+----++-",
    "+++++-+-++--++--+-+----",
];
/// Maximum number of settings in one screening.
pub const SETTINGS_MAX: usize = 22;
/// Maximum number of trials in a block. A larger design is split.
const ROWS_MAX: usize = 12;

/// The rows of one block: for each row, which settings are on.
pub type SettingRows = Vec<Vec<bool>>;

/// Draws designs for the given number of settings from a seed: the rows of each block. The mirror images of a
/// block form a separate block.
///
/// Uses the smallest design with a column for each setting. A design of more than twelve rows is split by an
/// unused column. `None` for no setting and for more than [`SETTINGS_MAX`].
pub fn designs(settings: usize, seed: u64) -> Option<Vec<SettingRows>> {
    let fits = |first: &&&str| first.len() >= settings + usize::from(first.len() >= ROWS_MAX);
    let first = FIRST_ROWS.iter().find(fits).filter(|_| settings > 0)?;
    let first: Vec<bool> = first.bytes().map(|sign| sign == b'+').collect();
    let columns = first.len();
    let turned = (0..columns).map(|by| (0..columns).map(|at| first[(at + by) % columns]).collect());
    let all: SettingRows = turned.chain([vec![false; columns]]).collect();
    let mut draws = Resampling {
        seed,
        resamples: crate::RESAMPLES_MIN,
    }
    .draws(*b"screens ")?;
    let mut order: Vec<usize> = (0..columns).collect();
    draws.shuffle(&mut order);
    let mut signs = vec![1.0; columns];
    draws.signs(&mut signs);
    let row = |row: &Vec<bool>| {
        (0..settings)
            .map(|of| row[order[of]] == (signs[of] > 0.0))
            .collect()
    };
    let (on, off): (SettingRows, SettingRows) =
        all.into_iter().partition(|row| row[order[columns - 1]]);
    Some(match on.len() + off.len() > ROWS_MAX {
        true => [on, off]
            .iter()
            .map(|rows| rows.iter().map(row).collect())
            .collect(),
        false => vec![on.iter().chain(&off).map(row).collect()],
    })
}

/// Results of a row and its mirror image.
#[derive(Debug, Clone, PartialEq)]
pub struct Mirrored {
    /// Which settings were on in the row. `None` for settings that were not varied.
    pub on: Vec<Option<bool>>,
    /// Logarithms of the value of the row and of its mirror image.
    pub logs: [f64; 2],
}

/// Effects estimated by a screening.
#[derive(Debug, Clone, PartialEq)]
pub struct Screened {
    /// Average effect of each setting over the others, as the logarithm of on over off. `None` if it never
    /// varied.
    pub effects: Vec<Option<MeasuredPoint>>,
    /// Degrees of freedom of the standard errors.
    pub freedom: f64,
}

/// Estimates the effects by least squares. Each block is a list of its rows. `None` without a degree of
/// freedom, or if settings cannot be separated.
pub fn screened(blocks: &[Vec<Mirrored>]) -> Option<Screened> {
    let settings = blocks.iter().flatten().map(|row| row.on.len()).max()?;
    let varied: Vec<usize> = (0..settings)
        .filter(|of| blocks.iter().flatten().any(|row| row.on[*of].is_some()))
        .collect();
    let sign = |row: &Mirrored, of: usize| row.on[of].map_or(0.0, |on| if on { 0.5 } else { -0.5 });
    let line = |row: &Mirrored| {
        let signs: Vec<f64> = varied.iter().map(|of| sign(row, *of)).collect();
        (signs, (row.logs[0] - row.logs[1]) / 2.0)
    };
    let fit = LeastSquares::of(
        blocks
            .iter()
            .map(|block| block.iter().map(line).collect())
            .collect(),
    )?;
    let mut effects = vec![None; settings];
    for (place, of) in varied.iter().enumerate() {
        effects[*of] = Some(fit.effect(place));
    }
    Some(Screened {
        effects,
        freedom: fit.freedom,
    })
}

/// Interactions of pairs of settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Interactions {
    /// Each pair, with the logarithm by which both on, or both off, exceeds only one of them on.
    pub pairs: Vec<([usize; 2], MeasuredPoint)>,
    /// Degrees of freedom of the standard errors.
    pub freedom: f64,
}

/// Estimates the interactions between pairs of these settings. `None` as for [`screened`].
pub fn interactions(blocks: &[Vec<Mirrored>], members: &[usize]) -> Option<Interactions> {
    let behind = |at: usize| members[at + 1..].iter();
    let pairs: Vec<[usize; 2]> = members
        .iter()
        .enumerate()
        .flat_map(|(at, one)| behind(at).map(|other| [*one, *other]))
        .collect();
    let sign = |row: &Mirrored, of: usize| row.on[of].map_or(0.0, |on| if on { 1.0 } else { -1.0 });
    let line = |row: &Mirrored| {
        let signs = pairs
            .iter()
            .map(|pair| sign(row, pair[0]) * sign(row, pair[1]))
            .collect();
        (signs, f64::midpoint(row.logs[0], row.logs[1]))
    };
    let fit = LeastSquares::of(
        blocks
            .iter()
            .map(|block| block.iter().map(line).collect())
            .collect(),
    )?;
    let found = pairs
        .iter()
        .enumerate()
        .map(|(place, pair)| (*pair, fit.effect(place)));
    Some(Interactions {
        pairs: found.collect(),
        freedom: fit.freedom,
    })
}

/// Least squares fit with a separate mean for each block.
struct LeastSquares {
    values: Vec<f64>,
    /// Inverse of the normal matrix.
    inverse: Vec<Vec<f64>>,
    variance: f64,
    freedom: f64,
}

type WeightedRows = Vec<(Vec<f64>, f64)>;

impl LeastSquares {
    fn of(blocks: Vec<WeightedRows>) -> Option<LeastSquares> {
        let unknowns = blocks.iter().flatten().next()?.0.len();
        let lines: WeightedRows = blocks
            .iter()
            .flat_map(|block| centred(block, unknowns))
            .collect();
        let freedom = lines.len() as f64 - blocks.len() as f64 - unknowns as f64;
        let dot =
            |one: usize, other: usize| lines.iter().map(|(x, _)| x[one] * x[other]).sum::<f64>();
        let normal =
            (0..unknowns).map(|row| (0..unknowns).map(|column| dot(row, column)).collect());
        let inverse = inverse(normal.collect())?;
        let with_y: Vec<f64> = (0..unknowns)
            .map(|of| lines.iter().map(|(x, y)| x[of] * y).sum())
            .collect();
        let times = |row: &Vec<f64>| {
            row.iter()
                .zip(&with_y)
                .map(|(one, other)| one * other)
                .sum()
        };
        let values: Vec<f64> = inverse.iter().map(times).collect();
        let rest = |(x, y): &(Vec<f64>, f64)| {
            y - x
                .iter()
                .zip(&values)
                .map(|(x, value)| x * value)
                .sum::<f64>()
        };
        let squares: f64 = lines.iter().map(|line| rest(line).powi(2)).sum();
        let variance = squares / freedom;
        (freedom >= 1.0 && variance.is_finite()).then_some(LeastSquares {
            values,
            inverse,
            variance,
            freedom,
        })
    }

    fn effect(&self, place: usize) -> MeasuredPoint {
        let standard_error = (self.variance * self.inverse[place][place]).sqrt();
        MeasuredPoint {
            value: self.values[place],
            standard_error,
        }
    }
}

/// Subtracts the block mean from the lines of a block.
fn centred(block: &WeightedRows, unknowns: usize) -> WeightedRows {
    let n = block.len() as f64;
    let mean = |of: usize| block.iter().map(|(x, _)| x[of]).sum::<f64>() / n;
    let means: Vec<f64> = (0..unknowns).map(mean).collect();
    let mean_y = block.iter().map(|(_, y)| y).sum::<f64>() / n;
    let line = |(x, y): &(Vec<f64>, f64)| {
        (
            x.iter().zip(&means).map(|(x, mean)| x - mean).collect(),
            y - mean_y,
        )
    };
    block.iter().map(line).collect()
}

/// Inverse of a symmetric matrix by elimination. `None` if it is singular.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let n = matrix.len();
    for (at, row) in matrix.iter_mut().enumerate() {
        row.extend((0..n).map(|of| f64::from(u8::from(of == at))));
    }
    for at in 0..n {
        let pivot = (at..n)
            .max_by(|one, other| matrix[*one][at].abs().total_cmp(&matrix[*other][at].abs()))?;
        matrix.swap(at, pivot);
        let scale = matrix[at][at];
        if scale.abs() < 1e-9 {
            return None;
        }
        matrix[at].iter_mut().for_each(|value| *value /= scale);
        let row = matrix[at].clone();
        for (_, other) in matrix.iter_mut().enumerate().filter(|(of, _)| *of != at) {
            let by = other[at];
            other
                .iter_mut()
                .zip(&row)
                .for_each(|(value, pivot)| *value -= by * pivot);
        }
    }
    Some(matrix.into_iter().map(|row| row[n..].to_vec()).collect())
}

/// Boundaries for repeated looks at a family of effects while a screening grows.
///
/// ```text
///   |z| > C · (looked at / in all)^−¼        Wang & Tsiatis 1987, Δ = 0.25; C so that all looks together err with α / effects
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ScreenLooks {
    c: f64,
    last: f64,
}

/// Exponent of the boundary.
const DELTA: f64 = 0.25;

impl ScreenLooks {
    /// Creates the boundaries for looks after these numbers of pairs. The effects share an error rate
    /// (Bonferroni, since their estimates are uncorrelated). `None` unless `looks` is ascending and 0 <
    /// `alpha` < 1.
    pub fn new(looks: &[u32], effects: usize, alpha: f64) -> Option<ScreenLooks> {
        let rises = looks.windows(2).all(|pair| pair[0] < pair[1]);
        let last = *looks.last().filter(|last| rises && **last > 0)?;
        let each = alpha / effects.max(1) as f64;
        let least = normal_z(1.0 - each)?;
        let times: Vec<f64> = looks
            .iter()
            .map(|look| f64::from(*look) / f64::from(last))
            .collect();
        // The constant lies between a single look and Bonferroni over all looks.
        let (mut low, mut high) = (least, normal_z(1.0 - each / looks.len() as f64)? + 1e-9);
        for _ in 0..40 {
            let c = f64::midpoint(low, high);
            if crossing(&times, c) > each {
                low = c
            } else {
                high = c
            }
        }
        Some(ScreenLooks {
            c: high,
            last: f64::from(last),
        })
    }

    /// Critical t after the given number of pairs.
    pub fn critical_t(&self, pairs: u32, freedom: f64) -> f64 {
        let z = self.c * (f64::from(pairs) / self.last).min(1.0).powf(-DELTA);
        two_sided_t_of(freedom, two_sided(z))
    }
}

/// Number of grid points for the density between looks.
const GRID: i32 = 100;

/// Probability that a Brownian motion is outside the boundary at any of these times (Armitage, McPherson &
/// Rowe 1969).
fn crossing(times: &[f64], c: f64) -> f64 {
    let edge = |time: f64| c * time.powf(-DELTA) * time.sqrt();
    let density = |x: f64, variance: f64| {
        (-x * x / (2.0 * variance)).exp() / (std::f64::consts::TAU * variance).sqrt()
    };
    let mut inside: Vec<(f64, f64)> = Vec::new();
    let mut before = 0.0;
    for &time in times {
        let step = edge(time) / f64::from(GRID);
        let points = (-GRID..=GRID).map(|at| f64::from(at) * step);
        let weight = |x: f64| {
            if x.abs() > edge(time) - step / 2.0 {
                step / 2.0
            } else {
                step
            }
        };
        let at = |x: f64| match inside.as_slice() {
            [] => density(x, time),
            inside => inside
                .iter()
                .map(|(from, mass)| mass * density(x - from, time - before))
                .sum(),
        };
        inside = points.map(|x| (x, at(x) * weight(x))).collect();
        before = time;
    }
    1.0 - inside.iter().map(|(_, mass)| mass).sum::<f64>()
}

#[cfg(test)]
mod tests;
