//! Blocks that the lab dropped count for nothing in any figure or check, and are told.

use proofload_analysis::{Calibration, Grade, Outcome, conclude};
use record::{Event, Record};

use crate::given::{slices, sound};

/// The sound record with these blocks dropped, in which all went wrong that can.
fn dropped(blocks: &[u32]) -> Record {
    let mut record = sound();
    for &block in blocks {
        record.apply(Event::BlockDropped {
            block,
            why: format!("the host gave {}0 % of the CPU time to others", block),
        });
    }
    for slice in slices(&mut record).filter(|slice| blocks.contains(&slice.block)) {
        (slice.counts.successful, slice.counts.successful_in_window, slice.counts.timed_out) =
            (0, 0, slice.counts.sent);
        slice.machine.steal_share = 0.5;
    }
    record
}

#[test]
fn a_dropped_block_is_told_with_its_figures_and_has_no_part_in_anything_else() {
    let conclusion = conclude(&dropped(&[3]));
    let [finding] = &conclusion.findings[..] else { panic!("{:?}", conclusion.findings) };
    assert_eq!((finding.check.name(), finding.grade), ("blocks_dropped", Grade::Warning));
    assert_eq!(
        finding.evidence.as_str(),
        "1 of 10 blocks were dropped: in block 3 the host gave 30 % of the CPU time to others"
    );
    let comparison = &conclusion.comparisons[0];
    let estimate = comparison.estimate.as_ref().expect("nine blocks give one");
    assert_eq!((comparison.outcome, estimate.blocks, conclusion.blocks), (Outcome::Better, 9, 9));
    assert!(conclusion.variants.iter().all(|variant| variant.failed == 0 && variant.no_success.is_none()));
    assert_eq!(conclusion.blocks_dropped[0].block, 3);
    assert!(conclude(&sound()).blocks_dropped.is_empty());
}

#[test]
fn where_too_few_are_left_there_is_no_verdict_and_it_is_the_machine_that_is_named() {
    let record = dropped(&[1, 2, 3, 4, 5, 6]);
    let said = |record: &Record, check: &str| {
        let findings = conclude(record).findings;
        findings.into_iter().find(|finding| finding.check.name() == check).expect("it is found")
    };
    assert!(said(&record, "blocks_dropped").evidence.ends_with("; and so on"));
    assert!(said(&record, "too_few_blocks").evidence.starts_with("4 complete blocks"));
    assert_eq!(conclude(&record).comparisons[0].outcome, Outcome::Inconclusive);
}

#[test]
fn a_calibration_is_of_the_blocks_that_count_and_tells_what_the_host_took_in_all() {
    let all = Calibration::of(&sound()).expect("there are ten blocks");
    let fewer = Calibration::of(&dropped(&[1, 7])).expect("there are eight blocks");
    assert_eq!((all.blocks, fewer.blocks, all.steal.max_share, fewer.steal.max_share), (10, 8, 0.0, 0.5));
    // The first block watched the warm-up, dropped or not.
    assert_eq!(all.first_block_s, fewer.first_block_s);
}
