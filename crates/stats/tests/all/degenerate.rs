//! Degenerate input must give no result: no panic, no NaN, and no false confidence.

use proofload_stats::{
    Components, Error, Estimate, Latencies, Quantile, Resampling, SLICES_MAX, SLICES_MIN,
    bootstrap_t, components, guard, joint_t, lag1, mser5, plain_t, quantile_bands, slices,
    steady_after, wilson,
};

use crate::filled;

const THOUSAND: Resampling = Resampling {
    resamples: 1_000,
    seed: 1,
};
/// Values that are not valid as an error rate or a level.
const OUTSIDE: [f64; 5] = [0.0, 1.0, -0.5, 95.0, f64::NAN];

#[test]
fn an_estimate_needs_two_finite_blocks_that_differ() {
    assert_eq!(Estimate::of(&[], 2.0), Err(Error::TooFewBlocks));
    assert_eq!(Estimate::of(&[0.1], 2.0), Err(Error::TooFewBlocks));
    let zero_throughput = (0.0_f64 / 100.0).ln();
    let error = Estimate::of(&[0.1, zero_throughput], 2.0);
    assert_eq!(
        error,
        Err(Error::NotFinite {
            index: 1,
            value: f64::NEG_INFINITY
        })
    );
    for critical_t in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(
            Estimate::of(&[0.1, 0.2], critical_t),
            Err(Error::TooWide { .. })
        ));
    }
    assert!(matches!(
        Estimate::of(&[-500.0, 500.0], 9.0),
        Err(Error::TooWide { .. })
    ));
}

#[test]
fn equal_blocks_have_a_ratio_and_no_interval() {
    // Bytes per response, equal in every block. The mean of equal numbers may have a rounding error.
    let d = [(134_054.0_f64 / 9_321.0).ln(); 7];
    let Err(Error::NoSpread { ratio }) = Estimate::of(&d, 2.5) else {
        panic!("no spread")
    };
    assert!((ratio - 134_054.0 / 9_321.0).abs() < 1e-9);
    assert_eq!(lag1(&d), None);
}

#[test]
fn levels_error_rates_and_constants_outside_their_range_are_refused() {
    let (d, blocks) = (
        [0.1, 0.2, 0.3, 0.1, 0.2, 0.4],
        vec![filled(&[1, 2], &[]); 6],
    );
    for share in OUTSIDE {
        assert_eq!((plain_t(6, share), wilson(1, 10, share)), (None, None));
        assert_eq!(quantile_bands(&blocks, &[0.5], share, THOUSAND), None);
        assert_eq!(bootstrap_t(&d, share, THOUSAND), None);
    }
    for constant in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(guard(&[], constant), None);
    }
    for resamples in [0, 999, 1_000_001] {
        assert_eq!(
            bootstrap_t(&d, 0.95, Resampling { resamples, seed: 1 }),
            None,
            "{resamples}"
        );
    }
    assert_eq!(wilson(0, 0, 0.95), None);
}

#[test]
fn a_short_or_broken_series_is_not_called_steady() {
    assert!(!mser5(&[]).steady);
    assert!(!mser5(&[100.0; 23]).steady);
    let mut series = vec![100.0; 60];
    assert!(mser5(&series).steady && mser5(&series).buckets == 0);
    series[30] = f64::NAN;
    assert!(!mser5(&series).steady);
}

#[test]
fn a_warm_up_is_cut_where_it_ends() {
    let noise = |i: usize| ((i * 7_919) % 101) as f64 / 101.0;
    let series: Vec<f64> = (0..200)
        .map(|i| if i < 40 { i as f64 } else { 40.0 } + noise(i))
        .collect();
    let truncation = mser5(&series);
    assert!(
        truncation.steady && (35..=45).contains(&truncation.buckets),
        "{truncation:?}"
    );
    // A ramp through most of the series leaves no steady part.
    assert!(!mser5(&series[..24]).steady && steady_after(&series[..44]).is_none());
    // Bursts in which the host takes half of the time hide the cut from MSER, but not from medians.
    let burst = |i: usize| {
        if i % 20 < 4 && (20..64).contains(&i) {
            0.5
        } else {
            1.0
        }
    };
    let taken: Vec<f64> = (0..100)
        .map(|i| burst(i) * (if i < 15 { 20.0 } else { 40.0 } + noise(i)))
        .collect();
    assert!(!mser5(&taken).steady);
    assert!(
        steady_after(&taken).is_some_and(|cut| (11..=15).contains(&cut)),
        "{:?}",
        steady_after(&taken)
    );
    assert_eq!(
        (steady_after(&[]), steady_after(&[f64::NAN; 60])),
        (None, None)
    );
}

#[test]
fn variances_need_two_of_each() {
    assert_eq!(components(&[]), None);
    assert_eq!(
        components(&[vec![vec![1.0, 2.0]], vec![vec![3.0, 4.0]]]),
        None,
        "one trial each"
    );
    assert_eq!(
        components(&[vec![vec![1.0], vec![2.0]]]),
        None,
        "one slice each"
    );
    assert_eq!(
        components(&[vec![vec![1.0, f64::NAN], vec![2.0, 3.0]]]),
        None
    );
    let with_empty = [vec![vec![1.0, 2.0], vec![], vec![2.0, 3.0]], vec![]];
    let without = [vec![vec![1.0, 2.0], vec![2.0, 3.0]]];
    assert_eq!(components(&with_empty), components(&without));
}

#[test]
fn the_number_of_slices_follows_the_costs_and_stays_in_its_range() {
    let noise = |between, within| Components {
        between,
        within,
        freedom: 4.0,
    };
    // A trial costs nine slices and the variances are equal: three.
    assert_eq!(slices(9.0, 1.0, &noise(1e-4, 1e-4)), 3);
    assert_eq!(
        slices(9.0, 1.0, &noise(1e-4, 2.25e-4)),
        5,
        "4.5 is rounded up"
    );
    assert_eq!(slices(9.0, 1.0, &noise(0.0, 1e-4)), SLICES_MAX);
    assert_eq!(
        slices(9.0, 1.0, &noise(0.0, 1e-4).shrunk()),
        7,
        "4 of 12 degrees of freedom saw nothing"
    );
    let many = Components {
        freedom: 1e6,
        ..noise(1.1e-4, 1e-4)
    };
    assert_eq!(slices(9.0, 1.0, &many.shrunk()), 3);
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
fn a_bootstrap_needs_six_finite_blocks_that_differ() {
    let of = |d: &[f64]| bootstrap_t(d, 0.95, THOUSAND);
    let all = [0.1, 0.2, 0.3, f64::NEG_INFINITY, 0.1, 0.2];
    for d in [
        &[][..],
        &all[..1],
        &[0.1, 0.2, 0.3, 0.1, 0.2],
        &all,
        &[0.1; 7],
    ] {
        assert_eq!(of(d), None, "{d:?}");
    }
    // All but one block are equal: a third of the resamples has no spread, so t* is unbounded at one end.
    let alike = [0.1, 0.1, 0.1, 0.1, 0.1, 0.2];
    for wide in [1e4, 1e200, f64::MAX]
        .map(|far| [far, -far, far, -far, far, far])
        .iter()
        .chain([&alike])
    {
        assert_eq!(of(wide), None, "{wide:?}");
    }
}

#[test]
fn the_guard_has_no_evidence_in_nothing_and_no_answer_to_what_is_no_number() {
    for nothing in [&[][..], &[0.0; 5]] {
        assert_eq!(guard(nothing, 0.01), Some(0.0));
    }
    for value in [f64::NAN, f64::INFINITY, 1e300] {
        assert_eq!(guard(&[0.1, value], 0.01), None);
    }
}

#[test]
fn several_candidates_are_judged_in_whole_finite_blocks_with_spread() {
    let of = |rows: &[Vec<f64>]| joint_t(rows, THOUSAND);
    assert_eq!(of(&[]), None);
    let varied = |n: usize| {
        (0..8)
            .map(|block| vec![f64::from(block % 3); n])
            .collect::<Vec<_>>()
    };
    assert_eq!((of(&varied(0)), of(&varied(65))), (None, None));
    for wrong in [vec![0.1], vec![0.1, f64::INFINITY]] {
        let mut rows = varied(2);
        rows[1] = wrong;
        assert_eq!(of(&rows), None, "{rows:?}");
    }
    assert_eq!(
        of(&vec![vec![0.1, 0.0]; 8]),
        None,
        "without any spread there are no intervals"
    );
    // A candidate that is always 0, one that is constant, and two whose squares overflow. The last two are
    // equivalent.
    let wide = [-1.0, 1.5, 2.0, -0.5, 1.0, 0.5, 0.1, -0.7];
    let rows: Vec<Vec<f64>> = wide
        .iter()
        .map(|d| vec![0.0, 0.1, d * 1e200, -d * 1e200])
        .collect();
    let one: Vec<Vec<f64>> = wide.iter().map(|d| vec![*d]).collect();
    assert!((of(&rows).unwrap() - of(&one).unwrap()).abs() < 1e-9);
}

#[test]
fn a_band_needs_six_blocks_with_latencies_and_is_open_where_requests_were_given_up() {
    let some = filled(&(1..=100).collect::<Vec<u64>>(), &[]);
    let band = |blocks: &[Latencies], q| {
        quantile_bands(blocks, &[q], 0.95, THOUSAND).map(|bands| bands[0])
    };
    let mut blocks = vec![some; 6];
    assert_eq!((band(&[], 0.5), band(&blocks[..5], 0.5)), (None, None));
    for q in [-0.1, 1.1, f64::NAN] {
        assert_eq!(band(&blocks, q), None);
    }
    let same = band(&blocks, 0.5).expect("samples");
    assert_eq!((same.low_ns, same.high), (50, Quantile::Exact(50)));
    // One block in which a fifth was censored after 90 ns: drawn often enough, it leaves p95 open.
    (0..25).for_each(|_| blocks[2].censor(90));
    let open = band(&blocks, 0.95).expect("samples");
    assert!(
        matches!(open.high, Quantile::AtLeast(ns) if ns >= 90) && open.low_ns <= 95,
        "{open:?}"
    );
    assert!(
        band(&blocks, 0.5).expect("samples").high.is_exact(),
        "the median does not see them"
    );
    blocks[4] = Latencies::new();
    assert_eq!(band(&blocks, 0.5), None);
}
