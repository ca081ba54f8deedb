//! `proofload report`: files, pipes, exit codes, and messages for files without runs.

use std::io::Write;
use std::process::Stdio;

use crate::place::{Place, Run, ended, proofload};

const TWO: &str = "## before\nRunning 30s test @ http://192.0.2.7/\n  2 threads and 64 connections\n  213010 requests in 30.01s, 30.00MB read\n\
                   Requests/sec:   7098.00\nTransfer/sec:      1.00MB\n## after\nRunning 30s test @ http://192.0.2.7/\n  2 threads and 64 connections\n  \
                   221530 requests in 30.01s, 31.20MB read\nRequests/sec:   7382.00\nTransfer/sec:      1.04MB\n";

#[test]
fn a_void_conclusion_is_the_exit_code_and_json_has_the_runs() {
    let place = Place::new();
    place.write("notes.md", TWO);
    place
        .said(&["report", "notes.md"])
        .ends(4)
        .prints(&["labels with a single run"]);
    let json = place.said(&["report", "notes.md", "--json"]).json();
    assert_eq!(
        (&json["format"], &json["runs"][1]["requests"]),
        (&1.into(), &221_530.into())
    );
    place
        .said(&["report", "notes.md", "--compare", "before", "after"])
        .prints(&["one run a side: 7,100/s and 7,380/s, +4.0 %"]);
    place
        .said(&["report", "notes.md", "--compare", "before", "later"])
        .ends(2)
        .tells(&["#1 before; #2 after"]);
}

#[test]
fn a_run_may_be_piped_in() {
    let mut child = proofload()
        .args(["report", "-"])
        .stdin(Stdio::piped())
        .begun();
    let one = TWO.split("## after").next().expect("a first half");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(one.as_bytes())
        .expect("it is read");
    ended(child).ends(0).prints(&["213,010"]);
}

#[test]
fn what_cannot_be_read_or_is_not_known_is_told() {
    let place = Place::new();
    place.write("empty", "");
    place.write("prose", "It was fast.\nVery.\n");
    place.write("binary", [0, 159, 146, 150, 0]);
    place.write("good", TWO);
    for (path, part) in [
        ("empty", "empty: empty"),
        ("prose", "2 lines, none of a load generator that is known"),
        ("binary", "5 bytes, and not text"),
    ] {
        place.said(&["report", path]).ends(2).tells(&[part]);
    }
    // A file without runs does not prevent the others from being read.
    place
        .said(&["report", "prose", "good"])
        .ends(4)
        .tells(&["prose: nothing"]);
}
