//! Generators in separate processes: the fate of a block in which one was lost, or did not begin with the
//! others.

use std::time::Duration;

use analysis::{Grade, Outcome, conclude};
use plan::{Generators, Plan};
use proofload_lab::{LabError, UpdateNews};
use record::{EndReason, Event, Record, Trial};

use crate::environment::{Fault, Simulated, begun, dropped, finished, plan, reason, run, watched};

/// Two variants, a generator on this machine and one on another.
fn shared() -> Plan {
    let mut plan = plan(2);
    plan.generators = Generators {
        ssh: vec!["b".into()],
        address: Some("10.0.0.2".parse().expect("an address")),
        ..Generators::default()
    };
    plan.design.budget = Duration::from_secs(600);
    plan
}

fn environment(seed: u64, effect: f64) -> Simulated {
    let mut environment = Simulated::new(seed, &[0.0, effect]);
    environment.generators = true;
    environment
}

fn found(record: &Record) -> Vec<(&'static str, Grade)> {
    conclude(record)
        .findings
        .iter()
        .map(|finding| (finding.check.name(), finding.grade))
        .collect()
}

#[test]
fn trials_follow_one_another_and_each_slice_says_who_had_which_part_of_it() {
    let mut environment = environment(7, 0.2);
    let (record, result) = run(shared(), 7, &mut environment);
    result.expect("nothing went wrong");
    assert_eq!(
        (reason(&record), found(&record)),
        (&EndReason::Decided, vec![])
    );
    assert_eq!(record.generators.len(), 2);
    let slices = || record.complete_trials().flat_map(Trial::measured);
    assert!(slices().all(|slice| slice.turns == 1 && slice.generators.len() == 2));
    // A window that requires an agreement only pays off if it is long.
    assert!(
        slices()
            .last()
            .is_some_and(|slice| slice.counts.window_ns >= 2_000_000_000)
    );
    let shares = conclude(&record).generators;
    let names: Vec<&str> = shares.iter().map(|share| share.name.as_str()).collect();
    assert_eq!(names, ["local 1", "ssh://b"]);
    assert!(
        (shares[0].share - 0.5).abs() < 0.01 && shares[1].host.as_deref() == Some("host"),
        "{shares:?}"
    );
    // Each is connected once, and checked before each block.
    assert_eq!(environment.connects as usize, record.blocks.len() + 1);
}

#[test]
fn a_block_in_which_a_generator_is_lost_is_given_up_and_another_takes_its_place() {
    for loses in [
        (|block| block == 1) as fn(u32) -> bool,
        |block| block == 3,
        |block| block == 2 || block == 6,
    ] {
        let mut environment = environment(7, 0.2).failing(Fault::LosesGenerator(loses));
        let mut said = Vec::new();
        let (record, result) = watched(shared(), 7, &mut environment, &mut |update| match update
            .news
        {
            UpdateNews::Event(Event::GeneratorLost(lost)) => said.push(lost.why.clone()),
            UpdateNews::Event(Event::GeneratorsConnected(generators)) => {
                said.push(format!("{} there", generators.len()))
            }
            _ => {}
        });
        result.expect("a lost generator that comes back is no error");
        let lost: Vec<u32> = record
            .blocks
            .iter()
            .map(|block| block.number)
            .filter(|block| loses(*block))
            .collect();
        assert_eq!(dropped(&record), lost);
        assert!(
            record
                .blocks
                .iter()
                .all(|block| block.seconds.is_none() == loses(block.number))
        );
        assert_eq!(reason(&record), &EndReason::Decided, "{lost:?}");
        assert_eq!(conclude(&record).comparisons[0].outcome, Outcome::Better);
        assert_eq!(
            found(&record),
            [
                ("generator_lost", Grade::Warning),
                ("blocks_dropped", Grade::Warning)
            ]
        );
        let evidence = &conclude(&record).findings[0].evidence;
        let told = format!(
            "in block {} generator ssh://b exited before responding",
            lost[0]
        );
        assert!(evidence.contains(&told), "{evidence}");
        // The first complete block determines the warm-up.
        let warm_up = record.warm_up.as_ref().expect("it was settled");
        assert!(
            warm_up.measured && warm_up.steady_after_s.iter().all(Option::is_some),
            "{warm_up:?}"
        );
        assert_eq!(
            said.iter().filter(|said| said.ends_with("there")).count(),
            1 + lost.len()
        );
        assert_eq!(said.len(), 1 + 2 * lost.len());
    }
}

#[test]
fn one_that_is_lost_for_good_ends_the_run_with_what_there_is() {
    for (block, grade, outcome) in [
        (3, Grade::Invalid, Outcome::Invalid),
        (9, Grade::Warning, Outcome::Better),
    ] {
        let mut environment = environment(7, 0.2).failing(Fault::LosesGeneratorForGood(block));
        let mut plan = shared();
        plan.design.budget = Duration::from_secs(3600);
        // One look at the end, so that nothing else ends the run.
        (plan.design.looks, plan.design.blocks) = (plan::LookRule::Once, Some(20));
        let (record, result) = run(plan, 7, &mut environment);
        let why = "generator ssh://b exited before responding, and could not be replaced: no route";
        assert_eq!(reason(&record), &EndReason::GeneratorFailed(why.into()));
        assert!(
            matches!(result, Err(LabError::Failed(EndReason::GeneratorFailed(said))) if said == why)
        );
        assert_eq!(record.blocks_kept(), block - 1);
        let lost: Vec<u32> = record
            .generators_lost
            .iter()
            .map(|lost| lost.block)
            .collect();
        assert_eq!(
            lost,
            [block, block],
            "when it went, and that it did not come back"
        );
        assert!(
            found(&record).contains(&("generator_lost", grade)),
            "{:?}",
            found(&record)
        );
        assert_eq!(conclude(&record).comparisons[0].outcome, outcome);
    }
}

#[test]
fn one_that_is_lost_all_the_time_ends_the_run_too() {
    let mut environment = environment(7, 0.2).failing(Fault::LosesGenerator(|_| true));
    let (record, result) = run(shared(), 7, &mut environment);
    let Err(LabError::Failed(EndReason::GeneratorFailed(said))) = result else {
        panic!("{result:?}")
    };
    assert!(said.contains("dropped so far: 4 blocks"), "{said}");
    assert_eq!(
        (dropped(&record), record.blocks_kept()),
        (vec![1, 2, 3, 4], 0)
    );
}

#[test]
fn one_that_was_gone_between_two_blocks_costs_none() {
    let record = finished(
        shared(),
        7,
        &mut environment(7, 0.2).failing(Fault::FindsGeneratorGone(3)),
    );
    assert_eq!(
        (dropped(&record), found(&record)),
        (vec![], vec![("generator_lost", Grade::Warning)])
    );
}

#[test]
fn nothing_starts_where_generators_cannot_be_had() {
    let mut environment = environment(7, 0.2).failing(Fault::NoGenerators);
    let (record, result) = run(shared(), 7, &mut environment);
    assert!(
        matches!(result, Err(LabError::Failed(EndReason::GeneratorFailed(said))) if said == "ssh://b: no route")
    );
    assert_eq!(
        reason(&record),
        &EndReason::GeneratorFailed("ssh://b: no route".into())
    );
    assert!(environment.starts.is_empty() && record.blocks.is_empty());
}

#[test]
fn a_block_for_which_a_generator_came_late_is_dropped_whoever_wants_disturbed_ones_kept() {
    for drop_disturbed in [true, false] {
        let mut environment = environment(5, 0.3);
        // 1 % of a window of 2 s is 20 ms. A delay within the clock error is not reported.
        environment.late = |block| match block {
            2 => (80_000_000, 40_000_000),
            4 => (80_000_000, 70_000_000),
            5 => (19_000_000, 0),
            _ => (0, 0),
        };
        let mut plan = shared();
        plan.design.drop_disturbed = drop_disturbed;
        let record = finished(plan, 5, &mut environment);
        assert_eq!(dropped(&record), [2]);
        let why = record.blocks[1].dropped.as_deref().expect("it was dropped");
        assert!(
            why.starts_with("ssh://b began 40.0 ms after the others, in a window of "),
            "{why}"
        );
        let found = found(&record);
        assert!(
            found.contains(&("generators_apart", Grade::Warning)),
            "{found:?}"
        );
        assert_eq!(conclude(&record).comparisons[0].outcome, Outcome::Better);
    }
}

#[test]
fn one_that_is_always_late_voids_what_it_had_its_part_in() {
    let record = finished(
        shared(),
        5,
        &mut environment(5, 0.3).with(|it| it.late = |_| (200_000_000, 0)),
    );
    assert!(
        dropped(&record).len() >= 3 && record.blocks_kept() >= 6,
        "{:?}",
        dropped(&record)
    );
    assert!(
        found(&record).contains(&("generators_apart", Grade::Invalid)),
        "{:?}",
        found(&record)
    );
    assert_eq!(conclude(&record).comparisons[0].outcome, Outcome::Invalid);
}

#[test]
fn captures_have_generators_back_and_say_nothing_of_it_in_the_record() {
    let mut environment = environment(7, 0.9);
    let (writer, _folder) = begun(shared(), 7);
    let (record, result) = proofload_lab::capture_only(
        writer,
        &mut environment,
        1,
        &proofload_lab::TRIALS,
        &mut |_| {},
    );
    result.expect("nothing went wrong");
    assert_eq!(
        (record.generators.len(), record.generators_lost.len()),
        (2, 0)
    );
    // Before anything else, and before each of two trials of two variants.
    assert_eq!(environment.connects, 5);
}
