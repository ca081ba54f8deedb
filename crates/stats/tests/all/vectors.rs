//! Tests against SciPy, NumPy and brute force: `vectors/*.json`, each made by the `make_*.py` next to it.

use std::collections::BTreeMap;

use crate::filled;
use proofload_stats::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

const VECTORS: &str = include_str!("../vectors/vectors.json");
const RESAMPLING: &str = include_str!("../vectors/resampling.json");
const SERIES: &str = include_str!("../vectors/series.json");

/// Result of another program for one input.
struct Row(Value);

impl Row {
    fn get<T: DeserializeOwned>(&self, key: &str) -> T {
        T::deserialize(&self.0[key]).unwrap_or_else(|error| panic!("{key} of {}: {error}", self.0))
    }

    fn number(&self, key: &str) -> f64 {
        self.get(key)
    }
}

/// Reads the rows of a table in one of the files.
fn rows(file: &str, table: &str) -> Vec<Row> {
    let tables: BTreeMap<String, Value> = serde_json::from_str(file).expect("kept with the tests");
    Vec::deserialize(&tables[table])
        .expect("a table")
        .into_iter()
        .map(Row)
        .collect()
}

/// Asserts equality within a relative error, or within the same absolute error below 1.
#[track_caller]
fn close(ours: f64, theirs: f64, tolerance: f64) {
    assert!(
        (ours - theirs).abs() <= tolerance * theirs.abs().max(1.0),
        "ours {ours}, theirs {theirs}"
    );
}

/// Asserts equality within a relative error, also for tiny values.
#[track_caller]
fn near(ours: f64, theirs: f64, tolerance: f64) {
    assert!(
        (ours - theirs).abs() <= tolerance * theirs.abs() + 1e-15,
        "ours {ours}, theirs {theirs}"
    );
}

#[test]
fn critical_values_are_those_of_scipy() {
    for row in rows(VECTORS, "t_quantiles") {
        // The level 1 − p has lost digits of a small p.
        let blocks = row.get::<u32>("freedom") + 1;
        close(
            plain_t(blocks, 1.0 - row.number("p")).expect("valid"),
            row.get("t"),
            1e-8,
        );
    }
    for row in rows(VECTORS, "boundaries") {
        close(
            critical_t_at(row.get("z"), row.get("blocks")).expect("valid"),
            row.get("t"),
            1e-8,
        );
    }
}

#[test]
fn estimates_are_the_t_intervals_of_scipy() {
    for row in rows(VECTORS, "intervals") {
        let d: Vec<f64> = row.get("d");
        let critical_t = plain_t(d.len() as u32, row.get("level")).expect("valid");
        let estimate = Estimate::of(&d, critical_t).expect("normal noise");
        close(estimate.ratio, row.get("ratio"), 1e-10);
        close(estimate.low, row.get("low"), 1e-8);
        close(estimate.high, row.get("high"), 1e-8);
        close(estimate.sd_log, row.get("sd_log"), 1e-10);
        assert_eq!(estimate.blocks as usize, d.len());
        match (lag1(&d), row.get::<Option<f64>>("lag1")) {
            (Some(ours), Some(theirs)) => close(ours, theirs, 1e-10),
            (ours, theirs) => assert_eq!(ours, theirs),
        }
    }
}

#[test]
fn shares_have_the_wilson_intervals_of_scipy() {
    for row in rows(VECTORS, "wilson") {
        let ours =
            wilson(row.get("hits"), row.get("total"), row.get("level")).expect("not of nothing");
        close(ours.low, row.get("low"), 1e-10);
        close(ours.high, row.get("high"), 1e-10);
    }
}

#[test]
fn variance_components_are_those_of_the_formula_by_hand() {
    let rows = rows(VECTORS, "components");
    let between = |row: &Row| row.number("between");
    assert!(
        rows.iter().any(|row| between(row) == 0.0) && rows.iter().any(|row| between(row) > 1e-4)
    );
    for row in rows {
        let variants: Vec<Vec<Vec<f64>>> = row.get("variants");
        let ours = components(&variants).expect("enough of each");
        let within = row.number("within");
        close(ours.within / within, 1.0, 1e-8);
        assert!(
            (ours.between - between(&row)).abs() < 1e-6 * within,
            "ours {ours:?}, theirs {}",
            row.0
        );
    }
}

#[test]
fn series_are_cut_where_numpy_cuts_them() {
    let rows = rows(VECTORS, "mser5");
    let steady = |row: &Row| row.get::<bool>("steady");
    assert!(rows.iter().any(steady) && !rows.iter().all(steady));
    for row in rows {
        let ours = mser5(&row.get::<Vec<f64>>("series"));
        assert_eq!(
            (ours.buckets, ours.steady),
            (row.get("buckets"), steady(&row)),
            "{}",
            row.0["name"]
        );
    }
}

#[test]
fn quantiles_are_exact_just_when_brute_force_says_so() {
    // Values below 2,048 have a cell each, so the histogram is exact.
    let mut half_known = 0;
    for row in rows(VECTORS, "censored_quantiles") {
        let latencies = filled(
            &row.get::<Vec<u64>>("exact"),
            &row.get::<Vec<u64>>("censored"),
        );
        let (q, low, high): (f64, u64, Option<u64>) =
            (row.get("q"), row.get("low"), row.get("high"));
        assert_eq!(latencies.bounds(q), Some((low, high)), "{}", row.0);
        let expected = if high == Some(low) {
            Quantile::Exact(low)
        } else {
            Quantile::AtLeast(low)
        };
        assert_eq!(latencies.quantile(q), Some(expected), "{}", row.0);
        half_known += u32::from(high.is_some_and(|high| high > low));
    }
    assert!(half_known > 5, "the vectors miss the middle case");
}

#[test]
fn bootstrap_intervals_are_those_of_numpy_up_to_what_drawing_blurs() {
    for row in rows(RESAMPLING, "bootstraps") {
        let (d, (low, high)): (Vec<f64>, (f64, f64)) = (row.get("d"), row.get("t"));
        let of = |resampling| bootstrap_t(&d, row.get("level"), resampling).expect("spread");
        let ours = of(Resampling {
            resamples: 100_000,
            seed: 7,
        });
        // With 100,000 resamples an end's standard error is about 1 % of the width, in the long tails of t*.
        let off = (ours.low.ln() - low)
            .abs()
            .max((ours.high.ln() - high).abs());
        assert!(
            off <= 0.04 * (high - low),
            "{off} off: ours {ours:?}, theirs {}",
            row.0
        );
        let seeded = |seed| {
            of(Resampling {
                resamples: 1_000,
                seed,
            })
        };
        assert!(
            seeded(1) == seeded(1) && seeded(1) != seeded(2),
            "the seed alone decides what is drawn"
        );
    }
}

#[test]
fn the_guards_evidence_is_the_integral_it_stands_for() {
    for row in rows(RESAMPLING, "guards") {
        let ln_evidence = guard(&row.get::<Vec<f64>>("d"), row.get("scale")).expect("valid");
        close(ln_evidence, row.get("ln_evidence"), 1e-8);
    }
}

#[test]
fn joint_intervals_are_those_of_every_flip() {
    for row in rows(RESAMPLING, "flips") {
        let d: Vec<Vec<f64>> = row.get("d");
        let of = |rows: &[Vec<f64>]| {
            joint_t(
                rows,
                Resampling {
                    resamples: 1_000,
                    seed: 0,
                },
            )
        };
        close(of(&d).expect("spread"), row.get("critical_t"), 1e-9);
        assert_eq!(of(&d[..7]), None);
    }
}

#[test]
fn contrasts_are_the_kronecker_products() {
    for row in rows(RESAMPLING, "designs") {
        let factor = |(name, count): (usize, &usize)| FactorLevels {
            name: format!("factor {name}"),
            levels: (0..*count).map(|level| format!("level {level}")).collect(),
        };
        let factors: Vec<FactorLevels> = row
            .get::<Vec<usize>>("levels")
            .iter()
            .enumerate()
            .map(factor)
            .collect();
        let (ours, theirs) = (
            contrasts(&factors).expect("few levels"),
            row.get::<Vec<Vec<f64>>>("coefficients"),
        );
        assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let mut coefficients = vec![0.0; theirs.len()];
            for (cell, sign) in ours.strata.iter().flatten() {
                coefficients[*cell] += sign / ours.strata.len() as f64;
            }
            coefficients
                .iter()
                .zip(theirs)
                .for_each(|(ours, theirs)| close(*ours, *theirs, 1e-12));
        }
    }
}

#[test]
fn bands_are_those_of_drawing_and_merging_in_numpy() {
    for row in rows(RESAMPLING, "bands") {
        let blocks: Vec<Vec<u64>> = row.get("blocks");
        let blocks: Vec<Latencies> = blocks.iter().map(|samples| filled(samples, &[])).collect();
        let resampling = Resampling {
            resamples: 20_000,
            seed: 3,
        };
        let bands = quantile_bands(&blocks, &[row.get("q"), 0.99], row.get("level"), resampling);
        let band = bands.expect("samples")[0];
        // Cells are 0.1 % wide, and the draws add about as much error.
        close(band.low_ns as f64, row.get("low"), 0.005);
        close(band.high.ns() as f64, row.get("high"), 0.005);
        assert!(band.high.is_exact() && band.low_ns <= band.high.ns());
    }
}

#[test]
fn trends_steps_and_means_are_those_of_scipy() {
    let rows = rows(SERIES, "series");
    let below = |key: &str, p: f64| rows.iter().any(|row| row.number(key) < p);
    assert!(below("trend_p", 1e-6) && below("step_p", 1e-3));
    for row in &rows {
        let values: Vec<f64> = row.get("values");
        let trend = mann_kendall(&values).expect("enough values");
        assert_eq!(trend.s, row.get::<i64>("s"), "{values:?}");
        near(trend.p, row.get("trend_p"), 1e-6);
        near(trend.slope, row.get("slope"), 1e-9);
        let points: Vec<(f64, f64)> = (0..).map(f64::from).zip(values.iter().copied()).collect();
        near(slope(&points).expect("a line"), row.get("line"), 1e-9);
        let found = step(&values).expect("enough values");
        assert_eq!(found.after, row.get::<usize>("after"), "{values:?}");
        near(found.difference, row.get("difference"), 1e-9);
        near(found.p, row.get("step_p"), 1e-6);
        let less: Vec<f64> = values.iter().map(|value| value - 10.0).collect();
        let mean = mean_effect(&less).expect("noise");
        near(mean.t, row.get("mean_t"), 1e-9);
        near(mean.p, row.get("mean_p"), 1e-6);
    }
}

#[test]
fn places_change_what_least_squares_with_a_column_for_each_block_says() {
    for row in rows(SERIES, "places") {
        let found = place_effect(&row.get::<Vec<Vec<(f64, f64)>>>("cells")).expect("enough blocks");
        near(found.value, row.get("value"), 1e-8);
        near(found.t, row.get("t"), 1e-8);
        near(found.p, row.get("p"), 1e-6);
    }
}

#[test]
fn neighbours_are_alike_by_chance_as_often_as_simulated_and_rather_less() {
    for row in rows(SERIES, "neighbours") {
        let ours = |alpha: f64| lag1_critical(row.get("blocks"), alpha).expect("enough blocks");
        for (alpha, normal) in row.get::<BTreeMap<String, f64>>("normal") {
            // 200,000 series determine a standard deviation to about 0.2 %.
            let ours = ours(alpha.parse().expect("a level"));
            assert!(
                (ours - normal).abs() < 0.01,
                "{alpha}: {ours}, simulated {}",
                row.0
            );
        }
        assert!(
            ours(0.001) > row.number("exceeded_in_1000") - 0.02,
            "{}",
            row.0
        );
    }
}
