//! Tests the exit code and the last line of `cargo xtask tidy`, which CI uses. The rules have separate unit
//! tests.

use std::fs;
use std::process::{Command, Output};

fn xtask(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(arguments)
        .output()
        .unwrap()
}

fn last_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .last()
        .unwrap_or_default()
        .to_string()
}

#[test]
fn a_violation_fails_and_a_clean_tree_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    fs::write(folder.path().join("a.rs"), "//! Header.\n").unwrap();
    let clean = xtask(&["tidy", path]);
    assert_eq!(clean.status.code(), Some(0));
    assert_eq!(last_line(&clean), "tidy: 1 files, 0 violations");

    fs::write(folder.path().join("b.rs"), "fn headless() {}\n").unwrap();
    let broken = xtask(&["tidy", path]);
    assert_eq!(broken.status.code(), Some(1));
    assert_eq!(last_line(&broken), "tidy: 2 files, 1 violations");
}

#[test]
fn what_it_cannot_read_or_does_not_know_is_a_usage_error() {
    assert_eq!(xtask(&["tidy", "/nowhere/at/all"]).status.code(), Some(2));
    assert_eq!(xtask(&["tidy", "--fix"]).status.code(), Some(2));
    assert_eq!(xtask(&[]).status.code(), Some(2));
}
