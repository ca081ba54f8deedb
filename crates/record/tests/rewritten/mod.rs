//! Records made of the events of another record, by a writer, so that their checksums are correct.

use std::fs;
use std::path::Path;

use record::{Event, Header, Writer};
use serde_json::{Map, Value};

/// The events of a record, in order.
pub fn events(record: &Path) -> Vec<Event> {
    let text = fs::read_to_string(record.join("events.jsonl")).expect("the events");
    let event = |line: &str| {
        let mut line: Map<String, Value> = serde_json::from_str(line).expect("JSON");
        line.retain(|key, _| key != "n" && key != "sum");
        serde_json::from_value(line.into()).expect("an event")
    };
    text.lines().map(event).collect()
}

/// Writes a record to a folder that is new or empty.
pub fn write(to: &Path, header: Header, events: impl IntoIterator<Item = Event>) {
    let mut writer = Writer::create(to, header, "").expect("a record");
    events
        .into_iter()
        .for_each(|event| writer.append(event).expect("it is kept"));
}
