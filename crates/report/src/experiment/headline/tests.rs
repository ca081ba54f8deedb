//! The sentence of every way in which a run can end, of the kept record with its figures changed.

use std::path::Path;

use analysis::conclude;
use plan::Metric;
use record::{EndReason, Ended, Record};
use stats::Estimate;

use super::*;

fn kept() -> Record {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/records/v1"));
    record::open(path).expect("the kept record opens")
}

fn said(record: &Record, conclusion: &Conclusion) -> (State, String) {
    (state(record, conclusion), headline(record, conclusion))
}

/// The kept record as if its one comparison had come out so.
fn decided(metric: Metric, outcome: Outcome, (ratio, low, high): (f64, f64, f64)) -> (State, String) {
    let mut record = kept();
    record.header.plan.design.metric = metric;
    let mut conclusion = conclude(&record);
    conclusion.comparisons.truncate(1);
    let comparison = &mut conclusion.comparisons[0];
    comparison.metric = metric;
    comparison.outcome = outcome;
    comparison.estimate = Some(Estimate { blocks: 10, ratio, low, high, sd_log: 0.1, critical_t: 3.0 });
    said(&record, &conclusion)
}

#[test]
fn a_difference_is_a_sentence_that_needs_no_glossary() {
    use Metric::{CpuPerRequest, P99, PeakMemory, Throughput};
    use Outcome::{Better, Equivalent, Worse};
    let told = [
        (Throughput, Better, (14.12, 12.34, 16.31)),
        (Throughput, Better, (1.121, 1.09, 1.15)),
        (Throughput, Worse, (0.881, 0.8, 0.95)),
        (Throughput, Equivalent, (1.004, 0.98, 1.02)),
        (CpuPerRequest, Better, (0.061, 0.054, 0.068)),
        (PeakMemory, Worse, (1.38, 1.30, 1.46)),
        (P99, Worse, (1.38, 1.30, 1.46)),
    ];
    let told = told.map(|(metric, outcome, figures)| {
        let (state, text) = decided(metric, outcome, figures);
        assert_eq!(state, State::Decided);
        text
    });
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn what_is_open_is_not_called_anything_else() {
    let (state, text) = decided(Metric::Throughput, Outcome::Inconclusive, (1.03, 0.95, 1.12));
    assert_eq!(state, State::Open);
    assert_eq!(
        text,
        "Inconclusive: level-1 may have a higher or lower throughput than level-0 (+3.0 %, −5.0 % to +12.0 %)"
    );
    let mut record = kept();
    record.blocks.truncate(3);
    let (state, text) = said(&record, &conclude(&record));
    assert!(state != State::Decided && !text.contains("times"), "{text}");
}

#[test]
fn a_void_comparison_has_no_number_of_its_own() {
    let mut record = kept();
    for slice in record.blocks.iter_mut().flat_map(|b| &mut b.trials).flat_map(|t| &mut t.slices) {
        slice.counts.successful /= 2;
    }
    let (state, text) = said(&record, &conclude(&record));
    assert_eq!(state, State::Invalid);
    assert!(text.starts_with("No conclusion may be drawn: level-0: ") && text.ends_with("(V8)"), "{text}");
    assert!(!text.contains("throughput"), "{text}");
}

#[test]
fn a_run_that_broke_says_so_first() {
    let mut record = kept();
    let words = "api: ended with code 1 before it was ready\nlast words: no port\n".to_owned();
    record.ended = Some(Ended { reason: EndReason::ServiceFailed(words), seconds: 3.0 });
    let (state, text) = said(&record, &conclude(&record));
    assert_eq!(state, State::Broken);
    let begin = "A service failed: api: ended with code 1 before it was ready; from 10 blocks up to then: level-1 has a higher throughput ";
    assert!(text.starts_with(begin), "{text}");
    record.blocks.clear();
    let (_, text) = said(&record, &conclude(&record));
    assert!(text.ends_with("before it was ready; nothing had been measured"), "{text}");
    record.ended = None;
    let (state, text) = said(&record, &conclude(&record));
    assert_eq!(state, State::Broken);
    assert!(text.starts_with("The run did not end by itself: "), "{text}");
}

#[test]
fn where_nothing_is_compared_the_figures_are_the_answer() {
    let mut record = kept();
    record.header.plan.comparisons.clear();
    let (state, text) = said(&record, &conclude(&record));
    assert_eq!(state, State::Measured);
    assert!(text.starts_with("level-0: 2,0") && text.ends_with("; nothing is compared"), "{text}");
    assert!(text.contains(" successful responses, ") && text.contains("; level-1: "), "{text}");
}

#[test]
fn a_side_without_a_success_is_the_answer() {
    let mut record = kept();
    let slices = record.blocks.iter_mut().flat_map(|b| &mut b.trials).flat_map(|t| &mut t.slices);
    for slice in slices.filter(|slice| slice.variant == 1) {
        (slice.counts.successful, slice.counts.successful_in_window, slice.counts.responses) = (0, 0, 0);
        slice.counts.timed_out = slice.counts.sent;
        slice.counts.status.clear();
    }
    let (state, text) = said(&record, &conclude(&record));
    assert_eq!(state, State::Decided);
    assert!(text.starts_with("level-1: no response within 5s (0 of "), "{text}");
    assert!(text.ends_with(", so there is nothing to compare"), "{text}");
}

#[test]
fn of_many_verdicts_the_kinds_are_counted_and_the_greatest_is_told() {
    let mut record = kept();
    record.header.plan.comparisons = vec![record.header.plan.comparisons[0].clone(); 3];
    // One answer each: the same two variants one after the other would be metrics of one comparison.
    (record.header.plan.comparisons[1].baseline, record.header.plan.comparisons[1].candidate) = (1, 0);
    let (_, text) = said(&record, &conclude(&record));
    assert!(text.starts_with("3 verdicts: 2 faster, 1 slower; the greatest difference: "), "{text}");
}
