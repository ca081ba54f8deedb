//! Tests of level changes, by simulation from a seed.

use proofload_stats::{CHANGE_LEVEL, MeasuredPoint, RESAMPLES_MIN, Resampling, changes};

use crate::simulation::Noise;

/// Creates a series with a step, and with more noise than the standard errors indicate.
fn series(noise: &mut Noise, points: usize, step: f64, at: usize) -> Vec<MeasuredPoint> {
    let one = |index: usize| {
        let standard_error = 0.005 + 0.01 * noise.uniform();
        let true_value = if index < at { 0.0 } else { step };
        let between = 0.017 * noise.normal();
        MeasuredPoint {
            value: true_value + between + standard_error * noise.normal(),
            standard_error,
        }
    };
    (0..points).map(one).collect()
}

#[test]
fn where_nothing_changes_one_in_a_hundred_says_so() {
    let mut noise = Noise::new(71);
    for points in [12, 20, 60] {
        let alarms = (0..2_000).filter(|seed| {
            let resampling = Resampling {
                resamples: RESAMPLES_MIN,
                seed: *seed,
            };
            !changes(&series(&mut noise, points, 0.0, 0), resampling)
                .expect("numbers")
                .is_empty()
        });
        // The expected number is 20. With 2,000 series chance alone gives 7 to 36 in all but one of a
        // thousand seeds.
        let alarms = alarms.count();
        assert!(
            (7..=36).contains(&alarms),
            "{alarms} of 2,000 series of {points} at {CHANGE_LEVEL}"
        );
    }
}

#[test]
fn a_step_of_ten_per_cent_is_found_in_twenty_records_with_two_per_cent_of_noise() {
    let mut noise = Noise::new(72);
    for at in [10, 16] {
        let found = (0..200).filter(|seed| {
            let resampling = Resampling {
                resamples: RESAMPLES_MIN,
                seed: *seed,
            };
            let found =
                changes(&series(&mut noise, 20, 1.1_f64.ln(), at), resampling).expect("numbers");
            found
                .iter()
                .any(|change| change.at == at && (change.after - change.before).exp() > 1.05)
        });
        let found = found.count();
        assert!(found > 180, "a step at {at} was found in {found} of 200");
    }
}
