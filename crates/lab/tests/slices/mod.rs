//! Length and number of slices: short if trials take turns, never shorter than a response, and always within
//! the budget.

use std::time::Duration;

use plan::{Metric, Plan, PlannedRate, Ready, Service, ServiceCommand, ServiceSource};
use proofload_lab::{BlockTiming, BudgetLeft, MeasuredTimes, ResponseTimes, Turn, next};
use record::{EndReason, Record, SliceKind, Trial};

use crate::environment::{Simulated, assert_in_budget, finished, found, plan, reason};

fn with_port(mut plan: Plan) -> Plan {
    let service = Service {
        name: "api".into(),
        source: ServiceSource::Command(ServiceCommand {
            port: Some(8080),
            ..ServiceCommand::default()
        }),
        ready: Ready::Tcp,
        ready_timeout: Duration::from_secs(1),
        needs: Vec::new(),
    };
    plan.variants
        .iter_mut()
        .for_each(|variant| variant.services.push(service.clone()));
    plan
}

fn at_rate(mut plan: Plan) -> Plan {
    plan.design.metric = Metric::P50;
    plan.design.rate = Some(PlannedRate::PerSecond(400.0));
    plan
}

/// Lengths of the measured slices of complete blocks, in seconds.
fn lengths(record: &Record) -> Vec<f64> {
    let slices = record.complete_trials().flat_map(Trial::measured);
    slices
        .map(|slice| slice.counts.window_ns as f64 / 1e9)
        .collect()
}

/// Number of turns in each of them.
fn turns(record: &Record) -> Vec<u32> {
    record
        .complete_trials()
        .flat_map(Trial::measured)
        .map(|slice| slice.turns)
        .collect()
}

fn assert_within_budget(record: &Record, what: &str) {
    assert_in_budget(record);
    let few = record.blocks_kept() < 6;
    let spent = matches!(
        reason(record),
        EndReason::BudgetTooSmall { .. } | EndReason::BudgetSpent
    );
    assert!(!few || spent, "{what}: {:?}", record.ended);
}

#[test]
fn slices_are_made_of_turns_where_trials_live_together_in_closed_loop_and_nowhere_else() {
    for (what, variants, in_turns) in [("2", 2, true), ("12", 12, true), ("13", 13, false)] {
        let mut plan = plan(variants);
        plan.design.budget = Duration::from_secs(600);
        let record = finished(plan, 5, &mut Simulated::new(5, &vec![0.0; variants]));
        assert_within_budget(&record, what);
        let (lengths, turns) = (lengths(&record), turns(&record));
        assert!(
            lengths.iter().all(|length| (0.499..5.1).contains(length)),
            "{what}: {lengths:?}"
        );
        assert!(
            turns
                .iter()
                .all(|turns| if in_turns { *turns >= 10 } else { *turns == 1 }),
            "{what}"
        );
    }
    for (what, plan) in [
        ("port", with_port(plan(2))),
        ("open loop", at_rate(plan(2))),
    ] {
        let record = finished(plan, 5, &mut Simulated::new(5, &[0.0, 0.0]));
        assert_within_budget(&record, what);
        assert!(
            lengths(&record).iter().all(|length| *length >= 0.499),
            "{what}"
        );
        assert!(turns(&record).iter().all(|turns| *turns == 1), "{what}");
    }
}

#[test]
fn slow_services_get_slices_longer_than_their_responses_within_the_budget() {
    for (variants, budget_s, least) in [
        (2, 300, 6),
        (4, 1200, 6),
        (12, 3600, 6),
        (13, 3600, 6),
        (2, 60, 0),
    ] {
        let mut plan = plan(variants);
        plan.design.budget = Duration::from_secs(budget_s);
        let mut environment = Simulated::new(5, &vec![0.0; variants]);
        environment.response_s = 2.0;
        let record = finished(plan, 5, &mut environment);
        let what = format!("{variants} variants, {budget_s} s");
        assert_within_budget(&record, &what);
        assert!(record.blocks_kept() >= least, "{what}: {:?}", record.ended);
        let found = found(&analysis::conclude(&record));
        assert!(
            !found.contains(&"value_missing") || variants > 12,
            "{what}: {found:?}"
        );
    }
}

#[test]
fn the_spread_within_trials_is_what_was_planted_for_one_variant_and_for_several() {
    let mut alone = plan(1);
    alone.design.blocks = Some(8);
    for (seed, plan, effects, range) in [
        (5, alone, vec![0.0], 0.01..0.03),
        (8, plan(4), vec![0.0, 0.1, -0.3, 0.0], 0.017..0.024),
    ] {
        let record = finished(plan, seed, &mut Simulated::new(seed, &effects));
        let allocation = record.allocation.expect("it was settled");
        let within_sd = allocation.within_sd.expect("it was measured");
        // 0.02 for slices, and a little for the rounding of counts.
        assert!(range.contains(&within_sd), "{allocation:?}");
    }
}

#[test]
fn whatever_is_asked_settings_stay_within_their_bounds() {
    for variants in [1, 2, 12, 13, 64] {
        for budget_s in [10, 60, 600, 86_400] {
            for mut plan in [
                plan(variants),
                with_port(plan(variants)),
                at_rate(plan(variants)),
            ] {
                plan.design.budget = Duration::from_secs(budget_s);
                let first = BlockTiming::first(&plan);
                for gap_s in [0.0, 0.003, 0.1, 2.0, 1e6] {
                    let responses = ResponseTimes {
                        drain_s: gap_s,
                        lead_s: 0.0,
                        waited_s: 0.0,
                        start_s: 1.0,
                    };
                    let budget = BudgetLeft {
                        seconds: budget_s as f64,
                        // The budget shortens slices only before that.
                        blocks_kept: 1,
                        variants,
                        warm_up_max_s: None,
                    };
                    let warm = MeasuredTimes::WarmUps(&responses);
                    for settings in [first, next(first, &plan.design, warm, budget)] {
                        assert!(
                            (0.02..=settings.slice_s).contains(&settings.turn_s),
                            "{settings:?}"
                        );
                        let turns = settings.turns();
                        assert!(turns == 1 || turns.is_multiple_of(2), "{settings:?}");
                        assert!((0.05..=60.0).contains(&settings.slice_s), "{settings:?}");
                        assert!((1..=100).contains(&settings.slices), "{settings:?}");
                        let measured_s = settings.slice_s * f64::from(settings.slices);
                        assert!((0.99..=12.0).contains(&measured_s), "{settings:?}");
                        assert!(!settings.is_short());
                    }
                }
            }
        }
    }
}

/// One end of a ramp does not determine the number of a trial's requests.
#[test]
fn a_ramp_begins_with_slices_for_its_mean() {
    let mut ramp = at_rate(plan(2));
    (ramp.design.rate, ramp.design.ramp_to) = (
        Some(PlannedRate::PerSecond(0.0)),
        Some(PlannedRate::PerSecond(800.0)),
    );
    assert_eq!(
        BlockTiming::first(&ramp),
        BlockTiming::first(&at_rate(plan(2)))
    );
}

#[test]
fn without_a_warm_up_trials_are_measured_at_once() {
    for variants in [2, 13] {
        let mut plan = plan(variants);
        plan.design.warmup = Some(Duration::ZERO);
        plan.design.budget = Duration::from_secs(600);
        let record = finished(plan, 5, &mut Simulated::new(5, &vec![0.0; variants]));
        assert!(record.blocks_kept() >= 6, "{variants}: {:?}", record.ended);
        let mut slices = record
            .blocks
            .iter()
            .flat_map(|block| &block.trials)
            .flat_map(|trial| &trial.slices);
        assert!(
            slices.all(|slice| slice.kind == SliceKind::Measured),
            "{variants}"
        );
    }
}

/// Responses of connections come in step, at intervals from a turn's start on: windows of turns count them
/// correctly.
#[test]
fn what_comes_in_step_is_counted_as_often_as_it_comes() {
    let turn = Turn {
        kind: SliceKind::Measured,
        seconds: 1.29,
        lead_s: 0.43,
    };
    for period_s in [0.031, 0.43, 0.27, 0.4001] {
        let until = |s: f64| (s / period_s).floor();
        let counted = (0..1000).map(|number| {
            let lead_s = turn.lead_ns(number) as f64 / 1e9;
            until(lead_s + turn.seconds) - until(lead_s)
        });
        let ratio = counted.sum::<f64>() * period_s / (1000.0 * turn.seconds);
        assert!((0.95..1.05).contains(&ratio), "{period_s} s: {ratio}");
    }
}
