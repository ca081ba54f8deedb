//! What people and programs read of a gate, word for word.

use analysis::{conclude, gated};
use plan::GateEntry;
use proofload_report::{Gated, Report, markdown};
use record::Record;

use crate::records::kept;

fn entries(limits: &[(&str, Option<u32>)]) -> Vec<GateEntry> {
    let entry = |(limit, line): &(&str, Option<u32>)| GateEntry {
        limit: plan::limit(limit).expect(limit),
        of: None,
        line: *line,
    };
    limits.iter().map(entry).collect()
}

/// Limits of which each ruling has some, with a candidate whose name is hostile.
const LIMITS: [(&str, Option<u32>); 6] = [
    ("throughput > -3%", Some(20)),
    ("throughput > +200%", Some(21)),
    ("cpu_per_request < -20%", None),
    ("cpu_per_request < 300us", Some(22)),
    ("peak_memory < 300MB", Some(23)),
    ("failed < 0.001%", Some(24)),
];

fn hostile() -> Record {
    let mut record = kept();
    let plan = &mut record.header.plan;
    plan.variants[1].name = "a|b <img src=x>\r\n::error::c%".to_owned();
    plan.comparisons[0].label = format!("{} vs level-0", plan.variants[1].name);
    record
}

fn text(record: &Record, limits: &[(&str, Option<u32>)], allow_open: bool) -> String {
    let gate = gated(record, &conclude(record), &entries(limits));
    crate::plain(&Gated { record, gate: &gate, allow_open }, 100)
}

#[test]
fn text_of_a_gate_with_all_kinds_of_rulings() {
    insta::assert_snapshot!(text(&kept(), &LIMITS, false));
}

#[test]
fn text_of_a_gate_that_is_open_and_let_pass() {
    insta::assert_snapshot!(text(
        &kept(),
        &[("cpu_per_request < -20%", None), ("peak_memory < 300MB", None)],
        true
    ));
}

#[test]
fn text_of_a_gate_that_judges_nothing() {
    let mut record = kept();
    record.ended = None;
    insta::assert_snapshot!(text(&record, &LIMITS, true));
}

#[test]
fn markdown_and_annotations_of_hostile_names() {
    let record = hostile();
    let gate = gated(&record, &conclude(&record), &entries(&LIMITS));
    let gated = Gated { record: &record, gate: &gate, allow_open: false };
    insta::assert_snapshot!(markdown(&gated.document()));
    let annotations = gated.annotations(Some("experiments/a,b.toml"));
    assert!(annotations.lines().all(|line| line.starts_with("::error ") || line.starts_with("::warning ")));
    insta::assert_snapshot!(annotations);
}

#[test]
fn json_has_each_limit_with_its_interval_and_the_outcome_of_all() {
    let record = kept();
    let gate = gated(&record, &conclude(&record), &entries(&LIMITS));
    let json = Gated { record: &record, gate: &gate, allow_open: false }.data();
    assert_eq!(
        (&json["gate_version"], &json["outcome"], &json["passes"]),
        (&1.into(), &"broken".into(), &false.into())
    );
    let limits = json["limits"].as_array().expect("limits");
    assert_eq!(limits.len(), LIMITS.len());
    assert_eq!(limits[0]["limit"], "throughput > -3%");
    assert_eq!((&limits[0]["bound"], &limits[0]["unit"]), (&0.97.into(), &"ratio".into()));
    assert_eq!(
        (&limits[3]["subject"], &limits[3]["bound"], &limits[3]["unit"]),
        (&"variant".into(), &300.0.into(), &"us".into())
    );
    assert!(limits[0]["measured"]["low"].as_f64() < limits[0]["measured"]["value"].as_f64());
    assert_eq!(limits[1]["ruling"], "broken");
}
