//! The lines of a replayed stored record, and their schema.

use std::collections::BTreeSet;
use std::fs;

use super::*;
use crate::live::tests::{kept, replay};

fn docs(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(file)
}

/// JSON Schema (draft 2020-12) of a line.
fn schema() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12();
    settings
        .into_generator()
        .into_root_schema_for::<EventLine<'static>>()
        .to_value()
}

/// The lines of the first blocks, including parts that depend on the machine.
fn lines(record: &record::Record, blocks: usize) -> Vec<Value> {
    let value = |line: &EventLine<'_>| serde_json::to_value(line).expect("it is JSON");
    let mut lines = vec![value(&started(
        &record.header,
        Path::new("records/simulated"),
    ))];
    replay(record, blocks, &mut |update| {
        lines.extend(of(&record.header.plan, update).iter().map(value));
    });
    let document = || serde_json::json!({ "format": 1 });
    for frame in [
        StreamFrame::Report(document()),
        StreamFrame::Gate(document()),
    ] {
        lines.push(value(&afterwards(record, frame)));
    }
    lines
}

/// The name of a line's event.
fn name(line: &Value) -> &str {
    let mut names = line.as_object().expect("an object").keys();
    names
        .find(|name| !["elapsed_s", "left_s"].contains(&name.as_str()))
        .expect("an event")
}

#[test]
fn lines_have_the_events_of_the_record_and_progress() {
    let record = kept();
    let lines = lines(&record, 7);
    let stored = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../record/tests/records/v1/events.jsonl"
    ));
    let stored = stored.expect("the kept record");
    let stored: Vec<Value> = stored
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let slice = lines.iter().find_map(|line| line.get("slice"));
    assert!(slice.is_some() && stored.iter().any(|line| line.get("slice") == slice));
    assert_eq!(
        (name(&lines[0]), &lines[0]["started"]["format"]),
        ("started", &1.into())
    );
    let last: Vec<&str> = lines.iter().rev().take(2).map(name).collect();
    assert_eq!(last, ["gate", "report"]);
    let concluded = lines.iter().rfind(|line| name(line) == "concluded");
    let comparison = &concluded.expect("a conclusion")["concluded"]["comparisons"][0];
    assert!(comparison["estimate"]["low"].is_f64(), "{comparison}");
}

#[test]
fn the_loop_is_open_wherever_requests_are_due_at_times() {
    fn load_loop(change: impl FnOnce(&mut Plan)) -> Value {
        let mut header = kept().header;
        change(&mut header.plan);
        serde_json::to_value(started(&header, Path::new("x"))).expect("it is JSON")["started"]["loop"]
            .clone()
    }
    let capacity =
        |plan: &mut Plan| plan.design.slo = vec![plan::limit("p99 < 50ms").expect("a limit")];
    let at_rates = |plan: &mut Plan| {
        let (until, arrivals) = (model::Until::Requests(1), plan.design.arrivals);
        let rates = Some("100,200".parse().expect("rates"));
        plan.measure = Some(plan::Measure {
            until,
            rates,
            arrivals,
            warmup: std::time::Duration::ZERO,
        });
    };
    assert_eq!(
        [load_loop(|_| ()), load_loop(capacity), load_loop(at_rates)],
        ["closed", "open", "open"]
    );
}

#[test]
fn nothing_tells_who_is_ahead_where_that_is_withheld() {
    let mut record = kept();
    record.header.plan.design.looks = plan::LookRule::Once;
    let lines = lines(&record, 8);
    let names: BTreeSet<&str> = lines.iter().map(name).collect();
    assert!(names.contains("block_started"), "{names:?}");
    for withheld in ["slice", "concluded"] {
        assert!(!names.contains(withheld), "{names:?}");
    }
}

#[test]
fn the_kept_schema_is_the_one_in_use_and_the_page_has_every_event() {
    let path = docs("events.schema.json");
    let schema = schema();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        let text = serde_json::to_string_pretty(&schema).expect("it is JSON");
        fs::write(&path, text + "\n").expect("it can be written");
    }
    let kept = fs::read(path).unwrap_or_default();
    let kept: Value = serde_json::from_slice(&kept).unwrap_or_default();
    assert!(
        kept == schema,
        "docs/events.schema.json is out of date: run this test with UPDATE_SCHEMA=1"
    );

    let page = fs::read_to_string(docs("events.md")).expect("the page is there");
    let mut events = Vec::new();
    names_of_events(&schema, &mut events);
    events.retain(|name| !page.contains(&format!("`{name}`")));
    assert_eq!(events, Vec::<String>::new(), "docs/events.md");
}

/// Names of events: the only property of each variant of an enum.
fn names_of_events(schema: &Value, found: &mut Vec<String>) {
    for name in ["Event", "Progress", "StreamFrame"] {
        let variants = schema["$defs"][name]["oneOf"].as_array();
        let variants = variants.expect("an enum of the schema").iter();
        let names = variants.filter_map(|one| one["properties"].as_object()?.keys().next());
        found.extend(names.cloned());
    }
}
