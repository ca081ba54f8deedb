//! Trends, steps, places and neighbours against SciPy and NumPy: `vectors/series.json`, made by `vectors/make_series.py`.

use std::collections::BTreeMap;

use proofload_stats::{lag1_critical, mann_kendall, mean_effect, place_effect, slope, step};
use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    series: Vec<Series>,
    places: Vec<Places>,
    neighbours: Vec<Neighbours>,
}

#[derive(Deserialize)]
struct Series {
    values: Vec<f64>,
    s: i64,
    trend_p: f64,
    slope: f64,
    line: f64,
    after: usize,
    difference: f64,
    step_p: f64,
    mean_t: f64,
    mean_p: f64,
}

#[derive(Deserialize)]
struct Places {
    cells: Vec<Vec<(f64, f64)>>,
    value: f64,
    t: f64,
    p: f64,
}

#[derive(Deserialize)]
struct Neighbours {
    blocks: u32,
    /// By the level.
    normal: BTreeMap<String, f64>,
    exceeded_in_1000: f64,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../vectors/series.json")).expect("kept with the tests")
}

/// Equal to within a relative error, also where both are tiny.
#[track_caller]
fn close(ours: f64, theirs: f64, tolerance: f64) {
    assert!((ours - theirs).abs() <= tolerance * theirs.abs() + 1e-15, "ours {ours}, theirs {theirs}");
}

#[test]
fn trends_steps_and_means_are_those_of_scipy() {
    let rows = vectors().series;
    assert!(rows.iter().any(|row| row.trend_p < 1e-6) && rows.iter().any(|row| row.step_p < 1e-3));
    for row in rows {
        let trend = mann_kendall(&row.values).expect("enough values");
        assert_eq!(trend.s, row.s, "{:?}", row.values);
        close(trend.p, row.trend_p, 1e-6);
        close(trend.slope, row.slope, 1e-9);
        let points: Vec<(f64, f64)> = (0..).map(f64::from).zip(row.values.iter().copied()).collect();
        close(slope(&points).expect("a line"), row.line, 1e-9);
        let found = step(&row.values).expect("enough values");
        assert_eq!(found.after, row.after, "{:?}", row.values);
        close(found.difference, row.difference, 1e-9);
        close(found.p, row.step_p, 1e-6);
        let less: Vec<f64> = row.values.iter().map(|value| value - 10.0).collect();
        let mean = mean_effect(&less).expect("noise");
        close(mean.t, row.mean_t, 1e-9);
        close(mean.p, row.mean_p, 1e-6);
    }
}

#[test]
fn places_change_what_least_squares_with_a_column_for_each_block_says() {
    for row in vectors().places {
        let found = place_effect(&row.cells).expect("enough blocks");
        close(found.value, row.value, 1e-8);
        close(found.t, row.t, 1e-8);
        close(found.p, row.p, 1e-6);
    }
}

#[test]
fn neighbours_are_alike_by_chance_as_often_as_simulated_and_rather_less() {
    for row in vectors().neighbours {
        for (alpha, normal) in &row.normal {
            let alpha: f64 = alpha.parse().expect("a level");
            let ours = lag1_critical(row.blocks, alpha).expect("enough blocks");
            // 200,000 series know a standard deviation to about 0.2 %.
            assert!(
                (ours - normal).abs() < 0.01,
                "{} blocks, {alpha}: {ours}, simulated {normal}",
                row.blocks
            );
        }
        let ours = lag1_critical(row.blocks, 0.001).expect("enough blocks");
        let exceeded = row.exceeded_in_1000;
        assert!(ours > exceeded - 0.02, "{} blocks: {ours} is exceeded more often, {exceeded}", row.blocks);
    }
}
