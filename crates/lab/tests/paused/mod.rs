//! Runs that the user has wait: the budget does not run meanwhile, and what may have cooled down counts for nothing.

use analysis::Outcome;
use proofload_lab::{News, PAUSED_MAX_S, Progress};
use record::{EndReason, Event, Record};

use crate::environment::{Simulated, assert_in_budget, dropped, finished, plan, run, watched};

/// Whether there was one pause, so long.
fn close(pauses_s: &[f64], seconds: f64) -> bool {
    matches!(pauses_s, [only] if (only - seconds).abs() < 1e-6)
}

fn slices(record: &Record) -> usize {
    record.complete_trials().map(|trial| trial.slices.len()).sum()
}

#[test]
fn a_pause_takes_no_time_and_changes_nothing_but_the_block_that_it_was_long_in() {
    let (sound, _) = run(plan(2), 7, &mut Simulated::new(7, &[0.0, 0.0]));
    let mut environment = Simulated::new(7, &[0.0, 0.0]);
    // In the middle of the second block: longer than the budget.
    let first_s = sound.blocks[0].seconds.expect("it is complete");
    environment.pauses = vec![(first_s + sound.blocks[1].seconds.expect("it is complete") / 2.0, 1e4)];
    let mut told = Vec::new();
    let (record, result) = watched(plan(2), 7, &mut environment, &mut |update| match update.news {
        News::Progress(Progress::Pausing) => told.push((0, update.elapsed_s)),
        News::Event(Event::Paused { block, seconds }) => told.push((*block, update.elapsed_s + seconds)),
        _ => {}
    });
    result.expect("a pause is no error");
    assert!(close(&record.pauses_s, 1e4), "{:?}", record.pauses_s);
    let [(before, at_s), (after, later_s)] = told[..] else { panic!("{told:?}") };
    assert!((before, after) == (0, 2) && (later_s - at_s - 1e4).abs() < 1e-6, "{told:?}");
    assert_eq!(dropped(&record), [2]);
    let why = record.blocks[1].dropped.as_deref();
    assert_eq!(why, Some("the run was paused for 2h46m while services lived"));
    assert_in_budget(&record);
    assert!(record.blocks.iter().all(|block| block.seconds.is_some_and(|seconds| seconds < 100.0)));
}

#[test]
fn a_short_pause_and_one_between_blocks_or_before_the_first_drop_nothing() {
    let (sound, _) = run(plan(2), 3, &mut Simulated::new(3, &[0.0, 0.2]));
    let first_s = sound.blocks[0].seconds.expect("it is complete");
    for (at_s, seconds) in [(1.0, PAUSED_MAX_S - 0.5), (first_s - 0.01, 60.0), (0.0, 60.0)] {
        let mut environment = Simulated::new(3, &[0.0, 0.2]);
        environment.pauses = vec![(at_s, seconds)];
        let record = finished(plan(2), 3, &mut environment);
        assert!(close(&record.pauses_s, seconds), "at {at_s} s: {:?}", record.pauses_s);
        assert!(dropped(&record).is_empty(), "at {at_s} s");
        assert_eq!(slices(&record), slices(&sound), "at {at_s} s");
        assert_eq!(analysis::conclude(&record).comparisons[0].outcome, Outcome::Better);
    }
}

#[test]
fn who_stops_a_paused_run_has_the_pause_in_the_record_and_nothing_left_running() {
    let mut environment = Simulated::new(3, &[0.0, 0.2]);
    environment.pauses = vec![(5.0, -30.0)];
    let record = finished(plan(2), 3, &mut environment);
    assert_eq!(record.ended.as_ref().map(|ended| &ended.reason), Some(&EndReason::Interrupted));
    assert!(close(&record.pauses_s, 30.0) && environment.living.is_empty(), "{:?}", record.pauses_s);
}
