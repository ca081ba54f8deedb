//! Promised power (80 % for a true difference) against simulated runs. Seeded, so that it cannot fail by
//! chance.

use crate::simulation::{Boundary, Noise, share};
use proofload_stats::{Rule, blocks_for, effect_found};

/// Determines 80 % to ±0.6 % (two standard errors).
const PATHS: u32 = 20_000;
const POWER: f64 = 0.8;

fn rules() -> [Rule; 2] {
    [
        Rule::each_block(1, None).expect("one"),
        Rule::once(1).expect("one"),
    ]
}

/// Share of runs that find a true log ratio of `effect`, in standard deviations of a block, by the end of
/// `blocks` blocks, with looks according to the rule.
fn found_by(blocks: u32, effect: f64, rule: &Rule) -> f64 {
    let looks = |n: u32| rule.is_look(n).then(|| rule.critical_t(n))?;
    let last = |n: u32| {
        if n == blocks {
            rule.forecast_t(n)
        } else {
            looks(n)
        }
    };
    let boundary = Boundary::new(blocks, last);
    let mut noise = Noise::new(u64::from(blocks));
    share(PATHS, || {
        boundary
            .crossing(|| effect + noise.normal())
            .is_some_and(|(_, t)| t > 0.0)
    })
}

#[test]
fn the_smallest_difference_that_a_run_is_said_to_find_is_found_by_about_that_share() {
    for blocks in [6, 10, 30, 120] {
        for rule in rules() {
            let effect = effect_found(blocks, 1.0, POWER, &rule).expect("an interval");
            let found = found_by(blocks, effect, &rule);
            assert!(
                (found - POWER).abs() < 0.04,
                "{rule:?}, {blocks} blocks: {found}"
            );
        }
    }
}

#[test]
fn the_blocks_that_a_difference_is_said_to_take_find_it_by_about_that_share() {
    for (effect, rule) in [1.0, 0.5]
        .into_iter()
        .flat_map(|effect| rules().map(|rule| (effect, rule)))
    {
        let blocks = blocks_for(effect, 1.0, POWER, &rule).expect("an answer");
        let found = found_by(blocks, effect, &rule);
        assert!(
            (found - POWER).abs() < 0.07,
            "{rule:?}, {blocks} blocks: {found}"
        );
        // This is the first number that is enough, and the two functions agree.
        let least = |blocks| effect_found(blocks, 1.0, POWER, &rule).expect("an interval");
        assert!(
            least(blocks) <= effect && least(blocks - 1) > effect,
            "{rule:?}, {blocks} blocks"
        );
    }
}
