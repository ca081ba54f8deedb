//! Input that has no answer must get none: not a panic, not a NaN, and above all not a confident number.

use proofload_stats::{
    Components, Error, Estimate, SLICES_MAX, SLICES_MIN, components, lag1, mser5, plain_t, slices, wilson,
};

#[test]
fn an_estimate_needs_two_finite_blocks_that_differ() {
    assert_eq!(Estimate::of(&[], 2.0), Err(Error::TooFewBlocks { blocks: 0, least: 2 }));
    assert_eq!(Estimate::of(&[0.1], 2.0), Err(Error::TooFewBlocks { blocks: 1, least: 2 }));
    let zero_throughput = (0.0_f64 / 100.0).ln();
    let error = Estimate::of(&[0.1, zero_throughput], 2.0);
    assert_eq!(error, Err(Error::NotFinite { index: 1, value: f64::NEG_INFINITY }));
    for critical_t in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(Estimate::of(&[0.1, 0.2], critical_t), Err(Error::CriticalT { .. })));
    }
    assert!(matches!(Estimate::of(&[-500.0, 500.0], 9.0), Err(Error::TooWide { .. })));
}

#[test]
fn equal_blocks_have_a_ratio_and_no_interval() {
    // Bytes per response, the same in every block; the mean of equal numbers may be off by a rounding.
    let d = [(134_054.0_f64 / 9_321.0).ln(); 7];
    let Err(Error::NoSpread { blocks: 7, ratio }) = Estimate::of(&d, 2.5) else { panic!("no spread") };
    assert!((ratio - 134_054.0 / 9_321.0).abs() < 1e-9);
    assert_eq!(lag1(&d), None);
}

#[test]
fn levels_outside_zero_to_one_are_refused() {
    for level in [0.0, 1.0, -0.5, 95.0, f64::NAN] {
        assert!(matches!(plain_t(6, level), Err(Error::Level { .. })));
        assert!(matches!(wilson(1, 10, level), Err(Error::Level { .. })));
    }
    assert_eq!(wilson(0, 0, 0.95), Ok(None));
}

#[test]
fn a_short_or_broken_series_is_not_called_steady() {
    assert!(!mser5(&[]).steady);
    assert!(!mser5(&[100.0; 59]).steady);
    let mut series = vec![100.0; 60];
    assert!(mser5(&series).steady && mser5(&series).buckets == 0);
    series[30] = f64::NAN;
    assert!(!mser5(&series).steady);
}

#[test]
fn a_warm_up_is_cut_where_it_ends() {
    let noise = |i: usize| ((i * 7_919) % 101) as f64 / 101.0;
    let series: Vec<f64> = (0..200).map(|i| if i < 40 { i as f64 } else { 40.0 } + noise(i)).collect();
    let truncation = mser5(&series);
    assert!(truncation.steady && (35..=45).contains(&truncation.buckets), "{truncation:?}");
    // The same ramp through most of the series leaves nothing to call steady.
    assert!(!mser5(&series[..60]).steady);
}

#[test]
fn variances_need_two_of_each() {
    assert_eq!(components(&[]), None);
    assert_eq!(components(&[vec![vec![1.0, 2.0]], vec![vec![3.0, 4.0]]]), None, "one trial each");
    assert_eq!(components(&[vec![vec![1.0], vec![2.0]]]), None, "one slice each");
    assert_eq!(components(&[vec![vec![1.0, f64::NAN], vec![2.0, 3.0]]]), None);
    let with_empty = [vec![vec![1.0, 2.0], vec![], vec![2.0, 3.0]], vec![]];
    let without = [vec![vec![1.0, 2.0], vec![2.0, 3.0]]];
    assert_eq!(components(&with_empty), components(&without));
}

#[test]
fn the_number_of_slices_follows_the_costs_and_stays_in_its_range() {
    let noise = |between, within| Components { between, within };
    // A trial costs nine slices, the variances are alike: three.
    assert_eq!(slices(9.0, 1.0, &noise(1e-4, 1e-4)), 3);
    assert_eq!(slices(9.0, 1.0, &noise(1e-4, 2.25e-4)), 5, "4.5 is rounded up");
    assert_eq!(slices(9.0, 1.0, &noise(0.0, 1e-4)), SLICES_MAX);
    assert_eq!(slices(9.0, 0.0, &noise(1e-4, 1e-4)), SLICES_MAX);
    for (cost_trial_s, cost_slice_s, variances) in [
        (9.0, 1.0, noise(1e-4, 0.0)),
        (0.0, 1.0, noise(1e-4, 1e-4)),
        (9.0, 1.0, noise(0.0, 0.0)),
        (f64::NAN, 1.0, noise(1e-4, 1e-4)),
        (9.0, -1.0, noise(1e-4, 1e-4)),
    ] {
        assert_eq!(slices(cost_trial_s, cost_slice_s, &variances), SLICES_MIN);
    }
}
