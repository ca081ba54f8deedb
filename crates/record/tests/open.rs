//! Records open, and damage is distinguished from a path that is not a record.

extern crate proofload_record as record;

mod rewritten;

use std::fs;
use std::path::{Path, PathBuf};

use proofload_record::{CaptureKind, Event, Record, VERSION, Writer, is_being_written, open};
use tempfile::TempDir;

const OWN: &str = env!("CARGO_PKG_VERSION");
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/records/v1");

fn kept() -> Record {
    open(Path::new(KEPT)).expect("it opens")
}

/// Creates a new record with the header of the stored one. Returns its path and writer.
fn begun() -> (TempDir, PathBuf, Writer) {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().join("record");
    let writer = Writer::create(&at, kept().header, "").expect("a record");
    (folder, at, writer)
}

/// Reads the lines of a record's events.
fn events(at: &Path) -> Vec<String> {
    let text = fs::read_to_string(at.join("events.jsonl")).expect("the events");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_kept_record_opens_whole() {
    let record = kept();
    assert_eq!(record.header.version, VERSION);
    assert_eq!(record.damage, Vec::<String>::new());
    assert_eq!(record.complete_blocks().count(), record.blocks.len());
    assert!(record.blocks.len() >= 6 && record.ended.is_some());
    assert!(!record.is_open_loop() && record.rate.is_none());
    let experiment =
        fs::read_to_string(Path::new(KEPT).join("experiment.toml")).expect("the experiment");
    assert_eq!(record.experiment_text.as_deref(), Some(&*experiment));
    // Opens by a file in the folder, too, because users paste such paths.
    let by_file = open(&Path::new(KEPT).join("events.jsonl")).expect("it opens");
    assert_eq!(by_file.blocks, record.blocks);
}

#[test]
fn captures_are_kept_in_order_also_after_the_end_of_the_run() {
    let (_folder, at, mut writer) = begun();
    let ended = kept().ended.expect("it ended");
    writer
        .append(Event::Ended(ended.clone()))
        .expect("it is kept");
    let kinds = [
        CaptureKind::Plain,
        CaptureKind::Counters,
        CaptureKind::Cpu,
        CaptureKind::Heap,
    ];
    for (round, kind) in (1..).zip(["plain", "counters", "cpu", "heap"]) {
        writer.append(capture(round, kind)).expect("it is kept");
    }
    let opened = open(&at).expect("it opens");
    assert_eq!(opened.captures, writer.record().captures);
    let told: Vec<(u32, CaptureKind)> = opened
        .captures
        .iter()
        .map(|one| (one.round, one.kind))
        .collect();
    assert_eq!(
        told,
        [(1, kinds[0]), (2, kinds[1]), (3, kinds[2]), (4, kinds[3])]
    );
    assert_eq!(
        (opened.ended, opened.damage),
        (Some(ended), Vec::<String>::new())
    );
    // The serialized form, which other programs read.
    let form = r#","captured":{"round":1,"variant":0,"kind":"plain","#;
    assert!(
        events(&at).iter().any(|line| line.contains(form)),
        "{:?}",
        events(&at)
    );
}

/// Creates a capture of one service with one process and one missing part.
fn capture(round: u32, kind: &str) -> Event {
    let agent = serde_json::json!({
        "thread": 0, "thread_id": 7, "role": "service", "versions": { "node": "22.0.0" }, "main": "/srv/server.js", "requests": 9,
        "profile": (kind == "cpu").then(|| serde_json::json!({ "path": "profiles/a-api-7.cpuprofile", "bytes": 99 })),
    });
    let process = serde_json::json!({
        "pid": 7, "parent": 6, "command": "node server.js", "agents": [agent],
        "threads": [{ "id": 7, "name": "node", "cpu_ns": 5, "waited_ns": 1 }],
    });
    let service = serde_json::json!({
        "service": "api", "directory": "/srv", "cpu_ns": 6, "processes": [process], "missing": [{ "what": "other", "why": "a thread" }],
    });
    let captured = serde_json::json!({ "captured": {
        "round": round, "variant": 0, "kind": kind, "start_ns": 1, "end_ns": 2, "requests": 9, "errors": 0, "services": [service],
    } });
    serde_json::from_value(captured).expect("an event")
}

#[test]
fn of_two_that_begin_in_one_folder_at_once_one_gets_it() {
    let (folder, header) = (tempfile::tempdir().expect("a folder"), kept().header);
    let start = std::sync::Barrier::new(8);
    let make = || {
        start.wait();
        Writer::create(folder.path(), header.clone(), "").is_ok()
    };
    let made = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .filter(|made| *made)
            .count()
    });
    assert_eq!(made, 1);
}

#[test]
fn what_cannot_be_opened_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let header = folder.path().join("record.json");
    assert!(
        open(folder.path()).is_err_and(|error| error.to_string().contains("not a readable record"))
    );
    fs::write(&header, "{}").expect("a file");
    assert!(
        open(folder.path()).is_err_and(|error| error.to_string().contains("not a record's header"))
    );
    let kept = fs::read_to_string(Path::new(KEPT).join("record.json")).expect("the header");
    for other in [VERSION - 1, VERSION + 1] {
        let header_of_other = kept.replacen("\"version\": 1", &format!("\"version\": {other}"), 1);
        fs::write(&header, header_of_other.replacen("0.0.0", "9.9.0", 1)).expect("a file");
        let error = open(folder.path()).expect_err("another format is refused");
        let expected = format!(
            "Proofload 9.9.0 wrote it on 2026-01-01 in format {other}, and this Proofload {OWN} reads only format {VERSION}"
        );
        assert!(error.to_string().ends_with(&expected), "{error}");
        assert!(
            error
                .hint
                .contains("open it with the build of Proofload 9.9.0 that wrote it"),
            "{}",
            error.hint
        );
    }
    // As in format 1 of builds before the first release.
    fs::write(&header, kept.replacen("\"seed\": 11,", "", 1)).expect("a file");
    let error = open(folder.path()).expect_err("a field is missing");
    let expected = format!(
        "Proofload 0.0.0 wrote it on 2026-01-01 in format 1, which this Proofload {OWN} cannot read: missing field `seed`"
    );
    assert!(error.to_string().contains(&expected), "{error}");
}

#[test]
fn a_record_from_elsewhere_is_no_trap() {
    let folder = tempfile::tempdir().expect("a folder");
    let (header, events) = (
        folder.path().join("record.json"),
        folder.path().join("events.jsonl"),
    );
    fs::copy(Path::new(KEPT).join("record.json"), &header).expect("a header");
    let pipe = |path: &Path| {
        assert!(
            std::process::Command::new("mkfifo")
                .arg(path)
                .status()
                .expect("mkfifo")
                .success()
        );
    };
    pipe(&events);
    let error = open(folder.path())
        .expect_err("a pipe is not waited for")
        .to_string();
    assert!(
        error.contains("events.jsonl") && error.contains("a pipe, not a file"),
        "{error}"
    );
    assert!(!is_being_written(folder.path()));
    // As large as a disk, but sparse.
    fs::remove_file(&events).expect("gone");
    fs::File::create(&events)
        .and_then(|file| file.set_len(100 << 30))
        .expect("a sparse file");
    let record = open(folder.path()).expect("what stands before it counts");
    assert_eq!(record.damage.len(), 1, "{:?}", record.damage);
    assert!(
        record.damage[0].contains("no end within 4 MiB"),
        "{:?}",
        record.damage
    );
    fs::write(&events, "\n".repeat(5000)).expect("events");
    assert!(open(folder.path()).expect("it opens").damage.len() <= 1001);
    fs::remove_file(&header).expect("gone");
    pipe(&header);
    assert!(open(folder.path()).is_err());
}

#[test]
fn links_in_a_record_are_not_followed() {
    let (folder, at, writer) = begun();
    drop(writer);
    let linked = folder.path().join("linked");
    std::os::unix::fs::symlink(&at, &linked).expect("a link");
    assert_eq!(
        open(&linked)
            .expect("the record itself may be linked")
            .damage,
        Vec::<String>::new()
    );
    for name in ["experiment.toml", "events.jsonl", "record.json"] {
        let (file, outside) = (at.join(name), folder.path().join(name));
        fs::rename(&file, &outside).expect("moved");
        std::os::unix::fs::symlink(&outside, &file).expect("a link");
        let error = open(&at).expect_err("it is not followed").to_string();
        assert!(
            error.contains(name) && error.contains("symbolic link"),
            "{error}"
        );
        fs::rename(&outside, &file).expect("moved back");
    }
    assert!(open(&at).is_ok());
}

#[test]
fn events_that_fit_nowhere_are_damage() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().join("record");
    let mut without_blocks = rewritten::events(Path::new(KEPT));
    without_blocks.retain(|event| !matches!(event, Event::BlockStarted { .. }));
    rewritten::write(&at, kept().header, without_blocks);
    let opened = open(&at).expect("it opens");
    assert!(opened.blocks.is_empty());
    assert!(
        opened
            .damage
            .iter()
            .all(|line| line.contains("never started")),
        "{:?}",
        opened.damage
    );
    fs::remove_file(at.join("events.jsonl")).expect("the file goes");
    assert_eq!(open(&at).expect("it opens").damage.len(), 1);
}

#[test]
fn a_line_that_is_lost_or_changed_is_told_and_takes_its_block_along() {
    let (_folder, at, mut writer) = begun();
    for event in rewritten::events(Path::new(KEPT)) {
        let ends_second = matches!(event, Event::BlockEnded { block: 2, .. });
        writer.append(event).expect("it is kept");
        if ends_second {
            let why = "the host was busy".to_owned();
            writer
                .append(Event::BlockDropped { block: 2, why })
                .expect("it is kept");
        }
    }
    let whole = writer.into_record();
    let counting: Vec<u32> = whole.complete_blocks().map(|block| block.number).collect();
    assert!(counting.len() > 4 && !counting.contains(&2));
    let all = events(&at);
    let read = |lines: &[String]| {
        fs::write(at.join("events.jsonl"), lines.join("\n") + "\n").expect("a file");
        open(&at).expect("it opens")
    };
    assert_eq!(read(&all).damage, Vec::<String>::new());
    // No line follows the last one to reveal its loss. That the run has no end is reported separately.
    for index in 0..all.len() - 1 {
        let mut lost = all.clone();
        lost.remove(index);
        let mut cut = all.clone();
        cut[index] = all[index][..all[index].len() / 2].to_owned();
        let mut changed = all.clone();
        let spaced = all[index].replacen("\"block\":", "\"block\": ", 1);
        changed[index] = spaced.replacen("\"reason\"", "\"Reason\"", 1);
        for lines in [lost, cut, changed].iter().filter(|lines| **lines != all) {
            let opened = read(lines);
            assert!(!opened.damage.is_empty(), "line {}", index + 1);
            for block in opened.complete_blocks() {
                let original = whole.blocks.iter().find(|one| one.number == block.number);
                assert_eq!(Some(block), original, "line {}", index + 1);
                assert!(
                    counting.contains(&block.number),
                    "line {} revives {}",
                    index + 1,
                    block.number
                );
            }
        }
    }
}

#[test]
fn a_record_that_is_removed_while_it_is_written_is_told_at_the_end_of_a_block() {
    let (_folder, at, mut writer) = begun();
    fs::remove_dir_all(&at).expect("it goes");
    let ended = writer.append(Event::BlockDropped {
        block: 1,
        why: "so".to_owned(),
    });
    assert!(ended.is_err_and(|error| error.to_string().contains("cannot write the record")));
}

#[test]
fn a_record_is_being_written_for_as_long_as_its_writer_lives() {
    assert!(!is_being_written(Path::new("/nowhere")), "there is none");
    let (_folder, at, writer) = begun();
    assert!(is_being_written(&at));
    assert_eq!(open(&at).expect("it opens").ended, None);
    drop(writer);
    assert!(!is_being_written(&at) && !is_being_written(Path::new(KEPT)));
}

#[test]
fn plans_that_no_run_has_are_refused() {
    let header = fs::read_to_string(format!("{KEPT}/record.json")).expect("a header");
    let header: serde_json::Value = serde_json::from_str(&header).expect("JSON");
    let grown = |edit: &dyn Fn(&mut serde_json::Value)| {
        let mut header = header.clone();
        edit(&mut header["plan"]);
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("record.json"), header.to_string()).expect("written");
        open(folder.path())
            .map(drop)
            .map_err(|error| error.to_string())
    };
    assert!(grown(&|_| ()).is_ok());
    let repeat =
        |value: &serde_json::Value, times| serde_json::Value::Array(vec![value.clone(); times]);
    for (part, error) in [
        (
            "variants",
            grown(&|plan| plan["variants"] = repeat(&plan["variants"][0], 66)),
        ),
        (
            "comparisons",
            grown(&|plan| plan["comparisons"] = repeat(&plan["comparisons"][0], 65)),
        ),
        (
            "requests",
            grown(&|plan| {
                let load = &mut plan["variants"][0]["load"];
                load["requests"] = repeat(&serde_json::json!({}), 1_001);
            }),
        ),
        (
            "no variants",
            grown(&|plan| plan["variants"] = repeat(&plan["variants"][0], 0)),
        ),
        (
            "index 5",
            grown(&|plan| plan["comparisons"][0]["baseline"] = 5.into()),
        ),
        (
            "bytes",
            grown(&|plan| plan["variants"][0]["name"] = "x".repeat(10_001).into()),
        ),
    ] {
        let error = error.expect_err(part);
        assert!(error.contains(part), "{error}");
    }
}
