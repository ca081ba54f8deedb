//! The sentence for every kind of end of a run, from the stored record with changed figures.

use analysis::conclude;
use plan::Metric;
use record::{EndReason, Ended, Record, Slice};
use stats::Estimate;

use super::*;
use crate::kept;

fn said(record: &Record, conclusion: &Conclusion) -> (RunState, String) {
    (state(record, conclusion), headline(record, conclusion))
}

/// The stored record as if its only comparison had this outcome.
fn decided(
    metric: Metric,
    outcome: Outcome,
    (ratio, low, high): (f64, f64, f64),
) -> (RunState, String) {
    let mut record = kept();
    record.header.plan.design.metric = metric;
    let mut conclusion = conclude(&record);
    conclusion.comparisons.truncate(1);
    let comparison = &mut conclusion.comparisons[0];
    comparison.metric = metric;
    comparison.outcome = outcome;
    comparison.estimate = Some(Estimate {
        blocks: 10,
        ratio,
        low,
        high,
        sd_log: 0.1,
        critical_t: 3.0,
    });
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
        assert_eq!(state, RunState::Decided);
        text
    });
    insta::assert_snapshot!(told.join("\n"));
}

/// The stored record with all slices changed.
fn spoiled(spoil: impl Fn(&mut Slice)) -> Record {
    let mut record = kept();
    let trials = record.blocks.iter_mut().flat_map(|block| &mut block.trials);
    trials.flat_map(|trial| &mut trial.slices).for_each(spoil);
    record
}

#[test]
fn each_other_way_in_which_a_run_can_end_has_its_sentence() {
    let words = "api: ended with code 1 before it was ready\nlast words: no port\n".to_owned();
    let ended = || {
        Some(Ended {
            reason: EndReason::ServiceFailed(words.clone()),
            seconds: 3.0,
        })
    };
    let mut few = kept();
    few.blocks.truncate(3);
    let mut alone = kept();
    alone.header.plan.comparisons.clear();
    let mut several = kept();
    let comparisons = &mut several.header.plan.comparisons;
    *comparisons = vec![comparisons[0].clone(); 3];
    // One answer each: consecutive comparisons of the same two variants would be metrics of one comparison.
    (comparisons[1].baseline, comparisons[1].candidate) = (1, 0);
    let without_success = spoiled(
        |Slice {
             counts, variant, ..
         }| {
            if *variant == 1 {
                (
                    counts.successful,
                    counts.successful_in_window,
                    counts.responses,
                ) = (0, 0, 0);
                counts.timed_out = counts.sent;
                counts.status.clear();
            }
        },
    );
    let records = [
        few,
        spoiled(|slice| slice.counts.successful /= 2),
        Record {
            ended: ended(),
            ..kept()
        },
        Record {
            ended: ended(),
            blocks: Vec::new(),
            ..kept()
        },
        Record {
            ended: None,
            blocks: Vec::new(),
            ..kept()
        },
        alone,
        without_success,
        several,
    ];
    let (state, text) = decided(
        Metric::Throughput,
        Outcome::Inconclusive,
        (1.03, 0.95, 1.12),
    );
    let mut told = vec![format!("{state:?}: {text}")];
    told.extend(records.iter().map(|record| {
        let (state, text) = said(record, &conclude(record));
        format!("{state:?}: {text}")
    }));
    insta::assert_snapshot!(told.join("\n"));
}
