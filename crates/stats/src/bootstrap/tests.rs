//! Tests with few blocks, where all resamples can be enumerated, against NumPy's enumeration.

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
    serde_json::from_str::<Vectors>(text)
        .expect("kept with the tests")
        .enumerated
}

/// t* of all n^n resamples, which are the digits of the numbers below n^n.
fn all(d: &[f64]) -> Vec<f64> {
    let (n, mean) = (d.len(), mean_and_sd(d).0);
    let one = |number: usize| {
        let digits = (0..n).map(|place| d[number / n.pow(place as u32) % n]);
        t(&digits.collect::<Vec<f64>>(), mean)
    };
    (0..n.pow(n as u32)).map(one).collect()
}

#[test]
fn with_every_resample_there_is_the_ends_are_those_of_the_formulas() {
    for row in rows() {
        let ours = ends(&row.d, row.level, all(&row.d));
        let off = (ours.0 - row.t.0).abs().max((ours.1 - row.t.1).abs());
        assert!(off <= 1e-12, "ours {ours:?}, NumPy {:?}", row.t);
    }
}

#[test]
fn quantiles_between_infinities_are_never_no_numbers() {
    let infinite = [
        f64::NEG_INFINITY,
        f64::NEG_INFINITY,
        0.0,
        1.0,
        f64::INFINITY,
    ];
    let at: Vec<f64> = [0.0, 0.1, 0.3, 0.5, 0.6, 0.9, 1.0]
        .map(|p| quantile(&infinite, p))
        .to_vec();
    let low = f64::NEG_INFINITY;
    assert_eq!(at[..4], [low, low, low, 0.0]);
    assert!((at[4] - 0.4).abs() < 1e-12 && at[5..] == [f64::INFINITY, f64::INFINITY]);
}
