//! Comparison of two records as text: figures if they may be shown, and the reasons otherwise.

use analysis::across;
use proofload_report::ComparedRecords;
use record::Record;

use crate::records::{kept, slices};

/// The stored record as two runs, the later one with windows of a multiple length for the same requests.
fn runs(times: u64) -> (Record, Record) {
    let (mut before, mut after) = (kept(), kept());
    (before.directory, after.directory) = ("records/monday".into(), "records/tuesday".into());
    slices(&mut after).for_each(|slice| slice.counts.window_ns *= times);
    (before, after)
}

fn text(before: &Record, after: &Record) -> String {
    let compared = ComparedRecords {
        before,
        after,
        across: &across(before, after, &[]),
    };
    crate::plain(&compared, 100)
}

#[test]
fn a_service_that_became_slower_has_figures_and_two_machines_have_none() {
    let (before, after) = runs(2);
    insta::assert_snapshot!(
        "text_of_a_service_that_became_slower",
        text(&before, &after)
    );
    let (mut before, mut after) = runs(1);
    before.header.environment.cpu_model = Some("a processor".into());
    after.header.environment.cpu_model = Some("another processor".into());
    insta::assert_snapshot!("text_of_two_machines_has_no_figure", text(&before, &after));
}
