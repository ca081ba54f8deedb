//! A fast part of the simulated proof (`examples/simulated_truth`): on a noisy machine the lab's verdicts and intervals
//! err as seldom as they claim, and the simulation can tell where they do not.

// The example uses all of these.
#[allow(dead_code)]
#[path = "../examples/simulated_truth/machine.rs"]
mod machine;
#[path = "../../stats/tests/simulation/mod.rs"]
mod noise;
#[path = "../examples/simulated_truth/run.rs"]
mod run;
#[allow(dead_code)]
#[path = "../examples/simulated_truth/tally.rs"]
mod tally;
#[path = "../examples/simulated_truth/verdicts.rs"]
mod verdicts;

use machine::{Kind, Memory};
use run::{Cell, Effects};
use stats::ALPHA;
use tally::{Tally, simulate};
use verdicts::Judge;

const SEED: u64 = 42;
const RUNS: u64 = 2_000;
const BLOCKS: u32 = 15;
const BLOCKS_ONCE: u32 = 8;
/// What the proof grants to intervals that are exact for normal noise only.
const GRACE: f64 = 0.01;

/// The three stop rules over the same runs.
fn rules(kind: Kind, variants: usize, effects: Effects) -> [(&'static str, Tally); 3] {
    let comparisons = variants as u32 - 1;
    let judges = [
        Judge::planned(BLOCKS, comparisons).unwrap(),
        Judge::always(BLOCKS, comparisons).unwrap(),
        Judge::once(BLOCKS_ONCE, comparisons).unwrap(),
    ];
    let cell = Cell { kind, variants, passes: 4, effects };
    let tallies = simulate(&cell, &judges, BLOCKS, RUNS, SEED);
    [("planned", tallies[0]), ("always", tallies[1]), ("once", tallies[2])]
}

/// Four standard errors of a share that is as it should be.
fn chance() -> f64 {
    4.0 * (ALPHA * (1.0 - ALPHA) / RUNS as f64).sqrt()
}

#[test]
fn noise_that_all_variants_share_makes_no_more_errors_than_claimed() {
    for (kind, variants, effects) in [
        (Kind::Independent, 2, Effects::None),
        (Kind::Remembers(Memory::Pass), 4, Effects::Planted),
        (Kind::Drift, 12, Effects::None),
        (Kind::Steal, 4, Effects::None),
    ] {
        for (rule, tally) in rules(kind, variants, effects) {
            let (hold, wrong) = (tally.all_hold().value, tally.false_verdict().value);
            let cell = format!("{kind:?}, {variants} variants, {effects:?}, {rule}");
            assert!(
                hold >= 1.0 - ALPHA - GRACE - chance(),
                "{cell}: in {hold} of the runs all intervals hold"
            );
            assert!(wrong <= ALPHA + chance(), "{cell}: in {wrong} of the runs a verdict is false");
        }
    }
}

#[test]
fn noise_that_does_not_cancel_shows_as_errors() {
    for (rule, tally) in rules(Kind::OwnCores(Memory::Blocks), 4, Effects::None) {
        let wrong = tally.false_verdict().value;
        assert!(wrong > 3.0 * ALPHA, "{rule}: only {wrong} of the runs err; the simulation is blind");
    }
}
