//! What the anytime-valid and the joint methods promise, by simulation. Seeded, so that it cannot fail by chance.
//! `examples/resampling_rates.rs` does the same with many more runs.

use crate::simulation::{Boundary, Noise, share};
use proofload_stats::{ALPHA, Resampling, guard, max_t, sequence_t};

const LAST: u32 = 200;

#[test]
fn the_sequence_ever_excludes_the_truth_in_at_most_one_run_of_twenty() {
    let boundary = Boundary::new(LAST, |n| sequence_t(n, 1.0, ALPHA).ok().flatten());
    let mut noise = Noise::new(11);
    let rate = share(20_000, || boundary.crossing(|| noise.normal()).is_some());
    // The bound is for a run without end, so there is room below; far below, the formula would be another.
    assert!((0.02..=ALPHA).contains(&rate), "{rate}");
}

/// Whether the guard rejects after any of the first hundred blocks.
fn ever_rejects(mut draw: impl FnMut() -> f64) -> bool {
    let mut d = Vec::new();
    (0..100).any(|_| {
        d.push(draw());
        guard(&d, 1.0, ALPHA).expect("finite").rejects
    })
}

#[test]
fn the_guard_ever_rejects_fair_signs_in_at_most_one_run_of_twenty_whatever_the_tails() {
    let mut noise = Noise::new(12);
    let cauchy = share(5_000, || ever_rejects(|| noise.normal() / noise.normal()));
    let normal = share(5_000, || ever_rejects(|| noise.normal()));
    let coins = share(5_000, || ever_rejects(|| 0.5 * (noise.uniform() - 0.5).signum()));
    assert!(cauchy <= ALPHA, "{cauchy}");
    // Not below either: a guard that never speaks would keep its promise too.
    assert!((0.01..=ALPHA).contains(&normal) && (0.01..=ALPHA).contains(&coins), "{normal}, {coins}");
}

#[test]
fn the_guard_sees_a_clear_difference_and_needs_ten_blocks_for_any() {
    let clear = |blocks| guard(&vec![0.02; blocks], 0.01, ALPHA).expect("finite").rejects;
    assert!(clear(10) && !clear(9));
    // No scale does it earlier, and one that is far off costs power, not truth.
    for exponent in -20..20 {
        let scale = 1.3_f64.powi(exponent);
        assert!(!guard(&[1.0; 9], scale, ALPHA).expect("finite").rejects, "scale {scale}");
    }
    let mut noise = Noise::new(13);
    let power = share(2_000, || ever_rejects(|| 1.0 + noise.heavy()));
    assert!(power > 0.95, "{power}");
}

/// Log ratios of `candidates` against one baseline, all with the noise of that baseline in common.
fn blocks(noise: &mut Noise, blocks: usize, effects: &[f64]) -> Vec<Vec<f64>> {
    let row = |noise: &mut Noise| {
        let baseline = noise.normal();
        effects.iter().map(|effect| effect + noise.normal() - baseline).collect()
    };
    (0..blocks).map(|_| row(noise)).collect()
}

#[test]
fn any_candidate_alike_is_called_different_in_at_most_one_experiment_of_twenty() {
    let resampling = Resampling { resamples: 1_000, seed: 1 };
    let mut noise = Noise::new(14);
    // Two of five truly differ: step-down must still keep its promise for the other three.
    for effects in [[0.0; 5], [0.0, 3.0, 0.0, 3.0, 0.0]] {
        let rate = share(2_000, || {
            let tested = max_t(&blocks(&mut noise, 8, &effects), ALPHA, resampling).expect("spread");
            let mut all = tested.candidates.iter().zip(&effects);
            all.any(|(candidate, effect)| *effect == 0.0 && candidate.step_down <= ALPHA)
        });
        // Standard error 0.5 %; 128 flips can tell 4.7 % and no more.
        assert!((0.03..0.06).contains(&rate), "{effects:?}: {rate}");
    }
}

#[test]
fn joint_intervals_hold_all_truths_also_where_every_candidate_differs() {
    let resampling = Resampling { resamples: 1_000, seed: 1 };
    let mut noise = Noise::new(15);
    let effects = [5.0; 6];
    let missed = share(2_000, || {
        let rows = blocks(&mut noise, 8, &effects);
        let critical = max_t(&rows, ALPHA, resampling).expect("spread").critical_t.expect("eight blocks");
        let truth_removed: Vec<Vec<f64>> =
            rows.iter().map(|row| row.iter().map(|d| d - 5.0).collect()).collect();
        let centred = max_t(&truth_removed, ALPHA, resampling).expect("spread");
        centred.candidates.iter().any(|candidate| candidate.t.expect("spread") > critical)
    });
    assert!((0.03..0.07).contains(&missed), "{missed}");
}

#[test]
fn drawn_flips_say_what_every_flip_says() {
    // The last block turns nothing: with a zero row, thirteen blocks have the p-values of twelve.
    let mut noise = Noise::new(16);
    let mut rows = blocks(&mut noise, 12, &[0.0, 0.7, 1.2]);
    let resampling = Resampling { resamples: 100_000, seed: 9 };
    let every = max_t(&rows, ALPHA, resampling).expect("spread");
    rows.push(vec![0.0; 3]);
    let drawn = max_t(&rows, ALPHA, resampling).expect("spread");
    assert!(every.exact && !drawn.exact);
    for (one, other) in every.candidates.iter().zip(&drawn.candidates) {
        assert!((one.single_step - other.single_step).abs() < 0.005, "{one:?}, {other:?}");
        assert!((one.step_down - other.step_down).abs() < 0.005, "{one:?}, {other:?}");
        assert!(other.step_down > 0.0 && other.step_down <= other.single_step);
    }
    // What no drawn flip reaches is still not impossible: the data as they came are one of the ways.
    let clear: Vec<Vec<f64>> = (1..=40).map(|block| vec![1.0 + 0.01 * f64::from(block)]).collect();
    let tested = max_t(&clear, ALPHA, Resampling { resamples: 1_000, seed: 9 }).expect("spread");
    assert_eq!(tested.candidates[0].single_step, 1.0 / 1_001.0);
}
