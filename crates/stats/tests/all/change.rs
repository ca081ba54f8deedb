//! Changes of level: against NumPy (`vectors/change.json`, made by `vectors/make_change.py`), and by simulation from a seed.

use proofload_stats::{CHANGE_LEVEL, Measured, RESAMPLES_MAX, RESAMPLES_MIN, Resampling, changes, suspect};
use serde::Deserialize;

use crate::simulation::Noise;

#[derive(Deserialize)]
struct Vectors {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    values: Vec<f64>,
    errors: Vec<f64>,
    at: usize,
    statistic: f64,
    p: f64,
}

#[test]
fn places_and_p_values_are_those_of_numpy() {
    let vectors: Vectors =
        serde_json::from_str(include_str!("../vectors/change.json")).expect("kept with the tests");
    assert!(vectors.rows.iter().any(|row| row.p < 0.01) && vectors.rows.iter().any(|row| row.p > 0.1));
    for row in vectors.rows {
        let point = |(value, error): (&f64, &f64)| Measured { value: *value, standard_error: *error };
        let points: Vec<Measured> = row.values.iter().zip(&row.errors).map(point).collect();
        let resampling = Resampling { resamples: RESAMPLES_MAX, seed: 1 };
        let found = suspect(&points, resampling).expect("numbers").expect("they vary");
        assert_eq!(found.at, row.at, "{:?}", row.values);
        assert!((found.statistic / row.statistic - 1.0).abs() < 1e-9, "{found:?}, NumPy {}", row.statistic);
        // Both draw; ours ends after 10,000 as large, and NumPy's 100,000 know a p of 0.001 to a tenth.
        let tolerance = 0.05 * row.p + 4.0 * (row.p / 100_000.0).sqrt() + 2e-5;
        assert!((found.p - row.p).abs() < tolerance, "{found:?}, NumPy {}", row.p);
    }
}

/// A series of so many points with a step of this size at this place, and noise that is larger than the standard errors say.
fn series(noise: &mut Noise, points: usize, step: f64, at: usize) -> Vec<Measured> {
    let one = |index: usize| {
        let standard_error = 0.005 + 0.01 * noise.uniform();
        let true_value = if index < at { 0.0 } else { step };
        let between = 0.017 * noise.normal();
        Measured { value: true_value + between + standard_error * noise.normal(), standard_error }
    };
    (0..points).map(one).collect()
}

#[test]
fn where_nothing_changes_one_in_a_hundred_says_so() {
    let mut noise = Noise::new(71);
    for points in [12, 20, 60] {
        let alarms = (0..2_000).filter(|seed| {
            let resampling = Resampling { resamples: RESAMPLES_MIN, seed: *seed };
            !changes(&series(&mut noise, points, 0.0, 0), resampling).expect("numbers").is_empty()
        });
        // 20 are due; with 2,000 series chance alone leaves 7 to 36 in all but one of a thousand seeds.
        let alarms = alarms.count();
        assert!(
            (7..=36).contains(&alarms),
            "{alarms} of 2,000 series of {points} at a level of {CHANGE_LEVEL}"
        );
    }
}

#[test]
fn a_step_of_ten_per_cent_is_found_in_twenty_records_with_two_per_cent_of_noise() {
    let mut noise = Noise::new(72);
    for at in [10, 16] {
        let found = (0..200).filter(|seed| {
            let resampling = Resampling { resamples: RESAMPLES_MIN, seed: *seed };
            let found = changes(&series(&mut noise, 20, 1.1_f64.ln(), at), resampling).expect("numbers");
            found.iter().any(|change| change.at == at && (change.after - change.before).exp() > 1.05)
        });
        let found = found.count();
        assert!(found > 180, "a step at {at} was found in {found} of 200");
    }
}
