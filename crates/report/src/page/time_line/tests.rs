//! Where the points of a time line lie, and that parts of a slice add up to it.

use std::path::Path;

use super::*;

fn trial() -> Trial {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/records/v1"));
    let record = record::open(path).expect("the kept record opens");
    record.blocks[0].trials[0].clone()
}

#[test]
fn a_slice_is_taken_apart_where_its_rate_is_known_by_tenths_of_a_second() {
    let mut trial = trial();
    trial.slices.truncate(2);
    let points = points(&trial, false);
    let warm_up: Vec<&Point> = points.iter().filter(|point| point.is_warm_up).collect();
    assert!((2..=SLICE_POINTS_MAX).contains(&warm_up.len()), "{}", warm_up.len());
    let counted: f64 = warm_up.iter().filter_map(|point| Some(point.rate_per_s? * point.lasts_s)).sum();
    let known: u32 = trial.slices[0].counts.successful_per_100_ms.iter().sum();
    assert!((counted - f64::from(known)).abs() < 1.0, "{counted} of {known}");
    assert!(points.iter().is_sorted_by(|one, next| one.at_s + one.lasts_s <= next.at_s + 1e-9));
}

#[test]
fn turns_last_until_the_next_slice_begins_and_a_clock_that_stands_still_is_no_harm() {
    let mut trial = trial();
    trial.slices.truncate(3);
    for (slice, started_s) in trial.slices.iter_mut().zip([10, 12, 16]) {
        slice.turns = 25;
        slice.counts.window_ns = 500_000_000;
        slice.counts.started_ns = started_s * 1_000_000_000;
    }
    assert_eq!(places(&trial.slices), [(0.0, 2.0), (2.0, 4.0), (6.0, 4.0)]);
    for slice in &mut trial.slices {
        (slice.turns, slice.counts.started_ns) = (1, 0);
    }
    assert_eq!(places(&trial.slices), [(0.0, 0.5), (0.5, 0.5), (1.0, 0.5)]);
    assert_eq!(places(&[]), []);
}
