//! `proofload history`, and finding records by name: on copies of a stored record, without load.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::place::{KEPT, Place, Run, ended, proofload};
use crate::rewritten;

/// A copy of the stored record below `records` of a place, made on that day of January.
pub fn keep(place: &Place, name: &str, day: u32) -> PathBuf {
    let mut header = record::open(Path::new(KEPT)).expect("it opens").header;
    header.created = format!("2026-01-{day:02}T00:00:00Z");
    let to = place.path("records").join(name);
    rewritten::write(&to, header, rewritten::events(Path::new(KEPT)));
    to
}

fn shelf() -> Place {
    let place = Place::new();
    for (name, day) in [
        ("simulated-20260101-000000", 1),
        ("größe", 3),
        ("simulated-20260102-000000", 2),
    ] {
        keep(&place, name, day);
    }
    place
}

#[test]
fn records_are_found_by_what_people_call_them() {
    let place = shelf();
    for (word, name) in [
        ("latest", "größe"),
        ("simulated~2", "simulated-20260101-000000"),
        (
            "records/simulated-20260101-000000/events.jsonl",
            "simulated-20260101-000000",
        ),
    ] {
        for verb in [&["report"][..], &["history", "show"]] {
            let json = place
                .said(&[verb, &[word, "--json"]].concat())
                .ends(0)
                .json();
            let record = json["record"].as_str().expect("a path");
            assert!(
                record.ends_with(&format!("records/{name}")),
                "{word}: {record}"
            );
        }
    }
    place
        .said(&["history", "compare", "latest~1", "latest"])
        .ends(0);
    // From another folder, by flag and by variable. The flag takes precedence.
    let elsewhere = |words: &[&str]| {
        let mut command = proofload();
        command
            .args(words)
            .current_dir("/")
            .env("PROOFLOAD_RECORDS", place.path("records"))
            .said()
    };
    elsewhere(&["history", "show"])
        .ends(0)
        .prints(&["FASTER", "events.jsonl"]);
    assert_eq!(
        elsewhere(&["history", "--records", "/nowhere"]).ends(2).out,
        ""
    );
    for (words, hint) in [
        (&["profile", "latest~7"][..], "only 3 records"),
        (
            &["history", "trend", "simulatet"],
            "nearest names are simulated",
        ),
        (
            &["history", "trend", "simulated", "--variant", "level1"],
            "level-1",
        ),
        (
            &["history", "trend", "simulated", "--metric", "p99"],
            "throughput",
        ),
        (&["history", "--since", "yesterday"], "30d"),
    ] {
        place.said(words).ends(2).tells(&[hint]);
    }
}

#[test]
fn history_lists_and_draws_what_is_there_and_stands_many_at_once() {
    let place = shelf();
    place.write("records/broken/record.json", "{");
    let at_once: Vec<_> = (0..4)
        .map(|_| place.proofload(&["history", "--json"]).begun())
        .collect();
    for one in at_once {
        let said = ended(one);
        assert_eq!(said.ends(0).err, "");
        let json = said.json();
        let records = json["records"].as_array().expect("records");
        let words: Vec<&str> = records
            .iter()
            .filter_map(|record| record["in_words"].as_str())
            .collect();
        assert_eq!(words.len(), 4);
        assert_eq!(
            words
                .iter()
                .filter(|words| words.starts_with("faster: +2"))
                .count(),
            3,
            "{words:?}"
        );
        assert_eq!(
            words.iter().filter(|words| **words == "unreadable").count(),
            1,
            "{words:?}"
        );
    }
    let list = place.said(&[
        "history",
        "simulated",
        "--since",
        "2026-01-02",
        "--limit",
        "1",
    ]);
    assert!(
        list.out
            .lines()
            .nth(4)
            .is_some_and(|line| line.starts_with(" größe ")),
        "{list}"
    );
    list.prints(&["1 older not shown"]);
    assert!(
        list.out.lines().all(|line| line.chars().count() <= 100),
        "{list}"
    );
    let trend = place.said(&["history", "trend", "simulated", "--records", "records"]);
    trend.ends(0).prints(&["throughput of 3 records"]);
    let shown = |limit| {
        place
            .said(&["history", "trend", "simulated", "--limit", limit])
            .out
    };
    let hides = ["1", "0"].map(|limit| shown(limit).contains("2 earlier ones"));
    assert_eq!(hides, [true, false], "0 for all, as in the list");
    // To a reader that closes the pipe early.
    let script =
        "set -o pipefail; PROOFLOAD history | head -1; PROOFLOAD history trend simulated | head -1";
    let script = script.replace(
        "PROOFLOAD",
        &format!("'{}'", env!("CARGO_BIN_EXE_proofload")),
    );
    let piped = Command::new("bash")
        .args(["-c", &script])
        .current_dir(place.path(""))
        .said();
    assert_eq!(
        (piped.ends(0).out.lines().count(), piped.err.as_str()),
        (2, "")
    );
}

#[test]
fn a_record_that_is_being_written_opens_and_says_so() {
    let place = shelf();
    let header = record::open(Path::new(KEPT)).expect("it opens").header;
    let header = record::Header {
        created: "2026-02-01T00:00:00Z".into(),
        ..header
    };
    let writer = record::Writer::create(&place.path("records/now"), header, "").expect("a record");
    place
        .said(&["report", "latest"])
        .ends(0)
        .tells(&["unfinished: a run is writing it right now"]);
    let line = || {
        place
            .said(&["history"])
            .out
            .lines()
            .nth(4)
            .unwrap_or_default()
            .to_owned()
    };
    assert!(
        line().starts_with(" now ") && line().contains("running"),
        "{}",
        line()
    );
    drop(writer);
    assert!(line().contains("cut off after 0 blocks"), "{}", line());
}
