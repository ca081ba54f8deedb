//! Few blocks, where every resample there is can be gone through: against NumPy's enumeration, and the draws against it.

use super::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    enumerated: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    d: Vec<f64>,
    level: f64,
    t: (f64, f64),
}

fn rows() -> Vec<Row> {
    let text = include_str!("../../tests/vectors/resampling.json");
    serde_json::from_str::<Vectors>(text).expect("kept with the tests").enumerated
}

/// All n^n resamples, as the digits of the numbers below n^n.
fn all(d: &[f64]) -> Vec<Resample> {
    let n = d.len();
    let one = |number: usize| {
        let digits = (0..n).map(|place| d[number / n.pow(place as u32) % n]);
        Resample::of(&digits.collect::<Vec<f64>>())
    };
    (0..n.pow(n as u32)).map(one).collect()
}

#[test]
fn with_every_resample_there_is_the_ends_are_those_of_the_formulas() {
    for row in rows() {
        let resamples = all(&row.d);
        let ours = ends(&row.d, row.level, &resamples);
        let off = (ours.0 - row.t.0).abs().max((ours.1 - row.t.1).abs());
        assert!(off <= 1e-12, "ours {ours:?}, NumPy {:?}", row.t);
    }
}

#[test]
fn draws_are_a_sample_of_every_resample_there_is() {
    for row in rows() {
        let mut draws = Resampling { resamples: 1_000, seed: 5 }.draws(PURPOSE).expect("a thousand");
        let count = 100_000;
        let mut ours: Vec<f64> =
            drawn(&row.d, count, &mut draws).iter().map(|resample| resample.mean).collect();
        let mut theirs: Vec<f64> = all(&row.d).iter().map(|resample| resample.mean).collect();
        ours.sort_by(f64::total_cmp);
        theirs.sort_by(f64::total_cmp);
        for mean in &theirs {
            let share = |of: &[f64]| of.partition_point(|other| other <= mean) as f64 / of.len() as f64;
            // Kolmogorov and Smirnov's distance: 0.0062 would be exceeded in one case of a thousand.
            assert!((share(&ours) - share(&theirs)).abs() < 0.0062, "{mean} of {:?}", row.d);
        }
    }
}

#[test]
fn quantiles_between_infinities_are_never_no_numbers() {
    let infinite = [f64::NEG_INFINITY, f64::NEG_INFINITY, 0.0, 1.0, f64::INFINITY];
    let at: Vec<f64> = [0.0, 0.1, 0.3, 0.5, 0.6, 0.9, 1.0].map(|p| quantile(&infinite, p)).to_vec();
    let low = f64::NEG_INFINITY;
    assert_eq!(at[..4], [low, low, low, 0.0]);
    assert!((at[4] - 0.4).abs() < 1e-12 && at[5..] == [f64::INFINITY, f64::INFINITY]);
}
