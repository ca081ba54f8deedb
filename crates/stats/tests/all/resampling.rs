//! Resampling, anytime-valid tests and contrasts against SciPy and NumPy: `vectors/resampling.json`, made by
//! `vectors/make_resampling.py`.

use proofload_stats::{Factor, Interval, Latencies, Resampling};
use proofload_stats::{bca, bootstrap_t, contrasts, guard, max_t, newcombe, quantile_band, sequence_t};
use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    bootstraps: Vec<Bootstrap>,
    sequences: Vec<Sequence>,
    guards: Vec<Evidence>,
    flips: Vec<Flips>,
    newcombe: Vec<Difference>,
    designs: Vec<Design>,
    bands: Vec<Band>,
}

#[derive(Deserialize)]
struct Bootstrap {
    d: Vec<f64>,
    level: f64,
    bca: (f64, f64),
    t: (f64, f64),
}

#[derive(Deserialize)]
struct Sequence {
    blocks: u32,
    g: f64,
    alpha: f64,
    t: f64,
}

#[derive(Deserialize)]
struct Evidence {
    d: Vec<f64>,
    scale: f64,
    ln_evidence: f64,
}

#[derive(Deserialize)]
struct Flips {
    d: Vec<Vec<f64>>,
    t: Vec<f64>,
    single_step: Vec<f64>,
    step_down: Vec<f64>,
    critical_t: Option<f64>,
}

#[derive(Deserialize)]
struct Difference {
    first: (u64, u64),
    second: (u64, u64),
    level: f64,
    low: f64,
    high: f64,
}

#[derive(Deserialize)]
struct Design {
    levels: Vec<usize>,
    coefficients: Vec<Vec<f64>>,
}

#[derive(Deserialize)]
struct Band {
    blocks: Vec<Vec<u64>>,
    q: f64,
    level: f64,
    low: f64,
    high: f64,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../vectors/resampling.json")).expect("kept with the tests")
}

/// Equal to within a relative error, or to within the same absolute one below 1.
#[track_caller]
fn close(ours: f64, theirs: f64, tolerance: f64) {
    assert!((ours - theirs).abs() <= tolerance * theirs.abs().max(1.0), "ours {ours}, theirs {theirs}");
}

/// Ends of a ratio against ends of its logarithm, to within `share` of the interval's width.
#[track_caller]
fn ends_close(ours: Interval, theirs: (f64, f64), share: f64) {
    let allowed = share * (theirs.1 - theirs.0);
    let off = (ours.low.ln() - theirs.0).abs().max((ours.high.ln() - theirs.1).abs());
    assert!(off <= allowed, "{off} off, {allowed} allowed: ours {ours:?}, theirs {theirs:?}");
}

#[test]
fn bootstrap_intervals_are_those_of_scipy_up_to_what_drawing_blurs() {
    let resampling = Resampling { resamples: 50_000, seed: 7 };
    for row in vectors().bootstraps {
        // An end's standard error is about 0.5 % of the width with 50,000 resamples, more in the long tails of t*.
        ends_close(bca(&row.d, row.level, resampling).expect("spread"), row.bca, 0.02);
        ends_close(bootstrap_t(&row.d, row.level, resampling).expect("spread"), row.t, 0.04);
    }
}

#[test]
fn the_seed_alone_decides_what_is_drawn() {
    let d = &vectors().bootstraps[0].d;
    let seeded = |seed| bootstrap_t(d, 0.95, Resampling { resamples: 1_000, seed }).expect("spread");
    assert_eq!(seeded(1), seeded(1));
    assert_ne!(seeded(1), seeded(2));
}

#[test]
fn the_sequence_ends_where_the_integrated_likelihood_ratio_reaches_its_threshold() {
    let rows = vectors().sequences;
    for row in &rows {
        let t = sequence_t(row.blocks, row.g, row.alpha).expect("valid").expect("finite");
        close(t, row.t, 1e-7);
    }
    let known = [(6, 5.45), (10, 3.87), (20, 3.42), (30, 3.35)];
    for (blocks, t) in known {
        close(sequence_t(blocks, 1.0, 0.05).expect("valid").expect("finite"), t, 0.0015);
    }
    assert_eq!(sequence_t(4, 1.0, 0.05), Ok(None), "four blocks exclude nothing");
}

#[test]
fn the_guards_evidence_is_the_integral_it_stands_for() {
    for row in vectors().guards {
        let guard = guard(&row.d, row.scale, 0.05).expect("valid");
        close(guard.ln_evidence, row.ln_evidence, 1e-8);
        assert_eq!(guard.rejects, row.ln_evidence > 20.0_f64.ln());
    }
}

#[test]
fn adjusted_p_values_are_those_of_every_flip() {
    let resampling = Resampling { resamples: 1_000, seed: 0 };
    let rows = vectors().flips;
    assert!(rows.iter().any(|row| row.step_down.iter().zip(&row.single_step).any(|(down, one)| down < one)));
    for row in rows {
        let ours = max_t(&row.d, 0.05, resampling).expect("valid");
        assert!(ours.exact);
        for (place, candidate) in ours.candidates.iter().enumerate() {
            close(candidate.t.expect("spread"), row.t[place], 1e-9);
            close(candidate.single_step, row.single_step[place], 1e-12);
            close(candidate.step_down, row.step_down[place], 1e-12);
        }
        assert_eq!(ours.critical_t.is_some(), row.critical_t.is_some());
        if let Some((ours, theirs)) = ours.critical_t.zip(row.critical_t) {
            close(ours, theirs, 1e-9);
        }
    }
}

#[test]
fn differences_of_shares_have_newcombes_intervals() {
    for row in vectors().newcombe {
        let ours = newcombe(row.first, row.second, row.level).expect("valid").expect("not of nothing");
        close(ours.low, row.low, 1e-10);
        close(ours.high, row.high, 1e-10);
    }
    // His own example (a), as printed.
    let printed = newcombe((56, 70), (48, 80), 0.95).expect("valid").expect("not of nothing");
    assert!((printed.low - 0.0524).abs() < 5e-5 && (printed.high - 0.3339).abs() < 5e-5, "{printed:?}");
}

#[test]
fn contrasts_are_the_kronecker_products() {
    for design in vectors().designs {
        let factor = |(name, count): (usize, &usize)| Factor {
            name: format!("factor {name}"),
            levels: (0..*count).map(|level| format!("level {level}")).collect(),
        };
        let factors: Vec<Factor> = design.levels.iter().enumerate().map(factor).collect();
        let ours = contrasts(&factors).expect("few levels");
        assert_eq!(ours.len(), design.coefficients.len());
        for (ours, theirs) in ours.iter().zip(&design.coefficients) {
            assert_eq!(ours.coefficients.len(), theirs.len());
            ours.coefficients.iter().zip(theirs).for_each(|(ours, theirs)| close(*ours, *theirs, 1e-12));
        }
    }
}

#[test]
fn bands_are_those_of_drawing_and_merging_in_numpy() {
    for row in vectors().bands {
        let filled = |samples: &Vec<u64>| {
            let mut latencies = Latencies::new();
            samples.iter().for_each(|&ns| latencies.record(ns));
            latencies
        };
        let blocks: Vec<Latencies> = row.blocks.iter().map(filled).collect();
        let resampling = Resampling { resamples: 20_000, seed: 3 };
        let band = quantile_band(&blocks, row.q, row.level, resampling).expect("samples");
        // Cells are 0.1 % wide, and the drawing blurs about as much.
        close(band.low_ns as f64, row.low, 0.005);
        close(band.high.ns() as f64, row.high, 0.005);
        assert!(band.high.is_exact() && band.quantile.is_exact());
        assert!(band.low_ns <= band.quantile.ns() && band.quantile.ns() <= band.high.ns());
    }
}
