//! Error rate of runs without any difference, by simulation. Seeded, so that it cannot fail by chance.

use crate::simulation::{Boundary, Noise, share, shares_crossed_by_end};
use proofload_stats::{ALPHA, BLOCKS_MAX, BLOCKS_MIN, Looks};

/// Determines 5 % to ±0.1 % (two standard errors).
const PATHS: u32 = 200_000;
const TOLERANCE: f64 = 0.001;

fn looks(comparisons: u32) -> Looks {
    Looks::new(comparisons).expect("few enough")
}

#[test]
fn wherever_a_run_ends_it_has_found_a_difference_where_there_is_none_in_one_run_of_twenty() {
    let looks = looks(1);
    let (watched, end) = (
        Boundary::new(BLOCKS_MAX, |n| looks.look_t(n)),
        Boundary::new(BLOCKS_MAX, |n| looks.end_t(n)),
    );
    let shares = shares_crossed_by_end(&watched, &end, PATHS / 2, 4);
    for (blocks, share) in shares.iter().enumerate().skip(BLOCKS_MIN as usize) {
        assert!(
            (share - ALPHA).abs() < 2.5 * TOLERANCE,
            "{blocks} blocks: {share}"
        );
    }
}

#[test]
fn who_watches_and_stops_when_it_suits_errs_less_often() {
    let looks = looks(1);
    let boundary = Boundary::new(BLOCKS_MAX, |n| looks.look_t(n));
    let mut noise = Noise::new(1);
    let rate = share(PATHS / 2, || boundary.crossing(|| noise.normal()).is_some());
    assert!((rate - 0.8 * ALPHA).abs() < 2.0 * TOLERANCE, "{rate}");
}

#[test]
fn several_comparisons_share_the_error_rate() {
    let looks = looks(11);
    let boundary = Boundary::new(30, |n| {
        if n == 30 {
            looks.end_t(n)
        } else {
            looks.look_t(n)
        }
    });
    let mut noise = Noise::new(2);
    // Eleven independent comparisons, the case in which Bonferroni is least conservative.
    let rate = share(PATHS / 10, || {
        (0..11).any(|_| boundary.crossing(|| noise.normal()).is_some())
    });
    assert!((0.044..ALPHA + 0.003).contains(&rate), "{rate}");
}
