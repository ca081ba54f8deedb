//! Each check finds its fault where it is planted in a sound record, and nothing in the sound record itself.

use std::path::Path;

use proofload_audit::{Grade, Outcome, conclude};
use record::{EndReason, Ended, Record, Slice, Trial, TrialEnded};

fn sound() -> Record {
    record::open(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/records/v1")))
        .expect("the kept record opens")
}

fn trials(record: &mut Record, variant: usize) -> impl Iterator<Item = &mut Trial> {
    record.blocks.iter_mut().flat_map(|block| &mut block.trials).filter(move |t| t.variant() == variant)
}

fn slices(record: &mut Record, variant: usize) -> impl Iterator<Item = &mut Slice> {
    trials(record, variant).flat_map(|trial| &mut trial.slices)
}

fn ends(record: &mut Record) -> impl Iterator<Item = &mut TrialEnded> {
    trials(record, 0).filter_map(|trial| trial.ended.as_mut())
}

/// The checks that speak of a record, with their grades.
fn found(record: &Record) -> Vec<(&'static str, Grade)> {
    conclude(record).findings.iter().map(|finding| (finding.check, finding.grade)).collect()
}

#[test]
fn a_sound_record_has_an_answer_and_no_finding() {
    let conclusion = conclude(&sound());
    assert_eq!(conclusion.findings, []);
    assert_eq!(conclusion.comparisons[0].outcome, Outcome::Better);
    assert!(conclusion.is_decided() && !conclusion.is_void());
}

#[test]
fn each_planted_fault_is_found_and_nothing_else() {
    type Plant = fn(&mut Record);
    let faults: [(&str, Grade, Plant); 9] = [
        ("errors", Grade::Void, |record| {
            slices(record, 1).for_each(|slice| slice.ok -= slice.ok / 500);
        }),
        ("generator_saturated", Grade::Void, |record| {
            slices(record, 1).for_each(|slice| {
                slice.generator.cpu_ns = slice.generator.wall_ns.clone();
                slice.services[0].cpu_ns /= 2;
            });
        }),
        ("generator_saturated", Grade::Warning, |record| {
            slices(record, 1).for_each(|slice| slice.generator.cpu_ns = slice.generator.wall_ns.clone());
        }),
        ("cores_shared", Grade::Warning, |record| {
            trials(record, 0).for_each(|trial| trial.started.cpus_shared = true);
        }),
        ("different_bodies", Grade::Warning, |record| {
            slices(record, 1).for_each(|slice| slice.body_bytes /= 2);
        }),
        ("steal", Grade::Warning, |record| {
            slices(record, 0).for_each(|slice| slice.machine.steal_share = 0.03);
        }),
        ("idle_not_idle", Grade::Warning, |record| {
            slices(record, 0).for_each(|slice| slice.machine.idle_trials_cpu_ns = slice.window_ns / 20);
        }),
        ("left_over", Grade::Void, |record| {
            ends(record).for_each(|end| end.leftovers.push("node server.js (pid 9)".into()));
        }),
        ("killed", Grade::Note, |record| ends(record).for_each(|end| end.killed.push("api".into()))),
    ];
    for (check, grade, plant) in faults {
        let mut record = sound();
        plant(&mut record);
        assert_eq!(found(&record), [(check, grade)], "{check}");
        let void = grade == Grade::Void;
        let comparison = &conclude(&record).comparisons[0];
        assert_eq!(comparison.outcome == Outcome::Void, void, "{check}");
        assert_eq!(comparison.estimate.is_none(), void, "void prints instead of a number, never beside it");
        assert_eq!(comparison.exploratory.is_empty(), void, "{check}");
    }
}

#[test]
fn what_nearly_is_a_fault_is_none() {
    let mut record = sound();
    slices(&mut record, 1).for_each(|slice| {
        slice.generator.cpu_ns = slice.generator.wall_ns.iter().map(|wall| wall * 84 / 100).collect();
        slice.machine.steal_share = 0.019;
        slice.machine.idle_trials_cpu_ns = slice.window_ns / 200;
        slice.body_bytes -= slice.body_bytes / 200;
    });
    assert_eq!(found(&record), []);
}

#[test]
fn fewer_than_six_blocks_give_no_verdict_however_clear_they_are() {
    let mut record = sound();
    record.blocks.truncate(5);
    assert_eq!(found(&record), [("too_few_blocks", Grade::Void)]);
    assert_eq!(conclude(&record).comparisons[0].outcome, Outcome::Void);
    // While the run goes on there is nothing to blame it for, and still no verdict.
    record.ended = None;
    assert_eq!(found(&record), []);
    assert_eq!(conclude(&record).comparisons[0].outcome, Outcome::Inconclusive);
    assert!(conclude(&record).comparisons[0].ratio_so_far.is_some_and(|ratio| ratio > 1.1));
}

#[test]
fn a_warm_up_that_never_ended_and_a_pointless_run_are_said() {
    let mut record = sound();
    if let Some(warm_up) = &mut record.warm_up {
        warm_up.steady_after_s[1] = None;
    }
    assert_eq!(found(&record), [("never_steady", Grade::Warning)]);

    let mut record = sound();
    record.ended = Some(Ended { reason: EndReason::Void("nothing answers".into()), seconds: 1.0 });
    assert_eq!(found(&record), [("pointless", Grade::Void)]);
}

#[test]
fn a_block_without_a_success_leaves_no_estimate() {
    let mut silent = sound();
    for slice in trials(&mut silent, 1).next().expect("a trial").slices.iter_mut() {
        (slice.ok, slice.ok_in_window) = (0, 0);
    }
    let comparison = &conclude(&silent).comparisons[0];
    assert!(comparison.estimate.is_none());
    assert_eq!(comparison.outcome, Outcome::Void);
}
