//! `proofload validity`: whoever was told a number finds what it means.

use crate::place::{proofload, stderr, stdout};

#[test]
fn a_number_leads_to_what_it_means_and_what_to_do() {
    let output = proofload().args(["validity", "v8", "steal"]).output().expect("proofload starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("\nV8. Too many requests failed\n"), "{said}");
    assert!(said.contains("\nwhat to do  ") && said.contains("\nV29. "), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
}

#[test]
fn all_checks_are_listed_for_people_and_for_programs() {
    let output = proofload().arg("validity").output().expect("proofload starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stdout(&output);
    let lines = said.lines().filter(|line| line.trim_start().starts_with('V')).count();
    let json = proofload().args(["validity", "--json"]).output().expect("proofload starts");
    let json: serde_json::Value = serde_json::from_str(&stdout(&json)).expect("it is JSON");
    assert_eq!(json["checks"].as_array().map(Vec::len), Some(lines), "{said}");
    let errors = &json["checks"][7];
    assert_eq!(
        (errors["number"].as_str(), errors["check"].as_str()),
        (Some("V8"), Some("errors")),
        "{errors}"
    );
    assert!(errors["text"].as_str().is_some_and(|text| text.contains("**What to do.**")), "{errors}");
}

#[test]
fn what_is_no_check_is_said_with_what_may_have_been_meant() {
    for (word, near) in [
        ("eror", "V8 errors"),
        ("stael", "V29 steal"),
        ("workers", "V17 workers_lost"),
        ("V999", "lists all"),
    ] {
        let output = proofload().args(["validity", word]).output().expect("proofload starts");
        assert_eq!(output.status.code(), Some(2), "{word}");
        let said = stderr(&output);
        assert!(said.contains(&format!("`{word}`")) && said.contains(near), "{said}");
        assert_eq!(stdout(&output), "");
    }
}
