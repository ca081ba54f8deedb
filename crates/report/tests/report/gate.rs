//! Snapshots of a gate's output for people and programs.

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

/// Limits with each kind of ruling, and a candidate with a hostile name.
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
    crate::plain(
        &Gated {
            record,
            gate: &gate,
            allow_open,
        },
        100,
    )
}

#[test]
fn texts_are_as_they_were() {
    let unfinished = Record {
        ended: None,
        ..kept()
    };
    let open = [
        ("cpu_per_request < -20%", None),
        ("peak_memory < 300MB", None),
    ];
    // A figure without an interval was not measured, and the measurements of a damaged record are unknown.
    let damaged = Record {
        damage: vec!["a line was changed".to_owned()],
        ..kept()
    };
    for kept in [text(&kept(), &open, true), text(&damaged, &open[..1], true)] {
        assert!(kept.contains("lets nothing pass"), "{kept}");
    }
    for (name, text) in [
        (
            "text_of_a_gate_with_all_kinds_of_rulings",
            text(&kept(), &LIMITS, false),
        ),
        (
            "text_of_a_gate_that_is_open_and_let_pass",
            text(&kept(), &open[..1], true),
        ),
        (
            "text_of_a_gate_that_judges_nothing",
            text(&unfinished, &LIMITS, true),
        ),
    ] {
        insta::assert_snapshot!(name, text);
    }
}

#[test]
fn markdown_and_annotations_of_hostile_names() {
    let record = hostile();
    let gate = gated(&record, &conclude(&record), &entries(&LIMITS));
    let gated = Gated {
        record: &record,
        gate: &gate,
        allow_open: false,
    };
    insta::assert_snapshot!(markdown(&gated.document()));
    let annotations = gated.annotations(Some("experiments/a,b.toml"));
    assert!(
        annotations
            .lines()
            .all(|line| line.starts_with("::error ") || line.starts_with("::warning "))
    );
    insta::assert_snapshot!(annotations);
}

#[test]
fn json_has_each_limit_with_its_interval_and_the_outcome_of_all() {
    let record = kept();
    let gate = gated(&record, &conclude(&record), &entries(&LIMITS));
    let json = Gated {
        record: &record,
        gate: &gate,
        allow_open: false,
    }
    .data();
    assert_eq!(
        (&json["outcome"], &json["passes"]),
        (&"fail".into(), &false.into())
    );
    let limits = json["limits"].as_array().expect("limits");
    assert_eq!(
        (limits.len(), &limits[0]["limit"]),
        (LIMITS.len(), &"throughput > -3%".into())
    );
    assert_eq!(
        (&limits[0]["bound"], &limits[0]["unit"]),
        (&0.97.into(), &"ratio".into())
    );
    assert_eq!(
        (&limits[3]["bound"], &limits[3]["unit"]),
        (&300.0.into(), &"us".into())
    );
    assert_eq!(
        (&limits[3]["subject"], &limits[1]["outcome"]),
        (&"variant".into(), &"fail".into())
    );
    assert!(limits[0]["measured"]["low"].as_f64() < limits[0]["measured"]["value"].as_f64());
}
