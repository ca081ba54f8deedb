//! Records of every format open, and what is no record is told apart from what is damaged.

use std::fs;
use std::path::Path;

use proofload_record::{OpenError, Writer, open};

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/records/v1");

#[test]
fn a_record_of_format_1_opens_whole() {
    let record = open(Path::new(KEPT)).expect("it opens");
    assert_eq!(record.header.version, 1);
    assert_eq!(record.damage, Vec::<String>::new());
    assert_eq!(record.complete_blocks().count(), record.blocks.len());
    assert!(record.blocks.len() >= 6 && record.ended.is_some());
    // Older than open loop: what it does not say is read as closed.
    assert!(!record.is_open_loop() && record.rate.is_none());
    // Also by the name of a file in it, as people paste paths.
    let by_file = open(&Path::new(KEPT).join("events.jsonl")).expect("it opens");
    assert_eq!(by_file.blocks, record.blocks);
}

#[test]
fn what_cannot_be_opened_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let header = folder.path().join("record.json");
    assert!(matches!(open(folder.path()), Err(OpenError::Io { .. })));
    fs::write(&header, "{}").expect("a file");
    assert!(matches!(open(folder.path()), Err(OpenError::Header { .. })));
    let newer = fs::read_to_string(Path::new(KEPT).join("record.json")).expect("the header");
    fs::write(&header, newer.replacen("\"version\": 1", "\"version\": 999", 1)).expect("a file");
    let error = open(folder.path()).expect_err("a newer format is refused").to_string();
    assert!(error.contains("999") && error.contains("newest"), "{error}");
}

#[test]
fn events_that_fit_nowhere_are_damage() {
    let record = open(Path::new(KEPT)).expect("it opens");
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().join("record");
    drop(Writer::create(&at, record.header, "").expect("a record"));
    let events = fs::read_to_string(Path::new(KEPT).join("events.jsonl")).expect("the events");
    let without_blocks: Vec<&str> = events.lines().filter(|line| !line.contains("block_started")).collect();
    fs::write(at.join("events.jsonl"), without_blocks.join("\n") + "\n").expect("a file");
    let opened = open(&at).expect("it opens");
    assert!(opened.blocks.is_empty());
    assert!(opened.damage.iter().all(|line| line.contains("never started")), "{:?}", opened.damage);
    fs::remove_file(at.join("events.jsonl")).expect("the file goes");
    assert_eq!(open(&at).expect("it opens").damage.len(), 1);
}
