//! Disturbed blocks: dropped and replaced regardless of the measured values, as long as enough blocks are
//! left.

use std::time::Duration;

use analysis::{Outcome, conclude};
use proofload_lab::{StolenShares, UpdateNews};
use record::{Block, DeployedSeen, EndReason, Event, MachineUse, Slice};

use crate::environment::{
    Simulated, assert_in_budget, dropped, finished, found, plan, reason, run, watched,
};

fn stolen(share: f64) -> MachineUse {
    MachineUse {
        steal_share: share,
        ..MachineUse::default()
    }
}

#[test]
fn blocks_that_the_host_took_are_replaced_and_the_verdict_is_that_of_the_others() {
    let mut environment = Simulated::new(7, &[0.0, 0.20]);
    environment.machine = |block| stolen(if block % 3 == 2 { 0.31 } else { 0.05 });
    let mut plan = plan(2);
    plan.design.budget = Duration::from_secs(600);
    let mut told = Vec::new();
    let (record, result) = watched(plan, 7, &mut environment, &mut |update| {
        if let UpdateNews::Event(Event::BlockDropped { block, why }) = update.news {
            told.push((*block, why.clone()));
        }
    });
    result.expect("a dropped block is no error");
    let numbers = dropped(&record);
    assert!(
        numbers.starts_with(&[2, 5]) && numbers.iter().all(|number| number % 3 == 2),
        "{numbers:?}"
    );
    let why = "CPU steal was 31 %";
    assert!(
        told.iter().all(|(_, said)| said == why) && told.len() == numbers.len(),
        "{told:?}"
    );
    assert_eq!(reason(&record), &EndReason::Decided);
    let conclusion = conclude(&record);
    let estimate = conclusion.comparisons[0]
        .estimate
        .as_ref()
        .expect("there are six blocks or more");
    assert_eq!(
        (conclusion.comparisons[0].outcome, estimate.blocks),
        (Outcome::Better, record.blocks_kept())
    );
    assert!(
        estimate.low < 0.20_f64.exp() && 0.20_f64.exp() < estimate.high,
        "{estimate:?}"
    );
}

#[test]
fn a_fixed_number_of_blocks_is_of_those_that_count() {
    let mut environment = Simulated::new(3, &[0.0, 0.0]);
    environment.machine = |block| stolen(if block <= 2 { 0.5 } else { 0.0 });
    let mut plan = plan(2);
    (plan.design.blocks, plan.design.budget) = (Some(8), Duration::from_secs(1200));
    (plan.design.looks, plan.design.margin) = (plan::LookRule::Once, 0.0001);
    let record = finished(plan, 3, &mut environment);
    assert_eq!(
        (reason(&record), record.blocks_kept(), record.blocks.len()),
        (&EndReason::LastLook, 8, 10)
    );
    assert!(conclude(&record).comparisons[0].estimate.is_some());
    // It is a maximum: disturbed blocks are also dropped if that number of blocks never fits.
    let second = |block: u32| stolen(if block == 2 { 0.5 } else { 0.0 });
    let mut environment = Simulated::new(3, &[0.0, 0.0]).with(|it| it.machine = second);
    let mut most = crate::environment::plan(2);
    (most.design.blocks, most.design.looks) = (Some(120), plan::LookRule::Once);
    assert_eq!(dropped(&finished(most, 3, &mut environment)), [2]);
}

#[test]
fn what_the_first_blocks_settle_is_settled_also_where_they_are_dropped() {
    let sound = run(plan(2), 5, &mut Simulated::new(5, &[0.0, 0.3])).0;
    let disturbed: [fn(u32) -> MachineUse; 3] = [
        |block| stolen(if block == 1 { 0.3 } else { 0.0 }),
        |block| stolen(if block == 3 { 0.3 } else { 0.0 }),
        |block| stolen(if block <= 3 { 0.3 } else { 0.0 }),
    ];
    for machine in disturbed {
        let record = finished(
            plan(2),
            5,
            &mut Simulated::new(5, &[0.0, 0.3]).with(|it| it.machine = machine),
        );
        let (warm_up, first) = (record.warm_up.as_ref(), sound.warm_up.as_ref());
        let (warm_up, first) = (
            warm_up.expect("it was settled"),
            first.expect("it was settled"),
        );
        // The first block is watched, whether it counts or not. The time for watching may differ.
        assert!(
            warm_up.measured && warm_up.steady_after_s == first.steady_after_s,
            "{warm_up:?}"
        );
        assert!(
            record
                .allocation
                .as_ref()
                .is_some_and(|allocation| allocation.measured)
        );
        assert!(
            record.blocks_planned.is_some() && record.blocks_kept() >= 4,
            "{:?}",
            record.ended
        );
        assert_eq!(conclude(&record).comparisons[0].outcome, Outcome::Better);
        assert_in_budget(&record);
    }
}

#[test]
fn on_a_machine_that_is_never_ours_blocks_count_once_dropping_them_does_not_help() {
    let mut environment = Simulated::new(2, &[0.0, 0.9]);
    environment.machine = |_| stolen(0.4);
    let record = finished(plan(2), 2, &mut environment);
    let numbers = dropped(&record);
    let few = numbers.len() as u32 <= 3.max(record.blocks_kept() / 2);
    assert!(numbers.starts_with(&[1, 2, 3]) && few, "{numbers:?}");
    let conclusion = conclude(&record);
    assert_eq!(
        (reason(&record), conclusion.comparisons[0].outcome),
        (&EndReason::Decided, Outcome::Better)
    );
    assert_eq!(found(&conclusion), ["steal", "blocks_dropped"]);

    // A block is not dropped if there is no time for another one, and a run can be configured to keep all
    // blocks.
    let mut short = plan(2);
    short.design.blocks = Some(6);
    let sound = run(short.clone(), 2, &mut Simulated::new(2, &[0.0, 0.9])).0;
    short.design.budget = Duration::from_secs_f64(sound.ended.expect("it ended").seconds + 1.0);
    let (record, _) = run(short, 2, &mut environment);
    assert_eq!(
        (
            record.blocks_kept(),
            conclude(&record).comparisons[0].outcome
        ),
        (4, Outcome::Better)
    );
    let mut asked = plan(2);
    asked.design.drop_disturbed = false;
    let (record, _) = run(asked, 2, &mut environment);
    assert_eq!(
        (
            dropped(&record).len(),
            conclude(&record).comparisons[0].outcome
        ),
        (0, Outcome::Better)
    );
}

#[test]
fn what_a_service_uses_that_runs_already_and_is_not_seen_is_no_disturbance() {
    let dropped_where = |is_here| {
        let deployed = DeployedSeen {
            service: "api".to_owned(),
            place: "http://localhost:3000".to_owned(),
            address: "127.0.0.1:3000".to_owned(),
            addresses: Vec::new(),
            is_here,
            unseen: None,
            pods: Vec::new(),
        };
        let mut environment = Simulated::new(2, &[0.0, 0.9]);
        environment.deployed = Some(deployed);
        environment.machine = |_| MachineUse {
            strangers_cpu_ns: 1 << 40,
            ..stolen(0.0)
        };
        dropped(&run(plan(2), 2, &mut environment).0)
    };
    assert_eq!(dropped_where(true), [] as [u32; 0]);
    // A service on another machine uses nothing here, so other processes are the disturbance.
    assert!(dropped_where(false).starts_with(&[1, 2, 3]));
}

/// A block of a valid run, with each of its slices changed.
fn block(change: impl Fn(&mut Slice)) -> Block {
    let (record, _) = run(plan(2), 1, &mut Simulated::new(1, &[0.0, 0.3]));
    let mut block = record.blocks[1].clone();
    block
        .trials
        .iter_mut()
        .flat_map(|trial| &mut trial.slices)
        .for_each(change);
    block
}

#[test]
fn nothing_that_belongs_to_a_variant_has_a_part_in_the_decision() {
    let machine = MachineUse {
        throttled_ns: 9_000_000,
        strangers_cpu_ns: 7_000_000,
        ..stolen(0.1)
    };
    let whole = block(|slice| slice.machine = machine.clone());
    let taken = StolenShares::of(&whole, true, 2);
    assert!(
        taken.by_steal > 0.0 && taken.by_quota > 0.0 && taken.by_others > 0.0,
        "{taken:?}"
    );
    let failed = block(|slice| {
        slice.machine = machine.clone();
        (
            slice.counts.successful,
            slice.counts.successful_in_window,
            slice.counts.responses,
        ) = (0, 0, 0);
        (slice.counts.timed_out, slice.counts.latency) =
            (slice.counts.sent, stats::Latencies::new());
        slice.services.clear();
    });
    assert_eq!(StolenShares::of(&failed, true, 2), taken);
    let mut swapped = whole.clone();
    for trial in &mut swapped.trials {
        let other = 1 - trial.variant();
        trial.started.variant = other;
        trial
            .slices
            .iter_mut()
            .for_each(|slice| slice.variant = other);
    }
    assert_eq!(StolenShares::of(&swapped, true, 2), taken);
}

#[test]
fn each_way_of_losing_time_has_its_bound_and_is_counted_once() {
    let of = |turns: bool, cpus: usize, use_: fn(u64) -> MachineUse| {
        // The windows of both trials are the time that one of them reports.
        let block = block(|slice| {
            let length_ns =
                (slice.counts.window_ns + slice.counts.drain_ns) * if turns { 2 } else { 1 };
            slice.machine = use_(length_ns);
        });
        StolenShares::of(&block, turns, cpus).why()
    };
    let others = |ns: u64| MachineUse {
        strangers_cpu_ns: ns,
        ..MachineUse::default()
    };
    let held = |ns: u64| MachineUse {
        throttled_ns: ns,
        ..MachineUse::default()
    };
    for turns in [true, false] {
        assert_eq!(of(turns, 2, |_| stolen(0.19)), None);
        assert_eq!(
            of(turns, 2, |ns| MachineUse {
                strangers_cpu_ns: ns * 38 / 100,
                ..stolen(0.0)
            }),
            None
        );
        assert_eq!(
            of(turns, 2, |ns| MachineUse {
                throttled_ns: ns * 19 / 100,
                ..stolen(0.0)
            }),
            None
        );
        let half = Some("other processes used 50 % of the CPU time".to_owned());
        assert_eq!(of(turns, 2, others), half);
        let all = Some("a quota of CPU time held the run back for 100 % of the time".to_owned());
        assert_eq!(of(turns, 2, held), all);
    }
    // A fifth of all processors, not of one.
    assert_eq!(of(true, 6, others), None);
    // In this environment only the generator is pinned, to one of them.
    assert_eq!(
        of(true, 0, others),
        Some("other processes used 100 % of the CPU time".to_owned())
    );
    let empty = Block {
        trials: Vec::new(),
        ..block(|_| ())
    };
    assert_eq!(StolenShares::of(&empty, true, 2), StolenShares::default());
}
