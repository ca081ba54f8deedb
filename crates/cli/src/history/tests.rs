//! Parsing of times. The collected records match the folder, regardless of summaries.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use super::*;

#[path = "../../../record/tests/rewritten/mod.rs"]
mod rewritten;

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/records/v1");

/// A folder with copies of the stored record, each made a day after the previous one.
struct Shelf(tempfile::TempDir);

impl Shelf {
    fn of(names: &[&str]) -> Shelf {
        let shelf = Shelf(tempfile::tempdir().expect("a folder"));
        names
            .iter()
            .zip(1..)
            .for_each(|(name, day)| shelf.add(name, day));
        shelf
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn add(&self, name: &str, day: u32) {
        let mut header = record::open(Path::new(KEPT)).expect("it opens").header;
        header.created = format!("2026-01-{day:02}T00:00:00Z");
        rewritten::write(&self.path(name), header, rewritten::events(Path::new(KEPT)));
    }

    fn edit(&self, name: &str, file: &str, change: impl FnOnce(String) -> String) {
        let path = self.path(name).join(file);
        let text = fs::read_to_string(&path).expect("it is there");
        fs::write(&path, change(text)).expect("it is ours");
    }

    fn gathered(&self) -> Gathered {
        gather(self.0.path()).expect("it can be listed")
    }

    fn read(&self) -> usize {
        let Gathered { read, unkept, .. } = self.gathered();
        assert_eq!(unkept, None);
        read
    }
}

fn names(gathered: &Gathered) -> Vec<&str> {
    gathered
        .entries
        .iter()
        .map(|entry| entry.name.as_str())
        .collect()
}

#[test]
fn what_is_new_changed_or_gone_is_followed_and_nothing_else_is_read() {
    let shelf = Shelf::of(&["b", "a", "größe"]);
    fs::create_dir(shelf.path("no-record")).expect("a folder");
    let first = shelf.gathered();
    assert_eq!((names(&first), first.read), (vec!["b", "a", "größe"], 3));
    let essentials = first.entries[0].found.as_ref().expect("it can be read");
    assert!(
        essentials.blocks == 10
            && essentials.compared[0].estimate.is_some()
            && !first.entries[0].running
    );
    let second = shelf.gathered();
    assert_eq!(
        (&second.entries, second.read),
        (&first.entries, 0),
        "by its summary it is the same"
    );

    shelf.add("c", 9);
    fs::remove_dir_all(shelf.path("a")).expect("it goes");
    // Without an end, as in a run in progress.
    shelf.edit("b", "events.jsonl", |events| {
        let before = events.trim_end().rfind('\n').expect("several lines");
        events[..=before].to_owned()
    });
    let changed = shelf.gathered();
    assert_eq!(
        (names(&changed), changed.read),
        (vec!["b", "größe", "c"], 2)
    );
    assert_eq!(
        changed.entries[0]
            .found
            .as_ref()
            .expect("it can be read")
            .ended,
        None
    );
    assert_eq!(shelf.read(), 0);
}

#[test]
fn what_was_made_after_a_clock_was_set_back_comes_last() {
    let shelf = Shelf::of(&["a", "b", "c"]);
    let order = "\"order\": [\"2026-01-03T23:59:59Z\", 1], \"created\":";
    shelf.edit("a", "record.json", |text| {
        text.replacen("\"created\":", order, 1)
    });
    for read in [3, 0] {
        let gathered = shelf.gathered();
        assert_eq!(
            (names(&gathered), gathered.read),
            (vec!["b", "c", "a"], read)
        );
    }
}

#[test]
fn a_run_that_has_ended_leaves_its_summary() {
    let shelf = Shelf::of(&["a"]);
    let record = record::open(&shelf.path("a")).expect("it opens");
    keep(&record, &analysis::conclude(&record));
    let kept = shelf.gathered();
    fs::remove_file(shelf.path("a").join(record::SUMMARY)).expect("it goes");
    let read = shelf.gathered();
    assert_eq!((kept.read, read.read, &kept.entries), (0, 1, &read.entries));
}

#[test]
fn records_that_cannot_be_read_are_listed_with_what_is_wrong() {
    let shelf = Shelf::of(&["sound", "cut", "newer", "contradictory"]);
    shelf.edit("cut", "record.json", |text| {
        text[..text.len() / 2].to_owned()
    });
    shelf.edit("newer", "record.json", |text| {
        text.replacen("\"version\": 1", "\"version\": 99", 1)
    });
    shelf.edit("contradictory", "record.json", |text| {
        text.replacen("\"candidate\": 1", "\"candidate\": 77", 1)
    });
    for read in [4, 3] {
        let gathered = shelf.gathered();
        assert_eq!(
            gathered.read, read,
            "of what does not open no summary is kept"
        );
        let why = |entry: &HistoryEntry| entry.found.as_ref().err().cloned().unwrap_or_default();
        let found: BTreeMap<&str, String> = gathered
            .entries
            .iter()
            .map(|entry| (entry.name.as_str(), why(entry)))
            .collect();
        assert_eq!(found["sound"], "");
        for (name, part) in [
            ("cut", "record.json"),
            ("newer", "99"),
            ("contradictory", "index 77"),
        ] {
            assert!(found[name].contains(part), "{found:?}");
        }
        assert_eq!(found.len(), 4);
    }
}

#[test]
fn a_summary_that_is_damaged_or_of_another_version_is_made_again() {
    let spoil: [fn(String) -> String; 5] = [
        |_| "my notes, which happen to have this name\n".repeat(99),
        |text| text[..text.len() / 2].to_owned(),
        |_| String::new(),
        |text| text.replacen("essentials ", "essentials 9", 1),
        |text| text.replacen("\"experiment\":", "\"tampered\":", 1),
    ];
    let shelf = Shelf::of(&["a", "b"]);
    let first = shelf.gathered();
    for change in spoil {
        shelf.edit("b", record::SUMMARY, change);
        let second = shelf.gathered();
        assert_eq!((&second.entries, second.read), (&first.entries, 1));
        assert_eq!(shelf.read(), 0, "and then it is sound");
    }
}

#[test]
fn where_no_summary_can_be_kept_everything_is_read_and_that_is_told() {
    let shelf = Shelf::of(&["a", "b"]);
    // Root may write anywhere, but cannot replace a folder by a file.
    fs::create_dir(shelf.path("a").join(record::SUMMARY)).expect("a folder in its place");
    fs::set_permissions(shelf.path("a"), fs::Permissions::from_mode(0o555)).expect("it is ours");
    for read in [2, 1] {
        let gathered = shelf.gathered();
        assert_eq!((names(&gathered), gathered.read), (vec!["a", "b"], read));
        assert!(
            gathered
                .unkept
                .as_ref()
                .is_some_and(|why| why.contains("/a: ")),
            "{gathered:?}"
        );
    }
    fs::set_permissions(shelf.path("a"), fs::Permissions::from_mode(0o755)).expect("it is ours");
}

#[test]
fn lengths_and_dates_are_times_and_anything_else_is_told() {
    let now: Timestamp = "2026-11-22T01:00:00Z".parse().expect("a time");
    for (text, time) in [
        ("30d", "2026-10-23T01:00:00Z"),
        ("2w", "2026-11-08T01:00:00Z"),
        ("12h", "2026-11-21T13:00:00Z"),
        ("1h30m", "2026-11-21T23:30:00Z"),
        ("2026-11-01", "2026-11-01T00:00:00Z"),
        ("2026-11-01T12:00:00+02:00", "2026-11-01T10:00:00Z"),
        ("19000y", "1970-01-01T00:00:00Z"),
    ] {
        assert_eq!(
            at(text, now).map(|time| time.to_string()).as_deref(),
            Some(time),
            "{text}"
        );
    }
    for text in ["", "d", "-3d", "yesterday", "2026-13-01", "4000000000d"] {
        assert!(since(text).is_err(), "{text}");
    }
}
