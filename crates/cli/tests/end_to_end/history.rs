//! `proofload history`, and finding records by what people call them: on copies of a kept record, without load.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::place::{Place, proofload, stderr, stdout};

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/records/v1");

/// A copy of the kept record below `records` of a place, made on that day of January.
pub fn keep(place: &Place, name: &str, day: u32) -> PathBuf {
    let (to, from) = (place.path("records").join(name), Path::new(KEPT));
    fs::create_dir_all(&to).expect("a folder");
    fs::copy(from.join("events.jsonl"), to.join("events.jsonl")).expect("a copy");
    let header = fs::read_to_string(from.join("record.json")).expect("the header");
    let header = header.replacen("2026-01-01T", &format!("2026-01-{day:02}T"), 1);
    fs::write(to.join("record.json"), header).expect("a file");
    to
}

fn shelf() -> Place {
    let place = Place::new();
    for (name, day) in [("simulated-20260101-000000", 1), ("größe", 3), ("simulated-20260102-000000", 2)] {
        keep(&place, name, day);
    }
    place
}

pub fn command(place: &Place, words: &[&str]) -> Command {
    let mut command = proofload();
    command.args(words).current_dir(place.path(""));
    command
}

fn said(place: &Place, words: &[&str]) -> Output {
    command(place, words).output().expect("proofload starts")
}

#[test]
fn records_are_found_by_what_people_call_them() {
    let place = shelf();
    for (word, name) in [
        ("latest", "größe"),
        ("latest~1", "simulated-20260102-000000"),
        ("größe", "größe"),
        ("simulated", "größe"),
        ("simulated~2", "simulated-20260101-000000"),
        ("records/simulated-20260101-000000/events.jsonl", "simulated-20260101-000000"),
    ] {
        for verb in [&["report"][..], &["history", "show"]] {
            let output = said(&place, &[verb, &[word, "--json"]].concat());
            assert_eq!(output.status.code(), Some(0), "{word}: {}", stderr(&output));
            let json: Value = serde_json::from_str(&stdout(&output)).expect("it is JSON");
            let record = json["record"].as_str().expect("a path");
            assert!(record.ends_with(&format!("records/{name}")), "{word}: {record}");
        }
    }
    // From elsewhere, by flag and by variable; the flag goes first.
    let records = place.path("records");
    let elsewhere = || {
        let mut command = proofload();
        command.current_dir("/").env("PROOFLOAD_RECORDS", &records);
        command
    };
    let by_variable = elsewhere().args(["history", "show"]).output().expect("proofload starts");
    assert_eq!(by_variable.status.code(), Some(0), "{}", stderr(&by_variable));
    assert!(stdout(&by_variable).contains("FASTER") && stdout(&by_variable).contains("events.jsonl"));
    let by_flag = elsewhere().args(["history", "--records", "/nowhere"]).output().expect("proofload starts");
    assert_eq!((by_flag.status.code(), stdout(&by_flag)), (Some(2), String::new()), "{}", stderr(&by_flag));
    for (words, hint) in [
        (&["report", "simulatde"][..], "simulated"),
        (&["compare", "simulated-", "latest"], "2 records"),
        (&["profile", "latest~7"], "only 3 records"),
        (&["history", "trend", "simulatet"], "nearest names are simulated"),
        (&["history", "trend", "simulated", "--variant", "level1"], "level-1"),
        (&["history", "trend", "simulated", "--metric", "p99"], "throughput"),
        (&["history", "--since", "yesterday"], "30d"),
    ] {
        let output = said(&place, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(hint), "{words:?}: {}", stderr(&output));
    }
}

#[test]
fn history_lists_and_draws_what_is_there_and_stands_many_at_once() {
    let place = shelf();
    fs::create_dir(place.path("records/broken")).expect("a folder");
    fs::write(place.path("records/broken/record.json"), "{").expect("a file");
    let at_once: Vec<_> = (0..4)
        .map(|_| {
            let mut command = command(&place, &["history", "--json"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("proofload starts")
        })
        .collect();
    for one in at_once {
        let output = one.wait_with_output().expect("it ends");
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
        let json: Value = serde_json::from_str(&stdout(&output)).expect("it is JSON");
        let records = json["records"].as_array().expect("records");
        let words: Vec<&str> = records.iter().filter_map(|record| record["in_words"].as_str()).collect();
        assert_eq!(words.len(), 4);
        assert_eq!(words.iter().filter(|words| words.starts_with("faster +2")).count(), 3, "{words:?}");
        assert_eq!(words.iter().filter(|words| **words == "unreadable").count(), 1, "{words:?}");
    }
    let list = said(&place, &["history", "simulated", "--since", "2026-01-02", "--limit", "1"]);
    let text = stdout(&list);
    assert!(text.lines().nth(4).is_some_and(|line| line.starts_with(" größe ")), "{text}");
    assert!(
        text.contains("1 older not shown") && text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let trend = said(&place, &["history", "trend", "simulated", "--records", "records"]);
    assert_eq!(trend.status.code(), Some(0), "{}", stderr(&trend));
    assert!(stdout(&trend).contains("throughput of 3 records"), "{}", stdout(&trend));
    // Into a reader that has seen enough.
    let program = env!("CARGO_BIN_EXE_proofload");
    let script = format!(
        "set -o pipefail; '{program}' history | head -1; '{program}' history trend simulated | head -1"
    );
    let piped =
        Command::new("bash").args(["-c", &script]).current_dir(place.path("")).output().expect("bash starts");
    assert_eq!((piped.status.code(), stderr(&piped)), (Some(0), String::new()));
    assert_eq!(stdout(&piped).lines().count(), 2);
}

#[test]
fn a_record_that_is_being_written_opens_and_says_so() {
    let place = shelf();
    let header = record::open(Path::new(KEPT)).expect("it opens").header;
    let header = record::Header { created: "2026-02-01T00:00:00Z".into(), ..header };
    let writer = record::Writer::create(&place.path("records/now"), header, "").expect("a record");
    let report = said(&place, &["report", "latest"]);
    assert_eq!(report.status.code(), Some(0), "{}", stderr(&report));
    assert!(stderr(&report).contains("unfinished: a run is writing it right now"), "{}", stderr(&report));
    let line = |place: &Place| stdout(&said(place, &["history"])).lines().nth(4).map(str::to_owned);
    assert!(
        line(&place).is_some_and(|line| line.starts_with(" now ") && line.contains("running")),
        "{:?}",
        line(&place)
    );
    drop(writer);
    assert!(line(&place).is_some_and(|line| line.contains("cut off after 0 blocks")), "{:?}", line(&place));
}
