//! The lines of a replayed stored record, and their schema.

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
        .into_root_schema_for::<EventLine>()
        .to_value()
}

/// The first lines of each event, including parts that depend on the machine.
fn lines(record: &record::Record, blocks: usize) -> Vec<Value> {
    let value = |line: &EventLine| serde_json::to_value(line).expect("it is JSON");
    let mut state = LiveState::of(record.header.clone());
    let mut lines = vec![value(&started(
        &record.header,
        Path::new("records/simulated"),
    ))];
    replay(record, blocks, &mut |update| {
        state.take_in(update);
        lines.extend(of(&state, update).iter().map(value));
    });
    lines.push(value(&ended(record)));
    let (report, gate) = (
        serde_json::json!({ "report_version": 1 }),
        serde_json::json!({ "gate_version": 1 }),
    );
    lines.push(value(&afterwards(record, EventKind::Report { report })));
    lines.push(value(&afterwards(record, EventKind::Gate { gate })));
    lines
}

#[test]
fn each_event_as_a_line() {
    let lines = lines(&kept(), 7);
    // The last of each.
    let mut seen: Vec<&Value> = Vec::new();
    for line in lines.iter().rev() {
        if !seen.iter().any(|other| other["event"] == line["event"]) {
            seen.push(line);
        }
    }
    let shown: String = seen.iter().rev().map(|line| format!("{line}\n")).collect();
    insta::assert_snapshot!("each_event", shown);
    assert_eq!(
        (&lines[0]["events_version"], &lines[0]["event"]),
        (&1.into(), &"started".into())
    );
    let versions = lines
        .iter()
        .filter(|line| line.get("events_version").is_some());
    assert_eq!(
        (versions.count(), &lines[lines.len() - 1]["event"]),
        (1, &"gate".into())
    );
}

#[test]
fn the_loop_is_open_wherever_requests_are_due_at_times() {
    fn load_loop(change: impl FnOnce(&mut Plan)) -> Value {
        let mut header = kept().header;
        change(&mut header.plan);
        serde_json::to_value(started(&header, Path::new("x"))).expect("it is JSON")["loop"].clone()
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
    for line in lines(&record, 8) {
        let figures = match line["event"].as_str() {
            Some("slice") => &["rate_per_s", "requests"][..],
            Some("estimate") => &["ratio", "low", "high", "outcome"],
            _ => continue,
        };
        assert!(
            figures.iter().all(|figure| line[*figure].is_null()),
            "{line}"
        );
        assert!(
            line["event"] != "slice" || line["quantiles"] == Value::Array(Vec::new()),
            "{line}"
        );
        assert!(
            line["event"] != "estimate" || line["withheld"] == true,
            "{line}"
        );
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

/// Names of events, anywhere in a schema.
fn names_of_events(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(named)) = object.get("properties") {
                let event = named.get("event").and_then(|event| event["const"].as_str());
                found.extend(event.map(str::to_owned));
            }
            object
                .values()
                .for_each(|value| names_of_events(value, found));
        }
        Value::Array(values) => values
            .iter()
            .for_each(|value| names_of_events(value, found)),
        _ => {}
    }
}
