//! The index follows what lies there, whatever became of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use proofload_history::{Done, History, INDEX, synchronise};
use rusqlite::Connection;

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/records/v1");

/// A folder with copies of the kept record, each made a day after the one before.
struct Shelf(tempfile::TempDir);

impl Shelf {
    fn of(names: &[&str]) -> Shelf {
        let shelf = Shelf(tempfile::tempdir().expect("a folder"));
        names.iter().zip(1..).for_each(|(name, day)| shelf.add(name, day));
        shelf
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn add(&self, name: &str, day: u32) {
        let (to, from) = (self.path(name), Path::new(KEPT));
        fs::create_dir(&to).expect("a folder");
        fs::copy(from.join("events.jsonl"), to.join("events.jsonl")).expect("a copy");
        let header = fs::read_to_string(from.join("record.json")).expect("the header");
        let header = header.replacen("2026-01-01T", &format!("2026-01-{day:02}T"), 1);
        fs::write(to.join("record.json"), header).expect("a file");
    }

    fn synchronised(&self) -> History {
        synchronise(self.0.path(), &mut |_| ()).expect("it can be listed")
    }

    /// Records concluded and vanished, and the notes.
    fn done(&self) -> (usize, usize, Vec<String>) {
        let History { done: Done { concluded, vanished, .. }, notes, .. } = self.synchronised();
        (concluded, vanished, notes)
    }
}

fn names(history: &History) -> Vec<&str> {
    history.entries.iter().map(|entry| entry.name.as_str()).collect()
}

#[test]
fn what_is_new_changed_or_gone_is_followed_and_nothing_else_is_read() {
    let shelf = Shelf::of(&["b", "a", "größe"]);
    fs::create_dir(shelf.path("no-record")).expect("a folder");
    let first = shelf.synchronised();
    assert_eq!((names(&first), first.done.concluded), (vec!["b", "a", "größe"], 3));
    let essentials = first.entries[0].found.as_ref().expect("it can be read");
    assert!(
        essentials.blocks == 10 && essentials.compared[0].estimate.is_some() && !first.entries[0].running
    );
    assert_eq!(shelf.synchronised().entries, first.entries, "read from the index it is the same");
    assert_eq!(shelf.done(), (0, 0, vec![]));

    shelf.add("c", 9);
    fs::remove_dir_all(shelf.path("a")).expect("it goes");
    // A block less, as while a run goes on.
    let events = fs::read_to_string(shelf.path("b/events.jsonl")).expect("the events");
    let ended = events.rfind("{\"ended\"").expect("it ended");
    fs::write(shelf.path("b/events.jsonl"), &events[..ended]).expect("a file");
    let changed = shelf.synchronised();
    assert_eq!(
        (names(&changed), changed.done.concluded, changed.done.vanished),
        (vec!["b", "größe", "c"], 2, 1)
    );
    assert_eq!(changed.entries[0].found.as_ref().expect("it can be read").ended, None);
    assert_eq!(shelf.done(), (0, 0, vec![]));
}

#[test]
fn records_that_cannot_be_read_are_listed_with_what_is_wrong() {
    let shelf = Shelf::of(&["sound", "cut", "newer", "contradictory"]);
    let edit = |name: &str, change: &dyn Fn(String) -> String| {
        let path = shelf.path(name).join("record.json");
        let text = fs::read_to_string(&path).expect("the header");
        fs::write(&path, change(text)).expect("a file");
    };
    edit("cut", &|text| text[..text.len() / 2].to_owned());
    edit("newer", &|text| text.replacen("\"version\": 1", "\"version\": 99", 1));
    edit("contradictory", &|text| text.replacen("\"candidate\": 1", "\"candidate\": 77", 1));
    for _ in 0..2 {
        let history = shelf.synchronised();
        let found: BTreeMap<&str, Option<&str>> = history
            .entries
            .iter()
            .map(|entry| (entry.name.as_str(), entry.found.as_ref().err().map(String::as_str)))
            .collect();
        assert_eq!(found["sound"], None);
        assert!(found["cut"].is_some_and(|why| why.contains("record.json")), "{found:?}");
        assert!(found["newer"].is_some_and(|why| why.contains("99")), "{found:?}");
        assert_eq!(found.len(), 4, "and the last, whatever is made of it");
    }
}

#[test]
fn an_index_that_is_damaged_foreign_or_of_another_form_is_made_anew_with_a_note() {
    let shelf = Shelf::of(&["a", "b"]);
    let index = shelf.path(INDEX);
    let database = |statements: &str| {
        let _ = fs::remove_file(&index);
        Connection::open(&index).and_then(|it| it.execute_batch(statements)).expect("a database");
    };
    let spoil = |how: usize| match how {
        0 => fs::write(&index, "my notes, which happen to have this name\n".repeat(99)).expect("a file"),
        1 => {
            let mut bytes = fs::read(&index).expect("the index");
            let (half, length) = (bytes.len() / 2, bytes.len());
            bytes[half..length].fill(0xa5);
            fs::write(&index, bytes).expect("a file");
        }
        2 => database("CREATE TABLE precious (x); INSERT INTO precious VALUES (1)"),
        3 => {
            database("PRAGMA application_id = 1886547044; PRAGMA user_version = 1; CREATE TABLE records (x)")
        }
        _ => {
            database("PRAGMA application_id = 1886547044; PRAGMA user_version = 0; CREATE TABLE records (x)")
        }
    };
    for how in 0..5 {
        shelf.synchronised();
        spoil(how);
        let (concluded, _, notes) = shelf.done();
        assert_eq!((concluded, notes.len()), (2, 1), "{how}: {notes:?}");
        assert!(notes[0].contains("made anew") && notes[0].contains("history.sqlite.old"), "{notes:?}");
        assert!(shelf.path("history.sqlite.old").exists());
        assert_eq!(shelf.done(), (0, 0, vec![]), "{how}: and then it is sound");
    }
    // An empty one is what is left where a disk was full.
    fs::write(&index, "").expect("a file");
    assert_eq!(shelf.done(), (2, 0, vec![]));
}

#[test]
fn an_index_that_cannot_be_used_is_left_alone_and_everything_works_without() {
    let shelf = Shelf::of(&["a", "b"]);
    let index = shelf.path(INDEX);
    let newer = "PRAGMA application_id = 1886547044; PRAGMA user_version = 2; CREATE TABLE more (x)";
    Connection::open(&index).and_then(|it| it.execute_batch(newer)).expect("a database");
    for _ in 0..2 {
        let (concluded, _, notes) = shelf.done();
        assert_eq!(concluded, 2);
        assert!(notes.len() == 1 && notes[0].contains("newer"), "{notes:?}");
    }
    fs::remove_file(&index).expect("it goes");
    fs::create_dir(&index).expect("a folder in its place");
    let history = shelf.synchronised();
    assert_eq!((names(&history), history.notes.len()), (vec!["a", "b"], 1), "{:?}", history.notes);
}

#[test]
fn rows_of_another_version_or_that_were_tampered_with_are_concluded_again() {
    let shelf = Shelf::of(&["a", "b", "c"]);
    shelf.synchronised();
    let index = Connection::open(shelf.path(INDEX)).expect("the index");
    index.execute("UPDATE records SET concluded_by = 'older' WHERE name = 'a'", []).expect("a row");
    index
        .execute("UPDATE records SET essentials = '{\"experiment\":1}' WHERE name = 'b'", [])
        .expect("a row");
    drop(index);
    assert_eq!(shelf.done(), (2, 0, vec![]));
    assert_eq!(shelf.done(), (0, 0, vec![]));
}

#[test]
fn many_at_once_find_the_same_and_leave_a_sound_index() {
    let names: Vec<String> = (0..12).map(|number| format!("r{number:02}")).collect();
    let shelf = Shelf::of(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let all: Vec<History> = thread::scope(|scope| {
        let at_once: Vec<_> = (0..4).map(|_| scope.spawn(|| shelf.synchronised())).collect();
        at_once.into_iter().map(|one| one.join().expect("no panic")).collect()
    });
    for history in &all {
        assert_eq!((&history.entries, &history.notes), (&all[0].entries, &vec![]));
    }
    assert_eq!(shelf.done(), (0, 0, vec![]));
}
