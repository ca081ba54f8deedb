//! Captures that explain a run: after it, in rounds, and without any effect on the result.

use std::collections::BTreeMap;
use std::time::Duration;

use analysis::{Outcome, conclude};
use model::Until;
use plan::{Metric, Plan, PlannedRate};
use proofload_lab::{
    BlockSchedule, LabError, Progress, ROUNDS, TRIALS, UpdateNews, VARIANTS_MAX, capture_only,
    explained,
};
use record::{Capture, CaptureKind, EndReason, Record};

use crate::environment::{
    Fault, Simulated, assert_in_budget, begun, plan, reason, run, watched, with_copy,
};

fn asked(variants: usize) -> Plan {
    let mut plan = plan(variants);
    plan.design.explain = true;
    plan
}

/// Runs it with this fault. Returns the messages about captures that are not made, and the estimates before
/// they began.
fn captured(plan: Plan, environment: &mut Simulated) -> (Record, Vec<String>, Vec<f64>) {
    let (mut said, mut told) = (Vec::new(), Vec::new());
    let mut watch = |update: &proofload_lab::Update<'_>| match update.news {
        UpdateNews::Progress(Progress::NotExplained(why)) => said.push(why.to_owned()),
        UpdateNews::Progress(Progress::Explaining { seconds, .. }) => told.push(seconds),
        _ => {}
    };
    let (record, result) = watched(plan, 7, environment, &mut watch);
    let failed = matches!(reason(&record), EndReason::ServiceFailed(_));
    assert_eq!(result.is_err(), failed, "captures fail no run");
    (record, said, told)
}

fn missing(captures: &[Capture]) -> Vec<(u32, usize, CaptureKind)> {
    let missing = captures
        .iter()
        .filter(|capture| capture.services.iter().any(|one| !one.missing.is_empty()));
    missing
        .map(|capture| (capture.round, capture.variant, capture.kind))
        .collect()
}

#[test]
fn each_variant_is_captured_once_a_round_in_an_order_from_the_seed_after_the_result_and_beside_the_budget()
 {
    let mut environment = Simulated::new(7, &[0.0, 0.2, 0.0]);
    let (record, said, told) = captured(asked(3), &mut environment);
    assert_eq!(said, Vec::<String>::new());
    let mut expected = Vec::new();
    for round in 1..=ROUNDS {
        for variant in BlockSchedule::new(7, 3).order(BlockSchedule::block_of_round(round)) {
            expected.extend(
                TRIALS
                    .concat()
                    .into_iter()
                    .map(|kind| (round, variant, kind)),
            );
        }
    }
    let made: Vec<_> = record
        .captures
        .iter()
        .map(|capture| (capture.round, capture.variant, capture.kind))
        .collect();
    assert_eq!(made, expected);
    let orders: Vec<Vec<usize>> = (1..20)
        .map(|round| BlockSchedule::new(7, 3).order(BlockSchedule::block_of_round(round)))
        .collect();
    assert!(
        orders.iter().any(|order| *order != orders[0]),
        "the order is drawn anew for each round"
    );
    let trials = environment
        .starts
        .iter()
        .filter(|start| start.capture.is_some())
        .count();
    assert_eq!(trials, 3 * 3 * TRIALS.len());
    // The trials of captures are in no block.
    let in_blocks: usize = record.blocks.iter().map(|block| block.trials.len()).sum();
    assert_eq!(in_blocks + trials, environment.starts.len());
    let ended = record.ended.as_ref().expect("the run ended");
    let last_ns = record.captures.last().expect("a capture").end_ns as f64;
    // The environment's clock begins at 1000 s.
    let (captures_s, told_s) = (last_ns / 1e9 - 1000.0 - ended.seconds, told[0]);
    assert_in_budget(&record);
    let as_told = captures_s > 100.0 && (captures_s - told_s).abs() < told_s * 0.4;
    assert!(as_told, "{captures_s} s, told {told_s} s");
}

#[test]
fn without_being_asked_nothing_is_captured_and_the_result_is_the_same_with_it() {
    let verdicts = |plan: Plan| {
        let (record, _, _) = captured(plan, &mut Simulated::new(7, &[0.0, 0.2]));
        let told: Vec<String> = conclude(&record)
            .comparisons
            .iter()
            .map(|one| format!("{one:?}"))
            .collect();
        (record.captures.len(), reason(&record).clone(), told)
    };
    let (without, with) = (verdicts(plan(2)), verdicts(asked(2)));
    assert_eq!((without.0, with.0), (0, 30));
    assert_eq!((without.1, without.2), (with.1, with.2));
}

#[test]
fn of_a_run_with_too_few_blocks_it_is_said_how_to_have_profiles_all_the_same() {
    let mut short = asked(2);
    short.design.budget = Duration::from_secs(12);
    let mut environment = Simulated::new(5, &[0.0, 0.5]);
    let (record, said, told) = captured(short, &mut environment);
    let hint = format!("; proofload profile {} shows", record.header.experiment);
    assert!(
        said.len() == 1 && said[0].contains(&hint),
        "{said:?} after {:?}",
        record.ended
    );
    assert_eq!((told.len(), record.captures.len()), (0, 0));
}

#[test]
fn a_run_that_spent_its_budget_is_explained_and_one_without_a_result_is_not() {
    let mut spent = asked(2);
    spent.design.budget = Duration::from_secs(120);
    let (record, _, _) = captured(spent, &mut Simulated::new(5, &[0.0, 0.001]));
    assert!(
        matches!(
            reason(&record),
            EndReason::BudgetSpent | EndReason::LastLook
        ),
        "{:?}",
        record.ended
    );
    assert_eq!(record.captures.len(), 30);
    for (fault, why) in [
        (Fault::Interrupt(3), "the run was interrupted"),
        (Fault::DiesInBlock(2), "the run came to no result"),
        (Fault::AllFail, "the run came to no result"),
        (Fault::LosesWorker(1), "the run came to no result"),
    ] {
        let mut environment = Simulated::new(7, &[0.0, 0.2]).failing(fault);
        let (record, said, told) = captured(asked(2), &mut environment);
        assert_eq!(
            (said, told.len(), record.captures.len()),
            (vec![why.to_owned()], 0, 0),
            "{fault:?}"
        );
        assert!(
            environment
                .starts
                .iter()
                .all(|start| start.capture.is_none()),
            "{fault:?}"
        );
    }
}

#[test]
fn what_cannot_be_captured_is_kept_as_missing_and_leaves_the_verdict_and_the_other_captures() {
    use CaptureKind::{Counters, Cpu, Heap, Native, Plain};
    let of_each_round = |kinds: &[CaptureKind]| {
        (1..=ROUNDS)
            .flat_map(|round| kinds.iter().map(move |kind| (round, 1, *kind)))
            .collect::<Vec<_>>()
    };
    for (fault, expected, why) in [
        (
            Fault::DiesCaptured(2, Counters),
            vec![(2, 1, Counters), (2, 1, Cpu), (2, 1, Native)],
            "variant 1 died",
        ),
        (
            Fault::NeverStartsCaptured,
            of_each_round(&[Plain, Counters, Cpu, Native, Heap]),
            "variant 1 does not start with an agent",
        ),
    ] {
        let mut environment = Simulated::new(7, &[0.0, 0.2]).failing(fault);
        let (record, said, _) = captured(asked(2), &mut environment);
        assert_eq!(
            (reason(&record), said.len()),
            (&EndReason::Decided, 0),
            "{fault:?}"
        );
        assert_eq!(
            conclude(&record).comparisons[0].outcome,
            Outcome::Better,
            "{fault:?}"
        );
        assert_eq!(
            record.captures.len(),
            30,
            "each capture is made or missing: {fault:?}"
        );
        assert_eq!(missing(&record.captures), expected, "{fault:?}");
        let says_why =
            |capture: &&Capture| capture.services[0].missing.iter().any(|one| one.why == why);
        let first = record.captures.iter().find(says_why);
        assert_eq!(first.expect("one that says why").requests, 0);
    }
}

#[test]
fn an_interrupt_keeps_what_there_is_and_the_end_that_the_run_had() {
    let mut environment = Simulated::new(7, &[0.0, 0.2]).failing(Fault::InterruptCaptured(2));
    let (record, said, _) = captured(asked(2), &mut environment);
    assert_eq!(
        (reason(&record), record.captures.len()),
        (&EndReason::Decided, 10)
    );
    assert_eq!(said, ["interrupted; what was captured before is kept"]);
    assert!(
        record.captures.iter().all(|capture| capture.round == 1)
            && missing(&record.captures).is_empty()
    );
}

#[test]
fn at_a_rate_every_variant_gets_the_same_arrivals_in_a_window_and_new_ones_in_the_next() {
    let mut plan = asked(2);
    (plan.design.metric, plan.design.rate) = (Metric::P90, Some(PlannedRate::PerSecond(400.0)));
    let mut environment = Simulated::new(7, &[0.0, 0.0]);
    environment.slower = vec![0.0, 0.3];
    let (record, _, _) = captured(plan, &mut environment);
    assert_eq!(record.captures.len(), 30);
    let mut seeds: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (variant, spec) in &environment.captures {
        let open = spec.open.expect("it is at a rate");
        assert!((open.rate.at(0.0) - 400.0).abs() < 1e-9);
        seeds.entry(open.seed).or_default().push(*variant);
    }
    assert_eq!(seeds.len(), 15);
    assert!(
        seeds
            .values()
            .all(|variants| variants.len() == 2 && variants[0] != variants[1]),
        "{seeds:?}"
    );
}

#[test]
fn a_measurement_is_captured_at_its_highest_rate() {
    let measure = plan::Measure {
        until: Until::Elapsed(Duration::from_secs(1)),
        rates: Some("100,200".parse().expect("rates")),
        arrivals: plan::ArrivalProcess::Poisson,
        warmup: Duration::ZERO,
    };
    let plan = Plan {
        factors: Vec::new(),
        measure: Some(measure),
        ..asked(1)
    };
    let mut environment = Simulated::new(7, &[0.0]);
    let _ = captured(plan, &mut environment);
    let rates = environment
        .captures
        .iter()
        .map(|(_, spec)| spec.open.map(|open| open.rate.at(0.0)));
    let rates: Vec<Option<f64>> = rates.collect();
    assert!(
        !rates.is_empty() && rates.iter().all(|rate| *rate == Some(200.0)),
        "{rates:?}"
    );
}

#[test]
fn where_responses_are_few_windows_are_longer_for_all() {
    // About 8 per second, so that twenty take 2.5 s.
    let mut environment = Simulated::new(7, &[0.0, -5.5]);
    let (_, said, _) = captured(asked(2), &mut environment);
    assert_eq!(said, Vec::<String>::new());
    let plain = environment
        .captures
        .iter()
        .filter(|(_, spec)| spec.kind == CaptureKind::Plain);
    let plain: Vec<f64> = plain.map(|(_, spec)| spec.seconds).collect();
    assert!(
        plain.len() == 6 && plain.iter().all(|seconds| seconds == &plain[0]),
        "{plain:?}"
    );
    assert!(plain[0] > 2.1 && plain[0] < 3.9, "{plain:?}");
    let (mut quick, plan) = (Simulated::new(7, &[0.0, 0.2]), asked(2));
    let _ = run(plan, 7, &mut quick);
    assert!((quick.captures[0].1.seconds - 2.0).abs() < 1e-9);
}

#[test]
fn of_many_variants_those_that_are_compared_are_explained_and_never_a_copy() {
    assert_eq!(explained(&with_copy(plan(2))), [0, 1]);
    assert_eq!(
        explained(&plan(VARIANTS_MAX)),
        (0..VARIANTS_MAX).collect::<Vec<_>>()
    );
    let mut many = with_copy(plan(12));
    many.comparisons.retain(|asked| asked.candidate % 2 == 1);
    assert_eq!(explained(&many), [0, 1, 3, 5, 7, 9, 11]);
    many.comparisons.clear();
    assert_eq!(explained(&many), (0..VARIANTS_MAX).collect::<Vec<_>>());
}

#[test]
fn captures_alone_measure_no_block_and_end_with_what_fails() {
    let alone = |environment: &mut Simulated| {
        let (writer, _folder) = begun(plan(2), 7);
        let (record, result) = capture_only(writer, environment, 2, &TRIALS, &mut |_| {});
        assert!(record.blocks.is_empty() && environment.living.is_empty());
        (record, result)
    };
    let (record, result) = alone(&mut Simulated::new(7, &[0.0, 0.2]));
    assert!(result.is_ok() && reason(&record) == &EndReason::Measured);
    assert_eq!(record.captures.len(), 2 * 2 * TRIALS.concat().len());
    // Windows with unknown response times are not as long as without any responses.
    let longest = record
        .captures
        .iter()
        .map(|capture| capture.end_ns - capture.start_ns)
        .max();
    assert!(longest.is_some_and(|ns| ns < 10_000_000_000), "{longest:?}");

    let mut environment = Simulated::new(7, &[0.0, 0.2]).failing(Fault::NeverStartsCaptured);
    let (record, result) = alone(&mut environment);
    assert!(
        matches!(result, Err(LabError::Failed(EndReason::ServiceFailed(_)))),
        "{result:?}"
    );
    assert!(
        matches!(reason(&record), EndReason::ServiceFailed(_)),
        "{:?}",
        reason(&record)
    );
    environment.fault = Some(Fault::InterruptCaptured(2));
    let (record, result) = alone(&mut environment);
    assert!(result.is_ok() && reason(&record) == &EndReason::Interrupted);
    assert!(!record.captures.is_empty(), "what was captured is kept");
}
