//! Input that has no answer must get none: not a panic, not a NaN, and above all not a confident number.

use proofload_stats::{
    Components, Error, Estimate, Interval, Latencies, Quantile, Resampling, SLICES_MAX, SLICES_MIN, bca,
    bootstrap_t, components, guard, lag1, max_t, mser5, newcombe, plain_t, quantile_band, sequence_t, slices,
    wilson,
};

const THOUSAND: Resampling = Resampling { resamples: 1_000, seed: 1 };
type Bootstrap = fn(&[f64], f64, Resampling) -> Result<Interval, Error>;
const BOOTSTRAPS: [Bootstrap; 2] = [bootstrap_t, bca];
/// An error rate or a level that is none.
const OUTSIDE: [f64; 5] = [0.0, 1.0, -0.5, 95.0, f64::NAN];

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
    for level in OUTSIDE {
        assert!(matches!(plain_t(6, level), Err(Error::Level { .. })));
        assert!(matches!(wilson(1, 10, level), Err(Error::Level { .. })));
        assert!(matches!(newcombe((1, 10), (1, 10), level), Err(Error::Level { .. })));
        assert!(matches!(quantile_band(&[], 0.5, level, THOUSAND), Err(Error::Level { .. })));
        for bootstrap in BOOTSTRAPS {
            assert!(matches!(bootstrap(&[], level, THOUSAND), Err(Error::Level { .. })));
        }
    }
    assert_eq!(wilson(0, 0, 0.95), Ok(None));
    assert_eq!((newcombe((0, 0), (1, 2), 0.95), newcombe((1, 2), (0, 0), 0.95)), (Ok(None), Ok(None)));
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

#[test]
fn error_rates_and_constants_outside_their_range_are_refused() {
    for alpha in OUTSIDE {
        assert!(matches!(sequence_t(6, 1.0, alpha), Err(Error::Alpha { .. })));
        assert!(matches!(guard(&[], 1.0, alpha), Err(Error::Alpha { .. })));
        assert!(matches!(max_t(&[], alpha, THOUSAND), Err(Error::Alpha { .. })));
    }
    for constant in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(sequence_t(6, constant, 0.05), Err(Error::NotPositive { what: "g", .. })));
        assert!(matches!(guard(&[], constant, 0.05), Err(Error::NotPositive { what: "scale", .. })));
    }
    for resamples in [0, 999, 1_000_001] {
        let error = bca(&[], 0.95, Resampling { resamples, seed: 1 });
        assert_eq!(error, Err(Error::Resamples { resamples, least: 1_000, most: 1_000_000 }));
    }
}

#[test]
fn a_bootstrap_needs_six_finite_blocks_that_differ() {
    for bootstrap in BOOTSTRAPS {
        for blocks in [0, 1, 5] {
            let error = bootstrap(&vec![0.1; blocks as usize], 0.95, THOUSAND);
            assert_eq!(error, Err(Error::TooFewBlocks { blocks, least: 6 }));
        }
        let error = bootstrap(&[0.1, 0.2, 0.3, f64::NEG_INFINITY, 0.1, 0.2], 0.95, THOUSAND);
        assert!(matches!(error, Err(Error::NotFinite { index: 3, .. })));
        assert!(matches!(bootstrap(&[0.1; 7], 0.95, THOUSAND), Err(Error::NoSpread { blocks: 7, .. })));
        for far in [1e4, 1e200, f64::MAX] {
            let error = bootstrap(&[far, -far, far, -far, far, far], 0.95, THOUSAND);
            assert!(matches!(error, Err(Error::TooWide { .. })), "{far}: {error:?}");
        }
    }
    // All but one block alike: a third of the resamples has no spread, so nothing bounds t* at one end.
    let alike = [0.1, 0.1, 0.1, 0.1, 0.1, 0.2];
    assert!(matches!(bootstrap_t(&alike, 0.95, THOUSAND), Err(Error::TooWide { .. })));
    assert!(bca(&alike, 0.95, THOUSAND).is_ok_and(|ends| ends.low < ends.high));
}

#[test]
fn a_sequence_says_nothing_before_it_can_and_nothing_infinite() {
    assert_eq!(sequence_t(0, 1.0, 0.05), Err(Error::TooFewBlocks { blocks: 0, least: 1 }));
    for blocks in 1..=4 {
        assert_eq!(sequence_t(blocks, 1.0, 0.05), Ok(None));
    }
    for (g, alpha) in [(1e-300, 0.05), (1e308, 0.05), (1.0, 1e-300), (1.0, 1.0 - 1e-15)] {
        for blocks in [1, 2, 5, 6, u32::MAX] {
            let t = sequence_t(blocks, g, alpha).expect("in range");
            assert!(t.is_none_or(|t| t.is_finite() && t >= 0.0), "{blocks}, {g}, {alpha}: {t:?}");
        }
    }
}

#[test]
fn the_guard_has_no_evidence_in_nothing_and_names_the_block_that_is_no_number() {
    let none = guard(&[], 0.01, 0.05).expect("nothing is a beginning");
    assert_eq!((none.blocks, none.ln_evidence, none.rejects), (0, 0.0, false));
    assert_eq!(
        guard(&[0.0; 5], 0.01, 0.05).map(|guard| (guard.ln_evidence, guard.rejects)),
        Ok((0.0, false))
    );
    for value in [f64::NAN, f64::INFINITY, 1e300] {
        assert!(matches!(guard(&[0.1, value], 0.01, 0.05), Err(Error::NotFinite { index: 1, .. })));
    }
}

#[test]
fn several_candidates_are_tested_in_whole_finite_blocks() {
    for blocks in [0, 1] {
        let error = max_t(&vec![vec![0.1]; blocks], 0.05, THOUSAND);
        assert_eq!(error, Err(Error::TooFewBlocks { blocks: blocks as u32, least: 2 }));
    }
    for candidates in [0, 65] {
        let error = max_t(&vec![vec![0.1; candidates]; 6], 0.05, THOUSAND);
        assert_eq!(error, Err(Error::Comparisons { comparisons: candidates as u32, most: 64 }));
    }
    let ragged = [vec![0.1, 0.2], vec![0.1]];
    assert_eq!(max_t(&ragged, 0.05, THOUSAND), Err(Error::Cells { block: 1, cells: 1, expected: 2 }));
    let error = max_t(&[vec![0.1, 0.2], vec![0.1, f64::INFINITY]], 0.05, THOUSAND);
    assert!(matches!(error, Err(Error::NotFinite { index: 1, .. })));
}

#[test]
fn candidates_without_spread_or_without_effect_have_p_values_and_no_t() {
    // Nothing, always the same, and far beyond what squares of numbers can hold.
    let rows: Vec<Vec<f64>> =
        [-1.0, 1.5, 2.0, -0.5, 1.0, 0.5].iter().map(|d| vec![0.0, 0.1, d * 1e200, -d * 1e200]).collect();
    let tested = max_t(&rows, 0.05, THOUSAND).expect("finite");
    let [nothing, same, wide, mirrored] = tested.candidates[..] else { panic!("four candidates") };
    assert_eq!((nothing.t, nothing.single_step, nothing.step_down), (None, 1.0, 1.0));
    assert_eq!(
        (same.t, same.step_down),
        (None, 1.0 / 32.0),
        "two of the 64 flips reach what is always the same"
    );
    assert!(wide.t.is_some_and(|t| (t - 1.2).abs() < 0.2) && wide == mirrored, "{wide:?}");
    assert!(tested.critical_t.is_some_and(f64::is_finite));
    // Five blocks cannot tell 5 %, and blocks without any spread have no intervals.
    let five = max_t(&rows[..5], 0.05, THOUSAND).expect("finite");
    assert_eq!((five.critical_t, five.candidates[1].single_step), (None, 1.0 / 16.0));
    assert_eq!(max_t(&vec![vec![0.1, 0.0]; 7], 0.05, THOUSAND).expect("finite").critical_t, None);
    // Spread around a mean of nothing has a t of nothing.
    let even: Vec<Vec<f64>> = [1.0, -1.0, 1.0, -1.0].iter().map(|d| vec![*d]).collect();
    assert_eq!(max_t(&even, 0.05, THOUSAND).expect("finite").candidates[0].t, Some(0.0));
}

#[test]
fn a_band_needs_six_blocks_with_latencies_and_is_open_where_requests_were_given_up() {
    let mut some = Latencies::new();
    (1..=100).for_each(|ns| some.record(ns));
    let band = |blocks: &[Latencies], q| quantile_band(blocks, q, 0.95, THOUSAND);
    for blocks in [0, 1, 5] {
        let error = band(&vec![some.clone(); blocks], 0.5);
        assert_eq!(error, Err(Error::TooFewBlocks { blocks: blocks as u32, least: 6 }));
    }
    let mut blocks = vec![some.clone(); 6];
    for q in [-0.1, 1.1, f64::NAN] {
        assert!(matches!(band(&blocks, q), Err(Error::Quantile { .. })));
    }
    let same = band(&blocks, 0.5).expect("samples");
    assert_eq!((same.low_ns, same.high, same.quantile), (50, Quantile::Exact(50), Quantile::Exact(50)));
    // One block in which a fifth was given up after 90 ns: drawn often enough, it leaves p95 open.
    (0..25).for_each(|_| blocks[2].censor(90));
    let open = band(&blocks, 0.95).expect("samples");
    assert!(matches!(open.high, Quantile::AtLeast(ns) if ns >= 90) && open.low_ns <= 95, "{open:?}");
    assert!(band(&blocks, 0.5).expect("samples").high.is_exact(), "the median does not see them");
    blocks[4] = Latencies::new();
    assert_eq!(band(&blocks, 0.5), Err(Error::NoLatencies { block: 4 }));
}
