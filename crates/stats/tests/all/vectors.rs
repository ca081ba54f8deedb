//! The crate against SciPy, NumPy and brute force: `vectors/vectors.json`, made by `vectors/make_vectors.py`.

use proofload_stats::{Components, Estimate, Latencies, Quantile};
use proofload_stats::{components, critical_t_at, lag1, mser5, plain_t, wilson};
use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    t_quantiles: Vec<TQuantile>,
    boundaries: Vec<Boundary>,
    intervals: Vec<Interval>,
    wilson: Vec<Share>,
    components: Vec<Nested>,
    mser5: Vec<Series>,
    censored_quantiles: Vec<Censored>,
}

#[derive(Deserialize)]
struct TQuantile {
    freedom: u32,
    p: f64,
    t: f64,
}

#[derive(Deserialize)]
struct Boundary {
    z: f64,
    blocks: u32,
    t: f64,
}

#[derive(Deserialize)]
struct Interval {
    d: Vec<f64>,
    level: f64,
    ratio: f64,
    low: f64,
    high: f64,
    sd_log: f64,
    lag1: Option<f64>,
}

#[derive(Deserialize)]
struct Share {
    hits: u64,
    total: u64,
    level: f64,
    low: f64,
    high: f64,
}

#[derive(Deserialize)]
struct Nested {
    variants: Vec<Vec<Vec<f64>>>,
    within: f64,
    between: f64,
}

#[derive(Deserialize)]
struct Series {
    name: String,
    series: Vec<f64>,
    buckets: usize,
    steady: bool,
}

#[derive(Deserialize)]
struct Censored {
    exact: Vec<u64>,
    censored: Vec<u64>,
    q: f64,
    low: u64,
    high: Option<u64>,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../vectors/vectors.json")).expect("kept with the tests")
}

/// Equal to within a relative error, or to within the same absolute one below 1.
#[track_caller]
fn close(ours: f64, theirs: f64, tolerance: f64) {
    assert!((ours - theirs).abs() <= tolerance * theirs.abs().max(1.0), "ours {ours}, theirs {theirs}");
}

#[test]
fn critical_values_are_those_of_scipy() {
    for row in vectors().t_quantiles {
        // The level 1 − p has lost digits of a small p before it reaches us.
        close(plain_t(row.freedom + 1, 1.0 - row.p).expect("valid"), row.t, 1e-8);
    }
    for row in vectors().boundaries {
        close(critical_t_at(row.z, row.blocks).expect("valid"), row.t, 1e-8);
    }
}

#[test]
fn estimates_are_the_t_intervals_of_scipy() {
    for row in vectors().intervals {
        let critical_t = plain_t(row.d.len() as u32, row.level).expect("valid");
        let estimate = Estimate::of(&row.d, critical_t).expect("normal noise");
        close(estimate.ratio, row.ratio, 1e-10);
        close(estimate.low, row.low, 1e-8);
        close(estimate.high, row.high, 1e-8);
        close(estimate.sd_log, row.sd_log, 1e-10);
        assert_eq!(estimate.blocks as usize, row.d.len());
        match (lag1(&row.d), row.lag1) {
            (Some(ours), Some(theirs)) => close(ours, theirs, 1e-10),
            (ours, theirs) => assert_eq!(ours, theirs),
        }
    }
}

#[test]
fn shares_have_the_wilson_intervals_of_scipy() {
    for row in vectors().wilson {
        let ours = wilson(row.hits, row.total, row.level).expect("valid").expect("not of nothing");
        close(ours.low, row.low, 1e-10);
        close(ours.high, row.high, 1e-10);
    }
}

#[test]
fn variance_components_are_those_of_the_formula_by_hand() {
    let rows = vectors().components;
    assert!(rows.iter().any(|row| row.between == 0.0) && rows.iter().any(|row| row.between > 1e-4));
    for row in rows {
        let Components { between, within } = components(&row.variants).expect("enough of each");
        close(within / row.within, 1.0, 1e-8);
        assert!((between - row.between).abs() < 1e-6 * row.within, "ours {between}, theirs {}", row.between);
    }
}

#[test]
fn series_are_cut_where_numpy_cuts_them() {
    let rows = vectors().mser5;
    assert!(rows.iter().any(|row| row.steady) && rows.iter().any(|row| !row.steady));
    for row in rows {
        let ours = mser5(&row.series);
        assert_eq!(
            (ours.buckets, ours.steady),
            (row.buckets, row.steady),
            "{} of {}",
            row.name,
            row.series.len()
        );
    }
}

#[test]
fn quantiles_are_exact_just_when_brute_force_says_so() {
    // Values below 2,048 have a cell each, so that cells hide nothing.
    let rows = vectors().censored_quantiles;
    for row in &rows {
        let mut latencies = Latencies::new();
        row.exact.iter().for_each(|&ns| latencies.record(ns));
        row.censored.iter().for_each(|&ns| latencies.censor(ns));
        let case = format!("q {} of {:?} and at least {:?}", row.q, row.exact, row.censored);
        assert_eq!(latencies.bounds(row.q), Some((row.low, row.high)), "{case}");
        let expected =
            if row.high == Some(row.low) { Quantile::Exact(row.low) } else { Quantile::AtLeast(row.low) };
        assert_eq!(latencies.quantile(row.q), Some(expected), "{case}");
    }
    let half_known = |row: &&Censored| row.high.is_some_and(|high| high > row.low);
    assert!(rows.iter().filter(half_known).count() > 5, "the vectors miss the middle case");
}
