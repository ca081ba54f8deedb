//! `proofload audit`: files, pipes, exit codes, and what is said of files that have nothing in them.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::place::{Place, proofload, stderr, stdout};

const TWO: &str = "## before\nRunning 30s test @ http://192.0.2.7/\n  2 threads and 64 connections\n  213010 requests in 30.01s, 30.00MB read\n\
                   Requests/sec:   7098.00\nTransfer/sec:      1.00MB\n## after\nRunning 30s test @ http://192.0.2.7/\n  2 threads and 64 connections\n  \
                   221530 requests in 30.01s, 31.20MB read\nRequests/sec:   7382.00\nTransfer/sec:      1.04MB\n";

#[test]
fn a_void_conclusion_is_the_exit_code_and_json_has_the_runs() {
    let place = Place::new();
    let path = place.path("notes.md");
    fs::write(&path, TWO).expect("a file");
    let output = proofload().arg("audit").arg(&path).output().expect("proofload starts");
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stdout(&output).contains("one run a side: no conclusion"), "{}", stdout(&output));
    let json = proofload().arg("audit").arg(&path).arg("--json").output().expect("proofload starts");
    let value: serde_json::Value = serde_json::from_str(&stdout(&json)).expect("it is JSON");
    assert_eq!(
        (value["audit_version"].as_u64(), value["runs"][1]["requests"].as_u64()),
        (Some(1), Some(221_530))
    );
    let compare = proofload().arg("audit").arg(&path).args(["--compare", "before", "after"]).output();
    let said = stdout(&compare.expect("proofload starts"));
    assert!(said.contains("one run a side: 7,098/s and 7,382/s, +4.0 %"), "{said}");
}

#[test]
fn a_run_may_be_piped_in() {
    let mut child = proofload()
        .args(["audit", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("proofload starts");
    let one = TWO.split("## after").next().expect("a first half");
    child.stdin.take().expect("a pipe").write_all(one.as_bytes()).expect("it is read");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("7,098"), "{}", stdout(&output));
}

#[test]
fn what_cannot_be_read_or_is_not_known_is_told() {
    let place = Place::new();
    let (empty, prose, binary, good) =
        (place.path("empty"), place.path("prose"), place.path("binary"), place.path("good"));
    fs::write(&empty, "").expect("a file");
    fs::write(&prose, "It was fast.\nVery.\n").expect("a file");
    fs::write(&binary, [0, 159, 146, 150, 0]).expect("a file");
    fs::write(&good, TWO).expect("a file");
    for (path, said) in [
        (&empty, "empty: empty"),
        (&prose, "2 lines, none of a load generator that is known"),
        (&binary, "5 bytes, and not text"),
        (&place.path("nowhere"), "No such file"),
        (&place.path(""), "directory"),
    ] {
        let output = proofload().arg("audit").arg(path).output().expect("proofload starts");
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
    let output = proofload().arg("audit").args([&prose, &good]).output().expect("proofload starts");
    assert_eq!(output.status.code(), Some(4), "a file without runs does not keep the others from being read");
    assert!(stderr(&output).contains("prose: nothing"), "{}", stderr(&output));
    let output = proofload().arg("audit").arg(&good).args(["--compare", "before", "later"]).output();
    let output = output.expect("proofload starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("#1 before; #2 after"), "{}", stderr(&output));
}
