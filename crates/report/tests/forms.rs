//! What people read, word for word, of a record that is kept in the repository.

use std::path::Path;

use audit::conclude;
use proofload_report::{Sheet, json, markdown, text};
use record::{EndReason, Ended, Record};

fn kept() -> Record {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/records/v1"));
    let mut record = record::open(path).expect("the kept record opens");
    // Where it lies differs from machine to machine.
    record.directory = "records/simulated".into();
    record
}

fn as_text(record: &Record) -> String {
    let text = text(&Sheet::new(record, &conclude(record)), 100);
    anstream::adapter::strip_str(&text).to_string()
}

#[test]
fn text_of_a_sound_record() {
    insta::assert_snapshot!(as_text(&kept()));
}

#[test]
fn text_of_a_void_record_has_no_number_beside_the_verdict() {
    let mut record = kept();
    for slice in record.blocks.iter_mut().flat_map(|b| &mut b.trials).flat_map(|t| &mut t.slices) {
        slice.ok -= slice.ok / 10;
        slice.timed_out = slice.ok / 10;
    }
    insta::assert_snapshot!(as_text(&record));
}

#[test]
fn text_of_a_run_whose_budget_was_too_small() {
    let mut record = kept();
    record.blocks.truncate(3);
    record.ended = Some(Ended { reason: EndReason::BudgetTooSmall { needed_s: 112 }, seconds: 54.0 });
    insta::assert_snapshot!(as_text(&record));
}

#[test]
fn markdown_of_a_sound_record() {
    let record = kept();
    insta::assert_snapshot!(markdown(&Sheet::new(&record, &conclude(&record))));
}

#[test]
fn names_from_outside_do_nothing_in_markdown() {
    let mut record = kept();
    record.header.plan.question = Some("<script>alert(1)</script> | **bold** [x](y)".into());
    let markdown = markdown(&Sheet::new(&record, &conclude(&record)));
    assert!(!markdown.contains("<script>") && !markdown.contains("[x](y)"), "{markdown}");
}

#[test]
fn json_has_figures_with_units_and_no_empty_ones() {
    let record = kept();
    let json = json(&record, &conclude(&record));
    assert_eq!(json["report_version"], 1);
    assert_eq!(json["comparisons"][0]["outcome"], "better");
    let ratio = json["comparisons"][0]["estimate"]["ratio"].as_f64().expect("a number");
    assert!((1.1..1.5).contains(&ratio), "{ratio}");
    assert!(json["variants"][0]["throughput_per_s"].as_f64().is_some_and(|rate| rate > 1000.0));
    assert_eq!(json["closed_loop_latency"][0]["quantiles"][0]["percent"], 50.0);
}
