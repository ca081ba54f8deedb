//! What a user reads when an experiment file is wrong: one snapshot for each file in `tests/bad`.
//!
//! A snapshot's lines are `line:column message | label | hint`.

use std::fmt::Write;
use std::path::Path;

use proofload_plan::{Problem, ReadError};

/// A problem's place must be one that can be shown: within the text, and not in the middle of a character.
fn rendered(text: &str, problems: &[Problem]) -> String {
    let mut out = String::new();
    for problem in problems {
        assert!(text.get(problem.span.clone()).is_some(), "{problem:?} lies outside the text");
        let (line, column) = problem.line_column(text);
        let hint = problem.hint.as_deref().unwrap_or("-");
        writeln!(out, "{line}:{column} {} | {} | {hint}", problem.message, problem.label).unwrap();
    }
    out
}

/// Reads `text` as a file in a folder of its own, whose name is left out of the result.
fn read(text: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("experiment.toml");
    std::fs::write(&path, text).unwrap();
    let rendered = match proofload_plan::read(&path) {
        Err(ReadError::Problems(problems)) => rendered(&problems.text, &problems.problems),
        other => panic!("expected problems, found {other:?}"),
    };
    rendered.replace(folder.path().to_str().unwrap(), "FOLDER")
}

#[test]
fn each_bad_file_is_explained() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        insta::assert_snapshot!(name, read(&std::fs::read(&path).unwrap()));
    }
}

#[test]
fn a_file_that_is_no_text_is_explained() {
    insta::assert_snapshot!("not_utf8", read(b"name = \"caf\xe9\"\n[services.api]\n"));
    insta::assert_snapshot!("nul_bytes", read(b"name = \"a\"\0\n"));
    insta::assert_snapshot!("too_large", read(&vec![b'#'; 2 << 20]));
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_change_no_place() {
    let unix = include_str!("../bad/several_at_once.toml");
    let windows = unix.replace('\n', "\r\n");
    assert_eq!(read(windows.as_bytes()), read(unix.as_bytes()));
    assert_eq!(read(format!("\u{feff}{windows}").as_bytes()), read(unix.as_bytes()));
}

#[test]
fn deep_nesting_is_a_problem_and_not_a_crash() {
    let brackets = format!("name = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    insta::assert_snapshot!("deep_brackets", read(brackets.as_bytes()));
    let tables = format!("name = {}1{}", "{ a = ".repeat(60), " }".repeat(60));
    insta::assert_snapshot!("deep_tables", read(tables.as_bytes()));
    // Each level of an inline table may hold a dotted key: the deepest tree that the parser lets pass.
    let dotted = format!("x = {}1{}", format!("{{ {}a = ", "a.".repeat(75)).repeat(75), " }".repeat(75));
    insta::assert_snapshot!("deep_dotted", read(dotted.as_bytes()));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().join("missing.toml"), folder.path().to_owned()] {
        let error = proofload_plan::read(&path).unwrap_err();
        assert!(matches!(error, ReadError::Io { .. }), "{error:?}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }
}

#[test]
fn a_large_file_of_another_kind_gives_a_page_of_problems_and_not_a_book() {
    let log = "2026-01-01 12:00:00 GET /index.html 200\n".repeat(20_000);
    assert_eq!(read(log.as_bytes()).lines().count(), 20);
}
