//! Records of every format open, and what is no record is told apart from what is damaged.

use std::fs;
use std::path::Path;

use proofload_record::{
    AgentSeen, Capture, CaptureKind, CapturedProcess, CapturedService, Event, OpenError, ProfileFile,
    ThreadUse, Writer, is_being_written, open,
};

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
    let experiment = fs::read_to_string(Path::new(KEPT).join("experiment.toml")).expect("the experiment");
    assert_eq!(record.experiment_text.as_deref(), Some(&*experiment));
    // Also by the name of a file in it, as people paste paths.
    let by_file = open(&Path::new(KEPT).join("events.jsonl")).expect("it opens");
    assert_eq!(by_file.blocks, record.blocks);
}

#[test]
fn captures_are_kept_in_order_also_after_the_end_of_the_run_and_older_records_have_none() {
    let record = open(Path::new(KEPT)).expect("it opens");
    assert!(record.captures.is_empty());
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().join("record");
    let mut writer = Writer::create(&at, record.header, "").expect("a record");
    let ended = record.ended.expect("it ended");
    writer.append(Event::Ended(ended.clone())).expect("it is kept");
    let kinds = [CaptureKind::Plain, CaptureKind::Counters, CaptureKind::Cpu, CaptureKind::Heap];
    for (round, kind) in (1..).zip(kinds) {
        writer.append(Event::Captured(Box::new(capture(round, kind)))).expect("it is kept");
    }
    let opened = open(&at).expect("it opens");
    assert_eq!(opened.captures, writer.record().captures);
    let told: Vec<(u32, CaptureKind)> = opened.captures.iter().map(|one| (one.round, one.kind)).collect();
    assert_eq!(told, [(1, kinds[0]), (2, kinds[1]), (3, kinds[2]), (4, kinds[3])]);
    assert_eq!((opened.ended, opened.damage), (Some(ended), Vec::<String>::new()));
    // The form that other programs read.
    let events = fs::read_to_string(at.join("events.jsonl")).expect("the events");
    assert!(events.contains(r#"{"captured":{"round":1,"variant":0,"kind":"plain","#), "{events}");
}

/// A capture of one service that is one process, and of which something is missing.
fn capture(round: u32, kind: CaptureKind) -> Capture {
    let threads = vec![ThreadUse { id: 7, name: "node".into(), cpu_ns: 5, waited_ns: 1 }];
    let profile = ProfileFile { path: "profiles/round-1/a-api-7.cpuprofile".into(), bytes: 99 };
    let agent = AgentSeen {
        thread: 0,
        thread_id: Some(7),
        role: "service".into(),
        versions: [("node".to_owned(), "22.0.0".to_owned())].into(),
        node_env: None,
        uv_threadpool_size: None,
        main: Some("/srv/server.js".into()),
        requests: Some(9),
        counters: None,
        profile: (kind == CaptureKind::Cpu).then_some(profile),
        failed: None,
    };
    let (command, parent) = ("node server.js".into(), 6);
    let process = CapturedProcess { pid: 7, parent, command, threads, agents: vec![agent], native: None };
    let service = CapturedService {
        service: "api".into(),
        directory: "/srv".into(),
        cpu_ns: 6,
        processes: vec![process],
        missing: vec![model::Missing::new(model::Absence::Other, "a thread")],
    };
    Capture {
        round,
        variant: 0,
        kind,
        start_ns: 1,
        end_ns: 2,
        requests: 9,
        errors: 0,
        services: vec![service],
    }
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

#[test]
fn a_record_is_being_written_for_as_long_as_its_writer_lives() {
    let record = open(Path::new(KEPT)).expect("it opens");
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().join("record");
    assert!(!is_being_written(&at), "there is none");
    let writer = Writer::create(&at, record.header, "").expect("a record");
    assert!(is_being_written(&at));
    assert_eq!(open(&at).expect("it opens").ended, None);
    drop(writer);
    assert!(!is_being_written(&at) && !is_being_written(Path::new(KEPT)));
}
