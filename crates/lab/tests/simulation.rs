//! The dispatcher over a simulated environment: after any failure everything is stopped and the record opens.
//! `simulated_truth.rs` tests false findings.

mod budget;
mod calibration;
mod capacity;
mod captured;
mod cores;
mod disturbed;
mod environment;
mod failing;
mod generators;
mod latency;
mod measured;
mod rules;
mod slices;
mod young;

use std::collections::BTreeSet;
use std::fs;

use environment::{Fault, Simulated, begun, finished, plan, reason, run, with_data};
use proofload_lab::{BlockSchedule, LabError};
use record::EndReason;

#[test]
fn every_block_has_each_undecided_variant_once_with_its_slices_in_mirrored_pairs() {
    let mut environment = Simulated::new(3, &[0.0, 0.1, 0.0]);
    let record = finished(plan(3), 3, &mut environment);
    let decided = record
        .complete_blocks()
        .filter(|block| block.trials.len() == 2)
        .count();
    for (number, block) in record.complete_blocks().enumerate() {
        let mut variants: Vec<usize> = block.trials.iter().map(record::Trial::variant).collect();
        variants.sort_unstable();
        // The faster variant is not measured any further once it is decided.
        let undecided = number + decided < record.complete_blocks().count();
        assert_eq!(variants, if undecided { vec![0, 1, 2] } else { vec![0, 2] });
        let slices: Vec<usize> = block
            .trials
            .iter()
            .map(|trial| trial.measured().count())
            .collect();
        assert!(slices.iter().all(|count| *count == slices[0] && *count > 0));
    }
    let rounds = BlockSchedule::new(3, 3).rounds(1, 4);
    let mirrored: Vec<usize> = rounds[3..6].iter().rev().copied().collect();
    assert_eq!(rounds[..3], mirrored);
    let orders: Vec<Vec<usize>> = (1..20)
        .map(|block| BlockSchedule::new(3, 3).order(block))
        .collect();
    assert!(
        orders.iter().any(|order| *order != orders[0]),
        "the order is drawn anew for each block"
    );
    // Variants of a block draw the same requests, and other blocks draw others.
    let starts = environment.starts.iter();
    let seeds: BTreeSet<(u32, u64)> = starts
        .map(|start| (start.block, start.requests_seed))
        .collect();
    let alone: BTreeSet<u64> = seeds.iter().map(|(_, seed)| *seed).collect();
    let blocks = record.complete_blocks().count();
    assert_eq!((seeds.len(), alone.len()), (blocks, blocks), "{seeds:?}");
}

#[test]
fn data_is_made_before_the_first_block_and_outside_of_the_budget() {
    let mut environment = Simulated::new(7, &[0.0, 0.20]);
    let (writer, folder) = begun(with_data(plan(2)), 7);
    let (record, result) = proofload_lab::run(writer, &mut environment, &mut |_| {});
    result.expect("nothing went wrong");
    assert_eq!(
        reason(&record),
        &EndReason::Decided,
        "making it took longer than the budget"
    );
    let names: Vec<&str> = record
        .prepared
        .iter()
        .map(|prepared| prepared.name.as_str())
        .collect();
    assert_eq!(names, ["zips"]);
    let events =
        fs::read_to_string(folder.path().join("record/events.jsonl")).expect("there are events");
    let first = events.lines().next().expect("there is one");
    assert!(first.contains(r#","prepared":{"name":"zips","#), "{first}");
}

#[test]
fn a_budget_too_small_for_a_verdict_is_said_and_not_overspent() {
    for seconds in [10, 12] {
        let mut plan = plan(2);
        plan.design.budget = std::time::Duration::from_secs(seconds);
        let record = finished(plan, 5, &mut Simulated::new(5, &[0.0, 0.5]));
        let conclusion = analysis::conclude(&record);
        let said: Vec<&str> = conclusion
            .findings
            .iter()
            .map(|finding| finding.evidence.as_str())
            .collect();
        assert!(
            said.iter()
                .any(|said| said.contains("no verdict is given from fewer than 4")),
            "{said:?}"
        );
        assert_eq!(
            conclusion.comparisons[0].outcome,
            analysis::Outcome::Inconclusive
        );
        assert!(record.ended.expect("the run ended").seconds <= seconds as f64);
    }
}

#[test]
fn whatever_fails_everything_is_stopped_and_the_end_is_kept() {
    for (fault, expected) in [
        (
            Fault::DiesInBlock(2),
            EndReason::ServiceFailed("variant 1 died".into()),
        ),
        (
            Fault::NeverStarts,
            EndReason::ServiceFailed("variant 1 does not start".into()),
        ),
        (
            Fault::NoData,
            EndReason::PreparationFailed("no space left".into()),
        ),
        (Fault::Interrupt(3), EndReason::Interrupted),
    ] {
        let mut environment = Simulated::new(1, &[0.0, 0.0]).failing(fault);
        let (record, result) = run(with_data(plan(2)), 1, &mut environment);
        assert_eq!(reason(&record), &expected);
        assert_eq!(result.is_ok(), expected == EndReason::Interrupted);
        assert!(!matches!(result, Err(LabError::Record(_))));
    }
}

#[test]
fn a_service_that_never_succeeds_voids_the_run_at_once() {
    let record = finished(
        plan(2),
        1,
        &mut Simulated::new(1, &[0.0, 0.0]).failing(Fault::AllFail),
    );
    let why = "no request succeeded; level-0: 0 of 100 succeeded: status 500; level-1: 0 of 100 succeeded: status 500";
    assert_eq!(reason(&record), &EndReason::Void(why.into()));
    assert_eq!(record.complete_blocks().count(), 0);
    assert_eq!(
        analysis::conclude(&record).comparisons[0].outcome,
        analysis::Outcome::Invalid
    );
}

#[test]
fn the_record_opens_wherever_it_was_cut_off() {
    let (writer, folder) = begun(plan(2), 2);
    let (record, result) =
        proofload_lab::run(writer, &mut Simulated::new(2, &[0.0, 0.3]), &mut |_| {});
    result.expect("nothing went wrong");
    let events = folder.path().join("record/events.jsonl");
    let whole = fs::read(&events).expect("the events are there");
    let lines = whole.iter().filter(|byte| **byte == b'\n').count();
    for cut in (0..whole.len()).step_by(997) {
        fs::write(&events, &whole[..cut]).expect("it can be written");
        let opened = record::open(&folder.path().join("record")).expect("it opens");
        // A line that lacks only its newline is complete.
        let cut_in_a_line = cut > 0 && whole[cut - 1] != b'\n' && whole[cut] != b'\n';
        assert_eq!(opened.damage.len(), usize::from(cut_in_a_line));
        assert!(opened.complete_blocks().count() <= record.complete_blocks().count());
        let _ = analysis::conclude(&opened);
    }
    // A damaged line in the middle only loses that line.
    let mut spoilt = whole.clone();
    spoilt[10] = 0xff;
    fs::write(&events, &spoilt).expect("it can be written");
    let opened = record::open(&folder.path().join("record")).expect("it opens");
    assert!(!opened.damage.is_empty() && opened.damage.len() < lines);
}
