//! A fast part of the simulated proof (`examples/simulated_truth`): on a noisy machine the lab's verdicts and
//! intervals have at most the stated error rates, and the simulation detects violations.

#[allow(dead_code, unused_imports)]
mod environment;
#[allow(dead_code)]
#[path = "../examples/simulated_truth/machine.rs"]
mod machine;
#[path = "../../stats/tests/simulation/mod.rs"]
mod noise;
#[allow(dead_code)]
#[path = "../examples/simulated_truth/tally.rs"]
mod tally;
#[path = "../examples/simulated_truth/world.rs"]
mod world;

use machine::Kind;
use stats::ALPHA;
use tally::{Cell, Tally, simulate};
use world::Service::{self, Busy, InLine, Waits};

const SEED: u64 = 42;
const RUNS: u64 = 40;

fn of(kind: Kind, services: &[Service]) -> Tally {
    simulate(
        &Cell {
            kind,
            services: services.to_vec(),
            budget_s: 60,
        },
        RUNS,
        SEED,
    )
}

/// Four standard errors of a share at its nominal value.
fn chance() -> f64 {
    4.0 * (ALPHA * (1.0 - ALPHA) / RUNS as f64).sqrt()
}

#[test]
fn runs_on_a_noisy_machine_make_no_more_errors_than_claimed() {
    let waits = |constant| Waits {
        mean_s: 0.005,
        constant,
    };
    for (kind, services) in [
        (Kind::Remembers(2.0), vec![Busy(0.0), Busy(0.0)]),
        (
            Kind::Drift,
            vec![Busy(0.0), Busy(0.05), Busy(0.0), Busy(-0.02)],
        ),
        (Kind::Steal, vec![Busy(0.0), Busy(0.05)]),
        (Kind::Independent, vec![waits(true), waits(false)]),
    ] {
        let tally = of(kind, &services);
        let share = |count| tally.share(count).value;
        let (hold, wrong) = (share(tally.all_hold), share(tally.false_verdict));
        assert!(
            hold >= 1.0 - ALPHA - chance(),
            "{kind:?}: in {hold} of the runs all intervals hold"
        );
        assert!(
            wrong <= ALPHA + chance(),
            "{kind:?}: in {wrong} of the runs a verdict is false"
        );
        assert_eq!(tally.invalid, 0, "{kind:?}");
    }
    let found = of(Kind::Independent, &[Busy(0.0), Busy(0.1)]);
    assert!(
        found.share(found.decided).value > 0.9,
        "an effect of 10 % is found"
    );
}

#[test]
fn slow_services_that_wait_are_decided_in_short_budgets() {
    let waits = |mean_s| Waits {
        mean_s,
        constant: true,
    };
    for (budget_s, services) in [
        (40, [InLine { per_s: 100.0 }, InLine { per_s: 800.0 }]),
        (40, [InLine { per_s: 85.0 }, InLine { per_s: 1100.0 }]),
        (30, [InLine { per_s: 150.0 }, InLine { per_s: 1500.0 }]),
        (40, [waits(0.6), waits(0.06)]),
    ] {
        let cell = Cell {
            kind: Kind::Independent,
            services: services.to_vec(),
            budget_s,
        };
        let tally = simulate(&cell, RUNS, SEED);
        assert_eq!(
            (tally.decided, tally.wrong_sign),
            (RUNS, 0),
            "{services:?}: {tally:?}"
        );
        let hold = tally.share(tally.all_hold).value;
        assert!(
            hold >= 1.0 - ALPHA - chance(),
            "{services:?}: intervals hold in {hold} of the runs"
        );
    }
}

#[test]
fn noise_that_does_not_cancel_shows_as_errors() {
    let tally = of(Kind::OwnCores(60.0), &[Busy(0.0), Busy(0.0)]);
    let wrong = tally.share(tally.false_verdict).value;
    assert!(
        wrong > 3.0 * ALPHA,
        "only {wrong} of the runs err; the simulation is blind"
    );
}
