//! Capacity of simulated queues: known capacities are found, and others are reported as unknown.

use analysis::{Check, LimitedBy, Outcome, Ruling};
use record::{EndReason, MachineUse, SliceKind};

use crate::environment::{Queue, QueueKind, Simulated, capacity_plan, dropped, finished, reason};

/// Exponential service by one server: its capacity for a p99 of 50 ms is µ − ln(100) / 50 ms.
const QUEUE: Queue = Queue {
    per_s: 1000.0,
    kind: QueueKind::Exponential(1),
    between_sd: 0.0,
};
const TRUTH_PER_S: f64 = 907.9;

#[test]
fn the_capacity_of_a_queue_is_found_and_its_interval_holds_it() {
    let runs = 12;
    let mut held = 0;
    for seed in 0..runs {
        let record = finished(
            capacity_plan(1, 180),
            seed,
            &mut Simulated::queueing(seed, &[QUEUE]),
        );
        let conclusion = analysis::conclude(&record);
        let found = &conclusion.capacities[0];
        let (per_s, interval) = (
            found.reached_per_s.expect("a capacity"),
            found.reached_interval.expect("an interval"),
        );
        assert!(
            (per_s / TRUTH_PER_S).ln().abs() < 0.08,
            "seed {seed}: {per_s}"
        );
        assert!(
            (interval.high / interval.low).ln() < 0.25,
            "seed {seed}: {interval:?}"
        );
        held += u32::from(interval.low < TRUTH_PER_S && TRUTH_PER_S < interval.high);
        assert_eq!(
            (found.limited_by, found.met_first.as_deref()),
            (LimitedBy::Cpu, Some("p99 < 50ms"))
        );
        assert!(
            found
                .overload
                .as_ref()
                .is_some_and(|overload| overload.recovered && !overload.collapsed)
        );
        let half = found.near(0.5).expect("the curve has a point there");
        assert!(half.p99_us.is_some_and(|us| us < 20_000.0), "{half:?}");
        assert_eq!(reason(&record), &EndReason::Measured);
    }
    assert!(held >= runs as u32 - 2, "{held} of {runs}");
}

#[test]
fn an_overload_is_seen_also_where_the_first_block_counts_for_nothing() {
    let mut queues = Simulated::queueing(1, &[QUEUE]);
    queues.machine = |block| MachineUse {
        steal_share: if block == 1 { 0.5 } else { 0.0 },
        ..MachineUse::default()
    };
    let record = finished(capacity_plan(1, 300), 1, &mut queues);
    assert_eq!(dropped(&record), [1]);
    assert!(analysis::conclude(&record).capacities[0].overload.is_some());
}

/// Pauses as of a garbage collector: 25 ms more for one request in 500.
#[test]
fn rare_pauses_are_part_of_what_users_bear() {
    let queue = Queue {
        per_s: 1.0 / 0.001_05,
        kind: QueueKind::Pauses,
        between_sd: 0.0,
    };
    let record = finished(
        capacity_plan(1, 300),
        2,
        &mut Simulated::queueing(2, &[queue]),
    );
    let per_s = analysis::conclude(&record).capacities[0]
        .reached_per_s
        .expect("a capacity");
    assert!((per_s / 788.0).ln().abs() < 0.12, "{per_s}");
}

/// A gate on an amount uses the interval of the report: an interval over processes alone is too narrow by the
/// error of windows.
#[test]
fn a_gate_on_an_amount_has_the_interval_of_the_report() {
    let record = finished(
        capacity_plan(1, 180),
        4,
        &mut Simulated::queueing(4, &[QUEUE]),
    );
    let conclusion = analysis::conclude(&record);
    let interval = conclusion.capacities[0]
        .reached_interval
        .expect("an interval");
    let gate = |limit: &str| {
        let limit = plan::limit(limit).expect("a limit");
        analysis::gated(
            &record,
            &conclusion,
            &[plan::GateEntry {
                limit,
                of: None,
                line: None,
            }],
        )
    };
    let gate_of = |per_s: f64| gate(&format!("capacity > {per_s:.2}/s"));
    let measured = gate_of(900.0).judgements[0]
        .measured
        .expect("it is measured");
    assert!(
        (measured.low / interval.low).ln().abs() < 1e-9,
        "{measured:?} {interval:?}"
    );
    assert!(
        (measured.high.expect("it is bounded") / interval.high)
            .ln()
            .abs()
            < 1e-9
    );
    assert_eq!(gate_of(interval.low * 0.99).ruling(), Some(Ruling::Pass));
    assert_eq!(
        gate_of(interval.low * 1.01).ruling(),
        Some(Ruling::Inconclusive)
    );
    assert_eq!(gate_of(interval.high * 1.01).ruling(), Some(Ruling::Fail));
}

#[test]
fn variants_are_compared_by_their_capacity() {
    let queues = [
        QUEUE,
        Queue {
            per_s: 1300.0,
            ..QUEUE
        },
    ];
    let record = finished(
        capacity_plan(2, 200),
        3,
        &mut Simulated::queueing(3, &queues),
    );
    let conclusion = analysis::conclude(&record);
    let estimate = conclusion.comparisons[0].estimate.expect("an estimate");
    assert_eq!(conclusion.comparisons[0].outcome, Outcome::Better);
    let truth = (1300.0 - 92.1) / TRUTH_PER_S;
    assert!(
        estimate.low < truth && truth < estimate.high,
        "{estimate:?}"
    );
}

#[test]
fn a_limit_that_is_exceeded_far_below_the_capacity_voids_it_unless_one_process_alone_does_it() {
    let record = finished(
        capacity_plan(1, 180),
        2,
        &mut Simulated::queueing(2, &[QUEUE]),
    );
    let whole = analysis::conclude(&record).capacities[0].clone();
    assert_eq!(whole.breaks_at_per_s, None, "a queue keeps it");
    let half = whole.near(0.5).expect("a point of the curve").per_s;
    let stopped = |most: usize| {
        let mut record = record.clone();
        let slices = record
            .blocks
            .iter_mut()
            .flat_map(|of| &mut of.trials)
            .flat_map(|of| &mut of.slices);
        let opens = slices.filter_map(|slice| slice.counts.open.as_mut());
        // A pause, by which one in fifty was late.
        for open in opens
            .filter(|open| (open.rate_per_s / half - 1.0).abs() < 0.15)
            .take(most)
        {
            (0..open.intended / 50).for_each(|_| open.response.record(80_000_000));
        }
        analysis::conclude(&record)
    };
    let paused = stopped(1);
    assert_eq!(
        (paused.capacities[0].breaks_at_per_s, paused.is_void()),
        (None, false)
    );
    let conclusion = stopped(usize::MAX);
    let (found, finding) = (
        &conclusion.capacities[0],
        conclusion.finding(Check::BreaksFarBelow),
    );
    assert!(
        finding.is_some() && conclusion.is_void() && found.reached_per_s.is_none(),
        "{found:?}"
    );
    let breaks_at = found.breaks_at_per_s.expect("it is told");
    assert!(
        (breaks_at / half).ln().abs() < 0.1,
        "{breaks_at} and {half}"
    );
}

/// One pause of the machine far below the crossing: then there is no number, and no limit passes.
#[test]
fn a_limit_that_breaks_once_far_below_is_inconclusive() {
    let queues = [
        QUEUE,
        Queue {
            per_s: 1300.0,
            ..QUEUE
        },
    ];
    let mut record = finished(
        capacity_plan(2, 300),
        3,
        &mut Simulated::queueing(3, &queues),
    );
    let whole = analysis::conclude(&record);
    assert_eq!(whole.comparisons[0].outcome, Outcome::Better);
    let half = whole.capacities[1]
        .near(0.5)
        .expect("a point of the curve")
        .per_s;
    let trials = record
        .blocks
        .iter_mut()
        .flat_map(|of| &mut of.trials)
        .filter(|of| of.variant() == 1);
    let mut opens = trials
        .flat_map(|of| &mut of.slices)
        .filter_map(|slice| slice.counts.open.as_mut());
    let open = opens
        .find(|open| (open.rate_per_s / half - 1.0).abs() < 0.15)
        .expect("it was loaded so low");
    (0..open.intended / 8).for_each(|_| open.response.record(80_000_000));
    let conclusion = analysis::conclude(&record);
    let found = &conclusion.capacities[1];
    assert_eq!(
        (
            found.reached_per_s,
            found.reached_interval,
            conclusion.is_void()
        ),
        (None, None, false),
        "{found:?}"
    );
    let erratic = found.erratic.expect("it is told");
    assert!(
        (erratic.broke_per_s / half).ln().abs() < 0.2 && !erratic.by_client,
        "{erratic:?}"
    );
    assert_eq!(conclusion.comparisons[0].outcome, Outcome::Inconclusive);
    for limit in ["capacity > 1/s", "capacity > -90%"] {
        let limit = plan::limit(limit).expect("a limit");
        let entry = plan::GateEntry {
            limit,
            of: None,
            line: None,
        };
        let gate = analysis::gated(&record, &conclusion, &[entry]);
        assert_eq!(gate.ruling(), Some(Ruling::Inconclusive), "{limit}");
    }
}

#[test]
fn connections_follow_the_saturation_as_far_as_they_may() {
    let fast = Queue {
        per_s: 8000.0,
        kind: QueueKind::Constant,
        ..QUEUE
    };
    let chosen = |most: Option<u32>, typed: bool| {
        let mut plan = capacity_plan(1, 40);
        plan.variants[0].load.connections_typed = typed;
        let mut queues = Simulated::queueing(1, &[fast]);
        queues.connections_most = most.map(|most| (most, "a reason".to_owned()));
        let record = finished(plan, 1, &mut queues);
        (
            record.connections.clone(),
            analysis::capacity::connections(&record, 0),
        )
    };
    let (enough, used) = chosen(None, false);
    let enough = enough.expect("they are chosen");
    assert!(
        (950..1100).contains(&enough.connections) && enough.bound.is_none(),
        "{enough:?}"
    );
    assert_eq!(used, Some(enough.connections));
    let (few, used) = chosen(Some(500), false);
    assert_eq!(
        (few.and_then(|few| few.bound), used),
        (Some("a reason".to_owned()), Some(500))
    );
    assert_eq!(
        chosen(None, true).0,
        None,
        "a number that is asked for stays"
    );
}

/// A service that never fails holds at least the requested rate.
#[test]
fn a_service_without_failures_holds_at_least_what_was_tried() {
    let mut plan = capacity_plan(1, 900);
    plan.design.slo = vec![plan::limit("failed < 0.1%").expect("a limit")];
    let record = finished(plan, 7, &mut Simulated::queueing(7, &[QUEUE]));
    let conclusion = analysis::conclude(&record);
    let found = &conclusion.capacities[0];
    assert!(found.at_least && !conclusion.is_void(), "{found:?}");
    assert!(
        (850.0..1050.0).contains(&found.reached_per_s.expect("a capacity")),
        "{found:?}"
    );
}

/// The load generator's maximum is a lower bound of a service's capacity: it decides if that is enough, and
/// states nothing else.
#[test]
fn a_capacity_that_the_load_generator_limits_is_a_lower_bound_in_comparisons() {
    let judged = |per_s: [f64; 2], limited: &[usize]| {
        let queues = per_s.map(|per_s| Queue { per_s, ..QUEUE });
        let mut record = finished(
            capacity_plan(2, 200),
            3,
            &mut Simulated::queueing(3, &queues),
        );
        let trials = record.blocks.iter_mut().flat_map(|block| &mut block.trials);
        let trials = trials.filter(|trial| limited.contains(&trial.variant()));
        let slices = trials.flat_map(|trial| &mut trial.slices);
        for slice in slices {
            slice.connections = 32;
            slice
                .counts
                .open
                .iter_mut()
                .for_each(|open| open.queued = open.intended / 2);
        }
        let conclusion = analysis::conclude(&record);
        for variant in limited {
            assert_eq!(
                conclusion.capacities[*variant].limited_by,
                LimitedBy::Connections
            );
        }
        let limit = plan::limit("capacity > -10%").expect("a limit");
        let entry = plan::GateEntry {
            limit,
            of: None,
            line: None,
        };
        let gate = analysis::gated(&record, &conclusion, &[entry]);
        assert_eq!(
            conclusion.comparisons[0].estimate, None,
            "nothing is told as if it were known"
        );
        (
            conclusion.comparisons[0].outcome,
            gate.ruling().expect("it is judged"),
        )
    };
    assert_eq!(
        judged([1000.0, 1300.0], &[1]),
        (Outcome::Better, Ruling::Pass)
    );
    assert_eq!(
        judged([1300.0, 1000.0], &[0]),
        (Outcome::Worse, Ruling::Fail)
    );
    let open = (Outcome::Inconclusive, Ruling::Inconclusive);
    assert_eq!(
        judged([1000.0, 1300.0], &[0]),
        open,
        "the baseline may bear more than the candidate"
    );
    assert_eq!(judged([1300.0, 1000.0], &[1]), open);
    assert_eq!(judged([1000.0, 1300.0], &[0, 1]), open);
}

/// A request that finds none of these connections free has so many requests before it that its limit is
/// already missed.
#[test]
fn twice_as_many_connections_as_the_limit_has_use_for_are_never_what_limits() {
    let mut record = finished(
        capacity_plan(1, 180),
        2,
        &mut Simulated::queueing(2, &[QUEUE]),
    );
    let mut told = |connections: u32| {
        let trials = record.blocks.iter_mut().flat_map(|of| &mut of.trials);
        for slice in trials.flat_map(|of| &mut of.slices) {
            slice.connections = connections;
            slice
                .counts
                .open
                .iter_mut()
                .for_each(|open| open.queued = open.intended / 2);
        }
        let conclusion = analysis::conclude(&record);
        (
            conclusion.capacities[0].limited_by,
            conclusion.finding(Check::RateNotKept).is_some(),
        )
    };
    assert_eq!(told(80), (LimitedBy::Connections, true));
    assert_eq!(told(120), (LimitedBy::Cpu, false));
}

/// Too few requests in a step for a thousandth of them to fail do not break the limit.
#[test]
fn a_slow_service_without_failures_keeps_a_limit_on_them() {
    let mut plan = capacity_plan(1, 300);
    plan.design
        .slo
        .push(plan::limit("failed < 0.1%").expect("a limit"));
    let queue = Queue {
        per_s: 200.0,
        ..QUEUE
    };
    let record = finished(plan, 6, &mut Simulated::queueing(6, &[queue]));
    let found = &analysis::conclude(&record).capacities[0];
    assert_eq!(
        (reason(&record), found.met_first.as_deref()),
        (&EndReason::Measured, Some("p99 < 50ms"))
    );
    assert!(
        (70.0..140.0).contains(&found.reached_per_s.expect("a capacity")),
        "{found:?}"
    );
}

#[test]
fn a_search_whose_steps_are_longer_than_the_budget_ends_within_it() {
    let mut plan = capacity_plan(2, 60);
    plan.design.slo = vec![plan::limit("p99 < 5s").expect("a limit")];
    let record = finished(plan, 1, &mut Simulated::queueing(1, &[QUEUE, QUEUE]));
    assert!(
        matches!(reason(&record), EndReason::BudgetTooSmall { .. }),
        "{:?}",
        reason(&record)
    );
    assert!(
        record
            .ended
            .as_ref()
            .is_some_and(|ended| ended.seconds < 60.0),
        "{:?}",
        record.ended
    );
}

#[test]
fn what_is_shed_counts_as_never_answered() {
    // Twenty queued requests wait 20 ms at most: p99 holds at any rate, and excess requests fail at once.
    let queue = Queue {
        kind: QueueKind::Shedding(20),
        ..QUEUE
    };
    let mut plan = capacity_plan(1, 180);
    plan.design
        .slo
        .push(plan::limit("failed < 0.1%").expect("a limit"));
    let record = finished(plan, 5, &mut Simulated::queueing(5, &[queue]));
    let conclusion = analysis::conclude(&record);
    // A queue with room for twenty loses a thousandth at 0.76 of its limit.
    let found = &conclusion.capacities[0];
    assert_eq!(found.met_first.as_deref(), Some("failed < 0.1%"));
    assert!(!conclusion.is_void(), "{:?}", conclusion.findings);
    assert!(
        (0.6..0.88).contains(&(found.reached_per_s.expect("a capacity") / 1000.0)),
        "{found:?}"
    );
}

#[test]
fn without_time_for_four_processes_there_is_a_bracket_and_a_budget_that_would_do() {
    let record = finished(
        capacity_plan(1, 20),
        1,
        &mut Simulated::queueing(1, &[QUEUE]),
    );
    let EndReason::BudgetTooSmall { needed_s } = *reason(&record) else {
        panic!("{:?}", reason(&record))
    };
    let found = &analysis::conclude(&record).capacities[0];
    let [Some(kept), Some(broken)] = found.bracket else {
        panic!("{found:?}")
    };
    assert!(
        found.reached_per_s.is_none() && 500.0 < kept && kept < broken && broken < 1300.0,
        "{found:?}"
    );
    let record = finished(
        capacity_plan(1, needed_s),
        1,
        &mut Simulated::queueing(1, &[QUEUE]),
    );
    assert_eq!(reason(&record), &EndReason::Measured);
}

#[test]
fn a_limit_that_is_never_kept_ends_the_run_with_that() {
    let slow = Queue {
        per_s: 10.0,
        kind: QueueKind::Constant,
        between_sd: 0.0,
    };
    let record = finished(
        capacity_plan(1, 180),
        1,
        &mut Simulated::queueing(1, &[slow]),
    );
    let EndReason::Void(why) = reason(&record) else {
        panic!("{:?}", reason(&record))
    };
    assert!(
        why.contains("no rate keeps p99 < 50ms: the service breaks it even at 1.00/s"),
        "{why}"
    );
}

/// Windows depend on earlier blocks: every rate is in the record, and no window's result affected its own
/// rate.
#[test]
fn a_window_is_placed_before_it_is_seen() {
    let mut queues = Simulated::queueing(9, &[QUEUE]);
    let record = finished(capacity_plan(1, 180), 9, &mut queues);
    for block in record.blocks.iter().filter(|block| block.number > 0) {
        for trial in &block.trials {
            let rates = trial.measured().map(|slice| {
                slice
                    .asked
                    .and_then(|asked| asked.open)
                    .expect("a rate")
                    .rate
            });
            let rates: Vec<_> = rates.collect();
            assert!(rates.len() == 2 && rates[0] == rates[1], "{rates:?}");
            assert!(
                trial
                    .slices
                    .iter()
                    .any(|slice| slice.kind == SliceKind::Probe)
            );
        }
    }
}
