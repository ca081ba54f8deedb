//! The promise itself: how often a run without any difference finds one. Seeded, so that it cannot fail by chance.

use crate::simulation::{Boundary, Noise, share, shares_crossed_by_end};
use proofload_stats::{ALPHA, Looks, plain_t};

/// Enough that 5 % is known to ±0.1 % (two standard errors).
const PATHS: u32 = 200_000;
const TOLERANCE: f64 = 0.001;

fn plan(blocks_max: u32, comparisons: u32) -> Looks {
    Looks::plan(blocks_max, comparisons).expect("six blocks or more")
}

fn false_positives(boundary: &Boundary, seed: u64) -> f64 {
    let mut noise = Noise::new(seed);
    share(PATHS, || boundary.crossing(|| noise.normal()).is_some())
}

#[test]
fn planned_looks_find_a_difference_where_there_is_none_in_one_run_of_twenty() {
    for blocks in [10, 30] {
        let looks = plan(blocks, 1);
        let rate = false_positives(&Boundary::new(blocks, |n| looks.critical_t(n)), 1);
        assert!((rate - ALPHA).abs() < TOLERANCE, "{blocks} blocks: {rate}");
    }
}

#[test]
fn several_comparisons_share_the_error_rate() {
    let looks = plan(30, 11);
    let boundary = Boundary::new(30, |n| looks.critical_t(n));
    let mut noise = Noise::new(2);
    // Eleven independent comparisons, the case in which Bonferroni gives away least.
    let rate = share(PATHS / 10, || (0..11).any(|_| boundary.crossing(|| noise.normal()).is_some()));
    assert!((0.044..ALPHA + 0.003).contains(&rate), "{rate}");
}

#[test]
fn a_test_of_fixed_size_after_every_block_finds_one_in_every_fifth() {
    // The contrast that justifies the plan: the same data, watched with a plain 95 % interval from the sixth block on.
    let watched = |n| if n >= 6 { plain_t(n, 0.95).ok() } else { None };
    let rate = false_positives(&Boundary::new(30, watched), 3);
    assert!((0.18..0.25).contains(&rate), "{rate}");
}

#[test]
fn ending_early_for_want_of_time_never_costs_more_than_the_planned_error() {
    for blocks in [10, 30, 60] {
        let looks = plan(blocks, 1);
        let planned = Boundary::new(blocks, |n| looks.critical_t(n));
        let early = Boundary::new(blocks, |n| looks.final_critical_t(n));
        let shares = shares_crossed_by_end(&planned, &early, PATHS / 2, 4);
        assert!(shares.iter().all(|share| *share < ALPHA + TOLERANCE), "{blocks} blocks: {shares:?}");
        assert!(shares[blocks as usize - 1] > 0.02, "the simulation never crossed");
    }
}
